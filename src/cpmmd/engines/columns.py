"""Columns under every relabeling: each by itself, all of them in one additive kernel, and products of two and three.

The additive kernel is a sum over columns of kernels of one column: of numbers on their pooled ranks, of categories on their
levels, and a mark of what is missing. Each is centred and divided by its norm, so that columns are heard alike. Of ranks it is
the heat kernel on (0, 1), whose eigenfunctions are cosines: six of them are features enough, so that sums over units cost time
linear in the rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from scipy import linalg

from cpmmd.core.arrays import Array
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MAX_LEVELS, Preparation
from cpmmd.draws.layout import Layout
from cpmmd.engines.directions import LEAST, Directions
from cpmmd.engines.members import COVARIANCE_ROWS, UNREGULARISED
from cpmmd.statistics.columns import ReadColumn, columns_of, read_columns, score_columns
from cpmmd.statistics.forms import Form, form_of
from cpmmd.statistics.products import numeric_scores, product_features
from cpmmd.statistics.strata import Strata

COSINES = 6  # of a rank: the seventh has 4e-7 of the first one's weight
WIDTH = 0.25  # of the heat kernel on ranks
WEIGHTS = np.exp(-((np.pi * WIDTH * np.arange(1, COSINES + 1)) ** 2) / 2)  # its eigenvalues
ROOM, WIDEST = 2**26, 40  # bytes of columns that are looked at together, and features of one
MOST_FEATURES = 512  # whose covariance is taken over COVARIANCE_ROWS; of more, over as many rows as this
CONSTANT = 1e-12  # of its size: a column whose features vary by less is constant


@dataclass(frozen=True, eq=False)
class ColumnSums:
    """What columns are under every relabeling, and their features summed over units."""

    layout: Layout
    largest: Array  # the largest score of any column, a relabeling each
    sums: Array  # units x features of the additive kernel
    some: Array  # features of rows that variances are taken over, chosen without looking at labels
    products: Array  # the largest score of any product of columns, a relabeling each; zeros where they are not asked for

    def additive(self, gammas: Sequence[float]) -> Array:
        """Return the squared MMD of the additive kernel for every spectral parameter (rows) under every relabeling."""
        if not self.sums.shape[1]:
            return np.zeros((len(gammas) or 1, len(self.layout.labels)))
        if not gammas:
            none = np.empty(0)
            return Directions(self.sums, np.ones(self.sums.shape[1]), none, none).statistics(self.layout, (UNREGULARISED,))
        return _principal(self.sums, self.some).statistics(self.layout, gammas)


def column_sums(pool: Pool, preparation: Preparation, layout: Layout, *, products: bool = False) -> ColumnSums:
    """Read every column of the rows that are relabelled, once, and products of them where asked for."""
    columns, rows = columns_of(pool, preparation), len(layout.rows)
    strata, form = Strata.of(pool, layout.rows, layout), form_of(layout)
    features = sum(MAX_LEVELS if column.kind == "category" else COSINES + 1 for column in columns)  # at most
    count = COVARIANCE_ROWS if features <= MOST_FEATURES else MOST_FEATURES
    varied = slice(None, None, -(-rows // count))  # units stand in an order that does not look at labels
    step = max(1, ROOM // (8 * (WIDEST * layout.count + 3 * rows)))
    largest = np.zeros(len(layout.labels))
    sums: list[Array] = []
    some: list[Array] = []
    scores: list[Array] = []
    for read in _parts(read_columns(pool, columns, layout, strata), step):
        for scored in score_columns([column.features for column in read], layout):
            np.maximum(largest, scored.scores, out=largest)
        for block in (block for column in read for block in _blocks(column, form)):
            sums.append(layout.sums(block))
            some.append(block[varied].copy())
        if products:
            scores += numeric_scores(read)
    (of_products,) = score_columns([product_features(scores, strata.sums(layout))], layout)
    empty = np.empty((layout.count, 0))
    return ColumnSums(layout, largest, np.hstack([empty, *sums]), np.hstack(some) if some else empty, of_products.scores)


def _parts(columns: Iterator[ReadColumn], most: int) -> Iterator[list[ReadColumn]]:
    """Yield so many columns at a time, or fewer where they have many levels."""
    part: list[ReadColumn] = []
    taken = 0
    for column in columns:
        part.append(column)
        taken += sum(functions.sums.nbytes + functions.counts.nbytes for functions in column.features)
        if len(part) == most or taken > 2 * ROOM:
            yield part
            part, taken = [], 0
    if part:
        yield part


def _blocks(column: ReadColumn, form: Form) -> Iterator[Array]:
    """Yield the features of one column, centred and of norm 1: of its values, and of what is missing of numbers."""
    there = column.there
    if column.levels is not None:
        features = [np.eye(len(column.levels.names))[column.values.astype(np.intp)]]
    else:
        known = np.zeros((len(there), COSINES if column.ranks is not None else 1))
        if there.any():
            known[there] = cosines(column.ranks[there]) if column.ranks is not None else _larger(column.values[there])
            known[~there] = known[there].mean(axis=0)
        features = [known, *([] if there.all() else [there[:, None].astype(np.float64)])]
    for block in features:
        centred = form.centre_rows(block)
        centred = centred - centred.mean(axis=0)
        norm = float(np.linalg.norm(centred.T @ centred))
        if norm > CONSTANT * len(block):
            yield centred / np.sqrt(norm)


def _larger(values: Array) -> Array:
    return np.asarray(values == values.max(), dtype=np.float64)[:, None]


def cosines(ranks: Array) -> Array:
    """Return cos(pi j r), j = 1 to 6, times the root of their weight."""
    first = np.cos(np.pi * ranks)
    found = [np.ones_like(first), first]
    for _ in range(1, COSINES):
        found.append(2 * first * found[-1] - found[-2])
    return np.asarray(np.column_stack(found[1:]) * np.sqrt(WEIGHTS))


def _principal(sums: Array, some: Array) -> Directions:
    """Return the principal directions of features, from the smaller of both matrices of products."""
    centred = some - some.mean(axis=0)
    wide = centred.shape[1] > len(centred)
    products = centred @ centred.T if wide else centred.T @ centred
    variances, vectors = linalg.eigh(products, driver="evd", check_finite=False, overwrite_a=True)
    kept = variances > LEAST * max(float(variances[-1]), 0.0)
    if not kept.any():
        return Directions(np.zeros((len(sums), 1)), np.ones(1), np.empty(0), np.empty(0))
    variances, vectors = variances[kept], vectors[:, kept]
    projection = centred.T @ (vectors / np.sqrt(variances)) if wide else vectors
    return Directions(sums @ projection, variances, np.empty(0), np.empty(0))
