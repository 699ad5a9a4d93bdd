"""Missing values of a sample: where they are, the sentence that refuses them, and rows without them."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cpmmd.core.arrays import Labels, Rows
from cpmmd.core.text import pluralize
from cpmmd.data.table import Table
from cpmmd.errors import DeferredText, InputError, Note, ParameterReference, SampleName, Words, name_some

DROP, IMPUTE = ParameterReference("missing", "drop"), ParameterReference("missing", "impute")
PASS_ONE = "Pass {drop} to leave those rows out, or {impute} to fill them in and test missingness too."
MOST = 8  # columns that an error names
INFINITE = "Values must be finite. {Sample} has infinite ones in columns {where}; replace or remove them."


@dataclass(frozen=True, eq=False)
class MissingValues:
    """Where a sample has missing values: their number and first row by column, and which rows have any."""

    counts: Mapping[str, int]
    first: Mapping[str, int]
    rows: Labels


def find_missing(table: Table, name: str) -> MissingValues:
    """Look at every value once, numbers a block at a time: infinite ones are refused, missing ones counted."""
    infinite, absent = np.zeros((2, len(table.number_names)), dtype=int)
    begin = np.full(len(table.number_names), -1)
    rows, start = np.zeros(table.rows, dtype=bool), 0
    for block in table.numbers.blocks():
        finite = np.isfinite(block)
        if not finite.all():
            missing = np.isnan(block)
            infinite += (~finite & ~missing).sum(axis=0)
            absent += missing.sum(axis=0)
            begin = np.where((begin < 0) & missing.any(axis=0), start + missing.argmax(axis=0), begin)
            rows[start : start + len(block)] = missing.any(axis=1)
        start += len(block)
    if infinite.any():
        found = {table.number_names[j]: int(infinite[j]) for j in np.flatnonzero(infinite)}
        where = name_some([f"{column}: {count}" for column, count in found.items()])
        raise InputError(INFINITE, sample=name, column=next(iter(found)), where=where)
    counts = {table.number_names[j]: int(absent[j]) for j in np.flatnonzero(absent)}
    first = {table.number_names[j]: int(begin[j]) for j in np.flatnonzero(absent)}
    for column, values in table.categories.items():
        empty = np.flatnonzero([v is None for v in values])
        if len(empty):
            counts[column], first[column] = len(empty), int(empty[0])
            rows[empty] = True
    return MissingValues(counts, first, rows)


def check_present(absent: Mapping[str, MissingValues], *, advice: str = PASS_ONE) -> None:
    """Refuse missing values, with how many there are, where the first one is, and what to do."""
    found = [(sample, column, count) for sample, where in absent.items() for column, count in where.counts.items()]
    if found:
        sample, column, _ = found[0]
        row, counts = int(absent[sample].first[column]), DeferredText(_say_counts, found)
        rule = "Values must not be missing (NaN). Found {counts}, the first in row {row} of {sample} (counted from 0). " + advice
        raise InputError(rule, sample=sample, column=column, row=row, counts=counts, drop=DROP, impute=IMPUTE)


def _say_counts(words: Words, found: list[tuple[str, str, int]]) -> str:
    shown = ", ".join(f"{count} in {name_some([column])} of {words.sample(sample)}" for sample, column, count in found[:MOST])
    return shown + (f" and more in {pluralize(len(found) - MOST, 'other column')}" if len(found) > MOST else "")


def drop_missing(
    table: Table, name: str, absent: MissingValues, notes: list[str], *, least: int = 2, advice: str = "try {impute}"
) -> Table:
    """Return the rows without missing values, and note how many were dropped."""
    keep: Rows = np.flatnonzero(~absent.rows)
    if len(keep) == table.rows:
        return table
    dropped = "{dropped} of {rows} rows of {sample} dropped for missing values"
    notes.append(Note(dropped, dropped=table.rows - len(keep), rows=table.rows, sample=SampleName(name)))
    if len(keep) < least:
        rule = "Each sample must have at least {least} without missing values. {Sample} has {rows}; " + advice + "."
        raise InputError(rule, sample=name, least=pluralize(least, "row"), rows=len(keep), drop=DROP, impute=IMPUTE)
    return replace(table.take(keep), lost={of: values[absent.rows] for of, values in table.design_values.items()})
