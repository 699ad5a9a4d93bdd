"""Power of every method on every panel, same data, level .05; resumable. Table and plot in benchmarks/results."""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks import RESULTS
from benchmarks.draws import decisions, draw_study, finish, markdown
from cpmmd import Study, StudyTable
from experiments.panels import PANELS

METHODS = ("cp-full", "mmdagg", "mmdfuse", "median", "cp-linear", "cp-polynomial")
FILE = "power_panels.jsonl"
DRAWS = 100


def study(panels: list[str], methods: list[str], draws: int) -> Study:
    """Return the study of some panels and methods; all of them share one file."""
    return draw_study("power panels", {name: PANELS[name] for name in panels}, {name: name for name in methods}, draws)


def main() -> None:
    """Run (or continue), write the table, name the panels where cp-full is behind."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=DRAWS)
    arguments.add_argument("--panels", nargs="+", default=list(PANELS), choices=PANELS, metavar="PANEL")
    arguments.add_argument("--methods", nargs="+", default=list(METHODS))
    arguments.add_argument("--plot", action="store_true")
    chosen = arguments.parse_args()
    finish(study(chosen.panels, chosen.methods, chosen.repetitions), FILE)
    table = study(list(PANELS), list(METHODS), max(chosen.repetitions, DRAWS)).read(RESULTS / FILE)
    text = markdown(table, PANELS, METHODS)
    (RESULTS / "power_panels.md").write_text(text + "\n")
    print(text)
    found = decisions(table)
    for panel in PANELS:
        powers = {method: np.mean(found[panel, method]) for method in METHODS if found[panel, method]}
        if len(powers) < len(METHODS):
            continue
        best = max(powers, key=lambda m: powers[m])
        if powers["cp-full"] < powers[best] - 0.03:
            print(f"behind on {panel}: cp-full {powers['cp-full']:.2f}, {best} {powers[best]:.2f}")
    if chosen.plot:
        plot(table)


def plot(table: StudyTable) -> None:
    """Draw the powers, one row a panel."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = decisions(table)
    figure, axes = plt.subplots(figsize=(8, 0.32 * len(PANELS) + 1), layout="constrained")
    for method, marker in zip(METHODS, "o^v<>s", strict=True):
        powers = [np.mean(found[panel, method]) for panel in PANELS]
        axes.plot(powers, range(len(PANELS)), marker, label=method, ms=8 if method == "cp-full" else 5, alpha=0.8)
    axes.set(yticks=range(len(PANELS)), yticklabels=list(PANELS), xlabel="power at level .05", xlim=(0, 1.02))
    axes.invert_yaxis()
    axes.grid(axis="y", alpha=0.3)
    axes.legend(loc="lower left", fontsize=8)
    figure.savefig(RESULTS / "power_panels.png", dpi=110)


if __name__ == "__main__":
    main()
