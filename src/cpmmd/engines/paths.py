"""Paths: the statistic of every member of a class, bandwidth by spectral parameter, for one set of relabelings.

Two engines. Over pairs of rows: distances are computed once for each geometry, kernels of neighbouring bandwidths by squaring
(the grid's ratio is sqrt(2)); exact, and quadratic in the rows. Over landmarks (:mod:`cpmmd.engines.landmarks`): what
spectral parameters need, and linear in the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.draws.layout import Layout
from cpmmd.engines.directions import Directions
from cpmmd.engines.memory import TILE_ROWS, plan_tiles
from cpmmd.engines.tiles import tile_statistics, tile_sums
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.scaled import ScaledKernel, ScaleFamily
from cpmmd.kernels.tilers import Tiler, path_tiler
from cpmmd.statistics.forms import form_of

MEDIAN_ROWS = 1000  # rows that a class's median distance is taken over
GRID_RATIO = np.sqrt(2.0)
LARGEST_SHARE = 0.25  # of the pool: no bandwidth is asked to see more rows than that
PLAIN = float("inf")  # the spectral parameter of the squared MMD


@dataclass(frozen=True, eq=False)
class Path:
    """One class under all relabelings: member j has ``bandwidths[j]`` and ``gammas[j]``, the observed labeling is at b = 0.

    Bandwidths so narrow that rows have too few effective neighbours on average are left out.
    """

    family: ScaleFamily
    bandwidths: Array
    mmd2: Array
    gammas: Array
    directions: dict[float, Directions] = field(default_factory=dict)  # by bandwidth
    landmarks: Array | None = None

    @classmethod
    def plain(cls, family: ScaleFamily, bandwidths: Array, mmd2: Array) -> Path:
        """Return a path of bandwidths alone."""
        return cls(family, bandwidths, mmd2, np.full(len(bandwidths), PLAIN))

    def kernel(self, position: int) -> Kernel:
        """Return the kernel of one member."""
        bandwidth, gamma = float(self.bandwidths[position]), float(self.gammas[position])
        inner = ScaledKernel(self.family, bandwidth)
        if gamma == PLAIN or self.landmarks is None:
            return inner
        return self.directions[bandwidth].kernel(inner, gamma, self.landmarks)


@dataclass(frozen=True, eq=False)
class Grid:
    """What is searched of one family."""

    family: ScaleFamily
    multiples: Array  # bandwidths in units of the median distance, widest first, a factor sqrt(2) apart
    fewest_neighbours: float = 0.0  # what each bandwidth must have
    stride: int = 1  # every how many bandwidths one counts
    gammas: tuple[float, ...] = ()  # spectral parameters; none for the squared MMD

    def needed(self, rows: int) -> float:
        """Return the effective neighbours a bandwidth must have in a pool of so many rows."""
        return min(self.fewest_neighbours, LARGEST_SHARE * rows)

    def enough(self, neighbours: Array, rows: int) -> int:
        """Return how many of its bandwidths, widest first, have enough neighbours: one at least.

        A row's effective neighbours are the sum of its kernel values with the others. Where there are few on average, what is
        left is the noise of some close pairs, and each such bandwidth is one more lottery ticket for every relabeling.
        The sum over the pool does not look at labels, so the choice is symmetric.
        """
        return max(1, int(np.count_nonzero(neighbours >= self.needed(rows))))  # falls with the bandwidth


def bandwidth_multiples(narrowest: float, widest: float) -> Array:
    """Return the grid in units of the median distance, widest first."""
    steps = round(np.log(widest / narrowest) / np.log(GRID_RATIO))
    return np.asarray(widest * GRID_RATIO ** -np.arange(steps + 1))


def geometry_paths(
    load: Callable[[slice], Array],
    grids: Sequence[Grid],
    units: Sequence[float],
    layout: Layout,
    sample: Array,
    memory_limit: int,
) -> list[Path]:
    """Return the paths of families that share one geometry, over pairs of rows; spectral parameters are not for this engine.

    ``load`` gives a slice of the rows in the order of the layout, ``units`` the median distance of each family, ``sample`` some
    rows, chosen without looking at labels, which tell where the middle of the pool is.
    """
    families = [grid.family for grid in grids]
    bandwidths = [unit * grid.multiples for grid, unit in zip(grids, units, strict=True)]
    copies = max(getattr(family, "degree", 1) for family in families)
    sums = pair_sums(load, path_tiler(families, bandwidths, sample), layout, sample.shape[1], memory_limit, copies)
    edges = np.cumsum([0, *map(len, bandwidths)])
    return [
        _path(grid, some[:: grid.stride], sums[start : stop : grid.stride], layout)
        for grid, some, (start, stop) in zip(grids, bandwidths, pairwise(edges), strict=True)
    ]


def pair_sums(
    load: Callable[[slice], Array], tiler: Tiler, layout: Layout, width: int, memory_limit: int, copies: int = 1
) -> Array:
    """Return the sums of kernels over pairs of units, in tiles of one size whatever the memory: scores must not depend on it."""
    rows = min(TILE_ROWS, len(layout.rows))
    plan = plan_tiles(
        memory_limit, width=width, n_kernels=tiler.n_kernels, bins=layout.count, tile_rows=rows, fewest=rows, copies=copies
    )
    return tile_sums(load, tiler, layout, plan)


def _path(grid: Grid, bandwidths: Array, sums: Array, layout: Layout) -> Path:
    """Return the path of one family from its sums over units, without the bandwidths that see too few."""
    rows, own = len(layout.rows), 0.0 if form_of(layout).unbiased else 1.0  # a design's sums have each row with itself
    count = grid.enough(sums.sum(axis=(1, 2)) / rows - own, rows)
    values = np.array([tile_statistics(matrix, layout)[0] for matrix in sums[:count]])
    return Path.plain(grid.family, bandwidths[:count], values)
