"""A column's values in one sample, and effect sizes of two: estimates, and intervals from the influence of each row."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Self

import numpy as np
from scipy.special import ndtri

from cpmmd.core.arrays import Array, Rows
from cpmmd.explain.differences import ColumnEffect, Unit

REACH = float(ndtri(0.975))
ALPHA = 0.05
ROUNDING = 1e-12  # of a number: smaller differences may be rounding of sums


def stratum_means(values: Array, stratum: Rows) -> Array:
    """Return the mean of each stratum, 0 of those without values."""
    total, size = np.bincount(stratum, values), np.bincount(stratum).astype(np.float64)
    return np.asarray(np.divide(total, size, out=np.zeros(len(total)), where=size > 0))


@dataclass(frozen=True, eq=False)
class Sample:
    """The values of one sample that are not missing, all of the same weight, and their units, over which variances are summed."""

    values: Array
    unit: Rows

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def independent(self) -> float:
        """Number of rows of equal weight that have as much information, if every row is a unit."""
        return self.size

    def mean(self, values: Array) -> float:
        """Return the mean of numbers, one for each value."""
        return float(values.mean())

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        return self.mean(self.values), math.sqrt(self.sum_of_squares / self.size)

    @property
    def deviations(self) -> Array:
        """The values less their mean."""
        return self.values - self.mean(self.values)

    @property
    def sum_of_squares(self) -> float:
        """The sum of the squared deviations."""
        return float(np.sum(self.deviations**2))

    def less(self, origin: float) -> Self:
        """Return the sample with all values less one number."""
        return replace(self, values=self.values - origin)

    def excess(self, sd: float) -> Array:
        """Return the squared deviations in units of the sample's standard deviation, less their mean, which is 1."""
        return np.asarray((self.deviations / sd) ** 2 - 1.0)

    def variance(self, influence: Array, *more: tuple[Self, Array]) -> float:
        """Return the variance of the mean of numbers with mean zero, one for each value; of the sum of means with ``more``."""
        total = 0.0
        for sample, numbers in ((self, influence), *more):
            sums, units = np.bincount(sample.unit - sample.unit.min(), weights=numbers), len(np.unique(sample.unit))
            total += float(sums @ sums) / sample.size**2 * units / max(units - 1, 1)
        return total

    def effective_size(self, marks: Array) -> float:
        """Return how many independent rows estimate a share as well; at most the number of rows."""
        share = self.mean(marks)
        known, variance = share * (1 - share), self.variance(marks - share)
        # weights add up to 1 except for rounding, so that a share of all rows may be larger
        return min(self.independent, known / variance) if variance > 0 and known > ROUNDING else self.independent

    def shares(self, codes: Rows, count: int) -> Array:
        """Return the share of each class, given the codes of the rows."""
        return np.asarray(np.bincount(codes, minlength=count) / max(len(codes), 1))

    def distribution(self, at: Array) -> Array:
        """Return the distribution function at some values."""
        return np.asarray(np.searchsorted(np.sort(self.values), at, "right") / self.size)


