"""One pass over the rows: sums over bins that are the same to the last digit however the rows are cut, and by whom they are read.

A row's bin follows from its position. Kernel values are rounded to multiples of 2^-26, and sums of up to 2^27 such values are
exact in double precision: whatever the order of additions, no digit is lost. Values of columns are counted. So :class:`Summary`
adds up like whole numbers do, over tiles, threads, files, workers and retries. A row's own kernel values must not depend on its
neighbours either: tiles have one size, the last one of a block is filled up with copies of a row, which no sum takes.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from itertools import pairwise
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.parallel import elsewhere, map_apart, spread, thread_count
from cpmmd.core.progress import report
from cpmmd.data.pool import Pool, rows_alone
from cpmmd.data.preparation import Preparation
from cpmmd.draws.positions import PositionBins
from cpmmd.engines.cells import Cells
from cpmmd.engines.directions import Sketch
from cpmmd.engines.landmarks import members_tiler, require_room, sketches_of, wanted_members
from cpmmd.engines.members import Grid, View
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.kernels.tilers import Scratch, Tiler, single_tiler, tiler_for

TILE_ROWS = 256  # never more or fewer: a product may round a row otherwise in a smaller one
PART_ROWS = 2**16  # sorted by their bins and prepared together, so that most tiles are of one bin or two
PART_VALUES = 2**21  # fewer rows where they are wide: 16 MB
GRID = np.float32(2**26)  # kernel values are multiples of 1 / GRID


@dataclass(frozen=True, eq=False)
class KernelGroup:
    """Kernels of one geometry in one set of coordinates, and the landmarks that they meet."""

    scale: str | None  # of the coordinates
    wanted: Mapping[Any, bool]  # the kernels, and whether variances of their directions are needed
    tiler: Tiler
    landmarks: Array

    @classmethod
    def of(cls, scale: str | None, view: View, grids: Sequence[Grid]) -> KernelGroup:
        """Return the kernels of grids of one geometry."""
        wanted = wanted_members(view, grids)
        families, bandwidths = zip(*wanted, strict=True)
        tiler: Tiler | None = None
        if len(set(families)) == 1:
            tiler = single_tiler(families[0], bandwidths, np.median(view.varied, axis=0), view.landmarks)
        return cls(scale, wanted, tiler or members_tiler(view, list(wanted)), view.landmarks)

    @classmethod
    def of_kernel(cls, view: View, kernel: Kernel) -> KernelGroup:
        """Return one fixed kernel."""
        tiler = tiler_for(kernel, view.varied).settled([view.landmarks])
        return cls(None, {kernel: True}, tiler, view.landmarks)

    @cached_property
    def operand(self) -> Any:
        """The landmarks as the tiler takes them."""
        return self.tiler.operand(self.landmarks)

    def sketches(self, view: View, sums: Array) -> dict[Any, Sketch]:
        """Return the sketch of each kernel from its sums over bins."""
        kernels = [ScaledKernel(*key) if isinstance(key, tuple) else key for key in self.wanted]
        among = [kernel.gram(self.landmarks) for kernel in kernels]
        found = sketches_of(view, self.tiler, self.operand, among, sums, list(self.wanted.values()))
        return dict(zip(self.wanted, found, strict=True))


@dataclass(eq=False)
class Summary:
    """Sums over bins of some rows; those of several are added by ``+``, in any order."""

    kernels: list[Array]  # of each group: kernels x bins x landmarks, in multiples of 1 / GRID
    cells: list[Rows]  # of each column, how many rows: bins x cells
    rows: int = 0

    def __iadd__(self, other: Summary) -> Summary:
        for own, more in zip(self.kernels, other.kernels, strict=True):
            own += more
        for counted, more_counted in zip(self.cells, other.cells, strict=True):
            counted += more_counted
        self.rows += other.rows
        return self

    def __add__(self, other: Summary) -> Summary:
        total = Summary([own.copy() for own in self.kernels], [own.copy() for own in self.cells], self.rows)
        total += other
        return total

    @property
    def sums(self) -> list[Array]:
        """The sums of kernel values."""
        return [own / float(GRID) for own in self.kernels]


@dataclass(frozen=True, eq=False)
class OnePass:
    """What is summed over the rows. It is all that a worker must know, and small."""

    bins: PositionBins
    preparations: Mapping[str | None, Preparation]
    groups: Sequence[KernelGroup]
    columns: Sequence[Cells]

    def empty(self) -> Summary:
        """Return the summary of no rows."""
        count = len(self.bins.place)
        return Summary(
            [np.zeros((group.tiler.n_kernels, count, len(group.landmarks))) for group in self.groups],
            [np.zeros((count, cells.count), dtype=np.int64) for cells in self.columns],
        )

    def add(self, summary: Summary, pool: Pool, rows: Rows, positions: Rows, scratch: Scratch) -> None:
        """Add some rows of a pool, which stand at these positions of the whole, to a summary."""
        step = max(1, min(PART_ROWS, PART_VALUES // max(1, len(pool.columns))) // TILE_ROWS) * TILE_ROWS
        for start in range(0, len(positions), step):
            part = slice(start, start + step)
            bins = self.bins.of(positions[part])
            order = np.argsort(bins, kind="stable")[np.count_nonzero(bins < 0) :]
            if len(order):
                self._add_part(summary, rows_alone(pool, rows[part][order]), bins[order], scratch)
            summary.rows += len(bins)

    def _add_part(self, summary: Summary, rows: Pool, bins: Rows, scratch: Scratch) -> None:
        """Add some rows, sorted by their bins."""
        for own, cells in zip(summary.cells, self.columns, strict=True):
            counted = np.bincount(bins * cells.count + cells.codes(rows), minlength=own.size)
            own += counted.reshape(own.shape)
        starts = np.flatnonzero(np.diff(bins, prepend=-1))
        matrices = {scale: _padded(self.preparations[scale].transform(rows)) for scale in {group.scale for group in self.groups}}
        for sums, group in zip(summary.kernels, self.groups, strict=True):
            matrix, landmarks = matrices[group.scale], slice(0, len(group.landmarks))
            for begin in range(0, len(matrix), TILE_ROWS):
                end = min(begin + TILE_ROWS, len(bins))
                first, last = np.searchsorted(starts, (begin, end))
                edges = [begin, *(edge for edge in starts[first:last].tolist() if edge > begin), end]
                operand = group.tiler.operand(matrix[begin : begin + TILE_ROWS])
                tiles = group.tiler.tiles(operand, slice(0, TILE_ROWS), group.operand, landmarks, scratch)
                for total, tile in zip(sums, tiles, strict=True):
                    np.multiply(tile, GRID, out=tile)
                    np.rint(tile, out=tile)
                    for a, b in pairwise(edges):
                        total[bins[a]] += np.sum(tile[a - begin : b - begin], axis=0, dtype=np.float64)


def _padded(matrix: Array) -> Array:
    """Return whole tiles of rows, the last one filled up with copies of its first row."""
    short = -len(matrix) % TILE_ROWS
    return matrix if not short else np.concatenate([matrix, np.broadcast_to(matrix[0], (short, matrix.shape[1]))])


def summarise(plan: OnePass, blocks: Iterable[tuple[Pool, Rows, Rows]], total: int, limit: int) -> Summary:
    """Return the summary of blocks: rows of a pool, and their positions in the whole; threads share the rows of a block.

    ``limit`` is how many bytes the sums may take. Where it is short, fewer threads come first.
    """
    first = plan.empty()
    size = sum(sums.nbytes for sums in (*first.kernels, *first.cells))
    landmarks = len(plan.groups[0].landmarks) if plan.groups else 0
    require_room(limit, 2 * size + 64 * landmarks**2, sum(map(len, first.kernels)), landmarks)  # the last is a factorisation's
    if elsewhere():
        return _summarise_elsewhere(plan, blocks, total, first)
    workers = max(1, min(thread_count(), limit // size - 1))
    summaries, scratches, done = [plan.empty() for _ in range(workers)], [Scratch() for _ in range(workers)], 0
    for pool, rows, positions in blocks:
        parts = list(zip(summaries, scratches, np.array_split(rows, workers), np.array_split(positions, workers), strict=True))
        map_apart(partial(_add, plan, pool), parts)
        done += len(rows)
        report("rows", done, total)
    first, *others = summaries
    for other in others:
        first += other
    return first


def _summarise_elsewhere(plan: OnePass, blocks: Iterable[tuple[Pool, Rows, Rows]], total: int, first: Summary) -> Summary:
    """Return the summary of blocks that other processes or machines add up, as joblib's back end sends them."""
    chunks = ((rows_alone(pool, rows), positions) for pool, rows, positions in blocks)
    for part in spread(_summary_of, chunks, plan):
        first += part
        report("rows", first.rows, total)
    return first


def _summary_of(chunk: tuple[Pool, Rows], plan: OnePass) -> Summary:
    pool, positions = chunk
    summary = plan.empty()
    plan.add(summary, pool, np.arange(len(positions)), positions, Scratch())
    return summary


def _add(plan: OnePass, pool: Pool, part: tuple[Summary, Scratch, Rows, Rows]) -> None:
    summary, scratch, rows, positions = part
    plan.add(summary, pool, rows, positions, scratch)
