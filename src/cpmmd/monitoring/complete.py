"""Rows that come to a monitor that is fitted: enough of them, with their missing values dealt with as it was fitted to."""

from __future__ import annotations

from cpmmd.core.text import counted
from cpmmd.data.gaps import check_present, drop_missing, find_gaps
from cpmmd.data.table import Table
from cpmmd.errors import InputError

# How missing values are dealt with is part of a monitor: one way for all batches, or changing it would change the data.
OTHER_WAY = (
    "Leave those rows out, or fit a new monitor with {drop}, which does so, or {impute}, which fills them in and tests "
    "missingness too."
)
TOO_FEW = "leave it out, or fit a new monitor with {impute}"


def complete(table: Table, sample: str, *, missing: str, least: int) -> tuple[Table, tuple[str, ...]]:
    """Return at least so many rows without missing values that were to be refused or dropped, and notes."""
    if table.rows < least:
        raise InputError(
            "{Sample} must have at least {least}. Got {rows}.", sample=sample, least=counted(least, "row"), rows=table.rows
        )
    gaps, notes = find_gaps(table, sample), list[str]()
    if missing == "error":
        check_present({sample: gaps}, advice=OTHER_WAY)
    elif missing == "drop":
        table = drop_missing(table, sample, gaps, notes, least=least, advice=TOO_FEW)
    return table, tuple(notes)
