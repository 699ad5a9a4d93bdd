"""Rows that stand in both samples: a split must not train on one copy and test on the other."""

from __future__ import annotations

import numpy as np

from cpmmd.core.arrays import Rows
from cpmmd.data.pool import Pool

DISTINCT = 0.9  # share of different rows within each sample from which an equal row in the other is the same record, not chance


def shared_records(pool: Pool) -> Rows:
    """Return for each row of the pool the number of the record that it shares with the other sample, -1 where it shares none.

    Discrete data repeat by chance, within samples as much as between them, and are exchangeable as they are: there nothing
    is shared. Where rows are otherwise all different, a row of X that stands in Y too is one record.
    """
    codes = _row_codes(pool)
    of_x, of_y = np.unique(codes[: pool.m]), np.unique(codes[pool.m :])
    shared = np.intersect1d(of_x, of_y, assume_unique=True)
    if len(of_x) < DISTINCT * pool.m or len(of_y) < DISTINCT * pool.n or not len(shared):
        return np.full(len(codes), -1)
    return np.where(np.isin(codes, shared), codes, -1)


def _row_codes(pool: Pool) -> Rows:
    """Return a number for each row, the same for rows that are equal in every column."""
    numbers = np.asarray(pool.numbers) + 0.0  # no negative zero
    categories = [np.unique([str(v) for v in values], return_inverse=True)[1] for values in pool.categories.values()]
    rows = np.ascontiguousarray(np.column_stack([numbers, *categories]))
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    return np.asarray(np.unique(keys, return_inverse=True)[1]).ravel()
