"""What a monitor says of one batch."""

from __future__ import annotations

from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.core.text import counted
from cpmmd.errors import InputError
from cpmmd.explain.values import Explanation
from cpmmd.monitoring.since import Since
from cpmmd.results import TestResult

SAME = ("number", "rows", "wealth", "alarm", "level", "episode", "alpha", "method", "key", "path", "effect")  # in a record


@dataclass(frozen=True, eq=False)
class LookResult:
    """What one look found when a block of batches ended.

    Attributes
    ----------
    batches : int
        Batches of the block; 1 is the batch by itself.
    rank, total : int
        Rank of the block's statistic among all relabelings, ties broken at random, and their number.
    evalue : float
        What the bet paid.
    wealth : float
        The look's share of the wealth after it.
    result : TestResult or None
        The test: X is a part of what came before, Y the block.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import DriftMonitor
    >>> data = np.random.default_rng(0)
    >>> monitor = DriftMonitor(method="median", n_permutations=999, rng=0).fit(data.normal(size=(100, 2)))
    >>> look = monitor.update(data.normal(size=(30, 2))).looks[0]
    >>> look.batches, look.total, 0 < look.pvalue <= 1
    (1, 1000, True)
    """

    batches: int
    rank: int
    total: int
    evalue: float
    wealth: float
    result: TestResult | None = field(default=None, repr=False)

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
    """The answer of a monitor about one batch.

    Attributes
    ----------
    name : str
        What the batch is called.
    number : int
        Which batch it is, the first after the reference being 1.
    time : datetime
        When it was tested.
    rows : int
        Rows of the batch that were tested.
    wealth : float
        The evidence against "nothing changed" so far: P(ever >= 1 / alpha) <= alpha. A batch that raises the alarm takes it to
        1 / alpha and not beyond; later ones do.
    alarm : bool
        Whether the wealth has reached 1 / alpha, now or at an earlier batch that was neither acknowledged nor dismissed.
    since : Since or None
        While there is an alarm, the estimated first changed batch with the evidence for each.
    differs : bool
        Whether this batch is one of those that differ, under control of the false discovery rate.
    level : float
        The level that the batch's p-value was held to for that.
    looks : tuple of LookResult
        The batch by itself, and any block of batches that ended with it.
    episode : int
        How often an alarm was acknowledged or dismissed before.
    alpha : float
        Probability of a false alarm, ever.
    method : str
        The test.
    key : str
        Of the batch's name and content.
    path : str or None
        The file it came from, where it was one.
    effect : float or None
        How often a row of the batch is told from one that came before, where it was asked for.
    columns : tuple of str
        The columns that moved most, where it was asked for.
    known : bool
        Whether the batch came before, under the same name: it counted then, and this is the answer it got.
    notes : tuple of str
        What was done to the batch to make it fit, and the like.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import DriftMonitor
    >>> data = np.random.default_rng(0)
    >>> monitor = DriftMonitor(method="median", n_permutations=999, rng=0).fit(data.normal(size=(200, 2)))
    >>> answers = [monitor.update(data.normal(shift, 1, size=(40, 2)), name=f"day {i}") for i, shift in enumerate((0, 0, 1, 1))]
    >>> [answer.alarm for answer in answers], str(answers[-1].since)
    ([False, False, False, True], 'day 2')
    """

    name: str
    number: int
    time: datetime
    rows: int
    wealth: float
    alarm: bool
    since: Since | None
    differs: bool
    level: float
    looks: tuple[LookResult, ...]
    episode: int
    alpha: float
    method: str
    key: str
    path: str | None = None
    effect: float | None = None
    columns: tuple[str, ...] = ()
    known: bool = False
    notes: tuple[str, ...] = ()

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
        """Return where the batch differs from what came before it.

        Parameters
        ----------
        **options : object
            As for :meth:`cpmmd.TestResult.explain`.

        Returns
        -------
        Explanation
            Of the look with the most evidence among those that ended with this batch.
        """
        leading = max(self.looks, key=lambda look: look.wealth)
        if leading.result is None:
            raise InputError(
                f"The batch {self.name!r} came before: its rows are no longer told from the others. Explain a new one."
            )
        return leading.result.explain(**options)

    def to_dict(self) -> PlainDict:
        """Return the record of the batch in plain JSON types: what a history keeps and a series shows.

        Returns
        -------
        dict
            The fields of :meth:`cpmmd.BatchResult.to_dict`, and those of a monitor.
        """
        result = self.result
        return plain_dict(
            {
                "key": self.key,
                "batch": self.name,
                "path": self.path,
                "time": self.time.isoformat(timespec="seconds"),
                "rows": self.rows,
                "pvalue": self.pvalue,
                "adjusted": None,
                "statistic": None if result is None else result.statistic,
                "effect": self.effect,
                "reject": self.differs,
                "method": self.method,
                "seed": None if result is None else result.seed,
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
        **{
            name: record[name]
            for name in ("number", "rows", "wealth", "alarm", "level", "episode", "alpha", "method", "key", "path")
        },
    )
