"""Columns of many rows: values are counted in cells, and everything about a column follows from the counts.

Cells are cut by a sample of rows that does not look at labels: at its values where they are few, at its quantiles where they are
many, more closely in the tails. Counts of rows in each unit and cell are whole numbers, so that they add up in any order, and
ranks are those of all rows, equal within a cell.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MISSING, OTHER
from cpmmd.draws.layout import Layout
from cpmmd.engines.columns import CONSTANT, ColumnSums, cosines
from cpmmd.engines.members import COVARIANCE_ROWS
from cpmmd.statistics.columns import (
    DataColumn,
    Levels,
    category_levels,
    level_features,
    number_features,
    number_values,
    score_columns,
    two_value_features,
)
from cpmmd.statistics.strata import ALL, Features, UnitSums

MOST_CUTS = 1024  # of a column of numbers: ranks are then known to a thousandth, in the tails to some 2e-5
FEWEST_CUTS = 64
COUNTS = 2**24  # at most, of all columns together: 128 MB
TAIL_RATIO = 2**0.25  # of neighbouring quantiles in the tails


@dataclass(frozen=True, eq=False)
class Cells:
    """The cells of one column: of numbers between cuts, beyond the last, and of missing ones; of a category its levels."""

    column: DataColumn
    cuts: Array  # ascending; a number is in the cell of the first cut that is at least as large
    levels: tuple[str, ...] | None = None  # of a category, the last two of what is none of the others and of what is missing

    @classmethod
    def of(cls, column: DataColumn, sample: Pool, most: int) -> Cells:
        """Return the cells that a sample of rows shows."""
        if column.kind == "category":
            names = category_levels(sample.categories[column.name]).names
            return cls(column, np.empty(0), (*(name for name in names if name not in (OTHER, MISSING)), OTHER, MISSING))
        values = number_values(sample, np.arange(sum(sample.sizes)), column)
        known = np.sort(values[~np.isnan(values)])
        distinct = np.unique(known)
        if len(distinct) > most:
            distinct = np.unique(known[_quantiles(len(known), most)])
        repeated = distinct[np.searchsorted(known, distinct, "right") - np.searchsorted(known, distinct) > 1]
        return cls(column, np.union1d(distinct, np.nextafter(repeated, -np.inf)))  # what occurs often has a cell of its own

    @property
    def count(self) -> int:
        """Number of cells."""
        return len(self.cuts) + 2 if self.levels is None else len(self.levels)

    @cached_property
    def _position(self) -> dict[str, int]:
        return {level: code for code, level in enumerate(self.levels or ())}

    def codes(self, rows: Pool) -> Rows:
        """Return the cell of each row of a pool."""
        if self.levels is not None:
            other, position = len(self.levels) - 2, self._position
            texts = (MISSING if value is None else value for value in rows.categories[self.column.name])
            return np.fromiter((position.get(text, other) for text in texts), np.intp, sum(rows.sizes))
        values = number_values(rows, np.arange(sum(rows.sizes)), self.column)
        codes = np.searchsorted(self.cuts, values)
        codes[np.isnan(values)] = self.count - 1
        return codes


def cells_of(columns: Sequence[DataColumn], sample: Pool, units: int) -> tuple[Cells, ...]:
    """Return the cells of columns whose rows are counted in so many units."""
    most = min(MOST_CUTS, max(FEWEST_CUTS, COUNTS // (units * max(1, len(columns)))))
    return tuple(Cells.of(column, sample, most) for column in columns)


def _quantiles(rows: int, most: int) -> Rows:
    """Return the numbers of sorted rows that cut them: at even distances, and closer and closer to both ends."""
    tails = np.unique(np.geomspace(1, rows / most, max(2, round(np.log(rows / most) / np.log(TAIL_RATIO)))).astype(int))
    even = np.linspace(0, rows - 1, most).round().astype(int)
    return np.unique(np.clip(np.concatenate([tails - 1, even, rows - tails]), 0, rows - 1))


@dataclass(frozen=True, eq=False)
class CountedSums(UnitSums):
    """Sums over units of values that are given for each cell."""

    counted: Array  # rows of each unit in each cell

    def of(self, values: Array | None = None, rows: Rows | slice = ALL) -> Array:
        """Return the sums of values (ones when None), which are given for the cells ``rows``."""
        inside = self.counted[:, rows]
        return np.asarray(inside.sum(axis=1) if values is None else inside @ values)

    def counts(self, codes: Rows, classes: int, rows: Rows | slice = ALL) -> Array:
        """Return how many rows of each unit have each code, which are given for the cells ``rows``."""
        counted = np.zeros((classes, len(self.counted)))
        np.add.at(counted, codes, self.counted[:, rows].T)
        return counted.T


@dataclass(frozen=True, eq=False)
class _CountedColumn:
    """A column by the counts of its cells that have rows."""

    counts: Array  # units x cells
    kept: Rows  # the number of each cell among all cells
    cells: Cells

    @classmethod
    def of(cls, cells: Cells, counts: Rows) -> _CountedColumn:
        kept = np.flatnonzero(counts.any(axis=0))
        return cls(counts[:, kept].astype(np.float64), kept, cells)

    @property
    def _missing(self) -> bool:
        """Whether the last cell is of missing values."""
        return bool(len(self.kept) and self.kept[-1] == self.cells.count - 1)

    @cached_property
    def _total(self) -> Array:
        return np.asarray(self.counts.sum(axis=0))

    @cached_property
    def _known(self) -> Rows:
        """The cells of numbers that are there."""
        return np.arange(len(self.kept) - self._missing)

    @cached_property
    def _ranks(self) -> Array:
        """The mean rank of the rows of each cell, between 0 and 1; NaN of missing ones."""
        ranks, total = np.full(len(self.kept), np.nan), self._total[self._known]
        ranks[self._known] = (np.cumsum(total) - total / 2) / total.sum()
        return ranks

    @property
    def _two(self) -> bool:
        return len(self._known) <= 2

    def features(self) -> list[Features]:
        """Return the features of the column."""
        sums = CountedSums(np.empty(0, dtype=np.intp), len(self.counts), self.counts)
        if self.cells.levels is not None:
            return level_features(Levels(tuple(self.cells.levels[k] for k in self.kept), np.arange(len(self.kept))), sums)
        return two_value_features(self._ranks, sums) if self._two else number_features(self._ranks, sums)

    def blocks(self, some: Rows) -> list[tuple[Array, Array]]:
        """Return the features of the additive kernel, centred and of norm 1: their sums over units, and those of some rows."""
        width = len(self.kept)
        if self.cells.levels is not None:
            functions = [np.eye(width)]
        elif not len(self._known):
            functions = []
        else:
            known = (np.arange(width) == self._known[-1:])[:, None].astype(float) if self._two else cosines(self._ranks)
            of_known = self._total[self._known]
            known[len(self._known) :] = (of_known / of_known.sum()) @ known[self._known]
            there = np.isin(np.arange(width), self._known)[:, None].astype(float)
            functions = [known, *([there] if self._missing else [])]
        place = np.minimum(np.searchsorted(self.kept, some), width - 1)  # a cell may have no rows but those left over
        found, rows = list[tuple[Array, Array]](), self._total.sum()
        for values in functions:
            centred = values - (self._total / rows) @ values
            norm = float(np.linalg.norm((centred.T * self._total) @ centred))
            if norm > CONSTANT * rows:
                centred /= np.sqrt(norm)
                found.append((self.counts @ centred, centred[place]))
        return found


def counted_columns(cells: Sequence[Cells], counts: Sequence[Rows], varied: Pool, layout: Layout) -> ColumnSums:
    """Return what columns are under every labeling, from the counts of rows in each unit and cell.

    Variances of features are taken over the rows ``varied``.
    """
    largest = np.zeros(len(layout.labels))
    sums, some = [np.empty((layout.count, 0))], [np.empty((min(COVARIANCE_ROWS, sum(varied.sizes)), 0))]
    for own, counted in zip(cells, counts, strict=True):
        column = _CountedColumn.of(own, counted)
        (scored,) = score_columns([column.features()], layout)
        np.maximum(largest, scored.scores, out=largest)
        for over_units, over_rows in column.blocks(own.codes(varied)[: len(some[0])]):
            sums.append(over_units)
            some.append(over_rows)
    return ColumnSums(layout, largest, np.hstack(sums), np.hstack(some), np.zeros(len(layout.labels)))
