"""The one dictionary behind a report: verdict, where, how sure, how it was done, how to repeat it."""

from __future__ import annotations

import platform
import re
from collections.abc import Sequence
from datetime import UTC, datetime

import numpy as np

from cpmmd.core.plain import PlainDict
from cpmmd.core.text import LINE, harmless
from cpmmd.explain.differences import SAMPLES
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.registry import public_names
from cpmmd.report import elements
from cpmmd.report.elements import Block
from cpmmd.report.location import location, without_rare_levels
from cpmmd.selection.certificates import Certificate, LowerBound
from cpmmd.selection.values import BandwidthPath, TrainingHistory

# How sure the answer is, and how to get it again.


def assurance(result: TestOutcome, explanation: Explanation | None, names: Sequence[str]) -> Block:
    """Return the section on level, resolution, certificate and remarks."""
    (m, n), (mt, nt) = result.sizes, result.tested_sizes
    tested = "all rows" if (m, n) == (mt, nt) else f"{elements.count(mt)} of {names[0]} and {elements.count(nt)} of {names[1]}"
    said = () if explanation is None else explanation.notes  # how a design compares is said beside the columns
    paired = explanation is not None and explanation.effect is None
    certificate = None if result.certificate is None or result.certificate.vacuous else result.certificate
    return elements.section(
        "assurance",
        "How sure",
        [
            elements.facts(
                [
                    ("Pairs" if paired else "Told apart", None if explanation is None else explanation.told),
                    ("Level", _level(result)),
                    ("Relabelings", _resolution(result)),
                    ("Exchangeable", None if result.design is None else str(result.design)),
                    ("Tested rows", tested),
                    ("Held out", _held_out(explanation)),
                    ("Certificate", None if certificate is None else certificate.statement),
                    ("Seed", "given as a Generator, not recorded" if result.seed is None else str(result.seed)),
                ]
            ),
            None if certificate is None else _certificate(certificate),
            elements.notes([*result.notes, *said]),
        ],
    )


def repetition(command: str | None, call: str, version: str) -> Block:
    """Return the section with the command, the Python call and the versions it was run with."""
    versions = [("cpmmd", version), ("Python", platform.python_version()), ("numpy", np.__version__)]
    return elements.section(
        "repeat",
        "How to repeat it",
        [
            None if not command else elements.code(command, "sh"),
            None if not call else elements.code(_program(call), "python"),
            elements.facts([("Versions", ", ".join(f"{name} {number}" for name, number in versions))]),
        ],
    )


def _program(call: str) -> str:
    """Return a call with the import it needs."""
    names = sorted(set(re.findall(r"\b[A-Za-z]\w*(?=\()", call)) & set(public_names()))
    return f"from cpmmd import {', '.join(names)}\n\nresult = {call}"


def _level(result: TestOutcome) -> str:
    if result.design is not None and not result.design.exact:
        return f"{result.alpha:g}, approximately: blocks of rows are exchangeable as far as dependence fades within their length"
    if not result.exact:
        return f"{result.alpha:g}, exact given the method's bandwidths, which look at which row is whose"
    return f"{result.alpha:g}, exact: if both samples came from one distribution, p would fall to it at most that often"


def _resolution(result: TestOutcome) -> str:
    total = len(result.null_distribution)
    if result.exhaustive:
        return f"all {elements.count(total + 1)}; p has no error from drawing"
    error = np.sqrt(result.pvalue * (1 - result.pvalue) / total)
    least = f"p cannot be below {1 / (total + 1):.2g}"
    return f"{elements.count(total)} at random; {least}, and has a standard error of {error:.1g} from the drawing"


def _held_out(explanation: Explanation | None) -> str | None:
    if explanation is None:
        return None
    return f"{'yes' if explanation.held_out else 'no'}: the tested rows {_part(explanation.held_out)} the kernel"


def _part(held_out: bool) -> str:
    return "had no part in choosing" if held_out else "also chose"


def _certificate(certificate: Certificate) -> Block:
    readings: list[tuple[str, LowerBound | None]] = [
        ("constant derived from swaps", certificate.worst_case),
        ("constant of the paper's theorem (not proven)", certificate.stated),
        ("calibrated constant (no theorem)", certificate.calibrated),
    ]
    columns = [
        ("Reading", "text"),
        ("Constant", "number"),
        ("Lower bound", "number"),
        ("Needed for power", "number"),
        ("Power certified", "flag"),
    ]
    rows: list[list[object]] = [
        [name, r.constant, r.lower_bound, certificate.threshold, r.power_certified] for name, r in readings if r is not None
    ]
    title = f"Lower bounds of the squared MMD, stated with probability {1 - certificate.delta:g}"
    return elements.table("certificate", title, columns, rows, note=f"Taken for granted: {'; '.join(certificate.assumptions)}.")


# The evidence: how the statistic compares with its relabelings, and which kernels were looked at.


MOST_KERNELS = 10  # rows of a table of kernels


def evidence(outcome: TestOutcome) -> Block:
    """Return the section."""
    return elements.section(
        "evidence",
        "How it was done",
        [
            elements.text(comparison(outcome)),
            elements.figure(
                "null-distribution", "The statistic among its relabelings", f"Histogram of the relabelings. {comparison(outcome)}"
            ),
            _selection_figure(outcome),
            _training_figure(outcome),
            elements.facts(
                [
                    ("Method", f"{outcome.method}: {outcome.summary}" if outcome.summary else outcome.method),
                    ("Statistic", f"{elements.number(outcome.statistic)}, {outcome.statistic_meaning}"),
                    ("Kernel", _kernel(outcome)),
                    ("Penalty", _penalty(outcome)),
                    ("Splits", _splits(outcome)),
                ]
            ),
            _classes(outcome),
            _single_tests(outcome),
        ],
    )


