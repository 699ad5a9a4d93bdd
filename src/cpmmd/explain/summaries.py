"""What a column looks like in either sample: means, shares, classes of values; and the words for its difference."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.plain import PlainDict
from cpmmd.core.text import harmless
from cpmmd.data.preparation import MISSING
from cpmmd.explain.column_scores import ReadColumn
from cpmmd.explain.differences import ColumnEffect, Histogram
from cpmmd.explain.effects import Sample, days_effect, distribution_effect, largest_gap, mean_effect, share_effect, spread_effect
from cpmmd.explain.words import LONGEST

LEVELS = 5  # of a category, those with the largest difference
BARS = 12  # different values up to which each has a bar of its own
CLASSES = 24  # of values on a line
COMPARED = {"date": ("later", "earlier"), "boolean": ("more often true", "less often true")}
SHAPE = "different in shape"


@dataclass(frozen=True, eq=False)
class ColumnSides:
    """A column's values in either sample.

    Attributes
    ----------
    labels
        True for rows of X.
    unit
        The unit of each row.
    """

    read: ReadColumn
    labels: Labels
    unit: Rows

    def marks(self, marks: Labels, of: Labels | None = None) -> tuple[Sample, Sample]:
        """Return a mark of each row, as 1 or 0, in either sample; of some rows only, where ``of`` says which."""
        values, every = marks.astype(np.float64), np.ones(len(marks), dtype=bool) if of is None else of
        x, y = (Sample(values[side & every], self.unit[side & every]) for side in (self.labels, ~self.labels))
        return x, y

    @cached_property
    def there(self) -> Labels:
        """Which rows have a value."""
        if self.read.levels is not None:
            return np.asarray(self.read.values != _code(self.read, MISSING))
        return np.asarray(~np.isnan(self.read.values))

    @cached_property
    def numbers(self) -> tuple[Sample, Sample]:
        """The numbers that are there in either sample."""
        x, y = (Sample(self.read.values[s & self.there], self.unit[s & self.there]) for s in (self.labels, ~self.labels))
        return x, y

    @property
    def both(self) -> bool:
        """Whether both samples have a value at all."""
        return bool((self.there & self.labels).any() and (self.there & ~self.labels).any())

    @cached_property
    def missing(self) -> tuple[float, float]:
        """Shares of missing values."""
        absent = ~self.there
        return float(absent[self.labels].mean()), float(absent[~self.labels].mean())

    @cached_property
    def shares(self) -> dict[str, tuple[float, float]]:
        """Shares of a category's levels, largest difference first."""
        levels = self.read.levels
        if levels is None:
            return {}
        of = [np.bincount(levels.codes[s], minlength=len(levels.names)) / max(s.sum(), 1) for s in (self.labels, ~self.labels)]
        order = sorted(range(len(levels.names)), key=lambda i: (-abs(of[1][i] - of[0][i]), levels.names[i]))
        return {levels.names[i]: (float(of[0][i]), float(of[1][i])) for i in order}


def _code(read: ReadColumn, level: str) -> int:
    names = () if read.levels is None else read.levels.names
    return names.index(level) if level in names else -1


def summarise(sides: ColumnSides) -> PlainDict:
    """Return means, spreads, levels, missing shares, distance and histogram of a column, by the names of their fields."""
    known: PlainDict = {"missing_x": sides.missing[0], "missing_y": sides.missing[1], "histogram": histogram(sides)}
    if sides.read.levels is not None:
        known["levels"] = dict(list(sides.shares.items())[:LEVELS])
        return {**known, "distance": sum(abs(q - p) for p, q in sides.shares.values()) / 2}
    for name, sample in zip("xy", sides.numbers, strict=True):
        if sample.size:
            known[f"mean_{name}"], known[f"spread_{name}"] = sample.moments
    apart = largest_gap(*(one.values for one in sides.numbers))[0] if sides.both else 0.0
    return {**known, "distance": max(apart, abs(sides.missing[1] - sides.missing[0]))}


def say_difference(sides: ColumnSides, parts: dict[str, float]) -> tuple[str, ColumnEffect | None]:
    """Return how Y differs from X in a column, by the statistic that says so loudest, and how much."""
    if parts and max(parts, key=lambda name: parts[name]) == "missing":
        return _share_words(sides.marks(~sides.there), "missing")
    if sides.read.levels is not None:
        return _say_level(sides)
    if not sides.both:
        return _share_words(sides.marks(~sides.there), "missing") if any(sides.missing) else ("", None)
    return _say_share(sides) if "share" in parts else _say_numbers(sides, parts)


