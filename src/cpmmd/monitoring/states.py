"""What fitted detectors and monitors answer from, as arrays and plain JSON, and back.

What a file says is not trusted: its description is checked against the dataclasses here, its arrays one by one.
"""

from __future__ import annotations

import hashlib
import json
import math
import re
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, Generic, Self, TypeVar

import msgspec
import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from cpmmd import registry
from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import Count, PlainDict, from_plain
from cpmmd.core.progress import Progress
from cpmmd.core.seeds import RNG
from cpmmd.data.design import DesignOptions, as_texts
from cpmmd.data.numbers import Matrix
from cpmmd.data.pool import check_tables
from cpmmd.data.preparation import Preparation
from cpmmd.data.schema import match_schema_beside
from cpmmd.data.table import Objects, Table
from cpmmd.errors import InputError, ParameterReference
from cpmmd.kernels.base import Tensors
from cpmmd.monitoring.answers import MonitorAnswer, Since, content_digest, estimate
from cpmmd.monitoring.bets import Look, Saffron, first_looks, wealth_of
from cpmmd.monitoring.frozen_kernel import FrozenKernel
from cpmmd.monitoring.history import rename_auc
from cpmmd.monitoring.past import Past
from cpmmd.procedures.base import Choice, Procedure
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
FITTED_ONCE = (
    "A {kind} whose kernel was chosen with {own} cannot be saved, because its file would hold the fitted transformer, which is "
    "code. Fit it without example= and kernel=, or keep it in memory."
)


@dataclass(frozen=True, eq=False)
class State:
    """Everything a fitted detector answers from."""

    params: PlainDict  # the constructor's parameters
    seed: int  # what all randomness comes from
    reference: Table
    frozen: FrozenKernel | None  # the kernel chosen at fit; None where each batch's test chooses its own
    notes: Texts  # of fitting


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
    recent: tuple[PlainDict, ...] = ()  # records of the latest answers
    notes: Texts = ()  # of fitting
    identity: str = ""  # a digest of the reference, the method, the level and the seed: what keys of its batches begin with

    @property
    def wealth(self) -> float:
        """The evidence so far."""
        return wealth_of(self.looks)

    def since(self, name: str, rank: int, total: int) -> Since | None:
        """While there is an alarm, where it began: at the latest batch, which had this rank, or before."""
        if self.raised is None:
            return None
        answers = [record for record in self.recent[-CANDIDATES + 1 :] if record["episode"] == self.episode]
        ranks = [(record["looks"][0]["rank"], record["looks"][0]["total"]) for record in answers]
        seen = [(record["batch"], record["number"], of) for record, of in zip(answers, ranks, strict=True)]
        return estimate(*zip(*seen, (name, self.number, (rank, total)), strict=True))

    def key(self, table: Table, name: str | None) -> str:
        """Return what a batch is known by: its name and rows, or its number, and whose it is."""
        which = f"unnamed {self.number + 1}" if name is None else f"named {name} {content_digest(table)}"
        return (self.identity + hashlib.sha256(f"{self.seed} {which}".encode()).hexdigest())[:KEY]

    def remember(self, answer: MonitorAnswer) -> MonitorState:
        """Return the state with one more answer."""
        return replace(self, recent=(*self.recent[-RECENT + 1 :], answer.to_dict()))

    def start_anew(self, past: Past) -> MonitorState:
        """Return the state of an episode that begins with the next batch: no evidence yet."""
        looks, fdr = first_looks(tuple(look.batches for look in self.looks), self.params["bet"]), Saffron(self.fdr.fdr)
        start, episode = self.number + 1, self.episode + 1
        return replace(self, past=past, looks=looks, fdr=fdr, start=start, episode=episode, raised=None)


S = TypeVar("S", State, MonitorState)


class UnfittedError(InputError, NotFittedError):  # type: ignore[misc]
    """A detector or a monitor was used before it was fitted."""


