"""Rows in the order of their file: how far one tells of the next."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from cpmmd.core.arrays import Array

if TYPE_CHECKING:
    from cpmmd.data.pool import Pool

ROWS = 5000  # of each sample, from its beginning, that are looked at
COLUMNS = 200
LEFT = 0.1  # share of the long-run variance that block sums may miss
FEWEST_BLOCKS = 10  # of the smaller sample


def block_length(pool: Pool) -> int:
    """Return the rows of a block that are enough for the most dependent column.

    With lag correlations r_k the sum of n dependent rows has about n (1 + 2 sum r_k) times the variance of a row; blocks of K
    rows miss 2 sum k r_k / K of it. K keeps that below a tenth, and leaves at least ten blocks of the smaller sample.
    Correlations are taken about each sample's own mean, lag by lag until one is within rounding of zero, and do not change
    when the samples are exchanged.
    """
    most = max(1, min(pool.m, pool.n) // FEWEST_BLOCKS)
    lags = lag_correlations(sample_features(pool), most_lags=4 * most)
    if not lags.size:
        return 1
    steps = np.arange(1, len(lags) + 1)[:, None]
    noise = 2 / np.sqrt(min(ROWS, pool.m) + min(ROWS, pool.n))
    alive = np.cumprod(lags > noise, axis=0) * lags
    missed, variance = 2 * (steps * alive).sum(axis=0), 1 + 2 * alive.sum(axis=0)
    return int(np.clip(np.ceil((missed / (LEFT * variance)).max(initial=1.0)), 1, most))


def sample_features(pool: Pool) -> list[Array]:
    """Return the first rows of each sample as numbers about their mean, of unit spread; columns without spread are zero."""
    parts = []
    for start, count in ((0, pool.m), (pool.m, pool.n)):
        rows = np.arange(start, start + min(count, ROWS))
        numbers = pool.numbers[rows][:, :COLUMNS]
        levels = [np.unique([str(v) for v in values[rows]], return_inverse=True)[1] for values in pool.categories.values()]
        features = np.column_stack([numbers, *levels[: COLUMNS - numbers.shape[1]]]).astype(np.float64)
        parts.append(_standardised(np.where(np.isfinite(features), features, np.nan)))
    return parts


def _standardised(features: Array) -> Array:
    present = ~np.isnan(features)
    count = np.maximum(present.sum(axis=0), 1)
    largest = np.abs(np.where(present, features, 0.0)).max(axis=0, initial=0.0)
    unit = np.where(present, features, 0.0) / np.where(largest > 0, largest, 1.0)
    centred = np.where(present, unit - unit.sum(axis=0) / count, 0.0)
    spread = np.sqrt(np.square(centred).sum(axis=0) / count)
    return np.asarray(centred / np.where(spread > 1e-12, spread, np.inf))


def lag_correlations(parts: list[Array], *, most_lags: int) -> Array:
    """Return the correlation at each lag (rows) of each column over both samples."""
    lags = range(1, min(most_lags, *(len(part) - 1 for part in parts)) + 1)
    total = np.maximum(sum(np.square(part).sum(axis=0) for part in parts), 1e-300)
    return np.array([sum((part[k:] * part[:-k]).sum(axis=0) for part in parts) / total for k in lags])
