"""Columns as a person knows them: the columns of the data, or patches of an image, behind the encoded matrix."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import PlainDict
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MAX_LEVELS, MISSING, OTHER, Preparation
from cpmmd.data.table import SECONDS_A_DAY, Objects

# What a column's statistics are made of: functions of single rows that look at no label, summed over units.
#
# Under every relabeling the mean of such a function on either side comes from those sums, so that all relabelings of all columns
# are a few matrix products, whatever the number of rows.


Statistic = Callable[[Array], Array]  # from differences of means, a relabeling a row, to a number each
CLASSES = 32  # of pooled ranks, between which distribution functions are compared
FEWEST = 5  # rows of a level that counts on its own: with fewer, a chi-square hears of nothing else


@dataclass(frozen=True, eq=False)
class Features:
    """Functions of the rows with one denominator, and the statistics that are made of them."""

    base: Array  # rows that count, summed over units: those with a value, or all of them
    sums: Array  # the functions, summed over units: a unit a row
    # each by its name: ``"location"``, ``"spread"``, ``"shape"``, ``"distribution"``, ``"levels"``, ``"level"``, ``"share"``,
    # ``"missing"``
    statistics: dict[str, Statistic]
    # from labelings of units (rows of ones and zeros) to what a difference is worth under each, where strata are compared:
    # their means are taken off the functions. None where all rows are one.
    precision: Statistic | None = None


@dataclass(frozen=True, eq=False)
class UnitSums:
    """Sums over units of values that are given row by row."""

    unit: Rows  # the unit of each row
    count: int  # number of units
    stratum: Rows | None = None  # of each unit, where strata are compared

    def of(self, values: Array | None = None, rows: Rows | None = None) -> Array:
        """Return the sums of values (ones when None), which are given for ``rows`` (all of them when None)."""
        unit = self.unit if rows is None else self.unit[rows]
        return np.bincount(unit, weights=values, minlength=self.count).astype(np.float64)

    def counts(self, codes: Rows, classes: int, rows: Rows | None = None) -> Array:
        """Return how many rows of each unit have each code."""
        unit = self.unit if rows is None else self.unit[rows]
        counted = np.bincount(unit * classes + codes, minlength=self.count * classes)
        return counted.reshape(self.count, classes).astype(np.float64)


def number_features(values: Array, units: UnitSums, stratum: Rows | None = None) -> tuple[list[Features], Array]:
    """Return the features of numbers or dates (of their pooled ranks, of which are missing), and the ranks, NaN where missing.

    Ranks are those inside each ``stratum`` where that is given.
    """
    there = np.flatnonzero(~np.isnan(values))
    ranks = np.full(len(values), np.nan)
    ranks[there] = pooled_ranks(values[there]) if stratum is None else ranks_inside(values[there], stratum[there])
    found = [] if not len(there) else [_rank_features(ranks[there], units, there)]
    return [*found, *_missing_features(len(values), there, units)], ranks


def pooled_ranks(values: Array) -> Array:
    """Return the ranks of values between 0 and 1, those of equal values their mean."""
    order = np.argsort(values, kind="stable")
    ordered = values[order]
    starts = np.flatnonzero(np.concatenate([[True], ordered[1:] != ordered[:-1]]))
    ends = np.append(starts[1:], len(values))
    ranks = np.empty(len(values))
    ranks[order] = np.repeat((starts + ends) / (2 * len(values)), ends - starts)
    return ranks


def ranks_inside(values: Array, stratum: Rows) -> Array:
    """Return the ranks of values among those of their stratum, between 0 and 1, those of equal values their mean."""
    order = np.lexsort([values, stratum])
    ordered, own = values[order], stratum[order]
    starts = np.flatnonzero(np.concatenate([[True], (ordered[1:] != ordered[:-1]) | (own[1:] != own[:-1])]))
    ends = np.append(starts[1:], len(values))
    sizes = np.bincount(stratum)
    before = (np.cumsum(sizes) - sizes)[own[starts]]  # rows of the strata before
    ranks = np.empty(len(values))
    ranks[order] = np.repeat(((starts + ends) / 2 - before) / sizes[own[starts]], ends - starts)
    return ranks


def _rank_features(ranks: Array, units: UnitSums, rows: Rows) -> Features:
    """Return location and spread by normal scores, shape by Legendre polynomials of degree 3 and 4, and classes of ranks."""
    normal, centred = special.ndtri(ranks), 2 * ranks - 1
    smooth = [normal, normal**2, *(np.sqrt(2 * k + 1) * special.eval_legendre(k, centred) for k in (3, 4))]
    classes = units.counts(np.minimum((ranks * CLASSES).astype(int), CLASSES - 1), CLASSES, rows)
    sums = np.column_stack([*(units.of(one - one.mean(), rows) for one in smooth), classes])
    shares = classes.sum(axis=0) / len(ranks)
    return Features(
        units.of(rows=rows),
        sums,
        {
            "location": lambda D: D[:, 0] ** 2,
            "spread": lambda D: D[:, 1] ** 2,
            "shape": lambda D: (D[:, 2:4] ** 2).sum(axis=1),
            "distribution": lambda D: _anderson_darling(D[:, 4:], shares),
        },
    )


def _anderson_darling(differences: Array, shares: Array) -> Array:
    """Return the squared differences of the distribution functions, in units of their variance, averaged over the pool."""
    below = np.cumsum(shares)[:-1]
    inside = (shares[:-1] > 0) & (below < 1 - 1e-12)
    if not inside.any():
        return np.zeros(len(differences))
    apart = np.cumsum(differences, axis=1)[:, :-1][:, inside]
    weights = shares[:-1][inside] / (below * (1 - below))[inside]
    return np.asarray((apart**2) @ weights)


def boolean_features(values: Array, units: UnitSums) -> list[Features]:
    """Return the features of a column of at most two values: the share of the larger, and which are missing."""
    there = np.flatnonzero(~np.isnan(values))
    found = []
    if len(there):
        marks = (values[there] == values[there].max()).astype(np.float64)
        found = [Features(units.of(rows=there), units.of(marks, there)[:, None], {"share": lambda D: D[:, 0] ** 2})]
    return [*found, *_missing_features(len(values), there, units)]


def _missing_features(count: int, there: Rows, units: UnitSums) -> list[Features]:
    """Return which values are missing; nothing where none or all are."""
    if len(there) in (0, count):
        return []
    every = units.of()
    return [Features(every, (every - units.of(rows=there))[:, None], {"missing": lambda D: D[:, 0] ** 2})]


@dataclass(frozen=True, eq=False)
class Levels:
    """A category in whole numbers: the level of each row, rare ones under one name, missing ones under theirs."""

    names: tuple[str, ...]
    codes: Rows


def category_levels(values: Objects) -> Levels:
    """Return the levels of a category, by a rule that is symmetric in the rows."""
    texts = np.array([MISSING if value is None else value for value in values], dtype=object)
    names, codes, counts = _factorise(texts)
    ranked = sorted(range(len(names)), key=lambda i: (-counts[i], names[i]))
    kept = [i for i in ranked[: MAX_LEVELS - 1] if counts[i] >= FEWEST or names[i] == MISSING]
    if len(ranked) - len(kept) <= 1:  # one level needs no other name
        kept = ranked
    position = np.full(len(names), len(kept))
    position[kept] = np.arange(len(kept))
    rest = (OTHER,) if len(kept) < len(names) else ()
    return Levels((*(names[i] for i in kept), *rest), position[codes])


def _factorise(texts: Objects) -> tuple[list[str], Rows, Rows]:
    codes_of: dict[str, int] = {}
    codes = np.fromiter((codes_of.setdefault(text, len(codes_of)) for text in texts), dtype=np.intp, count=len(texts))
    return list(codes_of), codes, np.bincount(codes, minlength=len(codes_of))


def level_features(levels: Levels, units: UnitSums) -> list[Features]:
    """Return the features of a category: the chi-square of its levels, and the single level that changed most."""
    counts = units.counts(levels.codes, len(levels.names))
    shares = counts.sum(axis=0) / counts.sum()
    if len(shares) < 2:
        return []
    statistics: dict[str, Statistic] = {"levels": lambda D: (D**2) @ (1 / shares)}
    if len(shares) > 2:
        variances = _variances(counts, units)
        varies = variances > 0  # a level that strata have whole or not at all tells nothing inside them
        statistics["level"] = lambda D: (D[:, varies] ** 2 / variances[varies]).max(axis=1, initial=0.0)
    if MISSING in levels.names:
        position = levels.names.index(MISSING)
        statistics["missing"] = lambda D: D[:, position] ** 2
    return [Features(units.of(), counts, statistics)]


def _variances(counts: Array, units: UnitSums) -> Array:
    """Return the variances of the levels' marks, those inside strata where strata are compared."""
    if units.stratum is None:
        shares = counts.sum(axis=0) / counts.sum()
        return np.asarray(shares * (1 - shares))
    inside = np.zeros((int(units.stratum.max()) + 1, counts.shape[1]))
    np.add.at(inside, units.stratum, counts)
    rows = inside.sum(axis=1, keepdims=True)
    return np.asarray((inside * (1 - inside / rows)).sum(axis=0) / counts.sum())


