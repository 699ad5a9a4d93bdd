"""A column's values in one sample: all of one weight, or weighed so that both samples have one mix of strata."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import Self

import numpy as np

from cpmmd.core.arrays import Array, Rows

MOST, LARGE = 1e120, 2.0**600  # of values whose squares are summed as they are, and the unit of larger ones
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
        if self.is_large:
            mean, sd = self.times(1 / LARGE).moments
            return mean * LARGE, sd * LARGE
        return self.mean(self.values), math.sqrt(self.sum_of_squares / self.size)

    @property
    def deviations(self) -> Array:
        """The values less their mean."""
        return self.values - self.mean(self.values)

    @property
    def sum_of_squares(self) -> float:
        """The sum of the squared deviations."""
        return float(np.sum(self.deviations**2))

    @property
    def is_large(self) -> bool:
        """Whether squares of the values may overflow."""
        return bool(np.abs(self.values).max(initial=0.0) > MOST)

    def times(self, factor: float) -> Self:
        """Return the sample with all values times a number."""
        return replace(self, values=self.values * factor)

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
