"""A series of batches: their p-values against the limit, and how different they are."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.errors import InputError
from cpmmd.plotting.style import BLUE, GREY, ORANGE, PURPLE, axes, axis_dates, in_order, legend, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
from collections import Counter
from typing import TYPE_CHECKING

from cpmmd.plotting.style import FILL

NAMES = 12  # batch names under the axis
Records = Sequence[Mapping[str, Any]]


def batch_series(records: Records, *, alpha: float = 0.05, ax: Axes | None = None) -> Axes:
    """Draw the p-values of a series of batches, smaller ones higher, with the limit ``alpha``.

    Parameters
    ----------
    records : sequence of mapping
        One mapping for each batch, in order: ``batch`` (its name), ``pvalue``, ``reject`` and, where p-values were adjusted for
        their number, ``adjusted``, which is then drawn; ``batch`` and ``error`` of one that could not be tested. Where each name
        has a date, such as 2024-03-05 or 20240305, batches stand at their dates.
    alpha : float
        The limit.
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
    records, ax = _ready(records, ax)
    adjusted = any(record.get("adjusted") is not None for record in records)
    values = np.array([_pvalue(record) for record in records])
    lowest = min([alpha, *values[~np.isnan(values)].tolist()])
    _draw(ax, records, values)
    ax.axhline(alpha, color=GREY, linestyle="--", label=f"limit {alpha:g}")
    ax.set_yscale("log")
    ax.set_ylim(1.5, lowest / 4)  # upside down: alarms stand out at the top, below the legend
    ax.set_ylabel("p-value, adjusted for the number of batches" if adjusted else "p-value")
    legend(ax, 4)
    return ax


def batch_effects(records: Records, *, ax: Axes | None = None) -> Axes:
    """Draw how different the batches of a series are: p-values cannot say, since they have a smallest one.

    Parameters
    ----------
    records : sequence of mapping
        As for :func:`batch_series`, with ``effect`` (how often a row of the batch is told from one of the reference) or
        ``statistic``, which is drawn where no batch has an effect.
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
    >>> records = [{"batch": "monday", "pvalue": 0.6, "reject": False, "effect": 0.51}]
    >>> plotting.batch_effects(records, ax=Figure().subplots()).get_ylabel()
    'rows told apart'
    """
    records, ax = _ready(records, ax)
    field = effect_field(records) or "effect"
    values = np.array([np.nan if record.get(field) is None else float(record[field]) for record in records])
    none = 0.5 if field == "effect" else 0.0
    _draw(ax, records, values)
    ax.axhline(none, color=GREY, linestyle="--", label="no difference at all")
    if field == "effect":
        ax.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    ax.set_ylabel("rows told apart" if field == "effect" else "statistic")
    legend(ax, 4)
    return ax


def effect_field(records: Records) -> str | None:
    """Return which field says how different batches are; None where none does."""
    return next((name for name in ("effect", "statistic") if any(record.get(name) is not None for record in records)), None)


def _ready(records: Records, ax: Axes | None) -> tuple[Records, Axes]:
    if not len(records):
        raise InputError("A series needs at least one batch. Got none.")
    return in_order(records), axes(ax)


def _draw(ax: Axes, records: Records, values: Array) -> None:
    """Draw one value for each batch over its place or date, and a cross for each that could not be tested."""
    failed = np.array([record.get("error") is not None for record in records])
    found = np.array([bool(record.get("reject")) for record in records]) & ~failed
    calm, places = ~found & ~failed, places_of(ax, records)
    ax.plot(places[~failed], values[~failed], color=GREY, linewidth=0.8)
    plain: dict[str, Any] = {"linestyle": "none"}
    ax.plot(places[calm], values[calm], color=BLUE, marker="o", fillstyle="none", label="no difference found", **plain)
    ax.plot(places[found], values[found], color=ORANGE, marker="^", markersize=9, label="different", **plain)
    if failed.any():
        plain |= {"transform": ax.get_xaxis_transform(), "clip_on": False}  # on the axis, whatever its values
        foot = np.zeros(np.count_nonzero(failed))
        ax.plot(places[failed], foot, color=PURPLE, marker="x", markersize=8, markeredgewidth=2, label="not tested", **plain)


def _pvalue(record: Mapping[str, Any]) -> float:
    if record.get("error") is not None:
        return math.nan
    value = record.get("adjusted")
    return float(record["pvalue"] if value is None else value)