PATCHES = 8  # at most so many along each side of an image
CHANNELS = 4  # a first or last axis of at most this length is one of colours


@dataclass(frozen=True)
class DataColumn:
    """Matrix columns that belong together."""

    name: str
    label: str
    kind: str
    positions: tuple[int, ...]  # among the number columns of the data; empty for a category
    encoded: tuple[int, ...]  # positions in the prepared matrix: the numbers, their missing-marks, a category's levels


def columns_of(pool: Pool, preparation: Preparation) -> tuple[DataColumn, ...]:
    """Return the columns of the data, encoded columns folded back into the column they came from."""
    encoded: dict[str, list[int]] = {name: [] for name in pool.columns}
    for position, name in enumerate(preparation.feature_columns):
        encoded[name].append(position)
    if len(pool.row_shape) > 1:
        return tuple(_patches(pool, encoded))
    plain = pool.number_names == tuple(str(i) for i in range(len(pool.number_names)))
    numbers = [
        DataColumn(name, f"column {name}" if plain else name, _kind(pool, name), (position,), tuple(encoded[name]))
        for position, name in enumerate(pool.number_names)
    ]
    return (*numbers, *(DataColumn(name, name, "category", (), tuple(encoded[name])) for name in pool.categories))


def _kind(pool: Pool, name: str) -> str:
    if name in pool.dates:
        return "date"
    return "boolean" if pool.kinds.get(name) == "boolean" else "number"


