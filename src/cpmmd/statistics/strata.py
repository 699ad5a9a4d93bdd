"""Which rows are compared with which: all of them as one stratum, or those inside the strata and pairs of a design.

The mean of each function of the rows in its stratum is subtracted before sums are taken over units. With m_s and n_s the rows
that a labeling calls X and Y among the N_s of a stratum, the sum over X is then

    sum over s of (m_s n_s / N_s) (mean of X in s - mean of Y in s),

the strata's differences weighted by their precision, as in the test: one product for all labelings and strata.

A single stratum has plain forms of its own, which are equal in exact arithmetic but not in the last digit.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.data.design import PAIR
from cpmmd.data.pool import Pool
from cpmmd.draws.labels import Relabelings
from cpmmd.draws.layout import Layout
from cpmmd.statistics.mmd import witness
from cpmmd.statistics.samples import ROUNDING, Sample, WeighedSample, stratum_means

ALL = slice(None)
FEWEST = 5  # rows of a level that counts on its own: with fewer, it dominates a chi-square
KNOWN = 4  # precisions that are kept: of all rows, and of those with a value in some columns
FEW = 8  # rows of a stratum, on average: with fewer, ranks inside strata are little more than signs


def ranks_inside(values: Array, stratum: Rows) -> Array:
    """Return the ranks of values among those of their stratum, between 0 and 1, those of equal values their mean."""
    order = np.lexsort([values, stratum])
    ordered, own = values[order], stratum[order]
    starts = np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]) | (own[1:] != own[:-1])]))
    ends = np.append(starts[1:], len(values))
    sizes = np.bincount(stratum)
    before = (np.cumsum(sizes) - sizes)[own[starts]]  # rows of the strata before
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(((starts + ends) / 2 - before) / sizes[own[starts]], ends - starts)
    return ranks


Statistic = Callable[[Array], Array]  # from differences of means, a permutation a row, to a number each
Differences = Callable[[Array, Array, Relabelings], Array]  # from sums over X, sums over all, and the labelings


def mean_differences(of_x: Array, total: Array, _labels: Relabelings) -> Array:
    """Return the means of X less those of Y, times the root of m n / (m + n); zero where a side has no rows that count.

    The first column of ``of_x`` and ``total`` counts the rows, the others are sums.
    """
    m = of_x[:1, :1] if (of_x[:, 0] == of_x[0, 0]).all() else of_x[:, :1]  # usually the same under all labelings
    n = total[0] - m
    both = (m > 0) & (n > 0)
    scale = np.where(both, np.sqrt(total[0] / np.where(both, m * n, 1.0)), 0.0)
    apart = of_x[:, 1:] - m * (total[1:] / total[0])  # exactly 0 of what all rows have
    apart *= scale
    return np.asarray(apart)


@dataclass(frozen=True, eq=False)
class Features:
    """Functions of the rows with one denominator, and statistics of their differences of means."""

    base: Array  # rows that count, summed over units: those with a value, or all of them
    sums: Array  # the functions, summed over units: a unit a row
    counts: Array  # more of them, whose sums are whole numbers
    statistics: dict[str, Statistic]  # each by what it detects: a Change, or ``"distribution"``, ``"levels"``, ``"level"``
    differences: Differences = mean_differences

    @property
    def width(self) -> int:
        """How many sums there are of a unit."""
        return int(1 + self.sums.shape[1] + self.counts.shape[1])


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Sums over units of values that are given row by row."""

    unit: Rows  # the unit of each row
    count: int  # number of units

    def of(self, values: Array | None = None, rows: Rows | slice = ALL) -> Array:
        """Return the sums of values (ones when None), which are given for ``rows``."""
        return np.bincount(self.unit[rows], weights=values, minlength=self.count).astype(np.float64)

    def counts(self, codes: Rows, classes: int, rows: Rows | slice = ALL) -> Array:
        """Return how many rows of each unit have each code."""
        counted = np.bincount(self.unit[rows] * classes + codes, minlength=self.count * classes)
        return counted.reshape(self.count, classes).astype(np.float64)

    def features(
        self, base: Array, statistics: dict[str, Statistic], sums: Array | None = None, counts: Array | None = None
    ) -> Features:
        """Return sums as features of units, those that are whole numbers apart."""
        none = np.empty((len(base), 0))
        return Features(base, none if sums is None else sums, none if counts is None else counts, statistics)

    def level_variances(self, counts: Array) -> Array:
        """Return the variances of the levels' marks."""
        shares = counts.sum(axis=0) / counts.sum()
        return np.asarray(shares * (1 - shares))


