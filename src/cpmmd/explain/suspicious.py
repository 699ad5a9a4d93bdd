"""Columns that tell the samples apart without saying anything about them: identifiers, counters, clocks, keys, constants."""

from __future__ import annotations

import re
from collections.abc import Sequence

import numpy as np

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.text import harmless
from cpmmd.data.pool import Pool
from cpmmd.data.table import Objects
from cpmmd.explain.columns import DataColumn, date_text
from cpmmd.explain.summaries import ColumnSides
from cpmmd.explain.words import LONGEST

FEWEST = 5  # rows of each sample: with fewer, being apart says little
IDENTIFIES = 20  # rows that all have a value of their own
IDENTIFIER = "every row has a value of its own, as identifiers do"
Suspicion = tuple[str, bool]  # why, and whether also where the column does not differ
NAMES = re.compile(
    r"(?i)(^|[\W_])(id|ids|uuid|guid|key|index|idx|row|row.?(id|nr|no|number))$|(?<=[a-z])(Id|ID|Key)$|^unnamed: \d+$|^$"
)


def suspicion(sides: ColumnSides, pool: Pool, rows: Rows, names: tuple[str, str]) -> Suspicion:
    """Return why a column is suspicious, and whether it is so without a difference; no reason where it is not.

    Parameters
    ----------
    rows
        The pool's row number of each value.
    names
        What the samples are called.
    """
    if min(np.count_nonzero(sides.there & side) for side in (sides.labels, ~sides.labels)) < FEWEST:
        return _all_missing(sides, names), False
    if sides.read.levels is not None:
        return _of_category(sides, pool.categories[sides.read.column.name][rows], names)
    return _of_numbers(sides, rows, names)


def _all_missing(sides: ColumnSides, names: tuple[str, str]) -> str:
    empty = [n for n, side in zip(names, (sides.labels, ~sides.labels), strict=True) if not (sides.there & side).any()]
    return f"it is empty in {empty[0]}" if len(empty) == 1 else ""


def _of_category(sides: ColumnSides, values: Objects, names: tuple[str, str]) -> Suspicion:
    x, y = (set(values[side & sides.there].tolist()) for side in (sides.labels, ~sides.labels))
    count = int(np.count_nonzero(sides.there))
    if count >= IDENTIFIES and len(x | y) == count:
        return IDENTIFIER, True
    if not x & y:
        return "no value is in both samples: it tells them apart alone", False
    return _constant([len(x), len(y)], [next(iter(x)), next(iter(y))], names), False


def _constant(counts: list[int], values: Sequence[object], names: tuple[str, str]) -> str:
    for own, other in ((0, 1), (1, 0)):
        if counts[own] == 1 < counts[other]:
            return f"it is always {harmless(values[own], LONGEST)} in {names[own]}"
    return ""


def _of_numbers(sides: ColumnSides, rows: Rows, names: tuple[str, str]) -> Suspicion:
    column = sides.read.column
    x, y = (one.values for one in sides.numbers)
    whole = bool(np.all(sides.read.values[sides.there] % 1 == 0)) and column.kind == "number"
    if whole and all(_counts_up(sides, rows, side) for side in (sides.labels, ~sides.labels)):
        return "it counts the rows", True
    if whole and NAMES.search(column.name) and len(np.unique(np.concatenate([x, y]))) == len(x) + len(y):
        return IDENTIFIER, True
    return "" if column.kind == "boolean" else _apart(column, x, y, names), False


def _apart(column: DataColumn, x: Array, y: Array, names: tuple[str, str]) -> str:
    """Say that numbers are constant in one sample, or do not overlap."""
    first_values = [date_text(float(v[0]))[:16] if column.kind == "date" else f"{v[0]:.6g}" for v in (x, y)]
    constant = _constant([len(np.unique(v)) for v in (x, y)], first_values, names)
    if constant:
        return constant
    if x.max() < y.min() or y.max() < x.min():
        first, last = names if x.max() < y.min() else names[::-1]
        if column.kind == "date":
            return f"every date of {last} is after the last one of {first}: a clock tells them apart alone"
        return f"every value of {last} is above the largest one of {first}: it tells them apart alone"
    return ""


def _counts_up(sides: ColumnSides, rows: Rows, side: Labels) -> bool:
    """Whether the values of one sample, in the order of its rows, go up by equal steps wherever rows are neighbours."""
    chosen = np.flatnonzero(side & sides.there)
    order = chosen[np.argsort(rows[chosen])]
    steps, gaps = np.diff(sides.read.values[order]), np.diff(rows[order])
    return len(steps) > 0 and bool(np.all(steps > 0) and np.allclose(steps / gaps, steps[0] / gaps[0], rtol=1e-9))
