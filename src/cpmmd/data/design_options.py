"""What a caller says about the design: groups, strata, pairs, blocks; each a column, or an array for each sample."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cpmmd.core import validation
from cpmmd.core.arrays import Rows
from cpmmd.core.text import counted
from cpmmd.data.numbers import Chosen
from cpmmd.data.scalars import category_text, is_missing
from cpmmd.data.table import Objects, Table
from cpmmd.errors import InputError, Setting, unknown_name

AUTO = "auto"
NAMED = ("groups", "strata", "pairs")
# What does not go together, and why.
AT_ODDS = {
    ("groups", "blocks"): "blocks are groups of consecutive rows",
    ("pairs", "strata"): "pairs are strata of two already",
    ("pairs", "blocks"): "pairs change places one by one",
}


@dataclass(frozen=True, eq=False)
class DesignOptions:
    """The design as it was passed.

    Attributes
    ----------
    groups, strata, pairs
        The name of a column of both samples, or an array for each; None where there are none.
    blocks
        Rows of a block, or ``"auto"``.
    """

    groups: Any = None
    strata: Any = None
    pairs: Any = None
    blocks: Any = None

    def __post_init__(self) -> None:
        for (one, other), why in AT_ODDS.items():
            if one in self.given and other in self.given:
                raise InputError(
                    "{one} and {other} cannot be given together: " + why + ". Leave one of them out.",
                    one=Setting(one),
                    other=Setting(other),
                )
        if isinstance(self.blocks, str):
            if self.blocks != AUTO:
                raise validation.wrong("blocks", "must be a number of rows or 'auto'", self.blocks)
        elif self.blocks is not None:
            validation.whole("blocks", self.blocks, at_least=1)

    @property
    def given(self) -> dict[str, Any]:
        """What was passed."""
        every = {"groups": self.groups, "strata": self.strata, "pairs": self.pairs, "blocks": self.blocks}
        return {name: value for name, value in every.items() if value is not None}

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that were named."""
        return tuple(dict.fromkeys(v for name, v in self.given.items() if name in NAMED and isinstance(v, str)))

    @property
    def described(self) -> dict[str, str]:
        """The arguments with the columns they named, the number of rows of blocks, or nothing for arrays."""
        return {name: str(v) if isinstance(v, (str, int, np.integer)) else "" for name, v in self.given.items()}

    @property
    def call(self) -> dict[str, Any]:
        """The arguments as they can be typed again: an array by the name of its argument."""
        return {name: v if isinstance(v, (str, int, np.integer)) else Typed(name) for name, v in self.given.items()}

    def set_aside(self, table: Table, sample: str) -> Table:
        """Return a sample without the columns that were named, their values and arrays in ``aside``."""
        chosen = {name: value for name, value in self.given.items() if name in NAMED}
        if not chosen:
            return table
        position = {"x": 0, "y": 1}.get(sample)
        aside = {
            name: _column(table, value, sample, name) if isinstance(value, str) else _array(value, position, table, sample, name)
            for name, value in chosen.items()
        }
        for name, values in aside.items():
            _refuse_missing(values, name, sample)
        return replace(_without(table, self.columns, sample), aside=aside)


