"""Summaries of a column in both samples, the words for its difference, and whether it is suspicious."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np
from scipy.special import ndtri

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.text import sanitize
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MISSING
from cpmmd.explain.differences import LONGEST, ColumnDifference, ColumnEffect, Histogram
from cpmmd.explain.effects import days_effect, distribution_effect, largest_difference, mean_effect, sd_effect, share_effect
from cpmmd.statistics.columns import Change, DataColumn, ReadColumn, date_text
from cpmmd.statistics.samples import Sample

LEVELS = 5  # of a category, those with the largest difference
BARS = 12  # distinct values, each with a bar of its own; more are cut into classes
CLASSES = 24  # of numbers in a histogram
Finding = tuple[str, Change | None, ColumnEffect | None]  # the words, what changed, and its effect size


def describe(read: ReadColumn, parts: dict[str, float]) -> ColumnDifference:
    """Return the difference of a column, as yet without its p-value."""
    column, (words, change, effect) = read.column, find_difference(read, parts)
    means: tuple[float | None, float | None] = (None, None)
    names: list[str] = []
    deviations, levels, boolean = means, None, column.kind == "boolean"
    if read.levels is None:
        x, y = (sample.moments if sample.size else (None, None) for sample in read.numbers)
        means, deviations = (x[0], y[0]), (x[1], y[1])
        largest = largest_difference(*read.numbers)[0] if read.strata.in_both(read.there) else 0.0
        distance = max(largest, abs(read.missing[1] - read.missing[0]))
        values, counts = read.different
        if len(values) <= BARS:
            names = ["true" if boolean and value else "false" if boolean else f"{value:.6g}" for value in values]
    else:
        levels = dict(list(read.shares.items())[:LEVELS])
        # Not sum(): from Python 3.12 on it rounds otherwise, and the digits would depend on the version.
        distance = reduce(add, (abs(q - p) for p, q in read.shares.values()), 0.0) / 2
        names, counts = list(read.levels.names), np.bincount(read.levels.codes, minlength=len(read.levels.names))
    rare = frozenset(name for name, few in zip(names, read.strata.rare(counts), strict=False) if few)
    histogram = _histogram(read, names)
    found = ColumnDifference(column.name, column.label, column.kind, 1.0, words, effect, distance, *means, *deviations, levels)
    return replace(found, missing_x=read.missing[0], missing_y=read.missing[1], histogram=histogram, rare=rare, change=change)


def _histogram(read: ReadColumn, names: Sequence[str]) -> Histogram | None:
    """Return both samples' values in classes: bars for levels, booleans and few numbers; None where all values are missing."""
    if not read.there.any():
        return None
    if read.levels is not None:
        shown = dict(sorted(list(read.shares.items())[:BARS], key=lambda item: -sum(item[1])))
        return Histogram((), tuple(shown), *(tuple(pair[i] for pair in shown.values()) for i in (0, 1)))
    if names and read.column.kind != "date":
        edges, places = np.zeros(0), [np.searchsorted(read.different[0], sample.values) for sample in read.numbers]
    else:
        values, names = read.values[read.there], ()
        low, high = np.quantile(values, [0.005, 0.995])  # of the pool, so that one outlier does not flatten the rest
        edges = np.linspace(*((low, high) if high > low else (values.min(), values.max())), CLASSES + 1)
        places = [np.clip(np.searchsorted(edges, sample.values, "right") - 1, 0, CLASSES - 1) for sample in read.numbers]
    placed = zip(read.numbers, places, strict=True)
    x, y = (tuple(sample.shares(place, len(names) or CLASSES).tolist()) for sample, place in placed)
    return Histogram(tuple(edges.tolist()), tuple(names), x, y)


def find_difference(read: ReadColumn, parts: dict[str, float]) -> Finding:
    """Return how Y differs from X in a column, by the statistic with the largest score."""
    if parts and max(parts, key=lambda name: parts[name]) == Change.MISSING:
        return _find_share(read.marks(~read.there), "missing", Change.MISSING)
    if read.levels is not None:  # the level whose share changed most
        if len(read.shares) < 2:
            return "", None, None
        level = next(iter(read.shares))
        if level == MISSING:
            return _find_share(read.marks(~read.there), "missing", Change.MISSING)
        return _find_share(read.marks(read.values == read.code(level)), f"'{sanitize(level, LONGEST)}'")
    if not read.strata.in_both(read.there):
        return _find_share(read.marks(~read.there), "missing", Change.MISSING) if any(read.missing) else ("", None, None)
    if read.ranks is None:  # true or false, or the larger of two numbers
        largest = float(np.nanmax(read.values))
        what = "true" if read.column.kind == "boolean" else f"{largest:g}"
        return _find_share(read.marks(read.values == largest, read.there), what)
    return _find_numbers(read, read.ranks, parts)


def _find_share(marks: tuple[Sample, Sample], what: str, change: Change = Change.SHARE) -> Finding:
    effect = share_effect(*marks, what)
    return f"{'more' if effect.value > 0 else 'less'} often {what}", change, effect


