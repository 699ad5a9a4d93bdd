"""What moved in a batch, in passing: cheap enough to be kept with every answer."""

from __future__ import annotations

from typing import Any

from cpmmd.errors import CpmmdError
from cpmmd.explain.explanation import effect_size
from cpmmd.results import TestResult

# With all rows and permutations it would cost several times the test itself.
LOOK: dict[str, Any] = {"max_rows": 500, "n_column_permutations": 2, "top": 3}
LEADING = 3  # columns named


def effect_of(result: TestResult) -> float | None:
    """Return how often a row of the batch is told from one that came before; None where that cannot be said."""
    try:
        return effect_size(result, max_rows=LOOK["max_rows"]).probability
    except CpmmdError:
        return None


def leading_columns(result: TestResult) -> tuple[str, ...]:
    """Return the columns that moved most; none where that cannot be said."""
    try:
        return tuple(column.name for column in result.explain(**LOOK).columns[:LEADING])
    except CpmmdError:
        return ()
