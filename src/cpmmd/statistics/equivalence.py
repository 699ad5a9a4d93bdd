"""The largest differences not excluded: of each column's means, and of all columns together by the MMD of one fixed kernel."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy import stats
from scipy.special import ndtr

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import PlainValue
from cpmmd.core.text import sanitize
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MISSING, Preparation
from cpmmd.errors import InputError
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.families import Bandwidth
from cpmmd.kernels.scaled import ScaledKernel

MEAN, ABSENT = "mean", "share missing"


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Pooled rows as features: numbers, marks of missing values, levels of categories."""

    matrix: Array  # rows of X first
    m: int  # rows of X
    columns: tuple[str, ...]  # of each feature the column it came from
    meanings: tuple[str, ...]  # of each feature what its mean says: "mean", "share missing", "share of 'ES'"
    parts: Rows  # of each feature the number of its part: a number, a mark, all levels of a category

    @classmethod
    def of(cls, pool: Pool) -> Coordinates:
        """Return the features of a pool."""
        prepared = Preparation.fit(pool, scale="standard")  # centred, so that squares lose no digits
        for name, kept in prepared.levels.items():
            found = {MISSING if value is None else value for value in pool.categories[name]}
            if pooled := found.difference(kept):
                raise InputError(
                    "Equivalence needs each level by itself. Column {name} has {count} levels, and the {rare} rarest are pooled, "
                    "which hides differences among them. Merge its levels into fewer, or leave the column out.",
                    name=repr(sanitize(name)),
                    count=len(found),
                    rare=len(pooled),
                )
        levels = list(prepared.levels.values())
        single = len(prepared.number_names) + len(prepared.indicators)
        return cls(
            matrix=prepared.transform(pool),
            m=pool.m,
            columns=prepared.feature_columns,
            meanings=(
                *(MEAN for _ in prepared.number_names),
                *(ABSENT for _ in prepared.indicators),
                *(f"share of {sanitize(level)!r}" for kept in levels for level in kept),
            ),
            parts=np.concatenate(
                [np.arange(single), np.repeat(single + np.arange(len(levels)), [len(kept) for kept in levels])]
            ).astype(np.intp),
        )

    @property
    def sides(self) -> tuple[Array, Array]:
        """The rows of X and of Y."""
        return self.matrix[: self.m], self.matrix[self.m :]

    @cached_property
    def variances(self) -> Array:
        """Variance of each feature within the samples, weighted by their rows; exactly 0 where both are constant."""
        x, y = self.sides
        m, n = len(x), len(y)
        within = ((m - 1) * x.var(axis=0, ddof=1) + (n - 1) * y.var(axis=0, ddof=1)) / (m + n - 2)
        constant = (np.ptp(x, axis=0) == 0) & (np.ptp(y, axis=0) == 0)
        return np.where(constant, 0.0, within)

    def standardised(self) -> tuple[Array, int]:
        """Return the rows with each part at total variance 1 within the samples, and the number of parts that vary.

        A part that varies only between the samples has no such unit and keeps that of the pool.
        """
        totals = np.bincount(self.parts, weights=self.variances)
        unit = np.sqrt(np.where(totals > 0, totals, 1.0))
        varies = np.bincount(self.parts, weights=np.ptp(self.matrix, axis=0)) > 0
        return self.matrix / unit[self.parts], max(1, int(np.count_nonzero(varies)))


# Column by column: how far the means may be apart, in standard deviations.


@dataclass(frozen=True)
class ColumnEquivalence(PlainValue):
    """The largest difference of the samples in one column that is not excluded; infinite values are None in its JSON document."""

    document = ("name", "meaning", "difference", "low", "high", "pvalue", "largest")

    name: str  #: the column
    meaning: str  #: what differs: ``"mean"``, ``"share missing"`` or ``"share of 'ES'"``, the level with the largest bound
    difference: float  #: Y less X, in standard deviations within the samples; infinite where both are constant and differ
    #: low, high: its interval: the true value is beyond each end with probability at most alpha, in large samples
    low: float
    high: float
    pvalue: float  #: of the two one-sided tests of the margin

    @property
    def largest(self) -> float:
        """The largest difference that is not excluded, of either sign."""
        return max(abs(self.low), abs(self.high))


def column_differences(coordinates: Coordinates, margin: float, alpha: float) -> tuple[ColumnEquivalence, ...]:
    """Return each column by its feature with the largest bound, the column with the largest bound first."""
    difference, error, freedom = _standardised_differences(coordinates)
    reach = stats.t.ppf(1 - alpha, freedom) * error
    with np.errstate(invalid="ignore", divide="ignore"):
        nearest = np.where(error > 0, (margin - np.abs(difference)) / error, np.where(difference == 0, np.inf, -np.inf))
    pvalues = stats.t.sf(nearest, freedom)
    worst: dict[str, ColumnEquivalence] = {}
    for j, name in enumerate(coordinates.columns):
        low, high = float(difference[j] - reach[j]), float(difference[j] + reach[j])
        found = ColumnEquivalence(name, coordinates.meanings[j], float(difference[j]), low, high, float(pvalues[j]))
        if name not in worst or found.largest > worst[name].largest:
            worst[name] = found
    return tuple(sorted(worst.values(), key=lambda column: -column.largest))


