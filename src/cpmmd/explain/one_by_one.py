"""How well rows are told apart by their columns one by one: what is left is how columns go together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.data.pool import Pool
from cpmmd.explain.columns import DataColumn, number_values
from cpmmd.explain.explained_rows import ExplainedRows
from cpmmd.explain.features import category_levels, pooled_ranks, ranks_inside
from cpmmd.explain.rows import cross_fitted
from cpmmd.explain.values import Effect

CLASSES = 8  # of a number's pooled ranks


def one_by_one_effect(columns: Sequence[DataColumn], explained: ExplainedRows, rng: np.random.Generator) -> Effect | None:
    """Return how often rows are told apart by the sum of what each column says alone, learnt from the other half of the rows.

    What a column says is the logarithm of how much more frequent its class is in X than in Y; missing is a class of its own.
    """
    if not explained.tells:
        return None
    labels, strata = explained.labels, explained.strata
    codes = [_codes(explained.pool, explained.rows, column, None if strata is None else strata.of_row) for column in columns]

    def scores(fitted: Labels) -> Array:
        total = np.zeros(np.count_nonzero(~fitted))
        weights = None if strata is None else strata.weights(fitted)
        for code in codes:
            total += _log_ratio(code, fitted, labels, weights)[code[~fitted]]
        return total

    return cross_fitted(scores, labels, rng, explained.units, strata)


def _codes(pool: Pool, rows: Rows, column: DataColumn, stratum: Rows | None) -> Rows:
    if column.kind == "category":
        return category_levels(pool.categories[column.name][rows]).codes
    values = number_values(pool, rows, column)
    codes = np.full(len(values), CLASSES)
    there = ~np.isnan(values)
    if there.any():
        ranks = pooled_ranks(values[there]) if stratum is None else ranks_inside(values[there], stratum[there])
        codes[there] = np.minimum((ranks * CLASSES).astype(int), CLASSES - 1)
    return codes


def _log_ratio(codes: Rows, fitted: Labels, labels: Labels, weights: Array | None) -> Array:
    """Return the log of the ratio of frequencies, class by class, one row added to each; weights give both one mix of strata."""
    count, of = int(codes.max()) + 1, []
    for side in (fitted & labels, fitted & ~labels):
        own = None if weights is None else weights[side] * np.count_nonzero(side)
        of.append(np.bincount(codes[side], own, minlength=count) + 1.0)
    return np.asarray(np.log(of[0] / of[0].sum()) - np.log(of[1] / of[1].sum()))
