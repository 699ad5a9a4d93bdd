"""Bandwidth paths under relabelings: MMD2 at every bandwidth of every class, for one set of binned relabelings.

Distances are computed once for each geometry, kernels of neighbouring bandwidths by squaring (the grid's ratio is sqrt(2)), and
no matrix larger than a tile or the bins is ever held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.kernels.tilers import path_tiler
from cpmmd.permutation.binned import Bins, bin_sums, binned_statistics
from cpmmd.permutation.memory import plan_tiles
from cpmmd.samples import Array

MEDIAN_ROWS = 1000  # rows that a class's median distance is taken over
GRID_RATIO = np.sqrt(2.0)
FEWEST_NEIGHBOURS = 1.0  # effective ones, of a row on average
# In larger pools bandwidths that a sample shows to be hopeless (a tenth of that) are not computed in the first place.
TRIMMED_ROWS = 4096
HOPELESS = 0.1 * FEWEST_NEIGHBOURS


@dataclass(frozen=True, eq=False)
class Path:
    """One class under all relabelings: ``mmd2[j, b]`` at bandwidth ``sigmas[j]``, the observed labeling at b = 0.

    Bandwidths so narrow that rows have fewer than one effective neighbour on average are left out.
    """

    family: ScaleFamily
    sigmas: Array
    mmd2: Array


def bandwidth_multiples(narrowest: float, widest: float) -> Array:
    """Give the grid in units of the median distance, widest first."""
    steps = round(np.log(widest / narrowest) / np.log(GRID_RATIO))
    return np.asarray(widest * GRID_RATIO ** -np.arange(steps + 1))


def geometry_paths(
    load: Callable[[slice], Array],
    families: Sequence[ScaleFamily],
    multiples: Sequence[Array],
    bins: Bins,
    labels: Array,
    sample: Array,
    memory_limit: int,
) -> list[Path]:
    """Give the paths of families that share one geometry.

    Parameters
    ----------
    load
        Gives a slice of the pool's rows in the order of the bins.
    multiples
        The bandwidths of each family in units of its median distance, widest first, a factor sqrt(2) apart.
    labels
        Indicator rows of X over bins, the observed one first.
    sample
        Some rows of the pool, chosen without looking at labels, for the median distance.
    """
    grids = [_median(family, sample) * grid for family, grid in zip(families, multiples, strict=True)]
    if len(bins.order) > TRIMMED_ROWS:
        grids = [_trimmed(family, grid, sample, len(bins.order)) for family, grid in zip(families, grids, strict=True)]
    tiler = path_tiler(families, grids, sample)
    copies = max(getattr(family, "degree", 1) for family in families)
    plan = plan_tiles(
        memory_limit,
        width=sample.shape[1],
        n_kernels=tiler.n_kernels,
        bins=bins.count,
        tile_rows=tiler.tile_rows,
        copies=copies,
    )
    sums = bin_sums(load, tiler, bins, plan)
    edges = np.cumsum([0, *map(len, grids)])
    return [
        _path(family, sigmas, sums[start:stop], bins, labels)
        for family, sigmas, (start, stop) in zip(families, grids, pairwise(edges), strict=True)
    ]


def _path(family: ScaleFamily, sigmas: Array, sums: Array, bins: Bins, labels: Array) -> Path:
    """Give the path of one family from its bin sums, without the bandwidths that see nobody.

    A row's effective neighbours are the sum of its kernel values with the others. Where there is less than one on average, what
    is left is the noise of a few close pairs, and each such bandwidth is one more lottery ticket for every relabeling.
    The sum over the pool does not look at labels, so the choice is symmetric.
    """
    neighbours = sums.sum(axis=(1, 2)) / (bins.count * bins.size)
    count = max(1, int(np.count_nonzero(neighbours >= FEWEST_NEIGHBOURS)))  # falls with the bandwidth
    values = np.array([binned_statistics(matrix, bins, labels) for matrix in sums[:count]])
    return Path(family, sigmas[:count], values)


def _trimmed(family: ScaleFamily, sigmas: Array, sample: Array, rows: int) -> Array:
    """Give the bandwidths that may have neighbours in a pool of so many rows, judged by a sample of it."""
    exponents, base = family.exponents(sample), family.base_kernel
    pairs = exponents[np.triu_indices(len(exponents), 1)]
    kept = [sigma for sigma in sigmas if rows * float(base.of_exponent(pairs, sigma).mean()) >= HOPELESS]
    return np.array(kept or sigmas[:1])


def _median(family: ScaleFamily, sample: Array) -> float:
    exponents = family.exponents(sample)
    pairs = exponents[np.triu_indices(len(exponents), 1)]
    positive = pairs[pairs > 0]
    if len(positive) == 0:
        return 1.0
    middle = float(np.median(pairs)) or float(np.median(positive))
    return float(np.sqrt(2 * middle)) if family.base_kernel.power == 2 else middle
