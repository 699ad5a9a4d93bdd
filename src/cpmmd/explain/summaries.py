"""What a column looks like in either sample, the words for its difference, and whether it gives the samples away."""

from __future__ import annotations

import re
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.text import harmless
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MISSING
from cpmmd.explain.columns import DataColumn, ReadColumn, date_text
from cpmmd.explain.differences import LONGEST, Change, ColumnDifference, ColumnEffect, Histogram
from cpmmd.explain.samples import (
    Sample,
    days_effect,
    distribution_effect,
    largest_gap,
    mean_effect,
    share_effect,
    spread_effect,
)

LEVELS = 5  # of a category, those with the largest difference
BARS = 12  # different values up to which each has a bar of its own
CLASSES = 24  # of values on a line
Said = tuple[str, Change | None, ColumnEffect | None]  # the words, what they are about, and how large it is


@dataclass(frozen=True, eq=False)
class ColumnSides:
    """A column's values in either sample."""

    read: ReadColumn

    @property
    def sides(self) -> tuple[Labels, Labels]:
        """Which rows are of X, and which of Y."""
        return self.read.strata.labels, ~self.read.strata.labels

    def marks(self, marks: Labels, of: Labels | None = None) -> tuple[Sample, Sample]:
        """Return a mark of each row, as 1 or 0, in either sample; of some rows only, where ``of`` says which."""
        return self.read.strata.samples(marks.astype(np.float64), np.ones(len(marks), dtype=bool) if of is None else of)

    @cached_property
    def numbers(self) -> tuple[Sample, Sample]:
        """The numbers that are there in either sample."""
        return self.read.strata.samples(self.read.values, self.read.there)

    @cached_property
    def missing(self) -> tuple[float, float]:
        """Shares of missing values."""
        x, y = self.marks(~self.read.there)
        return x.mean(x.values), y.mean(y.values)

    @cached_property
    def shares(self) -> dict[str, tuple[float, float]]:
        """Shares of a category's levels, largest difference first."""
        levels = self.read.levels
        if levels is None:
            return {}
        samples = zip(self.sides, self.marks(self.read.there), strict=True)
        x, y = (one.shares(levels.codes[side], len(levels.names)).tolist() for side, one in samples)
        order = sorted(range(len(levels.names)), key=lambda i: (-abs(y[i] - x[i]), levels.names[i]))
        return {levels.names[i]: (x[i], y[i]) for i in order}

    @cached_property
    def different(self) -> tuple[Array, Rows]:
        """The different numbers that are there, and how many rows have each."""
        return np.unique(self.read.values[self.read.there], return_counts=True)

    def value_name(self, value: float) -> str:
        """Return a number as the name of its bar."""
        return ("true" if value else "false") if self.read.column.kind == "boolean" else f"{value:.6g}"


def describe(sides: ColumnSides, parts: dict[str, float]) -> ColumnDifference:
    """Return means, spreads, levels, missing shares, distance, histogram and words of a column, before its p-value is known."""
    column, (words, change, effect) = sides.read.column, say_difference(sides, parts)
    levels, moments = None, list[tuple[float, float] | tuple[None, None]]([(None, None)] * 2)
    if sides.read.levels is None:
        moments = [one.moments if one.size else (None, None) for one in sides.numbers]
        apart = largest_gap(*sides.numbers)[0] if sides.read.strata.in_both(sides.read.there) else 0.0
        distance = max(apart, abs(sides.missing[1] - sides.missing[0]))
    else:
        levels = dict(list(sides.shares.items())[:LEVELS])
        distance = sum(abs(q - p) for p, q in sides.shares.values()) / 2
    (mean_x, spread_x), (mean_y, spread_y) = moments
    return ColumnDifference(
        column.name,
        column.label,
        column.kind,
        pvalue=1.0,
        words=words,
        effect=effect,
        distance=distance,
        mean_x=mean_x,
        mean_y=mean_y,
        spread_x=spread_x,
        spread_y=spread_y,
        levels=levels,
        missing_x=sides.missing[0],
        missing_y=sides.missing[1],
        histogram=histogram(sides),
        rare=_rare(sides),
        change=change,
    )


