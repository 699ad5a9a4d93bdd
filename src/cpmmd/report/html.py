"""A report's dictionary as one HTML file that needs nothing else and runs nothing but its own sorting and search."""

from __future__ import annotations

import base64
import hashlib
from collections.abc import Callable, Mapping
from importlib.resources import files
from itertools import groupby
from typing import Any

from cpmmd.core.installation import missing_extra
from cpmmd.core.plain import PlainDict
from cpmmd.report import elements
from cpmmd.report.elements import NUMERIC, RIGHT, column_texts
from cpmmd.report.svg import Stylesheet, histogram_svg

ONE_LINE = 32  # characters of a table cell that stay on one line
SHOWN = 12  # columns that are seen at once; the others open


def html(content: Mapping[str, Any], pictures: Mapping[str, str], sheet: Stylesheet) -> str:
    """Return the page; ``pictures`` are the SVG elements of the figures in ``content``, ``sheet`` what they wear."""
    try:
        from jinja2 import Environment, StrictUndefined
        from markupsafe import Markup
    except ImportError as error:
        raise missing_extra("An HTML report", "jinja2", "report") from error
    environment = Environment(autoescape=True, undefined=StrictUndefined, keep_trailing_newline=True)
    style, script = f"{_resource('style.css')}{sheet.css}\n", _resource("sort.js")
    page: str = environment.from_string(_resource("page.html")).render(
        content={**content, "sections": [_arrange(section) for section in content["sections"]]},
        # Our own files and cleaned SVG: the only text that is not escaped.
        pictures={name: Markup(svg) for name, svg in pictures.items()},
        style=Markup(style),
        script=Markup(script),
        policy=policy(style, script),
    )
    return page


def policy(style: str, script: str) -> str:
    """Return a content security policy under which nothing but these two texts styles or runs, and nothing is fetched."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _resource(name: str) -> str:
    return files("cpmmd.report").joinpath(name).read_text(encoding="utf-8")


def _arrange(section: Mapping[str, Any]) -> PlainDict:
    """Put neighbouring figures side by side, tables into lines of cells, and columns into those shown and the others."""
    arranged: list[PlainDict] = []
    for kind, run in groupby(section["blocks"], key=lambda block: block["kind"]):
        if kind == "figure":
            arranged.append({"kind": "figures", "items": list(run)})
        else:
            arranged += [ARRANGERS[kind](block) if kind in ARRANGERS else {**block, **_label(block)} for block in run]
    return {**section, "blocks": arranged}


def _columns(block: Mapping[str, Any]) -> PlainDict:
    """Draw each column's picture, and keep the first ones apart from those that a reader opens."""
    from markupsafe import Markup

    items = [
        {
            **item,
            "p": elements.number(item["pvalue"]),
            # Built from numbers and escaped names: the page's own.
            "picture": Markup(histogram_svg(item["histogram"], item["kind"], block["samples"])) if item["histogram"] else "",
        }
        for item in block["items"]
    ]
    return {**block, "shown": items[:SHOWN], "others": items[SHOWN:], "search": len(items) > SHOWN}


def _label(block: Mapping[str, Any]) -> dict[str, str]:
    return {"label": {"sh": "Command", "python": "Python call"}[block["language"]]} if block["kind"] == "code" else {}


def _table(block: Mapping[str, Any]) -> PlainDict:
    columns = [{**c, "numeric": c["type"] in NUMERIC, "right": c["type"] in RIGHT} for c in block["columns"]]
    texts = [column_texts([row[i] for row in block["rows"]], c["type"]) for i, c in enumerate(columns)]
    lines = []
    for number, row in enumerate(block["rows"]):
        cells = [
            {
                "text": _minus(texts[i][number], c["right"]),
                "style": "number" if c["right"] else "long" if len(texts[i][number]) > ONE_LINE else "",
                "value": _sort_value(row[i], c["numeric"]),
            }
            for i, c in enumerate(columns)
        ]
        mark = next((mark for mark in ("flagged", "failed") if number in block.get(mark, ())), "")
        lines.append({"cells": cells, "mark": mark})
    return {**block, "columns": columns, "lines": lines}


ARRANGERS: dict[str, Callable[[Mapping[str, Any]], PlainDict]] = {"table": _table, "columns": _columns, "details": _arrange}


def _minus(text: str, number: bool) -> str:
    """Use the minus sign, as wide as a digit."""
    return f"\u2212{text[1:]}" if number and text.startswith("-") else text


def _sort_value(value: Any, numeric: bool) -> str | None:
    if not numeric:
        return None
    return "" if value is None else repr(value)
