"""Tables of the pages, made from the results of the benchmarks: nothing is typed."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from pathlib import Path

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
METHODS = ("cp-full", "mmdagg", "mmdfuse", "median", "cp-linear", "cp-polynomial")
LINES = {
    "power.md": lambda: power(),
    "scale.md": lambda: (RESULTS / "scale.md").read_text().split("\n", 2)[2],
    "binned.md": lambda: table(RESULTS / "binned_power.csv"),
    "selection.md": lambda: table(RESULTS / "selection_size.csv"),
    "reference/named.md": lambda: named(),
}


def write(folder: Path) -> None:
    """Write every table into ``folder/generated``."""
    target = folder / "generated"
    (target / "reference").mkdir(parents=True, exist_ok=True)
    for name, make in LINES.items():
        text = make()
        if not (target / name).exists() or (target / name).read_text() != text:
            (target / name).write_text(text)


def power() -> str:
    """Power of the methods on every panel: share of rejections at level 0.05."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(list)
    _, *finished = map(json.loads, (RESULTS / "power_panels.jsonl").read_text().splitlines())  # the first line is a header
    for one in finished:
        if "values" in one:  # not one that failed
            counts[one["cell"]["panel"], one["cell"]["method"]].append(int(one["values"]["pvalue"] <= 0.05))
    panels = list(dict.fromkeys(panel for panel, _ in counts))
    lines = ["| panel | " + " | ".join(METHODS) + " |", "|" + " --- |" * (len(METHODS) + 1)]
    for panel in panels:
        rates = [sum(c) / len(c) if (c := counts[panel, method]) else float("nan") for method in METHODS]
        best = max(rates)
        shown = [f"**{rate:.2f}**" if rate >= best - 0.005 else f"{rate:.2f}" for rate in rates]
        lines.append(f"| {panel} | " + " | ".join(shown) + " |")
    return "\n".join(lines) + "\n"


def table(path: Path) -> str:
    """Return a CSV file as a Markdown table."""
    with path.open(newline="") as file:
        head, *rows = list(csv.reader(file))
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def named() -> str:
    """Return the page of everything that has a name: methods, procedures, kernel families, criteria."""
    from cpmmd import methods, registry

    parts = {"Procedures": registry.procedures(), "Kernel families": registry.families(), "Criteria": registry.criteria()}
    lines = ["# Methods, procedures, families, criteria", "", "| method | |", "| --- | --- |"]
    lines += [f"| `{name}` | {summary} |" for name, summary in methods().items()]
    for title, kinds in parts.items():
        block = ["```{eval-rst}", ".. currentmodule:: cpmmd", ".. autosummary::", "   :toctree: ../api", ""]
        lines += ["", f"## {title}", "", *block, *(f"   {name}" for name in kinds), "```"]
    return "\n".join(lines) + "\n"