def _say_level(sides: ColumnSides) -> tuple[str, ColumnEffect | None]:
    """Name the level whose share changed most."""
    if len(sides.shares) < 2:
        return "", None
    level = next(iter(sides.shares))
    what = "missing" if level == MISSING else f"'{harmless(level, LONGEST)}'"
    return _share_words(sides.marks(sides.read.values == _code(sides.read, level)), what)


def _say_share(sides: ColumnSides) -> tuple[str, ColumnEffect | None]:
    """Speak of a column of two values: true or false, or the larger of two numbers."""
    largest = float(np.nanmax(sides.read.values))
    what = "true" if sides.read.column.kind == "boolean" else f"{largest:g}"
    return _share_words(sides.marks(sides.read.values == largest, sides.there), what)


def _share_words(marks: tuple[Sample, Sample], what: str) -> tuple[str, ColumnEffect]:
    effect = share_effect(*marks, what)
    return f"{'more' if effect.value > 0 else 'less'} often {what}", effect


def _say_numbers(sides: ColumnSides, parts: dict[str, float]) -> tuple[str, ColumnEffect | None]:
    """Say higher, more spread out or different in shape; a word that means or spreads contradict is not used."""
    x, y = sides.numbers
    more, less = COMPARED.get(sides.read.column.kind, ("higher", "lower"))
    order = sorted(("location", "spread", "shape"), key=lambda name: -parts.get(name, 0.0))
    signs = _rank_signs(sides)
    for name in order:
        if name == "shape":
            break
        effect = spread_effect(x, y) if name == "spread" else days_effect(x, y) if more == "later" else mean_effect(x, y)
        if effect is not None and signs[name] * (effect.value - (name == "spread")) > 0:
            words = (more, less) if name == "location" else ("more spread out", "less spread out")
            return words[0 if signs[name] > 0 else 1], effect
    return SHAPE, distribution_effect(x, y)


def _rank_signs(sides: ColumnSides) -> dict[str, float]:
    """Return which way location and spread changed by the normal scores of the pooled ranks."""
    z, of_x = ndtri(sides.read.ranks[sides.there]), sides.labels[sides.there]
    apart = [float(v[~of_x].mean() - v[of_x].mean()) for v in (z, z**2)]
    return {"location": apart[0], "spread": apart[1]}


def histogram(sides: ColumnSides) -> Histogram | None:
    """Return both samples' values in classes: bars for levels, booleans and few numbers; None where nothing is there."""
    if not sides.there.any():
        return None
    if sides.read.levels is not None:
        shown = dict(sorted(list(sides.shares.items())[:BARS], key=lambda item: -sum(item[1])))
        return Histogram((), tuple(shown), *(tuple(pair[i] for pair in shown.values()) for i in (0, 1)))
    x, y = (one.values for one in sides.numbers)
    different = np.unique(sides.read.values[sides.there])
    if len(different) <= BARS and sides.read.column.kind != "date":
        names = [_value_name(value, sides.read.column.kind) for value in different]
        return Histogram((), tuple(names), *(tuple(_shares(np.searchsorted(different, v), len(names))) for v in (x, y)))
    edges = _edges(sides.read.values[sides.there])
    places = [np.clip(np.searchsorted(edges, v, "right") - 1, 0, CLASSES - 1) for v in (x, y)]
    return Histogram(tuple(edges.tolist()), (), *(tuple(_shares(place, CLASSES)) for place in places))


def _value_name(value: float, kind: str) -> str:
    return ("true" if value else "false") if kind == "boolean" else f"{value:.6g}"


def _shares(codes: Rows, count: int) -> list[float]:
    shares: list[float] = (np.bincount(codes, minlength=count) / max(len(codes), 1)).tolist()
    return shares


def _edges(values: Array) -> Array:
    """Return the ends of classes over the middle 99% of the pool, so that one outlier does not flatten the rest."""
    low, high = (float(q) for q in np.quantile(values, [0.005, 0.995]))
    if high <= low:
        low, high = float(values.min()), float(values.max())
    return np.linspace(low, high, CLASSES + 1)
