"""Tiles: a kernel matrix of any size, streamed tile by tile into its sums over pairs of units.

No matrix larger than a tile or the units' sums is ever held.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array, Floating, Rows
from cpmmd.core.parallel import elsewhere, spread
from cpmmd.core.progress import report
from cpmmd.draws.layout import Layout, sum_rows
from cpmmd.engines.dense import ROUNDING
from cpmmd.engines.memory import TilePlan
from cpmmd.kernels.tilers import Scratch, Tiler
from cpmmd.statistics.forms import form_of

TIE = 1e-6  # of the spread: sums of single-precision values agree to about this share of it, and closer ones count as ties
FEW_COLUMNS = 16  # of a unit: summing so few along a row costs numpy several times what adding slices does


def tile_sums(load: Callable[[slice], Array], tiler: Tiler, layout: Layout, plan: TilePlan) -> Array:
    """Return the (kernels, units, units) sums of a tiler's kernels over pairs of rows, different ones where all rows are alike.

    ``load`` gives a slice of the rows in the order of the layout. Tiles are single precision, their sums double. A row of tiles
    is one piece of work (:func:`cpmmd.core.parallel.spread`); pieces are added in one order wherever they were computed, so the
    sums do not depend on threads or machines.
    """
    hollow = form_of(layout).unbiased
    pieces = cut_pieces(layout, plan.tile_rows)
    panels = _group(pieces, plan.panel_rows)
    tiler = tiler.settled(load(_rows_of(panel)) for panel in panels)
    upper = np.zeros((tiler.n_kernels, layout.count, layout.count))
    done, total = 0, len(pieces) * (len(pieces) + 1) // 2
    remote = elsewhere()
    for position, first in enumerate(panels):
        a = _operand(load, tiler, first, remote)
        for second in panels[position:]:
            b = a if second is first else _operand(load, tiler, second, remote)
            work = [(i, [j for j in second if j.rows.start >= i.rows.start]) for i in first]
            rows = spread(_row_of_tiles, work, a, b, tiler, remote, hollow, most=plan.threads)
            for (i, js), row in zip(work, rows, strict=True):
                upper[:, i.units, js[0].units.start : js[-1].units.stop] += row
                done += len(js)
                report("tiles", done, total)
    for matrix in upper:
        matrix += matrix.T.copy()
    return upper


@dataclass(frozen=True)
class Piece:
    """Rows of one tile: whole units, or a part of one unit."""

    rows: slice
    units: slice
    local: slice  # where the rows are in their panel
    starts: Rows | None = field(default=None, compare=False)  # where units begin among the rows; None where they are of one size


def cut_pieces(layout: Layout, tile_rows: int) -> list[Piece]:
    """Cut the rows of a layout into pieces of about ``tile_rows``, none of which has parts of two units."""
    if not layout.size:
        return _cut_unequal(np.append(layout.starts, len(layout.rows)), tile_rows)
    pieces, size = [], layout.size
    together = max(1, tile_rows // size)
    for first in range(0, layout.count, together):
        last = min(first + together, layout.count)
        start, stop = first * size, last * size
        parts = -(-(stop - start) // tile_rows) if size > tile_rows else 1
        edges = np.linspace(start, stop, parts + 1).astype(int).tolist()
        pieces += [Piece(slice(lo, hi), slice(first, last), slice(lo, hi)) for lo, hi in pairwise(edges)]
    return pieces


def _cut_unequal(edges: Rows, tile_rows: int) -> list[Piece]:
    """Cut units of different sizes: as many as fit, or a part of one that does not."""
    pieces, first = [], 0
    while first < len(edges) - 1:
        last = max(first + 1, int(np.searchsorted(edges, edges[first] + tile_rows, side="right")) - 1)
        lo, hi = int(edges[first]), int(edges[last])
        inside = np.linspace(lo, hi, -(-(hi - lo) // tile_rows) + 1).astype(int).tolist() if last == first + 1 else [lo, hi]
        starts = edges[first:last] - lo if len(inside) == 2 else np.zeros(1, dtype=np.intp)
        pieces += [Piece(slice(a, b), slice(first, last), slice(a, b), starts) for a, b in pairwise(inside)]
        first = last
    return pieces


def _group(pieces: list[Piece], panel_rows: int) -> list[list[Piece]]:
    """Group pieces into panels of at most ``panel_rows`` rows (at least one piece each)."""
    panels: list[list[Piece]] = []
    start = 0
    for piece in pieces:
        if not panels or piece.rows.stop - start > panel_rows:
            panels.append([])
            start = piece.rows.start
        panels[-1].append(replace(piece, local=slice(piece.rows.start - start, piece.rows.stop - start)))
    return panels


def _rows_of(panel: list[Piece]) -> slice:
    return slice(panel[0].rows.start, panel[-1].rows.stop)


def _operand(load: Callable[[slice], Array], tiler: Tiler, panel: list[Piece], remote: bool) -> Any:
    """Return a panel's operand, or its bare rows where other machines are to make it: those are sent once."""
    rows = load(_rows_of(panel))
    return rows if remote else tiler.operand(rows)


def _row_of_tiles(item: tuple[Piece, list[Piece]], a: Any, b: Any, tiler: Tiler, remote: bool, hollow: bool) -> Array:
    """Return the sums of one piece with every later one; a tile with itself counts half, for it is added twice.

    ``hollow`` leaves out pairs of a row with itself.
    """
    i, others = item
    if remote:
        a, b = tiler.operand(a), tiler.operand(b)
    scratch, first = Scratch(), others[0].units.start
    shape = (i.units.stop - i.units.start, others[-1].units.stop - first)
    sums = np.zeros((tiler.n_kernels, *shape))
    for j in others:
        columns = slice(j.units.start - first, j.units.stop - first)
        for total, tile in zip(sums, tiler.tiles(a, i.local, b, j.local, scratch), strict=True):
            if hollow and i.rows == j.rows:
                np.fill_diagonal(tile, 0.0)
            block = _sum_over_units(tile, i, j)
            total[:, columns] += 0.5 * block if i.rows == j.rows else block
    return sums


def _sum_over_units(tile: Floating, i: Piece, j: Piece) -> Array:
    """Return the sums of a tile over the units of its rows and of its columns."""
    if i.starts is None or j.starts is None:
        return sum_blocks(tile, i.units.stop - i.units.start, j.units.stop - j.units.start)
    down = sum_rows(tile, i.starts) if len(i.starts) < len(tile) else tile
    return np.asarray(np.add.reduceat(down, j.starts, axis=1, dtype=np.float64))


def sum_blocks(tile: Floating, above: int, across: int) -> Array:
    """Return the sums of a tile over above x across blocks of equal size."""
    rows, columns = tile.shape
    down = tile if rows == above else tile.reshape(above, rows // above, columns).sum(axis=1)
    size = columns // across
    if size > FEW_COLUMNS:
        blocks: Array = down.reshape(above, across, size).sum(axis=2, dtype=np.float64)
        return blocks
    total = down[:, ::size].astype(np.float64)
    for column in range(1, size):
        total += down[:, column::size]
    return total


def tile_statistics(sums: Array, layout: Layout) -> tuple[Array, float]:
    """Return the squared MMD of every labeling from one kernel's sums, which are overwritten, and its tie tolerance.

    Statistics that differ by no more than the rounding of single-precision tiles are equal.
    """
    values, rounding = form_of(layout).statistics(sums, ROUNDING)
    return values, max(rounding, TIE * float(np.ptp(values)))
