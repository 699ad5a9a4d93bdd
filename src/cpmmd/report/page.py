"""A report before it is text: one page of typed parts, which HTML, Markdown, JSON and notebooks show.

msgspec's structs instead of dataclasses: a union of them is read back by the tag ``kind``, and an unset field is not written.
"""

from __future__ import annotations

import math
import os
import platform
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Literal, TypeAlias

import msgspec
import numpy as np
from msgspec import UNSET, UnsetType

from cpmmd.core.plain import PlainDict, to_plain
from cpmmd.core.text import LINE, number_format, sanitize
from cpmmd.errors import InputError
from cpmmd.explain.differences import Histogram
from cpmmd.registry import public_names

FORMAT = "cpmmd-report-2"
FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json"}
CODE = 4000  # characters of a line of code: longer than any command a person types


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format that a path's suffix asks for."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"A report's path must end in .html, .md or .json. Got {str(path)!r}; rename it.")
    return FORMATS[suffix]


# Values as a reader sees them: a column of numbers has one format, so that its digits line up.


CellType = Literal["text", "words", "number", "measure", "count", "share", "pvalue", "flag", "time"]
TableColumn: TypeAlias = tuple[str, CellType, Sequence[object]]  # label, type, values from the data
Value: TypeAlias = bool | int | float | str | None
NOTHING = "–"
NUMERIC = ("number", "count", "share", "pvalue")  # sorted as numbers
RIGHT = (*NUMERIC, "measure")  # set flush right
FOREIGN = ("text",)  # quoted from the data
RANGE = 100  # positive numbers whose ratio is larger have a format each: the small ones would lose their digits


def column_texts(values: Sequence[Value], kind: CellType) -> list[str]:
    """Return the texts of one table column."""
    if kind not in ("number", "pvalue"):
        return [NOTHING if value is None else _cell_text(value, kind) for value in values]
    there = [float(value) for value in values if value is not None]
    least, most = min((v for v in there if v), default=1.0), max((v for v in there if v), default=1.0)
    forms = [number_format(there)] * len(there)
    if kind == "pvalue":
        decimals = max(3, math.ceil(1 - math.log10(least)))
        forms = [f".{decimals}f" if decimals <= 7 else ".1e"] * len(there)
    elif least >= 0 and most >= RANGE * least:
        forms = [number_format([value]) for value in there]
    texts = map(format, there, forms)
    return [NOTHING if value is None else next(texts) for value in values]


def _cell_text(value: bool | int | float | str, kind: CellType) -> str:
    """Return the text of one value of a kind that needs no look at its neighbours."""
    if isinstance(value, str) or kind not in ("flag", "count", "share"):
        return sanitize(value).replace("T", " ")[:16] if kind == "time" else sanitize(value)  # times to the minute
    if kind == "flag":
        return "yes" if value else "no"
    return count(value) if kind == "count" else f"{100 * value:.1f}%"


def number(value: float) -> str:
    """Return a number within a sentence: its significant digits, no zeros behind them."""
    text = format(float(value), number_format([value]))
    return text.rstrip("0").rstrip(".") if "." in text and "e" not in text else text


def count(value: float) -> str:
    """Return a whole number, grouped where it is long."""
    return f"{value:,}" if abs(value) >= 10_000 else str(value)


def line(sentence: str) -> str:
    """Return a sentence that may quote names, sanitized."""
    return sanitize(sentence, LINE)


# The parts. The order of fields is that of the JSON document.


class Part(msgspec.Struct, frozen=True, tag_field="kind", tag=str.lower):
    """A part of a section; its kind is the name of its class."""

    @property
    def kind(self) -> str:
        """What the JSON document and the templates call it."""
        return str(self.__struct_config__.tag)


class Text(Part, frozen=True):
    """A paragraph."""

    text: str


class Fact(msgspec.Struct, frozen=True):
    """A term with its value."""

    term: str
    value: str


class Facts(Part, frozen=True):
    """Terms with their values."""

    items: list[Fact]

    @classmethod
    def of(cls, facts: Mapping[str, str | None]) -> Facts:
        """Return values by their terms; terms without a value are left out."""
        return cls([Fact(term, line(value)) for term, value in facts.items() if value])


class Notes(Part, frozen=True):
    """A list of remarks."""

    items: list[str]

    @classmethod
    def of(cls, sentences: Iterable[str]) -> Notes:
        """Return the remarks, each once."""
        return cls(list(dict.fromkeys(map(line, sentences))))


class Code(Part, frozen=True):
    """Something to type again."""

    language: Literal["sh", "python"]
    text: str

    @classmethod
    def of(cls, language: Literal["sh", "python"], program: str) -> Code:
        """Return a program, its lines sanitized."""
        return cls(language, "\n".join(sanitize(text, CODE) if text else "" for text in program.splitlines()))


class Figure(Part, frozen=True):
    """The place of a picture, and its description for screen readers."""

    id: str
    title: str
    description: str
    wide: bool = False


class Header(msgspec.Struct, frozen=True):
    """The label of a table column, and the type of its values."""

    label: str
    type: CellType


