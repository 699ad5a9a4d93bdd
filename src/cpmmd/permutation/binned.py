"""Binned permutations: whole bins of rows are relabelled, so that a kernel matrix is needed only as sums over bins.

Rows are shuffled inside their sample and cut into bins of one common size r. Permuting bins is a subgroup of all permutations, so
the level stays exact (Domingo-Enrich, Dwivedi, Mackey 2025), a kernel matrix is streamed tile by tile into (N/r)^2 sums, and
the relabelings themselves cost next to nothing. r = 1 is the full permutation test.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cpmmd import mmd
from cpmmd.permutation.dense import quadratic_forms
from cpmmd.samples import Array, Rows, draw_labels

Tile = npt.NDArray[np.floating]
TARGET_BINS = 200  # in all; 50 to 100 already cost no visible power
FEWEST_BINS = 40  # of the smaller sample, where that does not make too many in all
MOST_BINS = 1000  # in all: a kernel's sums are then at most 8 MB


@dataclass(frozen=True, eq=False)
class Bins:
    """Bins of equal size over the pool.

    Attributes
    ----------
    order
        Row numbers of the pool, bin after bin, those of X first.
    size
        Rows of a bin.
    first, count
        Number of bins of X, and of all.
    dropped
        Rows of X and of Y left over: at most ``size`` - 1 of each, but more of a sample hundreds of times larger than the other.
    """

    order: Rows
    size: int
    first: int
    count: int
    dropped: tuple[int, int]

    @property
    def m(self) -> int:
        """Rows of X in bins."""
        return self.first * self.size

    @property
    def n(self) -> int:
        """Rows of Y in bins."""
        return (self.count - self.first) * self.size


def cut_bins(m: int, n: int, rng: np.random.Generator, *, target: int = TARGET_BINS) -> Bins:
    """Shuffle each sample and cut it into bins, about ``target`` in all."""
    size, first, second = bin_counts(m, n, target=target, most=MOST_BINS)
    return take_bins(rng.permutation(m), m + rng.permutation(n), size, first, second)


def bin_counts(m: int, n: int, *, target: int, most: int) -> tuple[int, int, int]:
    """Give the size of bins, about ``target`` and at most ``most`` in all, and how many X and Y have."""
    small = min(m, n)
    wanted = min((m + n) // target, small // FEWEST_BINS)
    size = max(1, min(max(wanted, -(-(m + n) // most)), small // 2))
    few = small // size
    many = min(max(m, n) // size, most - few)
    return (size, few, many) if m <= n else (size, many, few)


def take_bins(x: Rows, y: Rows, size: int, first: int, second: int) -> Bins:
    """Cut shuffled rows into bins, the last ones left over."""
    order = np.concatenate([x[: first * size], y[: second * size]])
    return Bins(order, size, first, first + second, (len(x) - first * size, len(y) - second * size))


def relabelings(bins: Bins, count: int, rng: np.random.Generator) -> Array:
    """Give indicator rows of X over bins: the observed labeling, then ``count`` random ones."""
    observed = np.arange(bins.count) < bins.first
    return np.vstack([observed[None], draw_labels(bins.count, bins.first, count, rng)]).astype(np.float64)


def tile_slices(bins: Bins, rows: int) -> list[slice]:
    """Cut the ordered rows into tiles of whole bins, about ``rows`` rows each."""
    step = max(1, rows // bins.size) * bins.size
    total = bins.count * bins.size
    return [slice(start, min(start + step, total)) for start in range(0, total, step)]


def sum_over_bins(tile: Tile, size: int) -> Tile:
    """Give the sums of a tile over size x size blocks."""
    if size == 1:
        return tile
    rows, columns = tile.shape
    summed = tile.reshape(rows // size, size, columns).sum(axis=1)
    blocks: Tile = summed.reshape(rows // size, columns // size, size).sum(axis=2)
    return blocks


def fill_sums(bins: Bins, n_kernels: int, tile_rows: int, kernels_of: Callable[[slice, slice], Iterable[Tile]]) -> Array:
    """Give the (n_kernels, bins, bins) sums of kernels over pairs of different rows.

    ``kernels_of(i, j)`` gives the tile of every kernel, one after the other, for two slices of the ordered rows; only i <= j is
    asked for. A tile may be overwritten as soon as the next is asked for.
    """
    sums = np.empty((n_kernels, bins.count, bins.count))
    slices = tile_slices(bins, tile_rows)
    for position, i in enumerate(slices):
        for j in slices[position:]:
            a, b = (slice(s.start // bins.size, s.stop // bins.size) for s in (i, j))
            for k, tile in enumerate(kernels_of(i, j)):
                if i is j:
                    np.fill_diagonal(tile, 0.0)
                block = sum_over_bins(tile, bins.size)
                sums[k, a, b] = block
                if i is not j:
                    sums[k, b, a] = block.T
    return sums


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


def binned_statistics(sums: Array, bins: Bins, labels: Array) -> Array:
    """Give the squared MMD of every labeling (rows of ``labels``) from one kernel's bin sums, which are overwritten."""
    return mmd.quadratic_constant(bins.m, bins.n) * quadratic_forms(centre_sums(sums, bins.size), labels)