@dataclass(frozen=True, eq=False)
class WeighedSample(Sample):
    """A sample whose rows are weighted to give both samples the same mix of strata."""

    weights: Array  # of each value, adding up to 1
    stratum: Rows  # of each value
    inside: bool  # whether deviations are those from the mean of the stratum

    @property
    def independent(self) -> float:
        return 1 / float(self.weights @ self.weights)

    def mean(self, values: Array) -> float:
        return float(self.weights @ values)

    @property
    def deviations(self) -> Array:
        """The values less their mean; inside strata less that of their stratum, corrected for its degree of freedom."""
        if not self.inside:
            return self.values - self.mean(self.values)
        rows = np.bincount(self.stratum)[self.stratum]
        apart = self.values - stratum_means(self.values, self.stratum)[self.stratum]
        return np.asarray(apart * np.sqrt(rows / np.maximum(rows - 1, 1)))

    @property
    def sum_of_squares(self) -> float:
        # the only row of a stratum has no deviation inside it
        known = float(self.weights[np.bincount(self.stratum)[self.stratum] > 1].sum()) if self.inside else 1.0
        return self.size * self.mean(self.deviations**2) / known if known > 0 else 0.0

    def excess(self, sd: float) -> Array:
        squares = (self.deviations / sd) ** 2
        return np.asarray(squares - self.mean(squares))

    def variance(self, influence: Array, *more: tuple[Self, Array]) -> float:
        """Return the variance of the sum of weighted means, one for each sample, of numbers with mean zero.

        A stratum with two units of every sample estimates the variance of its means. A stratum with a single unit of a sample, as
        a pair is, does not: its sum over all samples is one of as many independent numbers as there are such strata.
        """
        parts = ((self, influence), *more)
        count = max(int(sample.stratum.max(initial=-1)) for sample, _ in parts) + 1
        units, together, inside = [], np.zeros(count), np.zeros(count)
        for sample, numbers in parts:
            stratum, weights = sample.stratum, sample.weights
            together += np.bincount(stratum, weights * numbers, count)
            own = weights * (numbers - stratum_means(numbers, stratum)[stratum])
            _, first, unit = np.unique(sample.unit, return_index=True, return_inverse=True)
            of_units = np.bincount(stratum[first], weights[first] > 0, count)
            squares = np.bincount(stratum[first], np.bincount(unit.ravel(), own) ** 2, count)
            inside += squares * of_units / np.maximum(of_units - 1, 1)
            units.append(of_units)
        fewest = np.min(units, axis=0)
        lone = together[fewest == 1]
        return float(inside[fewest > 1].sum() + lone @ lone * len(lone) / max(len(lone) - 1, 1))

    def shares(self, codes: Rows, count: int) -> Array:
        return np.bincount(codes, self.weights, minlength=count).astype(np.float64)  # without rows, bincount returns integers

    def distribution(self, at: Array) -> Array:
        order = np.argsort(self.values, kind="stable")
        below = np.searchsorted(self.values[order], at, "right")
        return np.concatenate([[0.0], np.cumsum(self.weights[order])])[below]


def _from_origin(effect: Callable[[Sample, Sample], ColumnEffect | None], x: Sample, y: Sample) -> ColumnEffect | None:
    """Return the effect on values less the first of them; None where it is 0 already, so that all deviations are rounding.

    Deviations of 1e-12 of the mean may be rounding, or small differences of large numbers. Nearby numbers have exact differences,
    so that equal ones then have none.
    """
    origin = float(x.values[0])
    return effect(x.less(origin), y.less(origin)) if origin != 0 else None


def mean_effect(x: Sample, y: Sample) -> ColumnEffect | None:
    """Return the difference of means in standard deviations within samples or strata; None where they are 0."""
    mean_x, mean_y, total = x.mean(x.values), y.mean(y.values), x.size + y.size
    within = math.sqrt((x.sum_of_squares + y.sum_of_squares) / total)
    if within <= ROUNDING * max(abs(mean_x), abs(mean_y)):
        return _from_origin(mean_effect, x, y)
    value = (mean_y - mean_x) / within
    influences = []
    for sample, mean, sign in ((x, mean_x, -1.0), (y, mean_y, 1.0)):
        z, squares = (sample.values - mean) / within, (sample.deviations / within) ** 2
        # delta method: a row moves the mean, and by its square the common deviation
        influences.append(sign * z - value / 2 * sample.size / total * (squares - sample.mean(squares)))
    error = math.sqrt(x.variance(influences[0], (y, influences[1])))
    return ColumnEffect(value, value - REACH * error, value + REACH * error, Unit.DEVIATIONS)