def places_of(ax: Axes, records: Records) -> Any:
    """Return where batches stand on the axis: at their dates, or one after the other."""
    dated = axis_dates(records)
    if dated is None:
        _names(ax, [str(record["batch"]) for record in records])
        ax.set_xlabel("batch")
        return np.arange(len(records))
    import matplotlib.dates

    ticks: Any = matplotlib.dates  # it has no types
    locator = ticks.AutoDateLocator(minticks=3, maxticks=NAMES)
    ax.xaxis.set_major_locator(locator)
    ax.xaxis.set_major_formatter(ticks.ConciseDateFormatter(locator))
    ax.set_xlabel(dated[1])
    return np.array(ticks.date2num(dated[0]))


def _names(ax: Axes, names: list[str]) -> None:
    step = -(-len(names) // NAMES)
    places = range(0, len(names), step)
    ax.set_xticks(places, [text(names[i], 16) for i in places], rotation=30, ha="right")


# A stream under watch: its wealth against the limit, and the columns that moved.


MOST_COLUMNS = 8  # names beside the axis


def batch_wealth(records: Records, *, alpha: float = 0.05, ax: Axes | None = None) -> Axes:
    """Draw the wealth of a monitor over its batches, the limit 1 / ``alpha``, and the batches since the estimated change.

    Parameters
    ----------
    records : sequence of mapping
        One mapping for each batch, in order, as :meth:`cpmmd.MonitorAnswer.to_dict` returns them: ``batch``, ``number``,
        ``wealth``, ``alarm``, ``since_number``, ``episode``.
    alpha : float
        Probability of a false alarm, ever.
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
    'wealth'
    """
    ax, places = _ready_wealth(records, ax)
    episodes = np.array([record["episode"] for record in records])
    wealth = np.array([float(record["wealth"]) for record in records])
    for episode in np.unique(episodes):
        here = np.flatnonzero(episodes == episode)
        ax.plot(places[here], wealth[here], color=GREY, linewidth=0.8)
        _mark_since(ax, [records[i] for i in here.tolist()], places[here])
    for repeated in ax.patches[1:]:
        repeated.set_label("_")  # once in the legend
    alarm = np.array([bool(record["alarm"]) for record in records])
    ax.plot(places[~alarm], wealth[~alarm], color=BLUE, marker="o", fillstyle="none", linestyle="none", label="quiet")
    ax.plot(places[alarm], wealth[alarm], color=ORANGE, marker="^", markersize=9, linestyle="none", label="alarm")
    ax.axhline(1 / alpha, color=GREY, linestyle="--", label=f"limit {1 / alpha:g}")
    ax.set_yscale("log")
    ax.set_ylim(min(0.1, wealth.min() / 2), max(wealth.max(), 1 / alpha) * 4)
    ax.set_ylabel("wealth")
    legend(ax, 4)
    return ax


def moved_columns(records: Records, *, ax: Axes | None = None) -> Axes:
    """Draw which columns moved in which batches, those that did so most often first.

    Parameters
    ----------
    records : sequence of mapping
        As for :func:`batch_wealth`, with ``columns``: the names of those that moved, most first.
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
    ax, places = _ready_wealth(records, ax)
    counts = Counter(name for record in records for name in record.get("columns") or ())
    names = [name for name, _ in counts.most_common(MOST_COLUMNS)]
    for height, name in enumerate(names):
        leading = np.array([(record.get("columns") or [None])[0] == name for record in records])
        moved = np.array([name in (record.get("columns") or ()) for record in records]) & ~leading
        for which, marker, colour, label in ((leading, "s", ORANGE, "moved most"), (moved, "o", BLUE, "moved")):
            here, named = places[which], label if height == 0 else None
            ax.plot(here, np.full(len(here), height), marker=marker, color=colour, linestyle="none", label=named)
    ax.set_yticks(range(len(names)), [text(name) for name in names])
    ax.set_ylim(len(names) - 0.5, -0.5)
    ax.set_xlim(*_ends(places))
    legend(ax, 2)
    return ax


def _ready_wealth(records: Records, ax: Axes | None) -> tuple[Axes, np.ndarray]:
    if not len(records):
        raise InputError("A series needs at least one batch. Got none.")
    ax = axes(ax)
    return ax, np.asarray(places_of(ax, records), dtype=np.float64)


def _ends(places: np.ndarray) -> tuple[float, float]:
    pad = 0.05 * (places.max() - places.min()) or 0.5
    return float(places.min() - pad), float(places.max() + pad)


def _mark_since(ax: Axes, records: Records, places: np.ndarray) -> None:
    """Shade an episode from the estimated first changed batch on."""
    last = records[-1]
    if not last["alarm"] or last.get("since_number") is None:
        return
    numbers = [record["number"] for record in records]
    start = numbers.index(last["since_number"]) if last["since_number"] in numbers else 0
    ax.axvspan(places[start], places[-1], color=ORANGE, alpha=FILL / 2, linewidth=0, label="since the change")
