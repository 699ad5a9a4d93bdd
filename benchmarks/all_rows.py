"""``cp-full`` with every row as a landmark and no spectrum taken: what its landmarks are compared with at 4,000 rows.

Of the statistic's direction weights only the products of bins are needed, and those are (1 + gamma) l_1 B' K (K + gamma l_1)^-1 B
with the centred kernel matrix K and the bins' indicator B: one Cholesky factor for each kernel and gamma.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np
from scipy import linalg
from scipy.sparse.linalg import eigsh

from cpmmd import FullSampleTest
from cpmmd.engines.directions import Directions
from cpmmd.engines.members import UNREGULARISED, KernelMembers, View
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.procedures.classes import CompetingClass, KernelClass
from cpmmd.procedures.full_sample import Views

SINGLE_FROM = 1e-4  # gammas as large as this leave single precision six digits


class AllRows(FullSampleTest):
    """The test without landmarks: spectral members from the kernel matrix of all rows."""

    def kernel_members(self, classes: Sequence[CompetingClass], views: Views) -> Iterator[tuple[KernelClass, KernelMembers]]:
        """Yield every class with its members, the spectral ones anew."""
        for searched, found in super().kernel_members(classes, views):
            yield searched, spectral_members(views[searched.scale], found) if searched.gammas else found


def spectral_members(view: View, found: KernelMembers) -> KernelMembers:
    """Return members with the statistics of all rows in place of those that landmarks gave."""
    values = np.empty_like(found.mmd2)
    for bandwidth in np.unique(found.bandwidths):
        K = ScaledKernel(found.family, float(bandwidth)).gram(view.load(slice(0, view.rows)))
        mean = K.mean(axis=0)
        K -= mean + (mean[:, None] - mean.mean())
        largest = float(eigsh(K, k=1, return_eigenvectors=False, v0=np.linspace(-1, 1, len(K)))[0])
        for member in np.flatnonzero(found.bandwidths == bandwidth):
            sums = bin_features(K, largest, float(found.gammas[member]), view.layout.size)
            flat = Directions(sums, np.ones(sums.shape[1]), mean, sums)
            values[member] = flat.statistics(view.layout, [UNREGULARISED])[0]
    return replace(found, mmd2=values, directions={}, landmarks=None)


def bin_features(K: np.ndarray, largest: float, gamma: float, size: int) -> np.ndarray:
    """Return features of bins of ``size`` rows whose products are those of the regularised kernel."""
    kind = np.float32 if gamma >= SINGLE_FROM else np.float64
    shifted, bins = K.astype(kind, order="F"), np.repeat(np.eye(len(K) // size, dtype=kind), size, axis=0)
    shifted[np.diag_indices(len(K))] += kind(gamma * largest)
    factor = linalg.cho_factor(shifted, lower=True, overwrite_a=True, check_finite=False)
    inverse = linalg.cho_solve(factor, bins, check_finite=False).astype(np.float64)
    products = (1 + gamma) * largest * (size * np.eye(bins.shape[1]) - gamma * largest * (bins.T @ inverse))
    variances, vectors = np.linalg.eigh(products)
    return np.asarray(vectors * np.sqrt(np.maximum(variances, 0)))
