"""Column by column: how far the means may be apart, in standard deviations."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy import stats

from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.equivalence.coordinates import Coordinates


@dataclass(frozen=True)
class ColumnEquivalence:
    """How far the two samples may be apart in one column.

    Attributes
    ----------
    name : str
        The column.
    meaning : str
        What differs: ``"mean"``, ``"share missing"`` or ``"share of 'ES'"``, the level that may differ most.
    difference : float
        Y less X, in standard deviations within the samples; infinite where both are constant and differ.
    low, high : float
        Its interval: each end is crossed with probability alpha at most, in large samples.
    pvalue : float
        Of the two one-sided tests of the margin.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import equivalence_test
    >>> data = np.random.default_rng(0)
    >>> column = equivalence_test(data.normal(size=2000), data.normal(size=2000), margin=0.2, rng=0).columns[0]
    >>> column.meaning, column.largest < 0.2
    ('mean', True)
    """

    name: str
    meaning: str
    difference: float
    low: float
    high: float
    pvalue: float

    @property
    def largest(self) -> float:
        """The largest difference that the data do not exclude, whatever its sign."""
        return max(abs(self.low), abs(self.high))

    def to_dict(self) -> PlainDict:
        """Return the column in plain JSON types; what is infinite is None."""
        return plain_dict({**vars(self), "largest": self.largest})


def column_differences(coordinates: Coordinates, margin: float, alpha: float) -> tuple[ColumnEquivalence, ...]:
    """Return the feature of each column that may differ most, the column that may differ most first."""
    difference, error, freedom = _standardised_differences(coordinates)
    reach = stats.t.ppf(1 - alpha, freedom) * error
    with np.errstate(invalid="ignore", divide="ignore"):
        nearest = np.where(error > 0, (margin - np.abs(difference)) / error, np.where(difference == 0, np.inf, -np.inf))
    pvalues = stats.t.sf(nearest, freedom)
    worst: dict[str, ColumnEquivalence] = {}
    for j, name in enumerate(coordinates.columns):
        low, high = float(difference[j] - reach[j]), float(difference[j] + reach[j])
        found = ColumnEquivalence(name, coordinates.meanings[j], float(difference[j]), low, high, float(pvalues[j]))
        if name not in worst or found.largest > worst[name].largest:
            worst[name] = found
    return tuple(sorted(worst.values(), key=lambda column: -column.largest))


def _standardised_differences(coordinates: Coordinates) -> tuple[Array, Array, Array]:
    """Return each feature's difference of means in standard deviations, its standard error, and the degrees of freedom.

    The error is that of the ratio: the influence of a row is (y - mean)/(s n) - d ((y - mean)^2 - var) / (2 s^2 N), and the same
    with the opposite sign of the first part for rows of X. So the spread of the unit itself is counted, for any distribution.
    """
    x, y = coordinates.sides
    total = len(coordinates.matrix)
    variance = coordinates.variances
    unit = np.sqrt(np.where(variance > 0, variance, 1.0))
    apart = y.mean(axis=0) - x.mean(axis=0)
    d = np.where(variance > 0, apart / unit, 0.0)
    parts = []
    for side, sign in ((x, -1.0), (y, 1.0)):
        centred = (side - side.mean(axis=0)) / unit
        influence = sign * centred / len(side) - d * (centred**2 - centred.var(axis=0)) / (2 * total)
        parts.append(len(side) * influence.var(axis=0, ddof=1))
    of_x, of_y = parts
    with np.errstate(invalid="ignore", divide="ignore"):
        freedom = (of_x + of_y) ** 2 / (of_x**2 / (len(x) - 1) + of_y**2 / (len(y) - 1))  # Welch and Satterthwaite
    parted = (variance == 0) & (x[0] != y[0])
    d = np.where(parted, np.copysign(np.inf, apart), d)
    return d, np.where(variance > 0, np.sqrt(of_x + of_y), 0.0), np.where(np.isfinite(freedom), freedom, total - 2.0)
