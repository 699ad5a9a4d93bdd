"""Missing values: where they are, and what is done about them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Rows
from cpmmd.core.text import counted
from cpmmd.data.table import Table
from cpmmd.errors import InputError, Said, Setting, Words, name_some

DROP, IMPUTE = Setting("missing", "drop"), Setting("missing", "impute")
PASS_ONE = "Pass {drop} to leave those rows out, or {impute} to fill them in and test missingness too."


@dataclass(frozen=True, eq=False)
class Gaps:
    """Where a sample has missing values: their number and first row by column, and which rows have any."""

    counts: Mapping[str, int]
    first: Mapping[str, int]
    rows: npt.NDArray[np.bool_]


def find_gaps(table: Table, name: str) -> Gaps:
    """Look at every value once: infinite ones are refused, missing ones counted."""
    counts, first, gaps = _number_gaps(table, name)
    for column, values in table.categories.items():
        empty = np.flatnonzero([v is None for v in values])
        if len(empty):
            counts[column], first[column] = len(empty), int(empty[0])
            gaps[empty] = True
    return Gaps(counts, first, gaps)


def _number_gaps(table: Table, name: str) -> tuple[dict[str, int], dict[str, int], npt.NDArray[np.bool_]]:
    """Return the missing numbers by column, the first row of each, and which rows have any; a block at a time."""
    columns = len(table.number_names)
    infinite, absent, first = np.zeros(columns, int), np.zeros(columns, int), np.full(columns, -1)
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
    _refuse_infinite(table, name, infinite)
    where = np.flatnonzero(absent)
    names = [table.number_names[j] for j in where]
    return dict(zip(names, absent[where].tolist(), strict=True)), dict(zip(names, first[where].tolist(), strict=True)), gaps


def _refuse_infinite(table: Table, name: str, counts: npt.NDArray[np.int_]) -> None:
    found = [(table.number_names[j], int(counts[j])) for j in np.flatnonzero(counts)]
    if found:
        raise InputError(
            "Values must be finite. {Sample} has infinite ones in columns {where}; replace or remove them.",
            sample=name,
            column=found[0][0],
            where=name_some([f"{column}: {count}" for column, count in found]),
        )


def check_present(gaps: Mapping[str, Gaps], *, advice: str = PASS_ONE) -> None:
    """Refuse missing values, with how many there are, where the first one is, and what to do."""
    found = [(sample, column, count) for sample, gap in gaps.items() for column, count in gap.counts.items()]
    if found:
        sample, column, _ = found[0]
        raise InputError(
            "Values must not be missing (NaN). Found {counts}, the first in row {row} of {sample} (counted from 0). " + advice,
            sample=sample,
            column=column,
            row=int(gaps[sample].first[column]),
            counts=Said(_say_counts, found),
            drop=DROP,
            impute=IMPUTE,
        )


def _say_counts(words: Words, found: list[tuple[str, str, int]]) -> str:
    return name_some([f"{column}: {count} in {words.sample(sample)}" for sample, column, count in found])


def drop_missing(table: Table, name: str, gaps: Gaps, notes: list[str], *, least: int = 2, advice: str = "try {impute}") -> Table:
    """Return the rows without missing values, and note how many were dropped."""
    keep: Rows = np.flatnonzero(~gaps.rows)
    if len(keep) == table.rows:
        return table
    notes.append(f"{table.rows - len(keep)} of {table.rows} rows of {name} dropped for missing values")
    if len(keep) < least:
        raise InputError(
            "Each sample must have at least {least} without missing values. {Sample} has {rows}; " + advice + ".",
            sample=name,
            least=counted(least, "row"),
            rows=len(keep),
            drop=DROP,
            impute=IMPUTE,
        )
    return replace(table.take(keep), lost={of: values[gaps.rows] for of, values in table.aside.items()})
