"""A monitor's state as arrays and plain JSON, and back; what comes from a file is checked as a stranger's."""

from __future__ import annotations

import hashlib
import math
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict
from cpmmd.data.table import Table
from cpmmd.kernels.base import Tensors
from cpmmd.monitoring.answers import Since, content_digest, estimate, recall
from cpmmd.monitoring.bets import Saffron
from cpmmd.monitoring.blocks import Look, first_looks, wealth_of
from cpmmd.monitoring.detector_storage import OWN, pack_table, require, texts_of, unpack_table, whole_numbers
from cpmmd.monitoring.past import Past
from cpmmd.storage.kernels import describe_method, restore_method

# What a monitor knows between two batches.


RECENT = 1000  # answers that are kept: batches sent again are known among them
KEY = 32  # hexadecimal digits of a batch's key: half of them say whose it is
CANDIDATES = 100  # batches among which a change is looked for


def identify(reference: Table, seed: int, method: str, alpha: float) -> str:
    """Return what the keys of a monitor's batches begin with."""
    return hashlib.sha256(f"{seed} {method} {alpha} {content_digest(reference)}".encode()).hexdigest()[: KEY // 2]


@dataclass(frozen=True, eq=False)
class MonitorState:
    """Everything a fitted monitor answers from."""

    params: PlainDict  # the constructor's parameters
    seed: int  # what all randomness comes from
    past: Past  # rows that came before
    # looks, fdr: the evidence so far
    looks: tuple[Look, ...]
    fdr: Saffron
    number: int = 0  # batches so far
    start: int = 1  # the first batch of this episode
    episode: int = 0  # how often an alarm was acknowledged or dismissed
    raised: int | None = None  # the batch at which the wealth reached its limit; None while it has not
    recent: tuple[PlainDict, ...] = ()  # records of the latest answers
    notes: tuple[str, ...] = ()  # what fitting had to say
    # A digest of the reference, the method, the level and the seed: tells the monitor from others in one history
    identity: str = ""

    @property
    def wealth(self) -> float:
        """The evidence so far."""
        return wealth_of(self.looks)

    def since(self, name: str, rank: int, total: int) -> Since | None:
        """While there is an alarm, where it began: at the latest batch, which had this rank, or before."""
        if self.raised is None:
            return None
        answers = [record for record in self.recent[-CANDIDATES + 1 :] if record["episode"] == self.episode]
        seen = [(one["batch"], one["number"], (one["looks"][0]["rank"], one["looks"][0]["total"])) for one in answers]
        return estimate(*zip(*seen, (name, self.number, (rank, total)), strict=True))

    def key(self, table: Table, name: str | None) -> str:
        """Return what a batch is known by: its name and rows, or its number, and whose it is."""
        which = f"unnamed {self.number + 1}" if name is None else f"named {name} {content_digest(table)}"
        return (self.identity + hashlib.sha256(f"{self.seed} {which}".encode()).hexdigest())[:KEY]

    def find(self, key: str) -> PlainDict | None:
        """Return the record of a batch that came before."""
        return next((record for record in reversed(self.recent) if record["key"] == key), None)

    def raise_alarm(self, limit: float) -> MonitorState:
        """Return the state with an alarm where the wealth has reached its limit; one that is there stays."""
        return replace(self, raised=self.number) if self.raised is None and self.wealth >= limit else self

    def remember(self, record: PlainDict) -> MonitorState:
        """Return the state with one more answer."""
        return replace(self, recent=(*self.recent[-RECENT + 1 :], record))

    def start_anew(self, past: Past) -> MonitorState:
        """Return the state of an episode that begins with the next batch: no evidence yet."""
        looks = first_looks(tuple(look.batches for look in self.looks), self.params["bet"])
        return replace(
            self,
            past=past,
            looks=looks,
            fdr=Saffron(self.fdr.fdr),
            start=self.number + 1,
            episode=self.episode + 1,
            raised=None,
        )


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
