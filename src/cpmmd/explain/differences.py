"""What is found of one column, or of a pair of columns: frozen values that turn into JSON."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.core.text import harmless

# Plain words for what was found; never more than was found.


LONGEST = 40  # characters of a name in a sentence
NAMED = 3  # columns in a sentence
SAMPLES = ("the first sample", "the second sample")


def quote_name(name: str, label: str) -> str:
    """Return a name for a sentence: quoted where it is the data's own."""
    short = harmless(label, LONGEST)
    return f"'{short}'" if name == label else short


def join(parts: Sequence[str], last: str = " and ") -> str:
    """Return parts of a sentence with commas between them."""
    return last.join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)


def in_header(sample: str) -> str:
    """Return a sample's name as it stands above a column."""
    return harmless(sample.removeprefix("the "), LONGEST)


@dataclass(frozen=True)
class ColumnEffect:
    """How large a column's difference is, Y against X."""

    value: float  #: the estimate
    #: low, high: its 95% interval, for this column alone: of 100 such intervals, about 95 hold what the whole populations have
    low: float
    high: float
    #: ``"standard deviations"`` between the means, ``"days"`` between mean dates, ``"times the spread"`` (ratio of standard
    #: deviations), ``"of the rows"`` (difference of a share), or ``"of the rows at most"`` (largest difference of the
    #: distribution functions)
    unit: str
    what: str = ""  #: what the share is of, where it is one: a level's name in quotes, ``"missing"``, ``"true"``; else empty

    def to_dict(self) -> PlainDict:
        """Return the effect in plain JSON types."""
        return plain_dict(vars(self))

    @property
    def short(self) -> str:
        """The estimate in a few characters."""
        if self.unit == "standard deviations":
            return f"{self.value:+.2f} sd"
        if self.unit == "days":
            return f"{self.value:+.{0 if abs(self.value) >= 10 else 1}f} days"
        if self.unit == "times the spread":
            return f"{self.value:.2f} × spread"
        return f"up to {100 * self.value:.0f} points" if "most" in self.unit else f"{100 * self.value:+.0f} points"

    @property
    def interval(self) -> str:
        """The interval in a few characters."""
        low, high = (100 * self.low, 100 * self.high) if "rows" in self.unit else (self.low, self.high)
        form = ".0f" if "rows" in self.unit or (self.unit == "days" and abs(self.value) >= 10) else ".2f"
        return f"{low:{form}} to {high:{form}}"

    def __str__(self) -> str:
        return f"{self.short} ({self.interval})"


@dataclass(frozen=True)
class Histogram:
    """The shares of both samples' values, class by class."""

    #: ends of the classes, one more than there are, where the values are on a line; values beyond are in the outer ones
    edges: tuple[float, ...]
    labels: tuple[str, ...]  #: names of the classes, where each is one value or level; empty for classes between edges
    #: x, y: share of each class among the values that are there
    x: tuple[float, ...]
    y: tuple[float, ...]

    def to_dict(self) -> PlainDict:
        """Return the shares in plain JSON types."""
        return plain_dict(vars(self))


@dataclass(frozen=True)
class ColumnDifference:
    """How one column differs between the samples.

    After a test with strata all of it compares rows inside them: means, shares and histograms are those of samples with one mix
    of strata, deviations those inside strata. After one with pairs, effects are those of the differences within pairs, and a
    pair with a missing value counts for what is missing only.
    """

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
    #: ``to_dict``
    rare: frozenset[str] = field(default=frozenset(), repr=False)

    def to_dict(self) -> PlainDict:
        """Return the column in plain JSON types."""
        parts = {name: None if part is None else part.to_dict() for name, part in self._parts.items()}
        return plain_dict({**{name: value for name, value in vars(self).items() if name != "rare"}, **parts})

    @property
    def _parts(self) -> dict[str, ColumnEffect | Histogram | None]:
        return {"effect": self.effect, "histogram": self.histogram}


@dataclass(frozen=True)
class PairDifference:
    """How the dependence of two columns differs between the samples."""

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

    def to_dict(self) -> PlainDict:
        """Return the pair in plain JSON types."""
        return plain_dict(vars(self))


@dataclass(frozen=True)
class SuspiciousColumn:
    """A column that tells the samples apart without saying anything about them."""

    #: name, label: the column
    name: str
    label: str
    why: str  #: what makes it suspicious, in words

    def to_dict(self) -> PlainDict:
        """Return the column in plain JSON types."""
        return plain_dict(vars(self))