class Typed(str):
    """Text that stands for a variable in a call that is typed again."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _column(table: Table, column: str, sample: str, parameter: str) -> npt.NDArray[Any]:
    if not table.named:
        raise InputError(
            "{parameter} names a column, {column!r}, but {sample} is an array, whose columns have no names. Pass an array for "
            "each sample instead.",
            parameter=parameter,
            sample=sample,
            column=column,
        )
    if column in table.categories:
        return table.categories[column]
    if column not in table.number_names:
        raise unknown_name("column", column, table.names, parameter=parameter)
    return table.numbers[:, table.number_names.index(column)]


def _array(value: Any, position: int | None, table: Table, sample: str, parameter: str) -> npt.NDArray[Any]:
    try:
        parts = [_as_array(part) for part in value]
    except (TypeError, ValueError):
        parts = []
    if len(parts) != 2 or position is None or any(part.ndim != 1 for part in parts):
        raise validation.wrong(
            parameter, "must be the name of a column of both samples, or a pair of arrays, one for each", type(value).__name__
        )
    if len(parts[position]) != table.rows:
        raise InputError(
            "{parameter} must have a value for each row. Got {got} for the {rows} of {sample}.",
            parameter=parameter,
            sample=sample,
            got=len(parts[position]),
            rows=counted(table.rows, "row"),
        )
    return parts[position]


def _as_array(values: Any) -> npt.NDArray[Any]:
    """Return values as an array in which missing ones can still be told: numpy makes text of NaN beside text."""
    if isinstance(values, np.ma.MaskedArray):
        return np.array(values.tolist(), dtype=object)  # None where it is masked
    if isinstance(values, (list, tuple)) and any(is_missing(v) for v in values):
        return np.array(values, dtype=object)
    return np.asarray(values)


def _refuse_missing(values: npt.NDArray[Any], parameter: str, sample: str) -> None:
    gaps = np.isnan(values) if values.dtype.kind == "f" else np.isnat(values) if values.dtype.kind in "mM" else None
    if gaps is None:
        gaps = np.array([category_text(v) is None for v in values]) if values.dtype.kind == "O" else np.zeros(len(values), bool)
    if gaps.any():
        raise InputError(
            "{parameter} must have a value in every row. It is missing in {count} of {sample}, the first of them {row} "
            "(counted from 0); fill them in, or leave those rows out.",
            parameter=parameter,
            sample=sample,
            row=int(gaps.argmax()),
            count=counted(int(gaps.sum()), "row"),
        )


def _without(table: Table, columns: tuple[str, ...], sample: str) -> Table:
    """Return a table without some columns."""
    if not columns:
        return table
    kept = [j for j, name in enumerate(table.number_names) if name not in columns]
    left = {name: values for name, values in table.categories.items() if name not in columns}
    if not kept and not left:
        raise InputError(
            "There must be a column to compare. {Sample} has none but {named}.", sample=sample, named=", ".join(columns)
        )
    every = table.columns or table.names
    return replace(
        table,
        numbers=Chosen(table.numbers, columns=np.array(kept, dtype=np.intp)),
        number_names=tuple(table.number_names[j] for j in kept),
        dates=table.dates - set(columns),
        categories=left,
        kinds={name: kind for name, kind in table.kinds.items() if name not in columns},
        columns=tuple(name for name in every if name not in columns),
        row_shape=(len(kept) + len(left),),
    )


def codes(x: npt.NDArray[Any], y: npt.NDArray[Any], parameter: str) -> tuple[Rows, Objects]:
    """Return a number for each value of both samples, and what each number stands for, as text."""
    if x.dtype.kind != y.dtype.kind and {x.dtype.kind, y.dtype.kind} & set("mM"):
        raise InputError(
            "{parameter} must be of one kind in both samples. Got {of_x} and {of_y}; convert one of them.",
            parameter=parameter,
            of_x=x.dtype,
            of_y=y.dtype,
        )
    if x.dtype.kind == "O" or y.dtype.kind == "O" or (x.dtype.kind in "US") != (y.dtype.kind in "US"):
        x, y = as_texts(x).astype(str), as_texts(y).astype(str)
    levels, numbers = np.unique(np.concatenate([x, y]), return_inverse=True)
    return np.asarray(numbers).ravel(), as_texts(levels)


def as_texts(values: npt.NDArray[Any]) -> Objects:
    """Return values as the text of categories."""
    texts = np.empty(len(values), dtype=object)
    texts[:] = [category_text(v) for v in (values.astype(str) if values.dtype.kind in "mM" else values).tolist()]
    return texts


def all_codes(a: Mapping[str, npt.NDArray[Any]], b: Mapping[str, npt.NDArray[Any]]) -> dict[str, tuple[Rows, Objects]]:
    """Return the codes of everything that was set aside in two samples."""
    return {name: codes(a[name], b[name], name) for name in a}
