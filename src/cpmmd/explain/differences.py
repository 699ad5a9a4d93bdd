"""What is found of one column, or of a pair of columns: frozen values that turn into JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpmmd.core.plain import PlainDict, plain_dict


@dataclass(frozen=True)
class ColumnEffect:
    """How large a column's difference is, Y against X.

    Attributes
    ----------
    value : float
        The estimate.
    low, high : float
        Its 95% interval, for this column alone: of 100 such intervals, about 95 hold what the whole populations have.
    unit : str
        ``"standard deviations"`` between the means, ``"days"`` between mean dates, ``"times the spread"`` (ratio of standard
        deviations), ``"of the rows"`` (difference of a share), or ``"of the rows at most"`` (largest difference of the
        distribution functions).
    what : str
        What the share is of, where it is one: a level's name in quotes, ``"missing"``, ``"true"``; else empty.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(size=(40, 2)) + [0, 2]
    >>> effect = two_sample_test(x, y, rng=0).explain().columns[0].effect
    >>> effect.unit, effect.low < effect.value < effect.high
    ('standard deviations', True)
    """

    value: float
    low: float
    high: float
    unit: str
    what: str = ""

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
    """The shares of both samples' values, class by class.

    Attributes
    ----------
    edges : tuple of float
        Ends of the classes, one more than there are, where the values are on a line; values beyond are in the outer ones.
    labels : tuple of str
        Names of the classes, where each is one value or level; empty for classes between edges.
    x, y : tuple of float
        Share of each class among the values that are there.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(size=(40, 2)) + [0, 2]
    >>> histogram = two_sample_test(x, y, rng=0).explain().columns[0].histogram
    >>> len(histogram.edges) - len(histogram.x), round(sum(histogram.y), 6)
    (1, 1.0)
    """

    edges: tuple[float, ...]
    labels: tuple[str, ...]
    x: tuple[float, ...]
    y: tuple[float, ...]

    def to_dict(self) -> PlainDict:
        """Return the shares in plain JSON types."""
        return plain_dict(vars(self))


@dataclass(frozen=True)
class ColumnDifference:
    """How one column differs between the samples.

    Attributes
    ----------
    name, label : str
        The column as the data calls it, and as text for a person (``"column 3"`` for arrays).
    kind : str
        ``"number"``, ``"date"``, ``"boolean"``, ``"category"`` or ``"patch"`` (a rectangle of an image).
    pvalue : float
        From the test's own relabelings, adjusted over all columns: the chance that any column that does not differ is at or
        below alpha is at most alpha.
    words : str
        How Y differs from X: ``"higher"``, ``"more spread out"``, ``"more often 'red'"``, ``"more often missing"``, ``"later"``;
        empty where the p-value is above alpha.
    effect : ColumnEffect or None
        How large the difference is that the words speak of, with its interval; None where it has no size (all values missing).
    distance : float
        Largest difference of the distribution functions, or half the sum of the differences of shares: 0 alike, 1 apart.
    mean_x, mean_y, spread_x, spread_y : float or None
        Means and standard deviations of numbers (dates in days since 1970); None for categories.
    levels : mapping of str to tuple of float, or None
        Shares of a category's levels in X and Y, largest difference first; None for numbers.
    missing_x, missing_y : float
        Shares of missing values.
    histogram : Histogram or None
        Both samples' values.
    rare : frozenset of str
        Levels that fewer than 5 rows have, where strata weigh rows, so that shares do not say how many have them; not in
        ``to_dict``.

    Notes
    -----
    After a test with strata all of it compares rows inside them: means, shares and histograms are those of samples with one mix
    of strata, deviations those inside strata. After one with pairs, effects are those of the differences within pairs, and a
    pair with a missing value counts for what is missing only.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(size=(40, 2)) + [0, 2]
    >>> column = two_sample_test(x, y, rng=0).explain().columns[0]
    >>> column.name, column.words, column.pvalue
    ('1', 'higher', 0.001)
    """

    name: str
    label: str
    kind: str
    pvalue: float
    words: str = ""
    effect: ColumnEffect | None = None
    distance: float = 0.0
    mean_x: float | None = None
    mean_y: float | None = None
    spread_x: float | None = None
    spread_y: float | None = None
    levels: Mapping[str, tuple[float, float]] | None = None
    missing_x: float = 0.0
    missing_y: float = 0.0
    histogram: Histogram | None = None
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
    """How the dependence of two columns differs between the samples.

    Attributes
    ----------
    names, labels : tuple of str
        The two columns.
    pvalue : float
        From the test's own relabelings, adjusted over all pairs that were looked at, and doubled: pairs are a second look.
    words : str
        How they go together in Y, against X; empty where the p-value is above alpha.
    correlation_x, correlation_y : float
        Of their normal scores in either sample; for a category, of the level that changed most.
    levels : tuple of str
        The levels that the correlation is of, empty for columns of numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(100, 3)), data.normal(size=(100, 3))
    >>> y[:, 1] = 0.8 * y[:, 0] + 0.6 * y[:, 1]
    >>> pair = two_sample_test(x, y, rng=0).explain().pairs[0]
    >>> pair.names, pair.pvalue, pair.words
    (('0', '1'), 0.002, 'go together more closely')
    """

    names: tuple[str, str]
    labels: tuple[str, str]
    pvalue: float
    words: str
    correlation_x: float
    correlation_y: float
    levels: tuple[str, str] = ("", "")

    def to_dict(self) -> PlainDict:
        """Return the pair in plain JSON types."""
        return plain_dict(vars(self))


@dataclass(frozen=True)
class SuspiciousColumn:
    """A column that tells the samples apart without saying anything about them.

    Attributes
    ----------
    name, label : str
        The column.
    why : str
        What makes it suspicious, in words.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = np.c_[np.arange(40), data.normal(size=40)], np.c_[np.arange(40, 80), data.normal(size=40)]
    >>> [one.name for one in two_sample_test(x, y, rng=0).explain().suspicious]
    ['0']
    """

    name: str
    label: str
    why: str

    def to_dict(self) -> PlainDict:
        """Return the column in plain JSON types."""
        return plain_dict(vars(self))
