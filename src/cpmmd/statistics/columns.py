"""Columns of the data, and how much the samples differ in each under every permutation of the test.

A column's statistics are sums over units of functions of single rows, which do not use labels. Under every permutation the means
of both sides follow from those sums, so that all permutations of all columns take a few matrix products.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import StrEnum
from functools import cached_property
from itertools import chain, product
from typing import Any

import numpy as np
from scipy import special

from cpmmd.core.arrays import Array, Floating, Labels, Objects, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MAX_FEATURES, MAX_LEVELS, MISSING, OTHER, Preparation
from cpmmd.data.table import SECONDS_A_DAY
from cpmmd.draws.layout import Layout
from cpmmd.evidence import normal_scores, sum_or_largest, tail_of, tail_scores
from cpmmd.statistics.samples import Sample
from cpmmd.statistics.strata import FEWEST, Features, Statistic, Strata, UnitSums

PATCHES = 8  # most patches along each side of an image
CHANNELS = 4  # a first or last axis of at most this length holds colours
CLASSES = 32  # of pooled ranks, between which distribution functions are compared
TIE = 1e-9  # of a score: rounding must not split the ties of discrete data
TOGETHER = 2048  # features in one product: 16 MB under 999 permutations
READ = 2**20  # numbers that are gathered together
SCORED = 8  # columns that are scored together: few enough for the cache
SINGLE = 2**24  # below it whole numbers are exact in single precision


class Change(StrEnum):
    """What changed in a column."""

    LOCATION = "location"
    SCALE = "scale"
    SHAPE = "shape"
    SHARE = "share"
    MISSING = "missing"


# The share of missing values has three times the weight of any other statistic of its column: it is one of five, most of which
# detect the same changes, and nothing else detects this one (measured: see docs/theory/where.md).
WEIGHTS: dict[str, float] = {Change.MISSING: 3.0}


@dataclass(frozen=True)
class DataColumn:
    """Matrix columns that belong together."""

    name: str
    label: str
    kind: str
    positions: tuple[int, ...]  # among the number columns of the data; empty for a category
    encoded: tuple[int, ...]  # positions in the prepared matrix: the numbers, their missing-marks, a category's levels


def columns_of(pool: Pool, preparation: Preparation) -> tuple[DataColumn, ...]:
    """Return the columns of the data, encoded columns folded back into the column they came from.

    What a transformer makes of the rows is of no single column.
    """
    encoded: dict[str, list[int]] = {name: [] for name in pool.columns}
    if preparation.transformer is None:
        for position, name in enumerate(preparation.feature_columns):
            encoded[name].append(position)
    if len(pool.row_shape) > 1:
        return tuple(_patches(pool, encoded))
    plain = pool.number_names == tuple(str(i) for i in range(len(pool.number_names)))
    numbers = []
    for position, name in enumerate(pool.number_names):
        kind = "date" if name in pool.dates else "boolean" if pool.kinds.get(name) == "boolean" else "number"
        numbers.append(DataColumn(name, f"column {name}" if plain else name, kind, (position,), tuple(encoded[name])))
    return (*numbers, *(DataColumn(name, name, "category", (), tuple(encoded[name])) for name in pool.categories))


def _patches(pool: Pool, encoded: dict[str, list[int]]) -> Iterable[DataColumn]:
    """Cut images into rectangles: single pixels say little, and there are thousands."""
    shape = pool.row_shape
    grid = np.arange(math.prod(shape)).reshape(shape)
    if len(shape) == 3 and shape[0] <= CHANNELS < shape[2]:  # colours come first
        grid = np.moveaxis(grid, 0, -1)
    cuts = (np.array_split(np.arange(length), min(length, PATCHES)) for length in grid.shape[:2])
    for rows, columns in product(*cuts):
        inside = tuple(grid[np.ix_(rows, columns)].ravel().tolist())
        spans = (f"{part[0]}" if len(part) == 1 else f"{part[0]}-{part[-1]}" for part in (rows, columns))
        name = f"[{', '.join(spans)}]"
        positions = tuple(p for i in inside for p in encoded[pool.number_names[i]])
        yield DataColumn(name, f"patch {name}", "patch", inside, positions)


@dataclass(frozen=True, eq=False)
class Rare:
    """What a category says beyond its frequent levels: new levels of a later sample are rare in the pool, and on one side."""

    classes: Rows  # of each row: its level, those of single rows together, neighbours in frequency together where they are many
    count: int  # number of classes
    rarity: Array  # of each row: one over the number of rows that have its level


@dataclass(frozen=True, eq=False)
class Levels:
    """A category as codes: the level of each row, rare levels under one name, missing values under theirs."""

    names: tuple[str, ...]
    codes: Rows
    rare: Rare | None = None  # where levels share a name


def category_levels(values: Objects) -> Levels:
    """Return the levels of a category, by a rule that does not depend on the order of rows."""
    codes_of: dict[str, int] = {}
    texts = (MISSING if value is None else value for value in values)
    codes = np.fromiter((codes_of.setdefault(text, len(codes_of)) for text in texts), dtype=np.intp, count=len(values))
    names, counts = list(codes_of), np.bincount(codes, minlength=len(codes_of))
    ranked = sorted(range(len(names)), key=lambda i: (-counts[i], names[i]))
    kept = [i for i in ranked[: MAX_LEVELS - 1] if counts[i] >= FEWEST or names[i] == MISSING]
    if len(ranked) - len(kept) <= 1:  # one level needs no other name
        kept = ranked
    position = np.full(len(names), len(kept))
    position[kept] = np.arange(len(kept))
    if len(kept) == len(names):
        return Levels(tuple(names[i] for i in kept), position[codes])
    classes = _rare_classes(counts[ranked])[np.argsort(ranked)][codes]
    rare = Rare(classes, int(classes.max()) + 1, 1 / counts[codes])
    return Levels((*(names[i] for i in kept), OTHER), position[codes], rare if rare.count > 1 else None)


def _rare_classes(counts: Rows) -> Rows:
    """Return the class of each level, the most frequent first: its own, or that of its neighbours where levels are too many."""
    own = np.arange(len(counts))
    several = int(np.count_nonzero(counts > 1))
    frequent = MAX_FEATURES - MAX_FEATURES // 4
    if several >= MAX_FEATURES:
        left = several - frequent
        own[frequent:several] = frequent + np.arange(left) * (MAX_FEATURES - 1 - frequent) // left
    own[several:] = min(several, MAX_FEATURES - 1)
    return own


def number_values(pool: Pool, rows: Rows, column: DataColumn) -> Array:
    """Return a column's numbers on some rows of the pool, a patch's as its mean."""
    values = pool.numbers[rows, list(column.positions)]
    return np.asarray(values[:, 0] if len(column.positions) == 1 else values.mean(axis=1))


def row_value(pool: Pool, row: int, column: DataColumn) -> object:
    """Return a value of the pool as it came: a date as text, a whole number whole, None where missing, a patch as its mean."""
    if column.kind == "category":
        return pool.categories[column.name][row]
    number = float(np.mean(pool.numbers[row, list(column.positions)]))
    if math.isnan(number):
        return None
    if column.kind == "date":
        return date_text(number)
    if column.kind == "boolean":
        return bool(number)
    return int(number) if pool.kinds.get(column.name) == "integer" else number


def date_text(days: float) -> str:
    """Return days since 1970 as a date, with the time of day where it has one."""
    stamp = str(np.datetime64(round(days * SECONDS_A_DAY), "s"))
    return stamp.removesuffix("T00:00:00")


def number_features(ranks: Array, sums: UnitSums) -> list[Features]:
    """Return the features of numbers or dates from their ranks, NaN where missing: normal scores, Legendre's 3 and 4, classes."""
    rows = np.flatnonzero(~np.isnan(ranks))
    ranks, missing = ranks[rows], _missing_features(len(ranks), rows, sums)
    normal, centred = special.ndtri(ranks), 2 * ranks - 1
    squares = centred**2
    third, fourth = (5 * squares - 3) * centred / 2, ((35 * squares - 30) * squares + 3) / 8  # Legendre's
    smooth = [normal, normal**2, np.sqrt(7) * third, 3 * fourth]
    classes = sums.counts(np.minimum((ranks * CLASSES).astype(int), CLASSES - 1), CLASSES, rows)
    below, weights = _distribution(classes)
    statistics: dict[str, Statistic] = {
        Change.LOCATION: lambda D: D[:, 0] ** 2,
        Change.SCALE: lambda D: D[:, 1] ** 2,
        Change.SHAPE: lambda D: (D[:, 2:4] ** 2).sum(axis=1),
        "distribution": lambda D: np.square(D[:, 4:]) @ weights,
    }
    functions = np.column_stack([sums.of(values - values.mean(), rows) for values in smooth])
    return [sums.features(sums.of(rows=rows), statistics, functions, below), *missing]


