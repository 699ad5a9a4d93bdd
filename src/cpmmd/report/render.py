"""From a page to text: HTML and Markdown from templates, JSON as it is; and to a file."""

from __future__ import annotations

import base64
import hashlib
import json
import os
import re
from collections.abc import Callable, Mapping, Sequence
from importlib.resources import files
from itertools import groupby
from typing import Any

from cpmmd.core import validation
from cpmmd.core.atomic import write_whole
from cpmmd.core.plain import from_plain
from cpmmd.core.text import SAMPLES, has_right_to_left
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestResult
from cpmmd.report.content import result_page
from cpmmd.report.figures import Drawings, axis_names, draw_figures, result_drawings
from cpmmd.report.page import (
    FOREIGN,
    NOTHING,
    NUMERIC,
    RIGHT,
    AnyPart,
    Columns,
    Header,
    Page,
    Table,
    Value,
    format_of,
    number,
)
from cpmmd.report.where import without_rare_levels

# JSON may end up inside a page or a terminal, so it opens no tag and stays ASCII.
INERT = str.maketrans({character: f"\\u{ord(character):04x}" for character in "<>&"})


def report(
    result: TestResult,
    path: str | os.PathLike[str] | None = None,
    *,
    rows: bool = True,
    command: str | None = None,
    title: str | None = None,
    explanation: Explanation | None = None,
    names: Sequence[str] = SAMPLES,
) -> str:
    """Return the report of one test, and write it when a path is given; like ``result.report()``, with no explanation but the one
    passed.

    Parameters
    ----------
    result : TestResult
        What :func:`~cpmmd.two_sample_test` returned.
    path : str or Path, optional
        Ends in .html (one file that needs nothing else), .md or .json; without one the HTML text is only returned.
    rows, command, title, explanation, names
        As for :func:`content`.

    Returns
    -------
    str
        The text of the report.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> from cpmmd import report, two_sample_test
    >>> result = two_sample_test(range(40), range(20, 60), rng=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     text = report.report(result, pathlib.Path(folder) / "report.md", explanation=result.explain())
    >>> print(text.splitlines()[0])
    # The samples differ
    """
    if explanation is not None and not rows:
        explanation = without_rare_levels(explanation, result.tested_sizes)
    page = result_page(result, explanation, names, rows=rows, command=command, title=title)
    return write_page(page, result_drawings(result, explanation), path)


def write_page(page: Page, drawings: Drawings, path: str | os.PathLike[str] | None) -> str:
    """Return a page as text in the format that the path's suffix asks for, and write it when there is a path."""
    if path is None:
        return _html(page, drawings)
    form = format_of(path)
    text = _json(page.to_dict()) if form == "json" else _markdown(page) if form == "markdown" else _html(page, drawings)
    write_whole(path, text.encode())
    return text


def render(content: Mapping[str, Any], drawings: Drawings, *, form: str) -> str:
    """Return a report's dictionary as text.

    Parameters
    ----------
    content : mapping
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
    >>> from cpmmd import report, two_sample_test
    >>> result = two_sample_test(range(40), range(20, 60), rng=0)
    >>> print(report.render(report.content(result), {}, form="markdown").splitlines()[0])
    # The samples differ
    """
    validation.one_of("form", form, ("html", "markdown", "json"))
    if form == "json":
        return _json(content)
    page = from_plain(Page, {**content, "tone": "found" if content["verdict"]["reject"] else "clear"})
    return _markdown(page) if form == "markdown" else _html(page, drawings)


def _json(document: Mapping[str, Any]) -> str:
    return json.dumps(document, indent=2, allow_nan=False).translate(INERT) + "\n"


def _fill(template: str, filters: Mapping[str, Callable[..., object]], **values: object) -> str:
    """Return a template filled in; HTML is escaped, Markdown escapes itself and has a line for each tag."""
    from jinja2 import Environment, StrictUndefined

    html = template.endswith(".html")
    environment = Environment(
        autoescape=html, trim_blocks=not html, lstrip_blocks=not html, keep_trailing_newline=True, undefined=StrictUndefined
    )
    environment.filters |= filters
    return environment.from_string(_resource(template)).render(**values, numeric=NUMERIC, right=RIGHT)


