"""What a fitted detector consists of, as arrays and plain JSON, and back; what comes from a file is checked as a stranger's."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cpmmd.core.plain import PlainDict
from cpmmd.data.pool import check_tables
from cpmmd.data.preparation import Preparation
from cpmmd.data.table import Table
from cpmmd.kernels.base import Tensors
from cpmmd.monitoring.frozen_kernel import FrozenKernel
from cpmmd.monitoring.table_state import pack_table, require, texts_of, unpack_table, whole_numbers
from cpmmd.procedures.base import Choice
from cpmmd.selection.values import Calibration
from cpmmd.storage.kernels import restore_kernel
from cpmmd.storage.methods import describe_method, restore_method

KERNEL = "kernel."  # before the names of a kernel's own arrays
OWN = {"rng", "n_jobs", "progress"}  # parameters that are not in a file: the seed is, and the others belong to the machine


@dataclass(frozen=True, eq=False)
class State:
    """Everything a fitted detector answers from.

    Attributes
    ----------
    params
        The constructor's parameters.
    frozen
        The kernel chosen at fit; None where each batch's test chooses its own.
    notes
        What fitting had to say.
    """

    params: PlainDict
    seed: int
    reference: Table
    frozen: FrozenKernel | None
    notes: tuple[str, ...]


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
