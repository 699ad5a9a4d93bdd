"""Products of two and of three columns: what changes together, though each column, and perhaps each pair, stays as it was.

Columns are normal scores of their ranks, or marks of the larger of two values, about a mean of zero. The mean of a product of
two is their correlation; that of a product of three says how the correlation of two follows the third. There are many products.
Those are compared whose mean over the pool is furthest from zero in units of its standard error: a mean that one sample has, and
the other has not, is half there in the pool. The choice does not look at labels, so that tests of what is chosen stay exact.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import partial

import numpy as np
from scipy import special

from cpmmd.core.arrays import Array, Floating, Rows
from cpmmd.statistics.columns import ReadColumn
from cpmmd.statistics.strata import Features, Statistic, UnitSums

CHOSEN = 32  # products of two, and as many of three
FURTHEST = 4.0  # standard deviations of a product: what is beyond counts as that
CONSTANT = 1e-4  # a product of scores of deviation 1 that varies by less is constant
SCREENED_ROWS = 5000  # that the choice is made on, at most
ROOM = 2**20  # numbers in work at once


def numeric_scores(read: Iterable[ReadColumn]) -> list[Array]:
    """Return the scores of columns that have numbers, of mean 0 and deviation 1 over all rows; missing values are 0."""
    found = []
    for column in read:
        if column.levels is not None or not column.there.any():
            continue
        values, there = np.zeros(len(column.values)), column.there
        known = column.values[there] if column.ranks is None else special.ndtri(column.ranks[there])
        values[there] = known - known.mean()
        values = column.strata.centred(values) if column.ranks is None else values
        deviation = float(values.std())
        if deviation > 0:
            found.append(((values - values.mean()) / deviation).astype(np.float32))  # all columns are held at once
    return found


def product_features(scores: list[Array], sums: UnitSums) -> list[Features]:
    """Return the features of products of scores, given for the rows in the order of the units; none of a single column."""
    if len(scores) < 2:
        return []
    columns = np.vstack([*scores, np.ones((1, len(scores[0])), np.float32)])  # at place -1 the third of a product of two
    chosen = chosen_products(columns[:-1])
    step, parts = max(1, ROOM // columns.shape[1]), []
    for start in range(0, len(chosen), step):
        first, second, third = chosen[start : start + step].T
        values = columns[first].astype(np.float64) * columns[second] * columns[third]
        values -= values.mean(axis=1, keepdims=True)
        reach = FURTHEST * values.std(axis=1, keepdims=True)
        reach[reach <= CONSTANT] = 0.0
        parts += [sums.of(product) for product in np.clip(values, -reach, reach, out=values)]
    statistics: dict[str, Statistic] = {str(j): partial(_square, j) for j in range(len(parts))}
    return [sums.features(sums.of(), statistics, np.column_stack(parts))]


def chosen_products(columns: Floating) -> Rows:
    """Return the columns of each chosen product, a product a row; -1 stands for the third of a product of two.

    ``columns`` has a score a row.
    """
    some = columns[:, :: -(-columns.shape[1] // SCREENED_ROWS)].astype(np.float64)
    count, rows = some.shape
    first, second = np.triu_indices(count, 1)
    sums, squares = np.zeros((2, len(first), count + 1))
    step = max(1, ROOM // len(first))
    for start in range(0, rows, step):
        block = some[:, start : start + step]
        pairs = block[first] * block[second]
        third = np.vstack([block, np.ones((1, block.shape[1]))])
        sums += pairs @ third.T
        squares += np.square(pairs, out=pairs) @ np.square(third, out=third).T
    variances = squares - sums**2 / rows
    strength = np.abs(sums) / np.sqrt(np.where(variances > CONSTANT**2 * rows, variances, np.inf))
    of_two = _strongest(strength[:, count])
    pair, column = np.nonzero(np.arange(count) > second[:, None])  # each three columns once
    of_three = _strongest(strength[pair, column])
    pair, column = np.append(of_two, pair[of_three]), np.append(np.full(len(of_two), -1), column[of_three])
    return np.column_stack([first[pair], second[pair], column])


def _strongest(strength: Array) -> Rows:
    """Return the places of the largest numbers, in their order."""
    return np.sort(np.argsort(-strength, kind="stable")[:CHOSEN])


def _square(position: int, differences: Array) -> Array:
    return np.asarray(differences[:, position] ** 2)
