"""The squared MMD, its variance and its witness: pure functions of kernel matrices.

Notation of the paper: samples X (m rows) and Y (n rows), N = m + n, ``K`` the kernel matrix of the pool.

U-centring
----------
The unbiased statistic does not change when f_i + f_j is taken from K_ij off the diagonal. Choosing f so that every row of
the (zero-diagonal) matrix sums to zero leaves one quadratic form for every relabeling w in {0,1}^N,

    MMD2_u(w) = c * w' K~ w,    c = 1/(m(m-1)) + 1/(n(n-1)) + 2/(mn),

which is both the cheapest and the most accurate way to many permutations: what cancels is removed before it can round.
"""

from __future__ import annotations

import numpy as np

from cpmmd.core.arrays import Array, Floating, Labels

CENTRED_ROWS = 32  # at once: what is taken off stays in the cache


def unbiased_mmd2(k_xx: Array, k_yy: Array, k_xy: Array) -> float:
    """Return the unbiased estimate of the squared MMD (eq. mmd-ustat of the paper).

    Examples
    --------
    >>> import numpy as np
    >>> K = np.exp(-np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0))))
    >>> round(unbiased_mmd2(K[:3, :3], K[3:, 3:], K[:3, 3:]), 6)
    0.406098
    """
    m, n = k_xy.shape
    within_x = (k_xx.sum() - np.trace(k_xx)) / (m * (m - 1))
    within_y = (k_yy.sum() - np.trace(k_yy)) / (n * (n - 1))
    return float(within_x + within_y - 2 * k_xy.mean())


def paired_differences(k_xx: Array, k_yy: Array, k_xy: Array) -> Array:
    """Return H_ij = k(x_i,x_j) + k(y_i,y_j) - k(x_i,y_j) - k(x_j,y_i) for m = n."""
    return np.asarray(k_xx + k_yy - k_xy - k_xy.T)


def paired_mmd2(k_xx: Array, k_yy: Array, k_xy: Array) -> float:
    """Return the one-sample U-statistic over the pairs (x_i, y_i), m = n: Liu's and MMDAgg's estimate."""
    H = paired_differences(k_xx, k_yy, k_xy)
    return float((H.sum() - np.trace(H)) / (len(H) * (len(H) - 1)))


def quadratic_constant(m: int, n: int) -> float:
    """Return c with MMD2_u(w) = c w' K~ w for a U-centred kernel matrix."""
    return 1 / (m * (m - 1)) + 1 / (n * (n - 1)) + 2 / (m * n)


def labelled_mmd2(K: Array, labels: Labels) -> Array:
    """Return the unbiased squared MMD of each labeling (rows of ``labels``, true for X) from sums over blocks, K left as it is.

    One product with the labels and a column of ones: cheaper than U-centring where labelings are few.
    """
    W = np.vstack([labels, np.ones((1, labels.shape[1]), bool)]).T.astype(np.float64)
    m = int(np.count_nonzero(labels[0]))
    n = labels.shape[1] - m
    to_x = K @ W
    diagonal = K.diagonal()
    within_x = np.einsum("ib,ib->b", W, to_x)[:-1]
    across = to_x[:, :-1].sum(axis=0) - within_x
    within_y = to_x[:, -1].sum() - within_x - 2 * across
    trace_x = W[:, :-1].T @ diagonal
    return np.asarray(
        (within_x - trace_x) / (m * (m - 1)) + (within_y - diagonal.sum() + trace_x) / (n * (n - 1)) - 2 * across / (m * n)
    )


def u_centre(K: Floating, *, overwrite: bool = False) -> Floating:
    """Return K with zero diagonal and zero row sums, equivalent to K for every unbiased MMD (N >= 3)."""
    size = len(K)
    centred = K if overwrite else K.copy()
    np.fill_diagonal(centred, 0.0)
    rows = centred.sum(axis=1, dtype=np.float64)
    offset = (rows / (size - 2) - rows.sum() / (2 * (size - 1) * (size - 2))).astype(K.dtype)
    for start in range(0, size, CENTRED_ROWS):  # o_i + o_j first, so that the result is as symmetric as K
        centred[start : start + CENTRED_ROWS] -= offset[start : start + CENTRED_ROWS, None] + offset
    np.fill_diagonal(centred, 0.0)
    return centred


def paired_variance(k_xx: Array, k_yy: Array, k_xy: Array) -> float:
    """Return Liu's variance of sqrt(n) MMD2 for m = n, from the pairs (x_i, y_i); before regularisation.

    Notes
    -----
    V = 4 [ n^-3 sum_i (sum_j H_ij)^2 - (n^-2 sum_ij H_ij)^2 ], diagonal included; rounding below zero is cut off.
    """
    means = paired_differences(k_xx, k_yy, k_xy).mean(axis=1)
    return max(4 * float(np.mean(means**2) - np.mean(means) ** 2), 0.0)


def unpaired_variance(k_xx: Array, k_yy: Array, k_xy: Array) -> float:
    """Return the variance of the squared MMD for any m, n, scaled like :func:`paired_variance`.

    Notes
    -----
    The first-order (Hoeffding) variance is 4 z_x/m + 4 z_y/n with z_x the variance over x_i of
    mean_j k(x_i, x_j) - mean_j k(x_i, y_j), and z_y likewise (Bounliphone et al. 2016 for unequal sizes). Times the
    effective size 2mn/(m+n), which is n when m = n, it is on the scale of Liu's V.
    """
    m, n = k_xy.shape
    zeta_x = float(np.var(k_xx.mean(axis=1) - k_xy.mean(axis=1)))
    zeta_y = float(np.var(k_yy.mean(axis=1) - k_xy.mean(axis=0)))
    return float(8 * (n * zeta_x + m * zeta_y) / (m + n))


def variance(k_xx: Array, k_yy: Array, k_xy: Array) -> float:
    """Return the ratio criterion's variance: Liu's for m = n, the unequal-size one otherwise."""
    m, n = k_xy.shape
    return paired_variance(k_xx, k_yy, k_xy) if m == n else unpaired_variance(k_xx, k_yy, k_xy)


def witness(k_rows_x: Array, k_rows_y: Array) -> Array:
    """Return the witness mean_j k(z, x_j) - mean_j k(z, y_j) of each row z: positive where X is denser."""
    return np.asarray(k_rows_x.mean(axis=1) - k_rows_y.mean(axis=1))
