"""A result as a notebook shows it: verdict, where, and a small picture; from the same content as the report."""

from __future__ import annotations

import base64
from html import escape

from cpmmd.errors import MissingExtraError
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestResult
from cpmmd.report.content import result_verdict
from cpmmd.report.figures import png_picture, result_drawings
from cpmmd.report.location import column_list
from cpmmd.report.page import column_texts

COLUMNS = 5  # that are named
# A notebook's page may be light or dark: text keeps its colour, lines are grey.
BOX = "border-left: 4px solid {colour}; padding: 2px 12px; max-width: 46em"
FOUND, QUIET = "#d55e00", "#0072b2"


def notebook_html(outcome: TestResult, explanation: Explanation | None) -> str:
    """Return a few lines of HTML: nothing is loaded, nothing runs, every name from the data is escaped."""
    verdict = result_verdict(outcome, explanation)
    numbers = " · ".join(f"{escape(n.label)} <b>{escape(n.value)}</b>" for n in verdict.numbers)
    parts = [f"<b>{escape(verdict.headline)}</b>", *map(escape, verdict.sentences), numbers]
    paragraphs = "".join(f"<p style='margin: 4px 0'>{part}</p>" for part in parts)
    colour = FOUND if outcome.reject else QUIET
    where = _where(explanation) if explanation is not None and outcome.reject else ""
    return f'<div style="{BOX.format(colour=colour)}">{paragraphs}{where}{_picture(outcome, explanation)}</div>'


def _where(explanation: Explanation) -> str:
    columns = column_list(explanation)
    shown = columns.items[:COLUMNS]
    cells = (
        f"<tr><td>{escape(item.label)}</td><td>{escape(item.words)}</td><td>{escape(item.effect or '')}</td><td>{p}</td></tr>"
        for item, p in zip(shown, column_texts([item.pvalue for item in shown], "pvalue"), strict=True)
    )
    head = f"<tr><th>column</th><th>{escape(columns.samples[1])} is</th><th>effect</th><th>p-value</th></tr>"
    return f"<table style='color: inherit'>{head}{''.join(cells)}</table>"


def _picture(outcome: TestResult, explanation: Explanation | None) -> str:
    """Return the leading columns as a picture, or the null distribution; nothing where matplotlib is not installed."""
    shows_where = explanation is not None and outcome.reject
    name = "column-differences" if shows_where else "null-distribution"
    try:
        picture = png_picture(result_drawings(outcome, explanation)[name])
    except MissingExtraError:
        return ""
    return f'<img alt="{escape(outcome.verdict)}" src="data:image/png;base64,{base64.b64encode(picture).decode()}">'
