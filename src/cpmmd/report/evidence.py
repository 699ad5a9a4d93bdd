"""The evidence: how the statistic compares with its relabelings, and which kernels were looked at."""

from __future__ import annotations

from typing import Any

from cpmmd.report import blocks, cells
from cpmmd.report.blocks import Block
from cpmmd.results import TestResult

MOST_KERNELS = 10  # rows of a table of kernels


def evidence(result: TestResult, summary: str) -> Block:
    """Give the section; ``summary`` is the method's one line, empty for a procedure of the user's own."""
    return blocks.section(
        "evidence",
        "Evidence",
        [
            blocks.text(comparison(result)),
            blocks.figure(
                "null-distribution", "The statistic among its relabelings", f"Histogram of the relabelings. {comparison(result)}"
            ),
            _selection_figure(result),
            _training_figure(result),
            blocks.facts(
                [
                    ("Method", f"{result.method}: {summary}" if summary else result.method),
                    ("Statistic", f"{cells.number(result.statistic)}, {statistic_meaning(result)}"),
                    ("Kernel", _kernel(result)),
                    ("Penalty", _penalty(result)),
                    ("Splits", _splits(result)),
                ]
            ),
            _classes(result),
            _single_tests(result),
        ],
    )


def comparison(result: TestResult) -> str:
    """Say in a sentence how p came about."""
    if "splits" in result.details:
        return f"p = {cells.number(result.pvalue)} combines several splits; shown is the split with the median p-value."
    total = cells.count(result.n_permutations)
    drawn = f"all {total} relabelings" if result.exhaustive else f"{total} random relabelings"
    reached = round(result.pvalue * (result.n_permutations + 1)) - 1
    return (
        f"Of {drawn} of the rows, {cells.count(reached) if reached else 'none'} gave a statistic at least as large as the "
        f"observed {cells.number(result.statistic)}; counting the observed one, "
        f"p = {cells.count(reached + 1)} / {cells.count(result.n_permutations + 1)} = {cells.number(result.pvalue)}."
    )


def statistic_meaning(result: TestResult) -> str:
    """Say what the statistic is."""
    if "selected" in result.details:
        return "the best class's score -log p less its penalty"
    if "level_correction" in result.details:
        return "minus the log of the smallest weighted p-value of the single tests"
    if "sharpness" in result.details:
        return "a soft maximum of the kernels' normalised squared MMD"
    return "the unbiased squared MMD on the tested rows"


def _kernel(result: TestResult) -> str | None:
    if result.kernel is None:
        return None
    _, on, coordinates = str(result.details.get("selected", {}).get("class", "")).rpartition(" on ")
    return f"{result.kernel}{on}{coordinates}" if on else str(result.kernel)


def _penalty(result: TestResult) -> str | None:
    calibration = result.calibration
    if calibration is None:
        return None
    return f"C1 = {cells.number(calibration.c1)}, calibrated by {len(calibration.ratios)} null permutations"


def _splits(result: TestResult) -> str | None:
    splits = result.details.get("splits")
    if splits is None:
        return None
    ends = f"{cells.number(float(splits['smallest']))} to {cells.number(float(splits['largest']))}"
    return f"{len(splits['pvalues'])}, with p from {ends}, combined by the rule '{splits['combine']}'"


def _selection_figure(result: TestResult) -> Block | None:
    over_bandwidths = result.selection is not None and "sigma" in result.selection.path
    if not over_bandwidths and not any(entry["sigma"] for entry in result.details.get("path", ())):
        return None
    return blocks.figure(
        "criterion-path",
        "How the kernel was chosen",
        f"Criterion over the bandwidths that were looked at. Chosen: {result.kernel}.",
    )


def _training_figure(result: TestResult) -> Block | None:
    if result.selection is None or "step" not in result.selection.path:
        return None
    return blocks.figure(
        "training-history",
        "Training of the kernel",
        f"Criterion and squared MMD over {len(result.selection.path['step'])} recorded steps; the criterion ended at "
        f"{cells.number(result.selection.criterion)}.",
    )


def _classes(result: TestResult) -> Block | None:
    """Table the classes of the full-sample test."""
    path = result.details.get("path")
    if not path:
        return None
    rows = []
    for entrant in path[:MOST_KERNELS]:
        score = max(entrant["score"])
        best = entrant["score"].index(score)
        sigma = entrant["sigma"][best] if entrant["sigma"] else None
        rows.append([entrant["class"], sigma, entrant["mmd2"][best], score, entrant["penalty"], score - entrant["penalty"]])
    columns = [
        ("Class", "text"),
        ("Bandwidth", "number"),
        ("Squared MMD", "number"),
        ("Score", "number"),
        ("Penalty", "number"),
        ("Score less penalty", "number"),
    ]
    return blocks.table("classes", "Kernel classes, each at its best bandwidth", columns, rows)


def _single_tests(result: TestResult) -> Block | None:
    """Table the single tests of MMDAgg and MMD-FUSE."""
    tests: list[dict[str, Any]] = result.details.get("tests", [])
    if not tests:
        return None
    strongest = sorted(tests, key=lambda test: test["pvalue"])[:MOST_KERNELS]
    columns = [("Kernel", "text"), ("Bandwidth", "number"), ("Squared MMD", "number"), ("p on its own", "pvalue")]
    keys = ["kernel", "bandwidth", "mmd2", "pvalue"]
    if "rejected" in tests[0]:
        columns.append(("Rejects", "flag"))
        keys.append("rejected")
    note = "" if len(tests) <= MOST_KERNELS else f"The {MOST_KERNELS} of {len(tests)} with the smallest p."
    rows = [[test[key] for key in keys] for test in strongest]
    return blocks.table("single-tests", "The single kernels", columns, rows, note=note)
