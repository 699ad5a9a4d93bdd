"""Power of linear maps beside a bandwidth and a network: three panels, the same draws for all, level .05; resumable.

What is chosen by measurement (columns standardised, the paper's steps and learning rate) was chosen on draws below ``FIRST``.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks import RESULTS
from benchmarks.draws import decisions, draw_study, finish
from cpmmd import LinearMap, SplitTest, Study, StudyTable
from experiments.panels import PANELS

CHOSEN = ("higgs n=200", "correlation d=6 n=200", "one of 50 n=100")
METHODS = {
    "cp-linear": "cp-linear",
    "cp-linear std": SplitTest(scale="standard"),
    "cp-linear-map": "cp-linear-map",
    "diagonal": SplitTest(LinearMap(diagonal=True)),
    "rank 2": SplitTest(LinearMap(rank=2)),
    "cp-deep": "cp-deep",
}
FILE = "linear_map.jsonl"
FIRST, DRAWS = 100, 100


def main() -> None:
    """Run (or continue), write and print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=DRAWS)
    arguments.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="METHOD")
    arguments.add_argument("--jobs", type=int, default=1)
    chosen = arguments.parse_args()
    finish(study(chosen.methods, chosen.repetitions), FILE, jobs=chosen.jobs)
    text = table(study(list(METHODS), max(chosen.repetitions, DRAWS)).read(RESULTS / FILE))
    (RESULTS / "linear_map.md").write_text(text + "\n")
    print(text)


def study(methods: list[str], draws: int) -> Study:
    """Return the study of some methods; all of them share one file."""
    panels = {name: PANELS[name] for name in CHOSEN}
    numbers = range(FIRST, FIRST + draws)
    return draw_study("linear map", panels, {name: METHODS[name] for name in methods}, numbers, {"n_permutations": 200})


def table(found: StudyTable) -> str:
    """Return the powers with their number of draws, which differs between methods."""
    rejected = decisions(found)
    lines = ["| panel | " + " | ".join(METHODS) + " |", "| --- |" + " --- |" * len(METHODS)]
    for panel in CHOSEN:
        here = [rejected[panel, method] for method in METHODS]
        lines.append(f"| {panel} | " + " | ".join(f"{np.mean(one):.2f} ({len(one)})" if one else "" for one in here) + " |")
    return "\n".join(lines)


if __name__ == "__main__":
    main()
