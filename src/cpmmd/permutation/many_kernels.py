"""Statistics of many kernels under one set of relabelings: what MMDAgg, MMD-FUSE and the full-sample test share.

Kernel values are computed in double precision; the matrices that meet the relabelings are single precision, which halves the cost
of the products. After centring, rounding is about 1e-6 of a statistic's spread over relabelings, and more where nearly all rows
are equal and centring leaves little else; values closer than the tolerance (a few times that) count as ties, against rejection,
so ranks are safe: an exact tie of discrete data stays one, and a difference that is none is declared a tie with probability of
about 1e-5.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Array, Floating
from cpmmd.permutation import mmd
from cpmmd.permutation.binned import ROUNDING, Bins
from cpmmd.permutation.contrasts import sums_over_units
from cpmmd.permutation.dense import quadratic_forms
from cpmmd.permutation.labels import CHUNK_BYTES, Relabelings

Single = npt.NDArray[np.float32]
ROWS = 128  # rows of a kernel matrix evaluated at a time
TIE = 8e-6  # tolerance in units of |K~|_F, the scale of the quadratic form's spread


def pooled_matrix(distances: Array, m: int, values: Callable[[Array], Array]) -> tuple[Single, float, float]:
    """Return the zero-diagonal kernel matrix of the pool; in double precision its unbiased squared MMD and sum of squares."""
    matrix = np.empty(distances.shape, dtype=np.float32)
    to_x, to_y, squares = np.empty(len(matrix)), np.empty(len(matrix)), 0.0
    for start in range(0, len(distances), ROWS):
        some = slice(start, min(start + ROWS, len(matrix)))
        block = values(distances[some])
        block[np.arange(len(block)), np.arange(some.start, some.stop)] = 0.0
        to_x[some], to_y[some] = block[:, :m].sum(axis=1), block[:, m:].sum(axis=1)
        squares += float(np.einsum("ij,ij->", block, block))
        matrix[some] = block
    n = len(matrix) - m
    # One row has no pairs; only strata can leave so few, and a design has a statistic of its own.
    within = to_x[:m].sum() / max(1, m * (m - 1)) + to_y[m:].sum() / max(1, n * (n - 1))
    return matrix, float(within - 2 * to_y[:m].sum() / (m * n)), squares


def paired_matrix(distances: Array, n: int, values: Callable[[Array], Array]) -> tuple[Single, float]:
    """Return H_ij = k(x_i,x_j) + k(y_i,y_j) - k(x_i,y_j) - k(x_j,y_i) with zero diagonal, and its sum in double precision."""
    H = np.empty((n, n), dtype=np.float32)
    total = 0.0
    for start in range(0, n, ROWS):
        some = slice(start, min(start + ROWS, n))
        shifted = slice(n + some.start, n + some.stop)
        block = values(distances[some, :n]) + values(distances[shifted, n:])
        block -= values(distances[some, n:]) + values(distances[shifted, :n])
        block[np.arange(len(block)), np.arange(some.start, some.stop)] = 0.0
        total += float(block.sum())
        H[some] = block
    return H, total


def forms(matrix: Single, draws: Relabelings, nbytes: int = CHUNK_BYTES) -> Array:
    """Return w' A w for every labeling w, a block of them at a time."""
    return np.concatenate([quadratic_forms(matrix, block) for block in draws.blocks(np.float32, nbytes)])


def permutation_statistics(
    matrix: Single, labels: Relabelings, m: int, nbytes: int = CHUNK_BYTES, bins: Bins | None = None
) -> tuple[Array, float]:
    """Return the squared MMD under every labeling and the tie tolerance; ``matrix`` is overwritten.

    The observed labeling must be one of them: its statistic is ranked in the same precision as the others. With ``bins``, the
    units of a design, the matrix has their rows in their order.
    """
    if bins is not None and bins.contrast is not None:
        np.fill_diagonal(matrix, 1.0)  # every kernel here is 1 at distance 0, and means of strata have all pairs
        sums = sums_over_units(matrix, bins.starts[:-1])
        rounding = ROUNDING * frobenius(sums)
        centred = bins.contrast.centre(sums)
        close = bins.contrast.centred_scale(labels) * TIE * frobenius(centred.between)
        return centred.statistics(labels, nbytes), max(bins.contrast.scale(labels) * rounding, close)
    rounding = ROUNDING * frobenius(matrix)
    matrix = mmd.u_centre(matrix, overwrite=True)
    constant = mmd.quadratic_constant(m, len(matrix) - m)
    return constant * forms(matrix, labels, nbytes), constant * max(rounding, TIE * frobenius(matrix))


def frobenius(matrix: Floating) -> float:
    """Return |A|_F, summed in blocks."""
    return float(np.sqrt(sum(float(np.vdot(row, row)) for row in matrix)))


def upper_ranks(values: Array, tolerance: float, among: Array | None = None) -> npt.NDArray[np.intp]:
    """Return for each value how many of ``among`` (or of the values themselves) are at least as large, ties included."""
    ordered = np.sort(values if among is None else among)
    return len(ordered) - np.searchsorted(ordered, values - tolerance, side="left")
