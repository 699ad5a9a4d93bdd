"""What a report of a series says where a monitor watched it: wealth, alarm, since when, and the columns that moved."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cpmmd.core.text import harmless
from cpmmd.report import blocks, cells
from cpmmd.report.blocks import Block

Record = Mapping[str, Any]


def watched(records: Sequence[Record]) -> list[Record]:
    """Return the records that a monitor made."""
    return [record for record in records if record.get("wealth") is not None]


def watch_verdict(records: Sequence[Record], alpha: float | None, alarm: bool) -> Block:
    """Return the fields of a verdict that a monitor words otherwise than a detector."""
    last, since = records[-1], since_of(records)
    level = last["alpha"] if alpha is None else alpha
    batches = f"{cells.count(len(records))} batch{'es' * (len(records) != 1)}"
    headline = f"Alarm: something changed, most likely with {since}" if alarm else f"No alarm in {batches}"
    promise = f"Where nothing changed, the wealth ever reaches {1 / level:g} with probability {level:g} at most."
    found = max(records, key=lambda record: record["wealth"])
    numbers = [
        ("Batches", cells.count(len(records)), f"{cells.count(last['number'])} in all"),
        ("Wealth", cells.number(last["wealth"]), f"limit {1 / level:g}"),
        ("Most", cells.number(found["wealth"]), harmless(found["batch"])),
    ]
    settled = [] if alarm or not last["alarm"] else ["Its last alarm was acknowledged or dismissed after the latest batch."]
    return {
        "reject": alarm,
        "headline": headline,
        "sentences": [*settled, _latest(last), promise],
        "numbers": [{"label": label, "value": value, "note": note} for label, value, note in numbers],
    }


def since_of(records: Sequence[Record]) -> str:
    """Return the estimated first changed batch of the latest alarm."""
    return next((harmless(record["since"]) for record in reversed(records) if record["since"] is not None), "")


def _latest(last: Record) -> str:
    return f"The latest batch, {harmless(last['batch'])}, by itself has p = {cells.number(last['pvalue'])} against all before it."


def wealth_figure(records: Sequence[Record], alpha: float | None) -> Block:
    """Return the place of the wealth over time."""
    alarms = [record for record in records if record["alarm"]]
    level = records[-1]["alpha"] if alpha is None else alpha
    first = (
        f"The limit {1 / level:g} was reached by {harmless(alarms[0]['batch'])}"
        if alarms
        else f"It stays below the limit {1 / level:g}"
    )
    shaded = f"; shaded: the batches since {since_of(records)}" if alarms else ""
    return blocks.figure("batch-wealth", "Evidence over time", f"The wealth after each batch. {first}{shaded}.", wide=True)


def columns_figure(records: Sequence[Record]) -> Block | None:
    """Return the place of the columns that moved; None where none is known."""
    counts = Counter(name for record in records for name in record.get("columns") or ())
    if not counts:
        return None
    named = ", ".join(f"{harmless(name)} ({count})" for name, count in counts.most_common(3))
    said = f"The columns that moved most in each batch that is significant or under an alarm; most often {named}."
    return blocks.figure("moved-columns", "Columns that moved", said, wide=True)
