"""From a report's dictionary to text, and to a file."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from typing import Any

from cpmmd.core import validation
from cpmmd.core.atomic import write_whole
from cpmmd.explain.differences import SAMPLES
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.report.content import content
from cpmmd.report.elements import format_of
from cpmmd.report.figures import Drawings, draw_figures, result_drawings
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
    names: Sequence[str] = SAMPLES,
) -> str:
    """Return the report of one test, and write it when a path is given; the same as ``result.report()`` but for the explanation.

    Parameters
    ----------
    result : TestResult
        What :func:`~cpmmd.two_sample_test` returned.
    path : str or Path, optional
        Ends in .html (one file that needs nothing else), .md or .json; without one the HTML text is only returned.
    rows : bool
        Whether the values of the rows that speak most for the difference may appear.
    command : str, optional
        The shell command that gave the result, for the reader who wants to repeat it.
    title : str, optional
        What was compared.
    explanation : Explanation, optional
        What ``result.explain()`` returned; without one the report does not say where.
    names : sequence of str
        What the two samples are called; an explanation has its own.

    Returns
    -------
    str
        The text of the report.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> import numpy as np
    >>> from cpmmd import report, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> result = two_sample_test(data.normal(size=(30, 2)), data.normal(2, 1, size=(30, 2)), rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = report.report(result, pathlib.Path(folder) / "report.md", explanation=result.explain())
    >>> print(text.splitlines()[0])
    # The samples differ
    """
    form = "html" if path is None else format_of(path)
    if explanation is not None and not rows:
        explanation = without_rare_levels(explanation, result.tested_sizes)
    said = content(result, rows=rows, command=command, title=title, explanation=explanation, names=names)
    return finish(said, result_drawings(result, explanation), path, form)


def finish(said: Mapping[str, Any], drawings: Drawings, path: Path | None, form: str) -> str:
    """Render, write when there is a path, and return the text."""
    text = render(said, drawings, form=form)
    if path is not None:
        write_whole(path, text.encode())
    return text


def render(said: Mapping[str, Any], drawings: Drawings, *, form: str) -> str:
    """Return a report's dictionary as text.

    Parameters
    ----------
    said : mapping
        What :func:`content` or :func:`series_content` returned.
    drawings : mapping of str to callable
        For each figure of the report a function that draws it on matplotlib Axes; only HTML draws them.
    form : str
        ``"html"``, ``"markdown"`` or ``"json"``.

    Returns
    -------
    str
        The text of the report.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import report, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> result = two_sample_test(data.normal(size=(30, 2)), data.normal(2, 1, size=(30, 2)), rng=0)
    >>> print(report.render(report.content(result), {}, form="markdown").splitlines()[0])
    # The samples differ
    """
    validation.one_of("form", form, ("html", "markdown", "json"))
    if form == "markdown":
        return markdown(said)
    if form == "json":
        return json.dumps(said, indent=2, allow_nan=False).translate(INERT) + "\n"
    return html(said, *draw_figures(said, drawings))
