"""A series of batches: p-values, how different the batches are, a monitor's evidence, the columns that changed."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict
from cpmmd.errors import InputError
from cpmmd.plotting.style import BLUE, FILL, GREY, ORANGE, PURPLE, axes, known_fields, labelled, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = 12  # batch names under the axis
MOST_COLUMNS = 8  # names beside the axis
# 2024-03-05, 2024_03_05, 20240305, with a time after a T: 20240305T0630.
DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?:T(\d\d)[:.-]?(\d\d)(?!\d)|(?!\d))")


@dataclass(frozen=True, kw_only=True)
class Batch:
    """One batch of a series; what its record lacks has a default."""

    batch: str  # its name
    error: str | None = None  # why it could not be tested
    pvalue: float = math.nan
    adjusted: float | None = None  # p, adjusted for the number of batches
    reject: bool = False
    statistic: float | None = None
    auc: float | None = None  # of its rows against the reference; records of version 0.2 call it effect
    rows: int | None = None
    time: str | datetime | None = None  # of the test
    method: str | None = None
    seed: int | None = None
    # Of a monitor: its evidence after the batch (nan without one), whether there is an alarm, and its estimated first batch.
    wealth: float = math.nan
    alarm: bool | None = None
    alpha: float = 0.05  # of a monitor: the false-alarm probability
    number: int = 0
    episode: int = 0
    since: str | None = None
    since_number: int | None = None
    columns: Sequence[str] = ()  # those that changed, most first

    @classmethod
    def of(cls, record: Mapping[str, object]) -> Batch:
        """Return a record as a batch."""
        nothing = {} if record.get("error") is None else {"pvalue": None, "reject": None}
        record = {"auc": record.get("effect"), "columns": record.get("leading_columns"), **record}
        return cls(**known_fields(cls, {**record, **nothing, "batch": str(record["batch"])}))

    @property
    def failed(self) -> bool:
        """Whether it could not be tested."""
        return self.error is not None

    @property
    def watched(self) -> bool:
        """Whether a monitor tested it."""
        return not math.isnan(self.wealth)

    @property
    def judged_p(self) -> float:
        """The p-value that decided: the adjusted one where there is one."""
        return float(self.pvalue if self.adjusted is None or self.failed else self.adjusted)

    @property
    def date(self) -> datetime | None:
        """The first date in its name; None where there is none."""
        for found in DATE.finditer(self.batch):
            year, _, month, day, hour, minute = found.groups()
            try:
                return datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0))
            except ValueError:
                continue
        return None

    @property
    def day_of_test(self) -> datetime | None:
        """The day it was tested on, if that is known."""
        try:
            return datetime.fromisoformat(str(self.time)[:10])
        except ValueError:
            return None


class Answer(Protocol):
    """An answer of a detector or a monitor."""

    @property
    def columns(self) -> Sequence[str]:
        """The columns that changed most."""

    def to_dict(self) -> PlainDict:
        """Return its record."""


Records = Sequence[Mapping[str, object] | Answer | Batch]


def read_batches(records: Records, *needed: str) -> list[Batch]:
    """Return records as batches; each must have a name and, unless it could not be tested, the needed fields."""
    if not len(records):
        raise InputError("A series must have at least one batch. Got none; test a batch first.")
    batches = []
    for number, record in enumerate(records):
        if isinstance(record, Batch):
            batches.append(record)
            continue
        if not isinstance(record, Mapping):
            record = {**record.to_dict(), "columns": record.columns}
        wanted = ("batch",) if record.get("error") is not None else ("batch", *needed)
        absent = [key for key in wanted if record.get(key) is None]
        if absent:
            raise InputError(f"Each batch must have {', '.join(wanted)}. Batch {number} lacks {', '.join(absent)}; add them.")
        batches.append(Batch.of(record))
    return batches


def batch_series(records: Records, *, alpha: float = 0.05, ax: Axes | None = None) -> Axes:
    """Draw the p-values of a series of batches, smaller ones higher, with the significance level.

    Parameters
    ----------
    records : sequence of mapping
        Answers of a detector or monitor, or one mapping for each batch, in order: ``batch`` (its name), ``pvalue``, ``reject``
        and, where p-values are adjusted for their number, ``adjusted``, which is then drawn. A batch that could not be tested
        has ``batch`` and ``error``. Where each name has a date, such as 2024-03-05 or 20240305, batches are drawn at their dates.
    alpha : float
        Significance level.
    ax : matplotlib Axes, optional
        Where to draw it.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import plotting
    >>> records = [{"batch": "monday", "pvalue": 0.6, "reject": False}, {"batch": "tuesday", "pvalue": 0.001, "reject": True}]
    >>> plotting.batch_series(records, ax=Figure().subplots()).get_ylabel()
    'p-value'
    """
    batches, ax = in_order(read_batches(records, "pvalue")), axes(ax)
    values = np.array([batch.judged_p for batch in batches])
    _draw(ax, batches, values, alpha, f"significance level {alpha:g}")
    ax.set_yscale("log")
    lowest = min([alpha, *values[~np.isnan(values)].tolist()])
    ax.set_ylim(1.5, lowest / 4)  # upside down: small p-values are at the top, below the legend
    adjusted = any(batch.adjusted is not None for batch in batches)
    return labelled(ax, y="p-value, adjusted for the number of batches" if adjusted else "p-value", columns=4)


def batch_effects(records: Records, *, ax: Axes | None = None) -> Axes:
    """Draw an effect size for each batch of a series: it shows large differences, where p-values reach their lower bound.

    Parameters
    ----------
    records : sequence of mapping
        As for :func:`batch_series`, with ``auc`` (of the batch's rows against the reference) or
        ``statistic``, which is drawn where no batch has an AUC.
    ax : matplotlib Axes, optional
        Where to draw it.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import plotting
    >>> records = [{"batch": "monday", "pvalue": 0.6, "reject": False, "auc": 0.51}]
    >>> plotting.batch_effects(records, ax=Figure().subplots()).get_ylabel()
    'AUC'
    """
    batches, ax = in_order(read_batches(records)), axes(ax)
    field = size_field(batches) or "auc"
    values = np.array([getattr(batch, field) for batch in batches], dtype=np.float64)  # None is nan
    _draw(ax, batches, values, 0.5 if field == "auc" else 0.0, "no difference")
    return labelled(ax, y="AUC" if field == "auc" else "statistic", columns=4)


def size_field(batches: Sequence[Batch]) -> str | None:
    """Return the field that measures how different batches are; None without any."""
    return next((name for name in ("auc", "statistic") if any(getattr(b, name) is not None for b in batches)), None)


def _draw(ax: Axes, batches: Sequence[Batch], values: Array, limit: float, meaning: str) -> None:
    """Draw one value for each batch over its place or date, a cross for each that could not be tested, and a reference line."""
    failed = np.array([batch.failed for batch in batches])
    found = np.array([bool(batch.reject) for batch in batches])
    calm, places = ~found & ~failed, _places(ax, batches)
    ax.plot(places[~failed], values[~failed], color=GREY, linewidth=0.8)
    _mark(ax, places, values, calm, found, ("no difference found", "different"))
    if failed.any():
        foot, on_axis = np.zeros(np.count_nonzero(failed)), ax.get_xaxis_transform()  # at the foot, whatever the values are
        cross = ax.plot(places[failed], foot, "x", transform=on_axis, clip_on=False, color=PURPLE, label="not tested")[0]
        cross.set(markersize=8, markeredgewidth=2)
    ax.axhline(limit, color=GREY, linestyle="--", label=meaning)


def _mark(ax: Axes, places: Array, values: Array, calm: Array, found: Array, names: tuple[str, str]) -> None:
    """Mark quiet batches with circles, the others with triangles."""
    ax.plot(places[calm], values[calm], color=BLUE, marker="o", fillstyle="none", linestyle="none", label=names[0])
    ax.plot(places[found], values[found], color=ORANGE, marker="^", markersize=9, linestyle="none", label=names[1])


def batch_wealth(records: Records, *, alpha: float = 0.05, ax: Axes | None = None) -> Axes:
    """Draw the evidence of a monitor over its batches, the limit 1 / ``alpha``, and the batches since the estimated change.

    Parameters
    ----------
    records : sequence of mapping
        Answers of a monitor, or what their ``to_dict`` returns, in order: ``batch``, ``number``, ``wealth`` (the evidence),
        ``alarm``, ``since_number``, ``episode``.
    alpha : float
        False-alarm probability.
    ax : matplotlib Axes, optional
        Where to draw it.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import plotting
    >>> day = {"batch": "monday", "number": 1, "wealth": 0.8, "alarm": False, "since_number": None, "episode": 0}
    >>> later = {"batch": "tuesday", "number": 2, "wealth": 40.0, "alarm": True, "since_number": 2, "episode": 0}
    >>> plotting.batch_wealth([day, later], ax=Figure().subplots()).get_ylabel()
    'evidence'
    """
    batches, ax = read_batches(records, "wealth"), axes(ax)
    places, wealth = _places(ax, batches), np.array([float(batch.wealth) for batch in batches])
    label = "since the change"
    for episode in sorted({batch.episode for batch in batches}):
        here = [i for i, batch in enumerate(batches) if batch.episode == episode]
        ax.plot(places[here], wealth[here], color=GREY, linewidth=0.8)
        last = batches[here[-1]]
        if last.alarm and last.since_number is not None:  # shaded from the estimated first changed batch on
            start = next((i for i in here if batches[i].number == last.since_number), here[0])
            ax.axvspan(places[start], places[here[-1]], color=ORANGE, alpha=FILL / 2, linewidth=0, label=label)
            label = "_"  # once in the legend
    alarm = np.array([bool(batch.alarm) for batch in batches])
    _mark(ax, places, wealth, ~alarm, alarm, ("quiet", "alarm"))
    ax.axhline(1 / alpha, color=GREY, linestyle="--", label=f"{1 / alpha:g}, needed for an alarm")
    ax.set_yscale("log")
    ax.set_ylim(min(0.1, wealth.min() / 2), max(wealth.max(), 1 / alpha) * 4)
    return labelled(ax, y="evidence", columns=4)


def moved_columns(records: Records, *, ax: Axes | None = None) -> Axes:
    """Draw which columns changed in which batches, those that changed most often first.

    Parameters
    ----------
    records : sequence of mapping
        Answers of a detector or monitor, or one mapping for each batch, in order, with ``columns`` or ``leading_columns``: the
        names of those that changed, most first.
    ax : matplotlib Axes, optional
        Where to draw it.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import plotting
    >>> ax = plotting.moved_columns([{"batch": "monday", "number": 1, "columns": ["age"]}], ax=Figure().subplots())
    >>> [label.get_text() for label in ax.get_yticklabels()]
    ['age']
    """
    batches, ax = read_batches(records), axes(ax)
    places, names = _places(ax, batches), [name for name, _ in column_counts(batches).most_common(MOST_COLUMNS)]
    for height, name in enumerate(names):
        leading = np.array([name in batch.columns[:1] for batch in batches])
        changed = np.array([name in batch.columns[1:] for batch in batches])
        for which, marker, colour, label in ((leading, "s", ORANGE, "changed most"), (changed, "o", BLUE, "changed")):
            here, named = places[which], label if height == 0 else None
            ax.plot(here, np.full(len(here), height), marker=marker, color=colour, linestyle="none", label=named)
    ax.set_yticks(range(len(names)), [text(name) for name in names])
    ax.set_ylim(max(len(names), 1) - 0.5, -0.5)
    pad = 0.05 * np.ptp(places) or 0.5
    ax.set_xlim(places.min() - pad, places.max() + pad)
    return labelled(ax)


def column_counts(batches: Iterable[Batch]) -> Counter[str]:
    """Count the batches in which each column changed."""
    return Counter(name for batch in batches for name in batch.columns)


# Dates of batches: the date in their names, or the day of their test.


def _own_dates(batches: Sequence[Batch]) -> list[datetime] | None:
    """Return the dates in the names of all batches, None unless each has one.

    A batch that could not be tested and has no date gets that of the batch before it.
    """
    dates: list[datetime] = []
    for batch in batches:
        date = batch.date
        if date is None and batch.failed and dates:
            date = dates[-1]
        if date is None:
            return None
        dates.append(date)
    return dates or None


def in_order(batches: Sequence[Batch]) -> list[Batch]:
    """Return batches by the dates in their names where each has one, else in the order given."""
    dates = _own_dates(batches)
    return list(batches) if dates is None else [batches[i] for i in sorted(range(len(batches)), key=dates.__getitem__)]


def _axis_dates(batches: Sequence[Batch]) -> tuple[list[datetime], str] | None:
    """Return the dates of batches on an axis of time, and its label; None where they are drawn one after the other.

    The dates are their own; without any, the days of their tests, if no two share one (a call tests many within a minute).
    """
    dates = _own_dates(batches)
    if dates is not None:
        return (dates, "date in the batch's name") if len(set(dates)) > 1 else None
    if any(batch.date for batch in batches):
        return None
    days = [batch.day_of_test for batch in batches]
    there = sorted({day for day in days if day is not None})
    return (there, "day of the test") if 1 < len(there) == len(days) and days == there else None


def _places(ax: Axes, batches: Sequence[Batch]) -> Array:
    """Return the places of batches on the axis, at their dates or one after the other, and label them."""
    dated = _axis_dates(batches)
    if dated is None:
        shown = range(0, len(batches), -(-len(batches) // NAMES))
        ax.set_xticks(shown, [text(batches[i].batch, 16) for i in shown], rotation=30, ha="right")
        ax.set_xlabel("batch")
        return np.arange(float(len(batches)))
    import matplotlib.dates

    ticks: Any = matplotlib.dates  # has no types
    locator = ticks.AutoDateLocator(minticks=3, maxticks=NAMES)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ticks.ConciseDateFormatter(locator))
    ax.set_xlabel(dated[1])
    return np.asarray(ticks.date2num(dated[0]), dtype=np.float64)
