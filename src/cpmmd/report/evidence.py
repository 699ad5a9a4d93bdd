"""The evidence: how the statistic compares with its relabelings, and which kernels were looked at."""

from __future__ import annotations

from cpmmd.procedures.outcome import TestOutcome
from cpmmd.report import blocks, cells
from cpmmd.report.blocks import Block
from cpmmd.selection.values import BandwidthPath, TrainingHistory

MOST_KERNELS = 10  # rows of a table of kernels


def evidence(outcome: TestOutcome) -> Block:
    """Return the section."""
    return blocks.section(
        "evidence",
        "How it was done",
        [
            blocks.text(comparison(outcome)),
            blocks.figure(
                "null-distribution", "The statistic among its relabelings", f"Histogram of the relabelings. {comparison(outcome)}"
            ),
            _selection_figure(outcome),
            _training_figure(outcome),
            blocks.facts(
                [
                    ("Method", f"{outcome.method}: {outcome.summary}" if outcome.summary else outcome.method),
                    ("Statistic", f"{cells.number(outcome.statistic)}, {outcome.statistic_meaning}"),
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
        return f"p = {cells.number(outcome.pvalue)} combines several splits; shown is the split with the median p-value."
    others = len(outcome.null_distribution)
    drawn = f"all {cells.count(others)} other relabelings" if outcome.exhaustive else f"{cells.count(others)} random relabelings"
    reached = round(outcome.pvalue * (others + 1)) - 1
    return (
        f"Of {drawn} of the rows, {cells.count(reached) if reached else 'none'} gave a statistic at least as large as the "
        f"observed {cells.number(outcome.statistic)}; counting the observed one, "
        f"p = {cells.count(reached + 1)} / {cells.count(others + 1)} = {cells.number(outcome.pvalue)}."
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
    return f"C1 = {cells.number(calibration.c1)}, calibrated by {len(calibration.ratios)} null permutations"


def _splits(outcome: TestOutcome) -> str | None:
    splits = outcome.splits
    if splits is None:
        return None
    ends = f"{cells.number(splits.smallest)} to {cells.number(splits.largest)}"
    return f"{len(splits.pvalues)}, with p from {ends}, combined by the rule '{splits.rule}'"


def _selection_figure(outcome: TestOutcome) -> Block | None:
    over_bandwidths = outcome.selection is not None and isinstance(outcome.selection.path, BandwidthPath)
    if not over_bandwidths and not any(len(one.bandwidths) for one in outcome.classes):
        return None
    return blocks.figure(
        "criterion-path",
        "How the kernel was chosen",
        f"Criterion of the kernels that were looked at. Chosen: {outcome.kernel}.",
    )


def _training_figure(outcome: TestOutcome) -> Block | None:
    if outcome.selection is None or not isinstance(outcome.selection.path, TrainingHistory):
        return None
    return blocks.figure(
        "training-history",
        "Training of the kernel",
        f"Criterion and squared MMD over {len(outcome.selection.path.steps)} recorded steps; the criterion ended at "
        f"{cells.number(outcome.selection.criterion)}.",
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
    return blocks.table("classes", "Kernel classes, each at its best member", columns, rows)


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
    return blocks.table("single-tests", "The single kernels", columns, rows, note=note)
