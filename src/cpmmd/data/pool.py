"""Two samples with the same columns, checked, and pooled."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cpmmd.core import validation
from cpmmd.core.arrays import Rows
from cpmmd.data.numbers import Chosen, Numbers, Stacked
from cpmmd.data.table import Objects, Table, read_table
from cpmmd.errors import InputError, Said, SampleName, Setting, Words, name_some


@dataclass(frozen=True, eq=False)
class Pool:
    """The pool of both samples before any encoding is fitted: rows of X first.

    ``kinds`` names the integer and boolean columns; ``kept`` are the rows' numbers in their own sample as it came, None when
    no row was left out. ``open_ended`` says that other rows will be encoded later: categories then keep a level for what they
    may bring.
    """

    numbers: Numbers
    number_names: tuple[str, ...]
    dates: frozenset[str]
    categories: Mapping[str, Objects]
    m: int
    n: int
    row_shape: tuple[int, ...]
    notes: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    kept: Rows | None = None
    open_ended: bool = False

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names as the data had them."""
        return (*self.number_names, *self.categories)


def read_pool(x: Any, y: Any, *, missing: str = "error") -> Pool:
    """Read both samples, match their columns, and deal with missing values."""
    validation.missing(missing)
    a, b = read_table(x, "x"), read_table(y, "y")
    (a, b), notes = check_tables({"x": a, "y": _match_columns(a, b)}, missing=missing)
    return pool_tables(a, b, notes)


def check_tables(tables: Mapping[str, Table], *, missing: str) -> tuple[list[Table], tuple[str, ...]]:
    """Return tables with enough rows, finite values and missing ones dealt with, and notes; keys are what messages call them."""
    for name, table in tables.items():
        _check_rows(table, name)
    gaps = {name: _scan(table, name) for name, table in tables.items()}
    notes: list[str] = []
    if missing == "error":
        _check_present(gaps)
    elif missing == "drop":
        return [_without_missing(table, name, gaps[name], notes) for name, table in tables.items()], tuple(notes)
    return list(tables.values()), ()


def pool_tables(a: Table, b: Table, notes: tuple[str, ...] = (), *, open_ended: bool = False) -> Pool:
    """Return the pool of two tables with the same columns in the same order."""
    return Pool(
        numbers=Stacked(a.numbers, b.numbers),
        number_names=a.number_names,
        dates=a.dates,
        categories={c: np.concatenate([a.categories[c], b.categories[c]]) for c in a.categories},
        m=a.rows,
        n=b.rows,
        row_shape=a.row_shape,
        notes=notes,
        kinds=dict(a.kinds.items() & b.kinds.items()),
        kept=_kept(a, b),
        open_ended=open_ended,
    )


def _kept(a: Table, b: Table) -> Rows | None:
    if a.kept is None and b.kept is None:
        return None
    return np.concatenate([np.arange(t.rows) if t.kept is None else t.kept for t in (a, b)])


def pool_of_one(table: Table) -> Pool:
    """Return one table as a pool without a second sample yet, to fit an encoding on or to encode."""
    return pool_tables(table, table.take(np.arange(0)), open_ended=True)


def _match_columns(a: Table, b: Table) -> Table:
    """Return ``b`` with the columns in the order of ``a``; names decide where both samples have them."""
    if len(a.names) != len(b.names):
        raise InputError(
            "Both samples must have the same columns. Got {m} in {x} and {n} in {y}{difference}; drop or add columns so that "
            "they match.",
            m=len(a.names),
            n=len(b.names),
            difference=_name_difference(a, b),
            x=SampleName("x"),
            y=SampleName("y"),
        )
    if not (a.named and b.named):
        if a.categories or b.categories:
            raise InputError("Text columns are matched by name: pass both samples as data frames. Got one array and one frame.")
        if a.row_shape != b.row_shape:
            raise InputError(
                "Both samples must have rows of one shape. Got {of_x} in {x} and {of_y} in {y}.",
                of_x=a.row_shape,
                of_y=b.row_shape,
                x=SampleName("x"),
                y=SampleName("y"),
            )
        return replace(b, number_names=a.number_names, dates=a.dates)
    if set(a.names) != set(b.names):
        raise InputError(
            "Both samples must have the same column names{difference}; rename or drop columns.", difference=_name_difference(a, b)
        )
    clash = sorted(set(a.number_names) & set(b.categories) | set(b.number_names) & set(a.categories) | (a.dates ^ b.dates))
    if clash:
        raise InputError(
            f"A column must be of one kind in both samples. {name_some(clash)} are numbers, dates or text in one and "
            "something else in the other; convert them."
        )
    order = [b.number_names.index(name) for name in a.number_names]
    return replace(b, numbers=Chosen(b.numbers, columns=np.array(order, dtype=int)), number_names=a.number_names)


