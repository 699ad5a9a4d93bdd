"""What a picture is of: every plot takes a result or its explanation, whichever is at hand."""

from __future__ import annotations

from cpmmd.errors import InputError
from cpmmd.explain.explanation import explain
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestOutcome

Subject = TestOutcome | Explanation


def outcome_of(subject: Subject) -> TestOutcome:
    """Return the result that was passed, or that was explained."""
    if isinstance(subject, Explanation):
        if subject.outcome is None:
            raise InputError("The picture needs a result. Got an explanation without one; pass the result itself.")
        return subject.outcome
    if not isinstance(subject, TestOutcome):
        raise InputError(f"A picture is of a result or of its explanation. Got {type(subject).__name__} instead.")
    return subject


def explanation_of(subject: Subject) -> Explanation:
    """Return the explanation that was passed, or explain the result."""
    if isinstance(subject, Explanation):
        return subject
    outcome = outcome_of(subject)
    answer: Explanation = outcome.explain() if hasattr(outcome, "explain") else explain(outcome)  # a result keeps its explanation
    return answer
