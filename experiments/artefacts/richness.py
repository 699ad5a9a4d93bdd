"""Fig. class richness: power against the network's width, the C1-hat of width 200 reused at every width."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import SplitTest, StudyTable
from experiments.base import ALL_CELLS, Experiment, Rows
from experiments.common import FAR, PAPER_CRITERIA, criterion, decision, grid, network, test
from experiments.panels import mean_shift

D, N, SHIFT = 50, 100, 0.5
WIDTHS = (50, 100, 200, 500, 1000)
REPETITIONS = 50


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test."""
    kernel = network(cell["width"], far=True)
    return decision(test(mean_shift(data_rng, N, D, SHIFT), SplitTest(kernel, criterion(cell["method"])), test_rng))


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Power against width."""
    from experiments.figures import axes, power_lines

    figure, ax = axes()
    power_lines(ax, rows, "width")
    ax.set(xscale="log", xlabel="width", xticks=WIDTHS, xticklabels=WIDTHS)
    ax.minorticks_off()
    return figure


EXPERIMENT = Experiment(
    id="richness",
    artefact="Fig. class richness",
    title="power against network width, d = 50, n = 100, shift 0.5",
    task=task,
    cells=grid(width=WIDTHS, method=PAPER_CRITERIA),
    repetitions=REPETITIONS,
    data_keys=(),
    settings={**FAR, "d": D, "n": N, "shift": SHIFT},
    draw=draw,
    networks=ALL_CELLS,
    note="cp-reused has our C1-hat of width 200 (c1-width), cp-anchor the C1-hat that the paper prints for it.",
)
