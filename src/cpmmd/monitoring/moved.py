"""What moved in a batch, kept with its answer: how different it is, and which columns differ by themselves."""

from __future__ import annotations

from dataclasses import replace

from cpmmd.errors import CpmmdError
from cpmmd.explain.explanation import effect_size
from cpmmd.monitoring.answers import MonitorAnswer
from cpmmd.results import TestResult

EFFECT_ROWS = 500  # the effect takes a kernel matrix of as many
LEADING = 3  # columns named


def look_into(answer: MonitorAnswer) -> MonitorAnswer:
    """Return an answer with how different the batch is and, where that is asked, which columns moved."""
    if answer.result is None:
        return answer
    wanted = answer.alarm or answer.pvalue <= answer.alpha
    return replace(answer, effect=effect_of(answer.result), columns=leading_columns(answer.result) if wanted else ())


def effect_of(result: TestResult, max_rows: int = EFFECT_ROWS) -> float | None:
    """Return how often a row of the batch is told from one that came before; None where that cannot be said."""
    try:
        return effect_size(result, max_rows=max_rows).probability
    except CpmmdError:
        return None


def leading_columns(result: TestResult) -> tuple[str, ...]:
    """Return the columns that differ by themselves, the clearest first; none where none does or that cannot be said."""
    try:
        columns = result.explain(max_rows=EFFECT_ROWS, top=0).columns
    except CpmmdError:
        return ()
    return tuple(column.name for column in columns if column.pvalue <= result.alpha)[:LEADING]
