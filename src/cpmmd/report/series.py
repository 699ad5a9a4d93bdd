"""A report of many batches against one reference."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from cpmmd.core.plain import PlainDict
from cpmmd.core.text import LINE, harmless
from cpmmd.errors import InputError
from cpmmd.report import blocks, cells
from cpmmd.report.assurance import repetition
from cpmmd.report.blocks import Block
from cpmmd.report.content import FORMAT, footer
from cpmmd.report.figures import MOST_BATCHES as MOST_DRAWN
from cpmmd.report.figures import series_drawings
from cpmmd.report.formats import format_of
from cpmmd.report.render import Path, finish

Record = Mapping[str, Any]
NEEDED = ("batch", "pvalue", "reject")
MOST_BATCHES = 500  # rows of the table: about 150 kB
COLUMNS = [
    ("Batch", "batch", "text"),
    ("Time", "time", "time"),
    ("Rows", "rows", "count"),
    ("p-value", "pvalue", "pvalue"),
    ("Adjusted p", "adjusted", "pvalue"),
    ("Statistic", "statistic", "number"),
    ("Told apart", "effect", "share"),
    ("Differs", "reject", "flag"),
]


def write_series(
    records: Sequence[Record],
    path: Path | None = None,
    *,
    alpha: float | None = None,
    title: str | None = None,
    command: str | None = None,
) -> str:
    """Return the report of a series of batches, and write it when a path is given; its suffix decides the format.

    Parameters
    ----------
    records : sequence of mapping
        One dictionary a batch, in order of time: ``batch``, ``time``, ``rows``, ``pvalue``, ``adjusted``, ``statistic``,
        ``effect``, ``reject``, ``method``, ``seed``; all but ``batch``, ``pvalue`` and ``reject`` may be missing.
    path : str or Path, optional
        Ends in .html, .md or .json; without one the HTML text is only returned.
    alpha : float, optional
        Level at which batches were judged, if it is known.
    title, command : str, optional
        What was watched, and the shell command that did it.

    Returns
    -------
    str
        The text of the report.

    Examples
    --------
    >>> from cpmmd import report
    >>> records = [{"batch": "monday", "pvalue": 0.4, "reject": False}, {"batch": "tuesday", "pvalue": 0.001, "reject": True}]
    >>> report.write_series(records, title="This week").startswith("<!doctype html>")
    True
    """
    form = "html" if path is None else format_of(path)
    said = series_content(records, alpha=alpha, title=title, command=command)
    return finish(said, series_drawings(records, alpha), path, form)


def series_content(
    records: Sequence[Record], *, alpha: float | None = None, title: str | None = None, command: str | None = None
) -> PlainDict:
    """Return everything a report of a series says, in plain JSON types.

    Parameters
    ----------
    records, alpha, title, command
        As for :func:`write_series`.

    Returns
    -------
    dict
        With ``title``, ``verdict``, ``sections``, ...; :func:`render` turns it into text.

    Examples
    --------
    >>> from cpmmd import report
    >>> records = [{"batch": "monday", "pvalue": 0.4, "reject": False}, {"batch": "tuesday", "pvalue": 0.001, "reject": True}]
    >>> report.series_content(records)["verdict"]["headline"]
    '1 of 2 batches differs from the reference'
    """
    from cpmmd import __version__

    _check(records)
    return {
        "format": FORMAT,
        "title": harmless(title or "Batches against a reference", 160),
        "verdict": _verdict(records, alpha),
        "sections": [
            blocks.section("batches", "Batches", [_figure(records), _table(records)]),
            blocks.section("assurance", "How they were judged", [_facts(records, alpha)]),
            repetition(command, "", __version__),
        ],
        "footer": footer(__version__),
    }


def _check(records: Sequence[Record]) -> None:
    if not records:
        raise InputError("A series needs at least one batch. Got none; test a batch first.")
    for number, record in enumerate(records):
        absent = [key for key in NEEDED if record.get(key) is None]
        if absent:
            raise InputError(f"Each batch needs {', '.join(NEEDED)}. Batch {number} lacks {', '.join(absent)}; add them.")


def _verdict(records: Sequence[Record], alpha: float | None) -> Block:
    flagged = [record for record in records if record["reject"]]
    total, last = len(records), records[-1]
    some = f"{cells.count(len(flagged))} of {cells.count(total)} batches {'differs' if len(flagged) == 1 else 'differ'}"
    sentences = [f"The latest, {harmless(last['batch'])}, {'differs' if last['reject'] else 'does not differ'} ({_p(last)})."]
    if flagged and not last["reject"]:
        sentences.append(f"The last one that does is {harmless(flagged[-1]['batch'])} ({_p(flagged[-1])}).")
    lowest = min(records, key=lambda record: record["pvalue"])
    numbers = [
        ("Batches", cells.count(total), _period(records)),
        ("Flagged", cells.count(len(flagged)), "" if alpha is None else f"level {alpha:g}"),
        ("Smallest p", cells.number(lowest["pvalue"]), harmless(lowest["batch"])),
    ]
    return {
        "reject": bool(flagged),
        "headline": f"{some} from the reference" if flagged else f"No batch of {cells.count(total)} differs from the reference",
        "sentences": [harmless(sentence, LINE) for sentence in sentences],
        "batches": total,
        "flagged": len(flagged),
        "alpha": alpha,
        "numbers": [{"label": label, "value": value, "note": note} for label, value, note in numbers],
    }


def _p(record: Record) -> str:
    adjusted = record.get("adjusted")
    return f"p = {cells.number(record['pvalue'])}" if adjusted is None else f"adjusted p = {cells.number(adjusted)}"


def _period(records: Sequence[Record]) -> str:
    times = [str(record["time"]) for record in records if record.get("time")]
    return f"{harmless(times[0][:10])} to {harmless(times[-1][:10])}" if times else ""


def _figure(records: Sequence[Record]) -> Block:
    flagged = [harmless(record["batch"]) for record in records if record["reject"]]
    named = f"Flagged: {', '.join(flagged[:10])}{' and others' if len(flagged) > 10 else ''}." if flagged else "None is flagged."
    title = "p-values over time" if len(records) <= MOST_DRAWN else f"p-values of the latest {MOST_DRAWN} batches"
    return blocks.figure("batch-series", title, f"One p-value for each batch. {named}", wide=True)


def _table(records: Sequence[Record]) -> Block:
    """Table the latest batches; of the older ones those that differ."""
    chosen = _choose(records)
    present = [column for column in COLUMNS if any(records[i].get(column[1]) is not None for i in chosen)]
    rows = [[records[i].get(key) for _, key, _ in present] for i in chosen]
    left = len(records) - len(chosen)
    note = f"{cells.count(left)} older batches are not shown; most of them do not differ." if left else ""
    table = blocks.table("series", "All batches" if not left else "Batches", [(c[0], c[2]) for c in present], rows, note=note)
    return {**table, "flagged": [place for place, i in enumerate(chosen) if records[i]["reject"]]}


def _choose(records: Sequence[Record]) -> list[int]:
    if len(records) <= MOST_BATCHES:
        return list(range(len(records)))
    half = MOST_BATCHES // 2
    older = [i for i, record in enumerate(records[:-half]) if record["reject"]]
    return [*older[-half:], *range(len(records) - half, len(records))]


def _facts(records: Sequence[Record], alpha: float | None) -> Block:
    methods = list(dict.fromkeys(str(record["method"]) for record in records if record.get("method")))
    seeds = list(dict.fromkeys(record["seed"] for record in records if record.get("seed") is not None))
    adjusted = any(record.get("adjusted") is not None for record in records)
    judged = "the p-value adjusted for the number of batches" if adjusted else "each batch's own p-value"
    return blocks.facts(
        [
            ("Method", ", ".join(methods[:5]) or None),
            ("Judged by", judged if alpha is None else f"{judged}, at level {alpha:g}"),
            ("Seed", ", ".join(map(str, seeds)) if 0 < len(seeds) <= 3 else None),
        ]
    )