def _standardised_differences(coordinates: Coordinates) -> tuple[Array, Array, Array]:
    """Return each feature's difference of means in standard deviations, its standard error, and the degrees of freedom.

    The error is that of the ratio: the influence of a row is (y - mean)/(s n) - d ((y - mean)^2 - var) / (2 s^2 N), and the same
    with the opposite sign of the first part for rows of X. So the error of the standard deviation counts, for any distribution.
    """
    x, y = coordinates.sides
    total = len(coordinates.matrix)
    variance = coordinates.variances
    unit = np.sqrt(np.where(variance > 0, variance, 1.0))
    apart = y.mean(axis=0) - x.mean(axis=0)
    d = np.where(variance > 0, apart / unit, 0.0)
    parts = []
    for side, sign in ((x, -1.0), (y, 1.0)):
        centred = (side - side.mean(axis=0)) / unit
        influence = sign * centred / len(side) - d * (centred**2 - centred.var(axis=0)) / (2 * total)
        parts.append(len(side) * influence.var(axis=0, ddof=1))
    of_x, of_y = parts
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = (of_x + of_y) ** 2 / (of_x**2 / (len(x) - 1) + of_y**2 / (len(y) - 1))  # Welch and Satterthwaite
    parted = (variance == 0) & (x[0] != y[0])
    d = np.where(parted, np.copysign(np.inf, apart), d)
    return d, np.where(variance > 0, np.sqrt(of_x + of_y), 0.0), np.where(np.isfinite(freedom), freedom, total - 2.0)


MOST_ROWS = 10_000  # of each sample in the statistic: 3e8 kernel values, some seconds
SPECTRUM_ROWS = 300  # of each sample for the noise, whose law depends on the populations, not on the number of rows
DRAWS = 9_999
FEW = 1e-3  # share of the variance of |e|^2 in small eigenvalues, whose sum is drawn as a normal variable
TILE = 2**22  # kernel values at once
STEPS = 60  # bisections: double precision


@dataclass(frozen=True)
class JointEquivalence(PlainValue):
    """The largest difference in all columns together that is not excluded, by the MMD of one fixed kernel."""

    shift: float  #: the shift, in standard deviations, at which two normal samples have the same MMD; infinite beyond any
    #: low, high: its interval: the true value is beyond each end with probability at most alpha, in large samples
    low: float
    high: float
    pvalue: float  #: of the test that the shift is at least the margin
    bandwidth: float  #: of the Gaussian kernel, in standard deviations: the root of the number of columns
    rows: tuple[int, int]  #: rows of X and Y that were compared


def auc_of_shift(shift: float) -> float:
    """Return the AUC of two normal samples that differ by a shift: Phi(shift / sqrt(2))."""
    return float(ndtr(shift / math.sqrt(2)))


@dataclass(frozen=True)
class Yardstick:
    """The MMD between N(0, I) and its shift, Gaussian kernel of bandwidth sqrt(d) in d dimensions.

    MMD^2 = 2 (d / (d + 2))^(d/2) (1 - exp(-shift^2 / (2 (d + 2)))).
    """

    d: int

    @property
    def _most(self) -> float:
        return float(2 * (self.d / (self.d + 2)) ** (self.d / 2))

    def mmd(self, shift: float) -> float:
        """Return the MMD of a shift."""
        return math.sqrt(-self._most * math.expm1(-(shift**2) / (2 * (self.d + 2))))

    def shift(self, mmd: float) -> float:
        """Return the shift of an MMD; infinite where no shift is that far."""
        share = mmd**2 / self._most
        return math.inf if share >= 1 else math.sqrt(-2 * (self.d + 2) * math.log1p(-share))


