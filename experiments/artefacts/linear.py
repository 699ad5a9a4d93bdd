"""Fig. three regimes (a): the two-scale mixture, CP bandwidth against the median heuristic."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import Bandwidth, ComplexityPenalized, FullSampleTest, MedianTest, Plain, SplitTest, StudyTable
from experiments.base import Experiment, Rows, printed
from experiments.common import PERMUTATIONS, decision, grid, test
from experiments.panels import mixture

N = 200
SHIFTS = (0.0, 0.05, 0.10, 0.15, 0.20, 0.30)
REPETITIONS = 100
METHODS = {
    "cp": SplitTest(Bandwidth(), ComplexityPenalized()),
    "plain": SplitTest(Bandwidth(), Plain()),
    "median": MedianTest(split=True),  # the median of the training half, tested on the other: the paper's
    "cp-full": FullSampleTest(),
}


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test."""
    return decision(test(mixture(data_rng, N, cell["shift"]), METHODS[cell["method"]], test_rng))


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Power against shift, the paper's two numbers as crosses."""
    from experiments.figures import axes, crosses, power_lines

    figure, ax = axes()
    power_lines(ax, rows, "shift")
    for method in ("cp", "median"):
        crosses(ax, printed("linear", "reject", "shift", method=method), method)
    ax.set(xlabel="shift")
    return figure


EXPERIMENT = Experiment(
    id="linear",
    artefact="Fig. three regimes (a)",
    title="two-scale mixture, n = 200, six shifts",
    task=task,
    cells=grid(shift=SHIFTS, method=METHODS),
    repetitions=REPETITIONS,
    data_keys=("shift",),
    settings={"n": N, "permutations": PERMUTATIONS},
    draw=draw,
    note="plain and cp-full are not in the paper's figure.",
)
