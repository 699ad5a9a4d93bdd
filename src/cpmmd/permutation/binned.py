"""Binned permutations: whole bins of rows are relabelled, so that a kernel matrix is needed only as sums over bins.

Rows are shuffled inside their sample and cut into bins of one common size r. Permuting bins is a subgroup of all permutations, so
the level stays exact (Domingo-Enrich, Dwivedi, Mackey 2025), a kernel matrix is streamed tile by tile into (N/r)^2 sums, and
the relabelings themselves cost next to nothing. r = 1 is the full permutation test. Where a design says which rows belong
together, bins are made of its units (:mod:`cpmmd.permutation.unit_bins`) and may differ in size.

Bins stand in an order that does not look at labels. Sums round by where they stand, in a tile or across two; were the bins of X
the first ones, rounding would look like the observed labeling and like no other, and where a statistic is nothing but rounding
(all rows equal but a few) the observed one would be the largest. So the level is exact in the machine's arithmetic, too.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array, Floating, Labels, Rows
from cpmmd.core.parallel import elsewhere, spread
from cpmmd.core.progress import report
from cpmmd.kernels.tilers import Scratch, Tiler
from cpmmd.permutation import mmd
from cpmmd.permutation.contrasts import Contrast, sum_rows
from cpmmd.permutation.dense import quadratic_forms
from cpmmd.permutation.labels import Relabelings
from cpmmd.permutation.memory import TilePlan
from cpmmd.permutation.ranking import without_rounding

TARGET_BINS = 200  # in all: as powerful as rows one by one; 100 are not on small modes (benchmarks/full_sample.py)
FEWEST_BINS = 40  # of the smaller sample, where that does not make too many in all
MOST_BINS = 1000  # in all: a kernel's sums are then at most 8 MB
ROUNDING = 2.0**-22  # of sums of single-precision values; of kernels that differ by less nothing is known
FEW_COLUMNS = 16  # of a bin: summing so few along a row costs numpy several times what adding slices does


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins over the pool: of equal size, or as a design has them.

    Attributes
    ----------
    order
        Row numbers of the pool, bin after bin.
    size
        Rows of a bin; 0 where bins differ.
    first, count
        Number of bins of X, and of all.
    dropped
        Rows of X and of Y left over: at most ``size`` - 1 of each, but more of a sample hundreds of times larger than the other.
    contrast
        How a design weighs bins; None where all rows are alike.
    number
        Of the bin at each place, where those of X are numbered first; None where they stand in that order.
    """

    order: Rows
    size: int
    first: int
    count: int
    dropped: tuple[int, int]
    contrast: Contrast | None = None
    number: Rows | None = None

    @property
    def of_x(self) -> Labels:
        """Which bins are of X."""
        return np.asarray((np.arange(self.count) if self.number is None else self.number) < self.first)

    @property
    def m(self) -> int:
        """Rows of X in bins."""
        return self.first * self.size if self.contrast is None else int(self.contrast.counts[self.of_x].sum())

    @property
    def n(self) -> int:
        """Rows of Y in bins."""
        return len(self.order) - self.m

    @property
    def starts(self) -> Rows:
        """Where each bin begins in ``order``, and where the last one ends."""
        if self.contrast is None:
            return np.arange(0, len(self.order) + 1, self.size)
        return np.concatenate([[0], np.cumsum(self.contrast.counts)])

    def shuffled(self, rng: np.random.Generator) -> Bins:
        """Return the bins in an order that does not look at labels, drawn from a stream that a generator spawns."""
        number = rng.spawn(1)[0].permutation(self.count)
        starts = self.starts
        order = np.concatenate([self.order[starts[one] : starts[one + 1]] for one in number])
        return replace(self, order=order, contrast=self.contrast and self.contrast.at(number), number=number)


def cut_bins(m: int, n: int, rng: np.random.Generator, *, target: int = TARGET_BINS) -> Bins:
    """Shuffle each sample and cut it into bins, about ``target`` in all, in an order that does not look at labels."""
    size, first, second = bin_counts(m, n, target=target, most=MOST_BINS)
    return take_bins(rng.permutation(m), m + rng.permutation(n), size, first, second).shuffled(rng)


