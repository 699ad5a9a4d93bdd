"""What fitted detectors and monitors answer from, as arrays and plain JSON, and back.

What comes from a file is checked as a stranger's word: its description against the dataclasses here, its arrays one by one.
"""

from __future__ import annotations

import hashlib
import json
import math
from abc import abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Literal, NamedTuple, Self, TypeVar

import msgspec
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import Count, PlainDict, from_plain
from cpmmd.data.conform import conform_beside
from cpmmd.data.design import DesignOptions, as_texts
from cpmmd.data.numbers import Matrix
from cpmmd.data.pool import check_tables
from cpmmd.data.preparation import Preparation
from cpmmd.data.table import Objects, Table
from cpmmd.errors import InputError
from cpmmd.kernels.base import Tensors
from cpmmd.monitoring.answers import MonitorAnswer, Since, content_digest, estimate
from cpmmd.monitoring.bets import Look, Saffron, first_looks, wealth_of
from cpmmd.monitoring.blocks import Past
from cpmmd.monitoring.frozen_kernel import FrozenKernel
from cpmmd.procedures.base import Choice
from cpmmd.questions.options import TestOptions
from cpmmd.selection.values import Calibration
from cpmmd.storage.container import read_file, write_file
from cpmmd.storage.kernels import describe_method, restore_kernel, restore_method

if TYPE_CHECKING:
    from torch import nn

Texts = tuple[str, ...]
KERNEL = "kernel."  # before the names of a kernel's own arrays
OWN = {"rng", "n_jobs", "progress"}  # parameters that are not in a file: the seed is, and the others belong to the machine
RECENT = 1000  # answers that are kept: batches sent again are known among them
KEY = 32  # hexadecimal digits of a batch's key: half of them say whose it is
CANDIDATES = 100  # batches among which a change is looked for


@dataclass(frozen=True, eq=False)
class State:
    """Everything a fitted detector answers from."""

    params: PlainDict  # the constructor's parameters
    seed: int  # what all randomness comes from
    reference: Table
    frozen: FrozenKernel | None  # the kernel chosen at fit; None where each batch's test chooses its own
    notes: Texts  # what fitting had to say


@dataclass(frozen=True, eq=False)
class MonitorState:
    """Everything a fitted monitor answers from."""

    params: PlainDict  # the constructor's parameters
    seed: int  # what all randomness comes from
    past: Past  # rows that came before
    looks: tuple[Look, ...]  # the evidence so far
    fdr: Saffron  # which batches differ so far
    number: int = 0  # batches so far
    start: int = 1  # the first batch of this episode
    episode: int = 0  # how often an alarm was acknowledged or dismissed
    raised: int | None = None  # the batch at which the wealth reached its limit; None while it has not
    recent: tuple[MonitorAnswer, ...] = ()  # the latest answers, without their tests
    notes: Texts = ()  # what fitting had to say
    identity: str = ""  # a digest of the reference, the method, the level and the seed: what keys of its batches begin with

    @property
    def wealth(self) -> float:
        """The evidence so far."""
        return wealth_of(self.looks)

    def since(self, name: str, rank: int, total: int) -> Since | None:
        """While there is an alarm, where it began: at the latest batch, which had this rank, or before."""
        if self.raised is None:
            return None
        answers = [answer for answer in self.recent[-CANDIDATES + 1 :] if answer.episode == self.episode]
        seen = [(answer.name, answer.number, (answer.looks[0].rank, answer.looks[0].total)) for answer in answers]
        return estimate(*zip(*seen, (name, self.number, (rank, total)), strict=True))

    def key(self, table: Table, name: str | None) -> str:
        """Return what a batch is known by: its name and rows, or its number, and whose it is."""
        which = f"unnamed {self.number + 1}" if name is None else f"named {name} {content_digest(table)}"
        return (self.identity + hashlib.sha256(f"{self.seed} {which}".encode()).hexdigest())[:KEY]

    def find(self, key: str) -> MonitorAnswer | None:
        """Return the answer about a batch that came before."""
        return next((answer for answer in reversed(self.recent) if answer.key == key), None)

    def raise_alarm(self, limit: float) -> MonitorState:
        """Return the state with an alarm where the wealth has reached its limit; one that is there stays."""
        return replace(self, raised=self.number) if self.raised is None and self.wealth >= limit else self

    def remember(self, answer: MonitorAnswer) -> MonitorState:
        """Return the state with one more answer."""
        return replace(self, recent=(*self.recent[-RECENT + 1 :], MonitorAnswer.recall(answer.to_dict())))

    def start_anew(self, past: Past) -> MonitorState:
        """Return the state of an episode that begins with the next batch: no evidence yet."""
        looks, fdr = first_looks(tuple(look.batches for look in self.looks), self.params["bet"]), Saffron(self.fdr.fdr)
        start, episode = self.number + 1, self.episode + 1
        return replace(self, past=past, looks=looks, fdr=fdr, start=start, episode=episode, raised=None)


