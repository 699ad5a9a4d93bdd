"""Many batches against one reference under one kernel: the reference's own kernel sums are made once and kept."""

from __future__ import annotations

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.draws.layout import Layout, bin_counts
from cpmmd.engines.dense import rank_sums
from cpmmd.engines.tiles import sum_blocks
from cpmmd.evidence import Ranking
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.scaled import cut

# Rows, or bins of them, that are relabelled: their sums take 32 MB, and 999 relabelings 4 GFlop, tenths of a second.
MOST = 2000
TILE_ROWS = 1024


class FixedReference:
    """Rows that every batch is tested against, with a kernel that neither they nor a batch has chosen.

    The rows are in shuffled order: the first ones are used where they are not all needed.
    """

    def __init__(self, kernel: Kernel, rows: Array) -> None:
        self.kernel, self.rows = kernel, rows
        self._kept: tuple[int, Array] | None = None  # bin size, sums: batches of one size share it

    def test(self, batch: Array, *, n_permutations: int, rng: np.random.Generator) -> tuple[Ranking, Layout]:
        """Return the permutation test of the reference against a batch, and what was relabelled.

        Pools of up to 2000 rows are permuted row by row, larger ones in as many bins.
        """
        m, n = len(self.rows), len(batch)
        order_stream, label_stream = rng.spawn(2)
        size, first, second = bin_counts(m, n, target=MOST, most=MOST)
        layout = Layout.of_bins(np.arange(m), m + order_stream.permutation(n), size, first, second)
        layout = layout.draw(n_permutations, label_stream)
        sums = self._sums(layout, batch[layout.rows[layout.m :] - m])
        return rank_sums(sums, layout, mean=float(sums.mean())), layout

    def _sums(self, layout: Layout, batch: Array) -> Array:
        """Return the sums over all units: the reference's own from the cache, the others from new kernel values."""
        sums, x, y = np.empty((layout.count, layout.count)), slice(0, layout.first), slice(layout.first, None)
        sums[x, x] = self._own_sums(layout.size)[x, x]
        sums[y, y] = _pair_sums(self.kernel, batch, batch, layout.size)
        sums[y, x] = _pair_sums(self.kernel, batch, self.rows[: layout.m], layout.size)
        sums[x, y] = sums[y, x].T
        return sums

    def _own_sums(self, size: int) -> Array:
        if self._kept is None or self._kept[0] != size:
            count = min(len(self.rows) // size, MOST)
            used = self.rows[: count * size]
            self._kept = size, _pair_sums(self.kernel, used, used, size)
        return self._kept[1]


def _pair_sums(kernel: Kernel, rows: Array, others: Array, size: int) -> Array:
    """Return a kernel's sums over bins of ``rows`` and of ``others``; a row with itself is left out where those are the same.

    In double precision like all others: what is ranked together is computed alike.
    """
    alike = others is rows
    sums = np.empty((len(rows) // size, len(others) // size))
    for a in cut(len(sums), max(1, TILE_ROWS // size)):
        for b in cut(a.stop if alike else sums.shape[1], max(1, TILE_ROWS // size)):
            tile = kernel.gram(rows[a.start * size : a.stop * size], others[b.start * size : b.stop * size])
            if alike and a == b:
                np.fill_diagonal(tile, 0.0)
            sums[a, b] = sum_blocks(tile, a.stop - a.start, b.stop - b.start)
            if alike:
                sums[b, a] = sums[a, b].T
    return sums