def _distribution(classes: Array) -> tuple[Array, Array]:
    """Return how many rows of each unit are in a class or below, and the weight of each class.

    The weighted sum of squared differences of their means is Anderson and Darling's distance of distribution functions.
    """
    shares = classes.sum(axis=0) / classes.sum()
    below = np.cumsum(shares)[:-1]
    inside = (shares[:-1] > 0) & (below < 1 - 1e-12)
    weights = shares[:-1][inside] / (below * (1 - below))[inside]
    return np.cumsum(classes, axis=1)[:, :-1][:, inside], weights


def two_value_features(values: Array, sums: UnitSums) -> list[Features]:
    """Return the features of a column of at most two values: the share of the larger, and which are missing."""
    rows = np.flatnonzero(~np.isnan(values))
    if not len(rows):
        return []
    marks = (values[rows] == values[rows].max()).astype(np.float64)
    share = sums.features(sums.of(rows=rows), {Change.SHARE: lambda D: D[:, 0] ** 2}, counts=sums.of(marks, rows)[:, None])
    return [share, *_missing_features(len(values), rows, sums)]


def _missing_features(count: int, there: Rows, sums: UnitSums) -> list[Features]:
    """Return the features of missing values; none where no value is missing."""
    if len(there) == count:
        return []
    rows = sums.of()
    return [sums.features(rows, {Change.MISSING: lambda D: D[:, 0] ** 2}, counts=(rows - sums.of(rows=there))[:, None])]