def identify(reference: Table, seed: int, method: str, alpha: float) -> str:
    """Return what the keys of a monitor's batches begin with."""
    return hashlib.sha256(f"{seed} {method} {alpha} {content_digest(reference)}".encode()).hexdigest()[: KEY // 2]


S = TypeVar("S", State, MonitorState)


class UnfittedError(InputError, NotFittedError):  # type: ignore[misc]
    """A detector or a monitor was used before it was fitted."""


class FileForm(NamedTuple):
    """How a state is written to a file, and read."""

    kind: str
    pack: Callable[[Any], tuple[Tensors, PlainDict]]
    unpack: Callable[..., Any]


class Fitted(BaseEstimator, Generic[S]):  # type: ignore[misc]
    """What detectors and monitors share: options, a state that they answer from, the columns they expect, and a file."""

    _form: ClassVar[FileForm]
    _state: S

    def save(self, path: str | Path) -> None:
        """Write all that was fitted to a file: the old file or the new one is there, never a part."""
        write_file(path, *self._form.pack(self._fitted()), kind=self._form.kind)

    @classmethod
    def load(cls, path: str | Path, *, module: nn.Module | None = None) -> Self:
        """Return what :meth:`save` wrote: it answers, and goes on, as the one that was saved.

        Loading executes nothing that the file says, and damaged files are refused. ``module`` is the network of your own that the
        method trains, which no file holds.
        """

        def restore(description: object, tensors: Tensors) -> Self:
            state = cls._form.unpack(description, tensors, module=module)
            return cls(**state.params)._begin(state)

        return read_file(path, restore, kind=cls._form.kind)

    @abstractmethod
    def _begin(self, state: S) -> Self:
        """Begin to answer from a state, as the parameters are now: after fitting and after loading alike."""

    def _test_options(self, **instead: object) -> TestOptions:
        """Return the options of the test among the parameters, some of them replaced."""
        given = {option.name: getattr(self, option.name) for option in fields(TestOptions) if hasattr(self, option.name)}
        return TestOptions(**{**given, **instead})

    def _expect(self, table: Table, design: DesignOptions) -> Self:
        """Take the columns of a table for those of every batch."""
        self._like, self._design = table, design
        self.n_features_in_ = len(table.columns)
        self.__dict__.pop("feature_names_in_", None)
        if table.named:
            self.feature_names_in_ = np.array(table.columns, dtype=object)
        return self

    def _conform(self, rows: object, sample: str) -> tuple[Table, Texts]:
        """Return rows with the columns that are expected, and notes on what was done to them."""
        return conform_beside(self._design, rows, self._like, sample)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a reference."""
        return hasattr(self, "_state")

    def _fitted(self) -> S:
        if not self.__sklearn_is_fitted__():
            raise UnfittedError(f"The {self._form.kind} has no reference yet. Call fit(reference) first.")
        return self._state


# What a file says beside its arrays.


@dataclass(frozen=True)
class TableDescription:
    """The columns of a table."""

    numbers: Texts
    dates: Texts
    categories: Texts
    columns: Texts
    named: bool
    row_shape: tuple[Annotated[int, msgspec.Meta(gt=0)], ...]
    kinds: dict[str, Literal["integer", "boolean"]]
    aside: Texts = ()


@dataclass(frozen=True)
class CalibrationDescription:
    """A calibration without its ratios."""

    c1: float
    alpha: float
    order: int
    note: str


@dataclass(frozen=True)
class FrozenDescription:
    """A kernel that was chosen at fit, and its coordinates."""

    kernel: dict[str, Any]  # in the form of its own file
    indicators: tuple[Count, ...]
    levels: tuple[Texts, ...]
    calibration: CalibrationDescription | None
    notes: Texts
    example: str | None


@dataclass(frozen=True)
class DetectorDescription:
    """A detector in a file."""

    params: dict[str, Any]  # in the form of a method
    seed: Count
    reference: TableDescription
    notes: Texts
    frozen: FrozenDescription | None


@dataclass(frozen=True)
class MonitorDescription:
    """A monitor in a file."""

    params: dict[str, Any]
    seed: Count
    number: Count
    start: Count
    episode: Count
    raised: Count | None
    past: TableDescription
    found: dict[str, Any]  # fields of Saffron but for its level, which is a parameter
    recent: tuple[dict[str, Any], ...]  # records
    notes: Texts
    identity: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]*$")] = ""  # files of earlier versions have none


def pack_detector(state: State) -> tuple[Tensors, PlainDict]:
    """Return a state as arrays and a description in plain JSON types."""
    tensors, table = _pack_table(state.reference)
    frozen = None
    if state.frozen is not None:
        more, frozen = _pack_frozen(state.frozen)
        tensors |= more
    return tensors, asdict(DetectorDescription(_describe(state.params), state.seed, table, state.notes, frozen))


def unpack_detector(description: object, tensors: Tensors, *, module: nn.Module | None = None) -> State:
    """Return the state that was packed; ``module`` is a torch module that the file only names."""
    described = from_plain(DetectorDescription, description)
    params, reference = _restore(described.params, described.seed, module), _unpack_table(described.reference, tensors)
    checked, _ = check_tables({"reference": reference}, missing=params["missing"])
    _require(checked[0].rows == reference.rows, "its reference has missing values")
    frozen = None if described.frozen is None else _unpack_frozen(described.frozen, tensors, reference, module)
    return State(params, described.seed, reference, frozen, described.notes)


def pack_monitor(state: MonitorState) -> tuple[Tensors, PlainDict]:
    """Return a state as arrays and a description in plain JSON types."""
    tensors, table = _pack_table(state.past.table)
    tensors["batch_numbers"] = state.past.numbers.astype(np.int64)
    for look in state.looks:
        tensors[f"bet.{look.batches}"] = look.bet.tensor()
        tensors[f"wealth.{look.batches}"] = np.array([look.log_wealth])
    same = {name: getattr(state, name) for name in ("seed", "number", "start", "episode", "raised", "notes", "identity")}
    found = {name: value for name, value in asdict(state.fdr).items() if name != "fdr"}
    recent = tuple(answer.to_dict() for answer in state.recent)
    return tensors, asdict(MonitorDescription(_describe(state.params), past=table, found=found, recent=recent, **same))


def unpack_monitor(description: object, tensors: Tensors, *, module: nn.Module | None = None) -> MonitorState:
    """Return the state that was packed; ``module`` is a torch module that the file only names."""
    described = from_plain(MonitorDescription, description)
    params, table = _restore(described.params, described.seed, module), _unpack_table(described.past, tensors)
    numbers = _whole_numbers(tensors["batch_numbers"], 0, described.number + 1)
    _require(len(numbers) == table.rows >= 1, "its rows have no batches")
    looks = first_looks(params["looks"], params["bet"])
    restored = []
    for look in looks:
        bet = look.bet.restore(_finite(tensors[f"bet.{look.batches}"]))
        known = tensors.get(f"wealth.{look.batches}")  # a file from before looks kept it began with equal shares
        log_wealth = bet.log_wealth - math.log(len(looks)) if known is None else _finite(known).item()
        restored.append(replace(look, bet=bet, log_wealth=log_wealth))
    same = {name: getattr(described, name) for name in ("seed", "number", "start", "episode", "raised", "notes", "identity")}
    fdr = from_plain(Saffron, {**described.found, "fdr": params["fdr"]})
    recent = tuple(MonitorAnswer.recall(record) for record in described.recent)
    return MonitorState(params, past=Past(table, numbers), looks=tuple(restored), fdr=fdr, recent=recent, **same)


def _describe(params: PlainDict) -> PlainDict:
    return {name: describe_method(value) for name, value in params.items() if name not in OWN}


def _restore(described: PlainDict, seed: int, module: nn.Module | None) -> PlainDict:
    _require(not OWN & described.keys(), "it sets what is not its own to set")
    return {**{name: restore_method(value, module=module) for name, value in described.items()}, "rng": seed}


def _pack_table(table: Table) -> tuple[Tensors, TableDescription]:
    tensors: Tensors = {"numbers": np.asarray(table.numbers)}
    if table.kept is not None:
        tensors["kept"] = table.kept.astype(np.int64)
    aside = {name: as_texts(values) for name, values in table.aside.items()}
    for i, values in enumerate((*table.categories.values(), *aside.values())):
        levels = sorted({v for v in values if v is not None})
        position: dict[str | None, int] = {None: -1, **{level: j for j, level in enumerate(levels)}}
        tensors[f"codes.{i}"] = np.array([position[v] for v in values], dtype=np.int64)
        tensors[f"levels.{i}"] = np.frombuffer(json.dumps(levels).encode(), dtype=np.uint8)
    return tensors, TableDescription(
        numbers=table.number_names,
        dates=tuple(sorted(table.dates)),
        categories=tuple(table.categories),
        columns=table.columns,
        named=table.named,
        row_shape=table.row_shape,
        kinds=dict(table.kinds),  # type: ignore[arg-type]
        aside=tuple(aside),
    )


def _unpack_table(described: TableDescription, tensors: Tensors) -> Table:
    numbers, names = tensors["numbers"], (*described.numbers, *described.categories)
    _require(numbers.dtype == np.float64 and numbers.ndim == 2, "its numbers are no matrix")
    _require(numbers.shape[1] == len(described.numbers), "its numbers do not fit their names")
    once = sorted(names) == sorted(described.columns) and len(set(names)) == len(names) > 0
    _require(once, "its columns are not named once each")
    _require(math.prod(described.row_shape) == len(described.columns), "its rows have no such shape")
    _require(set(described.dates) | described.kinds.keys() <= set(described.numbers), "it has dates or kinds of no column")
    texts = [_unpack_texts(tensors, i, len(numbers)) for i in range(len(described.categories) + len(described.aside))]
    kept = tensors.get("kept")
    if kept is not None:
        kept = _whole_numbers(kept, 0, 2**62)
        _require(len(kept) == len(numbers), "its rows are not numbered")
    return Table(
        Matrix(numbers),
        described.numbers,
        frozenset(described.dates),
        dict(zip(described.categories, texts, strict=False)),
        described.named,
        described.row_shape,
        described.kinds,
        kept,
        described.columns,
        dict(zip(described.aside, texts[len(described.categories) :], strict=True)),
    )


def _unpack_texts(tensors: Tensors, i: int, rows: int) -> Objects:
    levels = (*from_plain(Texts, json.loads(tensors[f"levels.{i}"].tobytes())), None)
    codes = _whole_numbers(tensors[f"codes.{i}"], -1, len(levels) - 1)
    _require(len(codes) == rows, "its categories do not fit its rows")
    values = np.empty(rows, dtype=object)
    values[:] = [levels[code] for code in codes.tolist()]
    return values


def _pack_frozen(frozen: FrozenKernel) -> tuple[Tensors, FrozenDescription]:
    choice, described = frozen.choice, None
    preparation, calibration = choice.preparation, choice.calibration
    tensors: Tensors = {
        "train_rows": frozen.train_rows.astype(np.int64),
        "test_rows": frozen.test_rows.astype(np.int64),
        **{name: getattr(preparation, name) for name in ("fill", "origin", "scale")},
        **{KERNEL + name: values for name, values in choice.kernel.tensors().items()},
    }
    if calibration is not None:
        tensors["ratios"] = calibration.ratios
        described = CalibrationDescription(calibration.c1, calibration.alpha, calibration.order, calibration.note)
    levels = tuple(tuple(kept) for kept in preparation.levels.values())
    return tensors, FrozenDescription(
        choice.kernel.to_dict(), tuple(preparation.indicators), levels, described, choice.notes, frozen.example
    )


def _unpack_frozen(described: FrozenDescription, tensors: Tensors, reference: Table, module: nn.Module | None) -> FrozenKernel:
    weights = {name.removeprefix(KERNEL): values for name, values in tensors.items() if name.startswith(KERNEL)}
    kernel = restore_kernel(described.kernel, weights, module=module)
    calibration, known = None, described.calibration
    if known is not None:
        ratios = tensors["ratios"]
        _require(ratios.dtype == np.float64 and ratios.ndim == 1, "its calibration is no list of numbers")
        calibration = Calibration(known.c1, ratios, known.alpha, known.order, known.note)
    train_rows, test_rows = (_whole_numbers(tensors[n], 0, reference.rows) for n in ("train_rows", "test_rows"))
    both = np.concatenate([train_rows, test_rows])
    _require(len(np.unique(both)) == len(both), "a row of its reference is used twice")
    _require(len(test_rows) >= 2, "its reference has no rows to test with")
    choice = Choice(kernel, _unpack_preparation(described, tensors, reference), calibration, described.notes)
    return FrozenKernel(choice, train_rows, test_rows, described.example)


def _unpack_preparation(described: FrozenDescription, tensors: Mapping[str, Array], reference: Table) -> Preparation:
    scaling = {name: tensors[name] for name in ("fill", "origin", "scale")}
    for values in scaling.values():
        fits = values.dtype == np.float64 and values.shape == (len(reference.number_names),)
        _require(fits and bool(np.isfinite(values).all()), "its scaling does not fit its columns")
    _require(bool((scaling["scale"] > 0).all()), "its scaling divides by zero")
    _require(all(j < len(reference.number_names) for j in described.indicators), "it has indicators of no column")
    levels = dict(zip(reference.categories, described.levels, strict=True))
    return Preparation(number_names=reference.number_names, indicators=described.indicators, levels=levels, **scaling)


def _require(fulfilled: bool, otherwise: str) -> None:
    """Refuse a file for a reason."""
    if not fulfilled:
        raise ValueError(otherwise)


def _whole_numbers(values: Array, low: int, high: int) -> Rows:
    """Return whole numbers with low <= value < high."""
    _require(values.dtype == np.int64 and values.ndim == 1, "it has no whole numbers where they belong")
    _require(bool(((values >= low) & (values < high)).all()), "it has row or column numbers that do not exist")
    return np.asarray(values, dtype=np.intp)


def _finite(values: Array) -> Array:
    finite = values.dtype == np.float64 and values.ndim == 1 and bool(np.isfinite(values).all())
    _require(finite, "its bets are no numbers")
    return values
