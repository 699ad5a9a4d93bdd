"""Prop. finite grids: deviation over B kernels falls like sqrt(ln B / N). Lemma necessity: a fixed bandwidth loses all power."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import Bandwidth, FullSampleTest, MedianTest, StudyTable, kernel_matrix_test
from cpmmd.certificates import finite_grid_gap
from cpmmd.mmd import unbiased_mmd2
from experiments.base import Experiment, Rows
from experiments.common import ALPHA, PERMUTATIONS, decision, grid, test

KERNELS = (1, 4, 16, 64, 256)  # B: kernel j is Gaussian, sigma 1, on coordinate j, so that deviations are independent
SIZES = (50, 100, 200, 400, 800)  # N = m + n
SHIFTS = (0.6, 1.0)  # coordinate j is moved by a number between the two, the last one most
DILATIONS = (1, 4, 16, 64, 256, 1024, 4096, 16384)  # P = N(0, i^2), Q = N(0, (2i)^2)
DILATION_N, FIXED_SIGMA = 100, 1.0
METHODS = {"fixed": None, "median": MedianTest(), "cp-full": FullSampleTest()}
REPETITIONS = 40  # the paper proves, it does not measure


def population(shift: np.ndarray) -> np.ndarray:
    """MMD2 of N(0, 1) and N(shift, 1) for the Gaussian kernel with sigma 1: 2 (1 - exp(-shift^2 / 6)) / sqrt(3)."""
    return np.asarray(2 * (1 - np.exp(-(shift**2) / 6)) / np.sqrt(3))


def deviation(cell: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Largest deviation over the kernels, and what selection by the largest estimate loses."""
    shifts = np.linspace(*SHIFTS, cell["B"])
    n = cell["N"] // 2
    found = np.array([_estimate(rng, n, shift) for shift in shifts])
    truth = population(shifts)
    return {"deviation": float(np.abs(found - truth).max()), "loss": float(truth.max() - truth[found.argmax()])}


def _estimate(rng: np.random.Generator, n: int, shift: float) -> float:
    pool = np.concatenate([rng.normal(size=n), rng.normal(shift, 1, size=n)])[:, None]
    K = Bandwidth().gram(1.0, pool)
    return unbiased_mmd2(K[:n, :n], K[n:, n:], K[:n, n:])


def dilated(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test at dilation i."""
    x, y = data_rng.normal(size=(2, DILATION_N, 1)) * np.array([1, 2])[:, None, None] * cell["i"]
    if cell["method"] != "fixed":
        return decision(test((x, y), METHODS[cell["method"]], test_rng))
    K = Bandwidth().gram(FIXED_SIGMA, np.vstack([x, y]))
    null = kernel_matrix_test(K, DILATION_N, n_permutations=PERMUTATIONS, rng=test_rng)
    return {"reject": int(null.pvalue <= ALPHA), "pvalue": round(null.pvalue, 6)}


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One repetition of either part."""
    return deviation(cell, data_rng) if cell["part"] == "grid" else dilated(cell, data_rng, test_rng)


def summarise(table: StudyTable) -> Rows:
    """The cells with the proposition's bound, and the measured exponents of N and of ln(2B)."""
    rows = table.rows
    for row in rows:
        if row["part"] == "grid":
            row["bound"] = finite_grid_gap(row["B"], row["N"] // 2, row["N"] // 2) / 2  # the bound on the loss is twice it
    found = [row for row in rows if row["part"] == "grid" and "deviation" in row]
    if len(found) == len(KERNELS) * len(SIZES):
        logs = np.log([[row["N"], np.log(2 * row["B"])] for row in found])
        design = np.column_stack([logs, np.ones(len(found))])
        exponents = np.linalg.lstsq(design, np.log([row["deviation"] for row in found]), rcond=None)[0]
        rows.append({"quantity": "exponent of N", "value": float(exponents[0])})
        rows.append({"quantity": "exponent of ln(2B)", "value": float(exponents[1])})
        rows.append({"quantity": "largest deviation over bound", "value": max(r["deviation"] / r["bound"] for r in found)})
    return rows


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Deviation against sqrt(ln(2B)/N), and power along the dilation."""
    from experiments.figures import axes, log_axis, power_lines

    figure, (left, right) = axes(2)
    for b in KERNELS:
        here = [row for row in rows if row.get("B") == b and "deviation" in row]
        left.plot([np.sqrt(np.log(2 * b) / r["N"]) for r in here], [r["deviation"] for r in here], "o-", ms=3, label=f"B = {b}")
    log_axis(left.xaxis, (0.03, 0.1, 0.3))
    log_axis(left.yaxis, (0.03, 0.1, 0.3))
    left.set(xlabel="sqrt(ln(2B) / N)", ylabel="largest deviation over the grid")
    left.legend(fontsize=7)
    power_lines(right, [row for row in rows if row.get("part") == "dilation"], "i")
    right.set(xscale="log", xlabel="dilation i")
    return figure


EXPERIMENT = Experiment(
    id="rates",
    artefact="Prop. finite grids, Lemma",
    title="sqrt(ln B / N) over finite grids; a fixed bandwidth along the dilation sequence",
    task=task,
    cells=grid(part=["grid"], B=KERNELS, N=SIZES) + grid(part=["dilation"], i=DILATIONS, method=METHODS),
    repetitions=REPETITIONS,
    data_keys=("part", "B", "N", "i"),
    settings={"permutations": PERMUTATIONS},
    summarise=summarise,
    draw=draw,
)
