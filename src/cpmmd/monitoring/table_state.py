"""A table as arrays and plain JSON, and back, and the checks that what comes from a file must pass."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np

from cpmmd.core.arrays import Rows
from cpmmd.core.plain import PlainDict
from cpmmd.data.design_options import as_texts
from cpmmd.data.numbers import Matrix
from cpmmd.data.table import Objects, Table
from cpmmd.kernels.base import Tensors


def pack_table(table: Table) -> tuple[Tensors, PlainDict]:
    """Return a table as arrays and a description in plain JSON types."""
    tensors: Tensors = {"numbers": np.asarray(table.numbers)}
    if table.kept is not None:
        tensors["kept"] = table.kept.astype(np.int64)
    aside = {name: as_texts(values) for name, values in table.aside.items()}
    for i, values in enumerate((*table.categories.values(), *aside.values())):
        levels = sorted({v for v in values if v is not None})
        position: dict[Any, int] = {None: -1, **{level: j for j, level in enumerate(levels)}}
        tensors[f"codes.{i}"] = np.array([position[v] for v in values], dtype=np.int64)
        tensors[f"levels.{i}"] = np.frombuffer(json.dumps(levels).encode(), dtype=np.uint8)
    return tensors, {
        "numbers": list(table.number_names),
        "dates": sorted(table.dates),
        "categories": list(table.categories),
        "columns": list(table.columns),
        "named": table.named,
        "row_shape": list(table.row_shape),
        "kinds": dict(table.kinds),
        **({"aside": list(aside)} if aside else {}),
    }


def unpack_table(described: PlainDict, tensors: Tensors) -> Table:
    """Return back the table that :func:`pack_table` packed."""
    number_names, categories = texts_of(described["numbers"]), texts_of(described["categories"])
    columns, shape = texts_of(described["columns"]), tuple(described["row_shape"])
    numbers = tensors["numbers"]
    require(numbers.dtype == np.float64 and numbers.ndim == 2, "its numbers are no matrix")
    require(numbers.shape[1] == len(number_names), "its numbers do not fit their names")
    names = (*number_names, *categories)
    require(sorted(names) == sorted(columns) and len(set(names)) == len(names) > 0, "its columns are not named once each")
    require(all(type(k) is int and k > 0 for k in shape) and math.prod(shape) == len(columns), "its rows have no such shape")
    dates = frozenset(texts_of(described["dates"]))
    require(dates <= set(number_names) and type(described["named"]) is bool, "its dates are no columns")
    texts = {c: _unpack_category(tensors, i, len(numbers)) for i, c in enumerate(categories)}
    aside = texts_of(described.get("aside", []))
    apart = {c: _unpack_category(tensors, i, len(numbers)) for i, c in enumerate(aside, len(categories))}
    kinds, kept = described["kinds"], tensors.get("kept")
    require(kinds.keys() <= set(number_names) and set(kinds.values()) <= {"integer", "boolean"}, "it has kinds of no column")
    if kept is not None:
        kept = whole_numbers(kept, 0, 2**62)
        require(len(kept) == len(numbers), "its rows are not numbered")
    return Table(Matrix(numbers), number_names, dates, texts, described["named"], shape, kinds, kept, columns, apart)


def _unpack_category(tensors: Tensors, i: int, rows: int) -> Objects:
    levels = (*texts_of(json.loads(tensors[f"levels.{i}"].tobytes())), None)
    codes = whole_numbers(tensors[f"codes.{i}"], -1, len(levels) - 1)
    require(len(codes) == rows, "its categories do not fit its rows")
    values = np.empty(rows, dtype=object)
    values[:] = [levels[code] for code in codes.tolist()]
    return values


def require(fulfilled: bool, otherwise: str) -> None:
    """Refuse a file for a reason."""
    if not fulfilled:
        raise ValueError(otherwise)


def texts_of(values: Any) -> tuple[str, ...]:
    """Return a list of text."""
    require(isinstance(values, list) and all(isinstance(v, str) for v in values), "it has no text where text belongs")
    return tuple(values)


def whole_numbers(values: Any, low: int, high: int) -> Rows:
    """Return whole numbers with low <= value < high."""
    require(values.dtype == np.int64 and values.ndim == 1, "it has no whole numbers where they belong")
    require(bool(((values >= low) & (values < high)).all()), "it has row or column numbers that do not exist")
    return np.asarray(values, dtype=np.intp)
