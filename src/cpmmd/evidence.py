"""Evidence: the exact p-value, where the observed statistic stands among its actions, and scores that make statistics comparable.

Nothing here knows what was compared. A question hands over the values of its statistic under every action (relabelings, signs,
re-pairings), the observed one first, and how close two values count as equal.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol, TypeVar

import numpy as np
import numpy.typing as npt
from scipy import special

from cpmmd.core.arrays import Array
from cpmmd.draws.labels import Draws
from cpmmd.errors import InputError

LEAST_SKEWNESS = 0.02  # below it the gamma is a normal for every purpose, and its shape overflows
ActsOn = TypeVar("ActsOn", bound=Draws, contravariant=True)


class Statistic(Protocol[ActsOn]):
    """What a question adds: sums of the data, ready to meet the actions that its null hypothesis allows."""

    @property
    def tolerance(self) -> float:
        """Values closer than this are equal but for rounding."""
        ...

    def values(self, draws: ActsOn) -> Array:
        """Return the statistic under every action, the observed one first."""
        ...


@dataclass(frozen=True, eq=False)
class Ranking:
    """The observed statistic among its actions."""

    statistic: float  # of the data as they came
    null_distribution: Array = field(repr=False)  # of every other action
    rank: int  # actions, the observed one among them, whose statistic is at least as large: ties count against rejection
    exhaustive: bool  # whether these are all actions that exist, instead of random ones
    tolerance: float = 0.0  # values closer than this count as equal
    ties: int = 1  # actions, the observed one among them, whose statistic equals the observed one

    @property
    def total(self) -> int:
        """Number of actions, the observed one among them."""
        return len(self.null_distribution) + 1

    @property
    def pvalue(self) -> float:
        """(1 + #{others >= observed}) / (1 + number of others): never 0."""
        return self.rank / self.total

    @property
    def smallest_pvalue(self) -> float:
        """The smallest p-value that these actions could have given, had the labels been the most extreme ones.

        With few relabelings that is more than 1 over their number: where m = n, exchanging the samples gives the same statistic.
        """
        if not self.exhaustive:
            return 1 / self.total
        values = np.append(self.null_distribution, self.statistic)
        close = max(self.tolerance, 1e-9 * float(np.abs(values).max()))
        return float(np.count_nonzero(values >= values.max() - close) / len(values))

    @classmethod
    def of(cls, values: Array, *, tolerance: float, exhaustive: bool, statistic: float | None = None) -> Ranking:
        """Rank the first of exchangeable values among all; ``statistic`` is the same in higher precision, to be reported."""
        if not np.isfinite(values).all() or not np.isfinite(tolerance):  # NaN compares as most extreme: p would be 0
            raise InputError(
                "The test's statistic must be a finite number under every permutation. It is not: values are too large or too "
                "small for double precision. Rescale the columns: divide each by its standard deviation, or by its unit.",
            )
        rank = int(np.count_nonzero(values >= values[0] - tolerance))
        reported = float(values[0]) if statistic is None else statistic
        ties = rank - int(np.count_nonzero(values > values[0] + tolerance))
        return cls(reported, values[1:], rank, exhaustive, tolerance, ties)


def rank(statistic: Statistic[Any], draws: Draws) -> Ranking:
    """Rank the observed statistic among its values under all actions."""
    return Ranking.of(statistic.values(draws), tolerance=statistic.tolerance, exhaustive=draws.exhaustive)


def upper_ranks(values: Array, tolerance: float, among: Array | None = None) -> npt.NDArray[np.intp]:
    """Return for each value how many of ``among`` (or of the values themselves) are at least as large, ties included."""
    ordered = np.sort(values if among is None else among)
    return len(ordered) - np.searchsorted(ordered, values - tolerance, side="left")


def without_rounding(values: Array, rounding: Array | float) -> Array:
    """Return statistics of actions (along the last axis), made equal where they differ by no more than rounding.

    Rows of data that are all equal but for one have the same statistic whoever is called X; what is left of it is rounding, and
    a score relative to its own spread would take that for evidence.

    >>> without_rounding(np.array([[0.0, 1e-18, -1e-18], [0.0, 1.0, 2.0]]), 1e-16).tolist()
    [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]]
    """
    mean = values.mean(axis=-1, keepdims=True)
    return np.where(np.abs(values - mean).max(axis=-1, keepdims=True) <= rounding, mean, values)


def tail_scores(statistics: Array) -> Array:
    """Return -log of the upper tail probability of each value among its row, by a Pearson type III fit.

    The null distribution of a squared MMD is a sum of weighted chi-squares: from nearly normal (narrow kernels) to a single
    chi-square (wide ones). A shifted gamma of the same mean, variance and skewness follows all of them, where a z-score
    over-rewards the skewed. Its tail is taken by the Wilson-Hilferty cube root, which costs a tenth of the incomplete gamma
    function. Moments are taken over all relabelings, the observed one among them: a symmetric function. Rows without
    spread score zero.
    """
    return tail_of(normal_scores(statistics))


def normal_scores(statistics: Array) -> Array:
    """Return the normal deviate that has the upper tail of each value: what :func:`tail_scores` takes the tail of."""
    centred = statistics - statistics.mean(axis=1, keepdims=True)
    largest = np.maximum(centred.max(axis=1, keepdims=True), -centred.min(axis=1, keepdims=True))
    size = np.maximum(statistics.max(axis=1, keepdims=True), -statistics.min(axis=1, keepdims=True))
    flat = largest <= 1e-12 * size
    z = np.divide(centred, np.where(flat, 1.0, largest), out=centred)  # tiny statistics would underflow when cubed
    square = z * z
    spread = np.sqrt(square.mean(axis=1, keepdims=True))
    z /= np.where(spread > 0, spread, 1.0)
    np.multiply(z, z, out=square)
    square *= z
    skewness = np.maximum(square.mean(axis=1, keepdims=True), LEAST_SKEWNESS)
    shape = 4 / skewness**2
    z /= np.sqrt(shape)
    z += 1
    np.maximum(z, 0.0, out=z)  # gamma variable over its mean
    np.cbrt(z, out=z)
    z -= 1
    z += 1 / (9 * shape)
    z *= 3
    z *= np.sqrt(shape)
    if flat.any():
        z[flat[:, 0]] = -np.inf
    return np.asarray(z)


def tail_of(normal: Array) -> Array:
    """Return -log of the upper tail of normal deviates; the largest of some has the largest tail score."""
    tails = special.log_ndtr(-normal)
    return np.asarray(np.negative(tails, out=tails))


def sum_or_largest(apart: Sequence[Array], weights: Sequence[float]) -> Array:
    """Return one statistic from several with common actions: the larger score of their weighted sum and of the largest of them.

    A sum is best where all of them are large, the largest where one is. Each is an array of statistics x actions.
    """
    total = np.sum([weight * values for weight, values in zip(weights, apart, strict=True)], axis=0)
    largest = np.max([normal_scores(values) for values in apart], axis=0)
    return tail_of(np.maximum(normal_scores(total), normal_scores(tail_of(largest))))


SCORE_TIE = 1e-6  # scores closer than this count as equal


@dataclass(frozen=True, eq=False)
class ClassEvidence:
    """What one class of statistics says: complexity-penalised evidence, computed alike under every action."""

    scores: Array  # of each member on the data as they came
    penalty: float  # the class's own null quantile, less the logarithm of its weight
    total: Array  # the best member's score less the penalty, under every action

    @classmethod
    def of(cls, values: Array, *, weight: float = 1.0, quantile: float = 0.9) -> ClassEvidence:
        """Score members (a row each, a column for each action, the observed one first) and subtract the penalty."""
        largest, observed = np.full(values.shape[1], -np.inf), np.empty(len(values))
        for j, row in enumerate(values):  # one by one: scores of all at once would take several times their memory
            (of_member,) = normal_scores(row[None])
            observed[j] = of_member[0]
            np.maximum(largest, of_member, out=largest)
        best, scores = tail_of(largest), tail_of(observed)
        penalty = float(np.quantile(best, quantile)) - float(np.log(weight))
        return cls(scores, penalty, best - penalty)


def rank_classes(classes: Sequence[ClassEvidence], *, exhaustive: bool) -> Ranking:
    """Rank the largest penalised evidence of several classes."""
    totals = np.max([some.total for some in classes], axis=0)
    return Ranking.of(totals, tolerance=SCORE_TIE, exhaustive=exhaustive)
