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
from cpmmd.explain.features import FEWEST
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

    Where the column is compared inside strata, all of it gives both samples the same mix of them.
    """

    read: ReadColumn
    labels: Labels
    unit: Rows

    def marks(self, marks: Labels, of: Labels | None = None) -> tuple[Sample, Sample]:
        """Return a mark of each row, as 1 or 0, in either sample; of some rows only, where ``of`` says which."""
        return self._samples(marks.astype(np.float64), np.ones(len(marks), dtype=bool) if of is None else of)

    def _samples(self, values: Array, of: Labels) -> tuple[Sample, Sample]:
        sides, strata = (self.labels & of, ~self.labels & of), self.read.strata
        if strata is None:
            x, y = (Sample(values[side], self.unit[side]) for side in sides)
            return x, y
        weights = strata.weights(of)
        x, y = (Sample(values[s], self.unit[s], weights[s], strata.of_row[s], strata.inside) for s in sides)
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
        return self._samples(self.read.values, self.there)

    @property
    def both(self) -> bool:
        """Whether both samples have a value at all, in one stratum."""
        if self.read.strata is not None:
            return self.read.strata.in_both(self.there)
        return bool((self.there & self.labels).any() and (self.there & ~self.labels).any())

    @cached_property
    def missing(self) -> tuple[float, float]:
        """Shares of missing values."""
        x, y = self.marks(~self.there)
        return x.mean(x.values), y.mean(y.values)

    @cached_property
    def shares(self) -> dict[str, tuple[float, float]]:
        """Shares of a category's levels, largest difference first."""
        levels = self.read.levels
        if levels is None:
            return {}
        sides = zip((self.labels, ~self.labels), self.marks(self.there), strict=True)
        of = [_shares(levels.codes[side], one, len(levels.names)) for side, one in sides]
        order = sorted(range(len(levels.names)), key=lambda i: (-abs(of[1][i] - of[0][i]), levels.names[i]))
        return {levels.names[i]: (float(of[0][i]), float(of[1][i])) for i in order}


def _code(read: ReadColumn, level: str) -> int:
    names = () if read.levels is None else read.levels.names
    return names.index(level) if level in names else -1


def summarise(sides: ColumnSides) -> PlainDict:
    """Return means, spreads, levels, missing shares, distance and histogram of a column, by the names of their fields."""
    known: PlainDict = {"missing_x": sides.missing[0], "missing_y": sides.missing[1], "histogram": histogram(sides)}
    if sides.read.strata is not None:
        known["rare"] = _rare(sides)
    if sides.read.levels is not None:
        known["levels"] = dict(list(sides.shares.items())[:LEVELS])
        return {**known, "distance": sum(abs(q - p) for p, q in sides.shares.values()) / 2}
    for name, sample in zip("xy", sides.numbers, strict=True):
        if sample.size:
            known[f"mean_{name}"], known[f"spread_{name}"] = sample.moments
    apart = largest_gap(*sides.numbers)[0] if sides.both else 0.0
    return {**known, "distance": max(apart, abs(sides.missing[1] - sides.missing[0]))}


def _rare(sides: ColumnSides) -> frozenset[str]:
    """Return the names of levels, and of values with a bar, that few rows have."""
    levels, kind = sides.read.levels, sides.read.column.kind
    if levels is not None:
        counts = np.bincount(levels.codes, minlength=len(levels.names))
        return frozenset(name for name, count in zip(levels.names, counts, strict=True) if count < FEWEST)
    different, counts = np.unique(sides.read.values[sides.there], return_counts=True)
    if len(different) > BARS:
        return frozenset()
    return frozenset(_value_name(value, kind) for value, count in zip(different, counts, strict=True) if count < FEWEST)


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
    x, y = sides.numbers
    apart = [y.mean(v[~of_x]) - x.mean(v[of_x]) for v in (z, z**2)]
    return {"location": apart[0], "spread": apart[1]}


def histogram(sides: ColumnSides) -> Histogram | None:
    """Return both samples' values in classes: bars for levels, booleans and few numbers; None where nothing is there."""
    if not sides.there.any():
        return None
    if sides.read.levels is not None:
        shown = dict(sorted(list(sides.shares.items())[:BARS], key=lambda item: -sum(item[1])))
        return Histogram((), tuple(shown), *(tuple(pair[i] for pair in shown.values()) for i in (0, 1)))
    different = np.unique(sides.read.values[sides.there])
    if len(different) <= BARS and sides.read.column.kind != "date":
        names = [_value_name(value, sides.read.column.kind) for value in different]
        bars = (_shares(np.searchsorted(different, one.values), one, len(names)) for one in sides.numbers)
        return Histogram((), tuple(names), *(tuple(bar.tolist()) for bar in bars))
    edges = _edges(sides.read.values[sides.there])
    places = [np.clip(np.searchsorted(edges, one.values, "right") - 1, 0, CLASSES - 1) for one in sides.numbers]
    classes = (_shares(place, one, CLASSES) for place, one in zip(places, sides.numbers, strict=True))
    return Histogram(tuple(edges.tolist()), (), *(tuple(shares.tolist()) for shares in classes))


def _value_name(value: float, kind: str) -> str:
    return ("true" if value else "false") if kind == "boolean" else f"{value:.6g}"


def _shares(codes: Rows, sample: Sample, count: int) -> Array:
    """Return the share of each class among a sample's rows, which have codes."""
    whole = max(len(codes), 1) if sample.weights is None else 1
    return np.asarray(np.bincount(codes, sample.weights, minlength=count) / whole)


def _edges(values: Array) -> Array:
    """Return the ends of classes over the middle 99% of the pool, so that one outlier does not flatten the rest."""
    low, high = (float(q) for q in np.quantile(values, [0.005, 0.995]))
    if high <= low:
        low, high = float(values.min()), float(values.max())
    return np.linspace(low, high, CLASSES + 1)
