"""Columns as a person knows them: the columns of the data, or patches of an image, behind the encoded matrix."""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import PlainDict
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.data.table import SECONDS_A_DAY

PATCHES = 8  # at most so many along each side of an image
CHANNELS = 4  # a first or last axis of at most this length is one of colours


@dataclass(frozen=True)
class DataColumn:
    """Matrix columns that belong together.

    Attributes
    ----------
    positions
        Among the number columns of the data; empty for a category.
    encoded
        Positions in the prepared matrix: the numbers, their missing-marks, a category's levels.
    """

    name: str
    label: str
    kind: str
    positions: tuple[int, ...]
    encoded: tuple[int, ...]


def columns_of(pool: Pool, preparation: Preparation) -> tuple[DataColumn, ...]:
    """Return the columns of the data, encoded columns folded back into the column they came from."""
    encoded: dict[str, list[int]] = {name: [] for name in pool.columns}
    for position, name in enumerate(preparation.feature_columns):
        encoded[name].append(position)
    if len(pool.row_shape) > 1:
        return tuple(_patches(pool, encoded))
    plain = pool.number_names == tuple(str(i) for i in range(len(pool.number_names)))
    numbers = [
        DataColumn(name, f"column {name}" if plain else name, _kind(pool, name), (position,), tuple(encoded[name]))
        for position, name in enumerate(pool.number_names)
    ]
    return (*numbers, *(DataColumn(name, name, "category", (), tuple(encoded[name])) for name in pool.categories))


def _kind(pool: Pool, name: str) -> str:
    if name in pool.dates:
        return "date"
    return "boolean" if pool.kinds.get(name) == "boolean" else "number"


def _patches(pool: Pool, encoded: dict[str, list[int]]) -> Iterable[DataColumn]:
    """Cut images into rectangles: one pixel permuted changes next to nothing, and nobody reads a thousand of them."""
    shape = pool.row_shape
    colours_first = len(shape) == 3 and shape[0] <= CHANNELS < shape[2]
    numbers = np.arange(math.prod(shape)).reshape(shape)
    grid = np.moveaxis(numbers, 0, -1) if colours_first else numbers
    for rows in _cut(grid.shape[0]):
        for columns in _cut(grid.shape[1]):
            inside = tuple(grid[rows, columns].ravel().tolist())
            name = f"[{_span(rows)}, {_span(columns)}]"
            positions = tuple(p for i in inside for p in encoded[pool.number_names[i]])
            yield DataColumn(name, f"patch {name}", "patch", inside, positions)


def _cut(length: int) -> list[slice]:
    parts = np.array_split(np.arange(length), min(length, PATCHES))
    return [slice(int(part[0]), int(part[-1]) + 1) for part in parts]


def _span(part: slice) -> str:
    last = part.stop - 1
    return f"{part.start}" if part.start == last else f"{part.start}-{last}"


def row_values(pool: Pool, row: int, columns: Iterable[DataColumn]) -> PlainDict:
    """Return one row of the pool as it came: dates as text, whole numbers whole, None where missing, a patch as its mean."""
    return {column.name: _value(pool, row, column) for column in columns}


def _value(pool: Pool, row: int, column: DataColumn) -> Any:
    if column.kind == "category":
        return pool.categories[column.name][row]
    number = float(np.mean(pool.numbers[row, list(column.positions)]))
    if math.isnan(number):
        return None
    if column.kind == "date":
        return date_text(number)
    if column.kind == "boolean":
        return bool(number)
    return int(number) if pool.kinds.get(column.name) == "integer" else number


def date_text(days: float) -> str:
    """Return days since 1970 as a date, with the time of day where it has one."""
    stamp = str(np.datetime64(round(days * SECONDS_A_DAY), "s"))
    return stamp.removesuffix("T00:00:00")


def number_values(pool: Pool, rows: Rows, column: DataColumn) -> Array:
    """Return a column's numbers on some rows of the pool, a patch's as its mean."""
    values = pool.numbers[rows, list(column.positions)]
    return np.asarray(values[:, 0] if len(column.positions) == 1 else values.mean(axis=1))
