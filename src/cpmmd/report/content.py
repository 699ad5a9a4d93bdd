"""The one dictionary behind a report: verdict, where, how sure, how it was done, how to repeat it."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime

from cpmmd.core.plain import PlainDict
from cpmmd.core.text import LINE, harmless
from cpmmd.explain.values import Explanation
from cpmmd.explain.words import SAMPLES
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.report import cells
from cpmmd.report.assurance import assurance, repetition
from cpmmd.report.blocks import Block
from cpmmd.report.evidence import evidence
from cpmmd.report.location import location, without_rare_levels

FORMAT = "cpmmd-report-1"
QUESTION = "Are the two samples from the same distribution?"


def content(
    result: TestOutcome,
    *,
    rows: bool = True,
    command: str | None = None,
    title: str | None = None,
    explanation: Explanation | None = None,
    names: Sequence[str] = SAMPLES,
) -> PlainDict:
    """Return everything a report of one test says, in plain JSON types.

    Parameters
    ----------
    result : TestResult
        What :func:`~cpmmd.two_sample_test` returned.
    rows : bool
        Whether values of single rows may appear.
    command : str, optional
        The shell command that gave the result, if one did.
    title : str, optional
        What was compared; a question when None.
    explanation : Explanation, optional
        What ``result.explain()`` returned; without one the report does not say where.
    names : sequence of str
        What the two samples are called; an explanation has its own.

    Returns
    -------
    dict
        With ``title``, ``verdict``, ``sections``, ...; :func:`render` turns it into text.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import report, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> result = two_sample_test(data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2)), rng=0)
    >>> said = report.content(result, explanation=result.explain())
    >>> said["verdict"]["headline"], [section["id"] for section in said["sections"]]
    ('The samples differ', ['where', 'assurance', 'evidence', 'repeat'])
    """
    from cpmmd import __version__

    if explanation is not None and not rows:
        explanation = without_rare_levels(explanation, result.tested_sizes)
    return {
        "format": FORMAT,
        "title": harmless(title or QUESTION, 160),
        "verdict": verdict(result, explanation),
        "sections": [
            location(explanation, rows=rows),
            assurance(result, explanation, names if explanation is None else explanation.names),
            evidence(result),
            repetition(command, result.call, __version__),
        ],
        "footer": footer(__version__),
    }


def footer(version: str) -> str:
    """Say what wrote the report, and when."""
    return f"Written by cpmmd {version} on {datetime.now(UTC):%Y-%m-%d %H:%M} UTC."


def verdict(result: TestOutcome, explanation: Explanation | None) -> Block:
    """Return the answer, a sentence or two, and the few numbers that matter."""
    below = "at or below" if result.pvalue <= result.alpha else "above"
    plain = f"p = {cells.number(result.pvalue)} is {below} the level {result.alpha:g}."
    sentences = [plain if explanation is None else explanation.where]
    if not result.reject:
        sentences.append("That is no proof that the samples agree: a small difference may need more rows to show.")
    return {
        "reject": result.reject,
        "headline": "The samples differ" if result.reject else "No difference found",
        "sentences": [harmless(sentence, LINE) for sentence in sentences],
        "pvalue": result.pvalue,
        "alpha": result.alpha,
        "statistic": result.statistic,
        "effect": None if explanation is None or explanation.effect is None else explanation.effect.probability,
        "numbers": _numbers(result, explanation),
    }


def _numbers(result: TestOutcome, explanation: Explanation | None) -> list[dict[str, str]]:
    (m, n), (mt, nt) = result.sizes, result.tested_sizes
    tested = "" if (m, n) == (mt, nt) else f"{cells.count(mt)} v {cells.count(nt)} of them tested"
    numbers = [("p-value", cells.number(result.pvalue), f"level {result.alpha:g}")]
    effect = None if explanation is None else explanation.effect
    if effect is not None:
        interval = f"95% interval {effect.low:.0%} to {effect.high:.0%}; 50% is chance"
        numbers.append(("Told apart", f"{effect.probability:.0%}", interval))
    numbers += [("Rows", f"{cells.count(m)} v {cells.count(n)}", tested), *_columns(result)]
    return [{"label": label, "value": value, "note": note} for label, value, note in numbers]


def _columns(result: TestOutcome) -> list[tuple[str, str, str]]:
    return [] if result.n_columns is None else [("Columns", cells.count(result.n_columns), "")]
