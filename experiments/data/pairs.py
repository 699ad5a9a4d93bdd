"""Two samples from the real data sets."""

from __future__ import annotations

import numpy as np

from experiments.data import draw_rows, load


def higgs(
    rng: np.random.Generator, n: int, columns: list[int] | None = None, n_y: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Background against signal events."""
    data = load("higgs")
    rows = data["X"] if columns is None else data["X"][:, columns]
    background, signal = rows[data["y"] == 0], rows[data["y"] == 1]
    return draw_rows(rng, background, n), draw_rows(rng, signal, n_y or n)


def mnist_subset(rng: np.random.Generator, n: int, q: int, n_y: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All digits against the subset Q1..Q5 of Kuebler et al.: odd digits, then 0, 2, 4, 6 added one by one."""
    data = load("mnist_7x7")
    kept = [1, 3, 5, 7, 9, *[0, 2, 4, 6][: q - 1]]
    return draw_rows(rng, data["X"], n), draw_rows(rng, data["X"][np.isin(data["y"], kept)], n_y or n)


def tep(rng: np.random.Generator, n: int, fault: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal operation against a fault of the Tennessee Eastman process, columns standardised by normal operation."""
    normal = load("tep")["normal_test"]
    return tep_scaled(draw_rows(rng, normal, n)), tep_scaled(draw_rows(rng, faulty_rows(fault), n))


def faulty_rows(fault: int) -> np.ndarray:
    """Rows of the process after a fault has begun."""
    return load("tep")[f"fault{fault:02d}_test"][160:]


def tep_scaled(rows: np.ndarray) -> np.ndarray:
    """Standardise columns by normal operation."""
    normal = load("tep")["normal_test"]
    return np.asarray((rows - normal.mean(axis=0)) / normal.std(axis=0))
