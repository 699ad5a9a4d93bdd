"""The few kinds of block a report is made of: plain dictionaries that every renderer understands."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from cpmmd.core.plain import to_plain
from cpmmd.core.text import LINE, harmless

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
