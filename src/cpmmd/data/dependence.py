"""Rows in the order of their file: how far one tells of the next."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

import numpy as np

from cpmmd.core.arrays import Array

if TYPE_CHECKING:
    from cpmmd.data.pool import Pool

ROWS = 2000  # of each sample, from its beginning, that are looked at
COLUMNS = 100
LEFT = 0.1  # share of the long-run variance that block sums may miss
FEWEST_BLOCKS = 5  # of the smaller sample: 252 relabelings


def block_length(pool: Pool) -> int:
    """Return the rows of a block that are enough for the most dependent column.

    With lag correlations r_k the sum of n dependent rows has about n (1 + 2 sum r_k) times the variance of a row; blocks of K
    rows miss 2 sum k r_k / K of it. K keeps that below a tenth, and leaves at least five blocks of the smaller sample. Ranks are
    taken within each sample, so that no difference between the samples is seen, lag by lag until one is within rounding of zero.
    """
    most = longest_block(pool)
    parts, _ = ranked_columns(pool)
    lags = lag_correlations(parts, most_lags=4 * most)
    if not lags.size:
        return 1
    steps = np.arange(1, len(lags) + 1)[:, None]
    noise = 2 / np.sqrt(sum(map(len, parts)))
    alive = np.cumprod(lags > noise, axis=0) * lags
    missed, variance = 2 * (steps * alive).sum(axis=0), 1 + 2 * alive.sum(axis=0)
    return int(np.clip(np.ceil((missed / (LEFT * variance)).max(initial=1.0)), 1, most))


def longest_block(pool: Pool) -> int:
    """Return the rows of the longest block that the smaller sample has enough of."""
    return max(1, min(pool.m, pool.n) // FEWEST_BLOCKS)


def ranked_columns(pool: Pool, leave: Collection[str] = ()) -> tuple[list[Array], list[str]]:
    """Return the first rows of each sample as ranks about their mean, of unit spread, and the columns these are of.

    Ranks, because two large values side by side would look like dependence. Columns without spread are zero.
    """
    numbers = [j for j, name in enumerate(pool.number_names) if name not in leave][:COLUMNS]
    texts = [name for name in pool.categories if name not in leave][: COLUMNS - len(numbers)]
    parts = []
    for start, count in ((0, pool.m), (pool.m, pool.n)):
        rows = np.arange(start, start + min(count, ROWS))
        block = pool.numbers[rows, numbers] if numbers else np.empty((len(rows), 0))
        levels = [np.unique([str(v) for v in pool.categories[name][rows]], return_inverse=True)[1] for name in texts]
        parts.append(np.column_stack([_ranks(column) for column in (*block.T, *levels)]))
    return parts, [*(pool.number_names[j] for j in numbers), *texts]


def _ranks(values: Array) -> Array:
    """Return ranks about their mean with unit mean square, ties shared, missing values in the middle."""
    ordered = np.sort(values)
    ranks = (np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")).astype(np.float64)
    present = ~np.isnan(values)
    ranks -= ranks[present].mean() if present.any() else 0.0
    ranks[~present] = 0.0
    spread = np.sqrt(np.mean(np.square(ranks)))
    return np.asarray(ranks / spread if spread > 0 else np.zeros(len(ranks)))


def lag_correlations(parts: list[Array], *, most_lags: int) -> Array:
    """Return the correlation at each lag (rows) of each column over both samples."""
    lags = range(1, min(most_lags, *(len(part) - 1 for part in parts)) + 1)
    total = np.maximum(sum(np.square(part).sum(axis=0) for part in parts), 1e-300)
    return np.array([sum((part[k:] * part[:-k]).sum(axis=0) for part in parts) / total for k in lags])
