"""Memory: how many rows are held at once, and in one tile, within a stated budget."""

from __future__ import annotations

from dataclasses import dataclass

from cpmmd.core.parallel import thread_count
from cpmmd.core.text import bytes_in_words, pluralize
from cpmmd.errors import InputError, ParameterReference

DEFAULT_LIMIT = 2**30
TILE_ROWS = 512  # double-precision distances of as many still fit the cache, and threads do not wait for each other
FEWEST_TILE_ROWS = 64
TILE_BYTES = 40  # of a pair of rows in work: double-precision distances and their copies, exponents, chains
ROW_NUMBERS = 6  # copies of a row's numbers while an operand is made, in double precision


@dataclass(frozen=True)
class TilePlan:
    """Rows of a tile, rows of a panel (what is held of the pool at once, twice), and tiles that fit side by side."""

    tile_rows: int
    panel_rows: int
    threads: int = 1


def plan_tiles(
    limit: int,
    *,
    width: int,
    n_kernels: int,
    bins: int,
    tile_rows: int = TILE_ROWS,
    fewest: int = FEWEST_TILE_ROWS,
    copies: int = 1,
) -> TilePlan:
    """Return the tiles, as many of them at once as there are threads, and the panels that fit ``limit`` bytes.

    ``tile_rows`` is the size of a tile, ``fewest`` the smallest where not even one fits (sums over other tiles round
    otherwise, so fewer threads come first), ``copies`` how many times the operands hold a row (the powers of a polynomial lift).
    """
    sums = 2 * 8 * n_kernels * bins * bins
    row_bytes = 2 * 8 * (width + 2) * (ROW_NUMBERS + 2 * copies)
    tile = tile_rows
    while tile >= fewest:
        room, tile_bytes = limit - sums, TILE_BYTES * tile * tile
        side_by_side = min(thread_count(), (room - tile * row_bytes) // tile_bytes)
        if side_by_side >= 1:
            return TilePlan(tile, (room - side_by_side * tile_bytes) // row_bytes, side_by_side)
        tile //= 2
    needed = sums + fewest * (row_bytes + TILE_BYTES * fewest)
    raise InputError(
        "{parameter} must leave room for tiles: {kernels}, {columns} and {bins} need at least {needed}. Got "
        "{limit}; raise it, or use fewer bins or columns.",
        parameter="memory_limit",
        kernels=pluralize(n_kernels, "kernel"),
        columns=pluralize(width, "column"),
        bins=pluralize(bins, "bin"),
        needed=bytes_in_words(needed),
        limit=bytes_in_words(limit),
    )


def require_dense(limit: int, *, rows: int, matrices: int, method: str) -> None:
    """Refuse whole matrices that do not fit."""
    needed = 8 * matrices * rows * rows
    if needed > limit:
        raise InputError(
            "{method} holds {matrices} kernel matrices of {rows} x {rows}, {needed}, more than the {limit} of {setting}. Raise "
            "the limit, test fewer rows, or use {other} or {simple}, which work at any size.",
            method=method,
            matrices=matrices,
            rows=rows,
            needed=bytes_in_words(needed),
            limit=bytes_in_words(limit),
            setting=ParameterReference("memory_limit"),
            other=ParameterReference("method", "cp-full"),
            simple=ParameterReference("method", "median"),
        )


def require_training(limit: int, *, rows: int, matrices: int) -> None:
    """Refuse training matrices that do not fit."""
    needed = 8 * matrices * rows * rows
    if needed > limit:
        raise InputError(
            "Choosing a kernel holds {matrices} matrices of {rows} x {rows} training rows, {needed}, more than the {limit} of "
            "{setting}. Raise the limit, train on fewer rows with SplitTest(max_train_rows=...), or use {other}.",
            matrices=matrices,
            rows=rows,
            needed=bytes_in_words(needed),
            limit=bytes_in_words(limit),
            setting=ParameterReference("memory_limit"),
            other=ParameterReference("method", "cp-full"),
        )
