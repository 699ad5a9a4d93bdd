"""The page of one test: the verdict, where, how sure, how it was done."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cpmmd.core.plain import PlainDict
from cpmmd.core.text import SAMPLES
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import SingleTest, TestResult
from cpmmd.report.page import Facts, Figure, Notes, Number, Page, Section, Table, TableColumn, Text, Verdict, count, line, number
from cpmmd.report.where import where_parts, without_rare_levels
from cpmmd.selection.certificates import Certificate
from cpmmd.selection.values import BandwidthSearch, TrainingHistory

QUESTION = "Are the two samples from the same distribution?"
UNKNOWN_SEED = "not recorded: a Generator was passed"
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
    """Return the content of a report of one test, in plain JSON types.

    Parameters
    ----------
    result : TestResult
        What :func:`~cpmmd.two_sample_test` returned.
    rows : bool
        Whether values of single rows may appear.
    command : str, optional
        The shell command that repeats the result.
    title : str, optional
        What was compared; a question when None.
    explanation : Explanation, optional
        What ``result.explain()`` returned; None leaves out where the samples differ.
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
    >>> page = report.content(result, explanation=result.explain())
    >>> page["verdict"]["headline"], [section["id"] for section in page["sections"]]
    ('The samples differ', ['where', 'assurance', 'method', 'repeat'])
    """
    return result_page(result, explanation, names, rows=rows, command=command, title=title).to_dict()


def result_page(
    result: TestResult, explanation: Explanation | None, names: Sequence[str], rows: bool, command: str | None, title: str | None
) -> Page:
    """Return the page of one test."""
    if explanation is not None and not rows:
        explanation = without_rare_levels(explanation, result.tested_sizes)
    unknown = Text("Not explained: no explanation was asked for, or the result does not hold its data.")
    where = [unknown] if explanation is None else where_parts(explanation, rows=rows)
    sections = [
        Section.of("where", "Where", where),
        _assurance(result, explanation, names if explanation is None else explanation.names),
        _method(result),
    ]
    return Page.of(result_verdict(result, explanation), sections, title=title or QUESTION, command=command, call=result.call)


def result_verdict(result: TestResult, explanation: Explanation | None) -> Verdict:
    """Return the answer, a sentence or two, and the most important numbers."""
    (m, n), (mt, nt) = result.sizes, result.tested_sizes
    below = "at or below" if result.reject else "above"
    plain = f"p = {number(result.pvalue)} is {below} the significance level {result.alpha:g}."
    sentences = [plain if explanation is None else explanation.where]
    if not result.reject:
        sentences.append("No difference found does not mean equal: more rows may show a small difference.")
    numbers = [Number("p-value", number(result.pvalue), f"significance level {result.alpha:g}")]
    auc = None if explanation is None else explanation.auc
    if auc is not None:
        interval = f"95% confidence interval {auc.low:.2f} to {auc.high:.2f}; 0.5 is chance"
        numbers.append(Number("AUC", f"{auc.value:.2f}", interval))
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
        auc=None if auc is None else auc.value,
        numbers=numbers,
    )


# How sure the answer is.


def _assurance(result: TestResult, explanation: Explanation | None, names: Sequence[str]) -> Section:
    """Return the section on significance level, resolution, certificate and notes."""
    mt, nt = result.tested_sizes
    tested = "all rows" if result.sizes == (mt, nt) else f"{count(mt)} of {names[0]} and {count(nt)} of {names[1]}"
    paired = explanation is not None and explanation.auc is None
    certificate = None if result.certificate is None or result.certificate.vacuous else result.certificate
    held_out = None
    if explanation is not None:
        held_out = "yes: other rows chose the kernel" if explanation.held_out else "no: the same rows chose the kernel"
    facts = {
        "Pairs" if paired else "AUC": None if explanation is None else explanation.auc_sentence,
        "Significance level": _level(result),
        "Permutations": _resolution(result),
        "Exchangeable": None if result.design is None else str(result.design),
        "Tested rows": tested,
        "Held out": held_out,
        "Certificate": None if certificate is None else certificate.statement,
        "Seed": UNKNOWN_SEED if result.seed is None else str(result.seed),
    }
    table = None if certificate is None else _certificate(certificate)
    notes = Notes.of([*result.notes, *(() if explanation is None else explanation.notes)])
    return Section.of("assurance", "How sure", [Facts.of(facts), table, notes])


def _level(result: TestResult) -> str:
    if result.design is not None and not result.design.exact:
        return f"{result.alpha:g}, approximate: blocks of rows are exchangeable only if dependence fades within their length"
    if not result.exact:
        return f"{result.alpha:g}, exact given the method's bandwidths, which depend on the labels"
    return f"{result.alpha:g}, exact: the probability of a rejection under the null hypothesis is at most this"


def _resolution(result: TestResult) -> str:
    total = len(result.null_distribution)
    if result.exhaustive:
        return f"all {count(total + 1)}; p has no Monte Carlo error"
    error = np.sqrt(result.pvalue * (1 - result.pvalue) / total)
    return f"{count(total)} at random; p is at least {1 / (total + 1):.2g}, its Monte Carlo standard error is {error:.1g}"


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
        note=f"Assumptions: {'; '.join(certificate.assumptions)}.",
    )


# How it was done: the statistic among its permutations, and the kernels that were compared.


def _method(outcome: TestResult) -> Section:
    comparison, splits, chosen, best = _comparison(outcome), outcome.splits, outcome.selected_class, outcome.statistic_class
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
        "Relation to CP-MMD": _relation(outcome),
        "Statistic": f"{number(outcome.statistic)}, {outcome.statistic_meaning}",
        "Class of the statistic": None if best is None else f"{best.label}{' coordinates' if best.coordinates else ''}",
        "Kernel": kernel,
        "Kernel and statistic": outcome.kernel_note,
        "Penalty": penalty,
        "Splits": combined,
    }
    described = line(f"Histogram of the permuted statistics. {comparison}")
    parts = [
        Text(line(comparison)),
        Figure("null-distribution", "The statistic and its permutations", described),
        *_selection_figures(outcome),
        Facts.of(facts),
        _classes(outcome) if outcome.classes else None,
        None if outcome.collection is None else _single_tests(outcome.collection.tests),
    ]
    return Section.of("method", "How it was done", parts)


def _relation(outcome: TestResult) -> str | None:
    """Return what a method has of the paper's CP-MMD; None for other methods."""
    if outcome.classes:
        return (
            "this library's extension of it: no rows are held out for training, and the penalty of a class is a quantile of its "
            "scores under all permutations, not the paper's C1 G"
        )
    return None if outcome.calibration is None else "the paper's criterion, squared MMD minus C1 G, on a training half"


