"""Table deep summary: three criteria on one network, five (d, n) cells, and the level in each."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import SplitTest, StudyTable
from experiments.base import ALL_CELLS, Experiment, Rows
from experiments.common import FAR, PAPER_CRITERIA, criterion, decision, grid, network, test
from experiments.panels import mean_shift

CELLS = ((2, 200), (20, 200), (50, 100), (100, 100), (20, 50))  # (d, n per sample)
SHIFTS = {0.5: "shift 0.5", 0.0: "no shift: level"}  # 0 is the Type-I row
REPETITIONS = 200


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test."""
    pair = mean_shift(data_rng, cell["n"], cell["d"], cell["shift"])
    return decision(test(pair, SplitTest(network(far=True), criterion(cell["method"])), test_rng))


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Bars of power and of level."""
    from experiments.figures import bar_panels

    figure = bar_panels(rows, "shift", SHIFTS, [f"d={d}\nn={n}" for d, n in CELLS], PAPER_CRITERIA)
    figure.axes[1].set_ylim(0, 0.2)
    return figure


EXPERIMENT = Experiment(
    id="deep",
    artefact="Table deep summary",
    title="deep kernels at shift 0.5, three criteria, and their level",
    task=task,
    cells=[{"d": d, "n": n, **rest} for d, n in CELLS for rest in grid(shift=SHIFTS, method=PAPER_CRITERIA)],
    repetitions=REPETITIONS,
    data_keys=("d", "n", "shift"),
    settings=FAR,
    draw=draw,
    networks=ALL_CELLS,
    note="cp-reused has one C1 for all cells, our C1-hat of width 200 (c1-width); cp-anchor the C1-hat that the paper prints for "
    "it; for C1-hat calibrated on every training half see deep-start.",
)
