"""The page of one test: the verdict, where, how sure, how it was done."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cpmmd.core.plain import PlainDict
from cpmmd.core.text import SAMPLES
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import ClassPath, SingleTest, TestResult
from cpmmd.report.page import Facts, Figure, Notes, Number, Page, Section, Table, TableColumn, Text, Verdict, count, line, number
from cpmmd.report.where import where_blocks, without_rare_levels
from cpmmd.selection.certificates import Certificate
from cpmmd.selection.values import BandwidthPath, TrainingHistory

QUESTION = "Are the two samples from the same distribution?"
UNKNOWN_SEED = "given as a Generator, not recorded"
MOST_KERNELS = 10  # rows of a table of kernels


def content(
    result: TestResult,
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
    >>> from cpmmd import report, two_sample_test
    >>> result = two_sample_test(range(40), range(20, 60), rng=0)
    >>> said = report.content(result, explanation=result.explain())
    >>> said["verdict"]["headline"], [section["id"] for section in said["sections"]]
    ('The samples differ', ['where', 'assurance', 'evidence', 'repeat'])
    """
    return result_page(result, explanation, names, rows=rows, command=command, title=title).to_dict()


def result_page(
    result: TestResult, explanation: Explanation | None, names: Sequence[str], rows: bool, command: str | None, title: str | None
) -> Page:
    """Return the page of one test."""
    if explanation is not None and not rows:
        explanation = without_rare_levels(explanation, result.tested_sizes)
    unknown = Text("This result carries no rows, so it cannot say where.")
    where = [unknown] if explanation is None else where_blocks(explanation, rows=rows)
    sections = [
        Section.of("where", "Where", where),
        _assurance(result, explanation, names if explanation is None else explanation.names),
        _evidence(result),
    ]
    return Page.of(result_verdict(result, explanation), sections, title=title or QUESTION, command=command, call=result.call)


def result_verdict(result: TestResult, explanation: Explanation | None) -> Verdict:
    """Return the answer, a sentence or two, and the few numbers that matter."""
    (m, n), (mt, nt) = result.sizes, result.tested_sizes
    below = "at or below" if result.pvalue <= result.alpha else "above"
    plain = f"p = {number(result.pvalue)} is {below} the level {result.alpha:g}."
    sentences = [plain if explanation is None else explanation.where]
    if not result.reject:
        sentences.append("That is no proof that the samples agree: a small difference may need more rows to show.")
    numbers = [Number("p-value", number(result.pvalue), f"level {result.alpha:g}")]
    effect = None if explanation is None else explanation.effect
    if effect is not None:
        interval = f"95% interval {effect.low:.0%} to {effect.high:.0%}; 50% is chance"
        numbers.append(Number("Told apart", f"{effect.probability:.0%}", interval))
    tested = "" if (m, n) == (mt, nt) else f"{count(mt)} v {count(nt)} of them tested"
    numbers.append(Number("Rows", f"{count(m)} v {count(n)}", tested))
    if result.n_columns is not None:
        numbers.append(Number("Columns", count(result.n_columns)))
    return Verdict(
        reject=result.reject,
        headline="The samples differ" if result.reject else "No difference found",
        sentences=[line(sentence) for sentence in sentences],
        pvalue=result.pvalue,
        alpha=result.alpha,
        statistic=result.statistic,
        effect=None if effect is None else effect.probability,
        numbers=numbers,
    )


# How sure the answer is.


def _assurance(result: TestResult, explanation: Explanation | None, names: Sequence[str]) -> Section:
    """Return the section on level, resolution, certificate and remarks."""
    mt, nt = result.tested_sizes
    tested = "all rows" if result.sizes == (mt, nt) else f"{count(mt)} of {names[0]} and {count(nt)} of {names[1]}"
    paired = explanation is not None and explanation.effect is None
    certificate = None if result.certificate is None or result.certificate.vacuous else result.certificate
    held_out = None
    if explanation is not None:
        part = "yes: the tested rows had no part in choosing" if explanation.held_out else "no: the tested rows also chose"
        held_out = f"{part} the kernel"
    facts = {
        "Pairs" if paired else "Told apart": None if explanation is None else explanation.told,
        "Level": _level(result),
        "Relabelings": _resolution(result),
        "Exchangeable": None if result.design is None else str(result.design),
        "Tested rows": tested,
        "Held out": held_out,
        "Certificate": None if certificate is None else certificate.statement,
        "Seed": UNKNOWN_SEED if result.seed is None else str(result.seed),
    }
    said = () if explanation is None else explanation.notes  # how a design compares is said beside the columns
    table = None if certificate is None else _certificate(certificate)
    return Section.of("assurance", "How sure", [Facts.of(facts), table, Notes.of([*result.notes, *said])])


def _level(result: TestResult) -> str:
    if result.design is not None and not result.design.exact:
        return f"{result.alpha:g}, approximately: blocks of rows are exchangeable as far as dependence fades within their length"
    if not result.exact:
        return f"{result.alpha:g}, exact given the method's bandwidths, which look at which row is whose"
    return f"{result.alpha:g}, exact: if both samples came from one distribution, p would fall to it at most that often"


def _resolution(result: TestResult) -> str:
    total = len(result.null_distribution)
    if result.exhaustive:
        return f"all {count(total + 1)}; p has no error from drawing"
    error = np.sqrt(result.pvalue * (1 - result.pvalue) / total)
    least = f"p cannot be below {1 / (total + 1):.2g}"
    return f"{count(total)} at random; {least}, and has a standard error of {error:.1g} from the drawing"


