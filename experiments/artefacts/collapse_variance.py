"""Not in the paper: its collapse with the variance itself, not its root, under the squared MMD."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from cpmmd import Ascent, Ratio, SplitTest, StudyTable
from experiments.artefacts import collapse
from experiments.base import ALL_CELLS, Experiment, Rows
from experiments.common import NEAR, grid, network, test
from experiments.panels import mean_shift

FLOOR = 1e-6  # under the ratio: the size of the paper's printed tau
COLUMNS = ("j", "mmd2", "variance", "complexity")


@dataclass(frozen=True)
class VarianceRatio(Ratio):
    """MMD2 / (V + 1e-6)."""

    def value(self, mmd2: Any, variance: Any, complexity: Any) -> Any:  # noqa: ARG002
        """Return it."""
        return mmd2 / (variance + FLOOR)


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """Train once; keep what the last step shows."""
    pair = mean_shift(data_rng, 2 * collapse.N, collapse.D, 0.0)
    result = test(pair, SplitTest(network(cell["width"]), VarianceRatio(), ascent=Ascent(steps=collapse.STEPS)), test_rng)
    path = result.selection.path
    last = {"j": path.criterion, "mmd2": path.mmd2, "variance": path.variance, "complexity": path.complexity}
    return {name: float(column[-1]) for name, column in last.items()}


def summarise(table: StudyTable) -> Rows:
    """The paper's columns by width, with the standard error of their means over seeds, and the largest J of a run."""
    rows: Rows = []
    for width in collapse.WIDTHS:
        runs = table.where(width=width)
        if not runs:
            continue
        columns = {name: np.array([one.values[name] for one in runs]) for name in COLUMNS}
        row: dict[str, Any] = {"width": width, "seeds": len(runs)}
        for name, column in columns.items():
            row |= {name: float(column.mean()), f"{name}_error": float(column.std(ddof=1) / np.sqrt(len(column)))}
        rows.append(row | {"denominator": row["variance"] + FLOOR})
    if rows:
        rows.append({"quantity": "largest J", "value": float(table.values("j").max())})
    return rows


EXPERIMENT = Experiment(
    id="collapse-variance",
    artefact="beside Table variance collapse",
    title="200 steps of MMD2 / (V + 1e-6) under the null, d = 10, 200 v 200 training rows",
    task=task,
    cells=grid(width=collapse.WIDTHS),
    repetitions=collapse.SEEDS,
    data_keys=("width",),
    settings={**NEAR, "d": collapse.D, "n": collapse.N, "steps": collapse.STEPS, "floor": FLOOR},
    summarise=summarise,
    networks=ALL_CELLS,
    note="The paper's own columns obey J = MMD2 / tau without the root of n that its definition has.",
)
