"""Not in the paper: what its kurtosis panel takes. Rows in each half, and a search that ends at an eighth of the median."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import Polynomial, StudyTable, kernel_matrix_test
from experiments.artefacts.polynomial import DEGREE, D
from experiments.base import Experiment, Rows
from experiments.common import PERMUTATIONS, grid
from experiments.panels import kurtosis

FAMILY = Polynomial(degree=DEGREE)
NARROW = tuple(2.0 ** (-6 + k / 2) for k in range(7))  # the search of cp-narrow: 1/64 to 1/8 of the median distance
FIXED = {
    f"fixed {name}": 2.0**power for power, name in ((-5, "1/32"), (-4, "1/16"), (-3, "1/8"), (-2, "1/4"), (-1, "1/2"), (0, "1"))
}
NULLS = 10  # permutations of the training half, the largest ratio is C1-hat
HARDEST = 20  # degrees of freedom, where the paper has .90
REPETITIONS = 200


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test of the second half of two samples, its bandwidth from the first."""
    x, y = kurtosis(data_rng, cell["n"], cell["df"], D)
    half = cell["n"] // 2
    train, held_out = np.vstack([x[:half], y[:half]]), np.vstack([x[half:], y[half:]])
    median = FAMILY.median_bandwidth(train)
    bandwidth = median * FIXED[cell["method"]] if cell["method"] in FIXED else select(train, half, median, test_rng)
    result = kernel_matrix_test(FAMILY.gram(bandwidth, held_out), half, n_permutations=PERMUTATIONS, rng=test_rng)
    return {"reject": int(result.reject), "pvalue": round(result.pvalue, 6), "multiple": bandwidth / median}


def select(train: np.ndarray, m: int, median: float, rng: np.random.Generator) -> float:
    """Return the bandwidth that maximises MMD2 - C1-hat G over the grid; G is 1/bandwidth times what cancels."""
    labels = np.array([np.arange(len(train)) < m, *(rng.permutation(len(train)) < m for _ in range(NULLS))])
    bandwidths = median * np.array(NARROW)
    values = np.array([squared_mmds(FAMILY.gram(float(b), train), labels) for b in bandwidths])
    best = values[:, 1:].argmax(axis=0)
    c1 = max(0.0, float((values[best, np.arange(1, NULLS + 1)] * bandwidths[best]).max()))
    return float(bandwidths[np.argmax(values[:, 0] - c1 / bandwidths)])


def squared_mmds(K: np.ndarray, labels: np.ndarray) -> np.ndarray:
    """Return the unbiased squared MMD of each labeling, its samples of equal size, from sums over blocks."""
    signs, m = 2.0 * labels - 1, len(K) // 2
    across = (K.sum() - np.einsum("bi,ij,bj->b", signs, K, signs, optimize=True)) / 4  # sum over x in X, y in Y
    return np.asarray((K.sum() - np.trace(K) - 2 * across) / (m * (m - 1)) - 2 * across / m**2)


def summarise(table: StudyTable) -> Rows:
    """Return the cells, and the largest power of a fixed bandwidth as the paper's n is printed."""
    rows = table.rows
    fixed = [row for row in rows if row["method"] in FIXED and "reject" in row]
    if fixed:
        best = max(fixed, key=lambda row: row["reject"])
        shown = {name: best[name] for name in ("repetitions", "reject", "reject_error")}
        rows.append({"quantity": f"largest power of a fixed bandwidth at n = 500, df = {HARDEST}", **shown})
    return rows


EXPERIMENT = Experiment(
    id="polynomial-halves",
    artefact="beside Fig. three regimes (b)",
    title="kurtosis shift: 500 or 1000 rows a sample, bandwidths up to an eighth of the median, and fixed ones",
    task=task,
    cells=[
        *({"n": n, "df": df, "method": "cp-narrow"} for n, df in ((1000, HARDEST), (500, HARDEST), (1000, 12))),
        *grid(n=[500], df=[HARDEST], method=FIXED),
    ],
    repetitions=REPETITIONS,
    data_keys=("n", "df"),
    settings={"degree": DEGREE, "d": D, "permutations": PERMUTATIONS, "narrow": NARROW, "nulls": NULLS},
    summarise=summarise,
    note="cp-narrow: the penalised criterion, its search cut off at 1/8 of the median distance, on a grid. fixed: that multiple "
    "of the training half's median, the other half tested.",
)