@dataclass(frozen=True, eq=False)
class CellSums(UnitSums):
    """Sums over the rows of one stratum in one permuted unit: several cells a unit where it holds several pairs."""

    # owner, stratum, labels: the unit of each cell, ascending, its stratum, and whether it is of X
    owner: Rows
    stratum: Rows
    labels: Labels
    lone: Labels  # whether each stratum has one unit of either sample in the design, so that labelings can only swap them
    # precision under every labeling, by labelings and the rows that count; labelings are held, so that no others get their id
    _known: dict[tuple[int, bytes], tuple[Relabelings, Array]] = field(default_factory=dict)

    @cached_property
    def _order(self) -> Rows:
        return np.argsort(self.stratum, kind="stable")

    def _per_stratum(self, values: Array) -> Array:
        return _sums_of_runs(values[self._order], self.stratum[self._order])

    def features(
        self, base: Array, statistics: dict[str, Statistic], sums: Array | None = None, counts: Array | None = None
    ) -> Features:
        """Return sums over cells as features of units, the mean of each stratum taken off, which leaves no whole numbers."""
        sums = np.column_stack([some for some in (sums, counts) if some is not None])
        means = self._per_stratum(sums) / np.maximum(self._per_stratum(base), 1)[:, None]
        off = base[:, None] * means[self.stratum]
        centred = sums - off
        centred[np.abs(centred) <= ROUNDING * np.abs(off)] = 0.0  # rounding must not change constants

        def differences(of_x: Array, _total: Array, labels: Relabelings) -> Array:
            """Return the weighted differences in units of their standard error; zero where no stratum has both samples."""
            total_precision = self._total_precision(base, labels)
            both = total_precision > 0
            return np.asarray(np.where(both[:, None], of_x[:, 1:] / np.sqrt(np.where(both, total_precision, 1.0))[:, None], 0.0))

        own, none = _sums_of_runs(centred, self.owner), np.empty((int(self.owner[-1]) + 1, 0))
        return Features(_sums_of_runs(base, self.owner), own, none, statistics, differences)

    def _total_precision(self, base: Array, labels: Relabelings) -> Array:
        """Return the precision under every labeling, the same for all columns of which the same rows count."""
        key = id(labels), base.tobytes()
        if key not in self._known:
            if len(self._known) >= KNOWN:
                self._known.clear()
            precision = self._precision(base)
            self._known[key] = labels, np.concatenate([precision(block) for block in labels.blocks()])
        return self._known[key][1]

    def _precision(self, base: Array) -> Statistic:
        """Return a function from labelings to the sum over strata of m n / (m + n), for rows that count ``base``.

        A stratum whose sides are swapped contributes the same under every labeling.
        """
        rows, of_x = self._per_stratum(base), self._per_stratum(base * self.labels)
        fixed = float(np.sum((of_x * (rows - of_x))[self.lone] / np.maximum(rows[self.lone], 1)))
        chosen = self._order[~self.lone[self.stratum[self._order]]]
        if not len(chosen):
            return lambda labels: np.full(len(labels), fixed)
        unit, own, whole = self.owner[chosen], base[chosen], rows[~self.lone]
        starts = np.flatnonzero(np.diff(self.stratum[chosen], prepend=-1))

        def precision(labels: Array) -> Array:
            m = np.add.reduceat(labels[:, unit] * own, starts, axis=1)
            return np.asarray(fixed + (m * (whole - m) / np.maximum(whole, 1)).sum(axis=1))

        return precision

    def level_variances(self, counts: Array) -> Array:
        inside = self._per_stratum(counts)
        return np.asarray((inside * (1 - inside / inside.sum(axis=1, keepdims=True))).sum(axis=0) / counts.sum())


def _sums_of_runs(values: Array, ascending: Rows) -> Array:
    return np.asarray(np.add.reduceat(values, np.flatnonzero(np.diff(ascending, prepend=-1)), axis=0))