def _name_difference(a: Table, b: Table) -> str | Said:
    """Return which columns only one of two named tables has, in brackets."""
    if not (a.named and b.named):
        return ""
    only = {"x": sorted(set(a.names) - set(b.names)), "y": sorted(set(b.names) - set(a.names))}

    def say(words: Words) -> str:
        parts = [f"only in {words.sample(name)}: {name_some(columns)}" for name, columns in only.items() if columns]
        return f" ({'; '.join(parts)})" if parts else ""

    return Said(say)


def _check_rows(table: Table, name: str) -> None:
    if table.rows < 2:
        raise InputError("Each sample must have at least 2 rows. {Sample} has {rows}.", sample=name, rows=table.rows)


@dataclass(frozen=True, eq=False)
class _Gaps:
    """Where a sample has missing values: their number and first row by column, and which rows have any."""

    counts: Mapping[str, int]
    first: Mapping[str, int]
    rows: npt.NDArray[np.bool_]


def _scan(table: Table, name: str) -> _Gaps:
    """Look at every value once, a block at a time: infinite ones are refused, missing ones counted."""
    width = len(table.number_names)
    infinite, absent, first = np.zeros(width, int), np.zeros(width, int), np.full(width, -1)
    gaps, start = np.zeros(table.rows, dtype=bool), 0
    for block in table.numbers.blocks():
        finite = np.isfinite(block)
        if not finite.all():
            missing = np.isnan(block)
            infinite += (~finite & ~missing).sum(axis=0)
            absent += missing.sum(axis=0)
            first = np.where((first < 0) & missing.any(axis=0), start + missing.argmax(axis=0), first)
            gaps[start : start + len(block)] = missing.any(axis=1)
        start += len(block)
    if infinite.any():
        where = [f"{table.number_names[j]}: {infinite[j]}" for j in np.flatnonzero(infinite)]
        raise InputError(
            "Values must be finite. {Sample} has infinite ones in columns {where}; replace or remove them.",
            sample=name,
            column=table.number_names[int(np.flatnonzero(infinite)[0])],
            where=name_some(where),
        )
    numbers = [table.number_names[j] for j in np.flatnonzero(absent)]
    counts, rows = (
        dict(zip(numbers, absent[absent > 0].tolist(), strict=True)),
        dict(zip(numbers, first[absent > 0], strict=True)),
    )
    for column, values in table.categories.items():
        empty = np.flatnonzero([v is None for v in values])
        if len(empty):
            counts[column], rows[column] = len(empty), int(empty[0])
            gaps[empty] = True
    return _Gaps(counts, rows, gaps)


def _check_present(gaps: Mapping[str, _Gaps]) -> None:
    found = [(sample, column, count) for sample, gap in gaps.items() for column, count in gap.counts.items()]
    if found:
        sample, column, _ = found[0]
        raise InputError(
            "Values must not be missing. Found {counts}, the first in row {row} of {sample} (counted from 0). Pass {drop} to "
            "leave those rows out, or {impute} to fill them in and test missingness too.",
            sample=sample,
            column=column,
            row=int(gaps[sample].first[column]),
            counts=Said(lambda words: name_some([f"{c}: {k} in {words.sample(s)}" for s, c, k in found])),
            drop=Setting("missing", "drop"),
            impute=Setting("missing", "impute"),
        )


def _without_missing(table: Table, name: str, gaps: _Gaps, notes: list[str]) -> Table:
    keep: Rows = np.flatnonzero(~gaps.rows)
    if len(keep) == table.rows:
        return table
    notes.append(f"{table.rows - len(keep)} of {table.rows} rows of {name} dropped for missing values")
    if len(keep) < 2:
        raise InputError(
            "Each sample must have at least 2 rows without missing values. {Sample} has {rows}; try {impute}.",
            sample=name,
            rows=len(keep),
            impute=Setting("missing", "impute"),
        )
    return table.take(keep)
