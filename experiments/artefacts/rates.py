"""Prop. finite grids: deviation over B kernels falls like sqrt(ln B / N). Lemma necessity: a fixed bandwidth loses all power."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import Bandwidth, FullSampleTest, MedianTest, StudyTable, kernel_matrix_test
from cpmmd.selection.certificates import finite_grid_gap
from cpmmd.statistics.mmd import unbiased_mmd2
from experiments.base import Experiment, Rows
from experiments.common import ALPHA, PERMUTATIONS, decision, grid, test

KERNELS = (1, 4, 16, 64, 256)  # B: kernel j is Gaussian, sigma 1, on coordinate j, so that deviations are independent
SIZES = (50, 100, 200, 400, 800)  # N = m + n
SHIFT = 0.8  # of every coordinate, where deviations are measured: all have the same spread
SHIFTS = (0.6, 1.0)  # of the first and the last coordinate, where the best of them is looked for
DILATIONS = (1, 4, 16, 64, 256, 1024, 4096, 16384)  # P = N(0, i^2), Q = N(0, (2i)^2)
DILATION_N, FIXED_SIGMA = 100, 1.0
LIMIT_PAIRS = 60  # closest ones: a draw in so many is none of 200 relabelings
LIMIT_SAMPLES = 50  # pairs of samples in each repetition
METHODS = {"fixed": None, "median": MedianTest(), "cp-full": FullSampleTest()}
REPETITIONS = 40  # the paper proves, it does not measure


def population(shift: np.ndarray) -> np.ndarray:
    """MMD2 of N(0, 1) and N(shift, 1) for the Gaussian kernel with sigma 1: 2 (1 - exp(-shift^2 / 6)) / sqrt(3)."""
    return np.asarray(2 * (1 - np.exp(-(shift**2) / 6)) / np.sqrt(3))


def deviation(cell: dict[str, Any], rng: np.random.Generator) -> dict[str, Any]:
    """Largest deviation over kernels that see the same shift; what is lost by selecting among kernels that see others."""
    n = cell["N"] // 2
    equal, unequal = np.full(cell["B"], SHIFT), np.linspace(*SHIFTS[::-1], cell["B"])
    deviations = np.abs(_estimates(rng, n, equal) - population(equal))
    truth = population(unequal)
    return {"deviation": float(deviations.max()), "loss": float(truth.max() - truth[_estimates(rng, n, unequal).argmax()])}


def _estimates(rng: np.random.Generator, n: int, shifts: np.ndarray) -> np.ndarray:
    return np.array([_estimate(rng, n, shift) for shift in shifts])


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


def limit(data_rng: np.random.Generator, test_rng: np.random.Generator) -> float:
    """Return the share of rejections where i has no end: the closest pair outweighs all others, then the next one.

    A pair inside a sample adds to the squared MMD, one across takes off. So relabelings are in the order of their pairs, closest
    first: the larger one has the first pair inside that the other has across. No kernel value is needed, and none underflows.
    """
    rejected = 0
    for _ in range(LIMIT_SAMPLES):
        pool = np.concatenate(data_rng.normal(size=(2, DILATION_N)) * np.array([1, 2])[:, None])
        first, second = np.triu_indices(len(pool), 1)
        closest = np.argpartition(np.abs(pool[first] - pool[second]), LIMIT_PAIRS)[:LIMIT_PAIRS]
        closest = closest[np.argsort(np.abs(pool[first[closest]] - pool[second[closest]]))]
        observed = np.arange(len(pool)) < DILATION_N
        labels = np.array([observed, *(test_rng.permutation(observed) for _ in range(PERMUTATIONS))])
        inside = labels[:, first[closest]] == labels[:, second[closest]]
        at_least = sum(tuple(row) >= tuple(inside[0]) for row in inside.tolist())
        rejected += at_least / len(labels) <= ALPHA
    return rejected / LIMIT_SAMPLES


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One repetition of a part."""
    if cell["part"] == "limit":
        return {"rate": limit(data_rng, test_rng)}
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
        worst = [table.values("deviation", B=r["B"], N=r["N"]).max() / r["bound"] for r in found]
        rows.append({"quantity": "largest deviation over bound", "value": float(max(worst))})
        gaps = [table.values("loss", B=r["B"], N=r["N"]).max() / (2 * r["bound"]) for r in found]
        rows.append({"quantity": "largest loss over bound", "value": float(max(gaps))})
    rates = table.values("rate", part="limit")
    if len(rates):
        rate, count = float(rates.mean()), len(rates) * LIMIT_SAMPLES
        error = float(np.sqrt(rate * (1 - rate) / count))
        rows.append({"quantity": "rejections in the limit of the dilation", "value": rate, "value_error": error})
    return rows


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Deviation and loss against sqrt(ln(2B)/N), and power along the dilation."""
    from experiments.figures import axes, log_axis, power_lines

    figure, (left, middle, right) = axes(3, 4.4)
    for b in KERNELS:
        here = [row for row in rows if row.get("B") == b and "deviation" in row]
        at = [np.sqrt(np.log(2 * b) / r["N"]) for r in here]
        left.plot(at, [r["deviation"] for r in here], "o-", ms=3, label=f"B = {b}")
        middle.plot(at, [r["loss"] for r in here], "o-", ms=3)
    log_axis(middle.xaxis, (0.03, 0.1, 0.3))
    middle.set(xlabel="sqrt(ln(2B) / N)", ylabel="MMD2 lost by selecting")
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
    cells=grid(part=["grid"], B=KERNELS, N=SIZES) + grid(part=["dilation"], i=DILATIONS, method=METHODS) + grid(part=["limit"]),
    repetitions=REPETITIONS,
    data_keys=("part", "B", "N", "i"),
    settings={"permutations": PERMUTATIONS, "shift": SHIFT, "shifts": SHIFTS, "n": DILATION_N, "sigma": FIXED_SIGMA},
    summarise=summarise,
    draw=draw,
)
