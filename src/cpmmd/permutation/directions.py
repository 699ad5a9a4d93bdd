"""A kernel in the principal directions of the pool, and its statistics for every spectral parameter and relabeling.

The squared MMD weighs a direction of feature space by its variance in the pool, so that a difference in a direction of small
variance is drowned. Dividing by the spectrum (Hagrass, Sriperumbudur, Li 2024) lets it speak: with variances l_1 >= l_2 >= ...,

    T_gamma(w) = sum_k (1 + gamma) l_1 / (l_k + gamma l_1) * MMD2_u of direction k alone,

from the squared MMD (gamma = infinity) to a kernel Hotelling test (gamma = 0). Directions and variances look at the pooled rows
alone. So do landmarks: with L rows of the pool, features are k(x, landmarks) made white by their own kernel matrix, sums of
features over bins are sums of k(x, landmarks), and one pass over the rows is all that depends on their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cpmmd.core.arrays import Array, Floating
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.regularised import RegularisedKernel
from cpmmd.permutation import mmd
from cpmmd.permutation.binned import Bins
from cpmmd.permutation.contrasts import Contrast, sum_rows
from cpmmd.permutation.labels import Relabelings
from cpmmd.permutation.ranking import without_rounding

# Added to the diagonal of the landmarks' kernel matrix, in units of its mean: what rounding leaves of the smallest eigenvalues.
RIDGE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}
SCATTER_ROWS = 1024  # taken at once
ROUNDING = 1e-7  # of what is taken off a statistic: where relabelings differ by no more, they do not differ
LEAST = 1e-12  # of the largest variance: below it a direction is rounding


@dataclass(frozen=True, eq=False)
class Sketch:
    """What landmarks see of one kernel.

    Attributes
    ----------
    among
        The kernel of landmarks with landmarks, in double precision.
    sums
        k(x, landmarks) summed over the rows of each bin.
    some
        k(x, landmarks) of rows that the variances are taken over, chosen without looking at labels.
    """

    among: Array
    sums: Array
    some: Floating


@dataclass(frozen=True, eq=False)
class Directions:
    """Features in some directions, summed over bins and centred, with the variance of each direction.

    Attributes
    ----------
    sums
        Bins x directions; every column adds up to zero.
    variances
        Of the directions, in any unit. All equal where directions were not looked for: then every gamma gives the squared MMD.
    offset, projection
        What turns k(x, landmarks) into the features.
    """

    sums: Array
    variances: Array
    offset: Array
    projection: Array

    def statistics(self, bins: Bins, labels: Relabelings, gammas: Sequence[float]) -> Array:
        """Return the statistic of every gamma (rows) under every labeling (columns).

        Pairs of rows in one bin never change sides and are left out; where bins are rows this is the unbiased squared MMD of the
        weighted directions.
        """
        if bins.contrast is not None:
            return self._contrasted(bins.contrast, labels, gammas)
        first, second = bins.first, bins.count - bins.first
        within = 1 / (first * (first - 1)), 1 / (second * (second - 1))
        weights = np.array([self.weights(gamma) for gamma in gammas]).T / bins.size**2
        squares = self.sums * self.sums
        constant = within[1] * (squares.sum(axis=0) @ weights)
        columns = []
        for block in labels.blocks():
            terms = np.square(block @ self.sums)
            terms *= mmd.quadratic_constant(first, second)
            if first != second:
                terms -= (within[0] - within[1]) * (block @ squares)
            columns.append((terms @ weights - constant).T)
        return without_rounding(np.concatenate(columns, axis=1), ROUNDING * constant[:, None])

    def _contrasted(self, contrast: Contrast, labels: Relabelings, gammas: Sequence[float]) -> Array:
        """Return the same for the units of a design."""
        weights = np.array([self.weights(gamma) for gamma in gammas]).T
        sums = contrast.differences(self.sums) if contrast.paired else self.sums
        within = np.square(sums) @ weights
        columns, largest = [], np.zeros((len(gammas), 1))
        for block in labels.blocks():
            signed = contrast.signs(block) if contrast.paired else contrast.weights(block)
            terms = np.square(signed @ sums) @ weights
            own = np.square(signed, out=signed) @ within
            np.maximum(largest, own.max(axis=0)[:, None], out=largest)
            columns.append((terms - own).T)
        return without_rounding(np.concatenate(columns, axis=1), ROUNDING * largest)

    def weights(self, gamma: float) -> Array:
        """Return what each direction's share of the squared MMD is multiplied by: 1 for the largest."""
        largest = float(self.variances.max())
        if np.isinf(gamma):
            return np.ones(len(self.variances))
        return np.asarray((1 + gamma) * largest / (self.variances + gamma * largest))

    def kernel(self, inner: Kernel, gamma: float, landmarks: Array) -> RegularisedKernel:
        """Return the kernel whose squared MMD the statistic is."""
        projection = np.ascontiguousarray(self.projection * np.sqrt(self.weights(gamma)))  # as in files: products round alike
        return RegularisedKernel(inner, gamma, landmarks, self.offset, projection)


