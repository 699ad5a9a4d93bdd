"""Table and Fig. variance collapse: 200 steps of the ratio criterion under the null, and of the other two for comparison."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import Ascent, SplitTest, StudyTable
from experiments.base import ALL_CELLS, Experiment, Rows
from experiments.common import NEAR, criterion, grid, network, test
from experiments.panels import mean_shift

D, N = 10, 200  # rows of each sample that are trained on: the samples are twice as large, half of them is tested
WIDTHS = (10, 50, 200, 400)
METHODS = ("liu", "cp", "plain")
ROOT = np.sqrt(2 * N)  # from L |D|_F / N to L |D|_F / sqrt(N)
STEPS, EVERY = 200, 5  # the figure keeps every fifth step
LEVEL_STEP = 30  # from which the paper calls the spectral product level
SEEDS = 10
SHOWN_WIDTH, SHOWN_SEEDS = 200, 5  # in the figure
PAPER_C1 = 0.001  # what the paper's J_CP column was computed with: (MMD2 - J_CP) / G in each of its rows, G with sqrt(N)


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """Train once; keep what the last step shows and the way there."""
    pair = mean_shift(data_rng, 2 * N, D, 0.0)
    method = SplitTest(network(cell["width"]), criterion(cell["method"]), ascent=Ascent(steps=STEPS))
    result = test(pair, method, test_rng)
    assert result.selection is not None
    path = result.selection.path
    kept = {"mmd2": path.mmd2, "complexity": path.complexity, "product": path.spectral_product}
    values: dict[str, Any] = {name: float(column[-1]) for name, column in kept.items()}
    if result.calibration is not None:
        values["c1"] = result.calibration.c1
    if result.selection.collapse is not None:
        found = result.selection.collapse
        values |= {"collapsed": int(found.flagged), "j_liu": found.ratio, "tau": found.tau}
        tau = np.sqrt(np.maximum(path.variance, 0))
        kept["j_liu"] = np.sqrt(N) * path.mmd2 / np.maximum(tau, 1e-12)
    return values | {f"path_{name}": [float(f"{v:.4g}") for v in column[::EVERY]] for name, column in kept.items()}


def summarise(table: StudyTable) -> Rows:
    """The paper's columns by width; J_CP with the C1-hat of the same data and, in the paper's unit, with the paper's C1.

    ``complexity_root`` is G read as L |D|_F / sqrt(N), which is the unit of the paper's table.
    """
    rows = [row for row in (_of_width(table, width) for width in WIDTHS) if row]
    if rows:
        largest = [row["largest_j_cp_collapsed"] for row in rows if row["collapsed"]]
        rows.append({"quantity": "largest J_CP of a collapsed run", "value": max(largest, default=float("nan"))})
        rows.append({"quantity": "largest J_Liu", "value": float(table.values("j_liu", method="liu").max())})
        rows += [*_plateau(table, "cp", "CP"), *_plateau(table, "plain", "plain")]
        penalised = [one.values for one in table.where(method="cp")]
        ends = [values["mmd2"] - values["c1"] * values["complexity"] for values in penalised]
        rows += [
            {"quantity": "smallest J_CP at the end of penalised ascent", "value": float(min(ends, default=np.nan))},
            {"quantity": "largest J_CP at the end of penalised ascent", "value": float(max(ends, default=np.nan))},
        ]
    return rows


def _plateau(table: StudyTable, method: str, shown: str) -> Rows:
    """How much the spectral product moves after the step from which the paper's is level: the mean over seeds at each width."""
    by_width = []
    for width in WIDTHS:
        paths = np.array([one.values["path_product"] for one in table.where(width=width, method=method)])
        by_width.append(float((paths[:, -1] / paths[:, LEVEL_STEP // EVERY]).mean()) if len(paths) else np.nan)
    name = f"Pi at step {STEPS} over step {LEVEL_STEP}, {shown}"
    return [
        {"quantity": f"{name}, smallest of the widths", "value": float(np.nanmin(by_width))},
        {"quantity": f"{name}, largest of the widths", "value": float(np.nanmax(by_width))},
    ]


def _of_width(table: StudyTable, width: int) -> dict[str, Any]:
    """One row of the table; none where a calibration is missing."""
    c1 = {one.repetition: one.values["c1"] for one in table.where(width=width, method="cp")}
    runs = [one for one in table.where(width=width, method="liu") if one.repetition in c1]
    if not runs:
        return {}
    columns = {name: np.array([one.values[name] for one in runs]) for name in ("j_liu", "mmd2", "tau", "complexity")}
    flagged = np.array([bool(one.values["collapsed"]) for one in runs])
    j_cp = columns["mmd2"] - np.array([c1[one.repetition] for one in runs]) * columns["complexity"]
    rate = float(flagged.mean())
    return {
        **{"width": width, "seeds": len(runs), "collapsed": rate, "collapsed_error": np.sqrt(rate * (1 - rate) / len(runs))},
        **{name: float(column.mean()) for name, column in columns.items()},
        "j_liu_error": float(columns["j_liu"].std(ddof=1) / np.sqrt(len(runs))) if len(runs) > 1 else float("nan"),
        "complexity_root": float(columns["complexity"].mean() * ROOT),
        **{"c1": float(np.mean(list(c1.values()))), "j_cp": float(j_cp.mean())},
        "j_cp_paper_c1": float((columns["mmd2"] - PAPER_C1 * columns["complexity"] * ROOT).mean()),
        "largest_j_cp_collapsed": float(j_cp[flagged].max()) if flagged.any() else float("nan"),
        **{f"product_{name}": float(table.values("product", width=width, method=name).mean()) for name in ("cp", "plain")},
    }


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Training dynamics in the paper's four panels: J_Liu, J_CP, MMD2, spectral product."""
    from experiments.figures import COLOURS, axes

    figure, (a, b, c, d) = axes(4, 3.4, 3.0)
    for one in table.where(width=SHOWN_WIDTH):
        if one.repetition >= SHOWN_SEEDS:
            continue
        steps = EVERY * np.arange(len(one.values["path_mmd2"]))
        method, colour = one.cell["method"], COLOURS[one.cell["method"]]
        if method == "liu":
            a.plot(steps, one.values["path_j_liu"], color=colour)
            c.plot(steps, one.values["path_mmd2"], color=colour)
        else:
            d.plot(steps, one.values["path_product"], color=colour, label={"cp": "CP", "plain": "plain"}[method])
        if method == "cp":
            j_cp = np.array(one.values["path_mmd2"]) - one.values["c1"] * np.array(one.values["path_complexity"])
            b.plot(steps, j_cp, color=colour)
    a.set(title="(a) J_Liu, ratio ascent", yscale="symlog", xlabel="step")
    b.set(title="(b) J_CP, penalised ascent", xlabel="step")
    b.axhline(0, lw=0.6, color="black")
    c.set(title="(c) MMD2, ratio ascent", xlabel="step")
    d.set(title="(d) spectral product", yscale="log", xlabel="step")
    handles = dict(zip(*d.get_legend_handles_labels()[::-1], strict=True))
    d.legend(handles.values(), handles.keys(), fontsize=7)
    return figure


EXPERIMENT = Experiment(
    id="collapse",
    artefact="Table, Fig. variance collapse",
    title="the ratio criterion under the null, d = 10, 200 v 200 training rows",
    task=task,
    cells=grid(width=WIDTHS, method=METHODS),
    repetitions=SEEDS,
    data_keys=("width",),
    settings={**NEAR, "d": D, "n": N, "steps": STEPS},
    summarise=summarise,
    draw=draw,
    networks=ALL_CELLS,
    note="The paper's J_CP column comes from C1 = 0.001, none of its calibrated values: j_cp_paper_c1. j_cp has the C1-hat "
    "calibrated on the same data.",
)