def level_features(levels: Levels, sums: UnitSums) -> list[Features]:
    """Return the features of a category: the chi-square of its levels, and the single level that changed most.

    Where levels share a name, all of them are looked at as well: a chi-square of their classes, and how rare a row's level is.
    """
    counts, rare = sums.counts(levels.codes, len(levels.names)), levels.rare
    shares, first = counts.sum(axis=0) / counts.sum(), 0 if rare is None else 1  # sums come before counts
    own, whole = slice(first, first + len(shares)), [counts]
    statistics: dict[str, Statistic] = {}
    if len(shares) > 1:
        statistics["levels"] = lambda D: (D[:, own] ** 2) @ (1 / shares)
    if len(shares) > 2:
        variances = sums.level_variances(counts)
        varies = np.flatnonzero(variances > 0)  # inside strata, a level that all or no rows have says nothing
        statistics["level"] = lambda D: (D[:, first + varies] ** 2 / variances[varies]).max(axis=1, initial=0.0)
    if len(shares) > 1 and MISSING in levels.names:
        position = first + levels.names.index(MISSING)
        statistics[Change.MISSING] = lambda D: D[:, position] ** 2
    if rare is not None:
        classes = sums.counts(rare.classes, rare.count)
        weights = classes.sum() / classes.sum(axis=0)
        whole.append(classes)
        statistics["all levels"] = lambda D: (D[:, own.stop :] ** 2) @ weights
        statistics["rarity"] = lambda D: D[:, 0] ** 2
    if not statistics:
        return []
    rarity = None if rare is None else sums.of(rare.rarity)[:, None]
    return [sums.features(sums.of(), statistics, sums=rarity, counts=np.hstack(whole))]


