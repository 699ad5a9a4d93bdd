"""The answer about one batch: of a detector, of a monitor, and of a batch that could not be tested."""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import UTC, datetime
from typing import Annotated, Any, ClassVar, Generic, Self, TypeVar

import msgspec
import numpy as np

from cpmmd.core.metrics import Measured
from cpmmd.core.near_names import NearNames
from cpmmd.core.plain import Count, InMemory, NoTruthValue, PlainDict, PlainValue, from_plain
from cpmmd.core.text import pluralize
from cpmmd.data.numbers import category_text
from cpmmd.data.table import Table
from cpmmd.errors import CpmmdError, InputError
from cpmmd.explain.explanation import estimate_auc
from cpmmd.explain.values import Explanation
from cpmmd.monitoring.bets import power_payoffs
from cpmmd.monitoring.history import COLUMNS, MONITORED
from cpmmd.procedures.outcome import TestResult

# Of the bet that dates a change. Smaller ones are late where p-values are moderate; larger ones, and the mixture, date a change
# too early, at a chance dip before it: mean error .6 batches at 0.15 over changes found within five, 1.2 with the mixture.
EXPONENT = 0.15
AUC_ROWS = 500  # the AUC takes a kernel matrix of as many
LEADING = 3  # columns named


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class BatchAnswer(NoTruthValue, NearNames, PlainValue, Measured):
    """The answer about one batch; :meth:`to_dict` is the record that a history keeps, all else lives with the test."""

    document: ClassVar[tuple[str, ...]] = tuple(COLUMNS)

    key: str  #: of the batch's content and of what answers: a history knows it by that
    batch: str  #: what the batch was called when it was tested
    path: str | None = None  #: the file it came from, where it was one
    time: datetime  #: when it was tested
    rows: Count  #: rows of the batch that were tested, without those dropped for missing values
    pvalue: float  #: of the test, not adjusted
    adjusted: float | None = None  #: the p-value adjusted for the number of batches that were checked together
    statistic: float | None = None  #: the test's statistic
    auc: float | None = None  #: of rows of the batch against the others, where it was asked for
    reject: bool  #: whether the batch differs
    method: str  #: the test
    seed: int | None = None  #: what the test's randomness came from
    columns: tuple[str, ...] = ()  #: the columns that differ most, where it was asked for
    notes: tuple[str, ...] = ()  #: what was done to the batch to make it fit, and the like
    known: bool = False  #: whether the batch came before: this is the answer that it got then
    #: the test, with ``explain`` and all; Y is the batch, X the reference or a part of what came before. None for a known batch
    result: InMemory[TestResult] = field(default=None, repr=False)

    @classmethod
    def of(cls, result: TestResult, *, batch: str, key: str, **more: Any) -> Self:
        """Return the answer that a test gives now; fields in ``more`` stand instead of the test's."""
        own = {name: getattr(result, name) for name in ("pvalue", "statistic", "reject", "method", "seed", "notes")}
        return cls(batch=batch, key=key, time=datetime.now(UTC), rows=result.sizes[1], result=result, **{**own, **more})

    @classmethod
    def recall(cls, record: PlainDict) -> Self:
        """Return the answer of a record: as it was given first, without the test."""
        try:
            pvalue = math.nan if record["pvalue"] is None else record["pvalue"]  # of a test that was not made
            return from_plain(cls, {**record, "pvalue": pvalue, "time": datetime.fromisoformat(record["time"]), "known": True})
        except (KeyError, TypeError, ValueError) as error:
            raise InputError(f"The record of a batch cannot be read ({error}). Restore its file from a copy.") from error

    @property
    def name(self) -> str:
        """What the batch is called."""
        return self.batch

    @property
    def differs(self) -> bool:
        """Whether the batch differs."""
        return self.reject

    def _measures(self) -> Mapping[str, float | None]:
        return {name: getattr(self, name) for name in ("pvalue", "adjusted", "reject", "statistic", "auc", "rows")}

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import batch_card

        return batch_card(str(self), self.columns, self.notes, found=bool(getattr(self, "alarm", self.reject)))


class BatchResult(BatchAnswer):
    """The answer of a detector about one batch; ``reject`` is at the detector's level, or as decided among many."""

    def __str__(self) -> str:
        verdict = "differs" if self.reject else "no difference found"
        level = "" if self.result is None else f" {'<=' if self.pvalue <= self.result.alpha else '>'} {self.result.alpha:g}"
        noted = f"; {pluralize(len(self.notes), 'note')}" if self.notes else ""
        return f"{in_one_line(self.name)}: {verdict} (p = {self.pvalue:.4g}{level}), {pluralize(self.rows, 'row')}{noted}"


