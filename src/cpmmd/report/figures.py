"""The pictures of a report, drawn by :mod:`cpmmd.plotting` at a size and in colours that suit a page."""

from __future__ import annotations

import io
import textwrap
import warnings
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np

from cpmmd import plotting
from cpmmd.core.installation import missing_extra
from cpmmd.explain.values import Explanation
from cpmmd.plotting import style
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.report.elements import walk
from cpmmd.report.svg import Stylesheet, inline_svg

Drawing = Callable[[Any], Any]  # draws on matplotlib Axes
Drawings = Mapping[str, Drawing]
# Inches at 72 points: shown about 1.3 times as large on a desktop, 1.05 times on a phone, so 10 points are 13 and 10.5 pixels.
NARROW, WIDE, SMALL = (4.8, 3.5), (9.6, 3.9), (4.8, 2.4)
ACROSS, UPWARDS = 48, 30  # characters of an axis label on one line
MOST_BATCHES = 400  # in a picture: two pixels each
INK, PAPER = "#0a0b0c", "#f0f1f2"  # stand for the page's own colours
PALETTE = {
    INK: "currentColor",
    PAPER: "var(--page)",
    style.BLUE: "var(--x)",
    style.ORANGE: "var(--y)",
    style.GREY: "var(--grey)",
    style.PURPLE: "var(--purple)",
    style.GREEN: "var(--green)",
}
INKED = ("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color")
HALFWAY = "#808080"  # between a light page and a dark one
STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched, and wears the page's font
    "svg.hashsalt": "cpmmd",  # equal pictures, equal files
    "font.size": 10.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.formatter.limits": (-3, 5),
    **dict.fromkeys(INKED, INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), PAPER),
}


def draw_figures(content: Mapping[str, Any], drawings: Drawings) -> tuple[dict[str, str], Stylesheet]:
    """Return the SVG of every figure in a report's dictionary, and the style they share."""
    sheet, pictures = Stylesheet(PALETTE), {}
    for block in (b for section in content["sections"] for b in walk(section["blocks"]) if b["kind"] == "figure"):
        name = block["id"]
        with _figure(drawings[name], STYLE, WIDE if block["wide"] else NARROW) as figure:
            pictures[name] = inline_svg(figure, name=name, title=block["title"], description=block["description"], sheet=sheet)
    return pictures, sheet


def png_picture(drawing: Drawing) -> bytes:
    """Return one small picture that can be read on a light page and on a dark one."""
    buffer = io.BytesIO()
    with _figure(drawing, {**STYLE, **dict.fromkeys(INKED, HALFWAY)}, SMALL) as figure:
        figure.savefig(buffer, format="png", dpi=100, transparent=True)
    return buffer.getvalue()


@contextmanager
def _figure(drawing: Drawing, look: dict[Any, Any], size: tuple[float, float]) -> Iterator[Any]:
    """Yield a figure with a drawing on it, while its style is in force."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("A picture", "matplotlib", "report") from error
    with matplotlib.rc_context(look), warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's browser has more fonts
        figure = Figure(figsize=size, layout="constrained")
        _tidy(drawing(figure.subplots()))
        yield figure


def _tidy(ax: Any) -> None:
    """Fit labels to a small picture: few numbers on an axis, plain ones on a logarithmic axis, long names on two lines."""
    from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    for axis, ends in ((ax.xaxis, ax.get_xlim()), (ax.yaxis, ax.get_ylim())):
        if axis.get_scale() == "log":
            decades = abs(np.log10(ends[1] / ends[0]))
            axis.set_major_locator(LogLocator(subs=(1, 2, 5) if decades < 2 else (1,)))
            axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
            axis.set_minor_formatter(NullFormatter())
        elif isinstance(axis.get_major_locator(), MaxNLocator):
            ax.locator_params(axis=axis.axis_name, nbins=6)
    ax.set_xlabel(textwrap.fill(ax.get_xlabel(), ACROSS))
    ax.set_ylabel(textwrap.fill(ax.get_ylabel(), UPWARDS))


def result_drawings(result: TestOutcome, explanation: Explanation | None) -> Drawings:
    """Return what draws each picture of one test."""
    drawings: dict[str, Drawing] = {
        "null-distribution": lambda ax: plotting.null_distribution(result, ax=ax),
        "criterion-path": lambda ax: plotting.criterion_path(result, ax=ax),
        "training-history": lambda ax: plotting.training_history(result, ax=ax),
    }
    if explanation is None:
        return drawings
    return {
        **drawings,
        "column-differences": lambda ax: plotting.column_differences(explanation, ax=ax),
        "witness-densities": lambda ax: plotting.witness_densities(explanation, ax=ax),
        "pool-map": lambda ax: plotting.pool_map(explanation, ax=ax),
    }


def series_drawings(records: Sequence[Mapping[str, Any]], alpha: float | None) -> Drawings:
    """Return what draws the pictures of a series, its batches in order."""
    latest, limit = list(records[-MOST_BATCHES:]), {} if alpha is None else {"alpha": alpha}
    watched = [record for record in records if record.get("wealth") is not None][-MOST_BATCHES:]
    return {
        "batch-series": lambda ax: plotting.batch_series(latest, ax=ax, **limit),
        "batch-effects": lambda ax: plotting.batch_effects(latest, ax=ax),
        "batch-wealth": lambda ax: plotting.batch_wealth(watched, ax=ax, **limit),
        "moved-columns": lambda ax: plotting.moved_columns(watched, ax=ax),
    }
