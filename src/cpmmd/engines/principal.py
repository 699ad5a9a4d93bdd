"""Features of one table in the principal directions of a kernel: what HSIC with spectral parameters needs of each side.

Features are centred (inside strata where there are some), have variance 1 each, and come with the variance of their direction in
units of the largest. Up to ``DENSE_ROWS`` rows they are eigenvectors of the kernel matrix; beyond, rows are seen through
landmarks, rows drawn at random from this table alone, so that they say nothing about how its rows are paired.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cpmmd.core.arrays import Array, Rows
from cpmmd.draws.labels import units_by_stratum
from cpmmd.engines.directions import RIDGE, whitening
from cpmmd.kernels.base import Kernel

DENSE_ROWS = 400  # of a table whose kernel matrix is taken apart whole
LANDMARKS = 100  # of larger ones: 200 have no more power on three panels of 500 to 700 rows (93 and 91 of 120 draws found)
VARIANCE_ROWS = 5000  # rows that means and variances are taken over, at most
HELD_ROWS = 20_000  # rows whose features are held; of more they are made when they are asked for
LEAST = 1e-4  # of the largest variance: smaller ones count for less than a hundredth at every spectral parameter in use
MOST = 40  # directions


@dataclass(frozen=True, eq=False)
class PrincipalFeatures:
    """Features of every row of a table, held or made when they are asked for."""

    variances: Array  # of each direction, in units of the largest; none where the kernel sees all rows as one
    features: Callable[[Rows], Array]  # of some rows: centred, each of variance 1

    @classmethod
    def of(cls, kernel: Kernel, rows: Array, strata: Rows | None, rng: np.random.Generator) -> PrincipalFeatures:
        """Return the features of a table's rows under a kernel; ``rng`` draws landmarks without looking at the other table."""
        if len(rows) <= DENSE_ROWS:
            return cls._held(*_whole(kernel.gram(rows), strata))
        order = rng.permutation(len(rows))
        landmarks, some = rows[order[:LANDMARKS]], np.sort(order[:VARIANCE_ROWS])
        if len(rows) <= VARIANCE_ROWS:
            some = np.arange(len(rows))
        white = whitening(kernel.gram(landmarks), RIDGE[np.dtype(np.float64)])
        of_some = None if strata is None else strata[some]
        seen = kernel.gram(rows[some], landmarks)
        centred, means = _centre(seen, of_some, 1 if strata is None else int(strata.max()) + 1)
        variances, vectors = _principal((lambda z: z.T @ z)(centred @ white) / len(some))
        projection = white @ (vectors / np.sqrt(variances))
        variances = variances / variances.max(initial=1e-300)
        if len(some) == len(rows):
            return cls._held(variances, centred @ projection)

        def features(chosen: Rows) -> Array:
            offset = means[0] if strata is None else means[strata[chosen]]
            return np.asarray((kernel.gram(rows[chosen], landmarks) - offset) @ projection)

        if len(rows) > HELD_ROWS:
            return cls(variances, features)
        return cls._held(variances, features(np.arange(len(rows))))

    @classmethod
    def _held(cls, variances: Array, held: Array) -> PrincipalFeatures:
        return cls(variances, lambda chosen: held[chosen])


def _whole(K: Array, strata: Rows | None) -> tuple[Array, Array]:
    """Return variances and features of a whole kernel matrix."""
    count = 1 if strata is None else int(strata.max()) + 1
    once, _ = _centre(K, strata, count)
    centred, _ = _centre(once.T, strata, count)
    variances, vectors = _principal((centred + centred.T) / 2)
    return variances / variances.max(initial=1e-300), vectors * np.sqrt(len(K))


def _principal(matrix: Array) -> tuple[Array, Array]:
    """Return the largest eigenvalues of a symmetric matrix, the largest first, and their eigenvectors."""
    unit = float(np.abs(np.diag(matrix)).max(initial=0.0))
    size = len(matrix)
    if not unit > 0:
        return np.empty(0), np.empty((size, 0))
    chosen = (max(0, size - MOST), size - 1)
    values, vectors = linalg.eigh(matrix / unit, check_finite=False, driver="evr", subset_by_index=chosen)
    kept = values > LEAST * max(float(values[-1]), 1e-300)
    return values[kept][::-1] * unit, np.ascontiguousarray(vectors[:, kept][:, ::-1])


def _centre(values: Array, strata: Rows | None, count: int) -> tuple[Array, Array]:
    """Return values less the mean of their stratum, and the means."""
    if strata is None:
        mean = values.mean(axis=0, keepdims=True)
        return values - mean, mean
    means = np.zeros((count, values.shape[1]))
    for inside in units_by_stratum(strata):
        means[strata[inside[0]]] = values[inside].mean(axis=0)
    return values - means[strata], means
