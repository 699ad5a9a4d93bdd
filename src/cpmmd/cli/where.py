"""Where samples differ, in a few lines: the sentence and the leading columns of an explanation."""

from __future__ import annotations

from pathlib import PurePath
from typing import TYPE_CHECKING, Any

from cpmmd.cli.output import probability, say, say_table
from cpmmd.core.text import harmless
from cpmmd.errors import CpmmdError

if TYPE_CHECKING:
    from cpmmd.explain.differences import ColumnDifference
    from cpmmd.explain.values import Explanation
    from cpmmd.results import TestResult

TOP = 8  # columns on the screen
WIDEST = 28  # characters of a sample's name above its values


def explain_result(result: TestResult, names: tuple[str, str] | None = None) -> Explanation | None:
    """Return the explanation of a result, the same in every form of the answer; None where there is none to give."""
    try:
        return result.explain() if names is None else result.explain(names=names)
    except CpmmdError:
        return None


def sample_names(x: str, y: str) -> tuple[str, str]:
    """Return what to call two samples in a sentence: their files' names, without folders where those are enough.

    Examples
    --------
    >>> sample_names("old/march.csv", "new/april.csv"), sample_names("old/a.csv", "new/a.csv"), sample_names("a.csv", "a.csv")
    (('march.csv', 'april.csv'), ('old/a.csv', 'new/a.csv'), ('a.csv (first)', 'a.csv (second)'))
    """
    short = PurePath(x).name or x, PurePath(y).name or y
    if short[0] != short[1]:
        return short
    return (x, y) if x != y else (f"{x} (first)", f"{y} (second)")


def say_where(explanation: Explanation) -> None:
    """Print the sentences, the columns that differ, and pairs that changed."""
    from cpmmd.explain.words import in_header

    say()
    say("Where")
    say(f"  {explanation.where}")
    if explanation.told:
        say(f"  {explanation.told}")
    for line in drop_hint(explanation):
        say(f"  {line}")
    names = [harmless(in_header(name), WIDEST) for name in explanation.names]
    _say_columns(explanation, names)
    if explanation.compared:
        say(f"  Here {explanation.compared}.")
    _say_pairs(explanation, names)


def _say_columns(explanation: Explanation, names: list[str]) -> None:
    shown = explanation.columns[: max(3, min(TOP, len(explanation.differing)))]
    say_table(("column", "difference", *names, "effect", "p"), [_row(column) for column in shown], right=(2, 3, 4, 5))
    left = len(explanation.columns) - len(shown)
    if left:
        say(f"  ... and {left} more column{'s' * (left > 1)} (--json or --report has all); p is adjusted for all columns")


def _say_pairs(explanation: Explanation, names: list[str]) -> None:
    pairs = explanation.differing_pairs[:TOP]
    if not pairs:
        return
    rows = [
        (" and ".join(p.labels), p.words, f"{p.correlation_x:.2f}", f"{p.correlation_y:.2f}", probability(p.pvalue))
        for p in pairs
    ]
    say()
    say_table(("pair", f"in {names[1]} they", *names, "p"), rows, right=(2, 3, 4))


def drop_hint(explanation: Explanation) -> list[str]:
    """Say how to leave suspicious columns out."""
    import shlex

    if not explanation.suspicious:
        return []
    flags = " ".join(f"--drop {shlex.quote(one.name)}" for one in explanation.suspicious)
    return [f"Leave out what says nothing about the data: {flags}"]


def _row(column: ColumnDifference) -> tuple[str, ...]:
    from cpmmd.explain.typical import typical

    effect = "" if column.effect is None or not column.words else str(column.effect)
    return (column.label, column.words, *typical(column), effect, probability(column.pvalue))


def document(explanation: Explanation | None) -> dict[str, Any] | None:
    """Return an explanation in plain JSON types, without a number for every row."""
    if explanation is None:
        return None
    full: dict[str, Any] = explanation.to_dict()
    return {name: value for name, value in full.items() if name not in ("witness_x", "witness_y", "rows_x", "rows_y")}
