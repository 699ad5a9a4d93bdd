"""The landmark engine: every member of a class, bandwidth by spectral parameter, at a cost linear in the rows.

Landmarks are rows of the pool drawn without looking at labels, all of them while those are few. In pools of up to
``PAIR_ROWS`` kernels are double precision; beyond, rows stream past the landmarks in single-precision tiles, and nothing that
is held grows with their number.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.parallel import map_apart, spread
from cpmmd.core.progress import report
from cpmmd.core.text import bytes_in_words, pluralize
from cpmmd.draws.labels import units_by_stratum
from cpmmd.draws.layout import Layout, sum_rows
from cpmmd.engines.directions import Directions, Sketch, landmark_directions, whole_pool_directions
from cpmmd.engines.members import COVARIANCE_ROWS, PAIR_ROWS, UNREGULARISED, Grid, KernelMembers, View
from cpmmd.engines.tiles import Piece, cut_pieces
from cpmmd.errors import InputError
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.scaled import ScaledKernel, ScaleFamily, cut
from cpmmd.kernels.tilers import DistanceTiler, Scratch, Tile, Tiler, tiler_for
from cpmmd.statistics.forms import form_of

LANDMARKS = 200  # of a pool up to PAIR_ROWS: 300 and 500 have no more power (docs/theory/full-sample.md)
MOST_LANDMARKS = 512  # of larger ones, from 65,536 rows on; between, twice the root of their number
NEIGHBOUR_ROWS = 2048  # among which those with many neighbours become landmarks of narrow kernels
TILE_ROWS = 512  # rows that meet the landmarks at once: never more or fewer, so that sums do not depend on the memory
Member: TypeAlias = tuple[ScaleFamily, float]  # a kernel by its family and bandwidth
PANEL_TILES = 16  # tiles of rows that are loaded together


def landmark_count(rows: int, wanted: int | None = None, pair_rows: int = PAIR_ROWS) -> int:
    """Return how many landmarks a pool of so many rows has."""
    usual = LANDMARKS if rows <= pair_rows else min(MOST_LANDMARKS, max(LANDMARKS, 2 * math.isqrt(rows)))
    return min(rows, usual if wanted is None else wanted)


def landmark_members(view: View, grids: Sequence[Grid]) -> list[KernelMembers]:
    """Return the members of families that share one geometry.

    Grids without spectral parameters give the squared MMD of the kernel that landmarks see.
    """
    bandwidths = [_bandwidths(view, grid) for grid in grids]
    if not view.linear:
        kernels = [[ScaledKernel(grid.family, b) for b in some.tolist()] for grid, some in zip(grids, bandwidths, strict=True)]
        return [_members_of(view, grid, widths, own) for grid, widths, own in zip(grids, bandwidths, kernels, strict=True)]
    found, sketches = [], view.sketches
    if not sketches:
        wanted = wanted_members(view, grids)
        among = [ScaledKernel(*member).gram(view.landmarks) for member in wanted]
        sketches = dict(zip(wanted, _stream(view, members_tiler(view, list(wanted)), among, list(wanted.values())), strict=True))
    for grid, some in zip(grids, bandwidths, strict=True):
        own = [sketches[grid.family, b] for b in some.tolist()]
        seen = np.array([(member.sums.sum() - np.trace(member.among)) / len(view.landmarks) for member in own])
        count = len(some) if grid.gammas else grid.usable(seen, view.rows)
        found.append(_members_of(view, grid, some[:count], own[:count]))
    return found


def among_neighbours(view: View, grid: Grid) -> View:
    """Return the view with half of its landmarks where rows are close together, as the grid's widest kernel sees them.

    A narrow kernel sees a small group of rows through landmarks in it alone, and of few landmarks few are in it. Which rows have
    most neighbours among some of the pool does not depend on labels.
    """
    some, kept = view.order[:NEIGHBOUR_ROWS], view.count // 2
    if len(some) <= view.count:
        return view
    kernel = ScaledKernel(grid.family, float(view.unit(grid.family) * grid.multiples[0]))
    neighbours = kernel.gram(view.take(some)).sum(axis=1)[kept:]
    crowded = np.sort(np.argsort(-neighbours, kind="stable")[: view.count - kept])
    return replace(view, chosen=np.concatenate([some[:kept], some[kept:][crowded]]))


def landmark_statistics(view: View, kernel: Kernel, gammas: Sequence[float]) -> Array:
    """Return the statistics of one fixed kernel for every spectral parameter."""
    seen: Sequence[Kernel | Sketch] = [view.sketches.get(kernel, kernel)]
    if view.linear and kernel not in view.sketches:
        seen = _stream(view, tiler_for(kernel, view.varied), [kernel.gram(view.landmarks)], [True])
    ((_, values),) = _members(view, seen, gammas, principal=True)
    return values


def _members_of(view: View, grid: Grid, bandwidths: Array, seen: Sequence[Kernel | Sketch]) -> KernelMembers:
    """Return all members: every spectral parameter of the widest bandwidth, then of the next."""
    gammas = grid.gammas or (UNREGULARISED,)
    found, values = zip(*_members(view, seen, gammas, principal=bool(grid.gammas)), strict=True)
    directions = dict(zip(bandwidths.tolist(), found, strict=True))
    members = np.repeat(bandwidths, len(gammas))
    return KernelMembers(grid.family, members, np.concatenate(values), np.tile(gammas, len(found)), directions, view.landmarks)


def _members(
    view: View, seen: Sequence[Kernel | Sketch], gammas: Sequence[float], *, principal: bool
) -> list[tuple[Directions, Array]]:
    """Return the directions of each kernel and its statistics; one after the other or apart, to the same digits."""
    _ = view.landmarks  # loaded once, before threads ask for them

    def member(item: Kernel | Sketch) -> tuple[Directions, Array]:
        if isinstance(item, Sketch):
            found = landmark_directions(item, view.layout, principal=principal)
        else:
            found = _directions(view, item, principal=principal)
        return found, found.statistics(view.layout, gammas)

    return map_apart(member, seen)


def _directions(view: View, kernel: Kernel, *, principal: bool) -> Directions:
    """Return the directions of a kernel in double precision."""
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


def _bandwidths(view: View, grid: Grid) -> Array:
    return np.asarray((view.unit(grid.family) * grid.multiples)[:: grid.stride])


def wanted_members(view: View, grids: Sequence[Grid]) -> dict[Member, bool]:
    """Return the kernels of grids, each once, and whether variances of their directions are needed."""
    wanted: dict[Member, bool] = {}
    for grid in grids:
        for b in _bandwidths(view, grid).tolist():
            wanted[grid.family, b] = wanted.get((grid.family, b), False) or bool(grid.gammas)
    return wanted


def members_tiler(view: View, members: Sequence[Member]) -> DistanceTiler:
    """Return the tiler of kernels of one geometry.

    Each bandwidth has its own exponential of double-precision distances: squaring the one before, as between pairs of rows,
    doubles the rounding every time, and directions of small variance are divided by it.
    """
    families, bandwidths = zip(*members, strict=True)
    return DistanceTiler(families, tuple(np.array([b]) for b in bandwidths), np.median(view.varied, axis=0))


def _stream(view: View, tiler: Tiler, among: Sequence[Array], spectral: Sequence[bool]) -> list[Sketch]:
    """Return the sketch of every kernel of a tiler; variances of those that are ``spectral``."""
    count, rows = len(view.landmarks), view.covariance_rows or COVARIANCE_ROWS
    held = 8 * len(among) * view.layout.count * count + 4 * sum(spectral) * rows * count
    _require(view, held + 8 * count * count * 8, len(among))  # the last is what a factorisation works with
    tiler = tiler.settled([view.landmarks])  # of a far row with near landmarks nothing is seen in any precision
    landmarks = tiler.operand(view.landmarks)
    sums = np.zeros((len(among), view.layout.count, count))
    pieces = cut_pieces(view.layout, TILE_ROWS)
    for start in range(0, len(pieces), PANEL_TILES):
        panel = pieces[start : start + PANEL_TILES]
        origin = panel[0].rows.start
        loaded = view.load(slice(origin, panel[-1].rows.stop))
        for piece, part in zip(panel, spread(_tile_sums, panel, loaded, origin, landmarks, count, tiler), strict=True):
            sums[:, piece.units] += part
        report("rows", panel[-1].rows.stop, view.rows)
    return sketches_of(view, tiler, landmarks, among, sums, spectral)


def sketches_of(
    view: View, tiler: Tiler, landmarks: Any, among: Sequence[Array], sums: Sequence[Array] | Array, spectral: Sequence[bool]
) -> list[Sketch]:
    """Return the sketch of every kernel of a tiler from its sums over units."""
    some = _some_rows(view, tiler, landmarks, [k for k, wanted in enumerate(spectral) if wanted])
    none = np.empty((0, len(view.landmarks)), np.float32)
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
    rows = view.varied[: view.variance_rows]
    found = {k: np.empty((len(rows), count), np.float32) for k in kept}
    scratch = Scratch()
    for part in cut(len(rows), TILE_ROWS):
        own = tiler.operand(rows[part])
        for k, tile in enumerate(tiler.tiles(own, slice(0, part.stop - part.start), landmarks, slice(0, count), scratch)):
            if k in found:
                found[k][part] = tile
    if view.strata is not None:
        for inside in units_by_stratum(view.strata[: len(rows)]):
            for values in found.values():
                values[inside] -= values[inside].mean(axis=0, dtype=np.float64).astype(values.dtype)
    return found


def _require(view: View, needed: int, kernels: int) -> None:
    """Refuse landmarks that need more bytes than there are."""
    require_room(view.memory_limit, needed, kernels, len(view.landmarks))


def require_room(limit: int, needed: int, kernels: int, landmarks: int) -> None:
    """Refuse sums that need more bytes than there are."""
    if needed > limit:
        raise InputError(
            "{parameter} must leave room for landmarks: at least {needed} for {kernels} with {count} of them. Got "
            "{limit}; raise it, or use fewer landmarks with FullSampleTest(landmarks=...).",
            parameter="memory_limit",
            kernels=pluralize(kernels, "kernel"),
            count=landmarks,
            needed=bytes_in_words(needed),
            limit=bytes_in_words(limit),
        )