@dataclass(frozen=True, eq=False)
class ReadColumn:
    """A column's values on the rows that were permuted, and their features."""

    column: DataColumn
    values: Array  # numbers, NaN where missing; of a category the levels' codes
    features: list[Features]
    strata: Strata  # inside which the column is compared
    levels: Levels | None = None  # of a category
    ranks: Array | None = None  # of numbers, NaN where missing; None where there are at most two, and for categories

    @cached_property
    def there(self) -> Labels:
        """Which rows have a value."""
        return ~np.isnan(self.values) if self.levels is None else self.values != self.code(MISSING)

    def code(self, level: str) -> int:
        """Return the code of a level, -1 where the column has none of that name."""
        names = () if self.levels is None else self.levels.names
        return names.index(level) if level in names else -1

    @property
    def sides(self) -> tuple[Labels, Labels]:
        """Which rows of X, and which of Y, have a value."""
        return self.there & self.strata.labels, self.there & ~self.strata.labels

    @cached_property
    def numbers(self) -> tuple[Sample, Sample]:
        """The numbers of both samples, without missing values."""
        return self.strata.samples(self.values, self.there)

    def marks(self, marks: Labels, of: Labels | None = None) -> tuple[Sample, Sample]:
        """Return a mark of each row, as 1 or 0, in either sample; of some rows only, where ``of`` says which."""
        return self.strata.samples(marks.astype(np.float64), np.ones(len(marks), dtype=bool) if of is None else of)

    @cached_property
    def missing(self) -> tuple[float, float]:
        """Shares of missing values."""
        x, y = self.marks(~self.there)
        return x.mean(x.values), y.mean(y.values)

    @cached_property
    def different(self) -> tuple[Array, Rows]:
        """The distinct numbers, and how many rows have each."""
        return np.unique(self.values[self.there], return_counts=True)

    @cached_property
    def shares(self) -> dict[str, tuple[float, float]]:
        """Shares of a category's levels, largest difference first."""
        if self.levels is None:
            return {}
        names, labels = self.levels.names, self.strata.labels
        sides = zip(self.marks(self.there), (labels, ~labels), strict=True)
        x, y = (sample.shares(self.levels.codes[side], len(names)).tolist() for sample, side in sides)
        order = sorted(range(len(names)), key=lambda i: (-abs(y[i] - x[i]), names[i]))
        return {names[i]: (x[i], y[i]) for i in order}