@dataclass(eq=False, repr=False, kw_only=True)
class Fitted(BaseEstimator, Generic[S]):  # type: ignore[misc]
    """What detectors and monitors share: options, a state that they answer from, the columns they expect, and a file."""

    _kind: ClassVar[str]  # of the file
    _state: S = field(init=False)  # once it is fitted

    method: str | Procedure = field(default=registry.DEFAULT_METHOD, kw_only=False)
    alpha: float = 0.05
    n_permutations: int | None = None
    rng: RNG = None
    n_jobs: int | None = None
    memory_limit: int | str | None = None
    scale: str | None = None
    missing: str = "error"
    progress: Progress | None = None
    preprocess: Any = None

    def save(self, path: str | Path) -> None:
        """Write all that was fitted to a file: the old file or the new one is there, never a part."""
        state = self._fitted()
        if self.preprocess is not None and isinstance(state, State) and state.frozen is not None:
            raise InputError(FITTED_ONCE, kind=self._kind, own=ParameterReference("preprocess"))
        write_file(path, *FORMS[self._kind][0](state), kind=self._kind)

    @classmethod
    def load(cls, path: str | Path, *, module: nn.Module | None = None, preprocess: Any = None) -> Self:
        """Return what :meth:`save` wrote: it answers, and goes on, as the one that was saved.

        Loading executes nothing that the file says, and damaged files are refused. ``module`` is the network of your own that the
        method trains, and ``preprocess`` the transformer that it was saved with, neither of which a file holds.
        """

        def restore(description: object, tensors: Tensors) -> Self:
            state = FORMS[cls._kind][1](description, tensors, module)
            params = {**state.params, "preprocess": _same_transformer(state.params.get("preprocess"), preprocess)}
            return cls(**params)._begin(replace(state, params=params))

        return read_file(path, restore, kind=cls._kind)

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
        return match_schema_beside(self._design, rows, self._like, sample)

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a reference."""
        return hasattr(self, "_state")

    def _fitted(self) -> S:
        if not self.__sklearn_is_fitted__():
            raise UnfittedError(f"The {self._kind} has no reference yet. Call fit(reference) first.")
        return self._state


# What a file says beside its arrays; values that are made of both (tables, scaling, calibrations) are checked as they are made.


@dataclass(frozen=True)
class FrozenDescription:
    """A kernel that was chosen at fit, and its coordinates."""

    kernel: PlainDict  # in the form of its own file
    indicators: tuple[Count, ...]
    levels: tuple[Texts, ...]
    calibration: PlainDict | None
    notes: Texts
    example: str | None


@dataclass(frozen=True)
class DetectorDescription:
    """A detector in a file."""

    params: PlainDict  # in the form of a method
    seed: Count
    reference: PlainDict
    notes: Texts
    frozen: FrozenDescription | None


@dataclass(frozen=True)
class MonitorDescription:
    """A monitor in a file."""

    params: PlainDict
    seed: Count
    number: Count
    start: Count
    episode: Count
    raised: Count | None
    past: PlainDict
    found: PlainDict  # fields of Saffron but for its level, which is a parameter
    recent: tuple[PlainDict, ...]  # records
    notes: Texts
    identity: Annotated[str, msgspec.Meta(pattern="^[0-9a-f]*$")] = ""  # files of earlier versions have none


SAME = ("seed", "number", "start", "episode", "raised", "recent", "notes", "identity")  # in a monitor's state and its file


def pack_detector(state: State) -> tuple[Tensors, PlainDict]:
    """Return a state as arrays and a description in plain JSON types."""
    tensors, table = _pack_table(state.reference)
    frozen = None
    if state.frozen is not None:
        more, frozen = _pack_frozen(state.frozen)
        tensors |= more
    description = DetectorDescription(_describe(state.params), state.seed, table, state.notes, frozen)
    return tensors, {**vars(description), "frozen": None if frozen is None else vars(frozen)}


def unpack_detector(description: object, tensors: Tensors, module: nn.Module | None) -> State:
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
    same, params = {name: getattr(state, name) for name in SAME}, _describe(state.params)
    found = {name: value for name, value in vars(state.fdr).items() if name != "fdr"}
    return tensors, vars(MonitorDescription(params=params, past=table, found=found, **same))


def unpack_monitor(description: object, tensors: Tensors, module: nn.Module | None) -> MonitorState:
    """Return the state that was packed; ``module`` is a torch module that the file only names."""
    described = from_plain(MonitorDescription, description)
    described = replace(described, recent=tuple(rename_auc(record) for record in described.recent))
    params, table = _restore(described.params, described.seed, module), _unpack_table(described.past, tensors)
    numbers = _whole_numbers(tensors["batch_numbers"], 0, described.number + 1)
    _require(len(numbers) == table.rows >= 1, "its rows are not assigned to batches")
    looks = first_looks(params["looks"], params["bet"])
    restored = []
    for look in looks:
        bet = look.bet.restore(_finite(tensors[f"bet.{look.batches}"]))
        known = tensors.get(f"wealth.{look.batches}")  # a file from before looks kept it began with equal shares
        log_wealth = bet.log_wealth - math.log(len(looks)) if known is None else _finite(known).item()
        restored.append(replace(look, bet=bet, log_wealth=log_wealth))
    same = {name: getattr(described, name) for name in SAME}
    fdr = from_plain(Saffron, {**described.found, "fdr": params["fdr"]})
    for record in described.recent:  # one that is no answer is refused now, not when it is wanted
        MonitorAnswer.recall(record)
    return MonitorState(params=params, past=Past(table, numbers), looks=tuple(restored), fdr=fdr, **same)


FORMS: dict[str, tuple[Callable[[Any], tuple[Tensors, PlainDict]], Callable[[object, Tensors, nn.Module | None], Any]]] = {
    "detector": (pack_detector, unpack_detector),
    "monitor": (pack_monitor, unpack_monitor),
}


def _describe(params: PlainDict) -> PlainDict:
    transformer = _transformer_text(params.get("preprocess"))
    return {name: describe_method(value) for name, value in {**params, "preprocess": transformer}.items() if name not in OWN}


def _transformer_text(transformer: object) -> str | None:
    """Return what a file says of a transformer, functions by their names."""
    return None if transformer is None else re.sub(r" at 0x[0-9a-f]+", "", " ".join(repr(transformer).split()))


def _same_transformer(described: object, transformer: Any) -> Any:
    """Return the transformer that a file was saved with, which the file only describes."""
    given = _transformer_text(transformer)
    if given == described:
        return transformer
    if described is None:
        raise InputError(f"It was saved without preprocess=. Got {given}; leave it out, or fit anew.")
    got = "nothing" if given is None else given
    rule = "It was saved with a transformer, and no file holds code. Load it in Python with preprocess={described}. Got {got}."
    raise InputError(rule, described=described, got=got)


def _restore(described: PlainDict, seed: int, module: nn.Module | None) -> PlainDict:
    _require(not OWN & described.keys(), "it sets options that depend on the machine")
    return {**{name: restore_method(value, module=module) for name, value in described.items()}, "rng": seed}


def _pack_table(table: Table) -> tuple[Tensors, PlainDict]:
    tensors: Tensors = {"numbers": np.asarray(table.numbers)}
    if table.kept is not None:
        tensors["kept"] = table.kept.astype(np.int64)
    for i, values in enumerate((*table.categories.values(), *(as_texts(values) for values in table.design_values.values()))):
        levels = sorted({v for v in values if v is not None})
        position: dict[str | None, int] = {None: -1, **{level: j for j, level in enumerate(levels)}}
        tensors[f"codes.{i}"] = np.array([position[v] for v in values], dtype=np.int64)
        tensors[f"levels.{i}"] = np.frombuffer(json.dumps(levels).encode(), dtype=np.uint8)
    same = {name: getattr(table, name) for name in ("columns", "named", "row_shape")}
    named = {"numbers": table.number_names, "categories": tuple(table.categories), "aside": tuple(table.design_values)}
    return tensors, {**same, **named, "dates": sorted(table.dates), "kinds": dict(table.kinds)}


def _unpack_table(described: PlainDict, tensors: Tensors) -> Table:
    numbers, names = tensors["numbers"], [from_plain(Texts, described.get(part, [])) for part in ("categories", "aside")]
    texts = iter([_unpack_texts(tensors, i, len(numbers)) for i in range(sum(map(len, names)))])
    categories, design_values = ({name: next(texts) for name in some} for some in names)
    more = {
        "number_names": described["numbers"],
        "numbers": Matrix(numbers),
        "categories": categories,
        "design_values": design_values,
    }
    table = from_plain(Table, {**described, **more, "kept": tensors.get("kept")})
    columns = sorted(table.columns)
    _require(numbers.dtype == np.float64 and numbers.ndim == 2, "its numbers are not a matrix")
    _require(numbers.shape[1] == len(table.number_names), "its numbers do not fit their names")
    _require(
        sorted(table.names) == columns and len(set(columns)) == len(columns) > 0, "its column names are missing or not unique"
    )
    fits = min(table.row_shape, default=1) > 0 and math.prod(table.row_shape) == len(columns)
    _require(fits, "its rows do not have their shape")
    _require(table.dates | table.kinds.keys() <= set(table.number_names), "it gives dates or kinds of columns that do not exist")
    _require(set(table.kinds.values()) <= {"integer", "boolean"}, "it has unknown kinds of columns")
    _require(table.kept is None or len(_whole_numbers(table.kept, 0, 2**62)) == table.rows, "its rows are not numbered")
    return table


def _unpack_texts(tensors: Tensors, i: int, rows: int) -> Objects:
    levels = (*from_plain(Texts, json.loads(tensors[f"levels.{i}"].tobytes())), None)
    codes = _whole_numbers(tensors[f"codes.{i}"], -1, len(levels) - 1)
    _require(len(codes) == rows, "its categories do not fit its rows")
    values = np.empty(rows, dtype=object)
    values[:] = [levels[code] for code in codes.tolist()]
    return values


def _pack_frozen(frozen: FrozenKernel) -> tuple[Tensors, FrozenDescription]:
    kernel, preparation, calibration = frozen.choice.kernel, frozen.choice.preparation, frozen.choice.calibration
    tensors: Tensors = {name: getattr(frozen, name).astype(np.int64) for name in ("train_rows", "test_rows")}
    tensors |= {name: getattr(preparation, name) for name in ("fill", "origin", "scale")}
    tensors |= {KERNEL + name: values for name, values in kernel.tensors().items()}
    described = None
    if calibration is not None:
        described = {**vars(calibration)}
        tensors["ratios"] = described.pop("ratios")
    levels, notes = tuple(preparation.levels.values()), frozen.choice.notes
    return tensors, FrozenDescription(kernel.to_dict(), preparation.indicators, levels, described, notes, frozen.example)


def _unpack_frozen(described: FrozenDescription, tensors: Tensors, reference: Table, module: nn.Module | None) -> FrozenKernel:
    weights = {name.removeprefix(KERNEL): values for name, values in tensors.items() if name.startswith(KERNEL)}
    kernel, calibration = restore_kernel(described.kernel, weights, module=module), None
    if described.calibration is not None:
        calibration = from_plain(Calibration, {**described.calibration, "ratios": tensors["ratios"]})
        ratios = calibration.ratios
        _require(ratios.dtype == np.float64 and ratios.ndim == 1, "its calibration must be a list of numbers")
    scaling, columns = {name: tensors[name] for name in ("fill", "origin", "scale")}, reference.number_names
    for values in scaling.values():
        fits = values.dtype == np.float64 and values.shape == (len(columns),)
        _require(fits and bool(np.isfinite(values).all()), "its scaling does not fit its columns")
    _require(bool((scaling["scale"] > 0).all()), "its scaling divides by zero")
    _require(all(j < len(columns) for j in described.indicators), "it has missing-value indicators of columns that do not exist")
    levels = dict(zip(reference.categories, described.levels, strict=True))
    preparation = Preparation(
        columns, scaling["fill"], scaling["origin"], scaling["scale"], indicators=described.indicators, levels=levels
    )
    train_rows, test_rows = (_whole_numbers(tensors[n], 0, reference.rows) for n in ("train_rows", "test_rows"))
    both = np.concatenate([train_rows, test_rows])
    _require(len(np.unique(both)) == len(both), "a row of its reference is used twice")
    _require(len(test_rows) >= 2, "its reference has no rows to test with")
    choice = Choice(kernel, preparation, calibration, described.notes)
    return FrozenKernel(choice, train_rows, test_rows, described.example)


def _require(fulfilled: bool, otherwise: str) -> None:
    """Refuse a file for a reason."""
    if not fulfilled:
        raise ValueError(otherwise)


def _whole_numbers(values: Array | Rows, low: int, high: int) -> Rows:
    """Return whole numbers with low <= value < high."""
    _require(values.dtype == np.int64 and values.ndim == 1, "its row or column numbers are not whole numbers")
    _require(bool(((values >= low) & (values < high)).all()), "it has row or column numbers that do not exist")
    return np.asarray(values, dtype=np.intp)


def _finite(values: Array) -> Array:
    finite = values.dtype == np.float64 and values.ndim == 1 and bool(np.isfinite(values).all())
    _require(finite, "its bets must be finite numbers")
    return values