Marks: TypeAlias = list[int] | UnsetType  # the rows that stand out


class Table(Part, frozen=True):
    """A table of raw values."""

    id: str
    caption: str
    columns: list[Header]
    rows: list[list[Value]]
    note: str
    flagged: Marks = UNSET
    failed: Marks = UNSET

    @classmethod
    def of(
        cls,
        id: str,
        caption: str,
        columns: Iterable[TableColumn],
        *,
        note: str = "",
        flagged: Marks = UNSET,
        failed: Marks = UNSET,
    ) -> Table:
        """Return a table, given column by column."""
        labels, types, values = zip(*columns, strict=True)
        headers = [Header(sanitize(label), kind) for label, kind in zip(labels, types, strict=True)]
        rows = [[sanitize(v) if isinstance(v, str) else v for v in to_plain(row)] for row in zip(*values, strict=True)]
        return cls(id, line(caption), headers, rows, note, flagged, failed)

    def mark(self, row: int) -> str:
        """Return how a row stands out."""
        return next((mark for mark in ("flagged", "failed") if row in (getattr(self, mark) or ())), "")

    def texts(self) -> list[tuple[str, ...]]:
        """Return the rows as texts."""
        columns = (column_texts([row[i] for row in self.rows], header.type) for i, header in enumerate(self.columns))
        return list(zip(*columns, strict=True))


class ColumnItem(msgspec.Struct, frozen=True):
    """A column of the data: how it differs, and its values in both samples."""

    label: str
    kind: str
    words: str
    differs: bool
    suspicious: str
    pvalue: float
    x: str
    y: str
    effect: str | None
    interval: str | None
    histogram: Histogram | None


class Columns(Part, frozen=True):
    """The columns of the data, each with its picture."""

    id: str
    caption: str
    samples: tuple[str, str]
    items: list[ColumnItem]
    note: str


def filled(parts: Iterable[AnyPart | None]) -> list[AnyPart]:
    """Return the parts that are not empty."""
    return [part for part in parts if part is not None and not (isinstance(part, (Facts, Notes)) and not part.items)]


class Details(Part, frozen=True):
    """Parts that a reader can open."""

    id: str
    title: str
    open: bool
    parts: list[AnyPart]


AnyPart: TypeAlias = Text | Facts | Notes | Code | Figure | Table | Columns | Details


class Section(msgspec.Struct, frozen=True):
    """Parts under a heading."""

    id: str
    title: str
    parts: list[AnyPart]

    @classmethod
    def of(cls, id: str, title: str, parts: Iterable[AnyPart | None]) -> Section:
        """Return a section of the parts that are not empty."""
        return cls(id, title, filled(parts))


def walk(parts: Iterable[AnyPart]) -> Iterator[AnyPart]:
    """Yield every part, each before those within it."""
    for part in parts:
        yield part
        if isinstance(part, Details):
            yield from walk(part.parts)


class Number(msgspec.Struct, frozen=True):
    """One of the few numbers beside the headline."""

    label: str
    value: str
    note: str = ""


class Verdict(msgspec.Struct, frozen=True, kw_only=True):
    """The answer; fields that do not apply are unset."""

    reject: bool
    headline: str
    sentences: list[str]
    pvalue: float | UnsetType = UNSET
    batches: int | UnsetType = UNSET
    flagged: int | UnsetType = UNSET
    failed: int | UnsetType = UNSET
    alpha: float | UnsetType | None = UNSET
    statistic: float | UnsetType = UNSET
    auc: float | UnsetType | None = UNSET
    numbers: list[Number]


class Page(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a report."""

    format: str
    title: str
    verdict: Verdict
    sections: list[Section]
    footer: str
    tone: Literal["found", "clear"]  # the colour: found asks for attention; not in the document

    @classmethod
    def of(
        cls,
        verdict: Verdict,
        sections: list[Section],
        *,
        title: str,
        command: str | None,
        call: str = "",
        good_news: bool = False,
    ) -> Page:
        """Return a page that ends with how to repeat it; ``good_news``: a rejection asks for no attention."""
        from cpmmd import __version__

        names = sorted(set(re.findall(r"\b[A-Za-z]\w*(?=\()", call)) & set(public_names()))
        program = f"from cpmmd import {', '.join(names)}\n\nresult = {call}"
        versions = f"cpmmd {__version__}, Python {platform.python_version()}, numpy {np.__version__}"
        repeat = [
            Code.of("sh", command) if command else None,
            Code.of("python", program) if call else None,
            Facts.of({"Versions": versions}),
        ]
        return cls(
            format=FORMAT,
            title=sanitize(title, 160),
            verdict=verdict,
            sections=[*sections, Section.of("repeat", "How to repeat it", repeat)],
            footer=f"Written by cpmmd {__version__} on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC.",
            tone="found" if verdict.reject != good_news else "clear",
        )

    def to_dict(self) -> PlainDict:
        """Return the page in plain JSON types."""
        document: PlainDict = to_plain(msgspec.to_builtins(self, enc_hook=to_plain))
        del document["tone"]
        return document
