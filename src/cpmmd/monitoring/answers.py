"""What a monitor says of one batch."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime
from typing import Any

import numpy as np

from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.core.text import counted
from cpmmd.data.numbers import category_text
from cpmmd.data.table import Table
from cpmmd.errors import CpmmdError, InputError
from cpmmd.explain.explanation import effect_size
from cpmmd.explain.values import Explanation
from cpmmd.monitoring.bets import power_payoff
from cpmmd.results import TestResult

# Since when: the batch at which a change most likely began, and the evidence for each one.


# Of the bet that dates a change. Smaller ones are late where p-values are moderate; larger ones, and the mixture, date a change
# too early, at a chance dip before it: mean error .6 batches at 0.15 over changes found within five, 1.2 with the mixture.
EXPONENT = 0.15


@dataclass(frozen=True)
class Since:
    """The estimated first batch of a change."""

    name: str  #: what that batch is called
    number: int  #: which batch it is, the first after the reference being 1
    #: for the number of each batch of the last hundred, the product of what the density 0.15 p^-0.85 pays from it to the latest
    #: one: the evidence that a change began there
    evidence: dict[int, float] = field(repr=False)

    def to_dict(self) -> PlainDict:
        """Return it in plain JSON types."""
        return plain_dict(vars(self))

    def __str__(self) -> str:
        return self.name


def estimate(names: Sequence[str], numbers: Sequence[int], ranks: Sequence[tuple[int, int]]) -> Since:
    """Return where the product of payoffs up to the latest batch is largest; the earliest such batch among equals."""
    payoffs = [float(np.log(power_payoff(EXPONENT, rank, total))) for rank, total in ranks]
    from_here = np.cumsum(payoffs[::-1])[::-1]
    best = int(np.argmax(from_here))
    evidence = dict(zip(numbers, np.exp(np.minimum(from_here, 700.0)).tolist(), strict=True))
    return Since(names[best], numbers[best], evidence)


# Fields of an answer that its record holds under the same name
SAME = ("number", "rows", "wealth", "alarm", "level", "episode", "alpha", "method", "key", "statistic", "seed", "path", "effect")


@dataclass(frozen=True, eq=False)
class LookResult:
    """What one look found when a block of batches ended."""

    batches: int  #: batches of the block; 1 is the batch by itself
    #: rank, total: rank of the block's statistic among all relabelings, ties broken at random, and their number
    rank: int
    total: int
    evalue: float  #: what the bet paid
    wealth: float  #: the look's share of the wealth after it
    result: TestResult | None = field(default=None, repr=False)  #: the test: X is a part of what came before, Y the block

    @property
    def pvalue(self) -> float:
        """The rank over the number of relabelings: uniform where nothing changed."""
        return self.rank / self.total

    def to_dict(self) -> PlainDict:
        """Return it in plain JSON types, without the test."""
        names = ("batches", "rank", "total", "pvalue", "evalue", "wealth")
        return plain_dict({name: getattr(self, name) for name in names})


@dataclass(frozen=True, eq=False)
class MonitorAnswer:
    """The answer of a monitor about one batch."""

    name: str  #: what the batch is called
    number: int  #: which batch it is, the first after the reference being 1
    time: datetime  #: when it was tested
    rows: int  #: rows of the batch that were tested
    #: the evidence against "nothing changed" so far: P(ever >= 1 / alpha) <= alpha. A batch that raises the alarm takes it to 1
    #: / alpha and not beyond; later ones do.
    wealth: float
    #: whether the wealth has reached 1 / alpha, now or at an earlier batch that was neither acknowledged nor dismissed
    alarm: bool
    since: Since | None  #: while there is an alarm, the estimated first changed batch with the evidence for each
    differs: bool  #: whether this batch is one of those that differ, under control of the false discovery rate
    level: float  #: the level that the batch's p-value was held to for that
    looks: tuple[LookResult, ...]  #: the batch by itself, and any block of batches that ended with it
    episode: int  #: how often an alarm was acknowledged or dismissed before
    alpha: float  #: probability of a false alarm, ever
    method: str  #: the test
    key: str  #: of the batch's name and content
    statistic: float | None = None  #: of the test of the batch by itself
    seed: int | None = None  #: what the randomness of that test came from
    path: str | None = None  #: the file it came from, where it was one
    effect: float | None = None  #: how often a row of the batch is told from one that came before, where it was asked for
    columns: tuple[str, ...] = ()  #: the columns that moved most, where it was asked for
    known: bool = False  #: whether the batch came before, under the same name: it counted then, and this is the answer it got
    notes: tuple[str, ...] = ()  #: what was done to the batch to make it fit, and the like

    @property
    def pvalue(self) -> float:
        """Of the batch by itself against what came before: uniform, and independent of all others, where nothing changed."""
        return self.looks[0].pvalue

    @property
    def evalue(self) -> float:
        """What the bet on the batch by itself paid: at most 1 on average where nothing changed."""
        return self.looks[0].evalue

    @property
    def result(self) -> TestResult | None:
        """The test of the batch by itself; X is a part of what came before. None for a batch that is known."""
        return self.looks[0].result

    def explain(self, **options: Any) -> Explanation:
        """Return where the batch differs from what came before it."""
        leading = max(self.looks, key=lambda look: look.wealth)
        if leading.result is None:
            raise InputError(
                f"The batch {self.name!r} came before: its rows are no longer told from the others. Explain a new one."
            )
        return leading.result.explain(**options)

    def to_dict(self) -> PlainDict:
        """Return the record of the batch in plain JSON types: what a history keeps and a series shows."""
        return plain_dict(
            {
                "key": self.key,
                "batch": self.name,
                "path": self.path,
                "time": self.time.isoformat(timespec="seconds"),
                "rows": self.rows,
                "pvalue": self.pvalue,
                "adjusted": None,
                "statistic": self.statistic,
                "effect": self.effect,
                "reject": self.differs,
                "method": self.method,
                "seed": self.seed,
                "number": self.number,
                "episode": self.episode,
                "evalue": self.evalue,
                "wealth": self.wealth,
                "alarm": self.alarm,
                "since": None if self.since is None else self.since.name,
                "since_number": None if self.since is None else self.since.number,
                "level": self.level,
                "alpha": self.alpha,
                "looks": [look.to_dict() for look in self.looks],
                "columns": list(self.columns),
            }
        )

    def __str__(self) -> str:
        name = " ".join(self.name.split())
        since = f" since {' '.join(self.since.name.split())}" if self.since is not None else ""
        verdict = f"ALARM{since}" if self.alarm else "quiet"
        sign, rows = ">=" if self.wealth >= 1 / self.alpha else "<", counted(self.rows, "row")
        return f"{name}: {verdict} (wealth {self.wealth:.3g} {sign} {1 / self.alpha:g}, p = {self.pvalue:.4g}), {rows}"


def recall(record: PlainDict) -> MonitorAnswer:
    """Return the answer that a batch got when it came first."""
    names = ("rank", "total", "batches", "evalue", "wealth")
    since = record["since"]
    return MonitorAnswer(
        name=record["batch"],
        time=datetime.fromisoformat(record["time"]),
        since=None if since is None else Since(since, record["since_number"], {}),
        differs=record["reject"],
        looks=tuple(LookResult(**{name: look[name] for name in names}) for look in record["looks"]),
        columns=tuple(record["columns"]),
        known=True,
        **{name: record[name] for name in SAME},
    )


# Batches: what a detector says about one, and the seed that its rows give it.


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The answer of a detector about one batch."""

    name: str  #: what the batch is called; its key in a :class:`~cpmmd.History`
    time: datetime  #: when it was tested
    result: TestResult  #: the test itself, with ``explain`` and all; X is the reference, Y the batch
    key: str = ""  #: of the batch's content and the detector: what a history knows it by
    path: str | None = None  #: the file it came from, where it was one
    #: adjusted, effect: filled in by whoever sees the whole series or explains the result: the p-value adjusted for the number
    #: of batches, and the effect size
    adjusted: float | None = None
    effect: float | None = None

    @property
    def rows(self) -> int:
        """Rows of the batch, without those dropped for missing values."""
        return self.result.sizes[1]

    @property
    def pvalue(self) -> float:
        """P-value of the test, not adjusted."""
        return self.result.pvalue

    @property
    def statistic(self) -> float:
        """The test's statistic."""
        return self.result.statistic

    @property
    def reject(self) -> bool:
        """Whether the batch differs from the reference at the detector's level."""
        return self.result.reject

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the batch to make it fit, and the like."""
        return self.result.notes

    def to_dict(self) -> PlainDict:
        """Return the record of the batch in plain JSON types: what a history keeps and a series shows."""
        return plain_dict(
            {
                "key": self.key or self.name,
                "batch": self.name,
                "path": self.path,
                "time": self.time.isoformat(timespec="seconds"),
                "rows": self.rows,
                "pvalue": self.pvalue,
                "adjusted": self.adjusted,
                "statistic": self.statistic,
                "effect": self.effect,
                "reject": self.reject,
                "method": self.result.method,
                "seed": self.result.seed,
            }
        )

    def __str__(self) -> str:
        verdict = "differs" if self.reject else "no difference found"
        sign = "<=" if self.pvalue <= self.result.alpha else ">"
        noted = f"; {counted(len(self.notes), 'note')}" if self.notes else ""
        name = " ".join(self.name.split())
        return f"{name}: {verdict} (p = {self.pvalue:.4g} {sign} {self.result.alpha:g}), {counted(self.rows, 'row')}{noted}"


def content_digest(table: Table) -> str:
    """Return the SHA-256 of a batch's values, the same whatever kind of frame or order of columns they came in."""
    digest = hashlib.sha256(json.dumps([table.numbers.shape, table.number_names, list(table.categories)]).encode())
    numbers = np.asarray(table.numbers)
    canonical = np.where(np.isnan(numbers), np.nan, numbers) + 0.0  # one NaN, and no negative zero
    digest.update(np.ascontiguousarray(canonical, dtype="<f8").tobytes())
    for values in table.categories.values():
        digest.update(json.dumps(values.tolist()).encode())
    for name, values in table.aside.items():
        digest.update(json.dumps([name, [category_text(v) for v in values.tolist()]]).encode())
    return digest.hexdigest()


# What moved in a batch, kept with its answer: how different it is, and which columns differ by themselves.


EFFECT_ROWS = 500  # the effect takes a kernel matrix of as many
LEADING = 3  # columns named


def look_into(answer: MonitorAnswer) -> MonitorAnswer:
    """Return an answer with how different the batch is and, where that is asked, which columns moved."""
    if answer.result is None:
        return answer
    wanted = answer.alarm or answer.pvalue <= answer.alpha
    return replace(answer, effect=effect_of(answer.result), columns=leading_columns(answer.result) if wanted else ())


def effect_of(result: TestResult, max_rows: int = EFFECT_ROWS) -> float | None:
    """Return how often a row of the batch is told from one that came before; None where that cannot be said."""
    try:
        return effect_size(result, max_rows=max_rows).probability
    except CpmmdError:
        return None


def leading_columns(result: TestResult) -> tuple[str, ...]:
    """Return the columns that differ by themselves, the clearest first; none where none does or that cannot be said."""
    try:
        columns = result.explain(max_rows=EFFECT_ROWS, top=0).columns
    except CpmmdError:
        return ()
    return tuple(column.name for column in columns if column.pvalue <= result.alpha)[:LEADING]
