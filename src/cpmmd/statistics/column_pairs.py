"""Which columns of one table go with which of another: a test of every pair, under the re-pairings of the joint test.

A number is seen through cosines of its ranks, with the eigenvalues of a Gaussian kernel on ranks as variances, a category through
indicators of its levels. p-values are adjusted over all pairs (max-T, step-down), so that any reported pair is false with
probability alpha at most.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy.stats import rankdata

from cpmmd.core.arrays import Array, Rows
from cpmmd.data.paired import PairedTables
from cpmmd.data.pool import Pool
from cpmmd.draws.labels import units_by_stratum
from cpmmd.draws.pairings import Pairings, Shifts
from cpmmd.evidence import tail_scores, without_rounding
from cpmmd.statistics.columns import adjusted_pvalues, category_levels
from cpmmd.statistics.hsic import ROUNDING, Side, cross_sums

COSINES = 6  # of a column's ranks: the next eigenvalue is below a thousandth of the first
WIDTH = 0.25  # of the kernel on ranks in (0, 1)
GAMMAS = (np.inf, 0.1)
MOST_PAIRS = 10_000  # of columns that are tested
AT_ONCE = 64 * 2**20  # bytes of products under all re-pairings
SURE = 3.0  # standard errors of a rank correlation from which on it has a direction


@dataclass(frozen=True)
class ColumnPair:
    """How a column of x and a column of y go together."""

    x: str  #: the column of x
    y: str  #: the column of y
    pvalue: float  #: adjusted over all pairs
    correlation: float | None  #: Spearman's rank correlation (inside strata where there are some); None where one is a category
    words: str  #: how they go together


@dataclass(frozen=True, eq=False)
class ScoredColumn:
    """A column as the pairs see it."""

    name: str
    features: Array  # centred, each of variance 1
    variances: Array
    ranks: Array | None  # centred; None for a category


@dataclass(frozen=True, eq=False)
class PairScores:
    """Scores of every pair of a column of x and one of y under every re-pairing, the pairs of one column of x together."""

    x: tuple[ScoredColumn, ...]
    y: tuple[ScoredColumn, ...]
    scores: Array

    @classmethod
    def of(cls, tables: PairedTables, draws: Pairings | Shifts) -> PairScores:
        """Score all pairs."""
        x, y = (_read_columns(pool, tables.strata) for pool in (tables.x, tables.y))
        width = sum(column.features.shape[1] for column in y)
        scores, start = list[Array](), 0
        while start < len(x):
            stop, taken = start + 1, x[start].features.shape[1]
            while stop < len(x) and 8 * len(draws) * width * (taken + x[stop].features.shape[1]) <= AT_ONCE:
                taken, stop = taken + x[stop].features.shape[1], stop + 1
            scores += _scores(x[start:stop], y, draws)
            start = stop
        return cls(x, y, np.array(scores))

    def largest(self) -> Array:
        """Return the score of the clearest pair under every re-pairing."""
        return np.asarray(self.scores.max(axis=0))

    def described(self, alpha: float) -> tuple[ColumnPair, ...]:
        """Return every pair with its adjusted p-value, the clearest first."""
        pvalues, columns = adjusted_pvalues(self.scores), len(self.y)
        order = np.lexsort((-self.scores[:, 0], pvalues)).tolist()
        return tuple(_describe(self.x[i // columns], self.y[i % columns], float(pvalues[i]), alpha) for i in order)


def count_pairs(tables: PairedTables) -> int:
    """Return how many pairs of a column of x and one of y there are; 0 where they are too many to be tested."""
    count = len(tables.x.columns) * len(tables.y.columns)
    return count if count <= MOST_PAIRS else 0


def _read_columns(pool: Pool, strata: Rows | None) -> tuple[ScoredColumn, ...]:
    """Return the columns of a table."""
    columns = list[ScoredColumn]()
    for j, name in enumerate(pool.number_names):
        values = pool.numbers[:, j]
        there = ~np.isnan(values)
        ranks = np.full(len(values), 0.5)
        ranks[there] = (rankdata(values[there]) - 0.5) / max(1, there.sum())
        waves = np.arange(1, COSINES + 1)
        features, variances = np.cos(np.pi * ranks[:, None] * waves), np.exp(-((np.pi * WIDTH * waves) ** 2) / 2)
        features[~there] = 0.0
        if not there.all():
            features, variances = np.column_stack([features, ~there]), np.append(variances, variances[0])
        columns.append(ScoredColumn(name, *_standardise(features, variances, strata), _centre(ranks[:, None], strata)[:, 0]))
    for name, texts in pool.categories.items():
        levels = category_levels(texts)
        features = np.equal.outer(levels.codes, np.arange(len(levels.names))).astype(np.float64)
        columns.append(ScoredColumn(name, *_standardise(features, features.var(axis=0), strata), None))
    return tuple(columns)


def _centre(features: Array, strata: Rows | None) -> Array:
    """Return features less the mean of their stratum."""
    centred = features - features.mean(axis=0)
    if strata is not None:
        for inside in units_by_stratum(strata):
            centred[inside] -= centred[inside].mean(axis=0)
    return np.asarray(centred)


def _standardise(features: Array, variances: Array, strata: Rows | None) -> tuple[Array, Array]:
    """Return centred features of variance 1, and the variances that they stand for, relative to the largest; one at least."""
    centred = _centre(features, strata)
    deviation = np.sqrt(np.mean(centred**2, axis=0))
    kept = deviation > 1e-9
    if not kept.any():
        return np.zeros((len(features), 1)), np.zeros(1)
    own = variances[kept]
    return centred[:, kept] / deviation[kept], own / own.max()


def _scores(x: Sequence[ScoredColumn], y: Sequence[ScoredColumn], draws: Pairings | Shifts) -> list[Array]:
    """Return the score of every pair under every re-pairing, each column of x with all of y."""
    first, second = (np.hstack([column.features for column in columns]) for columns in (x, y))
    starts_x, starts_y = (np.cumsum([0, *(column.features.shape[1] for column in columns)]) for columns in (x, y))
    a, b = (np.vstack([_weights(column) for column in columns]) for columns in (x, y))
    values = np.empty((len(GAMMAS), len(x), len(y), len(draws)))
    nothing = np.zeros((len(first), 1))
    loads = [(lambda rows, held=held: (held[rows], nothing[rows])) for held in (first, second)]
    for where, products, _, rows in cross_sums(draws, loads[0], loads[1]):
        squares = np.square(products / rows)
        for k in range(len(GAMMAS)):
            inner = np.add.reduceat(squares * b[:, k], starts_y[:-1], axis=2)
            values[k, :, :, where] = np.add.reduceat(inner * a[:, k, None], starts_x[:-1], axis=1).transpose(1, 2, 0)
    rounding = np.empty((len(GAMMAS), len(x), len(y), 1))
    for k in range(len(GAMMAS)):
        sums = [np.array([w[i:j, k].sum() for i, j in pairwise(starts)]) for w, starts in ((a, starts_x), (b, starts_y))]
        rounding[k, :, :, 0] = ROUNDING * np.multiply.outer(*sums) / len(first)
    values = without_rounding(values, rounding)
    return [tail_scores(values[:, i, j]).max(axis=0) for i in range(len(x)) for j in range(len(y))]


def _weights(column: ScoredColumn) -> Array:
    return Side(column.variances, lambda rows: column.features[rows]).weights(GAMMAS)


def _describe(x: ScoredColumn, y: ScoredColumn, pvalue: float, alpha: float) -> ColumnPair:
    """Return a pair in words."""
    correlation = None
    if x.ranks is not None and y.ranks is not None:
        unit = float(np.sqrt((x.ranks @ x.ranks) * (y.ranks @ y.ranks)))
        correlation = float(x.ranks @ y.ranks) / unit if unit > 0 else 0.0
    if pvalue > alpha:
        words = "no relation found"
    elif correlation is None:
        words = "levels go together" if x.ranks is None and y.ranks is None else "differs between levels"
    elif abs(correlation) * np.sqrt(len(x.features)) < SURE:
        words = "related, neither rising nor falling"
    else:
        words = "rise together" if correlation > 0 else "one falls as the other rises"
    return ColumnPair(x.name, y.name, pvalue, correlation, words)
