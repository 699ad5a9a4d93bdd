"""The statistic of every member of a class, bandwidth by spectral parameter, for one set of relabelings.

Two engines. Over pairs of rows: distances are computed once for each geometry, kernels of neighbouring bandwidths by squaring
(the grid's ratio is sqrt(2)); exact, and quadratic in the rows. Over landmarks (:mod:`cpmmd.engines.landmarks`): what
spectral parameters need, and linear in the rows.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import pairwise

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.draws.layout import Layout
from cpmmd.engines.directions import Directions, Sketch
from cpmmd.engines.memory import TILE_ROWS, plan_tiles
from cpmmd.engines.tiles import tile_statistics, tile_sums
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.scaled import ScaledKernel, ScaleFamily
from cpmmd.kernels.tilers import Tiler, grid_tiler, tiler_for
from cpmmd.statistics.forms import form_of

PAIR_ROWS = 4096  # of a pool, up to which the squared MMD is taken over all pairs of rows
COVARIANCE_ROWS = 5000  # rows that variances are taken over in larger pools, at most
ROWS_A_LANDMARK = 10  # of those
MEDIAN_ROWS = 1000  # rows that a class's median distance is taken over
GRID_RATIO = np.sqrt(2.0)
LARGEST_SHARE = 0.25  # of the pool: no bandwidth is asked to see more rows than that
UNREGULARISED = float("inf")  # the spectral parameter of the squared MMD


@dataclass(frozen=True, eq=False)
class KernelMembers:
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
    def plain(cls, family: ScaleFamily, bandwidths: Array, mmd2: Array) -> KernelMembers:
        """Return members that differ in their bandwidth alone."""
        return cls(family, bandwidths, mmd2, np.full(len(bandwidths), UNREGULARISED))

    def summed(self) -> KernelMembers:
        """Return one kernel, the sum of all, each divided by its standard deviation; named by the one in the middle."""
        deviation = self.mmd2.std(axis=1, keepdims=True)
        total = (self.mmd2 / np.where(deviation > 0, deviation, 1.0)).sum(axis=0, keepdims=True)
        middle = slice(len(self.bandwidths) // 2, len(self.bandwidths) // 2 + 1)
        return replace(self, bandwidths=self.bandwidths[middle], gammas=self.gammas[middle], mmd2=total)

    def kernel(self, position: int) -> Kernel:
        """Return the kernel of one member."""
        bandwidth, gamma = float(self.bandwidths[position]), float(self.gammas[position])
        inner = ScaledKernel(self.family, bandwidth)
        if gamma == UNREGULARISED or self.landmarks is None:
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

    def usable(self, neighbours: Array, rows: int) -> int:
        """Return how many of its bandwidths, widest first, have enough neighbours: one at least.

        A row's effective neighbours are the sum of its kernel values with the others. Where there are few on average, what is
        left is the noise of some close pairs, and each such bandwidth is one more lottery ticket for every relabeling.
        The sum over the pool does not look at labels, so the choice is symmetric.
        """
        return max(1, int(np.count_nonzero(neighbours >= self.needed(rows))))  # falls with the bandwidth


@dataclass(frozen=True, eq=False)
class View:
    """The pool in one set of coordinates: rows in the order of a layout, and in one that does not look at labels."""

    take: Callable[[Rows], Array]  # gives the prepared matrix of some rows of the pool
    layout: Layout  # what is relabelled, and how
    order: Rows  # rows of the pool in an order that does not look at labels
    memory_limit: int  # in bytes
    count: int  # landmarks
    strata: Rows | None = None  # of the rows of `order`, where a design has some: variances are then taken inside them
    pair_rows: int = PAIR_ROWS  # pools of more rows stream past the landmarks
    covariance_rows: int | None = None  # that variances are taken over in those pools; None is ten a landmark, at most 5000
    chosen: Rows | None = None  # rows of the pool that are landmarks; None for the first ones of `order`
    # of kernels, by family and bandwidth or by itself, where a pass over the rows was made for all of them
    sketches: Mapping[object, Sketch] = field(default_factory=dict)
    _units: dict[ScaleFamily, float] = field(default_factory=dict)

    @property
    def rows(self) -> int:
        """Rows in units."""
        return len(self.layout.rows)

    @property
    def linear(self) -> bool:
        """Whether rows are so many that they stream past the landmarks, and are not held."""
        return self.rows > self.pair_rows

    def load(self, part: slice) -> Array:
        """Return a slice of the rows in the order of the layout."""
        return self.take(self.layout.rows[part])

    @cached_property
    def sample(self) -> Array:
        """Some rows, chosen without looking at labels, for median distances."""
        return self.take(self.order[:MEDIAN_ROWS])

    def unit(self, family: ScaleFamily) -> float:
        """Return the median distance of a family."""
        if family not in self._units:
            self._units[family] = family.median_bandwidth(self.sample)
        return self._units[family]

    @cached_property
    def landmarks(self) -> Array:
        """Rows that kernels are computed through: chosen without looking at labels, or all in the order of the layout."""
        if self.chosen is not None:
            return self.take(self.chosen)
        return self.take(self.order[: self.count] if self.linear or self.count < self.rows else self.layout.rows)

    @cached_property
    def varied(self) -> Array:
        """More rows, chosen without looking at labels, for the variances of a pool that streams past the landmarks."""
        return self.take(self.order[: self.covariance_rows or COVARIANCE_ROWS])

    @property
    def variance_rows(self) -> int:
        """Rows that variances are taken over: all of a pool whose pairs are looked at, otherwise some."""
        usual = min(COVARIANCE_ROWS, ROWS_A_LANDMARK * self.count)
        return min(len(self.order), self.covariance_rows or usual) if self.linear else self.rows


def bandwidth_multiples(narrowest: float, widest: float) -> Array:
    """Return the grid in units of the median distance, widest first."""
    steps = round(np.log(widest / narrowest) / np.log(GRID_RATIO))
    return np.asarray(widest * GRID_RATIO ** -np.arange(steps + 1))


def pairwise_members(view: View, grids: Sequence[Grid]) -> list[KernelMembers]:
    """Return the members of families that share one geometry, over pairs of rows; spectral parameters are not for this engine."""
    families = [grid.family for grid in grids]
    bandwidths = [view.unit(grid.family) * grid.multiples for grid in grids]
    copies = max(getattr(family, "degree", 1) for family in families)
    sums = _pair_sums(view, grid_tiler(families, bandwidths, view.sample), copies)
    edges = np.cumsum([0, *map(len, bandwidths)])
    return [
        _members_of(grid, some[:: grid.stride], sums[start : stop : grid.stride], view.layout)
        for grid, some, (start, stop) in zip(grids, bandwidths, pairwise(edges), strict=True)
    ]


def pairwise_statistics(view: View, kernel: Kernel) -> Array:
    """Return the squared MMD of a fixed kernel under every labeling, over pairs of rows."""
    (sums,) = _pair_sums(view, tiler_for(kernel, view.sample))
    return tile_statistics(sums, view.layout)[0]


def _pair_sums(view: View, tiler: Tiler, copies: int = 1) -> Array:
    """Return the sums of kernels over pairs of units, in tiles of one size whatever the memory: scores must not depend on it."""
    rows, units = min(TILE_ROWS, view.rows), view.layout.count
    sizes = {"width": view.sample.shape[1], "n_kernels": tiler.n_kernels, "bins": units, "copies": copies}
    return tile_sums(view.load, tiler, view.layout, plan_tiles(view.memory_limit, tile_rows=rows, fewest=rows, **sizes))


def _members_of(grid: Grid, bandwidths: Array, sums: Array, layout: Layout) -> KernelMembers:
    """Return the members of one family from their sums over units, without the bandwidths that see too few."""
    rows, own = len(layout.rows), 0.0 if form_of(layout).unbiased else 1.0  # a design's sums have each row with itself
    count = grid.usable(sums.sum(axis=(1, 2)) / rows - own, rows)
    values = np.array([tile_statistics(matrix, layout)[0] for matrix in sums[:count]])
    return KernelMembers.plain(grid.family, bandwidths[:count], values)