def _patches(pool: Pool, encoded: dict[str, list[int]]) -> Iterable[DataColumn]:
    """Cut images into rectangles: one pixel permuted changes next to nothing, and nobody reads a thousand of them."""
    shape = pool.row_shape
    colours_first = len(shape) == 3 and shape[0] <= CHANNELS < shape[2]
    numbers = np.arange(math.prod(shape)).reshape(shape)
    grid = np.moveaxis(numbers, 0, -1) if colours_first else numbers
    for rows in _cut(grid.shape[0]):
        for columns in _cut(grid.shape[1]):
            inside = tuple(grid[rows, columns].ravel().tolist())
            name = f"[{_span(rows)}, {_span(columns)}]"
            positions = tuple(p for i in inside for p in encoded[pool.number_names[i]])
            yield DataColumn(name, f"patch {name}", "patch", inside, positions)


def _cut(length: int) -> list[slice]:
    parts = np.array_split(np.arange(length), min(length, PATCHES))
    return [slice(int(part[0]), int(part[-1]) + 1) for part in parts]


def _span(part: slice) -> str:
    last = part.stop - 1
    return f"{part.start}" if part.start == last else f"{part.start}-{last}"


def row_values(pool: Pool, row: int, columns: Iterable[DataColumn]) -> PlainDict:
    """Return one row of the pool as it came: dates as text, whole numbers whole, None where missing, a patch as its mean."""
    return {column.name: _value(pool, row, column) for column in columns}


def _value(pool: Pool, row: int, column: DataColumn) -> Any:
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


def number_values(pool: Pool, rows: Rows, column: DataColumn) -> Array:
    """Return a column's numbers on some rows of the pool, a patch's as its mean."""
    values = pool.numbers[rows, list(column.positions)]
    return np.asarray(values[:, 0] if len(column.positions) == 1 else values.mean(axis=1))
