"""A column's values in one sample, and how large a difference of two is: an estimate, and an interval from their influence."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np
from scipy.special import ndtri

from cpmmd.core.arrays import Array, Rows
from cpmmd.explain.differences import ColumnEffect, Unit

REACH = float(ndtri(0.975))
ALPHA = 0.05
ROUNDING = 1e-12


def stratum_means(values: Array, stratum: Rows) -> Array:
    """Return the mean of each stratum, 0 of those without values."""
    total, size = np.bincount(stratum, values), np.bincount(stratum).astype(np.float64)
    return np.asarray(np.divide(total, size, out=np.zeros(len(total)), where=size > 0))


@dataclass(frozen=True, eq=False)
class Sample:
    """The values of one sample that are there, all of one weight, and their units: variances are those of sums over units."""

    values: Array
    unit: Rows

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def independent(self) -> float:
        """How many rows of one weight would know as much, if no unit had several."""
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

    def excess(self, spread: float) -> Array:
        """Return the squared deviations in units of the sample's own spread, less their mean, which is 1."""
        return np.asarray((self.deviations / spread) ** 2 - 1.0)

    def variance(self, influence: Array, *more: tuple[Self, Array]) -> float:
        """Return the variance of the mean of numbers with mean zero, one for each value; of the sum of means with ``more``."""
        total = 0.0
        for one, numbers in ((self, influence), *more):
            sums, units = np.bincount(one.unit - one.unit.min(), weights=numbers), len(np.unique(one.unit))
            total += float(sums @ sums) / one.size**2 * units / max(units - 1, 1)
        return total

    def effective_size(self, marks: Array) -> float:
        """Return how many independent rows would know a share as well; no more than there are."""
        share = self.mean(marks)
        known, variance = share * (1 - share), self.variance(marks - share)
        # weights add up to 1 but for rounding, so that a share of all rows may be above it
        return min(self.independent, known / variance) if variance > 0 and known > ROUNDING else self.independent

    def shares(self, codes: Rows, count: int) -> Array:
        """Return the share of each class among the rows, which have codes."""
        return np.asarray(np.bincount(codes, minlength=count) / max(len(codes), 1))

    def distribution(self, at: Array) -> Array:
        """Return the distribution function at some values."""
        return np.asarray(np.searchsorted(np.sort(self.values), at, "right") / self.size)


@dataclass(frozen=True, eq=False)
class WeighedSample(Sample):
    """A sample whose rows have weights, which give both samples the same mix of strata."""

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
        """The values less their mean; or that of their stratum, larger by what the mean takes from their degrees of freedom."""
        if not self.inside:
            return self.values - self.mean(self.values)
        rows = np.bincount(self.stratum)[self.stratum]
        apart = self.values - stratum_means(self.values, self.stratum)[self.stratum]
        return np.asarray(apart * np.sqrt(rows / np.maximum(rows - 1, 1)))

    @property
    def sum_of_squares(self) -> float:
        # a stratum's only row has no deviation inside it
        known = float(self.weights[np.bincount(self.stratum)[self.stratum] > 1].sum()) if self.inside else 1.0
        return self.size * self.mean(self.deviations**2) / known if known > 0 else 0.0

    def excess(self, spread: float) -> Array:
        squares = (self.deviations / spread) ** 2
        return np.asarray(squares - self.mean(squares))

    def variance(self, influence: Array, *more: tuple[Self, Array]) -> float:
        """Return the variance of the sum of weighted means, one for each sample, of numbers with mean zero.

        A stratum with two units of every sample says itself how much its means vary. One with a single unit, as a pair is, does
        not: what all samples together have there is one of as many independent numbers as there are such strata.
        """
        parts = ((self, influence), *more)
        count = max(int(one.stratum.max(initial=-1)) for one, _ in parts) + 1
        units, together, inside = [], np.zeros(count), np.zeros(count)
        for one, numbers in parts:
            together += np.bincount(one.stratum, one.weights * numbers, count)
            own = one.weights * (numbers - stratum_means(numbers, one.stratum)[one.stratum])
            _, first, unit = np.unique(one.unit, return_index=True, return_inverse=True)
            of_units = np.bincount(one.stratum[first], one.weights[first] > 0, count)
            squares = np.bincount(one.stratum[first], np.bincount(unit.ravel(), own) ** 2, count)
            inside += squares * of_units / np.maximum(of_units - 1, 1)
            units.append(of_units)
        fewest = np.min(units, axis=0)
        lone = together[fewest == 1]
        return float(inside[fewest > 1].sum() + lone @ lone * len(lone) / max(len(lone) - 1, 1))

    def shares(self, codes: Rows, count: int) -> Array:
        return np.bincount(codes, self.weights, minlength=count).astype(np.float64)  # counts of nothing are whole

    def distribution(self, at: Array) -> Array:
        order = np.argsort(self.values, kind="stable")
        below = np.searchsorted(self.values[order], at, "right")
        return np.concatenate([[0.0], np.cumsum(self.weights[order])])[below]


