"""Stein kernels of the data under random signs: the wild bootstrap of the KSD (Chwialkowski, Strathmann, Gretton 2016).

Under the model the features xi(x) of a row have mean zero, and |sum_a e_a xi_a|^2 with random signs e_a of rows, or of blocks of
rows, has in the limit the distribution of |sum_a xi_a|^2. Flipping signs leaves the spectrum of the Stein kernel matrix as it
is, so that directions may be divided by it. The diagonal is the same under every sign and left out.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import linalg

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.parallel import map_apart
from cpmmd.draws.labels import Relabelings
from cpmmd.engines.directions import LEAST, RIDGE, whitening
from cpmmd.statistics.stein import Pairs, Scored, SteinKernel

PAIR_ROWS = 2000  # up to them all pairs of rows, beyond them landmarks
LANDMARKS = 400
TIE = 1e-12  # of |A|_F, as for relabelings of a squared MMD
TILE_ROWS = 2048


def signed_values(
    data: Scored,
    kernels: Sequence[tuple[SteinKernel, Sequence[float]]],
    starts: Rows | None,
    signs: Relabelings,
    rng: np.random.Generator,
    *,
    pair_rows: int = PAIR_ROWS,
) -> list[Array]:
    """Return for every kernel T of each gamma (rows) under every sign (columns); ``starts``: where blocks of rows begin."""
    dense = len(data) <= pair_rows
    landmarks = data if dense else data.take(np.sort(rng.choice(len(data), LANDMARKS, replace=False)))
    pairs = Pairs.of(data, landmarks) if dense else None

    def values(member: tuple[SteinKernel, Sequence[float]]) -> Array:
        kernel, gammas = member
        if pairs is not None:
            return _of_matrix(_sum_units(kernel.of(pairs), starts, both=True), gammas, signs)
        white = whitening(kernel.matrix(landmarks), RIDGE[np.dtype(np.float64)])
        tiles = range(0, len(data), TILE_ROWS)
        seen = np.concatenate([kernel.matrix(data.take(slice(k, k + TILE_ROWS)), landmarks) @ white for k in tiles])
        return _of_features(_sum_units(seen, starts), gammas, signs)

    return map_apart(values, list(kernels))


def _sum_units(matrix: Array, starts: Rows | None, *, both: bool = False) -> Array:
    """Return sums over the rows of each block, and over its columns too."""
    if starts is None:
        return matrix
    sums = np.add.reduceat(matrix, starts, axis=0)
    return np.asarray(np.add.reduceat(sums, starts, axis=1) if both else sums)


def _of_matrix(matrix: Array, gammas: Sequence[float], signs: Relabelings) -> Array:
    found = np.empty((len(gammas), len(signs)))
    spectral = [gamma for gamma in gammas if np.isfinite(gamma)]
    if spectral:
        variances, vectors = linalg.eigh(matrix, driver="evd", check_finite=False)
        kept = variances > LEAST * variances[-1]
        features = vectors[:, kept] * np.sqrt(variances[kept])
        found[np.isfinite(gammas)] = _weighted(features, variances[kept], spectral, signs)
    if len(spectral) < len(gammas):
        off_diagonal = matrix - np.diag(np.diag(matrix))
        found[np.isinf(gammas)] = np.concatenate([((block @ off_diagonal) * block).sum(axis=1) for block in signs.blocks()])
    return found


def _of_features(features: Array, gammas: Sequence[float], signs: Relabelings) -> Array:
    variances, vectors = linalg.eigh(features.T @ features, driver="evd", check_finite=False)
    kept = variances > LEAST * variances[-1]
    return _weighted(features @ vectors[:, kept], variances[kept], gammas, signs)


def _weighted(features: Array, variances: Array, gammas: Sequence[float], signs: Relabelings) -> Array:
    """Return sum_k w_k ((sum_a e_a f_ak)^2 - sum_a f_ak^2) for the weights of every gamma, under every sign."""
    largest = float(variances[-1])
    weights = np.array(
        [np.ones(len(variances)) if np.isinf(g) else (1 + g) * largest / (variances + g * largest) for g in gammas]
    )
    constant = weights @ np.square(features).sum(axis=0)
    found = np.concatenate([weights @ np.square(block @ features).T for block in signs.blocks()], axis=1)
    return np.asarray(found - constant[:, None])
