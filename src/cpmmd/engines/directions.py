"""A kernel in the principal directions of the pool, and its statistics for every spectral parameter and relabeling.

The squared MMD weighs a direction of feature space by its variance in the pool, so that a difference in a direction of small
variance is drowned. Dividing by the spectrum (Hagrass, Sriperumbudur, Li 2024) lets it speak: with variances l_1 >= l_2 >= ...,

    T_gamma(w) = sum_k (1 + gamma) l_1 / (l_k + gamma l_1) * MMD2_u of direction k alone,

from the squared MMD (gamma = infinity) to a kernel Hotelling test (gamma = 0). Directions and variances look at the pooled rows
alone. So do landmarks: with L rows of the pool, features are k(x, landmarks) made white by their own kernel matrix, sums of
features over units are sums of k(x, landmarks), and one pass over the rows is all that depends on their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cpmmd.core.arrays import Array, Floating
from cpmmd.draws.layout import Layout
from cpmmd.evidence import without_rounding
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.regularised import RegularisedKernel
from cpmmd.statistics.forms import ROUNDING, form_of

# Added to the diagonal of the landmarks' kernel matrix, in units of its mean: what rounding leaves of the smallest eigenvalues.
RIDGE = {np.dtype(np.float64): 1e-10, np.dtype(np.float32): 1e-6}
SCATTER_ROWS = 1024  # taken at once
LEAST = 1e-12  # of the largest variance: below it a direction is rounding


@dataclass(frozen=True, eq=False)
class Sketch:
    """What landmarks see of one kernel."""

    among: Array  # the kernel of landmarks with landmarks, in double precision
    sums: Array  # k(x, landmarks) summed over the rows of each unit
    some: Floating  # k(x, landmarks) of rows that the variances are taken over, chosen without looking at labels


@dataclass(frozen=True, eq=False)
class Directions:
    """Features in some directions, summed over units and centred, with the variance of each direction."""

    sums: Array  # units x directions; every column adds up to zero
    variances: Array  # in any unit; all equal where directions were not looked for, and every gamma gives the squared MMD
    offset: Array  # this and `projection` turn k(x, landmarks) into the features
    projection: Array

    def statistics(self, layout: Layout, gammas: Sequence[float]) -> Array:
        """Return the statistic of every gamma (rows) under every labeling (columns).

        Pairs of rows in one unit are left out; where units are rows this is the unbiased squared MMD of the weighted directions.
        """
        weights = np.array([self.weights(gamma) for gamma in gammas]).T
        values, taken_off = form_of(layout).of_features(self.sums, weights)
        return without_rounding(values, ROUNDING * taken_off)

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


def whole_pool_directions(K: Array, layout: Layout) -> Directions:
    """Return the directions of a pool whose rows are all landmarks, in the order of the layout.

    With a design rows are centred in their strata: what those differ in is not what a relabeling can move.
    """
    form, offset = form_of(layout), K.mean(axis=0)
    centred = form.centre_pairs(K, offset)
    variances, vectors = linalg.eigh(centred, driver="evd", check_finite=False, overwrite_a=True)
    kept = variances > LEAST * max(float(variances[-1]), 0.0)
    if not kept.any():
        return _no_directions(layout, offset)
    variances, vectors = variances[kept], vectors[:, kept]
    vectors = vectors - vectors.mean(axis=0)  # zero but for rounding, which the projection would divide by a small root
    roots = np.sqrt(variances)
    return Directions(form.sum_centred(vectors * roots), variances, offset, vectors / roots)


def landmark_directions(sketch: Sketch, layout: Layout, *, principal: bool = True) -> Directions:
    """Return the directions that landmarks show; not ``principal`` where the squared MMD alone is asked for."""
    offset = sketch.sums.sum(axis=0) / len(layout.rows)
    projection = whitening(sketch.among, RIDGE[sketch.some.dtype])
    variances = np.ones(projection.shape[1])
    if principal:
        variances, vectors = linalg.eigh(_scatter(sketch.some, projection), driver="evd", check_finite=False, overwrite_a=True)
        kept = variances > LEAST * max(float(variances[-1]), 0.0)
        if not kept.any():
            return _no_directions(layout, offset)
        variances, projection = variances[kept], projection @ vectors[:, kept]
    sums = form_of(layout).centre_features(sketch.sums, offset) @ projection
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


def _no_directions(layout: Layout, offset: Array) -> Directions:
    """Return what a kernel that tells no two rows apart shows: nothing."""
    return Directions(np.zeros((layout.count, 1)), np.ones(1), offset, np.zeros((len(offset), 1)))