def _find_numbers(read: ReadColumn, ranks: Array, parts: dict[str, float]) -> Finding:
    """Return higher, more variable or different in shape, unless the means or standard deviations contradict the word."""
    (x, y), is_date = read.numbers, read.column.kind == "date"
    z_x, z_y = (ndtri(ranks[side]) for side in read.sides)
    signs = {Change.LOCATION: y.mean(z_y) - x.mean(z_x), Change.SCALE: y.mean(z_y**2) - x.mean(z_x**2)}
    effect: ColumnEffect | None
    for change in sorted((*signs, Change.SHAPE), key=lambda name: -parts.get(name, 0.0)):
        if change is Change.SHAPE:
            break
        if change is Change.SCALE:
            words, effect, even = ("more variable", "less variable"), sd_effect(x, y), 1.0
        elif is_date:
            words, effect, even = ("later", "earlier"), days_effect(x, y), 0.0
        else:
            words, effect, even = ("higher", "lower"), mean_effect(x, y), 0.0
        if effect is not None and signs[change] * (effect.value - even) > 0:
            return words[0 if effect.value > even else 1], change, effect
    return "different in shape", Change.SHAPE, distribution_effect(x, y)


# Columns that separate the samples without saying anything about them: identifiers, counters, clocks, keys, constants.


TOO_FEW = 5  # rows of each sample: fewer often do not overlap by chance
IDENTIFIES = 20  # rows that all have different values
NAMES = re.compile(
    r"(?i)(^|[\W_])(id|ids|uuid|guid|key|index|idx|row|row.?(id|nr|no|number))$|(?<=[a-z])(Id|ID|Key)$|^unnamed: \d+$|^$"
)


@dataclass(frozen=True)
class Suspicion:
    """Why a column is suspicious, if it is."""

    why: str = ""  # empty where it is not
    always: bool = False  # whether also where the column does not differ


IDENTIFIER = Suspicion("every row has a different value, like an identifier", always=True)


def suspicion(read: ReadColumn, pool: Pool, rows: Rows, names: tuple[str, str]) -> Suspicion:
    """Return why a column is suspicious; ``rows`` are those of the pool that its values are of."""
    column, there = read.column, read.there
    sides = read.sides
    sizes = [np.count_nonzero(side) for side in sides]
    if min(sizes) < TOO_FEW:
        empty = [name for name, size in zip(names, sizes, strict=True) if not size]
        return Suspicion(f"it is empty in {empty[0]}" if len(empty) == 1 else "")
    if read.levels is not None:
        texts = pool.categories[column.name][rows]
        levels = [set(texts[side].tolist()) for side in sides]
        if sum(sizes) >= IDENTIFIES and len(levels[0] | levels[1]) == sum(sizes):
            return IDENTIFIER
        if not levels[0] & levels[1]:
            return Suspicion("the samples have no value in common")
        return Suspicion(_constant([len(found) for found in levels], [next(iter(found)) for found in levels], names))
    values = read.values
    x, y = (values[side] for side in sides)
    if column.kind == "number" and np.all(values[there] % 1 == 0):
        if all(_counts_up(values, rows, np.flatnonzero(side)) for side in sides):
            return Suspicion("it numbers the rows", always=True)
        if NAMES.search(column.name) and len(read.different[0]) == sum(sizes):
            return IDENTIFIER
    return Suspicion("" if column.kind == "boolean" else _separated(column, x, y, names))


def _counts_up(values: Array, rows: Rows, chosen: Rows) -> bool:
    """Whether the values of one sample, in the order of its rows, go up by equal steps wherever rows are neighbours."""
    order = chosen[np.argsort(rows[chosen])]
    steps, rows_between = np.diff(values[order]), np.diff(rows[order])
    return len(steps) > 0 and bool(np.all(steps > 0) and np.allclose(steps / rows_between, steps[0] / rows_between[0], rtol=1e-9))


def _separated(column: DataColumn, x: Array, y: Array, names: tuple[str, str]) -> str:
    """Return why numbers are suspicious: they are constant in one sample, or do not overlap."""
    first_values = [date_text(float(v[0]))[:16] if column.kind == "date" else f"{v[0]:.6g}" for v in (x, y)]
    constant = _constant([1 if v.min() == v.max() else 2 for v in (x, y)], first_values, names)
    if constant or (x.max() >= y.min() and y.max() >= x.min()):
        return constant
    first, last = names if x.max() < y.min() else names[::-1]
    if column.kind == "date":
        return f"all dates of {last} are after the last date of {first}"
    return f"all values of {last} are above the largest value of {first}"


def _constant(counts: list[int], values: list[str], names: tuple[str, str]) -> str:
    """Return that a column has a single value in one sample and several in the other, or nothing."""
    for own, other in ((0, 1), (1, 0)):
        if counts[own] == 1 < counts[other]:
            return f"it is always {sanitize(values[own], LONGEST)} in {names[own]}"
    return ""
