"""The Laplacian on the L1 norm, exp(-|x - x'|_1 / bandwidth): sums of coordinates, not Euclidean length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from cpmmd.core.arrays import Array
from cpmmd.kernels.scaled import Lifted, ScaleFamily


@dataclass(frozen=True, eq=False)
class _Rows(Lifted):
    rows: Array

    def distances(self, rows: slice, others: Lifted, columns: slice) -> Array:
        """Return the L1 distances of a tile of pairs."""
        assert isinstance(others, _Rows)
        return np.asarray(cdist(self.rows[rows], others.rows[columns], "cityblock"))


@dataclass(frozen=True)
class LaplacianL1(ScaleFamily):
    """``exp(-|x - x'|_1 / bandwidth)`` for all bandwidths.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import FullSampleTest, LaplacianL1, two_sample_test
    >>> LaplacianL1()
    LaplacianL1()
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> two_sample_test(x, y, method=FullSampleTest(classes=(LaplacianL1(),)), rng=0).reject
    True
    """

    citations = ("gretton2012kernel",)

    base = "laplacian"
    label = "laplacian (L1)"
    geometry = ("l1",)
    squared = False

    def lift(self, rows: Array, centre: Array) -> Lifted:
        """Return the centred rows."""
        centred = rows - centre
        return _Rows(np.abs(centred).sum(axis=1), centred)

    def lift_lipschitz(self, rows: Array) -> float:
        """Return sqrt(d): the L1 norm is at most sqrt(d) times the L2 norm."""
        return float(np.sqrt(rows.shape[1]))

    def proxy_constant(self, columns: int, size: int) -> float:  # noqa: ARG002
        """Return c_H = d_out, as in the linear regime."""
        return float(columns)