def mean_effect(x: Sample, y: Sample) -> ColumnEffect | None:
    """Return the difference of means in standard deviations within samples (and strata); None where there is no spread."""
    mean_x, mean_y, total = x.mean(x.values), y.mean(y.values), x.size + y.size
    within = math.sqrt((x.sum_of_squares + y.sum_of_squares) / total)
    if within <= 1e-12 * max(abs(mean_x), abs(mean_y)) or within == 0:
        return None
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
    spreads, influences = [], []
    for sample, sign in ((x, -1.0), (y, 1.0)):
        mean, spread = sample.moments
        if spread <= 1e-12 * abs(mean) or spread == 0:
            return None
        spreads.append(spread)
        influences.append(sign * sample.excess(spread) / 2)
    ratio, factor = spreads[1] / spreads[0], math.exp(REACH * math.sqrt(x.variance(influences[0], (y, influences[1]))))
    return ColumnEffect(ratio, ratio / factor, ratio * factor, Unit.RATIO)


def share_effect(x: Sample, y: Sample, what: str) -> ColumnEffect:
    """Return the difference of shares with Newcombe's interval (Wilson's of both samples, combined).

    Values are marks, 1 or 0. Rows of a unit that hang together count as the number of independent rows that know as much. The
    intervals of pairs are combined by how much their shares go together (Newcombe's method 10).
    """
    (p, p_low, p_high), (q, q_low, q_high) = (_wilson(one) for one in (x, y))
    together = _correlation(x, y)
    low = (q - p) - _combined(q - q_low, p_high - p, together)
    high = (q - p) + _combined(q_high - q, p - p_low, together)
    return ColumnEffect(q - p, max(low, -1.0), min(high, 1.0), Unit.SHARE, what)


def _combined(a: float, b: float, correlation: float) -> float:
    return math.hypot(a, b) if correlation == 0 else math.sqrt(max(a * a + b * b - 2 * correlation * a * b, 0.0))


def _correlation(x: Sample, y: Sample) -> float:
    """Return how much the samples' means go together: 0 where no stratum ties single units of them."""
    off = [one.values - one.mean(one.values) for one in (x, y)]
    own = [one.variance(numbers) for one, numbers in zip((x, y), off, strict=True)]
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
    distance, at = largest_gap(x, y)
    sizes = [one.effective_size((one.values <= at).astype(np.float64)) for one in (x, y)]
    reach = sum(math.sqrt(math.log(4 / ALPHA) / (2 * size)) for size in sizes)
    return ColumnEffect(distance, max(distance - reach, 0.0), min(distance + reach, 1.0), Unit.SHARE_AT_MOST)


def largest_gap(x: Sample, y: Sample) -> tuple[float, float]:
    """Return the largest difference of two distribution functions, and the value at which it is."""
    at = np.concatenate([np.sort(one.values) for one in (x, y)])
    gaps = np.abs(x.distribution(at) - y.distribution(at))
    best = int(np.argmax(gaps))
    return float(gaps[best]), float(at[best])
