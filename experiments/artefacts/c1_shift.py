"""Table C1 stability, data: C1-hat against the size of the shift."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import StudyTable
from experiments.artefacts.c1_width import SEEDS, D, N, calibrated, draw_spread, spread
from experiments.base import ALL_CELLS, Experiment, Rows
from experiments.common import NEAR, grid

WIDTH = 200
SHIFTS = (0.3, 0.5, 0.7, 1.0)


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One calibration."""
    return calibrated(WIDTH, cell["shift"], data_rng, test_rng)


def summarise(table: StudyTable) -> Rows:
    """The spread, and the factor between the largest and smallest C1-hat of the sweep (single seeds, as the paper has it)."""
    rows = spread(table, "shift")
    smallest = min((row["min"] for row in rows), default=0)
    if smallest > 0:
        rows.append({"quantity": "factor over shifts", "value": max(row["max"] for row in rows) / smallest})
    return rows


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """C1-hat against shift."""
    return draw_spread(table, "shift")


EXPERIMENT = Experiment(
    id="c1-shift",
    artefact="Table C1 stability (shift)",
    title="C1-hat against shift, width 200, d = 50, n = 100",
    task=task,
    cells=grid(shift=SHIFTS),
    repetitions=SEEDS,
    data_keys=(),
    settings={**NEAR, "d": D, "n": N, "width": WIDTH},
    summarise=summarise,
    draw=draw,
    networks=ALL_CELLS,
)