@dataclass(frozen=True)
class Since(PlainValue):
    """The estimated first batch of a change."""

    name: str  #: what that batch is called
    number: int  #: which batch it is, the first after the reference being 1
    #: for the number of each batch of the last hundred, the product of what the density 0.15 p^-0.85 pays from it to the latest
    #: one: the evidence that a change began there
    evidence: dict[int, float] = field(default_factory=dict, repr=False)

    def __str__(self) -> str:
        return self.name


def estimate(names: Sequence[str], numbers: Sequence[int], ranks: Sequence[tuple[int, int]]) -> Since:
    """Return where the product of payoffs up to the latest batch is largest; the earliest such batch among equals."""
    payoffs = [float(np.log(power_payoffs(rank, total, EXPONENT))) for rank, total in ranks]
    from_here = np.cumsum(payoffs[::-1])[::-1]
    best = int(np.argmax(from_here))
    evidence = dict(zip(numbers, np.exp(np.minimum(from_here, 700.0)).tolist(), strict=True))
    return Since(names[best], numbers[best], evidence)


@dataclass(frozen=True, eq=False)
class LookResult(PlainValue):
    """What one look found when a span of batches ended."""

    document: ClassVar[tuple[str, ...]] = ("batches", "rank", "total", "pvalue", "evalue", "wealth")

    batches: int  #: batches of the span; 1 is the batch by itself
    rank: Annotated[int, msgspec.Meta(ge=1)]  #: of the span's statistic among all permutations, ties broken at random
    total: Annotated[int, msgspec.Meta(ge=1)]  #: number of permutations
    evalue: float  #: what the bet paid
    wealth: float  #: the look's share of the wealth after it
    result: InMemory[TestResult] = field(default=None, repr=False)  #: the test: X is a part of what came before, Y the span

    @property
    def pvalue(self) -> float:
        """The rank over the number of permutations: uniform where nothing changed."""
        return self.rank / self.total


@dataclass(frozen=True, eq=False, kw_only=True, repr=False)
class MonitorAnswer(BatchAnswer):
    """The answer of a monitor about one batch; ``differs`` controls the false discovery rate.

    ``pvalue`` compares the batch alone with everything before it. If nothing changed, p-values are uniform and independent.
    """

    document: ClassVar[tuple[str, ...]] = (*COLUMNS, *MONITORED)
    truth_hint = "`.alarm` or `.reject`"

    number: Count  #: which batch it is, the first after the reference being 1
    episode: Count  #: how often an alarm was acknowledged or dismissed before
    #: the evidence against "nothing changed" so far: P(ever >= 1 / alpha) <= alpha. A batch that raises the alarm takes it to 1
    #: / alpha and not beyond; later ones do.
    wealth: float
    #: whether the wealth has reached 1 / alpha, now or at an earlier batch that was neither acknowledged nor dismissed
    alarm: bool
    since: Since | None  #: while there is an alarm, the estimated first changed batch with the evidence for each
    level: float  #: the level that the batch's p-value was held to, for whether it differs
    alpha: float  #: the probability of ever raising a false alarm is at most this
    #: the batch by itself, and any span of batches that ended with it
    looks: Annotated[tuple[LookResult, ...], msgspec.Meta(min_length=1)]

    @classmethod
    def recall(cls, record: PlainDict) -> Self:
        """Return the answer of a record: as it was given first, without the tests and the evidence for each batch."""
        name = record.get("since")
        return super().recall({**record, "since": None if name is None else {"name": name, "number": record["since_number"]}})

    @property
    def evalue(self) -> float:
        """The e-value of the batch alone: what the bet on it paid, at most 1 on average if nothing changed."""
        return self.looks[0].evalue

    @property
    def since_number(self) -> int | None:
        """The number of the estimated first changed batch, while there is an alarm."""
        return None if self.since is None else self.since.number

    def explain(self, **options: Any) -> Explanation:
        """Return where the batch differs from what came before it."""
        leading = max(self.looks, key=lambda look: look.wealth)
        if leading.result is None:
            raise InputError(
                f"Only a new batch can be explained. {self.name!r} was tested before, and its test was not kept. Pass it under "
                "another name, or explain the next batch."
            )
        return leading.result.explain(**options)

    def looked_into(self) -> Self:
        """Return the answer with the batch's AUC and, where the difference is significant, the columns that changed."""
        if self.result is None:
            return self
        columns: list[str] = []
        if self.alarm or self.pvalue <= self.alpha:
            try:
                found = self.result.explain(max_rows=AUC_ROWS, top=0).columns
                columns = [column.name for column in found if column.pvalue <= self.result.alpha]  # the clearest first
            except CpmmdError:
                pass
        return replace(self, auc=auc_of(self.result, AUC_ROWS), columns=tuple(columns[:LEADING]))

    def to_dict(self) -> PlainDict:
        """Return the record of the batch in plain JSON types: what a history keeps and a series shows."""
        return {**super().to_dict(), "since": None if self.since is None else self.since.name}

    def _measures(self) -> Mapping[str, float | None]:
        own = {name: getattr(self, name) for name in ("alarm", "wealth", "evalue", "level", "episode")}
        counted = {"wealth_limit": 1 / self.alpha, "batch": self.number, "since_batch": self.since_number or 0}
        return {**super()._measures(), **own, **counted}

    def __str__(self) -> str:
        since = "" if self.since is None else f" since {in_one_line(self.since.name)}"
        verdict = f"ALARM{since}" if self.alarm else "no alarm"
        evidence = evidence_in_words(self.wealth, self.alpha)
        return f"{in_one_line(self.name)}: {verdict} ({evidence}, p = {self.pvalue:.4g}), {pluralize(self.rows, 'row')}"


