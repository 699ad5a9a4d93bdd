"""Contrasts: the statistic of a labeling where units differ in size or stand in strata.

A labeling w of units weighs each row of unit u in stratum s by

    v_u = p_s (w_u / m_s - (1 - w_u) / n_s),

m_s and n_s being the rows that w calls X and Y in the stratum. Weights add up to zero in each stratum, so that what strata
differ in cancels, and T(w) = sum over u != u' of v_u v_u' S_uu' with S the kernel's sums over units after each stratum's mean
is taken off: the squared MMD between the samples, stratum by stratum, without pairs of rows of one unit. Those are dependent,
never change sides apart, and have no place in it. Where every stratum is a pair, a labeling is a sign for each, and pairs of
rows of one pair are left out as well. The shares p_s do not look at labels: proportional to the precision of a
stratum's difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array, Floating, Labels, Rows
from cpmmd.errors import InputError
from cpmmd.kernels.scaled import cut
from cpmmd.permutation.dense import quadratic_forms
from cpmmd.permutation.labels import CHUNK_BYTES, Relabelings
from cpmmd.permutation.mmd import CENTRED_ROWS

FEW_ROWS = 6  # of a unit, on average: below, a call for each costs more than it saves


@dataclass(frozen=True, eq=False)
class Contrast:
    """How the rows of units are weighed under a labeling.

    Attributes
    ----------
    counts
        Rows of each unit.
    strata
        Stratum of each unit, from 0; every stratum has units of both samples.
    first
        Number of units of X.
    number
        Of the unit at each place, where those of X are numbered first; None where they stand in that order.
    """

    counts: Rows
    strata: Rows
    first: int
    number: Rows | None = None

    def __post_init__(self) -> None:
        of_x, of_y = np.unique(self.strata[self.of_x]), np.unique(self.strata[~self.of_x])
        if not np.array_equal(of_x, of_y):  # weights would be 0/0, and every p-value without meaning
            raise InputError("Every stratum must have units of both samples. Leave out those that have not.")

    @cached_property
    def of_x(self) -> Labels:
        """Which units are of X."""
        return np.asarray((np.arange(len(self.counts)) if self.number is None else self.number) < self.first)

    def at(self, number: Rows) -> Contrast:
        """Return the contrast of units that stand in another order: at each place the one of this number."""
        return Contrast(self.counts[number], self.strata[number], self.first, number)

    @cached_property
    def _order(self) -> Rows:
        return np.argsort(self.strata, kind="stable")

    @cached_property
    def _starts(self) -> Rows:
        ordered = self.strata[self._order]
        return np.flatnonzero(np.diff(ordered, prepend=-1))

    def _per_stratum(self, values: Floating, axis: int = 0) -> Floating:
        """Return the sums over the units of each stratum."""
        return np.asarray(np.add.reduceat(np.take(values, self._order, axis=axis), self._starts, axis=axis))

    @cached_property
    def rows(self) -> Array:
        """Rows of each stratum."""
        return np.asarray(self._per_stratum(self.counts.astype(np.float64)))

    @cached_property
    def shares(self) -> Array:
        """What each stratum's difference is weighed by: its precision, were all units of one size."""
        of_x = self._per_stratum(self.of_x.astype(np.float64))
        units = self._per_stratum(np.ones(len(self.counts)))
        precision = self.rows * of_x * (units - of_x) / units**2
        return np.asarray(precision / precision.sum())

    @cached_property
    def steady(self) -> bool:
        """Whether every labeling calls equally many rows X in each stratum."""
        largest = np.maximum.reduceat(self.counts[self._order], self._starts)
        return bool((largest[self.strata] == self.counts).all())

    @cached_property
    def paired(self) -> bool:
        """Whether every stratum has one unit of each sample: labelings are signs then."""
        return 2 * len(self._starts) == len(self.counts) == 2 * self.first and bool((np.diff(self._starts) == 2).all())

    def signs(self, labels: Floating) -> Floating:
        """Return 1 for each pair whose first unit, as they stand, is called X, and -1 for the others."""
        return np.asarray(2 * labels[:, self._order[::2]] - 1)

    @property
    def _pair_weights(self) -> Array:
        """What the sums over the first and the second unit of each pair are multiplied by."""
        return np.asarray(self.shares / self.counts[self._order].reshape(-1, 2).T)

    def differences(self, sums: Floating) -> Floating:
        """Return the difference of each pair's means from sums over units, in its share of the whole."""
        scale = self._pair_weights[:, :, None]
        return np.asarray(scale[0] * sums[self._order[::2]] - scale[1] * sums[self._order[1::2]])

    def _terms(self, labels: Floating) -> tuple[Floating, Floating]:
        """Return a and b with v = a w - b for each unit (columns) under each labeling, or for all of them in one row."""
        seen = labels[:1] if self.steady else labels
        of_x = self._per_stratum(seen * self.counts.astype(labels.dtype), axis=1)
        below = (self.shares / (self.rows - of_x)).astype(labels.dtype)
        above = (self.shares / of_x).astype(labels.dtype) + below
        return above[:, self.strata], below[:, self.strata]

    def weights(self, labels: Floating) -> Floating:
        """Return the weights of the rows of each unit (columns) under each labeling (rows of ones and zeros)."""
        above, below = self._terms(labels)
        return np.asarray(labels * above - below)

    def scale(self, labels: Relabelings) -> float:
        """Return the largest product of two weights, which turns the size of sums over units into that of the statistic."""
        weights = self._pair_weights if self.paired else self.weights(next(labels.blocks())[:1])
        return float(np.square(weights).max())

    def centred_scale(self, labels: Relabelings) -> float:
        """Return the same for centred sums: those of pairs are differences, which have their weights already."""
        return 1.0 if self.paired else self.scale(labels)

    def centre_features(self, sums: Array) -> Array:
        """Return sums of features over units with the mean of each stratum taken off."""
        means = self._per_stratum(sums) / self.rows[:, None]
        return np.asarray(sums - self.counts[:, None] * means[self.strata])

    def centre_rows(self, values: Array) -> Array:
        """Return values of all rows, unit after unit, with the mean of each stratum taken off."""
        starts = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        means = self._per_stratum(sum_rows(values, starts)) / self.rows[:, None]
        return np.asarray(values - np.repeat(means[self.strata], self.counts, axis=0))

    def centre(self, sums: Floating) -> Centred:
        """Return the kernel's sums over pairs of units with each stratum's mean taken off; they are overwritten.

        With M_sv the sums of unit v with stratum s over its rows, and G those of M: S_uv - c_u M_su,v - c_v M_sv,u + c_u c_v
        G_su,sv.
        """
        if self.paired:
            between = self.differences(self.differences(sums).T.astype(sums.dtype)).astype(sums.dtype)
            np.fill_diagonal(between, 0.0)
            return Centred(self, between, np.zeros(len(between)))
        counts = self.counts.astype(sums.dtype)
        rows = self.rows.astype(sums.dtype)
        means = self._per_stratum(sums) / rows[:, None]
        grand = self._per_stratum(means, axis=1) / rows
        means -= (grand / 2)[:, self.strata] * counts
        for part in cut(len(sums), CENTRED_ROWS):
            sums[part] -= means[self.strata[part]] * counts[part, None]
            sums[:, part] -= (means[self.strata[part]] * counts[part, None]).T
        within = sums.diagonal().astype(np.float64)
        np.fill_diagonal(sums, 0.0)
        return Centred(self, sums, within)


