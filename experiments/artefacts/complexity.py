"""Prop. proxy-bound and the expectation form of the inequality: Gaussian complexities by simulation beside their proxy."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np

from experiments.base import ALL_CELLS, Experiment
from experiments.common import grid

REPETITIONS = 40
STEPS = 150  # of the ascent that looks for the supremum over networks; more add less than a hundredth
FEATURES = 10  # outputs of the network, as in the paper
GRID = np.geomspace(1 / 8, 8, 13)  # bandwidths, in medians: a class small enough for its supremum to be exact
L, RHO = math.exp(-0.5), 2.0  # Lipschitz constant of the Gaussian, rho* of m = n


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One draw of D and of the Gaussian noise: sup over the class of <noise, h(D)> / N, over the proxy L* |D|_F / N."""
    rows = data_rng.normal(size=(cell["N"], cell["d"]))
    if cell["class"] == "inequality":
        return _inequality(rows, test_rng)
    if cell["class"] == "network":
        return {"ratio": _network(rows, cell["width"], test_rng)}
    if cell["class"] == "matrix":  # |W| <= 1: the supremum is the nuclear norm
        noise = test_rng.normal(size=(cell["N"], cell["d"]))
        return {"ratio": float(np.linalg.norm(rows.T @ noise, "nuc") / np.linalg.norm(rows))}
    lifted = rows if cell["class"] == "bandwidth" else np.hstack([rows**p for p in range(1, 5)])
    noise = test_rng.normal(size=lifted.shape)
    slope = 1.0 if cell["class"] == "bandwidth" else _slope(rows)
    return {"ratio": max(float(np.vdot(noise, lifted)), 0.0) / (slope * float(np.linalg.norm(rows)))}


def _slope(rows: np.ndarray) -> float:
    """Lipschitz constant of x -> (x, x^2, x^3, x^4), column by column, on the range of the rows."""
    largest = float(np.abs(rows).max())
    return math.sqrt(sum((p * largest ** (p - 1)) ** 2 for p in range(1, 5)))


def _network(rows: np.ndarray, width: int, rng: np.random.Generator) -> float:
    """Look for the supremum over networks whose layers have spectral norm 1, by ascent: a lower bound of it."""
    import torch

    torch.manual_seed(int(rng.integers(2**31)))
    x = torch.as_tensor(rows, dtype=torch.float32)
    noise = torch.as_tensor(rng.normal(size=(len(rows), FEATURES)), dtype=torch.float32)
    sides = [rows.shape[1], width, width, FEATURES]
    weights = [torch.randn(a, b, requires_grad=True) for a, b in pairwise(sides)]
    optimiser, best = torch.optim.Adam(weights, lr=0.02), 0.0
    for _ in range(STEPS):
        h = x
        for k, weight in enumerate(weights):
            h = h @ (weight / torch.linalg.matrix_norm(weight, 2))
            h = torch.nn.functional.leaky_relu(h) if k < len(weights) - 1 else h
        value = (noise * h).sum()
        best = max(best, float(value))
        optimiser.zero_grad()
        (-value).backward()
        optimiser.step()
    return best / float(np.linalg.norm(rows))


def _inequality(rows: np.ndarray, rng: np.random.Generator) -> dict[str, Any]:
    """One null draw: the supremum of the squared MMD over the grid, and the Gaussian complexity of the same class."""
    half = len(rows) // 2
    squares = np.square(rows[:, None] - rows[None]).sum(axis=2)
    bandwidths = GRID * math.sqrt(np.median(squares[np.triu_indices(len(rows), 1)]))
    found = []
    for bandwidth in bandwidths:
        K = np.exp(-squares / (2 * bandwidth**2))
        np.fill_diagonal(K, 0)
        within = (K[:half, :half].sum() + K[half:, half:].sum()) / (half * (half - 1))
        found.append(within - 2 * K[:half, half:].mean())
    projected = float(np.vdot(rng.normal(size=rows.shape), rows)) / len(rows)
    complexity = max(projected / bandwidths.min(), projected / bandwidths.max())
    constant = 2 * math.sqrt(2 * math.pi) * L * RHO * (1 + RHO)  # C_1 as the paper states it
    return {"supremum": max(found), "complexity": complexity, "bound": constant * complexity}


EXPERIMENT = Experiment(
    id="complexity",
    artefact="Prop. proxy-bound",
    title="Gaussian complexity of the classes over the proxy L* |D|_F / N, and the expectation form of the inequality",
    task=task,
    cells=[
        *grid(**{"class": ["bandwidth", "polynomial", "matrix"], "d": [5, 50], "N": [100, 400]}),
        *grid(**{"class": ["network"], "d": [5, 50], "N": [100, 400], "width": [20, 100]}),
        *grid(**{"class": ["inequality"], "d": [2], "N": [50, 200, 800]}),
    ],
    repetitions=REPETITIONS,
    settings={"steps": STEPS, "features": FEATURES},
    networks=ALL_CELLS,
    note="One scale (bandwidth, polynomial): the supremum is a half-normal, so the ratio is at most 1/sqrt(2 pi) = 0.40 on "
    "average, whatever d and N. A matrix has a direction for each column: its ratio grows with d, up to the c_H = d of the "
    "proof. Networks: the ascent finds a lower bound of the supremum, which grows with the outputs and hardly with width. The "
    "rows of the inequality have the means of the largest squared MMD under the null, of G, and of C_1 G.",
)