def days_effect(x: Sample, y: Sample) -> ColumnEffect:
    """Return the difference of mean dates in days."""
    mean_x, mean_y = x.mean(x.values), y.mean(y.values)
    value, reach = mean_y - mean_x, REACH * math.sqrt(x.variance(mean_x - x.values, (y, y.values - mean_y)))
    return ColumnEffect(value, value - reach, value + reach, Unit.DAYS)


def sd_effect(x: Sample, y: Sample) -> ColumnEffect | None:
    """Return the ratio of standard deviations, its interval on the logarithm; None where one is zero."""
    deviations, influences = [], []
    for sample, sign in ((x, -1.0), (y, 1.0)):
        mean, sd = sample.moments
        if sd <= ROUNDING * abs(mean):
            return _from_origin(sd_effect, x, y)
        deviations.append(sd)
        influences.append(sign * sample.excess(sd) / 2)
    ratio, factor = deviations[1] / deviations[0], math.exp(REACH * math.sqrt(x.variance(influences[0], (y, influences[1]))))
    return ColumnEffect(ratio, ratio / factor, ratio * factor, Unit.RATIO)


def share_effect(x: Sample, y: Sample, what: str) -> ColumnEffect:
    """Return the difference of shares with Newcombe's interval (Wilson's of both samples, combined).

    Values are marks, 1 or 0. Dependent rows of a unit count as their effective number of independent rows. The intervals of pairs
    are combined by the correlation of their shares (Newcombe's method 10).
    """
    (p, p_low, p_high), (q, q_low, q_high) = (_wilson(sample) for sample in (x, y))
    together = _correlation(x, y)
    low = (q - p) - _combined(q - q_low, p_high - p, together)
    high = (q - p) + _combined(q_high - q, p - p_low, together)
    return ColumnEffect(q - p, max(low, -1.0), min(high, 1.0), Unit.SHARE, what)


def _combined(a: float, b: float, correlation: float) -> float:
    return math.hypot(a, b) if correlation == 0 else math.sqrt(max(a * a + b * b - 2 * correlation * a * b, 0.0))


def _correlation(x: Sample, y: Sample) -> float:
    """Return the correlation of the samples' means: 0 where no stratum has a single unit of either."""
    off = [sample.values - sample.mean(sample.values) for sample in (x, y)]
    own = [sample.variance(numbers) for sample, numbers in zip((x, y), off, strict=True)]
    if min(own) <= 0:
        return 0.0
    return min(max((sum(own) - x.variance(-off[0], (y, off[1]))) / (2 * math.sqrt(own[0] * own[1])), -1.0), 1.0)


def _wilson(sample: Sample) -> tuple[float, float, float]:
    share, size = sample.mean(sample.values), sample.effective_size(sample.values)
    centre = (share + REACH**2 / (2 * size)) / (1 + REACH**2 / size)
    reach = REACH / (1 + REACH**2 / size) * math.sqrt(share * (1 - share) / size + REACH**2 / (4 * size**2))
    return share, min(centre - reach, share), max(centre + reach, share)


def distribution_effect(x: Sample, y: Sample) -> ColumnEffect:
    """Return the largest difference of the distribution functions, with the interval of Dvoretzky, Kiefer and Wolfowitz.

    Both functions are within sqrt(ln(2 / .025) / 2 size) of those of the populations, together with 95%.
    """
    distance, at = largest_difference(x, y)
    sizes = [sample.effective_size((sample.values <= at).astype(np.float64)) for sample in (x, y)]
    reach = sum(math.sqrt(math.log(4 / ALPHA) / (2 * size)) for size in sizes)
    return ColumnEffect(distance, max(distance - reach, 0.0), min(distance + reach, 1.0), Unit.SHARE_AT_MOST)


def largest_difference(x: Sample, y: Sample) -> tuple[float, float]:
    """Return the largest difference of two distribution functions, and the value at which it is."""
    at = np.concatenate([np.sort(sample.values) for sample in (x, y)])
    differences = np.abs(x.distribution(at) - y.distribution(at))
    best = int(np.argmax(differences))
    return float(differences[best]), float(at[best])
