"""The differences of one column or of a pair of columns: frozen values that turn into JSON, and their words."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cpmmd.core.plain import PlainValue
from cpmmd.core.text import sanitize
from cpmmd.statistics.columns import Change

LONGEST = 40  # characters of a name in a sentence
NAMED = 3  # columns in a sentence
MOST_DIGITS = 8  # of correlations


def quote_name(name: str, label: str) -> str:
    """Return a column's name for a sentence, quoted where it comes from the data."""
    short = sanitize(label, LONGEST)
    return f"'{short}'" if name == label else short


def join(parts: Sequence[str], last: str = " and ") -> str:
    """Return parts of a sentence as a list: a, b and c."""
    return last.join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def in_header(sample: str) -> str:
    """Return a sample's name for the head of a table's column."""
    return sanitize(sample.removeprefix("the "), LONGEST)


class Unit(StrEnum):
    """What the size of a difference is measured in."""

    DEVIATIONS = "standard deviations"
    DAYS = "days"
    RATIO = "times the standard deviation"
    SHARE = "of the rows"
    SHARE_AT_MOST = "of the rows at most"


@dataclass(frozen=True)
class ColumnEffect(PlainValue):
    """How large a column's difference is, Y against X."""

    value: float  #: the estimate
    #: low, high: its 95% interval, for this column alone: of 100 such intervals, about 95 hold what the whole populations have
    low: float
    high: float
    #: ``"standard deviations"`` between the means, ``"days"`` between mean dates, ``"times the standard deviation"`` (a ratio),
    #: ``"of the rows"`` (difference of a share), or ``"of the rows at most"`` (largest difference of the distribution functions)
    unit: Unit
    what: str = ""  #: for a share, what it is of: a level's name in quotes, ``"missing"``, ``"true"``; else empty

    @property
    def short(self) -> str:
        """The estimate in a few characters."""
        value = self.value
        return {
            Unit.DEVIATIONS: f"{value:+.2f} sd",
            Unit.DAYS: f"{value:+.{0 if abs(value) >= 10 else 1}f} days",
            Unit.RATIO: f"{value:.2f} × sd",
            Unit.SHARE: f"{100 * value:+.0f} points",
            Unit.SHARE_AT_MOST: f"up to {100 * value:.0f} points",
        }[self.unit]

    @property
    def interval(self) -> str:
        """The interval in a few characters."""
        if self.unit in (Unit.SHARE, Unit.SHARE_AT_MOST):
            return f"{100 * self.low:.0f} to {100 * self.high:.0f}"
        form = ".0f" if self.unit is Unit.DAYS and abs(self.value) >= 10 else ".2f"
        return f"{self.low:{form}} to {self.high:{form}}"

    def __str__(self) -> str:
        return f"{self.short} ({self.interval})"


