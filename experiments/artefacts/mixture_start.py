"""Not in the paper: Liu's mixture from other starts of its network, in the two cells where no other reading speaks."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import Deep, Mixture, SplitTest, StudyTable
from experiments.artefacts.deep_start import STARTS
from experiments.artefacts.factorial import CRITERIA, SHIFT
from experiments.base import ALL_CELLS, Experiment, Rows
from experiments.common import PERMUTATIONS, REUSED_C1, criterion, decision, grid, test
from experiments.panels import mean_shift

CELLS = ((2, 200), (20, 50))  # (d, n per sample)
NEARER = ("torch", "2/fan_in")  # the factorial itself is from 3/fan_in
REPETITIONS = 50


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test."""
    pair = mean_shift(data_rng, cell["n"], cell["d"], SHIFT)
    kernel = Mixture(Deep(**STARTS[cell["start"]]), epsilon=0.1, feature_bandwidth=1.0, input_bandwidth=1.0)
    return decision(test(pair, SplitTest(kernel, criterion(cell["method"])), test_rng))


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Bars of power, one panel a start."""
    from experiments.figures import bar_panels

    return bar_panels(rows, "start", {start: start for start in NEARER}, [f"d={d}\nn={n}" for d, n in CELLS], CRITERIA)


EXPERIMENT = Experiment(
    id="mixture-start",
    artefact="beside Table ablation factorial",
    title="Liu's mixture, sigma_q from 1, from two other starts of its network",
    task=task,
    cells=[{"d": d, "n": n, **rest} for d, n in CELLS for rest in grid(start=NEARER, method=CRITERIA)],
    repetitions=REPETITIONS,
    data_keys=("d", "n"),
    settings={"permutations": PERMUTATIONS, "starts": STARTS, "shift": SHIFT, "c1": REUSED_C1},
    draw=draw,
    networks=ALL_CELLS,
    note="The factorial is run from 3/fan_in.",
)