def _certificate(certificate: Certificate) -> Table:
    readings = {
        "constant derived from swaps": certificate.worst_case,
        "constant of the paper's theorem (not proven)": certificate.stated,
        "calibrated constant (no theorem)": certificate.calibrated,
    }
    bounds = {name: bound for name, bound in readings.items() if bound is not None}
    return Table.of(
        "certificate",
        f"Lower bounds of the squared MMD, stated with probability {1 - certificate.delta:g}",
        [
            ("Reading", "text", list(bounds)),
            ("Constant", "number", [bound.constant for bound in bounds.values()]),
            ("Lower bound", "number", [bound.lower_bound for bound in bounds.values()]),
            ("Needed for power", "number", [certificate.threshold] * len(bounds)),
            ("Power certified", "flag", [bound.power_certified for bound in bounds.values()]),
        ],
        note=f"Taken for granted: {'; '.join(certificate.assumptions)}.",
    )


# The evidence: how the statistic compares with its relabelings, and which kernels were looked at.


def _evidence(outcome: TestResult) -> Section:
    said, chosen, splits = _comparison(outcome), outcome.selected_class, outcome.splits
    kernel = None if outcome.kernel is None else str(outcome.kernel)
    if kernel and chosen is not None and chosen.coordinates:
        kernel = f"{kernel} on {chosen.coordinates}"
    penalty = combined = None
    if outcome.calibration is not None:
        permutations = len(outcome.calibration.ratios)
        penalty = f"C1 = {number(outcome.calibration.c1)}, calibrated by {permutations} null permutations"
    if splits is not None:
        ends = f"{number(splits.smallest)} to {number(splits.largest)}"
        combined = f"{len(splits.pvalues)}, with p from {ends}, combined by the rule '{splits.rule}'"
    facts = {
        "Method": f"{outcome.method}: {outcome.summary}" if outcome.summary else outcome.method,
        "Statistic": f"{number(outcome.statistic)}, {outcome.statistic_meaning}",
        "Kernel": kernel,
        "Penalty": penalty,
        "Splits": combined,
    }
    histogram = Figure("null-distribution", "The statistic among its relabelings", line(f"Histogram of the relabelings. {said}"))
    blocks = [
        Text(line(said)),
        histogram,
        *_selection_figures(outcome),
        Facts.of(facts),
        _classes(outcome.classes[:MOST_KERNELS]) if outcome.classes else None,
        None if outcome.collection is None else _single_tests(outcome.collection.tests),
    ]
    return Section.of("evidence", "How it was done", blocks)


def _comparison(outcome: TestResult) -> str:
    """Say in a sentence how p came about."""
    if outcome.splits is not None:
        return f"p = {number(outcome.pvalue)} combines several splits; shown is the split with the median p-value."
    others = len(outcome.null_distribution)
    drawn = f"all {count(others)} other relabelings" if outcome.exhaustive else f"{count(others)} random relabelings"
    reached = outcome.rank - 1
    return (
        f"Of {drawn} of the rows, {count(reached) if reached else 'none'} gave a statistic at least as large as the "
        f"observed {number(outcome.statistic)}; counting the observed one, "
        f"p = {count(reached + 1)} / {count(others + 1)} = {number(outcome.pvalue)}."
    )


def _selection_figures(outcome: TestResult) -> list[Figure]:
    path = None if outcome.selection is None else outcome.selection.path
    figures = []
    if isinstance(path, BandwidthPath) or any(len(one.bandwidths) for one in outcome.classes):
        said = f"Criterion of the kernels that were looked at. Chosen: {outcome.kernel}."
        figures.append(Figure("criterion-path", "How the kernel was chosen", line(said)))
    if outcome.selection is not None and isinstance(path, TrainingHistory):
        steps, end = len(path.steps), number(outcome.selection.criterion)
        said = f"Criterion and squared MMD over {steps} recorded steps; the criterion ended at {end}."
        figures.append(Figure("training-history", "Training of the kernel", line(said)))
    return figures


def _classes(classes: Sequence[ClassPath]) -> Table:
    """Table the classes of the full-sample test."""
    return Table.of(
        "classes",
        "Kernel classes, each at its best member",
        [
            ("Class", "text", [one.name for one in classes]),
            ("Bandwidth", "number", [one.best_bandwidth for one in classes]),
            ("Spectral parameter", "number", [one.best_gamma for one in classes]),
            ("Squared MMD", "number", [float(one.mmd2[one.best]) if len(one.mmd2) else None for one in classes]),
            ("Score", "number", [one.evidence for one in classes]),
            ("Penalty", "number", [one.penalty for one in classes]),
            ("Score less penalty", "number", [one.criterion for one in classes]),
        ],
    )


def _single_tests(tests: Sequence[SingleTest]) -> Table:
    """Table the single tests of a method that uses many kernels."""
    strongest = sorted(tests, key=lambda test: test.pvalue)[:MOST_KERNELS]
    columns: list[TableColumn] = [
        ("Kernel", "text", [test.kernel for test in strongest]),
        ("Bandwidth", "number", [test.bandwidth for test in strongest]),
        ("Squared MMD", "number", [test.mmd2 for test in strongest]),
        ("p on its own", "pvalue", [test.pvalue for test in strongest]),
    ]
    if tests[0].rejected is not None:
        columns.append(("Rejects", "flag", [test.rejected for test in strongest]))
    return Table.of(
        "single-tests",
        "The single kernels",
        columns,
        note="" if len(tests) <= MOST_KERNELS else f"The {MOST_KERNELS} of {len(tests)} with the smallest p.",
    )
