"""The paper's real data: from a local folder where it is there, else downloaded, checked and kept."""

from __future__ import annotations

import os
from functools import cache
from pathlib import Path

import numpy as np

from cpmmd.errors import InputError
from experiments.data import sources

Arrays = dict[str, np.ndarray]


def folder() -> Path:
    """Return the folder of the data sets: CPMMD_DATA (``--data-dir``), or shared/data beside the project."""
    return Path(os.environ.get("CPMMD_DATA", Path(__file__).parents[3] / "shared" / "data"))


def load(name: str) -> Arrays:
    """Return the arrays of ``higgs``, ``cifar10``, ``tep`` or ``mnist_7x7``."""
    return _load(folder(), name)


@cache
def _load(where: Path, name: str) -> Arrays:
    path = where / f"{name}.npz"
    if not path.exists():
        if name not in sources.FETCH:
            raise InputError(f"{path} is not there. Set CPMMD_DATA (or --data-dir) to the folder that holds {path.name}.")
        path = sources.fetch(name)
    with np.load(path, allow_pickle=False) as file:
        arrays = {key: file[key] for key in file.files}
    sources.check(name, arrays, path)
    return arrays


def at_hand(name: str) -> bool:
    """Whether a data set can be loaded without a download."""
    return any(path.exists() for path in (folder() / f"{name}.npz", *sources.kept(name)))


def cifar10_1(version: str = "v6") -> np.ndarray | None:
    """Return the images of CIFAR-10.1 (uint8, n x 32 x 32 x 3); None where they are neither in the folder nor fetched before."""
    name = f"cifar10.1_{version}_data.npy"
    for path in (folder() / name, folder() / "cifar10_1.npz", *sources.fetched(name)):
        if path.exists():
            return sources.read_cifar10_1(path)
    return None


def draw_rows(rng: np.random.Generator, rows: np.ndarray, n: int) -> np.ndarray:
    """Draw n rows without replacement, as float64."""
    return rows[rng.choice(len(rows), n, replace=False)].astype(np.float64)
