"""What a test relabelled: rows of the pool in units that change sides together, and every labeling of those units.

A column's statistic, a pair's: whatever is a function of sums over units can be computed under the very relabelings that
the verdict comes from.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.permutation.binned import Bins
from cpmmd.permutation.contrasts import Contrast
from cpmmd.permutation.labels import Relabelings


@dataclass(frozen=True, eq=False)
class Units:
    """Units of rows, and their labelings.

    Attributes
    ----------
    rows : array of int
        Row numbers of the pool, unit after unit.
    starts : array of int
        Where each unit begins in ``rows``.
    labels : Relabelings
        Which units are called X, the observed labeling first.
    contrast : Contrast or None
        How a design weighs the rows of units under a labeling, their strata among it; None where all rows are exchangeable.
    """

    rows: Rows
    starts: Rows
    labels: Relabelings
    contrast: Contrast | None = None

    @classmethod
    def of(cls, bins: Bins, labels: Relabelings, rows: Rows | None = None) -> Units:
        """Return bins as units; ``rows`` are the rows of the pool in the order of the bins, where that has other numbers."""
        return cls(bins.order if rows is None else rows, bins.starts[:-1], labels, bins.contrast)

    @classmethod
    def of_size(cls, rows: Rows, size: int, labels: Relabelings) -> Units:
        """Return units of one size, cut from rows in order."""
        return cls(rows, np.arange(0, len(rows), size), labels)

    @property
    def counts(self) -> Rows:
        """Rows of each unit."""
        return np.diff(self.starts, append=len(self.rows))

    def sums(self, values: Array) -> Array:
        """Return the sums over units of values that are given for ``rows``, in their order."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=0))
