"""Power over sample sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd.core.plain import PlainDict
from cpmmd.errors import InputError
from cpmmd.plotting.style import CURVES, FILL, GREY, area, axes, legend, text

if TYPE_CHECKING:
    from matplotlib.axes import Axes

HATCHES = ("///", "...", "\\\\\\", "xxx", "---")


def power_curves(table: Any, *, ax: Axes | None = None) -> Axes:
    """Draw power over sample size, a curve for each method.

    Parameters
    ----------
    table : PowerTable, StudyTable or sequence of mapping
        Rows (or an object that has them as ``rows``), each a mapping or an object with ``size`` and ``power`` and, where known,
        ``low`` and ``high`` (an interval), ``observed`` (a simulated power), ``method``. A ``target`` of the table is drawn as
        a line.
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
    >>> table = [{"size": 50, "power": 0.4, "low": 0.3, "high": 0.5}, {"size": 100, "power": 0.8, "low": 0.7, "high": 0.9}]
    >>> plotting.power_curves(table, ax=Figure().subplots()).get_ylabel()
    'power'
    """
    rows = [_row(row) for row in getattr(table, "rows", table)]
    if not rows:
        raise InputError("Power curves need at least one row with 'size' and 'power'. Got none.")
    ax = axes(ax)
    names = list(dict.fromkeys(row["method"] for row in rows))
    for number, name in enumerate(names):
        _curve(ax, sorted((r for r in rows if r["method"] == name), key=lambda r: r["size"]), name, number)
    target = getattr(table, "target", None)
    if target is not None:
        ax.axhline(target, color=GREY, linestyle=":", label=f"wanted: {target:.2f}")
    ax.set_xscale("log")
    _plain_ticks(ax, sorted({row["size"] for row in rows}))
    ax.set_ylim(-0.02, 1.02)
    ax.set_xlabel("rows of each sample")
    ax.set_ylabel("power")
    if ax.get_legend_handles_labels()[0]:
        legend(ax)
    return ax


def _row(row: Any) -> PlainDict:
    found: Mapping[str, Any] = row if isinstance(row, Mapping) else vars(row)
    if found.get("size") is None or found.get("power") is None:
        raise InputError(
            f"Each row of a power table must have 'size' and 'power'. Got {', '.join(map(str, found)) or 'nothing'}."
        )
    return {"method": None, "low": None, "high": None, "observed": None, "extrapolated": False, **found}


def _curve(ax: Axes, rows: list[PlainDict], name: str | None, number: int) -> None:
    colour, line, marker = CURVES[number % len(CURVES)]
    size, power = [row["size"] for row in rows], [row["power"] for row in rows]
    label = "estimate" if name is None else text(str(name))
    ax.plot(size, power, color=colour, linestyle=line, marker=marker, markersize=4, label=label)
    if all(row["low"] is not None and row["high"] is not None for row in rows):
        low, high = ([row[end] for row in rows] for end in ("low", "high"))
        hatch = HATCHES[number % len(HATCHES)]
        ax.fill_between(size, low, high, linewidth=0, label=f"{label}: interval", **area(colour, hatch, FILL / 2))
    seen = [(row["size"], row["observed"]) for row in rows if row["observed"] is not None]
    if seen:
        ax.plot(*zip(*seen, strict=True), color=colour, marker="x", markersize=7, linestyle="none", label=f"{label}: simulated")
    beyond = [row["size"] for row in rows if row["extrapolated"]]
    if beyond:
        inside = [row["size"] for row in rows if not row["extrapolated"]]
        edge = np.sqrt(max(inside) * min(beyond)) if inside else min(beyond)
        ax.axvline(edge, color=GREY, linestyle="--", label="beyond this the pilot has no rows")


def _plain_ticks(ax: Axes, sizes: Iterable[int]) -> None:
    """Mark the sizes themselves, as many as fit: 10^2 is no number of rows."""
    shown: list[int] = []
    for size in sizes:
        if not shown or size >= 1.3 * shown[-1]:
            shown.append(size)
    ax.set_xticks(shown, [f"{size:,}" for size in shown])
    ax.set_xticks([], minor=True)
