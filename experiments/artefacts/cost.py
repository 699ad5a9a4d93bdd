"""Fig. real data (b): what a test costs against the size of the grid, in processor time, all contenders in one run."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import numpy as np

from cpmmd import Bandwidth, MMDAgg, MMDFuse, Polynomial, SplitTest, StudyTable, kernel_matrix_test
from experiments.base import Experiment, Rows
from experiments.common import NEAR, PERMUTATIONS, criterion, grid, network, test
from experiments.data.pairs import higgs

N = 200
GRIDS = (5, 10, 20, 50)  # bandwidths of each of the two kernels that MMDAgg and MMD-FUSE aggregate
REPETITIONS = 30
FAMILIES: dict[str, Callable[[], Any]] = {"cp-linear": Bandwidth, "cp-poly3": lambda: Polynomial(degree=3), "cp-deep": network}
AGGREGATES: dict[str, Callable[[int], Any]] = {
    "mmdagg": lambda b: MMDAgg(n_bandwidths=b),
    "mmdfuse": lambda b: MMDFuse(n_bandwidths=b),
}


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """Milliseconds: of the deployed test on all 2n rows, and of the whole procedure."""
    pair = higgs(data_rng, N)
    if cell["method"] in AGGREGATES:
        method = AGGREGATES[cell["method"]](cell["B"])
        whole = _milliseconds(lambda: test(pair, method, test_rng))
        return {
            "deployed": whole,
            "whole": whole,
            "authors_simulations": _milliseconds(lambda: test(pair, method, 0, n_permutations=None)),
        }
    method = SplitTest(FAMILIES[cell["method"]](), criterion("cp"))
    results: list[Any] = []
    whole = _milliseconds(lambda: results.append(test(pair, method, test_rng)))
    kernel, pool = results[0].kernel, np.vstack(pair)
    deployed = _milliseconds(lambda: kernel_matrix_test(kernel.gram(pool), N, n_permutations=PERMUTATIONS, rng=test_rng))
    return {"deployed": deployed, "whole": whole}


def _milliseconds(work: Callable[[], Any]) -> float:
    start = time.process_time()  # one thread: what others do on the machine does not count
    work()
    return 1e3 * (time.process_time() - start)


def summarise(table: StudyTable) -> Rows:
    """Median milliseconds of each cell, and the ratios the paper speaks of."""
    rows: Rows = []
    for cell in table.cells:
        row = dict(cell)
        for name in ("deployed", "whole", "authors_simulations"):
            values = table.values(name, **cell)
            if len(values):
                row[name] = float(np.median(values))
        rows.append(row)
    at = {(row["method"], row["B"]): row for row in rows if "deployed" in row}
    if ("mmdagg", 50) not in at:
        return rows
    for name in FAMILIES:
        for what in ("deployed", "whole"):
            ratio = at["mmdagg", 10]["deployed"] / at[name, 10][what]
            rows.append({"quantity": f"MMDAgg over {name} ({what}) at B = 10", "value": ratio})
        rows.append(
            {"quantity": f"{name} deployed, B = 50 over B = 5", "value": at[name, 50]["deployed"] / at[name, 5]["deployed"]}
        )
    for name in AGGREGATES:
        rows.append({"quantity": f"{name}, B = 50 over B = 5", "value": at[name, 50]["deployed"] / at[name, 5]["deployed"]})
    return rows


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Milliseconds against B on log axes; whose code is measured stands in the title."""
    from experiments.figures import COLOURS, axes, label, log_axis

    figure, ax = axes(width=7)
    for name in (*FAMILIES, *AGGREGATES):
        here = [row for row in rows if row.get("method") == name and "deployed" in row]
        ax.plot([r["B"] for r in here], [r["deployed"] for r in here], "o-", color=COLOURS[name], label=label(name))
        if name in FAMILIES:
            ax.plot(
                [r["B"] for r in here],
                [r["whole"] for r in here],
                "o:",
                ms=3,
                color=COLOURS[name],
                label=f"{label(name)}, with selection",
            )
    log_axis(ax.xaxis, GRIDS)
    log_axis(ax.yaxis, (10, 100, 1000))
    ax.set(xlabel="B", ylabel="ms of processor time")
    ax.set_title("cpmmd's own implementation of every method, one thread", fontsize=9)
    ax.legend(fontsize=7, loc="upper left", bbox_to_anchor=(1.01, 1))
    return figure


EXPERIMENT = Experiment(
    id="cost",
    artefact="Fig. real data (b)",
    title="cost of a test against the grid size, Higgs, n = 200",
    task=task,
    cells=grid(B=GRIDS, method=(*FAMILIES, *AGGREGATES)),
    repetitions=REPETITIONS,
    data_keys=(),
    settings={**NEAR, "n": N},
    summarise=summarise,
    draw=draw,
    needs=("higgs",),
    timed=True,
    note="Every method is this package's own implementation, not the authors'. Times differ from run to run; ratios are what "
    "counts. deployed: one selected kernel on all 2n rows, 200 permutations; whole: with calibration and selection.",
)