def bin_counts(m: int, n: int, *, target: int, most: int) -> tuple[int, int, int]:
    """Return the size of bins, about ``target`` and at most ``most`` in all, and how many X and Y have."""
    small = min(m, n)
    wanted = min((m + n) // target, small // FEWEST_BINS)
    size = max(1, min(max(wanted, -(-(m + n) // most)), small // 2))
    few = small // size
    many = min(max(m, n) // size, most - few)
    return (size, few, many) if m <= n else (size, many, few)


def take_bins(x: Rows, y: Rows, size: int, first: int, second: int) -> Bins:
    """Cut shuffled rows into bins, those of X first and the last rows left over."""
    order = np.concatenate([x[: first * size], y[: second * size]])
    return Bins(order, size, first, first + second, (len(x) - first * size, len(y) - second * size))


def relabelings(bins: Bins, count: int, rng: np.random.Generator, limit: int | None = None) -> Relabelings:
    """Return labelings of the bins, the observed one first."""
    strata = None if bins.contrast is None else bins.contrast.strata
    if bins.number is None:
        return Relabelings.draw(bins.count, bins.first, count, rng, limit, strata=strata)
    numbered = None if strata is None else strata[np.argsort(bins.number)]
    return Relabelings.draw(bins.count, bins.first, count, rng, limit, strata=numbered).at(bins.number)


def bin_sums(load: Callable[[slice], Array], tiler: Tiler, bins: Bins, plan: TilePlan) -> Array:
    """Return the (kernels, bins, bins) sums of a tiler's kernels over pairs of different rows; with a design, over all pairs.

    Parameters
    ----------
    load
        Gives a slice of the rows in the order of the bins.
    plan
        How many rows are held at once, and in one tile.

    Notes
    -----
    Tiles are single precision, their sums double. A row of tiles is one piece of work (:func:`cpmmd.parallel.spread`); pieces
    are added in one order wherever they were computed, so the sums do not depend on threads or machines.
    """
    pieces = cut_pieces(bins, plan.tile_rows)
    panels = _group(pieces, plan.panel_rows)
    tiler = tiler.settled(load(_rows_of(panel)) for panel in panels)
    upper = np.zeros((tiler.n_kernels, bins.count, bins.count))
    done, total = 0, len(pieces) * (len(pieces) + 1) // 2
    remote = elsewhere()
    for position, first in enumerate(panels):
        a = _operand(load, tiler, first, remote)
        for second in panels[position:]:
            b = a if second is first else _operand(load, tiler, second, remote)
            work = [(i, [j for j in second if j.rows.start >= i.rows.start]) for i in first]
            hollow = bins.contrast is None
            for (i, js), row in zip(
                work, spread(_row_of_tiles, work, a, b, tiler, remote, hollow, most=plan.threads), strict=True
            ):
                upper[:, i.bins, js[0].bins.start : js[-1].bins.stop] += row
                done += len(js)
                report("tiles", done, total)
    for matrix in upper:
        matrix += matrix.T.copy()
    return upper


@dataclass(frozen=True)
class Piece:
    """Rows of one tile: whole bins, or a part of one bin.

    ``local`` is where they are in their panel, ``starts`` where its bins begin in it; None where they are of one size.
    """

    rows: slice
    bins: slice
    local: slice
    starts: Rows | None = field(default=None, compare=False)


def cut_pieces(bins: Bins, tile_rows: int) -> list[Piece]:
    """Cut the ordered rows into pieces of about ``tile_rows``, none of which has parts of two bins."""
    if not bins.size:
        return _cut_unequal(bins.starts, tile_rows)
    pieces = []
    together = max(1, tile_rows // bins.size)
    for first in range(0, bins.count, together):
        last = min(first + together, bins.count)
        start, stop = first * bins.size, last * bins.size
        parts = -(-(stop - start) // tile_rows) if bins.size > tile_rows else 1
        edges = np.linspace(start, stop, parts + 1).astype(int).tolist()
        pieces += [Piece(slice(lo, hi), slice(first, last), slice(lo, hi)) for lo, hi in pairwise(edges)]
    return pieces


def _cut_unequal(edges: Rows, tile_rows: int) -> list[Piece]:
    """Cut bins of different sizes: as many as fit, or a part of one that does not."""
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
    """Return the bin sums of one piece with every later one; a tile with itself counts half, for it is added twice.

    ``hollow`` leaves out pairs of a row with itself.
    """
    i, others = item
    if remote:
        a, b = tiler.operand(a), tiler.operand(b)
    scratch, first = Scratch(), others[0].bins.start
    shape = (i.bins.stop - i.bins.start, others[-1].bins.stop - first)
    sums = np.zeros((tiler.n_kernels, *shape))
    for j in others:
        columns = slice(j.bins.start - first, j.bins.stop - first)
        for total, tile in zip(sums, tiler.tiles(a, i.local, b, j.local, scratch), strict=True):
            if hollow and i.rows == j.rows:
                np.fill_diagonal(tile, 0.0)
            block = sum_over_pieces(tile, i, j)
            total[:, columns] += 0.5 * block if i.rows == j.rows else block
    return sums


def sum_over_pieces(tile: Floating, i: Piece, j: Piece) -> Array:
    """Return the sums of a tile over the bins of its rows and of its columns."""
    if i.starts is None or j.starts is None:
        return sum_over_bins(tile, i.bins.stop - i.bins.start, j.bins.stop - j.bins.start)
    down = sum_rows(tile, i.starts) if len(i.starts) < len(tile) else tile
    return np.asarray(np.add.reduceat(down, j.starts, axis=1, dtype=np.float64))


def sum_over_bins(tile: Floating, above: int, across: int) -> Array:
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


def centre_sums(sums: Array, size: int) -> Array:
    """Centre one matrix of bin sums, in place, as :func:`cpmmd.mmd.u_centre` centres the matrix of rows."""
    if size == 1:
        return np.asarray(mmd.u_centre(sums, overwrite=True))
    total_rows = len(sums) * size
    rows = sums.sum(axis=1)
    offset = rows / (total_rows - 2) - size * rows.sum() / (2 * (total_rows - 1) * (total_rows - 2))
    inside = np.diag(sums) - 2 * (size - 1) * offset
    sums -= size * offset[:, None]
    sums -= size * offset
    np.fill_diagonal(sums, inside)
    return sums


def binned_statistics(sums: Array, bins: Bins, labels: Relabelings) -> Array:
    """Return the squared MMD of every labeling from one kernel's bin sums, which are overwritten."""
    rounding = largest_rounding(sums, bins, labels)
    if bins.contrast is not None:
        return without_rounding(bins.contrast.centre(sums).statistics(labels), rounding)
    centred = centre_sums(sums, bins.size)
    forms = np.concatenate([quadratic_forms(centred, block) for block in labels.blocks()])
    return without_rounding(mmd.quadratic_constant(bins.m, bins.n) * forms, rounding)


def largest_rounding(sums: Array, bins: Bins, labels: Relabelings) -> float:
    """Return what the rounding of single-precision tiles can make of a difference of two statistics, before sums are centred."""
    scale = mmd.quadratic_constant(bins.m, bins.n) if bins.contrast is None else bins.contrast.scale(labels)
    return ROUNDING * scale * float(np.linalg.norm(sums))
