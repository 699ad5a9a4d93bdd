"""Real data for the panels, from the folder named by CPMMD_DATA (by default ../shared/data)."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np

FOLDER = Path(os.environ.get("CPMMD_DATA", Path(__file__).parents[2] / "shared" / "data"))


@cache
def load(name: str) -> dict[str, np.ndarray]:
    """Give the arrays of one file."""
    path = FOLDER / f"{name}.npz"
    if not path.exists():
        raise SystemExit(f"{path} is not there: set CPMMD_DATA to the folder that holds {name}.npz.")
    with np.load(path, allow_pickle=False) as file:
        return {key: file[key] for key in file.files}


def higgs(
    rng: np.random.Generator, n: int, columns: list[int] | None = None, n_y: int | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """Background against signal events."""
    data = load("higgs")
    rows = data["X"] if columns is None else data["X"][:, columns]
    background, signal = rows[data["y"] == 0], rows[data["y"] == 1]
    return _draw(rng, background, n), _draw(rng, signal, n_y or n)


def mnist_subset(rng: np.random.Generator, n: int, q: int, n_y: int | None = None) -> tuple[np.ndarray, np.ndarray]:
    """All digits against the subset Q1..Q5 of Kuebler et al.: odd digits, then 0, 2, 4, 6 added one by one."""
    data = load("mnist_7x7")
    kept = [1, 3, 5, 7, 9, *[0, 2, 4, 6][: q - 1]]
    return _draw(rng, data["X"], n), _draw(rng, data["X"][np.isin(data["y"], kept)], n_y or n)


def tep(rng: np.random.Generator, n: int, fault: int) -> tuple[np.ndarray, np.ndarray]:
    """Normal operation against a fault of the Tennessee Eastman process, columns standardised by normal operation."""
    data = load("tep")
    normal = data["normal_test"]
    faulty = data[f"fault{fault:02d}_test"][160:]
    centre, spread = normal.mean(axis=0), normal.std(axis=0)
    return (_draw(rng, normal, n) - centre) / spread, (_draw(rng, faulty, n) - centre) / spread


def _draw(rng: np.random.Generator, rows: np.ndarray, n: int) -> np.ndarray:
    return rows[rng.choice(len(rows), n, replace=False)].astype(np.float64)