Answer = TypeVar("Answer", bound=BatchAnswer)


@dataclass(frozen=True, eq=False, repr=False)
class CheckedBatch(NoTruthValue, Generic[Answer]):
    """What became of one batch: tested, already known, or not readable."""

    truth_hint = "`.differs`"

    name: str  #: what it is called now; a known batch may have come under another name
    answer: Answer | None = None  #: with ``adjusted`` and ``reject`` as decided; None where it failed
    notes: tuple[str, ...] = ()  #: what was done to the batch to make it fit, and the like
    failure: CpmmdError | None = None  #: why it could not be tested
    error: str | None = None  #: the same as a sentence
    kept: bool = True  #: false where the history has an earlier record of these rows and keeps it
    judged: bool = False  #: whether it was decided on now

    @property
    def record(self) -> PlainDict:
        """The fields of :meth:`cpmmd.BatchResult.to_dict`; empty where it failed."""
        return {} if self.answer is None else self.answer.to_dict()

    @property
    def result(self) -> TestResult | None:
        """The test, where it was made now."""
        return None if self.answer is None else self.answer.result

    @property
    def columns(self) -> tuple[str, ...]:
        """The columns that differ most, where the batch differs and was to be explained."""
        return () if self.answer is None else self.answer.columns

    @property
    def pending(self) -> bool:
        """Whether it has to be decided on: tested now, or by a check that was stopped before it could."""
        return self.answer is not None and not (self.answer.known and self.answer.adjusted is not None)

    @property
    def status(self) -> str:
        """One word: ``"tested"``, ``"known"`` or ``"error"``."""
        if self.answer is None:
            return "error"
        return "known" if self.answer.known else "tested"

    @property
    def differs(self) -> bool:
        """Whether the batch differs, found now or known from before."""
        return self.answer is not None and self.answer.reject

    def __str__(self) -> str:
        return f"{in_one_line(self.name)}: {self.error}" if self.answer is None else str(self.answer)

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self}>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import batch_card

        return batch_card(str(self), self.columns, self.notes, found=self.differs)

    def to_dict(self) -> PlainDict:
        """Return it in plain JSON types."""
        fields = self.record or dict.fromkeys(COLUMNS)
        del fields["batch"]  # known rows may have come as another file
        more = {"status": self.status, "leading_columns": list(self.columns), "notes": list(self.notes), "error": self.error}
        return {"batch": self.name, **fields, **more}


def evidence_in_words(wealth: float, alpha: float) -> str:
    """Return the evidence of a monitor beside what raises an alarm."""
    limit = 1 / alpha
    return f"evidence {wealth:.3g} >= {limit:g}" if wealth >= limit else f"evidence {wealth:.3g} of {limit:g} needed for an alarm"


def in_one_line(name: str) -> str:
    """Return a name without line ends."""
    return " ".join(name.split())


def auc_of(result: TestResult, max_rows: int) -> float | None:
    """Return the AUC of the batch's rows against the others; None where it has none."""
    try:
        return estimate_auc(result, max_rows=max_rows).value
    except CpmmdError:
        return None


def content_digest(table: Table) -> str:
    """Return the SHA-256 of a batch's values, the same whatever kind of frame or order of columns they came in."""
    digest = hashlib.sha256(json.dumps([table.numbers.shape, table.number_names, list(table.categories)]).encode())
    numbers = np.asarray(table.numbers)
    canonical = np.where(np.isnan(numbers), np.nan, numbers) + 0.0  # one NaN, and no negative zero
    digest.update(np.ascontiguousarray(canonical, dtype="<f8").tobytes())
    for values in table.categories.values():
        digest.update(json.dumps(values.tolist()).encode())
    for name, values in table.design_values.items():
        digest.update(json.dumps([name, [category_text(v) for v in values.tolist()]]).encode())
    return digest.hexdigest()