@dataclass(frozen=True)
class Histogram(PlainValue):
    """The share of each sample's values in each bin or level."""

    #: edges of the classes, where the values are on a line; values beyond are in the outer classes
    edges: tuple[float, ...]
    labels: tuple[str, ...]  #: names of the classes, where each is a single value or level; empty for classes between edges
    #: x, y: share of each class among the values that are not missing
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True, repr=False)
class ColumnDifference(PlainValue):
    """How one column differs between the samples.

    After a test with strata, rows are compared inside strata: means, shares and histograms give both samples the same mix of
    strata, and standard deviations are those inside strata. After a test with pairs, effects are those of the differences within
    pairs, and a pair with a missing value counts only for the share of missing values.
    """

    document = (
        *("name", "label", "kind", "pvalue", "words", "effect", "distance", "mean_x", "mean_y", "sd_x", "sd_y"),
        *("levels", "missing_x", "missing_y", "histogram"),
    )

    #: name, label: the column's name in the data, and as text for a person (``"column 3"`` for arrays)
    name: str
    label: str
    kind: str  #: ``"number"``, ``"date"``, ``"boolean"``, ``"category"`` or ``"patch"`` (a rectangle of an image)
    #: from the test's own permutations, adjusted over all columns: the family-wise error, the probability that any column that
    #: does not differ has a p-value of alpha or less, is at most alpha
    pvalue: float
    #: how Y differs from X: ``"higher"``, ``"more variable"``, ``"more often 'red'"``, ``"more often missing"``, ``"later"``;
    #: empty where the p-value is above alpha
    words: str = ""
    #: the size of the difference in ``words``, with its interval; None where it has no size (all values missing)
    effect: ColumnEffect | None = None
    #: largest difference of the distribution functions, or half the sum of the differences of shares, from 0 (the same) to 1
    distance: float = 0.0
    #: mean_x, mean_y, sd_x, sd_y: means and standard deviations of numbers (dates in days since 1970); None for
    #: categories
    mean_x: float | None = None
    mean_y: float | None = None
    sd_x: float | None = None
    sd_y: float | None = None
    #: shares of a category's levels in X and Y, largest difference first; None for numbers
    levels: Mapping[str, tuple[float, float]] | None = None
    #: missing_x, missing_y: shares of missing values
    missing_x: float = 0.0
    missing_y: float = 0.0
    histogram: Histogram | None = None  #: both samples' values
    #: levels that fewer than 5 rows have, where strata weigh rows, so that shares do not say how many have them; not in
    #: ``to_dict``, as the fields below
    rare: frozenset[str] = field(default=frozenset(), repr=False)
    significant: bool = False  #: whether the column differs: its p-value is at most alpha
    change: Change | None = None  #: what changed most, significant or not; None where that is unknown

    @property
    def found(self) -> Change | None:
        """What changed, where the column differs."""
        return self.change if self.significant else None

    def __repr__(self) -> str:
        found = f"{self.words}, {self.effect}, " if self.significant else ""
        return f"<ColumnDifference of {sanitize(self.label, LONGEST)}: {found}p = {self.pvalue:.3g}>"


@dataclass(frozen=True, repr=False)
class PairDifference(PlainValue):
    """How the dependence of two columns differs between the samples."""

    document = ("names", "labels", "pvalue", "words", "correlation_x", "correlation_y", "levels")

    #: names, labels: the two columns
    names: tuple[str, str]
    labels: tuple[str, str]
    #: from the test's own permutations, adjusted over all pairs that were compared, and doubled, because columns come first
    pvalue: float
    words: str  #: how the correlation in Y differs from that in X; empty where the p-value is above alpha
    #: correlation_x, correlation_y: of the normal scores in either sample; for a category, of the level that changed most
    correlation_x: float
    correlation_y: float
    levels: tuple[str, str] = ("", "")  #: the levels that the correlation is of, empty for columns of numbers
    significant: bool = False  #: whether the pair differs: its p-value is at most alpha

    @property
    def cohens_q(self) -> float:
        """Cohen's effect size q of the change: the difference of Fisher's z, without its sign."""
        return abs(math.atanh(self.correlation_y) - math.atanh(self.correlation_x))

    @property
    def correlations(self) -> tuple[str, str]:
        """Both correlations as text, with two decimals, or with as many as it takes to show that they differ."""
        x, y = self.correlation_x, self.correlation_y
        digits = next((d for d in range(2, MOST_DIGITS) if f"{x:.{d}f}" != f"{y:.{d}f}"), 2)
        return f"{x:.{digits}f}", f"{y:.{digits}f}"

    def __repr__(self) -> str:
        x, y = self.correlations
        return f"<PairDifference of {' and '.join(self.labels)}: correlation {x} and {y}, p = {self.pvalue:.3g}>"


@dataclass(frozen=True)
class SuspiciousColumn(PlainValue):
    """A column that separates the samples without saying anything about them."""

    #: name, label: the column
    name: str
    label: str
    why: str  #: what makes it suspicious, in words
