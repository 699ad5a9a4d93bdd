"""The Laplacian of lengths, exp(-| |x| - |x'| | / bandwidth): how far rows are from the origin, wherever they lie."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.kernels.scaled import Lifted, ScaleFamily


@dataclass(frozen=True, eq=False)
class _Lengths(Lifted):
    def distances(self, rows: slice, others: Lifted, columns: slice) -> Array:
        """Return the differences in length of a tile of pairs."""
        apart = np.subtract.outer(self.norms[rows], others.norms[columns])
        return np.asarray(np.abs(apart, out=apart))


@dataclass(frozen=True)
class Radius(ScaleFamily):
    """``exp(-| |x| - |x'| | / bandwidth)`` for all bandwidths.

    On standardised coordinates a length is a distance from the centre. The family sees what moves all columns outwards or inwards
    together: heavier tails, another spread. It does not see directions.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import FullSampleTest, KernelClass, Radius, two_sample_test
    >>> Radius()
    Radius()
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(60, 5)), data.normal(0, 2, size=(60, 5))
    >>> two_sample_test(x, y, method=FullSampleTest(classes=(KernelClass(Radius(), "standard"),)), rng=0).reject
    True
    """

    citations = ("gretton2012kernel",)

    base = "laplacian"
    label = "radius"
    geometry = ("radius",)
    squared = False
    about_origin = True

    def lift(self, rows: Array, centre: Array) -> Lifted:  # noqa: ARG002 - lengths are not shift invariant
        """Return the rows' lengths."""
        return _Lengths(np.sqrt(np.einsum("ij,ij->i", rows, rows)))

    def proxy_constant(self, columns: int, size: int) -> float:  # noqa: ARG002
        """Return c_H = 1, as for a single column."""
        return 1.0
