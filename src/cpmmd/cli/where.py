"""Where samples differ, in a few lines: the sentence and the leading columns of an explanation."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from cpmmd.cli.output import say, say_table
from cpmmd.errors import CpmmdError

if TYPE_CHECKING:
    from cpmmd.explain.values import ColumnContribution, Explanation
    from cpmmd.results import TestResult

TOP = 3
# A look in passing: with all rows and permutations it would cost several times the test itself. Reports explain at full length.
LOOK = {"max_rows": 500, "n_column_permutations": 2, "top": TOP}


def explain_if_found(result: TestResult, *, in_full: bool = False) -> Explanation | None:
    """Return the explanation of a result that found a difference, in passing or in full; None where there is none to give."""
    if not result.reject:
        return None
    try:
        return result.explain(**({} if in_full else LOOK))
    except CpmmdError:
        return None


def effect_in_passing(result: TestResult) -> float | None:
    """Return how often a row is told from one of the other sample; None where that cannot be said."""
    from cpmmd.explain.explanation import effect_size

    try:
        return effect_size(result, max_rows=LOOK["max_rows"]).probability
    except CpmmdError:
        return None


def say_where(explanation: Explanation) -> None:
    """Print the sentence and the leading columns."""
    say()
    say("Where")
    say(f"  {explanation.sentence}")
    say_table(
        ("column", "share", "+-", "x", "y"),
        [_row(column) for column in explanation.columns[:TOP]],
        right=(1, 2, 3, 4),
    )


def _row(column: ColumnContribution) -> tuple[str, ...]:
    from cpmmd.explain.typical import typical

    return (column.name, f"{column.contribution:.0%}", f"{column.standard_error:.0%}", *typical(column))


def document(explanation: Explanation | None) -> dict[str, Any] | None:
    """Return an explanation in plain JSON types, without a number for every row."""
    if explanation is None:
        return None
    full: dict[str, Any] = explanation.to_dict()
    return {name: value for name, value in full.items() if name not in ("witness_x", "witness_y", "rows_x", "rows_y")}
