"""Columns of two samples, matched by name where both have them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cpmmd.data.numbers import Chosen
from cpmmd.data.table import Table
from cpmmd.errors import InputError, Said, SampleName, Words, name_some


def only_in(columns: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the columns that others do not have, in their order."""
    known = set(others)
    return [column for column in columns if column not in known]


def match_columns(a: Table, b: Table) -> Table:
    """Return ``b`` with the columns in the order of ``a``; names decide where both samples have them."""
    if len(a.names) != len(b.names):
        raise InputError(
            "Both samples must have the same columns. Got {m} in {x} and {n} in {y}{difference}; drop or add columns so that "
            "they match.",
            m=len(a.names),
            n=len(b.names),
            difference=Said(_name_difference, a, b),
            x=SampleName("x"),
            y=SampleName("y"),
        )
    if not (a.named and b.named):
        return _match_positions(a, b)
    if set(a.names) != set(b.names):
        raise InputError(
            "Both samples must have the same column names{difference}; rename or drop columns.",
            difference=Said(_name_difference, a, b),
        )
    _check_kinds(a, b)
    order = [b.number_names.index(name) for name in a.number_names]
    return replace(b, numbers=Chosen(b.numbers, columns=np.array(order, dtype=int)), number_names=a.number_names)


def _match_positions(a: Table, b: Table) -> Table:
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


def _check_kinds(a: Table, b: Table) -> None:
    clash = sorted(set(a.number_names) & set(b.categories) | set(b.number_names) & set(a.categories) | (a.dates ^ b.dates))
    if clash:
        raise InputError(
            f"A column must be of one kind in both samples. {name_some(clash)} are numbers, dates or text in one and "
            "something else in the other; convert them."
        )


def _name_difference(words: Words, a: Table, b: Table) -> str:
    """Say which columns only one of two named tables has, in brackets."""
    if not (a.named and b.named):
        return ""
    only = {"x": sorted(only_in(a.names, b.names)), "y": sorted(only_in(b.names, a.names))}
    parts = [f"only in {words.sample(name)}: {name_some(columns)}" for name, columns in only.items() if columns]
    return f" ({'; '.join(parts)})" if parts else ""
