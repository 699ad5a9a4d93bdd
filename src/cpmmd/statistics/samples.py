"""A column's values in one sample: all of one weight, or weighed so that both samples have one mix of strata."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

import numpy as np

from cpmmd.core.arrays import Array, Rows

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
