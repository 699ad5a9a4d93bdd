"""Matrices over pairs of rows, filled tile by tile so that the intermediate arrays stay in the cache."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from cpmmd.core.arrays import Array

TILE = 144  # rows and columns of a tile: half a dozen of them fit a core's cache


def cut(size: int, tile: int = TILE) -> list[slice]:
    """Cut ``range(size)`` into slices."""
    return [slice(start, min(start + tile, size)) for start in range(0, size, tile)]


def symmetric(size: int, compute: Callable[[slice, slice], Array], diagonal: float) -> Array:
    """Fill a symmetric matrix from its upper triangle of tiles; the diagonal is set, not computed."""
    out = np.empty((size, size))
    slices = cut(size)
    for position, i in enumerate(slices):
        for j in slices[position:]:
            tile = compute(i, j)
            out[i, j] = tile
            if i is not j:
                out[j, i] = tile.T
    np.fill_diagonal(out, diagonal)
    return out


def rectangular(rows: int, columns: int, compute: Callable[[slice, slice], Array]) -> Array:
    """Fill a matrix tile by tile."""
    out = np.empty((rows, columns))
    for i in cut(rows):
        for j in cut(columns):
            out[i, j] = compute(i, j)
    return out
