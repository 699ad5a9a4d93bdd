"""Inputs, target and predictions of two samples: what :func:`cpmmd.change_test` reads before any test."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.data.missing import IMPUTE, check_present, find_missing
from cpmmd.data.numbers import Matrix, category_text
from cpmmd.data.pool import match_columns, pool_tables
from cpmmd.data.table import Table, read_table
from cpmmd.errors import InputError, Note, SampleName, name_some, unknown_name

REFERENCE, NEW = "reference", "new sample"
LOSSES = ("squared", "absolute", "zero-one")
NO_NAMES = (
    "{parameter} names a column, {column!r}, but {sample} is an array, whose columns have no names. Pass an array for each "
    "sample instead."
)
NO_ERRORS = "Target and predictions are not filled in where errors are divided; use {drop}."


@dataclass(frozen=True, eq=False)
class Parts:
    """Inputs and target of both samples, and the model's loss on every row."""

    inputs: tuple[Table, Table]
    target: tuple[Table, Table]
    names: tuple[str, ...]  # of the target's columns
    losses: Array | None
    loss: str
    notes: tuple[str, ...]

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of both samples."""
        m, n = (table.rows for table in self.inputs)
        return m, n


def read_parts(reference: Any, new: Any, target: Any, predictions: Any, loss: str | None, missing: str) -> Parts:
    """Read both samples and divide their columns; rows with missing values are refused, dropped, or left to be filled in."""
    tables = {REFERENCE: read_table(reference, REFERENCE), NEW: read_table(new, NEW)}
    notes = [note for table in tables.values() for note in table.notes]
    targets, tables = _divide(tables, target, "target")
    predicted, tables = _divide(tables, predictions, "predictions") if predictions is not None else (None, tables)
    for name, table in tables.items():
        if not table.names:
            raise InputError("There must be a column of inputs. {Sample} has none beside the target.", sample=name)
    parts = [match_columns(tables), match_columns(targets)]
    if predicted is not None:
        parts.append(match_columns(predicted))
    for name in (REFERENCE, NEW):
        absent = [find_missing(part[name], name) for part in parts]
        if missing == "error":
            for found in absent:
                check_present({name: found})
        if missing == "impute" and predicted is not None:
            check_present({name: absent[1]}, advice=NO_ERRORS)
            check_present({name: absent[2]}, advice=NO_ERRORS)
        gone = np.any([found.rows for found in absent], axis=0)
        if missing == "drop" and gone.any():
            text = "{dropped} of {rows} rows of {sample} dropped for missing values"
            notes.append(Note(text, dropped=int(gone.sum()), rows=len(gone), sample=SampleName(name)))
            for part in parts:
                part[name] = part[name].take(~gone)
        if parts[0][name].rows < 2:
            rule = "Each sample must have at least 2 rows without missing values. {Sample} has {rows}; try {impute}."
            raise InputError(rule, sample=name, rows=parts[0][name].rows, impute=IMPUTE)
    inputs, outcomes = ((part[REFERENCE], part[NEW]) for part in parts[:2])
    _check_varied(outcomes)
    losses, kind = (None, "") if predicted is None else _losses(outcomes, (parts[2][REFERENCE], parts[2][NEW]), loss)
    called = outcomes[0].columns or outcomes[0].names
    names = [f"target {name}" if name.isdigit() else name for name in called]
    return Parts(inputs, outcomes, tuple(names), losses, kind, tuple(dict.fromkeys(notes)))


def _divide(tables: Mapping[str, Table], wanted: Any, parameter: str) -> tuple[dict[str, Table], dict[str, Table]]:
    """Return the columns that were named, or the arrays that were passed, as tables, and the tables without them."""
    names = [wanted] if isinstance(wanted, str) else wanted
    if isinstance(names, (list, tuple)) and names and all(isinstance(name, str) for name in names):
        for sample, table in tables.items():
            for name in names:
                if not table.named:
                    raise InputError(NO_NAMES, parameter=parameter, sample=sample, column=name)
                if name not in table.names:
                    raise unknown_name("column", name, table.names, parameter=parameter)
        kept = {sample: [name for name in table.names if name not in names] for sample, table in tables.items()}
        return (
            {sample: table.select(names) for sample, table in tables.items()},
            {sample: table.select(kept[sample]) for sample, table in tables.items()},
        )
    if not isinstance(wanted, (list, tuple)) or len(wanted) != len(tables):
        raise validation.wrong(
            parameter, "must be the name of a column, or a pair of arrays, one for each sample", type(wanted).__name__
        )
    found = {sample: _column(part, sample) for sample, part in zip(tables, wanted, strict=True)}
    for sample, table in tables.items():
        if found[sample].rows != table.rows:
            rule = "{parameter} must have a value for each row. Got {got} for the {rows} rows of {sample}."
            raise InputError(rule, parameter=parameter, sample=sample, got=found[sample].rows, rows=table.rows)
    return _alike(found), dict(tables)


def _alike(columns: dict[str, Table]) -> dict[str, Table]:
    """Return single columns, such as ``y_train`` and ``y_test``, under the name of the first, or as the target."""
    first = columns[REFERENCE].names
    if any(len(table.names) != 1 for table in columns.values()):
        return columns
    name = "target" if first[0].isdigit() else first[0]
    return {sample: table.rename(name) for sample, table in columns.items()}


def _column(values: Any, sample: str) -> Table:
    """Return a target that was passed by itself; text may come as an array or a list."""
    plain = np.asarray(values) if isinstance(values, (list, tuple)) else values
    if isinstance(plain, np.ndarray) and plain.dtype.kind in "OUS" and plain.ndim == 1:
        texts = np.empty(len(plain), dtype=object)
        texts[:] = [category_text(value) for value in plain.tolist()]
        numbers = Matrix(np.empty((len(plain), 0)))
        return Table(numbers, (), frozenset(), {"0": texts}, named=True, row_shape=(1,), columns=("0",))
    return read_table(plain, sample)


def _check_varied(target: tuple[Table, Table]) -> None:
    """Refuse a target that is one value in both samples."""
    pool = pool_tables(*target)
    numbers = np.asarray(pool.numbers)
    still = [name for j, name in enumerate(pool.number_names) if len(np.unique(numbers[:, j])) == 1]
    still += [name for name, values in pool.categories.items() if len(set(values)) == 1]
    if len(still) == len(pool.columns):
        raise InputError(
            "The target must vary. {names} has one value in all rows of both samples. Choose another target.",
            parameter="target",
            names=name_some(still),
        )


def _losses(target: tuple[Table, Table], predicted: tuple[Table, Table], loss: str | None) -> tuple[Array, str]:
    """Return the loss of each row's prediction, and its name."""
    y, found = pool_tables(*target), pool_tables(*predicted)
    if len(y.columns) != 1 or len(found.columns) != 1:
        rule = "{parameter} must be of one target. Got {predicted} columns of predictions for {columns} of the target."
        raise InputError(rule, parameter="predictions", predicted=len(found.columns), columns=len(y.columns))
    text = bool(y.categories)
    if text != bool(found.categories):
        kinds = ["text" if table.categories else "numbers" for table in (found, y)]
        raise InputError(
            "{parameter} must be of the target's kind. Got {of} for a target of {kind}.",
            parameter="predictions",
            of=kinds[0],
            kind=kinds[1],
        )
    kind = loss or ("zero-one" if text else "squared")
    if text:
        if kind != "zero-one":
            raise validation.wrong("loss", "must be 'zero-one' where the target is text", kind)
        (a,), (b,) = y.categories.values(), found.categories.values()
        return (a != b).astype(np.float64), kind
    apart = np.asarray(y.numbers)[:, 0] - np.asarray(found.numbers)[:, 0]
    if kind == "zero-one":
        return (apart != 0).astype(np.float64), kind
    return np.square(apart) if kind == "squared" else np.abs(apart), kind