def comparison(outcome: TestOutcome) -> str:
    """Say in a sentence how p came about."""
    if outcome.splits is not None:
        return f"p = {elements.number(outcome.pvalue)} combines several splits; shown is the split with the median p-value."
    others = len(outcome.null_distribution)
    drawn = (
        f"all {elements.count(others)} other relabelings"
        if outcome.exhaustive
        else f"{elements.count(others)} random relabelings"
    )
    reached = outcome.rank - 1
    return (
        f"Of {drawn} of the rows, {elements.count(reached) if reached else 'none'} gave a statistic at least as large as the "
        f"observed {elements.number(outcome.statistic)}; counting the observed one, "
        f"p = {elements.count(reached + 1)} / {elements.count(others + 1)} = {elements.number(outcome.pvalue)}."
    )


def _kernel(outcome: TestOutcome) -> str | None:
    if outcome.kernel is None:
        return None
    chosen = outcome.selected_class
    return f"{outcome.kernel} on {chosen.coordinates}" if chosen is not None and chosen.coordinates else str(outcome.kernel)


def _penalty(outcome: TestOutcome) -> str | None:
    calibration = outcome.calibration
    if calibration is None:
        return None
    return f"C1 = {elements.number(calibration.c1)}, calibrated by {len(calibration.ratios)} null permutations"


def _splits(outcome: TestOutcome) -> str | None:
    splits = outcome.splits
    if splits is None:
        return None
    ends = f"{elements.number(splits.smallest)} to {elements.number(splits.largest)}"
    return f"{len(splits.pvalues)}, with p from {ends}, combined by the rule '{splits.rule}'"


def _selection_figure(outcome: TestOutcome) -> Block | None:
    over_bandwidths = outcome.selection is not None and isinstance(outcome.selection.path, BandwidthPath)
    if not over_bandwidths and not any(len(one.bandwidths) for one in outcome.classes):
        return None
    return elements.figure(
        "criterion-path",
        "How the kernel was chosen",
        f"Criterion of the kernels that were looked at. Chosen: {outcome.kernel}.",
    )


def _training_figure(outcome: TestOutcome) -> Block | None:
    if outcome.selection is None or not isinstance(outcome.selection.path, TrainingHistory):
        return None
    return elements.figure(
        "training-history",
        "Training of the kernel",
        f"Criterion and squared MMD over {len(outcome.selection.path.steps)} recorded steps; the criterion ended at "
        f"{elements.number(outcome.selection.criterion)}.",
    )


def _classes(outcome: TestOutcome) -> Block | None:
    """Table the classes of the full-sample test."""
    if not outcome.classes:
        return None
    rows = [
        [one.name, one.best_bandwidth, one.best_gamma, float(one.mmd2[one.best]), one.evidence, one.penalty, one.criterion]
        for one in outcome.classes[:MOST_KERNELS]
    ]
    columns = [
        ("Class", "text"),
        ("Bandwidth", "number"),
        ("Spectral parameter", "number"),
        ("Squared MMD", "number"),
        ("Score", "number"),
        ("Penalty", "number"),
        ("Score less penalty", "number"),
    ]
    return elements.table("classes", "Kernel classes, each at its best member", columns, rows)


def _single_tests(outcome: TestOutcome) -> Block | None:
    """Table the single tests of a method that uses many kernels."""
    if outcome.collection is None:
        return None
    tests = outcome.collection.tests
    strongest = sorted(tests, key=lambda test: test.pvalue)[:MOST_KERNELS]
    columns = [("Kernel", "text"), ("Bandwidth", "number"), ("Squared MMD", "number"), ("p on its own", "pvalue")]
    rows: list[list[object]] = [[test.kernel, test.bandwidth, test.mmd2, test.pvalue] for test in strongest]
    if tests[0].rejected is not None:
        columns.append(("Rejects", "flag"))
        rows = [[*row, test.rejected] for row, test in zip(rows, strongest, strict=True)]
    note = "" if len(tests) <= MOST_KERNELS else f"The {MOST_KERNELS} of {len(tests)} with the smallest p."
    return elements.table("single-tests", "The single kernels", columns, rows, note=note)


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
    plain = f"p = {elements.number(result.pvalue)} is {below} the level {result.alpha:g}."
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
    tested = "" if (m, n) == (mt, nt) else f"{elements.count(mt)} v {elements.count(nt)} of them tested"
    numbers = [("p-value", elements.number(result.pvalue), f"level {result.alpha:g}")]
    effect = None if explanation is None else explanation.effect
    if effect is not None:
        interval = f"95% interval {effect.low:.0%} to {effect.high:.0%}; 50% is chance"
        numbers.append(("Told apart", f"{effect.probability:.0%}", interval))
    numbers += [("Rows", f"{elements.count(m)} v {elements.count(n)}", tested), *_columns(result)]
    return [{"label": label, "value": value, "note": note} for label, value, note in numbers]


def _columns(result: TestOutcome) -> list[tuple[str, str, str]]:
    return [] if result.n_columns is None else [("Columns", elements.count(result.n_columns), "")]
