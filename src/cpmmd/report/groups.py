"""A report of several groups, each compared with the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cpmmd.core.plain import PlainDict
from cpmmd.core.text import LINE, harmless
from cpmmd.explain.differences import quote_name
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.report import elements
from cpmmd.report.content import FORMAT, footer, repetition
from cpmmd.report.elements import Block, format_of
from cpmmd.report.location import where_blocks
from cpmmd.report.render import Path, finish

OPEN = 3  # groups whose columns are seen at once
NAMED = 3  # columns of a group in the table


@dataclass(frozen=True, eq=False)
class ComparedGroup:
    """A group against the rest, which is the first sample of its test."""

    name: str  # what the group is called
    outcome: TestOutcome  # its test
    adjusted: float  # its p-value, adjusted for the number of groups
    reject: bool  # whether it differs
    explanation: Explanation | None = None  # where


def write_groups(
    groups: Sequence[ComparedGroup],
    path: Path | None = None,
    *,
    sentence: str,
    title: str,
    command: str,
    failures: Mapping[str, str] | None = None,
) -> str:
    """Return the report of groups, and write it when a path is given; its suffix decides the format.

    Parameters
    ----------
    groups : sequence of ComparedGroup
        What was found of each.
    path : str or Path, optional
        Ends in .html, .md or .json; without one the HTML text is only returned.
    sentence : str
        The finding.
    title : str
        What was compared.
    command : str
        The shell command that gave the result.
    failures : mapping of str to str, optional
        Groups that could not be compared, each with the reason.
    """
    form = "html" if path is None else format_of(path)
    return finish(
        groups_content(groups, sentence=sentence, title=title, command=command, failures=failures or {}), {}, path, form
    )


def groups_content(
    groups: Sequence[ComparedGroup], *, sentence: str, title: str, command: str, failures: Mapping[str, str]
) -> PlainDict:
    """Return everything a report of groups says, in plain JSON types."""
    from cpmmd import __version__

    found = [group for group in groups if group.reject]
    lost = [f"{name} could not be compared: {why}" for name, why in failures.items()]
    return {
        "format": FORMAT,
        "title": harmless(title, 160),
        "verdict": {
            "reject": bool(found),
            "headline": f"{len(found)} of {len(groups)} groups differ{'s' * (len(found) == 1)}" if found else "No group differs",
            "sentences": [harmless(sentence, LINE), *(harmless(line, LINE) for line in lost)],
            "numbers": [
                {"label": "Groups", "value": elements.count(len(groups)), "note": "each against the rest"},
                {"label": "Rows", "value": elements.count(sum(groups[0].outcome.sizes)) if groups else "0", "note": ""},
            ],
        },
        "sections": [
            elements.section("where", "Where", [_table(groups), *(_group(i, group) for i, group in enumerate(found))]),
            elements.section("assurance", "How sure", [_facts(groups)]),
            repetition(command, "", __version__),
        ],
        "footer": footer(__version__),
    }


def _table(groups: Sequence[ComparedGroup]) -> Block:
    columns = [
        ("Group", "text"),
        ("Differs", "flag"),
        ("Columns", "words"),
        ("Rows", "count"),
        ("p-value", "pvalue"),
        ("Adjusted p", "pvalue"),
    ]
    rows = [[g.name, g.reject, _columns(g), g.outcome.sizes[1], g.outcome.pvalue, g.adjusted] for g in groups]
    note = "p-values are adjusted for the number of groups (Benjamini and Hochberg)."
    flagged = [i for i, group in enumerate(groups) if group.reject]
    return {**elements.table("groups", "Groups, each against the rest", columns, rows, note=note), "flagged": flagged}


def _columns(group: ComparedGroup) -> str:
    """Name a group's leading columns with their words."""
    differing = () if group.explanation is None or not group.reject else group.explanation.differing
    named = [f"{quote_name(c.name, c.label)} {c.words}" for c in differing[:NAMED]]
    more = len(differing) - NAMED
    return ", ".join([*named, *([f"{more} more"] if more > 0 else [])]) or elements.NOTHING


def _group(position: int, group: ComparedGroup) -> Block | None:
    """Return one group's columns, open where it is among the first."""
    if group.explanation is None:
        return None
    inside = [elements.text(group.explanation.where), *where_blocks(group.explanation, rows=False, prefix=f"group-{position}-")]
    return {**elements.details(f"group-{position}", harmless(group.name), inside), "open": position < OPEN}


def _facts(groups: Sequence[ComparedGroup]) -> Block:
    methods = sorted({group.outcome.method for group in groups})
    levels = sorted({group.outcome.alpha for group in groups})
    return elements.facts(
        [
            ("Level", ", ".join(f"{level:g}" for level in levels)),
            ("Meaning", "among the groups that are said to differ, at most this share is a false alarm on average"),
            ("Method", ", ".join(methods)),
        ]
    )