def _resource(name: str) -> str:
    return files("cpmmd.report").joinpath(name).read_text(encoding="utf-8")


# One HTML file that loads nothing, and runs only its own sorting and search.


def _html(page: Page, drawings: Drawings) -> str:
    pictures, sheet = draw_figures(page, drawings)
    from markupsafe import Markup

    style, script = f"{_resource('style.css')}{sheet.css}\n", _resource("sort.js")
    return _fill(
        "page.html",
        {"side_by_side": _side_by_side, "number": number, "axis_names": axis_names},
        page=page,
        # Our own files and cleaned SVG: the only text that is not escaped.
        pictures={name: Markup(svg) for name, svg in pictures.items()},
        style=Markup(style),
        script=Markup(script),
        # Nothing but these two texts styles or runs, and nothing is fetched.
        policy=f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'",
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _side_by_side(parts: Sequence[AnyPart]) -> list[list[AnyPart]]:
    """Return neighbouring figures together, every other part by itself."""
    runs = [(kind, list(run)) for kind, run in groupby(parts, key=lambda part: part.kind)]
    return [row for kind, run in runs for row in ([run] if kind == "figure" else [[part] for part in run])]


# Markdown: pipe tables, no pictures, every name from the data in a code span.


SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&@])")
LINKS = re.compile(r"(?i)(?<=http):|(?<=https):|(?<=ftp):|(?<=www)\.|(?<=mailto):|(?<=xmpp):")
OPENING = re.compile(r"^(\s*)(?:(\d+)(?=[.)])|(?=#|[-+=]))")


def _markdown(page: Page) -> str:
    escapes = {"plain": _plain, "paragraph": _paragraph}
    return _fill("page.md", {**escapes, "fence": _fence, "grid": _grid, "table": _column_table}, page=page)


def _plain(text: str) -> str:
    """Escape running text: no markup, no HTML, no links."""
    return _isolate(LINKS.sub(r"\\\g<0>", SPECIAL.sub(r"\\\1", text)))


def _paragraph(text: str) -> str:
    """Escape text at the start of a line, where a dash or a number would begin a list."""
    return OPENING.sub(r"\1\2\\", _plain(text))


def _fence(text: str, least: int) -> str:
    """Return a code fence: more backticks than the text has in a row."""
    return "`" * max(least, 1 + max(map(len, re.findall("`+", text)), default=0))


def _isolate(text: str) -> str:
    """Keep right-to-left letters from reordering the text around them (first strong isolate, and its end)."""
    return f"\u2068{text}\u2069" if has_right_to_left(text) else text


def _cell(text: str, header: Header) -> str:
    if header.type not in FOREIGN:
        return _plain(text)
    fence, padding = _fence(text, 1), " " if text.startswith("`") or text.endswith("`") else ""
    # A table ends its cell at every pipe, also within a code span, unless a backslash stands before it.
    return f"{fence}{padding}{_isolate(text)}{padding}{fence}".replace("|", "\\|")


def _grid(table: Table) -> list[list[str]]:
    """Return the lines of a table as texts of cells: labels, alignment, rows."""
    rows = [[_cell(text, header) for text, header in zip(texts, table.columns, strict=True)] for texts in table.texts()]
    return [
        [_plain(header.label) for header in table.columns],
        ["---:" if header.type in RIGHT else ":---" for header in table.columns],
        *rows,
    ]


def _column_table(part: Columns) -> Table:
    """Return the columns as a table."""
    x, y = part.samples
    headers = [Header("Column", "text"), Header("Difference", "words"), Header("p-value", "pvalue")]
    headers += [Header(label, "measure") for label in (x, y, "Effect")]
    rows: list[list[Value]] = []
    for item in part.items:
        words = f"{item.words or NOTHING}{f' (suspicious: {item.suspicious})' if item.suspicious else ''}"
        effect = NOTHING if item.effect is None else f"{item.effect} ({item.interval})"
        rows.append([item.label, words, item.pvalue, item.x, item.y, effect])
    return Table(part.id, part.caption, headers, rows, part.note)
