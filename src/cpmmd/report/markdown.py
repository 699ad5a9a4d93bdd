"""A report's dictionary as Markdown: pipe tables, no pictures, every foreign name in a code span."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from cpmmd.core.text import has_right_to_left
from cpmmd.report.elements import FOREIGN, RIGHT, column_texts

SPECIAL = re.compile(r"([\\`*_\[\]<>|~$&@])")
LINKS = re.compile(r"(?i)(?<=http):|(?<=https):|(?<=ftp):|(?<=www)\.|(?<=mailto):|(?<=xmpp):")
OPENING = re.compile(r"^(\s*)(#+|[-+=]|\d+(?=[.)]))")


def markdown(content: Mapping[str, Any]) -> str:
    """Return the Markdown text."""
    verdict = content["verdict"]
    lines = [f"# {plain(verdict['headline'])}", "", f"*{plain(content['title'])}*", ""]
    lines += [paragraph(sentence) + "\n" for sentence in verdict["sentences"]]
    lines += [f"- **{plain(n['label'])}**: {plain(n['value'])}{_aside(n['note'])}" for n in verdict["numbers"]]
    for section in content["sections"]:
        lines += ["", f"## {plain(section['title'])}"]
        for block in section["blocks"]:
            if block["kind"] in RENDERERS:
                lines += ["", *RENDERERS[block["kind"]](block)]
    lines += ["", "---", "", plain(content["footer"])]
    return "\n".join(lines) + "\n"


def plain(text: str) -> str:
    """Escape running text: no markup, no HTML, no link that was not one."""
    text = LINKS.sub(lambda found: "\\" + found.group(), SPECIAL.sub(r"\\\1", text))
    return _isolate(text)


def paragraph(text: str) -> str:
    """Escape text that begins a line, where a dash or a number would begin a list."""
    return OPENING.sub(_escape_opening, plain(text))


def span(text: str) -> str:
    """Return a name from the data as a code span, in which nothing but its end has a meaning."""
    longest = max((len(run) for run in re.findall("`+", text)), default=0)
    fence = "`" * (longest + 1)
    padding = " " if text.startswith("`") or text.endswith("`") else ""
    return f"{fence}{padding}{_isolate(text)}{padding}{fence}"


def _escape_opening(found: re.Match[str]) -> str:
    start, mark = found.groups()
    return f"{start}\\{mark}" if not mark[0].isdigit() else f"{start}{mark}\\"


def _isolate(text: str) -> str:
    """Keep right-to-left letters from reordering what stands around them (first strong isolate, and its end)."""
    return f"\u2068{text}\u2069" if has_right_to_left(text) else text


def _aside(note: str) -> str:
    return f" ({plain(note)})" if note else ""


def _facts(block: Mapping[str, Any]) -> list[str]:
    return [f"- **{plain(item['term'])}**: {plain(item['value'])}" for item in block["items"]]


def _notes(block: Mapping[str, Any]) -> list[str]:
    return [f"- {paragraph(item)}" for item in block["items"]]


def _text(block: Mapping[str, Any]) -> list[str]:
    return [paragraph(block["text"])]


def _code(block: Mapping[str, Any]) -> list[str]:
    longest = max((len(run) for run in re.findall("`+", block["text"])), default=0)
    fence = "`" * max(3, longest + 1)
    return [f"{fence}{block['language']}", block["text"], fence]


def _table(block: Mapping[str, Any]) -> list[str]:
    columns = block["columns"]
    texts = [column_texts([row[i] for row in block["rows"]], c["type"]) for i, c in enumerate(columns)]
    foreign = [c["type"] in FOREIGN for c in columns]
    lines = [f"**{plain(block['caption'])}**", "", _row([plain(c["label"]) for c in columns])]
    lines.append(_row(["---:" if c["type"] in RIGHT else ":---" for c in columns]))
    for values in zip(*texts, strict=True):
        # A table ends its cell at every pipe, also within a code span, unless a backslash stands before it.
        cells = [span(v).replace("|", "\\|") if f else plain(v) for v, f in zip(values, foreign, strict=True)]
        lines.append(_row(cells))
    return [*lines, "", paragraph(block["note"])] if block["note"] else lines


def _columns(block: Mapping[str, Any]) -> list[str]:
    x, y = block["samples"]
    kinds = [
        ("Column", "text"),
        ("Difference", "words"),
        ("p-value", "pvalue"),
        (x, "measure"),
        (y, "measure"),
        ("Effect", "measure"),
    ]
    rows = [[item["label"], _words(item), item["pvalue"], item["x"], item["y"], _effect(item)] for item in block["items"]]
    table = {
        "caption": block["caption"],
        "columns": [{"label": label, "type": kind} for label, kind in kinds],
        "rows": rows,
        "note": block["note"],
    }
    return _table(table)


def _words(item: Mapping[str, Any]) -> str:
    said = item["words"] or "–"
    return f"{said} (suspicious: {item['suspicious']})" if item["suspicious"] else said


def _effect(item: Mapping[str, Any]) -> str:
    return "–" if item["effect"] is None else f"{item['effect']} ({item['interval']})"


def _details(block: Mapping[str, Any]) -> list[str]:
    shown = [one for one in block["blocks"] if one["kind"] in RENDERERS]
    return (
        [f"### {plain(block['title'])}", *(line for one in shown for line in ("", *RENDERERS[one["kind"]](one)))] if shown else []
    )


def _row(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


# What is not here, figures, Markdown does without: they show what sentences and tables say.
RENDERERS: dict[str, Callable[[Mapping[str, Any]], list[str]]] = {
    "facts": _facts,
    "notes": _notes,
    "text": _text,
    "code": _code,
    "table": _table,
    "columns": _columns,
    "details": _details,
}
