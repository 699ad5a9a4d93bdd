"""What a column looks like in either sample: means, shares, classes of values; and the words for its difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import ndtri

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.plain import PlainDict
from cpmmd.core.text import harmless
from cpmmd.data.preparation import MISSING
from cpmmd.explain.column_scores import ReadColumn
from cpmmd.explain.columns import FEWEST
from cpmmd.explain.differences import LONGEST, ColumnEffect, Histogram

# How large a column's difference is: an estimate, and an interval from the spread of its influence over the units.


REACH = float(ndtri(0.975))
ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class Sample:
    """The values of one sample that are there, and the unit of each.

    Rows of one unit may hang together, so that variances are those of sums over units.
    """

    values: Array
    unit: Rows
    # of each value, adding up to 1, where samples are given the same mix of strata; None where all weigh the same
    weights: Array | None = None
    stratum: Rows | None = None  # of each value, where they have weights
    inside: bool = False  # whether deviations are those from the mean of the stratum

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        mean = self.mean(self.values)
        return mean, float(self.values.std()) if self.weights is None else math.sqrt(self.sum_of_squares / self.size)

    def mean(self, values: Array) -> float:
        """Return the mean of numbers, one for each value."""
        return float(values.mean() if self.weights is None else self.weights @ values)

    @property
    def deviations(self) -> Array:
        """The values less their mean; or that of their stratum, larger by what the mean takes from their degrees of freedom."""
        if self.stratum is None or not self.inside:
            return self.values - self.mean(self.values)
        rows = np.bincount(self.stratum)[self.stratum]
        apart = self.values - stratum_means(self.values, self.stratum)[self.stratum]
        return np.asarray(apart * np.sqrt(rows / np.maximum(rows - 1, 1)))

    @property
    def sum_of_squares(self) -> float:
        """The sum of the squared deviations; with weights, what as many rows of one weight would have."""
        squares = self.deviations**2
        if self.stratum is None or self.weights is None:
            return float(np.sum(squares))
        # a stratum's only row has no deviation inside it
        known = float(self.weights[np.bincount(self.stratum)[self.stratum] > 1].sum()) if self.inside else 1.0
        return self.size * self.mean(squares) / known if known > 0 else 0.0

    def variance_of_mean(self, influence: Array) -> float:
        """Return the variance of the mean of numbers with mean zero, one for each value."""
        if self.weights is not None:
            return _variance_in_strata([(self, influence)])
        sums = np.bincount(self.unit - self.unit.min(), weights=influence)
        units = len(np.unique(self.unit))
        return float(sums @ sums) / self.size**2 * units / max(units - 1, 1)

    def effective_size(self, marks: Array) -> float:
        """Return how many independent rows would know a share as well; no more than there are."""
        share = self.mean(marks)
        variance = self.variance_of_mean(marks - share)
        size = self.size if self.weights is None else 1 / float(self.weights @ self.weights)
        return min(size, share * (1 - share) / variance) if variance > 0 else size


def stratum_means(values: Array, stratum: Rows, weights: Array | None = None) -> Array:
    """Return the mean of each stratum, 0 of those without values."""
    total = np.bincount(stratum, values if weights is None else weights * values)
    size = np.bincount(stratum, weights).astype(np.float64)
    return np.asarray(np.divide(total, size, out=np.zeros(len(total)), where=size > 0))


def _variance(x: Sample, y: Sample, of_x: Array, of_y: Array) -> float:
    """Return the variance of the sum of both samples' means of numbers with mean zero."""
    if x.weights is None:
        return x.variance_of_mean(of_x) + y.variance_of_mean(of_y)
    return _variance_in_strata([(x, of_x), (y, of_y)])


def _variance_in_strata(parts: Sequence[tuple[Sample, Array]]) -> float:
    """Return the variance of the sum of weighted means, one for each sample, of numbers with mean zero.

    A stratum with two units of every sample says itself how much its means vary. One with a single unit, as a pair is, does not:
    what all samples together have there is one of as many independent numbers as there are such strata.
    """
    count = max(int(_stratum(one).max(initial=-1)) for one, _ in parts) + 1
    units, together, inside = [], np.zeros(count), np.zeros(count)
    for one, numbers in parts:
        stratum, weights = _stratum(one), np.zeros(0) if one.weights is None else one.weights
        together += np.bincount(stratum, weights * numbers, count)
        own = weights * (numbers - stratum_means(numbers, stratum)[stratum])
        _, first, unit = np.unique(one.unit, return_index=True, return_inverse=True)
        of_units = np.bincount(stratum[first], weights[first] > 0, count)
        squares = np.bincount(stratum[first], np.bincount(unit.ravel(), own) ** 2, count)
        inside += squares * of_units / np.maximum(of_units - 1, 1)
        units.append(of_units)
    fewest = np.min(units, axis=0)
    lone = together[fewest == 1]
    return float(inside[fewest > 1].sum() + lone @ lone * len(lone) / max(len(lone) - 1, 1))


def _stratum(sample: Sample) -> Rows:
    return np.zeros(sample.size, dtype=np.intp) if sample.stratum is None else sample.stratum