def whole_pool_directions(K: Array, bins: Bins) -> Directions:
    """Return the directions of a pool whose rows are all landmarks, in the order of the bins.

    With a design rows are centred in their strata: what those differ in is not what a relabeling can move.
    """
    offset = K.mean(axis=0)
    if bins.contrast is None:
        centred = K - offset - (offset[:, None] - offset.mean())
    else:
        centred = bins.contrast.centre_rows(bins.contrast.centre_rows(K).T)
    variances, vectors = linalg.eigh(centred, driver="evd", check_finite=False, overwrite_a=True)
    kept = variances > LEAST * max(float(variances[-1]), 0.0)
    if not kept.any():
        return _no_directions(np.empty((bins.count, 1)), offset)
    variances, vectors = variances[kept], vectors[:, kept]
    vectors = vectors - vectors.mean(axis=0)  # zero but for rounding, which the projection would divide by a small root
    roots = np.sqrt(variances)
    sums = vectors * roots
    if bins.contrast is not None:
        sums = bins.contrast.centre_features(np.asarray(sum_rows(sums, bins.starts[:-1]), np.float64))
    return Directions(sums, variances, offset, vectors / roots)


def landmark_directions(sketch: Sketch, bins: Bins, *, principal: bool = True) -> Directions:
    """Return the directions that landmarks show; not ``principal`` where the squared MMD alone is asked for."""
    offset = sketch.sums.sum(axis=0) / len(bins.order)
    projection = whitening(sketch.among, RIDGE[sketch.some.dtype])
    variances = np.ones(projection.shape[1])
    if principal:
        variances, vectors = linalg.eigh(_scatter(sketch.some, projection), driver="evd", check_finite=False, overwrite_a=True)
        kept = variances > LEAST * max(float(variances[-1]), 0.0)
        if not kept.any():
            return _no_directions(sketch.sums, offset)
        variances, projection = variances[kept], projection @ vectors[:, kept]
    contrast = bins.contrast
    sums = (sketch.sums - bins.size * offset if contrast is None else contrast.centre_features(sketch.sums)) @ projection
    return Directions(sums, variances, offset, projection)


def whitening(among: Array, ridge: float) -> Array:
    """Return P with P P' the inverse of the landmarks' kernel matrix and its ridge, in units of the mean diagonal.

    By a Cholesky factor; by the eigenvectors of positive eigenvalues where rounding (of distances between rows very far out) or
    a kernel that is not positive definite leaves negative ones.
    """
    size, unit = len(among), float(np.abs(np.diag(among)).mean())
    try:
        root = linalg.cholesky(among + ridge * unit * np.eye(size), lower=True, check_finite=False, overwrite_a=True)
    except linalg.LinAlgError:
        values, vectors = linalg.eigh(among, driver="evd", check_finite=False)
        kept = values > ridge * max(unit, float(np.abs(values).max()) / size)
        return np.asarray(vectors[:, kept] / np.sqrt(values[kept])) if kept.any() else np.zeros((size, 1))
    return np.asarray(linalg.solve_triangular(root, np.eye(size), lower=True, trans="T", check_finite=False))


def _scatter(some: Floating, projection: Array) -> Array:
    """Return the sum of squares and products of centred features, some rows at a time."""
    mean, total = some.mean(axis=0, dtype=np.float64), np.zeros((projection.shape[1],) * 2)
    for start in range(0, len(some), SCATTER_ROWS):
        white = (some[start : start + SCATTER_ROWS] - mean) @ projection
        total += white.T @ white
    return total


def _no_directions(sums: Array, offset: Array) -> Directions:
    """Return what a kernel that tells no two rows apart shows: nothing."""
    return Directions(np.zeros((len(sums), 1)), np.ones(1), offset, np.zeros((len(offset), 1)))
