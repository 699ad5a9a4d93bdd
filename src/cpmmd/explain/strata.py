"""Strata and pairs of a design in an explanation: columns are compared inside them, so that what strata differ in is out.

In every stratum the mean of each function of the rows is taken off before sums are taken over what is relabelled. With m_s and
n_s the rows that a labeling calls X and Y among the N_s of a stratum, the sum over X is then

    sum over s of (m_s n_s / N_s) (mean of X in s - mean of Y in s),

the strata's differences by their precision, as the test weighs them; one product for all labelings, however many strata.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.data.design import PAIR, Design
from cpmmd.draws.layout import Layout
from cpmmd.explain.columns import Features

ROUNDING = 1e-12
FEW = 8  # rows of a stratum, on average: with fewer, ranks inside it say little more than which is larger


@dataclass(frozen=True, eq=False)
class Strata:
    """The stratum of some rows, and their unit in the design."""

    of_row: Rows  # stratum of each row, from 0; a pair is one
    unit: Rows  # unit of each row
    labels: Labels  # true for rows of X, as they came
    paired: bool  # whether strata are pairs

    @classmethod
    def of(cls, design: Design | None, rows: Rows) -> Strata | None:
        """Return the strata of some rows of the pool; None where there is one at most, and rows are as good as without."""
        if design is None:
            return None
        names, of_row = np.unique(design.strata[design.unit[rows]], return_inverse=True)
        if len(names) < 2:
            return None
        return cls(of_row.ravel(), design.unit[rows], rows < design.rows[0], design.kind == PAIR)

    @cached_property
    def count(self) -> int:
        """Number of strata."""
        return int(self.of_row.max()) + 1

    @property
    def inside(self) -> bool:
        """Whether ranks and deviations are those inside strata: they have rows enough for that, and are no pairs."""
        return not self.paired and len(self.of_row) >= FEW * self.count

    @property
    def ranked(self) -> Rows | None:
        """The stratum of each row where ranks are taken inside it; None where they are those of all rows."""
        return self.of_row if self.inside else None

    def weights(self, of: Labels) -> Array:
        """Return a weight for each row that gives both samples the same mix of strata, adding up to 1 in either.

        Only rows ``of`` count. The mix is the precision of the strata's differences, m n / (m + n), so that the difference of
        weighted means is the one that columns are tested by. Where no stratum has both samples, rows of a sample weigh the same.
        """
        m, n = (np.bincount(self.of_row[side & of], minlength=self.count) for side in (self.labels, ~self.labels))
        mix = m * n / np.maximum(m + n, 1)
        weights = np.zeros(len(of))
        for side, rows in ((self.labels & of, m), (~self.labels & of, n)):
            each = mix / np.maximum(rows, 1) / mix.sum() if mix.any() else np.full(self.count, 1 / max(rows.sum(), 1))
            weights[side] = each[self.of_row[side]]
        return weights

    def in_both(self, of: Labels) -> bool:
        """Return whether some stratum has rows ``of`` in both samples."""
        x, y = (np.unique(self.of_row[side & of]) for side in (self.labels, ~self.labels))
        return bool(np.isin(x, y).any())

    def centred(self, values: Array) -> Array:
        """Return values of rows, the mean of each stratum taken off."""
        sizes = np.bincount(self.of_row, minlength=self.count)
        return np.asarray(values - (np.bincount(self.of_row, values, self.count) / sizes)[self.of_row])


def say_compared(strata: Strata | None) -> str:
    """Say how columns and rows are compared where a design has strata or pairs; nothing where it has none."""
    if strata is None:
        return ""
    if strata.paired:
        return "effects and intervals are those of the differences within pairs; rows are not told apart one by one"
    said = "columns are compared inside strata; means, shares and pictures give both samples the same mix of strata"
    return said if strata.inside else f"{said}; rows are not told apart one by one, since strata have few each"


@dataclass(frozen=True, eq=False)
class Cells:
    """The rows of one stratum in one relabelled unit: several cells a unit where it holds several pairs."""

    of_row: Rows  # cell of each row, ascending with units
    # unit, stratum: of each cell
    unit: Rows
    stratum: Rows
    labels: Labels
    lone: Labels  # whether each stratum has one unit of either sample in the design: labelings swap its sides and do nothing else

    @classmethod
    def of(cls, strata: Strata, units: Layout) -> Cells:
        """Return the cells of what is relabelled."""
        unit = np.repeat(np.arange(len(units.starts)), units.counts)
        keys, first, of_row = np.unique(unit * strata.count + strata.of_row, return_index=True, return_inverse=True)
        _, one = np.unique(strata.unit, return_index=True)
        of_x, of_y = (
            np.bincount(strata.of_row[one][strata.labels[one] == side], minlength=strata.count) for side in (True, False)
        )
        lone = (of_x == 1) & (of_y == 1)
        return cls(of_row.ravel(), keys // strata.count, keys % strata.count, strata.labels[first], lone)

    @cached_property
    def _order(self) -> Rows:
        return np.argsort(self.stratum, kind="stable")

    def per_stratum(self, values: Array) -> Array:
        """Return the sums of cells over each stratum."""
        starts = np.flatnonzero(np.diff(self.stratum[self._order], prepend=-1))
        return np.asarray(np.add.reduceat(values[self._order], starts, axis=0))

    def _per_unit(self, values: Array) -> Array:
        starts = np.flatnonzero(np.diff(self.unit, prepend=-1))
        return np.asarray(np.add.reduceat(values, starts, axis=0))

    def centre(self, features: Features) -> Features:
        """Return features of cells as features of units, the mean of each stratum taken off."""
        means = self.per_stratum(features.sums) / np.maximum(self.per_stratum(features.base), 1)[:, None]
        off = features.base[:, None] * means[self.stratum]
        sums = features.sums - off
        sums[np.abs(sums) <= ROUNDING * np.abs(off)] = 0.0  # what is the same all over a stratum must not differ by rounding
        return replace(
            features, base=self._per_unit(features.base), sums=self._per_unit(sums), precision=self._precision(features.base)
        )

    def _precision(self, base: Array) -> Callable[[Array], Array]:
        """Return what gives the sum over strata of m n / (m + n) from labelings, for rows that count ``base``.

        A stratum whose sides are swapped has the same under every labeling; all others are those of single units.
        """
        rows = self.per_stratum(base)
        of_x = self.per_stratum(base * self.labels)
        fixed = float(np.sum((of_x * (rows - of_x))[self.lone] / np.maximum(rows[self.lone], 1)))
        chosen = self._order[~self.lone[self.stratum[self._order]]]
        if not len(chosen):
            return lambda labels: np.full(len(labels), fixed)
        unit, own, total = self.unit[chosen], base[chosen], np.maximum(rows[~self.lone], 1)
        starts = np.flatnonzero(np.diff(self.stratum[chosen], prepend=-1))

        def precision(labels: Array) -> Array:
            m = np.add.reduceat(labels[:, unit] * own, starts, axis=1)
            return np.asarray(fixed + (m * (rows[~self.lone] - m) / total).sum(axis=1))

        return precision
