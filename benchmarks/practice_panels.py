"""Power on panels of practice, level .05, the same draws for all methods; resumable, one file a method, and a table of all.

Beside kernel tests stand what people use instead: a test of every column, and gradient boosting as a classifier. Dependent folds
make its p-value no p-value, so that it is compared with the .05 quantile of its own p-values on null draws of the same panel.
Panels for choosing, and draws below ``FIRST`` of the others, may have been looked at while methods were made.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import RESULTS
from benchmarks.draws import ALPHA, draw_study, finish
from benchmarks.rivals import boosting, columns_holm
from cpmmd import Bandwidth, EnergyTest, FullSampleTest, KernelClass, LaplacianL1, MedianTest, MMDAgg, MMDFuse, Polynomial, Radius
from cpmmd.studies.study import Study
from experiments.panels import PANELS, PUBLISHED
from experiments.practice import CHOOSING, PRACTICE, REPORTING, Panel

GAUSSIAN = Bandwidth("gaussian")
# What cp-full was before it had classes of columns and of local structure.
SEVEN_CLASSES = FullSampleTest(
    classes=(
        KernelClass(GAUSSIAN, narrowest=1, widest=2, ratio=2, weight=1.5),
        KernelClass(GAUSSIAN, narrowest=1 / 4, widest=1, ratio=4, gammas=(1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)),
        KernelClass(LaplacianL1(), "standard", narrowest=2, widest=2, gammas=(1e-1, 1e-2)),
        KernelClass(GAUSSIAN, "standard", narrowest=1, widest=1),
        KernelClass(GAUSSIAN, "standard", narrowest=1, widest=1, gammas=(1e-1, 1e-2, 1e-3, 1e-4), weight=0.5),
        KernelClass(Polynomial(degree=2), "standard", narrowest=1 / 2, widest=1 / 2, weight=0.5),
        KernelClass(Radius(), "standard", narrowest=1, widest=1, weight=0.7),
    )
)
METHODS: dict[str, Any] = {
    "cp-full": "cp-full",
    "seven classes": SEVEN_CLASSES,
    "columns": columns_holm,
    "boosting": boosting,
    "mmdagg": "mmdagg",
    "mmdagg std": MMDAgg(scale="standard"),
    "mmdfuse": "mmdfuse",
    "mmdfuse std": MMDFuse(scale="standard"),
    "median": "median",
    "median std": MedianTest(scale="standard"),
    "energy": "energy",
    "energy std": EnergyTest(scale="standard"),
}
OLD = {**PANELS, **PUBLISHED}
FIRST, DRAWS, NULLS = 100, 200, 100
NULL = "null: "
FOLDER = RESULTS / "practice_panels"
Pvalues = Mapping[tuple[str, str], Mapping[int, float]]  # by panel and method, of each draw


class Null:
    """The version of a panel in which nothing changes; of a panel without one, the first samples of two draws."""

    def __init__(self, panel: Any) -> None:
        self.panel = panel

    def __call__(self, rng: np.random.Generator) -> tuple[Any, Any]:
        """Return two samples of one law."""
        if isinstance(self.panel, Panel):
            return self.panel.null(rng)
        return self.panel(rng)[0], self.panel(rng)[0]


ALL = {**PRACTICE, **OLD}
ALL |= {f"{NULL}{name}": Null(panel) for name, panel in ALL.items()}


def study(panels: list[str], method: str, draws: range) -> Study:
    """Return the study of a method on some panels."""
    return draw_study("practice panels", {name: ALL[name] for name in panels}, {method: METHODS[method]}, draws)


def finished(folder: Path) -> Pvalues:
    """Return what is known of all methods."""
    found: dict[tuple[str, str], dict[int, float]] = {}
    for file in sorted(folder.glob("*.jsonl")):
        _, *rows = map(json.loads, file.read_text().splitlines())  # the first line is a header
        for row in (row for row in rows if "values" in row):  # not those that failed
            cell = row["cell"]
            found.setdefault((cell["panel"], cell["method"]), {})[cell["draw"]] = row["values"]["pvalue"]
    return found


def rejected(found: Pvalues, panel: str, method: str) -> dict[int, bool]:
    """Return whether each draw was rejected, boosting at its own null quantile; nothing where that is not known."""
    level = ALPHA
    if method == "boosting":
        nulls = sorted(found.get((f"{NULL}{panel}", method), {}).values())
        if len(nulls) < 1 / ALPHA:
            return {}
        level = nulls[int(ALPHA * len(nulls)) - 1]
    return {draw: pvalue <= level for draw, pvalue in found.get((panel, method), {}).items()}


def markdown(found: Pvalues, panels: list[str]) -> str:
    """Return powers as a Markdown table with the fewest draws; of boosting also the share of nulls below .05."""
    methods = [method for method in METHODS if any((panel, method) in found for panel in panels)]
    lines = ["| panel | " + " | ".join(methods) + " | draws |", "|" + " --- |" * (len(methods) + 2)]
    for panel in panels:
        cells, counts = [], []
        for method in methods:
            drawn = rejected(found, panel, method)
            cells.append(f"{np.mean(list(drawn.values())):.2f}" if drawn else "")
            counts += [len(drawn)] if drawn else []
            if drawn and method == "boosting":
                cells[-1] += f" ({np.mean([p <= ALPHA for p in found[f'{NULL}{panel}', method].values()]):.2f})"
        if counts:
            lines.append(f"| {panel} | " + " | ".join(cells) + f" | {min(counts)} to {max(counts)} |")
    return "\n".join(lines)


def main() -> None:
    """Run (or continue), write the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--first", type=int, default=FIRST)
    arguments.add_argument("--repetitions", type=int, default=DRAWS)
    arguments.add_argument("--panels", nargs="+", default=list(REPORTING), choices=ALL, metavar="PANEL")
    arguments.add_argument("--methods", nargs="*", default=list(METHODS), choices=METHODS, metavar="METHOD")
    arguments.add_argument("--folder", type=Path, default=FOLDER)
    arguments.add_argument("--jobs", type=int, default=2)
    chosen = arguments.parse_args()
    for method in chosen.methods:
        draws = range(chosen.first, chosen.first + chosen.repetitions)
        panels, file = chosen.panels, f"{method.replace(' ', '_')}.jsonl"
        if method == "boosting":
            nulls = [f"{NULL}{panel}" for panel in panels]
            finish(study(nulls, method, draws[:NULLS]), chosen.folder / file, jobs=chosen.jobs)
        finish(study(panels, method, draws), chosen.folder / file, jobs=chosen.jobs)
    found = finished(chosen.folder)
    parts = {"Reporting": list(REPORTING), "Choosing": list(CHOOSING), "Before": list(OLD)}
    tables = {name: markdown(found, panels) for name, panels in parts.items()}
    text = "\n\n".join(f"## {name}\n\n{table}" for name, table in tables.items() if table.count("\n") > 1)
    (chosen.folder / "table.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
