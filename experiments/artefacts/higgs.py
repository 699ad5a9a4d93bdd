"""Fig. real data (a): Higgs background against signal, four CP kernels and their rivals."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import Bandwidth, MedianTest, Polynomial, SplitTest, StudyTable
from experiments.base import Experiment, Rows
from experiments.common import NEAR, NETWORKS, criterion, decision, grid, permutations_of, real_data_methods, test
from experiments.data.pairs import higgs

SIZES = (200, 500)
SCALE = "standard"  # columns standardised by the rows that may be looked at; the paper does not say
REPETITIONS = 50
METHODS = {
    "cp-linear": SplitTest(Bandwidth(), criterion("cp"), scale=SCALE),
    "cp-poly2": SplitTest(Polynomial(degree=2), criterion("cp"), scale=SCALE),
    "cp-poly3": SplitTest(Polynomial(degree=3), criterion("cp"), scale=SCALE),
    "median-split": MedianTest(split=True, scale=SCALE),
    **real_data_methods(SCALE),
}


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test."""
    method = cell["method"]
    return decision(test(higgs(data_rng, cell["n"]), METHODS[method], test_rng, n_permutations=permutations_of(method)))


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Bars of power at the two sizes."""
    from experiments.figures import axes, bars, by_method

    figure, ax = axes(width=8)
    bars(ax, [f"n = {n}" for n in SIZES], by_method(rows, METHODS))
    return figure


EXPERIMENT = Experiment(
    id="higgs",
    artefact="Fig. real data (a)",
    title="Higgs background against signal, 28 columns",
    task=task,
    cells=grid(n=SIZES, method=METHODS),
    repetitions=REPETITIONS,
    data_keys=("n",),
    settings={**NEAR, "scale": SCALE},
    draw=draw,
    needs=("higgs",),
    networks=tuple(NETWORKS),
    note="median is on all rows (the heuristic chooses nothing by labels, so no split is needed); median-split is on one half.",
)
