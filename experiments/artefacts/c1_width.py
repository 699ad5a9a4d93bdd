"""Table C1 stability, architecture: C1-hat against the network's width."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import ComplexityPenalized, SplitTest, StudyTable
from experiments.base import ALL_CELLS, Experiment, Rows
from experiments.common import NEAR, decision, grid, network, test
from experiments.panels import mean_shift

D, N, SHIFT = 50, 100, 0.5
TRAINED = N  # rows of both training halves together
WIDTHS = (50, 100, 200, 500, 1000)
WELL_BEHAVED = (50, 100, 200)
SEEDS = 3


def calibrated(width: int, shift: float, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """Calibrate at full width, whatever the width, and test."""
    kernel = network(width, surrogate_width=None)
    result = test(mean_shift(data_rng, N, D, shift), SplitTest(kernel, ComplexityPenalized()), test_rng)
    assert result.calibration is not None
    return {"c1": result.calibration.c1, **decision(result)}


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One calibration."""
    return calibrated(cell["width"], SHIFT, data_rng, test_rng)


def spread(table: StudyTable, key: str) -> Rows:
    """Mean, standard deviation, range and CV (%) of C1-hat in each cell; ``_root``: G read as L |D|_F / sqrt(N)."""
    rows = []
    for cell in table.cells:
        c1 = table.values("c1", **cell)
        if not len(c1):
            continue
        mean, std = float(c1.mean()), float(c1.std())
        row = {key: cell[key], "seeds": len(c1), "c1": mean, "c1_error": std / np.sqrt(len(c1)), "std": std}
        row |= {
            "min": float(c1.min()),
            "max": float(c1.max()),
            "cv": 100 * std / mean if mean > 0 else float("nan"),
        }
        row["c1_root_error"] = row["c1_error"] / np.sqrt(TRAINED)
        rows.append(row | {f"{name}_root": row[name] / np.sqrt(TRAINED) for name in ("c1", "std", "min", "max")})
    return rows


def summarise(table: StudyTable) -> Rows:
    """The spread, and the factor between the largest and smallest mean over widths 50 to 200."""
    rows = spread(table, "width")
    means = [row["c1"] for row in rows if row["width"] in WELL_BEHAVED]
    if means and min(means) > 0:
        rows.append({"quantity": "factor over widths 50 to 200", "value": max(means) / min(means)})
    return rows


def draw_spread(table: StudyTable, key: str) -> Any:
    """C1-hat of every seed, and its mean, against one parameter."""
    from experiments.figures import COLOURS, axes

    figure, ax = axes()
    for one in table.repetitions:
        ax.plot(one.cell[key], one.values["c1"], ".", color="grey", alpha=0.6)
    rows = spread(table, key)
    ax.plot([row[key] for row in rows], [row["c1"] for row in rows], "o-", color=COLOURS["cp"])
    ax.set(xlabel=key, ylabel="C1-hat", ylim=(0, None))
    return figure


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """C1-hat against width."""
    figure = draw_spread(table, "width")
    figure.axes[0].set(xscale="log", xticks=WIDTHS, xticklabels=WIDTHS)
    figure.axes[0].minorticks_off()
    return figure


EXPERIMENT = Experiment(
    id="c1-width",
    artefact="Table C1 stability (width)",
    title="C1-hat against width, d = 50, n = 100",
    task=task,
    cells=grid(width=WIDTHS),
    repetitions=SEEDS,
    data_keys=(),
    settings={**NEAR, "d": D, "n": N, "shift": SHIFT},
    summarise=summarise,
    draw=draw,
    networks=ALL_CELLS,
)
