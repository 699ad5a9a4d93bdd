"""Answers as the last line of a notebook's cell: a few lines of HTML. Nothing is loaded, nothing runs, every text is escaped."""

from __future__ import annotations

import base64
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from cpmmd import plotting
from cpmmd.core.text import sanitize
from cpmmd.errors import MissingExtraError
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestResult
from cpmmd.report.content import result_verdict
from cpmmd.report.figures import Drawing, png_picture, result_drawings
from cpmmd.report.page import Number, Page, Table, TableColumn, count, line, walk
from cpmmd.report.where import column_list

SHOWN = 5  # columns of the data
MOST_ROWS = 10  # rows of other tables
# A notebook's page may be light or dark: text keeps its colour, lines are grey.
BOX = "border-left: 4px solid {colour}; padding: 2px 12px; max-width: 46em"
FOUND, QUIET = "#d55e00", "#0072b2"


def card(
    headline: str,
    sentences: Iterable[str] = (),
    *,
    found: bool = False,
    numbers: Sequence[Number] = (),
    table: Table | None = None,
    picture: str = "",
) -> str:
    """Return an answer as HTML; ``found`` colours it, and the first rows of a table are shown."""
    texts = [f"<b>{escape(line(headline))}</b>", *(escape(line(sentence)) for sentence in sentences if sentence)]
    if numbers:
        texts.append(" · ".join(f"{escape(number.label)} <b>{escape(number.value)}</b>" for number in numbers))
    paragraphs = "".join(f"<p style='margin: 4px 0'>{text}</p>" for text in texts)
    return f'<div style="{BOX.format(colour=FOUND if found else QUIET)}">{paragraphs}{_table(table)}{picture}</div>'


def _table(table: Table | None) -> str:
    """Return the first rows of a table, and how many more there are."""
    if table is None or not table.rows:
        return ""
    head = "".join(f"<th>{escape(header.label)}</th>" for header in table.columns)
    rows = "".join(f"<tr>{''.join(f'<td>{escape(text)}</td>' for text in row)}</tr>" for row in table.texts()[:MOST_ROWS])
    left = len(table.rows) - MOST_ROWS
    more = f"<p style='margin: 4px 0'>and {count(left)} more</p>" if left > 0 else ""
    return f"<table style='color: inherit'><tr>{head}</tr>{rows}</table>{more}"


def batch_card(answer: str, columns: Sequence[str], notes: Sequence[str], *, found: bool) -> str:
    """Return the answer about a batch, with the columns that changed most."""
    changed = f"Columns that changed most: {', '.join(map(sanitize, columns))}." if columns else ""
    return card(answer, [changed, *notes], found=found)


def table_card(headline: str, sentences: Iterable[str], rows: Sequence[Mapping[str, object]], *, found: bool = False) -> str:
    """Return a table with an answer above it, given row by row."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    columns: list[TableColumn] = [(name, "text", [_text(row.get(name)) for row in rows]) for name in names]
    return card(headline, sentences, found=found, table=Table.of("table", headline, columns) if names else None)


def _text(value: object) -> str | None:
    return f"{value:.4g}" if isinstance(value, float) else None if value is None else str(value)


def page_card(page: Page) -> str:
    """Return the verdict of a page and its first table."""
    tables = (part for section in page.sections for part in walk(section.parts) if isinstance(part, Table))
    verdict = page.verdict
    found = page.tone == "found"
    return card(verdict.headline, verdict.sentences, found=found, numbers=verdict.numbers, table=next(tables, None))


def result_card(result: TestResult, explanation: Explanation | None) -> str:
    """Return the verdict of a test, where the samples differ, and a small picture."""
    verdict = result_verdict(result, explanation)
    shows_where = explanation is not None and result.reject
    drawing = result_drawings(result, explanation)["column-differences" if shows_where else "null-distribution"]
    return card(
        verdict.headline,
        verdict.sentences,
        found=result.reject,
        numbers=verdict.numbers,
        table=_columns(explanation) if explanation is not None and shows_where else None,
        picture=_picture(drawing, result.verdict),
    )


def explanation_card(explanation: Explanation) -> str:
    """Return where the samples differ: the sentences, the leading columns, a small picture."""
    return card(
        explanation.where,
        [explanation.auc_sentence],
        found=bool(explanation.differing),
        table=_columns(explanation),
        picture=_picture(lambda ax: plotting.column_differences(explanation, ax=ax), explanation.where),
    )


def _columns(explanation: Explanation) -> Table:
    """Table the leading columns of the data."""
    columns = column_list(explanation)
    shown = columns.items[:SHOWN]
    return Table.of(
        "columns",
        columns.caption,
        [
            ("column", "text", [item.label for item in shown]),
            (f"{columns.samples[1]} is", "words", [item.words or None for item in shown]),
            ("effect", "words", [item.effect for item in shown]),
            ("p-value", "pvalue", [item.pvalue for item in shown]),
        ],
    )


def _picture(drawing: Drawing, description: str) -> str:
    """Return a picture; nothing where matplotlib is not installed."""
    try:
        picture = base64.b64encode(png_picture(drawing)).decode()
    except MissingExtraError:
        return ""
    return f'<img alt="{escape(line(description))}" src="data:image/png;base64,{picture}">'