def _comparison(outcome: TestResult) -> str:
    """Return a sentence on how p was computed."""
    if outcome.splits is not None:
        return f"p = {number(outcome.pvalue)} combines several splits; the split with the median p-value is shown."
    others = len(outcome.null_distribution)
    drawn = f"all {count(others)} other" if outcome.exhaustive else f"{count(others)} random"
    reached = outcome.rank - 1
    return (
        f"{count(reached) if reached else 'None'} of {drawn} permutations gave a statistic at least as large as the observed "
        f"{number(outcome.statistic)}. Counting the observed one, "
        f"p = {count(reached + 1)} / {count(others + 1)} = {number(outcome.pvalue)}."
    )


def _selection_figures(outcome: TestResult) -> list[Figure]:
    path = None if outcome.selection is None else outcome.selection.path
    figures = []
    if isinstance(path, BandwidthSearch) or any(len(scored.bandwidths) for scored in outcome.classes):
        described = f"Criterion of every kernel that was compared. Chosen: {outcome.kernel}."
        figures.append(Figure("criterion-path", "How the kernel was chosen", line(described)))
    if outcome.selection is not None and isinstance(path, TrainingHistory):
        steps, end = len(path.steps), number(outcome.selection.criterion)
        described = f"Criterion and squared MMD over {steps} recorded steps; the criterion ended at {end}."
        figures.append(Figure("training-history", "Training of the kernel", line(described)))
    return figures


def _classes(outcome: TestResult) -> Table:
    """Table the classes of the full-sample test."""
    classes = outcome.classes[:MOST_KERNELS]
    gives = {outcome.selected_class: "kernel", outcome.statistic_class: "statistic"}
    if outcome.selected_class is outcome.statistic_class:
        gives = {outcome.statistic_class: "statistic, kernel"}
    return Table.of(
        "classes",
        "Kernel classes, each at its best member",
        [
            ("Class", "text", [scored.label for scored in classes]),
            ("Gives", "words", [gives.get(scored) for scored in classes]),
            ("Bandwidth", "number", [scored.best_bandwidth for scored in classes]),
            ("Spectral parameter", "number", [scored.best_gamma for scored in classes]),
            ("Squared MMD", "number", [float(scored.mmd2[scored.best]) if len(scored.mmd2) else None for scored in classes]),
            ("Score", "number", [scored.evidence for scored in classes]),
            ("Penalty", "number", [scored.penalty for scored in classes]),
            ("Score minus penalty", "number", [scored.criterion for scored in classes]),
        ],
    )


def _single_tests(tests: Sequence[SingleTest]) -> Table:
    """Table the single tests of a method that uses many kernels."""
    strongest = sorted(tests, key=lambda test: test.pvalue)[:MOST_KERNELS]
    columns: list[TableColumn] = [
        ("Kernel", "text", [test.kernel for test in strongest]),
        ("Bandwidth", "number", [test.bandwidth for test in strongest]),
        ("Squared MMD", "number", [test.mmd2 for test in strongest]),
        ("Unadjusted p", "pvalue", [test.pvalue for test in strongest]),
    ]
    if tests[0].rejected is not None:
        columns.append(("Rejects", "flag", [test.rejected for test in strongest]))
    return Table.of(
        "single-tests",
        "Single kernels",
        columns,
        note="" if len(tests) <= MOST_KERNELS else f"The {MOST_KERNELS} of {len(tests)} with the smallest p-values.",
    )
