"""The pictures of a report, drawn by :mod:`cpmmd.plotting` at a size and in colours that suit a page."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from cpmmd.errors import missing_extra
from cpmmd.explain import Explanation
from cpmmd.report.svg import Stylesheet, inline_svg
from cpmmd.results import TestResult

Drawing = Callable[[Any], Any]  # draws on a matplotlib Figure
Drawings = Mapping[str, Drawing]
# Inches at 72 points: shown about 1.3 times as large on a desktop, 1.05 times on a phone, so 9 points are 12 and 9.5 pixels.
NARROW, WIDE = (4.8, 3.1), (9.6, 3.4)
MOST_BATCHES = 400  # in a picture: two pixels each
INK, PAPER = "#0a0b0c", "#f0f1f2"  # stand for the page's own colours
PALETTE = {INK: "currentColor", PAPER: "var(--page)"}
STYLE = {
    "svg.fonttype": "none",  # text stays text: it can be read aloud, searched, and wears the page's font
    "svg.hashsalt": "cpmmd",  # equal pictures, equal files
    "font.size": 9.0,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "path.simplify": True,
    **dict.fromkeys(("text.color", "axes.edgecolor", "axes.labelcolor", "xtick.color", "ytick.color"), INK),
    **dict.fromkeys(("figure.facecolor", "axes.facecolor", "legend.facecolor"), PAPER),
}


def drawn(content: Mapping[str, Any], drawings: Drawings) -> tuple[dict[str, str], Stylesheet]:
    """Give the SVG of every figure in a report's dictionary, and the style they share."""
    try:
        import matplotlib
        from matplotlib.figure import Figure
    except ImportError as error:
        raise missing_extra("An HTML report", "matplotlib", "report") from error
    sheet, pictures = Stylesheet(PALETTE), {}
    for block in (b for section in content["sections"] for b in section["blocks"] if b["kind"] == "figure"):
        name = block["id"]
        with matplotlib.rc_context(STYLE), warnings.catch_warnings():
            warnings.filterwarnings("ignore", message="Glyph .* missing")  # the reader's browser has more fonts
            figure = Figure(figsize=WIDE if block["wide"] else NARROW, layout="constrained")
            drawings[name](figure)
            pictures[name] = inline_svg(figure, name=name, title=block["title"], description=block["description"], sheet=sheet)
    return pictures, sheet


def result_drawings(result: TestResult, explanation: Explanation | None) -> Drawings:
    """Give what draws each picture of one test."""
    from cpmmd import plotting

    return {
        "null-distribution": lambda figure: plotting.null_distribution(result, ax=figure.subplots()),
        "criterion-path": lambda figure: plotting.criterion_path(result, ax=figure.subplots()),
        "training-history": lambda figure: plotting.training_history(result, ax=figure.subplots()),
        "feature-contributions": lambda figure: plotting.feature_contributions(explanation, ax=figure.subplots()),
        "witness-densities": lambda figure: plotting.witness_densities(explanation, ax=figure.subplots()),
        "feature-distributions": lambda figure: plotting.feature_distributions(result, explanation, ax=figure.subplots()),
        "pool-map": lambda figure: plotting.pool_map(result, explanation, ax=figure.subplots()),
    }


def series_drawings(records: Sequence[Mapping[str, Any]]) -> Drawings:
    """Give what draws the picture of a series."""
    from cpmmd import plotting

    latest = list(records[-MOST_BATCHES:])
    return {"batch-series": lambda figure: plotting.batch_series(latest, ax=figure.subplots())}
