"""The landmark engine: every member of a class, bandwidth by spectral parameter, at a cost linear in the rows.

Landmarks are rows of the pool drawn without looking at labels, all of them while those are few. In pools of up to
``PAIR_ROWS`` kernels are double precision; beyond, rows stream past the landmarks in single-precision tiles, and nothing that
is held grows with their number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np

from cpmmd.core.arrays import Array, Floating, Rows
from cpmmd.core.parallel import map_apart, spread
from cpmmd.core.progress import report
from cpmmd.core.text import bytes_in_words, counted
from cpmmd.draws.layout import Layout, sum_rows
from cpmmd.engines.directions import Directions, Sketch, landmark_directions, whole_pool_directions
from cpmmd.engines.paths import PLAIN, Grid, Path
from cpmmd.engines.tiles import Piece, cut_pieces
from cpmmd.errors import InputError
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.scaled import ScaledKernel, cut
from cpmmd.kernels.tilers import DistanceTiler, Scratch, Tile, Tiler, tiler_for
from cpmmd.statistics.forms import form_of

T = TypeVar("T")
LANDMARKS = 200  # of a pool up to PAIR_ROWS: 300 and 500 have no more power (docs/theory/full-sample.md)
MOST_LANDMARKS = 512  # of larger ones, from 65,536 rows on; between, twice the root of their number
PAIR_ROWS = 4096
COVARIANCE_ROWS = 5000  # rows that variances are taken over in larger pools, at most
ROWS_A_LANDMARK = 10  # of those
TILE_ROWS = 512  # rows that meet the landmarks at once: never more or fewer, so that sums do not depend on the memory
PANEL_TILES = 16  # tiles of rows that are loaded together


@dataclass(frozen=True, eq=False)
class View:
    """The pool in one set of coordinates, as landmarks see it."""

    load: Callable[[slice], Array]  # gives a slice of the rows in the order of the layout
    sample: Array  # rows in an order that does not look at labels: those of median distances, landmarks and variances
    landmarks: Array  # the first of those, or all rows in the order of the layout
    layout: Layout  # what is relabelled, and how
    memory_limit: int  # in bytes
    strata: Rows | None = None  # of the rows of `sample`, where a design has some: variances are then taken inside them
    pair_rows: int = PAIR_ROWS  # pools of more rows stream past the landmarks
    covariance_rows: int | None = None  # that variances are taken over in those pools; None is ten a landmark, at most 5000

    @property
    def rows(self) -> int:
        """Rows in units."""
        return len(self.layout.rows)

    @property
    def linear(self) -> bool:
        """Whether rows stream past the landmarks, since they are too many to be held."""
        return self.rows > self.pair_rows

    @property
    def variance_rows(self) -> int:
        """Rows that variances are taken over: all of a pool whose pairs are looked at, otherwise some."""
        if not self.linear:
            return self.rows
        usual = min(COVARIANCE_ROWS, ROWS_A_LANDMARK * len(self.landmarks))
        return min(len(self.sample), self.covariance_rows or usual)


def landmark_count(rows: int, wanted: int | None = None, pair_rows: int = PAIR_ROWS) -> int:
    """Return how many landmarks a pool of so many rows has."""
    usual = LANDMARKS if rows <= pair_rows else min(MOST_LANDMARKS, max(LANDMARKS, 2 * math.isqrt(rows)))
    return min(rows, usual if wanted is None else wanted)


def landmark_paths(view: View, grids: Sequence[Grid], units: Sequence[float]) -> list[Path]:
    """Return the paths of families that share one geometry; ``units`` are their median distances.

    Grids without spectral parameters give the squared MMD of the kernel that landmarks see.
    """
    bandwidths = [unit * grid.multiples for grid, unit in zip(grids, units, strict=True)]
    if not view.linear:
        return [_double_path(view, grid, some[:: grid.stride]) for grid, some in zip(grids, bandwidths, strict=True)]
    strided = [some[:: grid.stride] for grid, some in zip(grids, bandwidths, strict=True)]
    sketches = iter(_streamed_sketches(view, grids, strided))
    return [_streamed_path(view, grid, some, [next(sketches) for _ in some]) for grid, some in zip(grids, strided, strict=True)]


def kernel_path(view: View, kernel: Kernel, gammas: Sequence[float]) -> Array:
    """Return the statistics of one fixed kernel for every spectral parameter."""
    if not view.linear:
        ((_, values),) = _members(view, gammas, lambda one: _directions(view, one, principal=True), [kernel])
        return values
    (sketch,) = _stream(view, tiler_for(kernel, view.sample), [kernel.gram(view.landmarks)], [True])
    ((_, values),) = _members(view, gammas, lambda one: landmark_directions(one, view.layout), [sketch])
    return values


def _double_path(view: View, grid: Grid, bandwidths: Array) -> Path:
    def one(bandwidth: float) -> Directions:
        return _directions(view, ScaledKernel(grid.family, bandwidth), principal=bool(grid.gammas))

    return _path(view, grid, bandwidths, one, bandwidths.tolist())


def _directions(view: View, kernel: Kernel, *, principal: bool) -> Directions:
    count, form = len(view.landmarks), form_of(view.layout)
    if count > LANDMARKS:  # asked for: the usual number is a few megabytes
        _require(view, 8 * (2 * view.rows * count + 4 * count * count), 1)
    if count == view.rows and form.whole_pool:
        return whole_pool_directions(kernel.gram(view.landmarks), view.layout)
    seen = kernel.gram(view.load(slice(0, view.rows)), view.landmarks)
    sketch = Sketch(kernel.gram(view.landmarks), _unit_sums(seen, view.layout), form.centre_rows(seen))
    return landmark_directions(sketch, view.layout, principal=principal)


def _unit_sums(seen: Array, layout: Layout) -> Array:
    """Return the sums over units of rows in their order."""
    if layout.size == 1:
        return seen
    if layout.size == 0:
        return np.asarray(sum_rows(seen, layout.starts))
    return np.asarray(seen.reshape(layout.count, layout.size, -1).sum(axis=1))


def _streamed_path(view: View, grid: Grid, bandwidths: Array, sketches: Sequence[Sketch]) -> Path:
    seen = np.array([(sketch.sums.sum() - np.trace(sketch.among)) / len(view.landmarks) for sketch in sketches])
    count = grid.enough(seen, view.rows) if not grid.gammas else len(bandwidths)

    def one(sketch: Sketch) -> Directions:
        return landmark_directions(sketch, view.layout, principal=bool(grid.gammas))

    return _path(view, grid, bandwidths[:count], one, sketches[:count])


def _path(view: View, grid: Grid, bandwidths: Array, find: Callable[[T], Directions], items: Sequence[T]) -> Path:
    """Return all members: every spectral parameter of the widest bandwidth, then of the next."""
    gammas = grid.gammas or (PLAIN,)
    found, values = zip(*_members(view, gammas, find, items), strict=True)
    directions = dict(zip(bandwidths.tolist(), found, strict=True))
    members = np.repeat(bandwidths, len(gammas))
    return Path(grid.family, members, np.concatenate(values), np.tile(gammas, len(found)), directions, view.landmarks)


def _members(
    view: View, gammas: Sequence[float], find: Callable[[T], Directions], items: Sequence[T]
) -> list[tuple[Directions, Array]]:
    """Return the directions of each kernel and its statistics; one after the other or apart, to the same digits."""

    def one(item: T) -> tuple[Directions, Array]:
        found = find(item)
        return found, found.statistics(view.layout, gammas)

    return map_apart(one, items)


def _streamed_sketches(view: View, grids: Sequence[Grid], bandwidths: Sequence[Array]) -> list[Sketch]:
    """Return the sketches of every bandwidth of each grid, from one pass over the rows.

    Each bandwidth has its own exponential of double-precision distances: squaring the one before, as between pairs of rows,
    doubles the rounding every time, and directions of small variance are divided by it.
    """
    members = [(grid, float(b)) for grid, some in zip(grids, bandwidths, strict=True) for b in some]
    tiler = DistanceTiler(
        tuple(grid.family for grid, _ in members),
        tuple(np.array([b]) for _, b in members),
        np.median(view.sample, axis=0),
    )
    among = [ScaledKernel(grid.family, b).gram(view.landmarks) for grid, b in members]
    return _stream(view, tiler, among, [bool(grid.gammas) for grid, _ in members])


def _stream(view: View, tiler: Tiler, among: Sequence[Array], spectral: Sequence[bool]) -> list[Sketch]:
    """Return the sketch of every kernel of a tiler; variances of those that are ``spectral``."""
    _check_room(view, len(among), sum(spectral))
    tiler = tiler.settled([view.landmarks])  # of a far row with near landmarks nothing is seen in any precision
    landmarks, count = tiler.operand(view.landmarks), len(view.landmarks)
    sums = np.zeros((len(among), view.layout.count, count))
    pieces = cut_pieces(view.layout, TILE_ROWS)
    for start in range(0, len(pieces), PANEL_TILES):
        panel = pieces[start : start + PANEL_TILES]
        origin = panel[0].rows.start
        rows = view.load(slice(origin, panel[-1].rows.stop))
        for piece, part in zip(panel, spread(_tile_sums, panel, rows, origin, landmarks, count, tiler), strict=True):
            sums[:, piece.units] += part
        report("rows", panel[-1].rows.stop, view.rows)
    some = _some_rows(view, tiler, landmarks, [k for k, wanted in enumerate(spectral) if wanted])
    none = np.empty((0, count), np.float32)
    return [Sketch(matrix, sums[k], some.get(k, none)) for k, matrix in enumerate(among)]


def _tile_sums(piece: Piece, rows: Array, origin: int, landmarks: Any, count: int, tiler: Tiler) -> Array:
    """Return the sums over units of the kernels of some rows with the landmarks."""
    own = tiler.operand(rows[piece.rows.start - origin : piece.rows.stop - origin])
    units, size = piece.units.stop - piece.units.start, piece.rows.stop - piece.rows.start
    sums = np.zeros((tiler.n_kernels, units, count))
    for total, tile in zip(sums, tiler.tiles(own, slice(0, size), landmarks, slice(0, count), Scratch()), strict=True):
        if piece.starts is None:
            np.sum(tile.reshape(units, size // units, count), axis=1, out=total)
        else:
            total[:] = sum_rows(tile, piece.starts)
    return sums


def _some_rows(view: View, tiler: Tiler, landmarks: Any, kept: Sequence[int]) -> dict[int, Tile]:
    """Return the kernels of the rows that variances are taken over, by the number of the kernel."""
    if not kept:
        return {}
    count = len(view.landmarks)
    rows = view.sample[: view.variance_rows]
    found = {k: np.empty((len(rows), count), np.float32) for k in kept}
    scratch = Scratch()
    for part in cut(len(rows), TILE_ROWS):
        own = tiler.operand(rows[part])
        for k, tile in enumerate(tiler.tiles(own, slice(0, part.stop - part.start), landmarks, slice(0, count), scratch)):
            if k in found:
                found[k][part] = tile
    if view.strata is not None:
        for values in found.values():
            _centre_in_strata(values, view.strata[: len(values)])
    return found


def _centre_in_strata(values: Floating, strata: Rows) -> None:
    """Take the mean of each stratum off its rows, in place."""
    order = np.argsort(strata, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(strata[order])) + 1):
        values[rows] -= values[rows].mean(axis=0, dtype=np.float64).astype(values.dtype)


def _check_room(view: View, kernels: int, spectral: int) -> None:
    """Refuse sums and variances that do not fit."""
    count = len(view.landmarks)
    held = kernels * view.layout.count * count * 8 + spectral * (view.covariance_rows or COVARIANCE_ROWS) * count * 4
    _require(view, held + 8 * count * count * 8, kernels)  # the last is what a factorisation works with


def _require(view: View, needed: int, kernels: int) -> None:
    """Refuse landmarks that need more bytes than there are."""
    if needed > view.memory_limit:
        raise InputError(
            "{parameter} must leave room for landmarks: at least {needed} for {kernels} with {count} of them. Got "
            "{limit}; raise it, or use fewer landmarks with FullSampleTest(landmarks=...).",
            parameter="memory_limit",
            kernels=counted(kernels, "kernel"),
            count=len(view.landmarks),
            needed=bytes_in_words(needed),
            limit=bytes_in_words(view.memory_limit),
        )
