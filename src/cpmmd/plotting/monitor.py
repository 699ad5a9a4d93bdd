"""A stream under watch: its wealth against the limit, and the columns that moved."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING

import numpy as np

from cpmmd.errors import InputError
from cpmmd.plotting.batches import Records, places_of
from cpmmd.plotting.style import BLUE, FILL, GREY, ORANGE, axes, legend, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

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
    ax, places = _ready(records, ax)
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
    ax, places = _ready(records, ax)
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


def _ready(records: Records, ax: Axes | None) -> tuple[Axes, np.ndarray]:
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
