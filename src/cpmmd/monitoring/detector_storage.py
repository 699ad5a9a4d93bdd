"""What a fitted detector consists of, as arrays and plain JSON, and back; what comes from a file is checked as a stranger's."""

from __future__ import annotations

import json
import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpmmd.core.arrays import Rows
from cpmmd.core.plain import PlainDict
from cpmmd.data.design import as_texts
from cpmmd.data.numbers import Matrix
from cpmmd.data.pool import check_tables
from cpmmd.data.preparation import Preparation
from cpmmd.data.table import Objects, Table
from cpmmd.kernels.base import Tensors
from cpmmd.monitoring.frozen_kernel import FrozenKernel
from cpmmd.procedures.base import Choice
from cpmmd.selection.values import Calibration
from cpmmd.storage.kernels import describe_method, restore_kernel, restore_method

# A table as arrays and plain JSON, and back, and the checks that what comes from a file must pass.


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


KERNEL = "kernel."  # before the names of a kernel's own arrays
OWN = {"rng", "n_jobs", "progress"}  # parameters that are not in a file: the seed is, and the others belong to the machine


@dataclass(frozen=True, eq=False)
class State:
    """Everything a fitted detector answers from."""

    params: PlainDict  # the constructor's parameters
    seed: int
    reference: Table
    frozen: FrozenKernel | None  # the kernel chosen at fit; None where each batch's test chooses its own
    notes: tuple[str, ...]  # what fitting had to say


def pack(state: State) -> tuple[Tensors, PlainDict]:
    """Return a state as arrays and a description in plain JSON types."""
    tensors, table = pack_table(state.reference)
    params = {name: describe_method(value) for name, value in state.params.items() if name not in OWN}
    description = {"params": params, "seed": state.seed, "reference": table, "notes": list(state.notes)}
    if state.frozen is None:
        return tensors, {**description, "frozen": None}
    more, frozen = _pack_frozen(state.frozen)
    return {**tensors, **more}, {**description, "frozen": frozen}


def unpack(description: PlainDict, tensors: Tensors, *, module: Any = None) -> State:
    """Return back the state that :func:`pack` packed; ``module`` is a torch module that the file only names."""
    params = {name: restore_method(value, module=module) for name, value in description["params"].items()}
    seed = description["seed"]
    require(type(seed) is int and seed >= 0, "its seed is no whole number")
    require(not OWN & params.keys(), "it sets what is not its own to set")
    reference = unpack_table(description["reference"], tensors)
    checked, _ = check_tables({"reference": reference}, missing=params["missing"])
    require(checked[0].rows == reference.rows, "its reference has missing values")
    frozen = description["frozen"]
    return State(
        params={**params, "rng": seed},
        seed=seed,
        reference=reference,
        frozen=None if frozen is None else _unpack_frozen(frozen, tensors, reference, module),
        notes=texts_of(description["notes"]),
    )


def _pack_frozen(frozen: FrozenKernel) -> tuple[Tensors, PlainDict]:
    choice = frozen.choice
    preparation, calibration = choice.preparation, choice.calibration
    tensors: Tensors = {
        "train_rows": frozen.train_rows.astype(np.int64),
        "test_rows": frozen.test_rows.astype(np.int64),
        **{name: getattr(preparation, name) for name in ("fill", "origin", "scale")},
        **{KERNEL + name: values for name, values in choice.kernel.tensors().items()},
    }
    described = None
    if calibration is not None:
        tensors["ratios"] = calibration.ratios
        described = {"c1": calibration.c1, "alpha": calibration.alpha, "order": calibration.order, "note": calibration.note}
    return tensors, {
        "kernel": choice.kernel.to_dict(),
        "indicators": list(preparation.indicators),
        "levels": [list(levels) for levels in preparation.levels.values()],
        "calibration": described,
        "notes": list(choice.notes),
        "example": frozen.example,
    }


def _unpack_frozen(described: PlainDict, tensors: Tensors, reference: Table, module: Any) -> FrozenKernel:
    weights = {name.removeprefix(KERNEL): values for name, values in tensors.items() if name.startswith(KERNEL)}
    calibration = described["calibration"]
    choice = Choice(
        kernel=restore_kernel(described["kernel"], weights, module=module),
        preparation=_unpack_preparation(described, tensors, reference),
        calibration=None if calibration is None else _unpack_calibration(calibration, tensors),
        notes=texts_of(described["notes"]),
    )
    train_rows, test_rows = (whole_numbers(tensors[n], 0, reference.rows) for n in ("train_rows", "test_rows"))
    both = np.concatenate([train_rows, test_rows])
    require(len(np.unique(both)) == len(both), "a row of its reference is used twice")
    require(len(test_rows) >= 2, "its reference has no rows to test with")
    require(described["example"] is None or isinstance(described["example"], str), "its example has no digest")
    return FrozenKernel(choice, train_rows, test_rows, described["example"])


def _unpack_preparation(described: PlainDict, tensors: Tensors, reference: Table) -> Preparation:
    fill, origin, scale = (tensors[name] for name in ("fill", "origin", "scale"))
    for values in (fill, origin, scale):
        fits = values.dtype == np.float64 and values.shape == (len(reference.number_names),)
        require(fits and bool(np.isfinite(values).all()), "its scaling does not fit its columns")
    require(bool((scale > 0).all()), "its scaling divides by zero")
    levels = [texts_of(kept) for kept in described["levels"]]
    indicators = whole_numbers(np.array(described["indicators"], dtype=np.int64), 0, len(fill))
    return Preparation(
        number_names=reference.number_names,
        fill=fill,
        origin=origin,
        scale=scale,
        indicators=tuple(indicators.tolist()),
        levels=dict(zip(reference.categories, levels, strict=True)),
    )


def _unpack_calibration(described: PlainDict, tensors: Tensors) -> Calibration:
    ratios = tensors["ratios"]
    require(ratios.dtype == np.float64 and ratios.ndim == 1, "its calibration is no list of numbers")
    note = texts_of([described["note"]])[0]
    return Calibration(float(described["c1"]), ratios, float(described["alpha"]), int(described["order"]), note)
