"""A monitor's state as arrays and plain JSON, and back; what comes from a file is checked as a stranger's."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict
from cpmmd.kernels.base import Tensors
from cpmmd.monitoring.answers import recall
from cpmmd.monitoring.detector_state import OWN
from cpmmd.monitoring.looks import Look, first_looks
from cpmmd.monitoring.monitor_state import MonitorState
from cpmmd.monitoring.online_fdr import Saffron
from cpmmd.monitoring.past import Past
from cpmmd.monitoring.table_state import pack_table, require, texts_of, unpack_table, whole_numbers
from cpmmd.storage.methods import describe_method, restore_method

COUNTS = ("seed", "number", "start", "episode")


def pack(state: MonitorState) -> tuple[Tensors, PlainDict]:
    """Return a state as arrays and a description in plain JSON types."""
    tensors, table = pack_table(state.past.table)
    tensors["batch_numbers"] = state.past.numbers.astype(np.int64)
    for look in state.looks:
        tensors[f"bet.{look.batches}"] = look.bet.tensor()
        tensors[f"wealth.{look.batches}"] = np.array([look.log_wealth])
    params = {name: describe_method(value) for name, value in state.params.items() if name not in OWN}
    return tensors, {
        "params": {**params, "looks": list(state.params["looks"])},
        **{name: getattr(state, name) for name in COUNTS},
        "raised": state.raised,
        "past": table,
        "found": {"seen": state.fdr.seen, "candidates": state.fdr.candidates, "found": [list(one) for one in state.fdr.found]},
        "recent": list(state.recent),
        "notes": list(state.notes),
        "identity": state.identity,
    }


def unpack(description: PlainDict, tensors: Tensors, *, module: Any = None) -> MonitorState:
    """Return back the state that :func:`pack` packed; ``module`` is a torch module that the file only names."""
    params = {name: restore_method(value, module=module) for name, value in description["params"].items()}
    require(not OWN & params.keys(), "it sets what is not its own to set")
    for name in COUNTS:
        require(type(description[name]) is int and description[name] >= 0, f"its {name} is no whole number")
    raised = description["raised"]
    require(raised is None or type(raised) is int, "its alarm has no number")
    table = unpack_table(description["past"], tensors)
    numbers = whole_numbers(tensors["batch_numbers"], 0, description["number"] + 1)
    require(len(numbers) == table.rows >= 1, "its rows have no batches")
    return MonitorState(
        params={**params, "rng": description["seed"]},
        past=Past(table, numbers),
        looks=_restore_looks(first_looks(params["looks"], params["bet"]), tensors),
        fdr=_restore_found(description["found"], params["fdr"]),
        raised=raised,
        recent=tuple(_checked(record) for record in description["recent"]),
        notes=texts_of(description["notes"]),
        identity=_hexadecimal(description.get("identity", "")),
        **{name: description[name] for name in COUNTS},
    )


def _restore_looks(looks: tuple[Look, ...], tensors: Tensors) -> tuple[Look, ...]:
    """Return the looks with the bets of a file. One from before looks kept their wealth began with equal shares of it."""
    restored = []
    for look in looks:
        bet = look.bet.restore(_numbers(tensors[f"bet.{look.batches}"]))
        known = tensors.get(f"wealth.{look.batches}")
        log_wealth = bet.log_wealth - math.log(len(looks)) if known is None else _numbers(known).item()
        restored.append(replace(look, bet=bet, log_wealth=log_wealth))
    return tuple(restored)


def _hexadecimal(identity: Any) -> str:
    require(isinstance(identity, str) and set(identity) <= set("0123456789abcdef"), "it does not say which monitor it is")
    return str(identity)


def _numbers(values: Array) -> Array:
    require(values.dtype == np.float64 and values.ndim == 1 and bool(np.isfinite(values).all()), "its bets are no numbers")
    return values


def _restore_found(described: PlainDict, fdr: Any) -> Saffron:
    found = tuple((int(seen), int(candidates)) for seen, candidates in described["found"])
    return Saffron(float(fdr), int(described["seen"]), int(described["candidates"]), found)


def _checked(record: PlainDict) -> PlainDict:
    """Return a record from a file; one that is no answer fails here, not when it is wanted."""
    recall(record)
    return record
