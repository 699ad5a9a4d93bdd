"""Data sets drawn from a model, and what is summed over the rows of each: means of kernels with landmarks, and moments.

Landmarks are rows of the model, drawn once. For the mean f of the kernel's features over n rows, made white by the landmarks'
own kernel matrix, |f|^2 is KSD^2 (of a Stein kernel) or the squared MMD to the model (of a base kernel) as landmarks see it.
Directions of it are divided by their variances under the model,

    T_gamma = n sum_k (1 + gamma) l_1 / (l_k + gamma l_1) f_k^2,

as in ``directions``. Nothing looks at the data alone, so a data set is exchangeable with those simulated.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cpmmd.core.arrays import Array
from cpmmd.core.parallel import spread
from cpmmd.core.progress import report
from cpmmd.engines.directions import LEAST, RIDGE, whitening
from cpmmd.statistics.stein import PairKernel, Pairs, Scored

AT_ONCE = 16  # data sets drawn before their sums are made: the sequence of draws does not depend on threads
TILE_ROWS = 2048


@dataclass(frozen=True, eq=False)
class LandmarkKernel:
    """What landmarks see of one kernel."""

    kernel: PairKernel
    variances: Array  # of the directions under the model
    projection: Array  # from k(x, landmarks), centred, to features in these directions

    @classmethod
    def of(cls, kernel: PairKernel, among: Pairs, seen: Pairs | None) -> LandmarkKernel:
        """Return the directions of a kernel, from the pairs of landmarks, and of rows of the model with them.

        Without the latter variances are not looked for, and there is no T but that of gamma = infinity.
        """
        white = whitening(kernel.of(among), RIDGE[np.dtype(np.float64)])
        if seen is None:
            return cls(kernel, np.ones(white.shape[1]), white)
        features = kernel.of(seen) @ white
        features -= features.mean(axis=0)
        variances, vectors = linalg.eigh(features.T @ features / len(features), driver="evd", check_finite=False)
        kept = variances > LEAST * variances[-1]
        return cls(kernel, variances[kept], white @ vectors[:, kept])

    def statistics(self, means: Array, rows: int, gammas: Sequence[float]) -> Array:
        """Return T of every gamma (rows) for every data set (columns), given the means of k(x, landmarks).

        They are centred by their mean over all data sets, the observed one among them.
        """
        squares = rows * np.square((means - means.mean(axis=0)) @ self.projection)
        return np.array([squares @ self.weights(gamma) for gamma in gammas])

    def weights(self, gamma: float) -> Array:
        """Return what each direction is multiplied by: 1 for the largest."""
        largest = float(self.variances[-1])
        if np.isinf(gamma):
            return np.ones(len(self.variances))
        return np.asarray((1 + gamma) * largest / (self.variances + gamma * largest))


def landmark_means(rows: Scored, landmarks: Scored, kernels: Sequence[PairKernel]) -> Array:
    """Return the mean of k(x, landmarks) over the rows, for every kernel, some rows at a time."""
    total = np.zeros((len(kernels), len(landmarks)))
    for start in range(0, len(rows), TILE_ROWS):
        pairs = Pairs.of(rows.take(slice(start, start + TILE_ROWS)), landmarks)
        for of_kernel, kernel in zip(total, kernels, strict=True):
            of_kernel += kernel.of(pairs).sum(axis=0)
    return total / len(rows)


def summarise_all(draw: Callable[[], Array], summarise: Callable[[Array], Array], count: int) -> Array:
    """Return what is summed of ``count`` data sets (rows), drawn one after the other, summed on threads."""
    found: list[Array] = []
    while len(found) < count:
        drawn = [draw() for _ in range(min(AT_ONCE, count - len(found)))]
        found += spread(_apply, drawn, summarise)
        report("data sets", len(found), count)
    return np.array(found)


def _apply(rows: Array, summarise: Callable[[Array], Array]) -> Array:
    return summarise(rows)
