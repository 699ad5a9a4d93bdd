"""The score of each column under every relabeling of the test: how far the samples are apart in it, in one currency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.data.pool import Pool
from cpmmd.draws.layout import Layout
from cpmmd.evidence import tail_scores
from cpmmd.explain.columns import (
    DataColumn,
    Features,
    Levels,
    UnitSums,
    boolean_features,
    category_levels,
    level_features,
    number_features,
)
from cpmmd.explain.strata import Cells, Strata

# Several hypotheses, the same relabelings: p-values that hold for all of them together (Westfall and Young, step-down).


TIE = 1e-9  # of a score: rounding must not split the ties of discrete data


def adjusted_pvalues(scores: Array) -> Array:
    """Return a p-value for each row of scores, adjusted for all rows.

    The row with the largest observed score is compared with the largest of all rows under each relabeling, the next one with
    the largest of the rows that are left, and so on; a p-value is never below that of a row before it.
    """
    observed = scores[:, 0]
    order = np.argsort(-observed, kind="stable")
    left = np.full(scores.shape[1], -np.inf)
    pvalues = np.empty(len(scores))
    for row in order[::-1]:  # from the weakest up: the maximum over what is left grows by one row at a time
        np.maximum(left, scores[row], out=left)
        pvalues[row] = np.mean(left >= observed[row] - TIE * max(1.0, abs(observed[row])))
    pvalues[order] = np.maximum.accumulate(pvalues[order])
    return pvalues


TOGETHER = 2048  # features in one product: 16 MB under 999 relabelings
# A mark of what is missing counts three times as much as any other statistic of its column: there it is one among five, most of
# which hear the same thing twice, and a share has no other way to be heard (measured: see docs/theory/where.md).
WEIGHTS = {"missing": 3.0}


@dataclass(frozen=True, eq=False)
class ReadColumn:
    """A column's values on the rows that were relabelled, and their features."""

    column: DataColumn
    values: Array  # numbers, NaN where missing; of a category the levels' codes
    # pooled ranks of numbers, NaN where missing; the values themselves where there are at most two, and for categories
    ranks: Array
    levels: Levels | None  # of a category
    features: list[Features]
    strata: Strata | None = None  # inside which the column is compared, where a design has any; ranks may be those inside them


@dataclass(frozen=True, eq=False)
class ColumnScores:
    """Scores of one column."""

    scores: Array  # of the column, a relabeling each, the labels as they came first
    parts: dict[str, float]  # of its statistics, on the labels as they came


def read_columns(pool: Pool, columns: Sequence[DataColumn], units: Layout, strata: Strata | None = None) -> Iterator[ReadColumn]:
    """Yield the columns with their features; each is read once."""
    if strata is None:
        yield from _read(pool, columns, units, UnitSums(np.repeat(np.arange(len(units.starts)), units.counts), len(units.starts)))
        return
    cells = Cells.of(strata, units)
    for one in _read(pool, columns, units, UnitSums(cells.of_row, len(cells.unit), cells.stratum), strata.ranked):
        yield replace(one, features=[cells.centre(features) for features in one.features], strata=strata)


def _read(
    pool: Pool, columns: Sequence[DataColumn], units: Layout, sums: UnitSums, ranked: Rows | None = None
) -> Iterator[ReadColumn]:
    for column in columns:
        if column.kind == "category":
            levels = category_levels(pool.categories[column.name][units.rows])
            codes = levels.codes.astype(np.float64)
            yield ReadColumn(column, codes, codes, levels, level_features(levels, sums))
            continue
        block = pool.numbers[units.rows, list(column.positions)]
        values = block[:, 0] if len(column.positions) == 1 else block.mean(axis=1)
        if column.kind == "boolean" or _at_most_two(values):
            yield ReadColumn(column, values, values, None, boolean_features(values, sums))
            continue
        features, ranks = number_features(values, sums, ranked)
        yield ReadColumn(column, values, ranks, None, features)


def _at_most_two(values: Array) -> bool:
    there = values[~np.isnan(values)]
    return len(there) == 0 or bool(np.all((there == there.min()) | (there == there.max())))


def score_columns(features: Sequence[Sequence[Features]], units: Layout) -> list[ColumnScores]:
    """Return the scores of columns, each given by its features."""
    count = len(units.labels)
    differences = _differences(list(chain.from_iterable(features)), units)
    return [_score([(one, next(differences)) for one in own], count) for own in features]


def _score(parts: list[tuple[Features, Array]], count: int) -> ColumnScores:
    """Return a column's score: the largest tail score of its statistics, scored once more so that columns are comparable."""
    named = {name: statistic(D) for one, D in parts for name, statistic in one.statistics.items()}
    if not named:
        return ColumnScores(np.zeros(count), {})
    scores = tail_scores(np.array(list(named.values())))
    largest = (scores + np.log([[WEIGHTS.get(name, 1.0)] for name in named])).max(axis=0)
    if len(named) > 1:
        largest = tail_scores(largest[None])[0]
    return ColumnScores(largest, dict(zip(named, scores[:, 0].tolist(), strict=True)))


def _differences(features: list[Features], units: Layout) -> Iterator[Array]:
    """Yield the difference of means of each group of features under every relabeling, in units of its standard error."""
    for group in _in_groups(features):
        stacked = np.hstack([np.column_stack([one.base, one.sums]) for one in group])
        of_x = np.concatenate([labels @ stacked for labels in units.labels.blocks()])
        start = 0
        for one in group:
            stop = start + 1 + one.sums.shape[1]
            if one.precision is None:
                yield mean_differences(of_x[:, start:stop], stacked[:, start:stop].sum(axis=0))
            else:
                precision = np.concatenate([one.precision(labels) for labels in units.labels.blocks()])
                yield centred_differences(of_x[:, start + 1 : stop], precision)
            start = stop


def _in_groups(features: list[Features]) -> Iterator[list[Features]]:
    group: list[Features] = []
    width = 0
    for one in features:
        group.append(one)
        width += 1 + one.sums.shape[1]
        if width >= TOGETHER:
            yield group
            group, width = [], 0
    if group:
        yield group


def mean_differences(of_x: Array, total: Array) -> Array:
    """Return the means of X less those of Y, times the root of m n / (m + n); zero where a side has no rows that count.

    The first column of ``of_x`` and ``total`` counts the rows, the others are sums.
    """
    m, n = of_x[:, :1], total[0] - of_x[:, :1]
    both = (m > 0) & (n > 0)
    m_safe, n_safe = np.where(both, m, 1.0), np.where(both, n, 1.0)
    apart = of_x[:, 1:] / m_safe - (total[1:] - of_x[:, 1:]) / n_safe
    return np.asarray(np.where(both, apart * np.sqrt(m_safe * n_safe / total[0]), 0.0))


def centred_differences(of_x: Array, precision: Array) -> Array:
    """Return the strata's differences of means by their precision, in units of their standard error; zero where none has both.

    ``of_x`` are sums over X of functions whose mean in each stratum is zero: see :mod:`cpmmd.explain.strata`.
    """
    both = precision > 0
    return np.asarray(np.where(both[:, None], of_x / np.sqrt(np.where(both, precision, 1.0))[:, None], 0.0))
