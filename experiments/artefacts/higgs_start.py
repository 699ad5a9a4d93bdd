"""Not in the paper: the deep kernels of its Higgs panel from other starts of the network."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import Deep, SplitTest, StudyTable
from experiments.artefacts.deep_start import STARTS
from experiments.artefacts.higgs import SCALE
from experiments.base import ALL_CELLS, Experiment, Rows
from experiments.common import NETWORKS, PERMUTATIONS, criterion, decision, test
from experiments.data.pairs import higgs

N = 500
REPETITIONS = 50


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test."""
    method = SplitTest(Deep(**STARTS[cell["start"]]), criterion(NETWORKS[cell["method"]]), scale=SCALE)
    return decision(test(higgs(data_rng, cell["n"]), method, test_rng))


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Bars of power."""
    from experiments.figures import axes, bars

    figure, ax = axes(width=6)
    names = [f"{row['method']}\n{row['start']}" for row in rows]
    bars(ax, names, {"power": [(row.get("reject", np.nan), row.get("reject_error", np.nan)) for row in rows]})
    return figure


EXPERIMENT = Experiment(
    id="higgs-start",
    artefact="beside Fig. real data (a)",
    title="deep kernels on Higgs at n = 500 from two other starts of the network",
    task=task,
    cells=[
        *({"n": N, "start": start, "method": method} for start in ("torch", "3/fan_in") for method in ("liu", "plain")),
        {"n": N, "start": "3/fan_in", "method": "cp-deep"},
    ],
    repetitions=REPETITIONS,
    data_keys=("n",),
    settings={"permutations": PERMUTATIONS, "starts": STARTS, "scale": SCALE},
    draw=draw,
    needs=("higgs",),
    networks=ALL_CELLS,
    note="higgs has the start 2/fan_in. cp-deep, whose number agrees from there, is run from one other start.",
)
