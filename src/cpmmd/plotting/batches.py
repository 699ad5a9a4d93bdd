"""A series of batches against its limit."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd.errors import InputError
from cpmmd.plotting.style import BLUE, GREY, ORANGE, axes, legend, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

NAMES = 12  # batch names under the axis


def batch_series(records: Sequence[Mapping[str, Any]], *, alpha: float = 0.05, ax: Axes | None = None) -> Axes:
    """Draw the p-values of a series of batches, smaller ones higher, with the limit ``alpha``.

    Parameters
    ----------
    records : sequence of mapping
        One mapping for each batch, in order: ``batch`` (its name), ``pvalue``, ``reject`` and, where p-values were adjusted for
        their number, ``adjusted``, which is then drawn.
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
    if not len(records):
        raise InputError("A series needs at least one batch. Got none.")
    ax = axes(ax)
    adjusted = any(record.get("adjusted") is not None for record in records)
    values = np.array([_pvalue(record) for record in records])
    found = np.array([bool(record["reject"]) for record in records])
    places = np.arange(len(records))
    ax.plot(places, values, color=GREY, linewidth=0.8)
    ax.plot(
        places[~found], values[~found], color=BLUE, marker="o", linestyle="none", fillstyle="none", label="no difference found"
    )
    ax.plot(places[found], values[found], color=ORANGE, marker="^", markersize=9, linestyle="none", label="different")
    ax.axhline(alpha, color=GREY, linestyle="--", label=f"limit {alpha:g}")
    ax.set_yscale("log")
    lowest = min(float(values.min()), alpha)
    ax.set_ylim(1.5, lowest / 4)  # upside down: alarms stand out at the top, below the legend
    _names(ax, [str(record["batch"]) for record in records])
    ax.set_xlabel("batch")
    ax.set_ylabel("p-value, adjusted for the number of batches" if adjusted else "p-value")
    legend(ax, 3)
    return ax


def _pvalue(record: Mapping[str, Any]) -> float:
    value = record.get("adjusted")
    return float(record["pvalue"] if value is None else value)


def _names(ax: Axes, names: list[str]) -> None:
    step = -(-len(names) // NAMES)
    places = range(0, len(names), step)
    ax.set_xticks(places, [text(names[i], 16) for i in places], rotation=30, ha="right")