@dataclass(frozen=True, eq=False)
class Centred:
    """A kernel's sums over pairs of units, centred in strata: between units, and apart from them within each.

    For pairs, its sums over their differences.
    """

    contrast: Contrast
    between: Floating
    within: Array

    def statistics(self, labels: Relabelings, nbytes: int = CHUNK_BYTES) -> Array:
        """Return T of every labeling."""
        return np.concatenate([self._forms(block) for block in labels.blocks(self.between.dtype, nbytes)])

    def _forms(self, block: Floating) -> Array:
        """Return v' S v for v = a w - b.

        Where a and b are those of every labeling, S b is zero but for the diagonal that was taken off, and what is left of b is a
        sum over units: labels meet the matrix as they are.
        """
        if self.contrast.paired:
            return quadratic_forms(self.between, self.contrast.signs(block))
        if not self.contrast.steady:
            return quadratic_forms(self.between, self.contrast.weights(block))
        above, below = (part[0].astype(np.float64) for part in self.contrast._terms(block))
        linear = block @ (2 * above * below * self.within).astype(block.dtype) - np.sum(below**2 * self.within)
        block *= above.astype(block.dtype)
        return np.asarray(quadratic_forms(self.between, block) + linear)


def sums_over_units(matrix: Floating, starts: Rows) -> Floating:
    """Return the sums of a square matrix over pairs of units of consecutive rows."""
    if len(starts) == len(matrix):
        return matrix
    return np.asarray(np.add.reduceat(sum_rows(matrix, starts, matrix.dtype), starts, axis=1))


def sum_rows(values: Floating, starts: Rows, dtype: Any = np.float64) -> Floating:
    """Return the sums of consecutive rows that begin at ``starts``; many a time faster than reduceat where those are long."""
    if FEW_ROWS * len(starts) > len(values):
        return np.asarray(np.add.reduceat(values, starts, axis=0, dtype=dtype))
    total = np.empty((len(starts), values.shape[1]), dtype)
    for one, start, stop in zip(total, starts, (*starts[1:], len(values)), strict=True):
        np.sum(values[start:stop], axis=0, dtype=dtype, out=one)
    return total
