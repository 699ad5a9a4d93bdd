"""Fig. C1 ablation: the spectral product at the end of training, and the power, against the constant of the penalty."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import ComplexityPenalized, SplitTest, StudyTable
from experiments.base import ALL_CELLS, Experiment, Rows, printed
from experiments.common import FAR_GAIN, INIT, PERMUTATIONS, decision, grid, network, test
from experiments.panels import mean_shift

D, N, SHIFT = 100, 100, 0.5
STARTS = ("2/fan_in", "3/fan_in")  # variance of the starting weights
CONSTANTS = (0.0, 1e-5, 1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0, 100.0)
PRODUCTIVE = (1e-3, 1e-1)  # where the paper fits the slope
REPETITIONS = 20  # the paper does not say


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test with the constant fixed."""
    method = SplitTest(network(far=cell["start"] == "3/fan_in"), ComplexityPenalized(c1=cell["c1"]))
    result = test(mean_shift(data_rng, N, D, SHIFT), method, test_rng)
    assert result.selection is not None
    product = result.selection.path.spectral_product
    return {**decision(result), "product_start": float(product[0]), "product": float(product[-1])}


def summarise(table: StudyTable) -> Rows:
    """The cells, then for each start the slope of log Pi in log C1 over the productive range, and how far Pi falls."""
    rows = table.rows
    for start in STARTS:
        cells = [row for row in table.rows if row["start"] == start and "product" in row]
        found = {row["c1"]: row["product"] for row in cells}
        if len(found) < len(CONSTANTS):
            continue
        inside = [c for c in found if PRODUCTIVE[0] <= c <= PRODUCTIVE[1]]
        slope = float(np.polyfit(np.log(inside), np.log([found[c] for c in inside]), 1)[0])
        rows.append({"start": start, "quantity": "slope over 1e-3 to 1e-1", "value": slope})
        rows.append({"start": start, "quantity": "fall from 1e-5 to 10", "value": found[1e-5] / found[10.0]})
        smallest = min(row["reject"] for row in cells if row["c1"] > 0)
        rows.append({"start": start, "quantity": "smallest power at c1 > 0", "value": smallest})
    return rows


def draw(table: StudyTable, rows: Rows) -> Any:
    """Pi against C1 on log axes with power on the right axis, one panel a start."""
    from experiments.figures import axes

    figure, panels = axes(2)
    for ax, start in zip(panels, STARTS, strict=True):
        _draw_one(ax, [r for r in table.rows if r["start"] == start and r["c1"] > 0 and "product" in r], rows, start)
        ax.set_title(f"starting variance {start}", fontsize=9)
    return figure


def _draw_one(ax: Any, cells: Rows, rows: Rows, start: str) -> None:
    from experiments.figures import COLOURS

    at = [row["c1"] for row in cells]
    ax.errorbar(at, [r["product"] for r in cells], [r["product_error"] for r in cells], fmt="o", color=COLOURS["liu"], ms=4)
    slope = next((r["value"] for r in rows if r.get("quantity", "").startswith("slope") and r["start"] == start), None)
    inside = [row for row in cells if PRODUCTIVE[0] <= row["c1"] <= PRODUCTIVE[1]]
    if slope is not None:
        centre = np.exp(np.mean([np.log([r["c1"], r["product"]]) for r in inside], axis=0))
        line = centre[1] * (np.array(PRODUCTIVE) / centre[0]) ** slope
        ax.plot(PRODUCTIVE, line, ":", color=COLOURS["liu"], label=f"slope {slope:.2f} (paper about -0.5)")
    paper = printed("c1-ablation", "product", "c1", start=start)
    ax.plot(paper.keys(), paper.values(), "x", color="black", label="paper's two values")
    ax.set(xscale="log", yscale="log", xlabel="C1", ylabel="spectral product at the last step")
    ax.legend(fontsize=7, loc="lower left")
    right = ax.twinx()
    right.plot(at, [row["reject"] for row in cells], "s", color="grey", ms=4)
    right.set(ylim=(0, 1.05), ylabel="power (squares)")


EXPERIMENT = Experiment(
    id="c1-ablation",
    artefact="Fig. C1 ablation",
    title="spectral product and power against C1, d = n = 100, shift 0.5",
    task=task,
    cells=grid(start=STARTS, c1=CONSTANTS),
    repetitions=REPETITIONS,
    data_keys=(),
    settings={"init": INIT, "gains": [1.0, FAR_GAIN], "permutations": PERMUTATIONS, "d": D, "n": N, "shift": SHIFT},
    summarise=summarise,
    draw=draw,
    networks=ALL_CELLS,
)
