"""Power of every method on every panel, same data, level .05; resumable. Table and plot in benchmarks/results."""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks import repetitions
from experiments.panels import PANELS

METHODS = ("cp-full", "mmdagg", "mmdfuse", "median", "cp-linear", "cp-polynomial")


def main() -> None:
    """Run (or continue), write the table, name the panels where cp-full is behind."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=100)
    arguments.add_argument("--panels", nargs="+", default=list(PANELS))
    arguments.add_argument("--methods", nargs="+", default=list(METHODS))
    arguments.add_argument("--plot", action="store_true")
    chosen = arguments.parse_args()
    panels = {name: PANELS[name] for name in chosen.panels}
    done = repetitions.run("power_panels.jsonl", panels, {m: m for m in chosen.methods}, chosen.repetitions)
    text = repetitions.table(done, PANELS, METHODS)
    (repetitions.RESULTS / "power_panels.md").write_text(text + "\n")
    print(text)
    for panel in PANELS:
        powers = {m: np.mean([row["pvalue"] <= 0.05 for row in done[panel, m]]) for m in METHODS if done[panel, m]}
        if len(powers) < len(METHODS):
            continue
        best = max(powers, key=lambda m: powers[m])
        if powers["cp-full"] < powers[best] - 0.03:
            print(f"behind on {panel}: cp-full {powers['cp-full']:.2f}, {best} {powers[best]:.2f}")
    if chosen.plot:
        plot(done)


def plot(done: dict[tuple[str, str], list[dict[str, float]]]) -> None:
    """Draw the powers, one row a panel."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 0.32 * len(PANELS) + 1), layout="constrained")
    for method, marker in zip(METHODS, "o^v<>s", strict=True):
        powers = [np.mean([row["pvalue"] <= 0.05 for row in done[panel, method]]) for panel in PANELS]
        axes.plot(powers, range(len(PANELS)), marker, label=method, ms=8 if method == "cp-full" else 5, alpha=0.8)
    axes.set(yticks=range(len(PANELS)), yticklabels=list(PANELS), xlabel="power at level .05", xlim=(0, 1.02))
    axes.invert_yaxis()
    axes.grid(axis="y", alpha=0.3)
    axes.legend(loc="lower left", fontsize=8)
    figure.savefig(repetitions.RESULTS / "power_panels.png", dpi=110)


if __name__ == "__main__":
    main()
