"""Rows in the order of their file: how far one tells of the next."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import TYPE_CHECKING

import numpy as np

from cpmmd.core.arrays import Array

if TYPE_CHECKING:
    from cpmmd.data.pool import Pool

ROWS = 2000  # of each sample, from its beginning, that are looked at
COLUMNS = 100
LEFT = 0.1  # share of the long-run variance that block sums may miss


def block_length(pool: Pool) -> int:
    """Return the rows of a block that are enough for the most dependent column.

    With lag correlations r_k the sum of n dependent rows has about n (1 + 2 sum r_k) times the variance of a row; blocks of K
    rows miss 2 sum k r_k / K of it. K keeps that below a tenth, however few blocks that leaves: shorter ones would not keep the
    level. Ranks are taken within each sample, so that no difference between the samples is seen, lag by lag until one is within
    rounding of zero.
    """
    parts, _ = ranked_columns(pool)
    noise = 2 / np.sqrt(sum(map(len, parts)))
    alive = _until(lag_correlations(parts), noise)
    if not alive.size:
        return 1
    missed, variance = 2 * (np.arange(1, len(alive) + 1) @ alive), 1 + 2 * alive.sum(axis=0)
    return int(np.clip(np.ceil((missed / (LEFT * variance)).max()), 1, min(pool.m, pool.n)))


def _until(lags: Iterable[Array], noise: float) -> Array:
    """Return the correlations (lags x columns) before each column's first one within the noise, the others zero."""
    kept: list[Array] = []
    for lag in lags:
        above = np.where(lag > noise, lag, 0.0)
        kept.append(above if not kept else np.where(kept[-1] > 0, above, 0.0))
        if not kept[-1].any():
            break
    return np.array(kept)


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


def lag_correlations(parts: list[Array], most_lags: int | None = None) -> Iterator[Array]:
    """Yield the correlation of each column over both samples at lag 1, 2, ... (rows)."""
    last = min(len(part) - 1 for part in parts)
    total = np.maximum(sum(np.square(part).sum(axis=0) for part in parts), 1e-300)
    for k in range(1, (last if most_lags is None else min(most_lags, last)) + 1):
        yield np.asarray(sum(np.einsum("ij,ij->j", part[k:], part[:-k]) for part in parts) / total)
