"""The exact p-value: where the observed statistic stands among its relabelings."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.errors import InputError


def without_rounding(values: Array, rounding: Array | float) -> Array:
    """Return statistics of relabelings (along the last axis), made equal where they differ by no more than rounding.

    Rows of data that are all equal but for one have the same statistic whoever is called X; what is left of it is rounding, and
    a score relative to its own spread would take that for evidence.

    Examples
    --------
    >>> without_rounding(np.array([[0.0, 1e-18, -1e-18], [0.0, 1.0, 2.0]]), 1e-16).tolist()
    [[0.0, 0.0, 0.0], [0.0, 1.0, 2.0]]
    """
    mean = values.mean(axis=-1, keepdims=True)
    return np.where(np.abs(values - mean).max(axis=-1, keepdims=True) <= rounding, mean, values)


@dataclass(frozen=True, eq=False)
class Ranking:
    """The observed statistic among its relabelings.

    Attributes
    ----------
    statistic : float
        Of the labels as they came.
    null_distribution : array
        Of every other relabeling.
    pvalue : float
        (1 + #{others >= observed}) / (1 + number of others): never 0, ties count against rejection.
    exhaustive : bool
        Whether all relabelings that exist were used, instead of random ones.
    tolerance : float
        Values closer than this count as equal.
    ties : int
        Relabelings, the observed one among them, whose statistic equals the observed one.
    """

    statistic: float
    null_distribution: Array = field(repr=False)
    pvalue: float
    exhaustive: bool
    tolerance: float = 0.0
    ties: int = 1

    @property
    def smallest_pvalue(self) -> float:
        """The smallest p-value that these relabelings could have given, had the labels been the most extreme ones.

        With few relabelings that is more than 1 over their number: where m = n, exchanging the samples gives the same statistic.
        """
        if not self.exhaustive:
            return 1 / (len(self.null_distribution) + 1)
        values = np.append(self.null_distribution, self.statistic)
        close = max(self.tolerance, 1e-9 * float(np.abs(values).max()))
        return float(np.count_nonzero(values >= values.max() - close) / len(values))

    @classmethod
    def of(cls, values: Array, *, tolerance: float, exhaustive: bool, statistic: float | None = None) -> Ranking:
        """Rank the first of exchangeable values among all of them.

        Parameters
        ----------
        values : array
            The statistic of each relabeling, the observed one first.
        tolerance : float
            Values closer than this count as equal: rounding must not split the ties of discrete data.
        exhaustive : bool
            Whether these are all relabelings.
        statistic : float, optional
            The observed statistic in higher precision, to be reported instead of the first value.
        """
        if not np.isfinite(values).all() or not np.isfinite(tolerance):  # NaN compares as most extreme: p would be 0
            raise InputError(
                "The test's statistic must be a finite number under every relabeling. It is not: the values are too large or too "
                "small for double precision. Rescale the columns: divide each by its spread, or by its unit.",
            )
        at_least = int(np.count_nonzero(values >= values[0] - tolerance))
        reported = float(values[0]) if statistic is None else statistic
        ties = at_least - int(np.count_nonzero(values > values[0] + tolerance))
        return cls(reported, values[1:], at_least / len(values), exhaustive, tolerance, ties)
