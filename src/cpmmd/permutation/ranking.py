"""The exact p-value: where the observed statistic stands among its relabelings."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from cpmmd.core.arrays import Array


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
    """

    statistic: float
    null_distribution: Array = field(repr=False)
    pvalue: float
    exhaustive: bool

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
        at_least = int(np.count_nonzero(values >= values[0] - tolerance))
        reported = float(values[0]) if statistic is None else statistic
        return cls(reported, values[1:], at_least / len(values), exhaustive)
