"""Moments of rows that are N(0, I) under a model: of each column, and of all of them together (Mardia 1970)."""

from __future__ import annotations

import numpy as np
from scipy import linalg

from cpmmd.core.arrays import Array


def hermite_means(z: Array) -> Array:
    """Return sqrt(n) times the means of the first four Hermite polynomials of every column (4 x columns).

    Of a column that is N(0, 1) each has mean 0 and variance 1: they see a shift, a scale, skewness and tails, one apart from
    the others.
    """
    squares = z * z
    values = (z, squares - 1, z * (squares - 3), squares * (squares - 6) + 3)
    sizes = (1.0, 2.0, 6.0, 24.0)
    means = [v.mean(axis=0) / np.sqrt(size) for v, size in zip(values, sizes, strict=True)]
    return np.asarray(np.sqrt(len(z)) * np.array(means))


def whiten(rows: Array) -> Array:
    """Return rows with mean zero and the identity as covariance matrix.

    Columns are standardised and then turned by the symmetric inverse root of their correlation matrix, so that each stays as
    near to itself as it can: neither units nor the order of columns matter.
    """
    centred = rows - rows.mean(axis=0)
    z = centred / centred.std(axis=0)
    values, vectors = linalg.eigh(z.T @ z / len(z), driver="evd", check_finite=False)
    return np.asarray(z @ (vectors / np.sqrt(values)) @ vectors.T)


def mardia(z: Array) -> tuple[float, float]:
    """Return Mardia's skewness, n times its squared norm, and kurtosis of white rows.

    Skewness is the mean over pairs of (z_i'z_j)^3: of the tensor of third moments where that is smaller than the pairs.
    """
    n, d = z.shape
    if d * d < n:
        products = (z[:, :, None] * z[:, None, :]).reshape(n, d * d)
        skewness = float(np.square(products.T @ z).sum()) / n
    else:
        inner = z @ z.T
        skewness = float((inner * inner * inner).sum()) / n
    return skewness, float(np.mean(np.square(np.square(z).sum(axis=1))))
