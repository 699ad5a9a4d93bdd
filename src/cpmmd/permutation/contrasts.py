"""Contrasts: the statistic of a labeling where units differ in size or stand in strata.

A labeling w of units weighs each row of unit u in stratum s by

    v_u = p_s (w_u / m_s - (1 - w_u) / n_s),

m_s and n_s being the rows that w calls X and Y in the stratum. Weights add up to zero in each stratum, so that what strata
differ in cancels, and T(w) = sum over u != u' of v_u v_u' S_uu' with S the kernel's sums over units after each stratum's mean
is taken off: the squared MMD between the samples, stratum by stratum, without pairs of rows of one unit. Those are dependent,
never change sides apart, and have no place in it. The shares p_s do not look at labels: proportional to the precision of a
stratum's difference.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cpmmd.core.arrays import Array, Floating, Rows
from cpmmd.permutation.dense import quadratic_forms
from cpmmd.permutation.labels import CHUNK_BYTES, Relabelings


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
        Units of X, which come first.
    """

    counts: Rows
    strata: Rows
    first: int

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
        of_x = self._per_stratum((np.arange(len(self.counts)) < self.first).astype(np.float64))
        units = self._per_stratum(np.ones(len(self.counts)))
        precision = self.rows * of_x * (units - of_x) / units**2
        return np.asarray(precision / precision.sum())

    @cached_property
    def steady(self) -> bool:
        """Whether every labeling calls equally many rows X in each stratum."""
        largest = np.maximum.reduceat(self.counts[self._order], self._starts)
        return bool((largest[self.strata] == self.counts).all())

    def weights(self, labels: Floating) -> Floating:
        """Return the weights of the rows of each unit (columns) under each labeling (rows of ones and zeros)."""
        seen = labels[:1] if self.steady else labels
        of_x = self._per_stratum(seen * self.counts.astype(labels.dtype), axis=1)
        below = (self.shares / (self.rows - of_x)).astype(labels.dtype)
        above = (self.shares / of_x).astype(labels.dtype) + below
        return np.asarray(labels * above[:, self.strata] - below[:, self.strata])

    def scale(self, labels: Relabelings) -> float:
        """Return the largest product of two weights, for the tolerance of ties."""
        return float(np.square(self.weights(next(labels.blocks())[:1])).max())

    def centre_features(self, sums: Array) -> Array:
        """Return sums of features over units with the mean of each stratum taken off."""
        means = self._per_stratum(sums) / self.rows[:, None]
        return np.asarray(sums - self.counts[:, None] * means[self.strata])

    def centre_rows(self, values: Array) -> Array:
        """Return values of all rows, unit after unit, with the mean of each stratum taken off."""
        starts = np.concatenate([[0], np.cumsum(self.counts)[:-1]])
        means = self._per_stratum(np.add.reduceat(values, starts, axis=0)) / self.rows[:, None]
        return np.asarray(values - np.repeat(means[self.strata], self.counts, axis=0))

    def centre(self, sums: Floating) -> Floating:
        """Return the kernel's sums over pairs of units with each stratum's mean taken off, and nothing on the diagonal."""
        counts = self.counts.astype(sums.dtype)
        rows = self.rows.astype(sums.dtype)
        half = sums - counts[:, None] * (self._per_stratum(sums) / rows[:, None])[self.strata]
        centred = half - (self._per_stratum(half, axis=1) / rows)[:, self.strata] * counts
        np.fill_diagonal(centred, 0.0)
        return np.asarray(centred)

    def statistics(self, centred: Floating, labels: Relabelings, nbytes: int = CHUNK_BYTES) -> Array:
        """Return T of every labeling from centred sums."""
        return np.concatenate([quadratic_forms(centred, self.weights(block)) for block in labels.blocks(centred.dtype, nbytes)])


def sums_over_units(matrix: Floating, starts: Rows) -> Floating:
    """Return the sums of a square matrix over pairs of units of consecutive rows."""
    if len(starts) == len(matrix):
        return matrix
    return np.asarray(np.add.reduceat(np.add.reduceat(matrix, starts, axis=0), starts, axis=1))