def mean_effect(x: Sample, y: Sample) -> ColumnEffect | None:
    """Return the difference of means in standard deviations; None where there is no spread.

    Deviations are those within the samples, and within strata that are large enough to have some.
    """
    (mean_x, _), (mean_y, _) = x.moments, y.moments
    total = x.size + y.size
    within = math.sqrt((x.sum_of_squares + y.sum_of_squares) / total)
    if within <= 1e-12 * max(abs(mean_x), abs(mean_y)) or within == 0:
        return None
    value = (mean_y - mean_x) / within
    influences = []
    for sample, mean, sign in ((x, mean_x, -1.0), (y, mean_y, 1.0)):
        z, squares = (sample.values - mean) / within, (sample.deviations / within) ** 2
        # delta method: a row moves the mean, and by its square the common deviation
        influences.append(sign * z - value / 2 * sample.size / total * (squares - sample.mean(squares)))
    error = math.sqrt(_variance(x, y, *influences))
    return ColumnEffect(value, value - REACH * error, value + REACH * error, "standard deviations")


def days_effect(x: Sample, y: Sample) -> ColumnEffect:
    """Return the difference of mean dates in days."""
    means = [one.moments[0] for one in (x, y)]
    value, reach = means[1] - means[0], REACH * math.sqrt(_variance(x, y, means[0] - x.values, y.values - means[1]))
    return ColumnEffect(value, value - reach, value + reach, "days")


def spread_effect(x: Sample, y: Sample) -> ColumnEffect | None:
    """Return the ratio of standard deviations, its interval on the logarithm; None where one is zero."""
    spreads, influences = [], []
    for sample, sign in ((x, -1.0), (y, 1.0)):
        mean, spread = sample.moments
        if spread <= 1e-12 * abs(mean) or spread == 0:
            return None
        spreads.append(spread)
        squares = (sample.deviations / spread) ** 2
        influences.append(sign * (squares - (1.0 if sample.weights is None else sample.mean(squares))) / 2)
    ratio, factor = spreads[1] / spreads[0], math.exp(REACH * math.sqrt(_variance(x, y, *influences)))
    return ColumnEffect(ratio, ratio / factor, ratio * factor, "times the spread")


def share_effect(x: Sample, y: Sample, what: str) -> ColumnEffect:
    """Return the difference of shares with Newcombe's interval (Wilson's of both samples, combined).

    Values are marks, 1 or 0. Rows of a unit that hang together count as the number of independent rows that know as much. The
    intervals of pairs are combined by how much their shares go together (Newcombe's method 10).
    """
    (p, p_low, p_high), (q, q_low, q_high) = (_wilson(one) for one in (x, y))
    together = _correlation(x, y)
    low = (q - p) - _combined(q - q_low, p_high - p, together)
    high = (q - p) + _combined(q_high - q, p - p_low, together)
    return ColumnEffect(q - p, max(low, -1.0), min(high, 1.0), "of the rows", what)


def _combined(a: float, b: float, correlation: float) -> float:
    return math.hypot(a, b) if correlation == 0 else math.sqrt(max(a * a + b * b - 2 * correlation * a * b, 0.0))


def _correlation(x: Sample, y: Sample) -> float:
    """Return how much the samples' means go together: 0 where no stratum ties single units of them."""
    if x.weights is None:
        return 0.0
    off = [one.values - one.mean(one.values) for one in (x, y)]
    own = [one.variance_of_mean(numbers) for one, numbers in zip((x, y), off, strict=True)]
    if min(own) <= 0:
        return 0.0
    return min(max((sum(own) - _variance(x, y, -off[0], off[1])) / (2 * math.sqrt(own[0] * own[1])), -1.0), 1.0)


def _wilson(sample: Sample) -> tuple[float, float, float]:
    share, size = sample.mean(sample.values), sample.effective_size(sample.values)
    centre = (share + REACH**2 / (2 * size)) / (1 + REACH**2 / size)
    reach = REACH / (1 + REACH**2 / size) * math.sqrt(share * (1 - share) / size + REACH**2 / (4 * size**2))
    return share, min(centre - reach, share), max(centre + reach, share)


def distribution_effect(x: Sample, y: Sample) -> ColumnEffect:
    """Return the largest difference of the distribution functions, with the interval of Dvoretzky, Kiefer and Wolfowitz.

    Both functions are within sqrt(ln(2 / .025) / 2 size) of those of the populations, together with 95%.
    """
    distance, at = largest_gap(x, y)
    sizes = [one.effective_size((one.values <= at).astype(np.float64)) for one in (x, y)]
    reach = sum(math.sqrt(math.log(4 / ALPHA) / (2 * size)) for size in sizes)
    return ColumnEffect(distance, max(distance - reach, 0.0), min(distance + reach, 1.0), "of the rows at most")


def largest_gap(x: Sample, y: Sample) -> tuple[float, float]:
    """Return the largest difference of two distribution functions, and the value at which it is."""
    at = np.concatenate([np.sort(one.values) for one in (x, y)])
    gaps = np.abs(_distribution(x, at) - _distribution(y, at))
    best = int(np.argmax(gaps))
    return float(gaps[best]), float(at[best])


def _distribution(sample: Sample, at: Array) -> Array:
    """Return the distribution function of a sample at some values."""
    order = np.argsort(sample.values, kind="stable")
    below = np.searchsorted(sample.values[order], at, "right")
    if sample.weights is None:
        return np.asarray(below / sample.size)
    return np.concatenate([[0.0], np.cumsum(sample.weights[order])])[below]


LEVELS = 5  # of a category, those with the largest difference
BARS = 12  # different values up to which each has a bar of its own
CLASSES = 24  # of values on a line
COMPARED = {"date": ("later", "earlier"), "boolean": ("more often true", "less often true")}
SHAPE = "different in shape"


@dataclass(frozen=True, eq=False)
class ColumnSides:
    """A column's values in either sample."""

    read: ReadColumn
    labels: Labels  # true for rows of X
    unit: Rows  # the unit of each row

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