def read_columns(pool: Pool, columns: Sequence[DataColumn], units: Layout, strata: Strata) -> Iterator[ReadColumn]:
    """Yield the columns with their features; each is read once."""
    sums = strata.sums(units)
    single, taken = [column.positions[0] for column in columns if len(column.positions) == 1], {}
    step = max(1, READ // max(1, len(units.rows)))
    for column in columns:
        if column.kind == "category":
            levels = category_levels(pool.categories[column.name][units.rows])
            yield ReadColumn(column, levels.codes.astype(np.float64), level_features(levels, sums), strata, levels)
            continue
        if len(column.positions) > 1:
            values = number_values(pool, units.rows, column)
        else:
            if column.positions[0] not in taken:  # several are gathered together
                some = single[single.index(column.positions[0]) :][:step]
                taken = dict(zip(some, np.ascontiguousarray(pool.numbers[units.rows, some].T), strict=True))
            values = taken[column.positions[0]]
        there = ~np.isnan(values)
        known = values[there]
        if column.kind == "boolean" or not len(known) or np.all((known == known.min()) | (known == known.max())):
            yield ReadColumn(column, values, two_value_features(values, sums), strata)
            continue
        ranks = np.full(len(values), np.nan)
        ranks[there] = strata.ranks(known, there)
        yield ReadColumn(column, values, number_features(ranks, sums), strata, ranks=ranks)


@dataclass(frozen=True, eq=False)
class ColumnScores:
    """Scores of one column."""

    scores: Array  # of the column, a permutation each, the labels as they came first
    parts: dict[str, float]  # of its statistics, on the labels as they came


def score_columns(features: Sequence[Sequence[Features]], units: Layout) -> list[ColumnScores]:
    """Return the scores of columns, each given by its features; of several samples by those of each against all others."""
    functions = list(chain.from_iterable(features))
    apart = [_differences(functions, layout) for layout in units.against or (units,)]
    shares = [1 - layout.first / layout.count for layout in units.against]
    scored: list[ColumnScores] = []
    for start in range(0, len(features), SCORED):
        named: list[dict[str, Array]] = []
        for own in features[start : start + SCORED]:
            values = [_statistics(own, differences) for differences in apart]
            named.append({name: _joined([some[name] for some in values], shares) for name in values[0]})
        scored += _scores(named, len(units.labels))
    return scored


def _statistics(own: Sequence[Features], differences: Iterator[Array]) -> dict[str, Array]:
    """Return the statistics of a column under every permutation, by what they detect; later differences are of other columns."""
    return {
        name: statistic(D)
        for functions, D in zip(own, differences, strict=False)
        for name, statistic in functions.statistics.items()
    }


def _joined(apart: Sequence[Array], shares: Sequence[float]) -> Array:
    """Return a statistic of two samples as it is, and one of several from those of each against all others."""
    return sum_or_largest([values[None] for values in apart], shares)[0] if shares else apart[0]


def _scores(named: Sequence[dict[str, Array]], count: int) -> Iterator[ColumnScores]:
    """Yield the scores of some columns, given by their statistics under so many permutations."""
    values = [statistic for of_column in named for statistic in of_column.values()]
    normal = normal_scores(np.array(values)) if values else np.empty((0, count))
    ends = np.cumsum([len(of_column) for of_column in named])
    parts = [normal[end - len(of_column) : end] for of_column, end in zip(named, ends, strict=True)]
    weights = [np.array([WEIGHTS.get(name, 1.0) for name in of_column]) for of_column in named]
    largest = np.zeros((len(named), count))
    for best, part, weight in zip(largest, parts, weights, strict=True):
        if (weight != 1).any():
            best[:] = (tail_of(part) + np.log(weight)[:, None]).max(axis=0)
        elif len(part):
            best[:] = tail_of(part.max(axis=0))
    several = [len(part) > 1 for part in parts]
    largest[several] = tail_scores(largest[several])
    for best, part, of_column in zip(largest, parts, named, strict=True):
        yield ColumnScores(best, dict(zip(of_column, tail_of(part[:, 0]).tolist(), strict=True)))


def largest_score(scores: Array) -> Array:
    """Return the largest of several scores under each permutation, scored again to be comparable with a single score."""
    largest: Array = scores.max(axis=0)
    return largest if len(scores) == 1 else tail_scores(largest[None])[0]


def adjusted_pvalues(scores: Array) -> Array:
    """Return a p-value for each row of scores, adjusted for all rows (Westfall and Young, step-down).

    The row with the largest observed score is compared with the largest of all rows under each permutation, the next one with
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


def _differences(features: Sequence[Features], units: Layout) -> Iterator[Array]:
    """Yield the difference of means of each group of features under every permutation, in units of its standard error.

    Whole numbers are multiplied in single precision while no sum of them can leave it: the same digits at half the price.
    """
    whole = np.float32 if len(units.rows) < SINGLE else np.float64
    ends = np.cumsum([functions.width for functions in features])
    start = 0
    while start < len(features):
        before = ends[start - 1] if start else 0
        stop = min(int(np.searchsorted(ends, before + TOGETHER)) + 1, len(features))
        group = features[start:stop]
        counts, counted = _of_x([np.column_stack([functions.base, functions.counts]) for functions in group], units, whole)
        sums, summed = _of_x([functions.sums for functions in group], units, np.float64)
        for functions, number, numbers, value, values in zip(group, counts, counted, sums, summed, strict=True):
            of_x = np.hstack([number[:, :1], value, number[:, 1:]], dtype=np.float64)
            yield functions.differences(of_x, np.concatenate([numbers[:1], values, numbers[1:]]), units.labels)
        start = stop


def _of_x(sums: Sequence[Array], units: Layout, dtype: type[np.floating[Any]]) -> tuple[list[Floating], list[Array]]:
    """Return several matrices of sums over units added up over the units that each permutation calls X, and over all units."""
    stacked = np.hstack(sums)
    products = [labels @ stacked.astype(dtype) for labels in units.labels.blocks(dtype)] if stacked.shape[1] else []
    of_x = np.concatenate(products) if products else np.zeros((len(units.labels), 0), dtype)
    edges = np.cumsum([some.shape[1] for some in sums])[:-1]
    return np.split(of_x, edges, axis=1), np.split(stacked.sum(axis=0), edges)
