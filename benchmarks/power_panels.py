"""Power of every method on every panel, same data, level .05; resumable, one file a method. Table and plot in benchmarks/results.

MMDAgg, MMD-FUSE and the median test get columns as they come and standardised: which is better depends on the panel. Draws below
``FIRST`` were looked at while older designs of ``cp-full`` were chosen; the present one was chosen on other data altogether
(benchmarks/full_sample_study.py).
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from benchmarks import RESULTS
from benchmarks.draws import again, decisions_by_draw, draw_study, finish, lead, markdown
from cpmmd import (
    Bandwidth,
    FullSampleTest,
    KernelClass,
    LaplacianL1,
    MedianTest,
    MMDAgg,
    MMDFuse,
    Polynomial,
    Radius,
    Study,
)
from experiments.panels import PANELS, PUBLISHED

# What cp-full was before its classes had spectral parameters.
FOUR_CLASSES = FullSampleTest(
    classes=(
        KernelClass(Bandwidth("gaussian"), fewest_neighbours=30),
        KernelClass(LaplacianL1(), "standard"),
        KernelClass(Polynomial(degree=2), "standard"),
        KernelClass(Radius(), "standard", narrowest=1, widest=1, weight=0.25),
    )
)
METHODS = {
    "cp-full": "cp-full",
    "four classes": FOUR_CLASSES,
    "mmdagg": "mmdagg",
    "mmdagg std": MMDAgg(scale="standard"),
    "mmdfuse": "mmdfuse",
    "mmdfuse std": MMDFuse(scale="standard"),
    "median": "median",
    "median std": MedianTest(scale="standard"),
}
RIVALS = tuple(name for name in METHODS if name.startswith("mmd"))
ALL = {**PANELS, **PUBLISHED}
FIRST, DRAWS = 100, 200
Found = dict[tuple[str, str], dict[int, bool]]  # by panel and method, whether each draw was rejected


def study(panels: list[str], method: str, draws: int) -> Study:
    """Return the study of a method on some panels."""
    numbers = range(FIRST, FIRST + draws)
    return draw_study("power panels", {name: ALL[name] for name in panels}, {method: METHODS[method]}, numbers)


def file_of(method: str) -> str:
    """Return where the draws of a method are kept, under the folder of results."""
    return f"power_panels/{method.replace(' ', '_')}.jsonl"


def finished(draws: int) -> Found:
    """Return what is known of all methods."""
    found: Found = {(panel, method): {} for panel in ALL for method in METHODS}
    for method in METHODS:
        if (RESULTS / file_of(method)).exists():
            found |= decisions_by_draw(study(list(ALL), method, draws).read(RESULTS / file_of(method)))
    return found


def main() -> None:
    """Run (or continue), write the table, name the panels where a rival is ahead of cp-full."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=DRAWS)
    arguments.add_argument("--panels", nargs="+", default=list(ALL), choices=ALL, metavar="PANEL")
    arguments.add_argument("--methods", nargs="+", default=list(METHODS), choices=METHODS, metavar="METHOD")
    arguments.add_argument("--jobs", type=int, default=2)
    arguments.add_argument("--plot", action="store_true")
    arguments.add_argument("--again", type=Path, metavar="FOLDER", help="run what is kept again, into a folder, and compare")
    chosen = arguments.parse_args()
    if chosen.again is not None:
        for method in chosen.methods:
            part = study(chosen.panels, method, chosen.repetitions)
            print(f"{method}: {again(part, file_of(method), chosen.again, jobs=chosen.jobs)}", flush=True)
        return
    for method in chosen.methods:
        finish(study(chosen.panels, method, chosen.repetitions), file_of(method), jobs=chosen.jobs)
    found = finished(max(chosen.repetitions, DRAWS))
    powers = {cell: list(drawn.values()) for cell, drawn in found.items()}
    text = markdown(powers, ALL, METHODS)
    (RESULTS / "power_panels.md").write_text(text + "\n")
    print(text)
    for line in behind(found):
        print(line)
    if chosen.plot:
        plot(found)


def behind(found: Found) -> list[str]:
    """Return the best of MMDAgg and MMD-FUSE on each panel where it is ahead; marked where by more than .03 beyond two errors."""
    lines = []
    for panel in ALL:
        own = found[panel, "cp-full"]
        leads = [(*lead(own, found[panel, method]), method) for method in RIVALS if found[panel, method]]
        ahead, error, draws, method = max(leads, default=(0.0, 0.0, 0, ""))
        if ahead > 0:
            mark = "beyond" if ahead > 0.03 + 2 * error else "within"
            lines.append(f"{mark}: {panel}: {method} ahead by {ahead:.3f} (standard error {error:.3f}, {draws} common draws)")
    return lines


def plot(found: Found) -> None:
    """Draw the powers, one row a panel."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    figure, axes = plt.subplots(figsize=(8, 0.3 * len(ALL) + 1), layout="constrained")
    for method, marker in zip(METHODS, "oD^v<>sp", strict=True):
        powers = [np.mean(list(found[panel, method].values())) if found[panel, method] else np.nan for panel in ALL]
        axes.plot(powers, range(len(ALL)), marker, label=method, ms=8 if method == "cp-full" else 5, alpha=0.8)
    axes.set(yticks=range(len(ALL)), yticklabels=list(ALL), xlabel="power at level .05", xlim=(0, 1.02))
    axes.grid(axis="y", alpha=0.3)
    axes.set_ylim(len(ALL) - 0.4, -0.6)  # the first panel on top
    figure.legend(loc="outside upper center", ncols=4, fontsize=8)  # where it hides nothing
    figure.savefig(RESULTS / "power_panels.png", dpi=110)


if __name__ == "__main__":
    main()
