"""Not in the paper: how the networks start decides Table deep summary. Three starts, C1-hat calibrated on every training half."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import Deep, SplitTest, StudyTable
from experiments.artefacts.deep import CELLS
from experiments.base import ALL_CELLS, Experiment, Rows
from experiments.common import FAR_GAIN, PERMUTATIONS, criterion, decision, grid, test
from experiments.panels import mean_shift

SHIFT = 0.5
STARTS = {"torch": {"init": "torch"}, "2/fan_in": {"init": "kaiming"}, "3/fan_in": {"init": "kaiming", "gain": FAR_GAIN}}
METHODS = ("cp", "liu", "plain")
REPETITIONS = 25


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test."""
    pair = mean_shift(data_rng, cell["n"], cell["d"], SHIFT)
    result = test(pair, SplitTest(Deep(**STARTS[cell["start"]]), criterion(cell["method"])), test_rng)
    return decision(result) | ({} if result.calibration is None else {"c1": result.calibration.c1})


def summarise(table: StudyTable) -> Rows:
    """Return the cells, and the range of C1-hat over them, G read as L |D|_F / sqrt(N), N the rows of both training halves.

    "G as defined": with N for sqrt(N).
    """
    rows = table.rows
    for start in ("2/fan_in", "3/fan_in"):
        found = [row for row in rows if row.get("start") == start and "c1" in row]
        for unit, means in (
            ("", [row["c1"] / np.sqrt(row["n"]) for row in found]),
            (", G as defined", [row["c1"] for row in found]),
        ):
            if means:
                rows.append({"quantity": f"smallest C1-hat from {start}{unit}", "value": float(min(means))})
                rows.append({"quantity": f"largest C1-hat from {start}{unit}", "value": float(max(means))})
    return rows


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Bars of power, one panel a start."""
    from experiments.figures import bar_panels

    return bar_panels(rows, "start", {start: start for start in STARTS}, [f"d={d}\nn={n}" for d, n in CELLS], METHODS)


EXPERIMENT = Experiment(
    id="deep-start",
    artefact="beside Table deep summary",
    title="the deep table under three starts, C1-hat calibrated each time",
    task=task,
    cells=[{"d": d, "n": n, **rest} for d, n in CELLS for rest in grid(start=STARTS, method=METHODS)],
    repetitions=REPETITIONS,
    data_keys=("d", "n"),
    settings={"permutations": PERMUTATIONS, "starts": STARTS, "shift": SHIFT},
    summarise=summarise,
    draw=draw,
    networks=ALL_CELLS,
)
