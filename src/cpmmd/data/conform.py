"""A later table in the form of a reference: columns by name, kinds converted where that is safe, what does not fit named."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.text import counted
from cpmmd.data.design import DesignOptions
from cpmmd.data.numbers import Matrix
from cpmmd.data.pool import only_in
from cpmmd.data.table import Objects, Table, as_days, as_frame, from_frame, read_table
from cpmmd.errors import InputError, name_some, nearest

TRUTH = {"true": 1.0, "false": 0.0}


def conform(data: Any, reference: Table, name: str) -> tuple[Table, tuple[str, ...]]:
    """Return ``data`` with the columns and kinds of ``reference``, and notes on what was done; ``name`` is what messages call it.

    Other orders are undone and other columns ignored. Text becomes numbers or dates, and whole numbers the names of known
    categories, where every value does; absent columns and any other change of kind are refused.
    """
    notes: list[str] = []
    frame = None if isinstance(data, Table) else as_frame(data, name)
    if reference.named and frame is not None:
        _check_columns([str(column) for column in frame.columns], reference, name, notes)
        table = from_frame(frame, name, only=reference.columns)
    elif reference.named and isinstance(data, Table) and data.named:
        table = read_table(data, name)
        _check_columns(list(table.columns), reference, name, notes)
    else:
        return _by_position(read_table(_numbers_in_text(data, notes), name), reference, name, notes), tuple(notes)
    table = _convert(table, reference, name, notes)
    notes += _note_unseen(table, reference)
    return table, tuple(notes)


def conform_beside(design: DesignOptions, data: Any, reference: Table, name: str) -> tuple[Table, tuple[str, ...]]:
    """Return what :func:`conform` does, with the data's own values of columns that a design names, which are not compared."""
    if not design.columns:
        return conform(data, reference, name)
    read = design.set_aside(read_table(data, name), name)
    table, notes = conform(read, reference, name)
    return replace(table, aside=read.aside), notes


def _check_columns(columns: list[str], reference: Table, name: str, notes: list[str]) -> None:
    extra, absent = only_in(columns, reference.columns), only_in(reference.columns, columns)
    if absent:
        near = nearest(absent[0], extra)
        hint = f" Is {absent[0]!r} its {near!r}? Rename it." if near is not None else " Add them, or fit without them."
        raise InputError(f"The {name} must have the reference's columns. It lacks {name_some(absent)}.{hint}")
    if extra:
        notes.append(f"columns that the reference does not have are ignored: {name_some(extra)}")


def _by_position(table: Table, reference: Table, name: str, notes: list[str]) -> Table:
    if reference.categories or table.categories or reference.dates or table.dates:
        raise InputError(f"Text and dates are matched by column name: pass reference and {name} as data frames. Got an array.")
    if len(table.names) != len(reference.names):
        columns = counted(len(reference.names), "column")
        raise InputError(f"The {name} must have the reference's {columns}. Got {len(table.names)}.")
    if table.named != reference.named:
        notes.append(f"columns taken by position: only one of reference and {name} has column names")
    elif table.row_shape != reference.row_shape:
        raise InputError(f"Rows of the {name} must have the reference's shape {reference.row_shape}. Got {table.row_shape}.")
    kinds = {a: table.kinds[b] for a, b in zip(reference.number_names, table.number_names, strict=True) if b in table.kinds}
    return replace(reference, numbers=table.numbers, kinds=kinds, kept=table.kept)


def _numbers_in_text(data: Any, notes: list[str]) -> Any:
    """Return arrays of text that are numbers as numbers, anything else as it is: reading it has the sentence."""
    if isinstance(data, (list, tuple, np.ndarray)):
        try:
            array = np.asarray(data)
            if array.dtype.kind == "U":
                numbers = array.astype(np.float64)
                notes.append("text converted to numbers")
                return numbers
        except ValueError:
            pass
    return data


def _convert(table: Table, reference: Table, name: str, notes: list[str]) -> Table:
    """Return the reference's columns in its order, each in its kind there."""
    parsed: dict[str, list[str]] = {"numbers": [], "dates": [], "categories": []}
    read, numbers = np.asarray(table.numbers), np.empty((table.rows, len(reference.number_names)))
    for j, column in enumerate(reference.number_names):
        want = "dates" if column in reference.dates else "numbers"
        if column in table.categories:
            numbers[:, j] = _parse(table.categories[column], column, want, name)
            parsed[want].append(column)
            continue
        numbers[:, j] = read[:, table.number_names.index(column)]
        got = "dates" if column in table.dates else "numbers"
        if got != want and not np.isnan(numbers[:, j]).all():
            raise _other_kind(column, want, got, name)
    categories: dict[str, Objects] = {}
    for column, known in reference.categories.items():
        if column in table.categories:
            categories[column] = table.categories[column]
            continue
        got = "dates" if column in table.dates else "numbers"
        categories[column] = _as_categories(read[:, table.number_names.index(column)], column, known, got, name)
        if any(value is not None for value in categories[column]):
            parsed["categories"].append(column)
    notes += [f"{_source(kind)} converted to {kind} in columns {name_some(done)}" for kind, done in parsed.items() if done]
    kinds = {column: kind for column, kind in table.kinds.items() if column in reference.number_names}
    return replace(reference, numbers=Matrix(numbers), categories=categories, kinds=kinds, kept=table.kept)


def _source(kind: str) -> str:
    return "numbers" if kind == "categories" else "text"


def _other_kind(column: str, want: str, got: str, name: str) -> InputError:
    return InputError(f"Column {column!r} holds {want} in the reference. The {name} has {got} there; convert the column.")


def _parse(values: Objects, column: str, want: str, name: str) -> Array:
    """Return text as numbers or days; blank is missing."""
    parse = _as_day if want == "dates" else _as_number
    numbers = np.full(len(values), np.nan)
    for i, text in enumerate(values):
        if text is None or not text.strip():
            continue
        try:
            numbers[i] = parse(text.strip())
        except (ValueError, OverflowError) as error:
            shown = name_some([text])
            raise InputError(
                f"Column {column!r} holds {want} in the reference. The {name} has text there that is none, such as {shown}; "
                "correct those values or convert the column."
            ) from error
    return numbers


def _as_number(text: str) -> float:
    truth = TRUTH.get(text.lower())
    return float(text) if truth is None else truth


def _as_day(text: str) -> float:
    moment = datetime.fromisoformat(text)
    if moment.tzinfo is not None:
        moment = moment.astimezone(UTC).replace(tzinfo=None)
    return float(as_days(np.array([moment], dtype="datetime64[us]"))[0])


def _as_categories(numbers: Array, column: str, known: Objects, got: str, name: str) -> Objects:
    """Return whole numbers as the categories that they name; refused unless each is known."""
    values = np.empty(len(numbers), dtype=object)
    values[:] = [None if np.isnan(v) else str(int(v)) if float(v).is_integer() else str(v) for v in numbers.tolist()]
    unknown = {v for v in values if v is not None} - (set() if got == "dates" else set(known))
    if unknown:
        raise _other_kind(column, "text", got, name)
    return values


def _note_unseen(table: Table, reference: Table) -> list[str]:
    """Name the categories that the reference does not have."""
    notes = []
    for column, values in table.categories.items():
        known = set(reference.categories[column])
        new = sorted({v for v in values if v is not None} - known)
        if new:
            count = sum(v in set(new) for v in values)
            rows = "1 row holds" if count == 1 else f"{count} rows hold"
            notes.append(f"column {column!r}: {rows} categories unseen in the reference: {name_some(new)}")
    return notes
