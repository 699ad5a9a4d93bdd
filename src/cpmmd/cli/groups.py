"""``cpmmd test --split-by``: the groups of one file, two against each other or each against the rest."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpmmd.cli.comparison import Answering, compare
from cpmmd.cli.output import note, probability, say, say_end, say_json, say_table, say_verdict
from cpmmd.cli.progress import progress
from cpmmd.cli.settings import Reading, Settings, command_line
from cpmmd.errors import InputError


@dataclass(frozen=True, eq=False)
class GroupResult:
    """One group against the rest."""

    name: str
    result: Any
    adjusted: float
    alpha: float

    @property
    def reject(self) -> bool:
        """Whether the group differs, all groups considered."""
        return self.adjusted <= self.alpha

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        return {
            "group": self.name,
            "rows": list(self.result.sizes),
            "pvalue": self.result.pvalue,
            "adjusted": self.adjusted,
            "statistic": self.result.statistic,
            "reject": self.reject,
        }


def compare_groups(file: str, column: str, reading: Reading, settings: Settings, answering: Answering) -> bool:
    """Compare the groups of a file; whether any differ."""
    from cpmmd.io import by_groups

    answering.check()
    (sample,) = reading.read([file], keep=[column])
    groups = by_groups(sample, column)
    if len(groups.names) == 2:
        x, y = map(groups.group, groups.names)
        return compare(x, y, [file], reading, settings, answering, split_by=column)
    if answering.report is not None:
        raise InputError(
            f"A report is of one comparison. {column!r} has {len(groups.names)} groups, each compared with the rest; leave "
            "--report out, or keep two groups in the file."
        )
    if settings.seed is None:  # one seed for all, so that one number repeats them
        settings = replace(settings, seed=int(np.random.SeedSequence().generate_state(1)[0]))
    found = _each_against_the_rest(groups, settings)
    again = command_line("test", [file], {"--split-by": column, **reading.arguments(), **settings.arguments(settings.seed)})
    _answer(found, column, sample.label, again, list(groups.sample.notes), settings, as_json=answering.json)
    return any(group.reject for group in found)


def _each_against_the_rest(groups: Any, settings: Settings) -> list[GroupResult]:
    from cpmmd.multiplicity import benjamini_hochberg

    results = []
    with progress() as line:
        for done, name in enumerate(groups.names):
            if line is not None:
                line("group", done + 1, len(groups.names))
            results.append(settings.test(groups.group(name), groups.rest(name)))
    adjusted = benjamini_hochberg([result.pvalue for result in results])
    tests = zip(groups.names, results, adjusted, strict=True)
    return [GroupResult(name, result, float(p), settings.alpha) for name, result, p in tests]


def _answer(
    found: list[GroupResult], column: str, label: str, again: str, notes: list[str], settings: Settings, *, as_json: bool
) -> None:
    differing = [group.name for group in found if group.reject]
    sentence = (
        f"{len(differing)} of {len(found)} groups differ from the rest (adjusted p <= {settings.alpha:g})."
        if differing
        else f"No group differs from the rest (all adjusted p > {settings.alpha:g})."
    )
    if as_json:
        document = {"command": "test-groups", "repeat": again, "reject": bool(differing), "sentence": sentence}
        document |= {"split_by": column, "name": label, "notes": notes, "groups": [group.to_dict() for group in found]}
        say_json(document | {"alpha": settings.alpha, "method": settings.method, "seed": settings.seed})
        return
    note(notes)
    say_verdict(sentence, differs=bool(differing))
    say()
    _say_groups(column, found)
    say_end(again)


def _say_groups(column: str, found: list[GroupResult]) -> None:
    rows = [
        (
            g.name,
            "differs" if g.reject else "no difference",
            probability(g.result.pvalue),
            probability(g.adjusted),
            str(g.result.sizes[0]),
        )
        for g in found
    ]
    say_table((column, "verdict", "p", "adjusted", "rows"), rows, right=(2, 3, 4))
    say()
    say("p-values are adjusted for the number of groups (Benjamini and Hochberg).")
