"""Bandwidth paths under relabelings: MMD2 at every bandwidth of every class, for one set of binned relabelings.

Distances are computed once for each geometry, kernels of neighbouring bandwidths by squaring (the grid's ratio is sqrt(2)), and
no matrix larger than a tile or the bins is ever held.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.kernels.tilers import path_tiler
from cpmmd.permutation.binned import Bins, bin_sums, binned_statistics
from cpmmd.permutation.labels import Relabelings
from cpmmd.permutation.memory import plan_tiles

MEDIAN_ROWS = 1000  # rows that a class's median distance is taken over
GRID_RATIO = np.sqrt(2.0)
LARGEST_SHARE = 0.25  # of the pool: no bandwidth is asked to see more rows than that
# In larger pools bandwidths that a sample shows to be hopeless (a tenth of the neighbours) are not computed in the first place.
TRIMMED_ROWS = 4096
HOPELESS = 0.1


@dataclass(frozen=True, eq=False)
class Path:
    """One class under all relabelings: ``mmd2[j, b]`` at bandwidth ``bandwidths[j]``, the observed labeling at b = 0.

    Bandwidths so narrow that rows have too few effective neighbours on average are left out.
    """

    family: ScaleFamily
    bandwidths: Array
    mmd2: Array


@dataclass(frozen=True, eq=False)
class Grid:
    """The bandwidths of one family in units of its median distance, widest first, and the neighbours each must have."""

    family: ScaleFamily
    multiples: Array
    fewest_neighbours: float

    def needed(self, rows: int) -> float:
        """Return the effective neighbours a bandwidth must have in a pool of so many rows."""
        return min(self.fewest_neighbours, LARGEST_SHARE * rows)


def bandwidth_multiples(narrowest: float, widest: float) -> Array:
    """Return the grid in units of the median distance, widest first."""
    steps = round(np.log(widest / narrowest) / np.log(GRID_RATIO))
    return np.asarray(widest * GRID_RATIO ** -np.arange(steps + 1))


def geometry_paths(
    load: Callable[[slice], Array],
    grids: Sequence[Grid],
    bins: Bins,
    labels: Relabelings,
    sample: Array,
    memory_limit: int,
) -> list[Path]:
    """Return the paths of families that share one geometry.

    Parameters
    ----------
    load
        Gives a slice of the pool's rows in the order of the bins.
    grids
        The bandwidths of each family, a factor sqrt(2) apart.
    labels
        Of the bins, the observed one first.
    sample
        Some rows of the pool, chosen without looking at labels, for the median distance.
    """
    families = [grid.family for grid in grids]
    bandwidths = [grid.family.median_bandwidth(sample) * grid.multiples for grid in grids]
    if len(bins.order) > TRIMMED_ROWS:
        bandwidths = [_trim(grid, some, sample, len(bins.order)) for grid, some in zip(grids, bandwidths, strict=True)]
    tiler = path_tiler(families, bandwidths, sample)
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
    edges = np.cumsum([0, *map(len, bandwidths)])
    return [
        _path(grid, some, sums[start:stop], bins, labels)
        for grid, some, (start, stop) in zip(grids, bandwidths, pairwise(edges), strict=True)
    ]


def _path(grid: Grid, bandwidths: Array, sums: Array, bins: Bins, labels: Relabelings) -> Path:
    """Return the path of one family from its bin sums, without the bandwidths that see too few.

    A row's effective neighbours are the sum of its kernel values with the others. Where there are few on average, what is left
    is the noise of some close pairs, and each such bandwidth is one more lottery ticket for every relabeling.
    The sum over the pool does not look at labels, so the choice is symmetric.
    """
    rows = bins.count * bins.size
    neighbours = sums.sum(axis=(1, 2)) / rows
    count = max(1, int(np.count_nonzero(neighbours >= grid.needed(rows))))  # falls with the bandwidth
    values = np.array([binned_statistics(matrix, bins, labels) for matrix in sums[:count]])
    return Path(grid.family, bandwidths[:count], values)


def _trim(grid: Grid, bandwidths: Array, sample: Array, rows: int) -> Array:
    """Return the bandwidths that may have neighbours in a pool of so many rows, judged by a sample of it."""
    exponents, base = grid.family.exponents(sample), grid.family.base_kernel
    pairs = exponents[np.triu_indices(len(exponents), 1)]
    least = HOPELESS * grid.needed(rows)
    kept = [b for b in bandwidths if rows * float(base.of_exponent(pairs, b).mean()) >= least]
    return np.array(kept or bandwidths[:1])
