"""A report of several groups, each compared with the rest."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from cpmmd.core.text import sanitize
from cpmmd.explain.differences import quote_name
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestResult
from cpmmd.report.page import NOTHING, Details, Facts, Number, Page, Section, Table, Text, Verdict, count, filled, line
from cpmmd.report.render import write_page
from cpmmd.report.where import where_parts

OPEN = 3  # groups whose columns are seen at once
NAMED = 3  # columns of a group in the table


@dataclass(frozen=True, eq=False)
class ComparedGroup:
    """A group against the rest, which is the first sample of its test."""

    name: str  # what the group is called
    outcome: TestResult  # its test
    adjusted: float  # its p-value, adjusted for the number of groups
    reject: bool  # whether it differs
    explanation: Explanation | None = None  # where

    @property
    def words(self) -> str:
        """How its leading columns differ."""
        differing = () if self.explanation is None or not self.reject else self.explanation.differing
        named = [f"{quote_name(c.name, c.label)} {c.words}" for c in differing[:NAMED]]
        more = len(differing) - NAMED
        return ", ".join([*named, *([f"{more} more"] if more > 0 else [])]) or NOTHING


def write_groups(
    groups: Sequence[ComparedGroup],
    path: str | os.PathLike[str] | None = None,
    *,
    sentence: str,
    title: str,
    command: str,
    failures: Mapping[str, str] | None = None,
) -> str:
    """Return the report of groups, and write it when a path is given; ``failures`` says why groups could not be compared."""
    found = [group for group in groups if group.reject]
    lost = [f"{name} could not be compared: {why}" for name, why in (failures or {}).items()]
    differ = f"{len(found)} of {len(groups)} groups differ{'s' * (len(found) == 1)}"
    verdict = Verdict(
        reject=bool(found),
        headline=differ if found else "No group differs",
        sentences=[line(text) for text in (sentence, *lost)],
        numbers=[
            Number("Groups", count(len(groups)), "each against the rest"),
            Number("Rows", count(sum(groups[0].outcome.sizes)) if groups else "0"),
        ],
    )
    table = Table.of(
        "groups",
        "Groups, each against the rest",
        [
            ("Group", "text", [group.name for group in groups]),
            ("Differs", "flag", [group.reject for group in groups]),
            ("Columns", "words", [group.words for group in groups]),
            ("Rows", "count", [group.outcome.sizes[1] for group in groups]),
            ("p-value", "pvalue", [group.outcome.pvalue for group in groups]),
            ("Adjusted p", "pvalue", [group.adjusted for group in groups]),
        ],
        note="p-values are adjusted for the number of groups (Benjamini and Hochberg).",
        flagged=[i for i, group in enumerate(groups) if group.reject],
    )
    facts = {
        "False discovery rate": ", ".join(f"{level:g}" for level in sorted({group.outcome.alpha for group in groups})),
        "Meaning": "the expected share of false alarms among the groups that differ is at most this",
        "Method": ", ".join(sorted({group.outcome.method for group in groups})),
    }
    sections = [
        Section.of("where", "Where", [table, *(_columns(i, group) for i, group in enumerate(found))]),
        Section.of("assurance", "How sure", [Facts.of(facts)]),
    ]
    return write_page(Page.of(verdict, sections, title=title, command=command), {}, path)


def _columns(position: int, group: ComparedGroup) -> Details | None:
    """Return one group's columns, open where it is among the first."""
    if group.explanation is None:
        return None
    parts = where_parts(group.explanation, rows=False, prefix=f"group-{position}-")
    shown = filled([Text(line(group.explanation.where)), *parts])
    return Details(f"group-{position}", sanitize(group.name), position < OPEN, shown)