def _rare(sides: ColumnSides) -> frozenset[str]:
    """Return the names of levels, and of values with a bar, that few rows have though their shares do not say so."""
    if sides.read.levels is not None:
        names = sides.read.levels.names
        counts = np.bincount(sides.read.levels.codes, minlength=len(names))
    else:
        values, counts = sides.different
        if len(values) > BARS:
            return frozenset()
        names = tuple(map(sides.value_name, values))
    return frozenset(name for name, rare in zip(names, sides.read.strata.rare(counts), strict=True) if rare)


def histogram(sides: ColumnSides) -> Histogram | None:
    """Return both samples' values in classes: bars for levels, booleans and few numbers; None where nothing is there."""
    if not sides.read.there.any():
        return None
    if sides.read.levels is not None:
        shown = dict(sorted(list(sides.shares.items())[:BARS], key=lambda item: -sum(item[1])))
        return Histogram((), tuple(shown), *(tuple(pair[i] for pair in shown.values()) for i in (0, 1)))
    different, _ = sides.different
    if len(different) <= BARS and sides.read.column.kind != "date":
        edges, names = np.zeros(0), tuple(map(sides.value_name, different))
        places = [np.searchsorted(different, one.values) for one in sides.numbers]
    else:
        edges, names = _edges(sides.read.values[sides.read.there]), ()
        places = [np.clip(np.searchsorted(edges, one.values, "right") - 1, 0, CLASSES - 1) for one in sides.numbers]
    of = zip(sides.numbers, places, strict=True)
    x, y = (tuple(one.shares(place, len(names) or CLASSES).tolist()) for one, place in of)
    return Histogram(tuple(edges.tolist()), names, x, y)


def _edges(values: Array) -> Array:
    """Return the ends of classes over the middle 99% of the pool, so that one outlier does not flatten the rest."""
    low, high = (float(q) for q in np.quantile(values, [0.005, 0.995]))
    if high <= low:
        low, high = float(values.min()), float(values.max())
    return np.linspace(low, high, CLASSES + 1)


def say_difference(sides: ColumnSides, parts: dict[str, float]) -> Said:
    """Return how Y differs from X in a column, by the statistic that says so loudest."""
    read = sides.read
    if parts and max(parts, key=lambda name: parts[name]) == Change.MISSING:
        return _say_share(sides.marks(~read.there), "missing", Change.MISSING)
    if read.levels is not None:  # the level whose share changed most
        if len(sides.shares) < 2:
            return "", None, None
        level = next(iter(sides.shares))
        if level == MISSING:
            return _say_share(sides.marks(~read.there), "missing", Change.MISSING)
        return _say_share(sides.marks(read.values == read.code(level)), f"'{harmless(level, LONGEST)}'")
    if not read.strata.in_both(read.there):
        return _say_share(sides.marks(~read.there), "missing", Change.MISSING) if any(sides.missing) else ("", None, None)
    if read.ranks is None:  # true or false, or the larger of two numbers
        largest = float(np.nanmax(read.values))
        what = "true" if read.column.kind == "boolean" else f"{largest:g}"
        return _say_share(sides.marks(read.values == largest, read.there), what)
    return _say_numbers(sides, read.ranks, parts)


def _say_share(marks: tuple[Sample, Sample], what: str, change: Change = Change.SHARE) -> Said:
    effect = share_effect(*marks, what)
    return f"{'more' if effect.value > 0 else 'less'} often {what}", change, effect


def _say_numbers(sides: ColumnSides, ranks: Array, parts: dict[str, float]) -> Said:
    """Say higher, more spread out or different in shape; a word that means or spreads contradict is not used."""
    (x, y), is_date = sides.numbers, sides.read.column.kind == "date"
    z_x, z_y = (ndtri(ranks[sides.read.there & side]) for side in sides.sides)
    signs = {Change.LOCATION: y.mean(z_y) - x.mean(z_x), Change.SPREAD: y.mean(z_y**2) - x.mean(z_x**2)}
    effect: ColumnEffect | None
    for change in sorted((*signs, Change.SHAPE), key=lambda name: -parts.get(name, 0.0)):
        if change is Change.SHAPE:
            break
        if change is Change.SPREAD:
            words, effect, even = ("more spread out", "less spread out"), spread_effect(x, y), 1.0
        elif is_date:
            words, effect, even = ("later", "earlier"), days_effect(x, y), 0.0
        else:
            words, effect, even = ("higher", "lower"), mean_effect(x, y), 0.0
        if effect is not None and signs[change] * (effect.value - even) > 0:
            return words[0 if effect.value > even else 1], change, effect
    return "different in shape", Change.SHAPE, distribution_effect(x, y)


