"""How the test was done: null distribution, criterion over bandwidths, course of training; power over sample sizes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd.errors import InputError
from cpmmd.plotting.style import (
    BLUE,
    CURVES,
    FILL,
    GREY,
    ORANGE,
    PURPLE,
    Subject,
    area,
    axes,
    known_fields,
    labelled,
    outcome_of,
    text,
)
from cpmmd.procedures.outcome import TestResult
from cpmmd.selection.values import BandwidthSearch, Selection, TrainingHistory

if TYPE_CHECKING:
    from matplotlib.axes import Axes

BINS = 40
MOST_TICKS = 12  # members of a class that all have a tick
LABEL = 40  # characters of a class in the legend: the longest name is shown whole
SAME_SCALE = 5.0  # a criterion that is more times larger than the squared MMD gets the other axis
HATCHES = ("///", "...", "\\\\\\", "xxx", "---")


def null_distribution(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw the statistic and its null distribution.

    Parameters
    ----------
    subject : TestResult or Explanation
        What to draw.
    ax : matplotlib Axes, optional
        Where to draw it.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import plotting, two_sample_test
    >>> result = two_sample_test(range(40), range(20, 60), rng=0)
    >>> plotting.null_distribution(result, ax=Figure().subplots()).get_xlabel()
    'statistic'
    """
    ax, result = axes(ax), outcome_of(subject)
    null = np.asarray(result.null_distribution, dtype=float)
    null = null[np.isfinite(null)]
    bins = min(BINS, max(len(null) // 5, 1))
    ax.hist(null, bins=bins, label="permutations", **area(BLUE, "//"))
    # p <= alpha when fewer than alpha (B + 1) permutations reach the statistic; decimals of alpha round either way
    rank = int(np.floor(result.alpha * (len(null) + 1) + 1e-9))
    if rank >= 1:
        limit = float(np.sort(null)[-rank])
        ax.axvline(limit, color=GREY, linestyle="--", label=f"limit at significance level {result.alpha:g}")
    ax.axvline(result.statistic, color=ORANGE, linewidth=2.5, label=f"observed, p = {result.pvalue:.3g}")
    return labelled(ax, "statistic", "number of permutations")


def criterion_path(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw the criterion and its penalty: over the bandwidths of a split test, or over all members of a full-sample test.

    Parameters
    ----------
    subject, ax
        As for :func:`null_distribution`.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import plotting, two_sample_test
    >>> result = two_sample_test(range(40), range(20, 60), method="cp-linear", rng=0)
    >>> plotting.criterion_path(result, ax=Figure().subplots()).get_xscale()
    'log'
    """
    outcome = outcome_of(subject)
    if outcome.selection is not None and isinstance(outcome.selection.path, BandwidthSearch):
        return _bandwidth_search(outcome.selection, outcome.selection.path, axes(ax))
    if any(len(scored.bandwidths) for scored in outcome.classes):
        return _class_scores(outcome, axes(ax))
    raise InputError(
        f"A criterion path needs a test that searches bandwidths: cp-full, or a split test of Bandwidth or Polynomial. Got "
        f"{text(outcome.method)}. Draw training_history for a trained kernel, null_distribution for any test."
    )


def _bandwidth_search(selection: Selection, searched: BandwidthSearch, ax: Axes) -> Axes:
    ax.plot(searched.bandwidths, searched.criterion, color=BLUE, marker="o", markersize=3, label="criterion")
    if not np.allclose(searched.criterion, searched.mmd2):
        ax.plot(searched.bandwidths, searched.mmd2, color=ORANGE, linestyle="--", label="squared MMD")
    if selection.c1:
        penalty = selection.c1 * searched.complexity
        ax.plot(searched.bandwidths, penalty, color=PURPLE, linestyle=":", linewidth=2, label="complexity penalty")
        # The penalty at the narrowest bandwidths would make everything else flat.
        top = max(float(searched.mmd2.max()), float(searched.criterion.max()), np.finfo(float).tiny)
        ax.set_ylim(-1.2 * top, 1.5 * top)
    best = int(np.argmax(searched.criterion))
    place = searched.bandwidths[best], searched.criterion[best]
    ax.plot(*place, color=BLUE, marker="*", markersize=14, linestyle="none", label="chosen")
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_xscale("log")
    return labelled(ax, "bandwidth", "value on the training half")


def _class_scores(outcome: TestResult, ax: Axes) -> Axes:
    """Draw the members of every class side by side, bandwidth by spectral parameter, with the class's penalty as a line."""
    start, ticks = 0, []
    for scored, (colour, line, marker) in zip(outcome.classes, cycle(CURVES)):
        places = np.arange(start, start + len(scored.scores))
        ax.plot(places, scored.scores, color=colour, linestyle=line, marker=marker, markersize=4, label=text(scored.label, LABEL))
        ends = [start - 0.4, places[-1] + 0.4]
        ax.plot(ends, [scored.penalty] * 2, color=colour, linestyle=":", linewidth=2)
        if scored.selected is not None:
            place = places[scored.selected], scored.scores[scored.selected]
            ax.plot(*place, color=colour, marker="*", markersize=14, linestyle="none", label="kernel")
        if outcome.kernel_note and scored is outcome.statistic_class:
            ax.plot(
                places[scored.best], scored.evidence, color=colour, marker="D", markersize=9, linestyle="none", label="statistic"
            )
        # All members are named where they are few, else the first and the last.
        for k in range(len(places)) if len(places) <= MOST_TICKS else (0, len(places) - 1):
            without = "fixed" if scored.label.startswith("fixed") else "columns"
            bandwidth = f"{scored.bandwidths[k]:.3g}" if len(scored.bandwidths) else without
            gamma = f", {scored.gammas[k]:.0e}" if len(scored.gammas) and np.isfinite(scored.gammas[k]) else ""
            ticks.append((int(places[k]), bandwidth + gamma))
        start = int(places[-1]) + 2
    ax.plot([], [], color=GREY, linestyle=":", linewidth=2, label="penalty of the class")
    ax.set_xticks([place for place, _ in ticks], [name for _, name in ticks], rotation=90, fontsize=7)
    return labelled(ax, "bandwidth, each class in its own units,\nand spectral parameter where there is one", "score, -log p")


def training_history(subject: Subject, *, ax: Axes | None = None) -> Axes:
    """Draw criterion, squared MMD and spectral product over the steps of training; the product is on the right axis.

    Parameters
    ----------
    subject, ax
        As for :func:`null_distribution`.

    Returns
    -------
    Axes
        With the picture.

    Examples
    --------
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import Ascent, Deep, SplitTest, plotting, two_sample_test
    >>> result = two_sample_test(range(40), range(20, 60), method=SplitTest(Deep(width=8), ascent=Ascent(steps=2)), rng=0)
    >>> plotting.training_history(result, ax=Figure().subplots()).get_xlabel()
    'step of training'
    """
    outcome = outcome_of(subject)
    if outcome.selection is None or not isinstance(outcome.selection.path, TrainingHistory):
        raise InputError(
            f"A training history needs a trained kernel, such as that of cp-deep or liu. Got {text(outcome.method)}; "
            "draw criterion_path."
        )
    ax, history = axes(ax), outcome.selection.path
    right, step = ax.twinx(), history.steps
    right.patch.set_alpha(0.0)
    comparable = np.nanmax(np.abs(history.criterion)) <= SAME_SCALE * np.nanmax(np.abs(history.mmd2))
    lines = (ax if comparable else right).plot(step, history.criterion, color=BLUE, label="criterion")
    lines += ax.plot(step, history.mmd2, color=ORANGE, linestyle="--", label="squared MMD")
    lines += right.plot(step, history.spectral_product, color=PURPLE, linestyle="-.", label="spectral product (right)")
    best = int(np.nanargmax(history.criterion))
    lines.append(ax.axvline(step[best], color=GREY, linestyle=":", label="chosen step"))
    if not comparable:
        lines[0].set_label("criterion (right)")
    right.set_ylabel("spectral product" if comparable else "criterion, spectral product")
    left = "value on the training half" if comparable else "squared MMD"
    return labelled(ax, "step of training", left, handles=lines)


@dataclass(frozen=True)
class PowerPoint:
    """Power at one sample size."""

    size: int
    power: float
    low: float | None = None
    high: float | None = None
    observed: float | None = None  # a simulated power
    method: str | None = None
    extrapolated: bool = False

    @classmethod
    def of(cls, row: object) -> PowerPoint:
        """Return a row of a power table."""
        found = row if isinstance(row, Mapping) else vars(row)
        if found.get("size") is None or found.get("power") is None:
            names = ", ".join(map(str, found)) or "nothing"
            raise InputError(f"Each row of a power table must have 'size' and 'power'. Got {names}.")
        return cls(**known_fields(cls, found))


def power_curves(table: Any, *, ax: Axes | None = None) -> Axes:
    """Draw power over sample size, a curve for each method.

    Parameters
    ----------
    table : PowerTable, StudyTable or sequence of mapping
        Rows (or an object with ``rows``), each a mapping or an object with ``size`` and ``power`` and, where known, ``low`` and
        ``high`` (a confidence interval), ``observed`` (a simulated power), ``method``. The ``target`` of a table is drawn as a
        line.
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
    points = [PowerPoint.of(row) for row in getattr(table, "rows", table)]
    if not points:
        raise InputError("Power curves need at least one row with 'size' and 'power'. Got none; pass the table of a power study.")
    ax = axes(ax)
    for number, name in enumerate(dict.fromkeys(point.method for point in points)):
        _curve(ax, sorted((point for point in points if point.method == name), key=lambda point: point.size), name, number)
    target = getattr(table, "target", None)
    if target is not None:
        ax.axhline(target, color=GREY, linestyle=":", label=f"target {target:.2f}")
    ax.set_xscale("log")
    shown: list[int] = []  # the sizes themselves, as many as fit
    for size in sorted({point.size for point in points}):
        if not shown or size >= 1.3 * shown[-1]:
            shown.append(size)
    ax.set_xticks(shown, [f"{size:,}" for size in shown])
    ax.set_xticks([], minor=True)
    ax.set_ylim(-0.02, 1.02)
    return labelled(ax, "rows of each sample", "power")


def _curve(ax: Axes, points: Sequence[PowerPoint], name: str | None, number: int) -> None:
    colour, line, marker = CURVES[number % len(CURVES)]
    sizes = [point.size for point in points]
    label = "estimate" if name is None else text(str(name))
    ax.plot(sizes, [p.power for p in points], color=colour, linestyle=line, marker=marker, markersize=4, label=label)
    low, high = [p.low for p in points if p.low is not None], [p.high for p in points if p.high is not None]
    if len(low) == len(high) == len(points):
        hatch = HATCHES[number % len(HATCHES)]
        ax.fill_between(sizes, low, high, linewidth=0, label=f"{label}: confidence interval", **area(colour, hatch, FILL / 2))
    seen = [(point.size, point.observed) for point in points if point.observed is not None]
    if seen:
        ax.plot(*zip(*seen, strict=True), color=colour, marker="x", markersize=7, linestyle="none", label=f"{label}: simulated")
    beyond = [point.size for point in points if point.extrapolated]
    if beyond:
        inside = [point.size for point in points if not point.extrapolated]
        edge = np.sqrt(max(inside) * min(beyond)) if inside else min(beyond)
        ax.axvline(edge, color=GREY, linestyle="--", label="beyond the pilot's rows")
