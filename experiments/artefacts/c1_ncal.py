"""Choice of n_cal: how C1-hat spreads over calibrations of the same data, against the number of null permutations."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import ComplexityPenalized, SplitTest, StudyTable
from cpmmd.selection.search import quantile_order
from experiments.base import ALL_CELLS, Experiment, Rows
from experiments.common import ALPHA, NEAR, network, test
from experiments.panels import mean_shift

D, N, SHIFT, WIDTH = 50, 100, 0.5, 200
COUNTS = (5, 10, 20, 40, 80, 160)
QUANTILE_FROM = 20  # below it the order statistic is the maximum, which estimates no fixed quantile
RESAMPLED = 500  # sets of seeds, for the error of the rate
SEEDS = 20  # the paper names the rate and shows none


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:  # noqa: ARG001
    """Draw 160 null ratios of one fixed data set; C1-hat at n_cal uses the first n_cal of them."""
    pair = mean_shift(np.random.default_rng(0), N, D, SHIFT)
    criterion = ComplexityPenalized(n_calibration=max(COUNTS))
    result = test(pair, SplitTest(network(WIDTH), criterion, n_splits=1), test_rng)
    assert result.calibration is not None
    ratios = result.calibration.ratios
    return {f"n_cal {n}": max(float(np.sort(ratios[:n])[quantile_order(n, ALPHA) - 1]), 0.0) for n in COUNTS}


def summarise(table: StudyTable) -> Rows:
    """Mean, standard deviation and CV of C1-hat at each n_cal; the rate on log axes, its error by resampling seeds."""
    rows: Rows = []
    for n in COUNTS:
        c1 = table.values(f"n_cal {n}")
        mean, std = float(c1.mean()), float(c1.std())
        # A standard deviation from s normal values has a relative error of about 1 / sqrt(2 s).
        row = {"n_cal": n, "seeds": len(c1), "c1": mean, "std": std, "std_error": std / np.sqrt(2 * len(c1))}
        rows.append(row | {"cv": 100 * std / mean if mean > 0 else float("nan")})
    fitted = [n for n in COUNTS if n >= QUANTILE_FROM]
    found = np.array([table.values(f"n_cal {n}") for n in fitted])
    if found.shape[1] > 1:
        chosen = np.random.default_rng(0).integers(found.shape[1], size=(RESAMPLED, found.shape[1]))
        error = np.std([_rate(fitted, found[:, some]) for some in chosen])
        rows.append({"quantity": "rate of the spread", "value": _rate(fitted, found), "value_error": float(error)})
    return rows


def _rate(counts: list[int], c1: np.ndarray) -> float:
    """Slope of log spread in log n_cal, by least squares."""
    return float(np.polyfit(np.log(counts), np.log(np.maximum(c1.std(axis=1), 1e-12)), 1)[0])


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Spread against n_cal on log axes, beside n_cal^-1/2."""
    from experiments.figures import COLOURS, axes, log_axis

    figure, ax = axes()
    cells = [row for row in rows if "n_cal" in row]
    counts = np.array([row["n_cal"] for row in cells], dtype=float)
    std = np.array([row["std"] for row in cells])
    ax.errorbar(
        counts, std, [row["std_error"] for row in cells], fmt="o-", color=COLOURS["cp"], label="standard deviation of C1-hat"
    )
    anchor = list(counts).index(QUANTILE_FROM)
    ax.plot(counts, std[anchor] * (counts / QUANTILE_FROM) ** -0.5, ":", color="black", label="n_cal^-1/2")
    log_axis(ax.xaxis, COUNTS)
    log_axis(ax.yaxis, (0.001, 0.002, 0.005, 0.01))
    ax.set(xlabel="n_cal", ylabel="spread of C1-hat over seeds")
    ax.legend(fontsize=7)
    return figure


EXPERIMENT = Experiment(
    id="c1-ncal",
    artefact="App. choice of n_cal",
    title="spread of C1-hat against n_cal, width 200, d = 50, n = 100",
    task=task,
    cells=[{"width": WIDTH}],
    repetitions=SEEDS,
    settings={**NEAR, "d": D, "n": N, "shift": SHIFT},
    summarise=summarise,
    draw=draw,
    networks=ALL_CELLS,
    note="One data set; seeds change its split, the permutations and the networks' starts.",
)
