"""The few kinds of block a report is made of: plain dictionaries that every renderer understands."""

from __future__ import annotations

import math
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from cpmmd.core.plain import to_plain
from cpmmd.core.text import LINE, harmless, number_format
from cpmmd.errors import InputError

# The formats of a report, by the suffix of its file.


FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json"}


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format that a path's suffix asks for."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"A report's path must end in .html, .md or .json. Got {str(path)!r}; rename it.")
    return FORMATS[suffix]


# Values as a reader sees them: a column of numbers has one format, so that its digits line up.


NOTHING = "–"
NUMERIC = ("number", "count", "share", "pvalue")  # sorted as numbers
RIGHT = (*NUMERIC, "measure")  # set flush right
FOREIGN = ("text",)  # quoted from the data
SPREAD = 100  # positive numbers more different than this have a format each: the small ones would lose their digits


def column_texts(values: Sequence[Any], kind: str) -> list[str]:
    """Return the texts of one table column."""
    if kind == "number":
        there = [float(v) for v in values if v]
        together = min(there, default=1.0) < 0 or max(there, default=1.0) < SPREAD * min(there, default=1.0)
        form = number_format([v for v in values if v is not None])
        return [NOTHING if v is None else format(float(v), form if together else number_format([v])) for v in values]
    if kind == "pvalue":
        smallest = min((v for v in values if v), default=1.0)
        decimals = max(3, math.ceil(1 - math.log10(smallest)))
        form = f".{decimals}f" if decimals <= 7 else ".1e"
        return [NOTHING if v is None else format(v, form) for v in values]
    return [cell_text(v, kind) for v in values]


def cell_text(value: Any, kind: str) -> str:
    """Return the text of one value of a kind that needs no look at its neighbours."""
    if value is None:
        return NOTHING
    if kind == "count":
        return count(value)
    if kind == "share":
        return f"{100 * value:.1f}%"
    if kind == "flag" and not isinstance(value, str):
        return "yes" if value else "no"
    if kind == "time":
        return harmless(value).replace("T", " ")[:16]  # to the minute
    return harmless(value)


def number(value: float) -> str:
    """Return a number within a sentence: its significant digits, no zeros behind them."""
    text = format(float(value), number_format([value]))
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def count(value: int) -> str:
    """Whole number, grouped where it is long."""
    return f"{value:,}" if abs(value) >= 10_000 else str(value)


Block = dict[str, Any]
CODE = 4000  # characters of a line of code: longer than any command a person types


def text(sentence: str) -> Block:
    """Return a paragraph."""
    return {"kind": "text", "text": harmless(sentence, LINE)}


def facts(pairs: Iterable[tuple[str, str | None]]) -> Block:
    """Return terms with their values; those without a value are left out."""
    return {"kind": "facts", "items": [{"term": term, "value": harmless(value, LINE)} for term, value in pairs if value]}


def notes(sentences: Iterable[str]) -> Block:
    """Return a list of remarks, each once."""
    return {"kind": "notes", "items": list(dict.fromkeys(harmless(sentence, LINE) for sentence in sentences))}


def code(program: str, language: str) -> Block:
    """Return something to type again."""
    return {
        "kind": "code",
        "language": language,
        "text": "\n".join(harmless(line, CODE) if line else "" for line in program.splitlines()),
    }


def figure(name: str, title: str, description: str, *, wide: bool = False) -> Block:
    """Return the place of a picture, with what it says for those who do not see it."""
    return {"kind": "figure", "id": name, "title": title, "description": harmless(description, LINE), "wide": wide}


def table(name: str, caption: str, columns: Sequence[tuple[str, str]], rows: Iterable[Sequence[Any]], *, note: str = "") -> Block:
    """Return a table of raw values; a column is its label and its kind (``cells`` says which there are)."""
    return {
        "kind": "table",
        "id": name,
        "caption": harmless(caption, LINE),
        "columns": [{"label": harmless(label), "type": kind} for label, kind in columns],
        "rows": [[harmless(v) if isinstance(v, str) else v for v in to_plain(list(row))] for row in rows],
        "note": note,
    }


def columns(name: str, caption: str, samples: Sequence[str], items: Iterable[Block], *, note: str = "") -> Block:
    """Return the list of columns, each with what is known of it and its histogram."""
    return {
        "kind": "columns",
        "id": name,
        "caption": caption,
        "samples": list(samples),
        "items": to_plain(list(items)),
        "note": note,
    }


def details(name: str, title: str, blocks: Iterable[Block | None]) -> Block:
    """Return blocks that a reader opens when wanted."""
    return {
        "kind": "details",
        "id": name,
        "title": title,
        "open": False,
        "blocks": [b for b in blocks if b is not None and not _empty(b)],
    }


def walk(blocks: Iterable[Block]) -> Iterator[Block]:
    """Yield every block, those within others after them."""
    for block in blocks:
        yield block
        if block["kind"] == "details":
            yield from walk(block["blocks"])


def section(name: str, title: str, blocks: Iterable[Block | None]) -> Block:
    """Return a part of the report with a heading of its own; blocks without content are left out."""
    return {"id": name, "title": title, "open": False, "blocks": [b for b in blocks if b is not None and not _empty(b)]}


def _empty(block: Block) -> bool:
    return block["kind"] in ("facts", "notes") and not block["items"]
