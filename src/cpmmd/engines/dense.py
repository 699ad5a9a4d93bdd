"""Kernel matrices in memory: one in double precision, or many in single precision under one set of relabelings.

Where kernels are many, the matrices that meet the relabelings are single precision, which halves the cost of the products. After
centring, rounding is about 1e-6 of a statistic's spread over relabelings, and more where nearly all rows are equal and centring
leaves little else; values closer than the tolerance (a few times that) count as ties, against rejection, so ranks are safe: an
exact tie of discrete data stays one, and a difference that is none is declared a tie with probability of about 1e-5.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import replace

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Array, Floating
from cpmmd.draws.labels import CHUNK_BYTES, Relabelings
from cpmmd.draws.layout import Layout, sum_pairs
from cpmmd.evidence import Ranking, rank
from cpmmd.statistics.forms import form_of, quadratic_forms

Single = npt.NDArray[np.float32]
ROWS = 128  # rows of a kernel matrix evaluated at a time
ROUNDING = 2.0**-22  # of sums of single-precision values; of kernels that differ by less nothing is known
TIE = 8e-6  # tolerance in units of |K~|_F, the scale of the quadratic form's spread


def rank_matrix(K: Array, layout: Layout, *, overwrite: bool = False) -> Ranking:
    """Rank the squared MMD of a kernel matrix, rows in the order of the layout; ``overwrite`` uses it as working memory."""
    seen = K if overwrite else K.copy()
    if not form_of(layout).sees_diagonal:  # before the mean: beside ones, values of a sharp kernel would count as rounding
        np.fill_diagonal(seen, 0.0)
    return rank_sums(sum_pairs(seen, layout.starts), layout, mean=float(seen.mean()))


def rank_sums(sums: Floating, layout: Layout, *, mean: float) -> Ranking:
    """Rank the squared MMD of sums over pairs of units, which are overwritten; ``mean`` is that of what was summed.

    Two values are equal up to what rounding can make of their difference: eps times what was summed before centring, and of the
    kernel values themselves 1e-9 of the form's spread over relabelings, which is of the order of |K~|_F. A tie that is none then
    happens once in 1e9.
    """
    form = form_of(layout)
    centred = form.centre(sums)
    flat = centred.matrix.ravel()
    close = 1e-9 * math.sqrt(float(flat @ flat)) + 8 * float(np.finfo(np.float64).eps) * abs(mean) * flat.size
    return rank(replace(centred, tolerance=form.centred_scale * close), layout.labels)


def pooled_statistics(
    distances: Array, values: Callable[[Array], Array], layout: Layout, nbytes: int = CHUNK_BYTES
) -> tuple[Array, float, float, float]:
    """Return the squared MMD under every labeling, its tie tolerance, the observed one as exactly as it can be had, and |K|_F^2.

    ``distances`` are those of the rows in the order of the layout, ``values`` a kernel of them that is 1 at distance 0. The
    observed labeling is ranked in the same precision as the others.
    """
    form = form_of(layout)
    matrix, mmd2, squares = pooled_matrix(distances, layout.m, values)
    if not form.unbiased:
        np.fill_diagonal(matrix, 1.0)  # means of strata have all pairs
    sums = sum_pairs(matrix, layout.starts)
    rounding = form.scale * (ROUNDING * frobenius(sums))
    centred = form.centre(sums)
    found = centred.values(layout.labels, nbytes)
    tolerance = max(rounding, form.centred_scale * (TIE * frobenius(centred.matrix)))
    return found, tolerance, mmd2 if form.unbiased else float(found[0]), squares


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


def signed_statistics(
    distances: Array, values: Callable[[Array], Array], signs: Relabelings, nbytes: int = CHUNK_BYTES
) -> tuple[Array, float, float]:
    """Return the one-sample U-statistic of the pairs (x_i, y_i) under every sign, its tie tolerance, the observed one exactly."""
    n = signs.size
    H, total = paired_matrix(distances, n, values)
    scale = 1 / (n * (n - 1))
    found = np.concatenate([quadratic_forms(H, block) for block in signs.blocks(np.float32, nbytes)])
    return scale * found, scale * TIE * frobenius(H), scale * total


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


def frobenius(matrix: Floating) -> float:
    """Return |A|_F, summed in blocks."""
    return float(np.sqrt(sum(float(np.vdot(row, row)) for row in matrix)))
