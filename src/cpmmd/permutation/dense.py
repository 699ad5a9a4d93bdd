"""Exact permutation p-values from a kernel matrix in memory."""

from __future__ import annotations

import math
from itertools import chain, pairwise

import numpy as np

from cpmmd.core.arrays import Array, Floating
from cpmmd.permutation import mmd
from cpmmd.permutation.labels import BLOCK_ROWS, CHUNK_BYTES, all_fit, all_labels, draw_in_chunks, observed
from cpmmd.permutation.ranking import Ranking

PANELS = 4  # at most, of the triangular product
PANEL_ROWS = 48  # at least


def permutation_test(
    K: Array,
    m: int,
    *,
    n_permutations: int,
    rng: np.random.Generator,
    chunk_bytes: int = CHUNK_BYTES,
    overwrite: bool = False,
) -> Ranking:
    """Return the permutation p-value of the unbiased squared MMD for one kernel matrix.

    Parameters
    ----------
    K : array
        Kernel matrix of the pool, X first.
    m : int
        Number of rows of X.
    n_permutations : int
        Random relabelings; all C(N, m) of them are used instead where they are fewer.
    rng : Generator
        Where random relabelings come from.
    chunk_bytes : int
        Memory for labels; the answer does not depend on it.
    overwrite : bool
        Whether ``K`` may be used as working memory.
    """
    mean = float(K.mean())
    centred = mmd.u_centre(K, overwrite=overwrite)
    constant = mmd.quadratic_constant(m, len(K) - m)
    return rank_relabelings(
        centred, m, constant=constant, mean=mean, n_permutations=n_permutations, rng=rng, chunk_bytes=chunk_bytes
    )


def rank_relabelings(
    centred: Floating,
    first: int,
    *,
    constant: float,
    mean: float,
    n_permutations: int,
    rng: np.random.Generator,
    chunk_bytes: int = CHUNK_BYTES,
) -> Ranking:
    """Rank the statistic ``constant * w' A w`` of the labeling that marks the ``first`` rows among its relabelings.

    ``mean`` is that of the matrix before it was centred, for the tie tolerance.
    """
    size = len(centred)
    exhaustive = all_fit(size, first, n_permutations)
    others = [all_labels(size, first)[1:]] if exhaustive else draw_in_chunks(size, first, n_permutations, rng, chunk_bytes)
    chunks = chain([observed(size, first)[None]], others)
    values = constant * np.concatenate([quadratic_forms(centred, chunk.astype(np.float64)) for chunk in chunks])
    return Ranking.of(values, tolerance=constant * tie_tolerance(centred, mean), exhaustive=exhaustive)


def tie_tolerance(centred: Floating, mean: float) -> float:
    """Return the difference of two quadratic forms that rounding alone can make.

    Notes
    -----
    Two parts: of the sums (eps times what was summed before centring), and of the kernel values themselves, 1e-9 of the
    form's spread over relabelings, which is of the order of |K~|_F. A tie that is none then happens once in 1e9.
    """
    flat = centred.ravel()
    spread = math.sqrt(float(flat @ flat))
    return 1e-9 * spread + 8 * float(np.finfo(np.float64).eps) * abs(mean) * centred.size


def quadratic_forms(centred: Floating, W: Floating) -> Array:
    """Return w' A w for each row w of ``W``, using only the lower triangle of the symmetric matrix.

    Each panel of columns from the diagonal down is one product, what lies below the diagonal block counted twice; ``W`` is taken
    some rows at a time, so that what was multiplied is summed while it is still in the cache.
    """
    size = len(centred)
    total = np.zeros(len(W))
    edges = np.linspace(0, size, min(PANELS, max(1, size // PANEL_ROWS)) + 1).astype(int)
    for start, stop in pairwise(edges):
        panel = centred[start:, start:stop].copy()
        panel[stop - start :] *= 2
        for first in range(0, len(W), BLOCK_ROWS):
            rows = W[first : first + BLOCK_ROWS]
            total[first : first + BLOCK_ROWS] += np.einsum("bi,bi->b", rows[:, start:stop], rows[:, start:] @ panel)
    return total
