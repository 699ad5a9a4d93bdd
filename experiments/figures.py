"""Figures in the paper's form: power curves with binomial bands, and what several artefacts share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt

from experiments.common import METHOD_NAMES

COLOURS = {
    "cp": "#c44e52",
    "cp-reused": "#c44e52",
    "cp-anchor": "#e39a9c",
    "liu": "#4c72b0",
    "plain": "#8c8c8c",
    "median": "#4dafaf",
    "mmdagg": "#ff9e4a",
    "mmdagg B=3": "#ffd2a6",
    "mmdagg B=5": "#ffb877",
    "mmdagg B=10": "#ff9e4a",
    "mmdagg B=20": "#d97a26",
    "median-split": "#9ad4d4",
    "fixed": "#4c72b0",
    "mmdfuse": "#9e9ac8",
    "cp-full": "#6b8e23",
    "cp-linear": "#e39a9c",
    "cp-poly2": "#d4777a",
    "cp-poly3": "#c44e52",
    "cp-deep": "#8e2c30",
}


def save(figure: Any, path: Path) -> None:
    """Write an SVG that is the same for the same numbers."""
    with plt.rc_context({"svg.hashsalt": "cpmmd", "svg.fonttype": "none"}):
        figure.savefig(path, metadata={"Date": None})
    plt.close(figure)


def axes(count: int = 1, width: float = 5.2, height: float = 3.6) -> tuple[Any, Any]:
    """Return a figure and its axes side by side."""
    return plt.subplots(1, count, figsize=(width * count, height), layout="constrained")


def log_axis(axis: Any, ticks: Sequence[float]) -> None:
    """Make ``ax.xaxis`` or ``ax.yaxis`` logarithmic with these numbers, written as they are."""
    axis.axes.set(**{f"{axis.axis_name}scale": "log"})
    axis.set_ticks(ticks, labels=[f"{tick:g}" for tick in ticks])
    axis.set_ticks([], minor=True)


def label(name: str) -> str:
    """Return a method's name in a legend."""
    return METHOD_NAMES.get(name, name)


def power_lines(ax: Any, rows: Sequence[Mapping[str, Any]], x: str, *, by: str = "method", value: str = "reject") -> None:
    """Draw one line a method with a band of one binomial standard error."""
    for name in dict.fromkeys(row[by] for row in rows):
        here = [row for row in rows if row[by] == name and value in row]
        at, power = [row[x] for row in here], [row[value] for row in here]
        error = [row[f"{value}_error"] for row in here]
        (line,) = ax.plot(at, power, "o-", ms=4, label=label(name), color=COLOURS.get(name))
        low = [p - e for p, e in zip(power, error, strict=True)]
        high = [p + e for p, e in zip(power, error, strict=True)]
        ax.fill_between(at, low, high, alpha=0.15, color=line.get_color(), lw=0)
    ax.axhline(0.05, lw=0.6, ls=":", color="black")
    ax.set(ylim=(-0.03, 1.05), ylabel="rejections")
    ax.legend(fontsize=7)


def crosses(ax: Any, rates: Mapping[float, float], name: str) -> None:
    """Mark the rates that the paper prints for a method."""
    if rates:
        ax.plot(rates.keys(), rates.values(), "x", ms=8, mew=1.6, color=COLOURS.get(name), label=f"{label(name)}, paper")
        ax.legend(fontsize=7)


def bar_panels(
    rows: Sequence[Mapping[str, Any]], key: str, titles: Mapping[Any, str], groups: Sequence[str], methods: Iterable[str]
) -> Any:
    """Draw grouped bars of power, one panel for each value of ``key``."""
    figure, panels = axes(len(titles), 5.6 if len(titles) < 3 else 4.6)
    for ax, (value, title) in zip(panels, titles.items(), strict=True):
        bars(ax, groups, by_method([row for row in rows if row.get(key) == value], methods))
        ax.set_title(title, fontsize=9)
    return figure


def by_method(rows: Sequence[Mapping[str, Any]], methods: Iterable[str]) -> dict[str, list[tuple[float, float]]]:
    """Return each method's (power, error) in the order of the rows; what was not run is no number."""
    missing = float("nan")
    return {m: [(r.get("reject", missing), r.get("reject_error", missing)) for r in rows if r["method"] == m] for m in methods}


def bars(ax: Any, groups: Sequence[str], series: Mapping[str, Sequence[tuple[float, float]]]) -> None:
    """Draw grouped bars of (power, error), one series a method."""
    width = 0.8 / max(len(series), 1)
    for position, (name, values) in enumerate(series.items()):
        at = [i + (position - (len(series) - 1) / 2) * width for i in range(len(groups))]
        heights, errors = [v for v, _ in values], [e for _, e in values]
        ax.bar(at, heights, width, yerr=errors, label=label(name), color=COLOURS.get(name), error_kw={"lw": 0.7})
    ax.set_xticks(range(len(groups)), groups, fontsize=8)
    ax.axhline(0.05, lw=0.6, ls=":", color="black")
    ax.set(ylim=(0, 1.08), ylabel="rejections")
    ax.legend(fontsize=6, ncols=2)
