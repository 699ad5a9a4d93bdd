"""The report of an equivalence test: the same blocks as every report, no pictures."""

from __future__ import annotations

from typing import TYPE_CHECKING

from cpmmd.core.plain import PlainDict
from cpmmd.core.text import LINE, harmless
from cpmmd.report import blocks, cells
from cpmmd.report.assurance import repetition
from cpmmd.report.blocks import Block
from cpmmd.report.content import FORMAT, footer

if TYPE_CHECKING:
    from cpmmd.equivalence.result import EquivalenceResult

QUESTION = "Are the two samples the same for this purpose?"
LEVEL = "for many rows: measured from 50 rows on, samples that differ by the margin were called equivalent at most that often"


def page(result: EquivalenceResult, *, title: str | None, command: str | None) -> PlainDict:
    """Return everything the report says, in plain JSON types."""
    from cpmmd import __version__

    return {
        "format": FORMAT,
        "title": harmless(title or QUESTION, 160),
        "verdict": _verdict(result),
        "sections": [_where(result), _assurance(result), repetition(command, result.call, __version__)],
        "footer": footer(__version__),
    }


def on_screen(said: PlainDict) -> PlainDict:
    """Return what the HTML page is made of: it marks a rejection as a finding, and here the finding is that none was possible."""
    return {**said, "verdict": {**said["verdict"], "reject": not said["verdict"]["reject"]}}


def _verdict(result: EquivalenceResult) -> Block:
    m, n = result.sizes
    numbers = [
        ("p-value", cells.number(result.pvalue), f"level {result.alpha:g}"),
        ("Margin", f"{result.margin:g}", "standard deviations"),
        ("Told apart at most", f"{result.told_apart:.1%}", "of the time; 50% is chance"),
        ("Rows", f"{cells.count(m)} v {cells.count(n)}", ""),
        ("Columns", cells.count(len(result.columns)), ""),
    ]
    return {
        "reject": result.reject,
        "headline": result.verdict.partition(" (")[0],
        "sentences": [harmless(result.explain().sentence, LINE)],
        "pvalue": result.pvalue,
        "alpha": result.alpha,
        "statistic": result.statistic,
        "effect": result.told_apart,
        "numbers": [{"label": label, "value": value, "note": note} for label, value, note in numbers],
    }


def _where(result: EquivalenceResult) -> Block:
    columns = [
        ("Column", "text"),
        ("What differs", "text"),
        ("Difference", "number"),
        ("From", "number"),
        ("To", "number"),
        ("p-value", "pvalue"),
    ]
    rows = [[c.name, c.meaning, c.difference, c.low, c.high, c.pvalue] for c in result.columns]
    caption = f"Differences (second sample less first) in standard deviations, with intervals of {1 - 2 * result.alpha:.0%}"
    return blocks.section("where", "The largest differences not excluded", [blocks.table("columns", caption, columns, rows)])


def _assurance(result: EquivalenceResult) -> Block:
    joint = result.joint
    facts = [
        ("Level", f"{result.alpha:g}, {LEVEL}"),
        ("Together", f"shift of {_number(joint.shift)}, interval {_number(joint.low)} to {_number(joint.high)}"),
        ("Kernel", f"Gaussian of bandwidth {cells.number(joint.bandwidth)} standard deviations"),
        ("Rows compared", f"{cells.count(joint.rows[0])} v {cells.count(joint.rows[1])} by the kernel, all by columns"),
        ("Seed", "given as a Generator, not recorded" if result.seed is None else str(result.seed)),
    ]
    return blocks.section("assurance", "How sure", [blocks.facts(facts), blocks.notes(result.notes)])


def _number(shift: float) -> str:
    return cells.number(shift) if shift < float("inf") else "any size"
