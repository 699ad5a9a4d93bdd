"""From a report's dictionary to text, and to a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from typing import Any

from cpmmd.core.atomic import write_whole
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.report.content import content
from cpmmd.report.figures import Drawings, draw_figures, result_drawings
from cpmmd.report.formats import format_of
from cpmmd.report.html import html
from cpmmd.report.location import without_rare_levels
from cpmmd.report.markdown import markdown

Path = str | os.PathLike[str]
# JSON may end up inside a page or a terminal: nothing in it opens a tag or leaves ASCII.
INERT = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&"})


def report(
    result: TestOutcome,
    path: Path | None = None,
    *,
    rows: bool = True,
    command: str | None = None,
    title: str | None = None,
    explanation: Explanation | None = None,
) -> str:
    """Return the report of one test, and write it when a path is given; see :meth:`cpmmd.TestResult.report`."""
    form = "html" if path is None else format_of(path)
    if explanation is not None and not rows:
        explanation = without_rare_levels(explanation, result.tested_sizes)
    said = content(result, rows=rows, command=command, title=title, explanation=explanation)
    return finish(said, result_drawings(result, explanation), path, form)


def finish(said: Mapping[str, Any], drawings: Drawings, path: Path | None, form: str) -> str:
    """Render, write when there is a path, and give the text."""
    text = render(said, drawings, form=form)
    if path is not None:
        write_whole(path, text.encode())
    return text


def render(said: Mapping[str, Any], drawings: Drawings, *, form: str) -> str:
    """Return a report's dictionary as ``"html"``, ``"markdown"`` or ``"json"``; only HTML draws the pictures."""
    if form == "markdown":
        return markdown(said)
    if form == "json":
        return json.dumps(said, indent=2, allow_nan=False).translate(INERT) + "\n"
    return html(said, *draw_figures(said, drawings))
