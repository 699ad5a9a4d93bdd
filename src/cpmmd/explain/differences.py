"""What is found of one column, or of a pair of columns: frozen values that turn into JSON, and their words."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from enum import StrEnum

from cpmmd.core.plain import PlainValue
from cpmmd.core.text import sanitize
from cpmmd.statistics.columns import Change

LONGEST = 40  # characters of a name in a sentence
NAMED = 3  # columns in a sentence


def quote_name(name: str, label: str) -> str:
    """Return a name for a sentence: quoted where it is the data's own."""
    short = sanitize(label, LONGEST)
    return f"'{short}'" if name == label else short


def join(parts: Sequence[str], last: str = " and ") -> str:
    """Return parts of a sentence with commas between them."""
    return last.join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def in_header(sample: str) -> str:
    """Return a sample's name as it stands above a column."""
    return sanitize(sample.removeprefix("the "), LONGEST)


class Unit(StrEnum):
    """What the size of a difference is measured in."""

    DEVIATIONS = "standard deviations"
    DAYS = "days"
    SPREAD = "times the spread"
    SHARE = "of the rows"
    SHARE_AT_MOST = "of the rows at most"


@dataclass(frozen=True)
class ColumnEffect(PlainValue):
    """How large a column's difference is, Y against X."""

    value: float  #: the estimate
    #: low, high: its 95% interval, for this column alone: of 100 such intervals, about 95 hold what the whole populations have
    low: float
    high: float
    #: ``"standard deviations"`` between the means, ``"days"`` between mean dates, ``"times the spread"`` (ratio of standard
    #: deviations), ``"of the rows"`` (difference of a share), or ``"of the rows at most"`` (largest difference of the
    #: distribution functions)
    unit: Unit
    what: str = ""  #: what the share is of, where it is one: a level's name in quotes, ``"missing"``, ``"true"``; else empty

    @property
    def short(self) -> str:
        """The estimate in a few characters."""
        value = self.value
        return {
            Unit.DEVIATIONS: f"{value:+.2f} sd",
            Unit.DAYS: f"{value:+.{0 if abs(value) >= 10 else 1}f} days",
            Unit.SPREAD: f"{value:.2f} × spread",
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
    """The shares of both samples' values, class by class."""

    #: ends of the classes, one more than there are, where the values are on a line; values beyond are in the outer ones
    edges: tuple[float, ...]
    labels: tuple[str, ...]  #: names of the classes, where each is one value or level; empty for classes between edges
    #: x, y: share of each class among the values that are there
    x: tuple[float, ...]
    y: tuple[float, ...]


@dataclass(frozen=True)
class ColumnDifference(PlainValue):
    """How one column differs between the samples.

    After a test with strata all of it compares rows inside them: means, shares and histograms are those of samples with one mix
    of strata, deviations those inside strata. After one with pairs, effects are those of the differences within pairs, and a
    pair with a missing value counts for what is missing only.
    """

    document = (
        *("name", "label", "kind", "pvalue", "words", "effect", "distance", "mean_x", "mean_y", "spread_x", "spread_y"),
        *("levels", "missing_x", "missing_y", "histogram"),
    )

    #: name, label: the column as the data calls it, and as text for a person (``"column 3"`` for arrays)
    name: str
    label: str
    kind: str  #: ``"number"``, ``"date"``, ``"boolean"``, ``"category"`` or ``"patch"`` (a rectangle of an image)
    #: from the test's own relabelings, adjusted over all columns: the chance that any column that does not differ is at or
    #: below alpha is at most alpha
    pvalue: float
    #: how Y differs from X: ``"higher"``, ``"more spread out"``, ``"more often 'red'"``, ``"more often missing"``, ``"later"``;
    #: empty where the p-value is above alpha
    words: str = ""
    #: how large the difference is that the words speak of, with its interval; None where it has no size (all values missing)
    effect: ColumnEffect | None = None
    #: largest difference of the distribution functions, or half the sum of the differences of shares: 0 alike, 1 apart
    distance: float = 0.0
    #: mean_x, mean_y, spread_x, spread_y: means and standard deviations of numbers (dates in days since 1970); None for
    #: categories
    mean_x: float | None = None
    mean_y: float | None = None
    spread_x: float | None = None
    spread_y: float | None = None
    #: shares of a category's levels in X and Y, largest difference first; None for numbers
    levels: Mapping[str, tuple[float, float]] | None = None
    #: missing_x, missing_y: shares of missing values
    missing_x: float = 0.0
    missing_y: float = 0.0
    histogram: Histogram | None = None  #: both samples' values
    #: levels that fewer than 5 rows have, where strata weigh rows, so that shares do not say how many have them; not in
    #: ``to_dict``, as what follows
    rare: frozenset[str] = field(default=frozenset(), repr=False)
    significant: bool = False  #: whether the column differs: its p-value is at most alpha
    change: Change | None = None  #: what changed most, significant or not; None where nothing can be said

    @property
    def found(self) -> Change | None:
        """What changed, where the column differs."""
        return self.change if self.significant else None


@dataclass(frozen=True)
class PairDifference(PlainValue):
    """How the dependence of two columns differs between the samples."""

    document = ("names", "labels", "pvalue", "words", "correlation_x", "correlation_y", "levels")

    #: names, labels: the two columns
    names: tuple[str, str]
    labels: tuple[str, str]
    #: from the test's own relabelings, adjusted over all pairs that were looked at, and doubled: pairs are a second look
    pvalue: float
    words: str  #: how they go together in Y, against X; empty where the p-value is above alpha
    #: correlation_x, correlation_y: of their normal scores in either sample; for a category, of the level that changed most
    correlation_x: float
    correlation_y: float
    levels: tuple[str, str] = ("", "")  #: the levels that the correlation is of, empty for columns of numbers
    significant: bool = False  #: whether the pair differs: its p-value is at most alpha


@dataclass(frozen=True)
class SuspiciousColumn(PlainValue):
    """A column that tells the samples apart without saying anything about them."""

    #: name, label: the column
    name: str
    label: str
    why: str  #: what makes it suspicious, in words