@dataclass(frozen=True, eq=False)
class Noise:
    """Draws of e, the error of the difference of mean embeddings, Gaussian in the limit: along its widest direction u, and |e|^2.

    |theta u + e|^2 = theta^2 + 2 theta <u, e> + |e|^2. Of all differences with the same MMD, the one along u gives small
    statistics most often, so that a test with this level has it for all others (for larger theta by Anderson's inequality).
    """

    along: Array
    squared: Array

    @classmethod
    def draw(cls, eigenvalues: Array, rng: np.random.Generator) -> Noise:
        """Draw from the spectrum of the covariance of the noise."""
        left = np.cumsum(np.square(eigenvalues)[::-1])[::-1]  # of the squares, from each eigenvalue on
        cut = max(1, int(np.count_nonzero(left > FEW * left[0])))
        first, rest = eigenvalues[:cut], eigenvalues[cut:]
        normal = rng.standard_normal((DRAWS, len(first)))
        squared = np.square(normal) @ first
        tail = rest.sum() + math.sqrt(2 * np.square(rest).sum()) * rng.standard_normal(DRAWS)
        return cls(normal[:, 0] * math.sqrt(first[0]), squared + np.maximum(tail, 0.0))

    def statistics(self, mmd: float) -> Array:
        """Return the squared MMD between samples whose populations are this far apart."""
        return np.asarray(mmd**2 + 2 * mmd * self.along + self.squared)

    def below(self, observed: float, mmd: float) -> float:
        """Return the share of draws that are at most the observed statistic, which is counted, too."""
        return float(1 + np.count_nonzero(self.statistics(mmd) <= observed)) / (DRAWS + 1)

    def above(self, observed: float, mmd: float) -> float:
        """Return the share of draws that are at least the observed statistic."""
        return float(1 + np.count_nonzero(self.statistics(mmd) >= observed)) / (DRAWS + 1)

    def interval(self, observed: float, alpha: float) -> tuple[float, float]:
        """Return the smallest and the largest MMD that the observed statistic does not exclude."""
        far = math.sqrt(observed) + math.sqrt(float(self.squared.max()))  # beyond it every draw is larger than observed
        low = _cross(lambda mmd: self.above(observed, mmd) > alpha, far)
        return low, _cross(lambda mmd: self.below(observed, mmd) <= alpha, far)


def _cross(passed: Callable[[float], bool], far: float) -> float:
    """Return where a condition begins to hold between 0 and ``far``."""
    if passed(0.0):
        return 0.0
    low, high = 0.0, far
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if passed(middle) else (middle, high)
    return high


def joint_difference(
    coordinates: Coordinates, margin: float, alpha: float, rng: np.random.Generator
) -> tuple[JointEquivalence, float, Array]:
    """Return the joint difference, the squared MMD that was observed, and its draws at the margin."""
    matrix, d = coordinates.standardised()
    kernel, yardstick = ScaledKernel(Bandwidth(), math.sqrt(d)), Yardstick(d)
    drawing, noising = rng.spawn(2)
    sides = [_some(rows, MOST_ROWS, drawing) for rows in np.split(matrix, [coordinates.m])]
    of_x, of_y, between = _sum(kernel, sides[0]), _sum(kernel, sides[1]), _sum(kernel, *sides)
    m, n = map(len, sides)
    observed = max(of_x / m**2 + of_y / n**2 - 2 * between / (m * n), 0.0)  # rounding may take it below
    unbiased = (of_x - m) / (m * (m - 1)) + (of_y - n) / (n * (n - 1)) - 2 * between / (m * n)
    noise = Noise.draw(noise_spectrum(kernel, sides, drawing), noising)
    low, high = noise.interval(observed, alpha)
    mmd = yardstick.mmd(margin)
    found = JointEquivalence(
        shift=yardstick.shift(math.sqrt(max(unbiased, 0.0))),
        low=yardstick.shift(low),
        high=yardstick.shift(high),
        pvalue=noise.below(observed, mmd),
        bandwidth=math.sqrt(d),
        rows=(m, n),
    )
    return found, observed, noise.statistics(mmd)


def _some(rows: Array, most: int, rng: np.random.Generator) -> Array:
    if len(rows) <= most:
        return rows
    chosen: Rows = np.sort(rng.choice(len(rows), most, replace=False))
    return rows[chosen]


def _sum(kernel: Kernel, rows: Array, others: Array | None = None) -> float:
    """Return the sum of the kernel over all pairs, a tile at a time; of rows with themselves, each pair is computed once."""
    total, columns = 0.0, rows if others is None else others
    step = max(1, TILE // len(columns))
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        if others is not None:
            total += float(kernel.gram(some, others).sum())
        else:
            tile = kernel.gram(some, rows[start:])
            total += 2 * float(tile.sum()) - float(tile[:, : len(some)].sum())
    return total


def noise_spectrum(kernel: Kernel, sides: list[Array], rng: np.random.Generator) -> Array:
    """Return the eigenvalues of Cov_x/m + Cov_y/n, covariances of the kernel's features, the largest first.

    They are those of the kernel matrix centred within each sample, its rows and columns weighted by 1/sqrt(size (rows - 1)).
    """
    some = [_some(rows, SPECTRUM_ROWS, rng) for rows in sides]
    matrix, cut = kernel.gram(np.vstack(some)), len(some[0])
    weight = np.empty(len(matrix))
    for side, rows in ((slice(cut), sides[0]), (slice(cut, None), sides[1])):
        matrix[side] -= matrix[side].mean(axis=0)
        matrix[:, side] -= matrix[:, side].mean(axis=1, keepdims=True)
        weight[side] = 1 / math.sqrt(len(rows) * (len(weight[side]) - 1))
    eigenvalues = np.linalg.eigvalsh(matrix * weight[:, None] * weight)[::-1]
    return np.asarray(np.maximum(eigenvalues, 0.0))
