"""A later table in the form of a reference: columns by name, kinds converted where that is safe, what does not fit named."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime

import numpy as np

from cpmmd.core.arrays import Array, Objects
from cpmmd.core.text import pluralize
from cpmmd.data.design import DesignOptions, as_texts
from cpmmd.data.numbers import Matrix
from cpmmd.data.pool import only_in
from cpmmd.data.sources import bring_here
from cpmmd.data.table import Table, as_days, as_frame, from_frame, read_table
from cpmmd.errors import InputError, name_some, nearest

TRUTH = {"true": 1.0, "false": 0.0}


def match_schema(data: object, reference: Table, name: str) -> tuple[Table, tuple[str, ...]]:
    """Return ``data`` with the columns and kinds of ``reference``, and notes on what was done; ``name`` is what messages call it.

    Other orders are undone and other columns ignored. Text becomes numbers or dates, and whole numbers the names of known
    categories, where every value does; absent columns and any other change of kind are refused.
    """
    data, of_reading = (data, ()) if isinstance(data, Table) else bring_here(data, name)
    notes = list(of_reading)
    frame = None if isinstance(data, Table) else as_frame(data, name)
    if reference.named and frame is not None:
        table = from_frame(frame, name, only=reference.columns)
        vectors = {column.rpartition("[")[0] for column in table.columns}
        unread = [str(column) for column in frame.columns if str(column) not in {*table.columns, *vectors}]
        _check_columns([*table.columns, *unread], reference, name, notes)
    else:
        table = read_table(data if isinstance(data, Table) else _numbers_in_text(data, notes), name)
        if not (reference.named and table.named):
            return _by_position(table, reference, name, notes), tuple(notes)
        _check_columns(list(table.columns), reference, name, notes)
    table = _convert(table, reference, name, notes)
    for column, values in table.categories.items():
        new = {v for v in values if v is not None} - set(reference.categories[column])
        if new:
            rows = pluralize(sum(v in new for v in values), "row holds", "rows hold")
            notes.append(f"column {column!r}: {rows} categories unseen in the reference: {name_some(sorted(new))}")
    return table, tuple(notes)


def match_schema_beside(design: DesignOptions, data: object, reference: Table, name: str) -> tuple[Table, tuple[str, ...]]:
    """Match the schema, and keep the values of columns that a design names, which are not compared."""
    if not design.columns:
        return match_schema(data, reference, name)
    read = design.split_design_columns(read_table(data, name), name)
    table, notes = match_schema(read, reference, name)
    return replace(table, design_values=read.design_values), notes


def _check_columns(columns: list[str], reference: Table, name: str, notes: list[str]) -> None:
    extra, absent = only_in(columns, reference.columns), only_in(reference.columns, columns)
    if absent:
        near = nearest(absent[0], extra)
        if any(column.startswith(f"{absent[0]}[") for column in extra):  # a column of vectors is one column a place
            hint = f" The {name} has vectors in {absent[0]!r}, where the reference has single values; convert one of them."
        elif near is not None:
            hint = f" Is {absent[0]!r} its {near!r}? Rename it."
        else:
            hint = " Add them, or fit without them."
        raise InputError(f"The {name} must have the reference's columns. It lacks {name_some(absent)}.{hint}")
    if extra:
        notes.append(f"columns that the reference does not have are ignored: {name_some(extra)}")


def _by_position(table: Table, reference: Table, name: str, notes: list[str]) -> Table:
    if reference.categories or table.categories or reference.dates or table.dates:
        raise InputError(f"Text and dates are matched by column name: pass reference and {name} as data frames. Got an array.")
    if len(table.names) != len(reference.names):
        columns = pluralize(len(reference.names), "column")
        raise InputError(f"The {name} must have the reference's {columns}. Got {len(table.names)}.")
    if table.named != reference.named:
        notes.append(f"columns taken by position: only one of reference and {name} has column names")
    elif table.row_shape != reference.row_shape:
        raise InputError(f"Rows of the {name} must have the reference's shape {reference.row_shape}. Got {table.row_shape}.")
    kinds = {a: table.kinds[b] for a, b in zip(reference.number_names, table.number_names, strict=True) if b in table.kinds}
    return replace(reference, numbers=table.numbers, kinds=kinds, kept=table.kept)


def _numbers_in_text(data: object, notes: list[str]) -> object:
    """Return arrays of text that are numbers as numbers, anything else as it is: reading it has the sentence."""
    if isinstance(data, (list, tuple, np.ndarray)):
        with suppress(ValueError):
            array = np.asarray(data)
            if array.dtype.kind == "U":
                numbers = array.astype(np.float64)
                notes.append("text converted to numbers")
                return numbers
    return data


def _convert(table: Table, reference: Table, name: str, notes: list[str]) -> Table:
    """Return the reference's columns in its order, each in its kind there."""
    text_to: dict[str, list[str]] = {"numbers": [], "dates": []}
    read, numbers = np.asarray(table.numbers), np.empty((table.rows, len(reference.number_names)))
    for j, column in enumerate(reference.number_names):
        want, got = ("dates" if column in side.dates else "numbers" for side in (reference, table))
        if column in table.categories:
            numbers[:, j] = _parse(table.categories[column], column, want, name)
            text_to[want].append(column)
            continue
        numbers[:, j] = read[:, table.number_names.index(column)]
        if got != want and not np.isnan(numbers[:, j]).all():
            raise _other_kind(column, want, got, name)
    categories, named = dict(table.categories), list[str]()
    for column in only_in(tuple(reference.categories), tuple(table.categories)):
        values = read[:, table.number_names.index(column)]
        got, known = ("dates", set()) if column in table.dates else ("numbers", set(reference.categories[column]))
        categories[column] = as_texts(values)
        if {v for v in categories[column] if v is not None} - known:
            raise _other_kind(column, "text", got, name)
        if not np.isnan(values).all():
            named.append(column)
    notes += [f"text converted to {kind} in columns {name_some(done)}" for kind, done in text_to.items() if done]
    notes += [f"numbers converted to categories in columns {name_some(named)}"] if named else []
    return replace(
        reference,
        numbers=Matrix(numbers),
        categories={column: categories[column] for column in reference.categories},
        kinds={column: kind for column, kind in table.kinds.items() if column in reference.number_names},
        kept=table.kept,
    )


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
            raise InputError(
                f"Column {column!r} holds {want} in the reference. The {name} has other text there, such as "
                f"{name_some([text])}. Correct those values or convert the column."
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
