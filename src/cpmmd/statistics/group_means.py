"""The studentised distance of group means: each group is one point, and both samples' covariances are estimated.

With M the kernel between mean embeddings of groups, a and b groups of the samples and S = S_x / a + S_y / b the covariance of the
difference of their means, the statistic is (D - tr S) / sqrt(2 |S|^2), D the squared distance of the means. Under the null
hypothesis it has mean 0 and variance about 1 whatever the sizes of groups, which is what permutation tests of statistics that
are asymptotically pivotal need (Chung and Romano 2013).
"""

from __future__ import annotations

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.draws.labels import Relabelings

LEAST = 1e-12  # mean square distance of group means, of kernels that are at most 1: below it all are equal
FLOOR = 1e-9  # of that, added to the standard deviation: samples may have no variance


def studentised_distances(M: Array, draws: Relabelings) -> Array:
    """Return the statistic under every labeling of groups, given the kernel between their mean embeddings."""
    means = M.mean(axis=0)
    M = M - means - (means[:, None] - means.mean())
    square, own = M * M, M.diagonal()
    if own.mean() <= LEAST:
        return np.zeros(len(draws))
    return np.concatenate([_of_block(M, square, own, block) for block in draws.blocks()])


def _of_block(M: Array, square: Array, own: Array, x: Array) -> Array:
    y = 1 - x
    a, b = x[0].sum(), y[0].sum()
    to_x, to_y = x @ M, y @ M
    xx, xy, yy = (to_x * x).sum(axis=1), (to_x * y).sum(axis=1), (to_y * y).sum(axis=1)
    distance = xx / a**2 + yy / b**2 - 2 * xy / (a * b)
    trace = (x @ own - xx / a) / (a * (a - 1)) + (y @ own - yy / b) / (b * (b - 1))
    # Squared norms of the kernel matrices of the samples, centred: |S_x|^2, |S_y|^2 and <S_x, S_y> but for constants.
    norm_x = ((x @ square) * x).sum(axis=1) - 2 / a * (to_x**2 * x).sum(axis=1) + (xx / a) ** 2
    norm_y = ((y @ square) * y).sum(axis=1) - 2 / b * (to_y**2 * y).sum(axis=1) + (yy / b) ** 2
    across = ((x @ square) * y).sum(axis=1) - (to_y**2 * x).sum(axis=1) / b - (to_x**2 * y).sum(axis=1) / a + xy**2 / (a * b)
    scale_x, scale_y = 1 / (a * (a - 1)), 1 / (b * (b - 1))
    variance = scale_x**2 * norm_x + scale_y**2 * norm_y + 2 * scale_x * scale_y * across
    return np.asarray((distance - trace) / (np.sqrt(2 * np.maximum(variance, 0.0)) + FLOOR * own.mean()))
