"""Exact permutation p-values from a kernel matrix in memory."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations, pairwise

import numpy as np

from cpmmd import mmd
from cpmmd.mmd import Floating
from cpmmd.samples import Array, Labels, draw_labels

CHUNK_BYTES = 64 * 2**20  # of label columns held at once
PANELS = 4  # at most, of the triangular product
PANEL_ROWS = 48  # at least
BLOCK_ROWS = 512  # relabelings multiplied at once


@dataclass(frozen=True, eq=False)
class PermutationNull:
    """The observed statistic among its relabelings.

    Attributes
    ----------
    statistic, pvalue
        The unbiased squared MMD and its exact p-value.
    null
        The statistic of every relabeling.
    exhaustive
        Whether those are all there are.
    """

    statistic: float
    null: Array = field(repr=False)
    pvalue: float
    exhaustive: bool


def permutation_test(
    K: Array,
    m: int,
    *,
    n_permutations: int,
    rng: np.random.Generator,
    chunk_bytes: int = CHUNK_BYTES,
    overwrite: bool = False,
) -> PermutationNull:
    """Give the permutation p-value of the unbiased squared MMD for one kernel matrix.

    Parameters
    ----------
    K
        Kernel matrix of the pool, X first.
    m
        Number of rows of X.
    n_permutations
        Random relabelings; all C(N, m) of them are used instead where they are fewer.
    chunk_bytes
        Memory for labels; the answer does not depend on it.
    overwrite
        Whether ``K`` may be used as working memory.

    Notes
    -----
    p = (1 + #{T_b >= T_0}) / (B + 1) for random relabelings, #{T_b >= T_0} / C(N, m) for all of them. Values within
    rounding of T_0 count as ties, against rejection.
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
) -> PermutationNull:
    """Give the statistic ``constant * w' A w`` of the labeling that marks the ``first`` rows among its relabelings.

    ``mean`` is that of the matrix before it was centred, for the tie tolerance.
    """
    size = len(centred)
    exhaustive = math.comb(size, first) <= n_permutations
    draws = all_labels(size, first) if exhaustive else random_labels(size, first, n_permutations, rng, chunk_bytes)
    null = constant * np.concatenate([quadratic_forms(centred, chunk.astype(np.float64)) for chunk in draws])
    statistic = float(constant * quadratic_forms(centred, (np.arange(size) < first)[None].astype(np.float64))[0])
    tolerance = constant * tie_tolerance(centred, mean)
    return PermutationNull(statistic, null, rank_pvalue(statistic, null, tolerance, exhaustive=exhaustive), exhaustive)


def rank_pvalue(statistic: float, null: Array, tolerance: float, *, exhaustive: bool) -> float:
    """Give the share of relabelings at least as extreme, the observed one counted once."""
    at_least = int(np.count_nonzero(null >= statistic - tolerance))
    if exhaustive:  # the observed labeling is one of them
        return at_least / len(null)
    return (1 + at_least) / (len(null) + 1)


def tie_tolerance(centred: Floating, mean: float) -> float:
    """Give the difference of two quadratic forms that rounding alone can make.

    Notes
    -----
    Two parts: of the sums (eps times what was summed before centring), and of the kernel values themselves, 1e-9 of the
    form's spread over relabelings, which is of the order of |K~|_F. A tie that is none then happens once in 1e9.
    """
    flat = centred.ravel()
    spread = math.sqrt(float(flat @ flat))
    return 1e-9 * spread + 8 * float(np.finfo(np.float64).eps) * abs(mean) * centred.size


def random_labels(size: int, m: int, count: int, rng: np.random.Generator, chunk_bytes: int) -> Iterator[Labels]:
    """Yield ``count`` relabelings in chunks that fit the memory; the sequence does not depend on the chunks."""
    step = max(1, chunk_bytes // (size * 8))
    for start in range(0, count, step):
        yield draw_labels(size, m, min(step, count - start), rng)


def all_labels(size: int, m: int) -> Iterator[Labels]:
    """Yield every relabeling once, the observed one first, as a single chunk."""
    chosen = np.array(list(combinations(range(size), m)))
    labels = np.zeros((len(chosen), size), dtype=bool)
    np.put_along_axis(labels, chosen, True, axis=1)
    yield labels


def quadratic_forms(centred: Floating, W: Floating) -> Array:
    """Give w' A w for each row w of ``W``, using only the lower triangle of the symmetric matrix.

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