# Columns that tell the samples apart without saying anything about them: identifiers, counters, clocks, keys, constants.


TOO_FEW = 5  # rows of each sample: with fewer, being apart says little
IDENTIFIES = 20  # rows that all have a value of their own
NAMES = re.compile(
    r"(?i)(^|[\W_])(id|ids|uuid|guid|key|index|idx|row|row.?(id|nr|no|number))$|(?<=[a-z])(Id|ID|Key)$|^unnamed: \d+$|^$"
)


@dataclass(frozen=True)
class Suspicion:
    """Why a column is suspicious, if it is."""

    why: str = ""  # empty where it is not
    always: bool = False  # whether also where the column does not differ


IDENTIFIER = Suspicion("every row has a value of its own, as identifiers do", always=True)


def suspicion(sides: ColumnSides, pool: Pool, rows: Rows, names: tuple[str, str]) -> Suspicion:
    """Return why a column is suspicious; ``rows`` are those of the pool that its values are of."""
    column, there = sides.read.column, sides.read.there
    of = [side & there for side in sides.sides]
    sizes = [np.count_nonzero(one) for one in of]
    if min(sizes) < TOO_FEW:
        empty = [name for name, size in zip(names, sizes, strict=True) if not size]
        return Suspicion(f"it is empty in {empty[0]}" if len(empty) == 1 else "")
    if sides.read.levels is not None:
        texts = pool.categories[column.name][rows]
        levels = [set(texts[one].tolist()) for one in of]
        if sum(sizes) >= IDENTIFIES and len(levels[0] | levels[1]) == sum(sizes):
            return IDENTIFIER
        if not levels[0] & levels[1]:
            return Suspicion("no value is in both samples: it tells them apart alone")
        return Suspicion(_constant([len(one) for one in levels], [next(iter(one)) for one in levels], names))
    values = sides.read.values
    x, y = (values[one] for one in of)
    if column.kind == "number" and np.all(values[there] % 1 == 0):
        if all(_counts_up(values, rows, np.flatnonzero(one)) for one in of):
            return Suspicion("it counts the rows", always=True)
        if NAMES.search(column.name) and len(sides.different[0]) == sum(sizes):
            return IDENTIFIER
    return Suspicion("" if column.kind == "boolean" else _apart(column, x, y, names))


def _counts_up(values: Array, rows: Rows, chosen: Rows) -> bool:
    """Whether the values of one sample, in the order of its rows, go up by equal steps wherever rows are neighbours."""
    order = chosen[np.argsort(rows[chosen])]
    steps, gaps = np.diff(values[order]), np.diff(rows[order])
    return len(steps) > 0 and bool(np.all(steps > 0) and np.allclose(steps / gaps, steps[0] / gaps[0], rtol=1e-9))


def _apart(column: DataColumn, x: Array, y: Array, names: tuple[str, str]) -> str:
    """Say that numbers are constant in one sample, or do not overlap."""
    first_values = [date_text(float(v[0]))[:16] if column.kind == "date" else f"{v[0]:.6g}" for v in (x, y)]
    constant = _constant([1 if v.min() == v.max() else 2 for v in (x, y)], first_values, names)
    if constant or (x.max() >= y.min() and y.max() >= x.min()):
        return constant
    first, last = names if x.max() < y.min() else names[::-1]
    if column.kind == "date":
        return f"every date of {last} is after the last one of {first}: a clock tells them apart alone"
    return f"every value of {last} is above the largest one of {first}: it tells them apart alone"


def _constant(counts: list[int], values: list[str], names: tuple[str, str]) -> str:
    """Say that a column has one value in one sample and several in the other."""
    for own, other in ((0, 1), (1, 0)):
        if counts[own] == 1 < counts[other]:
            return f"it is always {harmless(values[own], LONGEST)} in {names[own]}"
    return ""
