"""Numbers of a sample: what a single value means, and columns of numbers that are read row by row and never copied whole.

A matrix in memory, a memory-mapped file and Arrow chunks are all used like a matrix: ``numbers[rows]`` gives those rows in double
precision, ``numbers[rows, columns]`` reads those columns only. ``blocks`` is a pass over rows in order.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from decimal import Decimal
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Array, Rows

EXACT = 2**53  # whole numbers beyond it have no double of their own
BLOCK_VALUES = 2**21  # read at once by passes over all rows: 16 MB
Values = npt.NDArray[Any]  # of any type: numbers, text, dates or objects
Index = int | slice | Sequence[int] | Values  # what numpy takes for some rows or columns


def is_missing(value: object) -> bool:
    """Whether a value is missing: None, NaN, NaT, or a mark that refuses to be compared (pandas.NA)."""
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal nor unequal; an array is no value
        return not isinstance(value, np.ndarray)


def category_text(value: object) -> str | None:
    """Return the name of a category, None where it is missing; 1 and 1.0 are one category.

    A column of whole numbers becomes one of floats as soon as one value is missing: that must not look like new categories.
    """
    if is_missing(value):
        return None
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def is_number(value: object) -> bool:
    """Whether a value is a boolean or a number."""
    return isinstance(value, (bool, int, float, Decimal, np.bool_, np.integer, np.floating))


def beyond_exact(values: Iterable[object]) -> bool:
    """Whether whole numbers (an integer array, or Python's own) reach beyond what doubles hold exactly."""
    if isinstance(values, np.ndarray):
        return bool(values.size) and (int(values.max()) > EXACT or int(values.min()) < -EXACT)
    return any(isinstance(v, int) and abs(v) > EXACT for v in values)


class Numbers(ABC):
    """Rows of numbers."""

    @property
    @abstractmethod
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""

    @abstractmethod
    def take(self, rows: Rows, columns: Rows | None = None) -> Array:
        """Return some rows, or some columns of them, in double precision; the array is the caller's."""

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, at: Index | tuple[Index, Index]) -> Array:
        of_rows, of_columns = at if isinstance(at, tuple) else (at, None)
        rows = np.arange(len(self))[of_rows]
        columns = None if of_columns is None else np.arange(self.shape[1])[of_columns]
        block = self.take(np.atleast_1d(rows), None if columns is None else np.atleast_1d(columns))
        block = block if rows.ndim else block[0]
        return block if columns is None or columns.ndim else np.asarray(block[..., 0])

    def __array__(self, dtype: npt.DTypeLike | None = None, copy: bool | None = None) -> Values:
        return self.take(np.arange(len(self))).astype(dtype or np.float64, copy=False)

    def blocks(self, rows: Rows | None = None) -> Iterator[Array]:
        """Yield the rows (some of them, in that order) a block at a time."""
        chosen = np.arange(len(self)) if rows is None else rows
        step = max(1, BLOCK_VALUES // max(1, self.shape[1]))
        for start in range(0, len(chosen), step):
            yield self.take(chosen[start : start + step])


@dataclass(frozen=True, eq=False)
class Matrix(Numbers):
    """A two-dimensional array of any real type, possibly memory-mapped."""

    array: Values

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.array.shape
        return rows, columns

    def take(self, rows: Rows, columns: Rows | None = None) -> Array:
        run = _as_slice(rows)
        if columns is None:
            return np.array(self.array[run], dtype=np.float64)
        block = self.array[run, columns] if isinstance(run, slice) else self.array[np.ix_(run, columns)]
        return np.array(block, dtype=np.float64)


@dataclass(frozen=True, eq=False)
class Columns(Numbers):
    """Columns of their own, as data frames hold them: each in one piece, or in several as in Arrow."""

    columns: tuple[Sequence[Values], ...]
    rows: int

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, len(self.columns)

    @cached_property
    def starts(self) -> list[Rows]:
        """First row of each piece of each column, and the number of rows."""
        return [np.cumsum([0, *map(len, pieces)]) for pieces in self.columns]

    def take(self, rows: Rows, columns: Rows | None = None) -> Array:
        chosen = np.arange(len(self.columns)) if columns is None else columns
        block, run = np.empty((len(rows), len(chosen))), _as_slice(rows)
        for j, column in enumerate(chosen.tolist()):
            pieces, starts = self.columns[column], self.starts[column]
            if len(pieces) == 1:
                block[:, j] = pieces[0][run]
                continue
            of = np.searchsorted(starts, rows, side="right") - 1
            for piece in np.unique(of):
                here = of == piece
                block[here, j] = pieces[piece][rows[here] - starts[piece]]
        return block


@dataclass(frozen=True, eq=False)
class Chosen(Numbers):
    """Some rows or columns of other numbers."""

    of: Numbers
    rows: Rows | None = None
    columns: Rows | None = None

    @property
    def shape(self) -> tuple[int, int]:
        rows, columns = self.of.shape
        return rows if self.rows is None else len(self.rows), columns if self.columns is None else len(self.columns)

    def take(self, rows: Rows, columns: Rows | None = None) -> Array:
        inside = columns if self.columns is None else self.columns if columns is None else self.columns[columns]
        return self.of.take(rows if self.rows is None else self.rows[rows], inside)


@dataclass(frozen=True, eq=False)
class StackedNumbers(Numbers):
    """The rows of several parts, in order."""

    parts: tuple[Numbers, ...]

    @cached_property
    def starts(self) -> Rows:
        """First row of each part, and the number of rows."""
        return np.cumsum([0, *map(len, self.parts)])

    @property
    def shape(self) -> tuple[int, int]:
        return int(self.starts[-1]), self.parts[0].shape[1]

    def take(self, rows: Rows, columns: Rows | None = None) -> Array:
        block = np.empty((len(rows), self.shape[1] if columns is None else len(columns)))
        for part, (start, stop) in zip(self.parts, pairwise(self.starts), strict=True):
            here = (rows >= start) & (rows < stop)
            if here.all():
                return part.take(rows - start, columns)
            if here.any():
                block[here] = part.take(rows[here] - start, columns)
        return block


def _as_slice(rows: Rows) -> Rows | slice:
    """Return a run of rows as a slice, which numpy reads without a gather."""
    if len(rows) and rows[-1] - rows[0] == len(rows) - 1 and (np.diff(rows) == 1).all():
        return slice(int(rows[0]), int(rows[-1]) + 1)
    return rows