@dataclass(frozen=True, eq=False)
class Strata:
    """Strata or pairs: rows are compared inside them, and weighted to give both samples the same mix of strata."""

    of_row: Rows  # stratum of each row, from 0; a pair is one
    unit: Rows  # unit of each row; rows of a unit may be dependent
    labels: Labels  # true for rows of X, as observed
    paired: bool = False  # whether strata are pairs
    clustered: bool = False  # whether the design has units of several rows

    @staticmethod
    def of(pool: Pool, rows: Rows, units: Layout | None = None) -> Strata:
        """Return the strata of some rows of a pool; ``units`` are the permuted units, if they consist of these rows."""
        design, labels, own = pool.design, rows < pool.sizes[0], np.arange(len(rows))
        of_row, paired, clustered = np.zeros(len(rows), dtype=np.intp), False, False
        if design is not None:
            own, paired, clustered = design.unit[rows], design.kind == PAIR, design.size < len(design.unit)
            of_row = np.unique(design.strata[own], return_inverse=True)[1].ravel()
        if of_row.any():
            return Strata(of_row, own, labels, paired, clustered)
        if units is not None:  # without strata, rows that were permuted as a whole are one unit
            own = unit_of_row(units)
            labels = next(iter(units.labels.blocks()))[0][own] > 0.5
        return OneStratum(of_row, own, labels, clustered=clustered)

    @cached_property
    def count(self) -> int:
        """Number of strata."""
        return int(self.of_row.max()) + 1

    @property
    def inside(self) -> bool:
        """Whether ranks, deviations and the AUC are those inside strata: not in pairs, nor in strata of few rows."""
        return not self.paired and len(self.of_row) >= FEW * self.count

    @property
    def stratified(self) -> bool:
        """Whether rows are compared inside strata that are not pairs."""
        return not self.paired

    @property
    def compared(self) -> str:
        """How columns and rows are compared, in words; empty where all rows are one stratum."""
        if self.paired:
            return "effects and intervals are those of the differences within pairs; pairs have no AUC"
        text = "columns are compared inside strata; means, shares and pictures give both samples the same mix of strata"
        return text if self.inside else f"{text}; there is no AUC, because strata have few rows each"

    def sums(self, units: Layout) -> UnitSums:
        """Return an object that takes sums over permuted units."""
        keys, first, cell = np.unique(unit_of_row(units) * self.count + self.of_row, return_index=True, return_inverse=True)
        _, row = np.unique(self.unit, return_index=True)  # the first of each unit
        of_x, of_y = (np.bincount(self.of_row[row][self.labels[row] == x], minlength=self.count) for x in (True, False))
        lone = (of_x == 1) & (of_y == 1) & (not units.against)
        return CellSums(cell.ravel(), len(keys), keys // self.count, keys % self.count, self.labels[first], lone)

    def weights(self, of: Labels) -> Array:
        """Return a weight for each row that gives both samples the same mix of strata, adding up to 1 in either.

        Only rows ``of`` count. The mix is the precision of the strata's differences, m n / (m + n), so that the difference of
        weighted means is the one that is tested. Where no stratum has both samples, all rows of a sample have the same weight.
        """
        m, n = (np.bincount(self.of_row[side & of], minlength=self.count) for side in (self.labels, ~self.labels))
        mix = m * n / np.maximum(m + n, 1)
        weights = np.zeros(len(of))
        for side, rows in ((self.labels & of, m), (~self.labels & of, n)):
            each = mix / np.maximum(rows, 1) / mix.sum() if mix.any() else np.full(self.count, 1 / max(rows.sum(), 1))
            weights[side] = each[self.of_row[side]]
        return weights

    def row_weights(self, of: Labels) -> Array:
        """Return the weights of rows ``of``, scaled to a mean of 1 in either sample."""
        weights = self.weights(of)
        for side in (self.labels & of, ~self.labels & of):
            weights[side] *= np.count_nonzero(side)
        return weights

    def samples(self, values: Array, of: Labels) -> tuple[Sample, Sample]:
        """Return the values of rows ``of`` in either sample."""
        weights, sides = self.weights(of), (self.labels & of, ~self.labels & of)
        x, y = (WeighedSample(values[s], self.unit[s], weights[s], self.of_row[s], self.inside) for s in sides)
        return x, y

    def ranks(self, values: Array, rows: Labels) -> Array:
        """Return the ranks, between 0 and 1, of values of some rows: inside strata, or among all where strata have few rows."""
        stratum = self.of_row[rows]
        return ranks_inside(values, stratum if self.inside else np.zeros_like(stratum))

    def centred(self, marks: Array) -> Array:
        """Return marks of all rows less their mean in each stratum, where ranks are those inside strata."""
        return marks - stratum_means(marks, self.of_row)[self.of_row] if self.inside else marks

    def in_both(self, of: Labels) -> bool:
        """Return whether some stratum has rows ``of`` in both samples."""
        x, y = (np.unique(self.of_row[side & of]) for side in (self.labels, ~self.labels))
        return bool(np.isin(x, y).any())

    def rare(self, counts: Rows) -> Labels:
        """Return which levels have few rows, which their shares do not show where rows have weights."""
        return np.asarray(counts < FEWEST)

    def half(self, rows: Rows, lot: Array) -> Rows:
        """Return a random half of some rows: in the order of ``lot``, every second row of a stratum."""
        return rows[np.lexsort([lot, self.of_row[rows]])[1::2]]

    def fitted_witness(self, K: Array, fitted: Labels) -> Array:
        """Return the witness, fitted to some rows, of all others."""
        return np.asarray(K[~fitted] @ (self.weights(fitted) * np.where(self.labels, 1.0, -1.0)))

    def witness(self, K: Array) -> Array:
        """Return the leave-one-out witness of each row, without weights for pairs."""
        if self.paired:
            return leave_one_out_witness(K, self.labels)
        others, weights = K.copy(), self.weights(np.ones(len(K), dtype=bool))
        np.fill_diagonal(others, 0.0)
        to = []
        for own in (weights * self.labels, weights * ~self.labels):
            left = own.sum() - own  # of the others
            to.append(others @ own / np.where(left > 0, left, 1.0))
        return np.asarray(to[0] - to[1])


class OneStratum(Strata):
    """All rows as one stratum: every row is compared with every other, all with the same weight."""

    inside = True
    stratified = False
    compared = ""

    def sums(self, units: Layout) -> UnitSums:
        return UnitSums(unit_of_row(units), len(units.starts))

    def row_weights(self, of: Labels) -> Array:
        return np.ones(len(of))

    def samples(self, values: Array, of: Labels) -> tuple[Sample, Sample]:
        x, y = (Sample(values[side], self.unit[side]) for side in (self.labels & of, ~self.labels & of))
        return x, y

    def centred(self, marks: Array) -> Array:
        return marks  # differences of means do not depend on the mean of all rows

    def in_both(self, of: Labels) -> bool:
        return bool((of & self.labels).any() and (of & ~self.labels).any())

    def rare(self, counts: Rows) -> Labels:
        return np.zeros(len(counts), dtype=bool)  # shares show how many rows have a level

    def half(self, rows: Rows, lot: Array) -> Rows:
        return rows[np.argsort(lot)[: len(rows) // 2]]

    def fitted_witness(self, K: Array, fitted: Labels) -> Array:
        return witness(K[np.ix_(~fitted, fitted & self.labels)], K[np.ix_(~fitted, fitted & ~self.labels)])

    def witness(self, K: Array) -> Array:
        return leave_one_out_witness(K, self.labels)


def unit_of_row(units: Layout) -> Rows:
    """Return the permuted unit of each row."""
    return np.repeat(np.arange(len(units.starts)), units.counts)


def leave_one_out_witness(K: Array, labels: Labels) -> Array:
    """Return the witness of each row without itself: its mean over X less that over Y is the unbiased squared MMD.

    The only row of a sample has nothing of its own to be compared with: its witness is that of the other sample alone.
    """
    others = K.copy()
    np.fill_diagonal(others, 0.0)
    to_x, to_y = (others[:, s].sum(axis=1) / np.maximum(np.count_nonzero(s) - s, 1) for s in (labels, ~labels))
    return np.asarray(to_x - to_y)
