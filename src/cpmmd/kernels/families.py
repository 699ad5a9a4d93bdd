"""Families of one bandwidth: k of the distance of rows, their L1 distance, their difference in length, their monomials.

A family says what a distance is. Its exponential is in ``base.py``, and in single precision in ``tilers.py``. The kernels of
MMDAgg and MMD-FUSE, as their authors write them, are in ``collection.py``.
"""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.kernels.base import FrozenKernel, base_kernel
from cpmmd.kernels.scaled import LiftedKernel, LiftedRows, ScaleFamily

MAX_DEGREE = 6


@dataclass(frozen=True)
class Bandwidth(ScaleFamily):
    """k(x/b, x'/b) for all bandwidths b.

    Parameters
    ----------
    base : str
        ``"gaussian"``, ``exp(-|x-x'|^2 / 2 b^2)``, or ``"laplacian"``, ``exp(-|x-x'| / b)``.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Bandwidth, SplitTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> two_sample_test(x, y, method=SplitTest(Bandwidth("laplacian")), rng=0).kernel.family
    Bandwidth(base='laplacian')
    """

    base: str = "gaussian"

    citations = ("gretton2012kernel",)
    geometry = ("lift", 1)

    def __post_init__(self) -> None:
        base_kernel(self.base)

    @property
    def label(self) -> str:  # type: ignore[override]
        """The base kernel's name."""
        return self.base

    def lift(self, rows: Array, centre: Array) -> LiftedRows:
        """Return the centred rows: distances stay the same, and lose fewer digits to cancellation."""
        return LiftedRows.of(rows - centre, 1)


class FeatureKernel(FrozenKernel):
    """A Gaussian kernel of bandwidth 1 on features that can be computed once for each row."""

    @abstractmethod
    def features(self, rows: Array) -> Array:
        """Return h(x) of each row."""

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Return exp(-|h(x) - h(x')|^2 / 2)."""
        return Bandwidth().gram(1.0, self.features(rows), None if others is None else self.features(others))


@dataclass(frozen=True)
class LaplacianL1(ScaleFamily):
    """``exp(-|x - x'|_1 / bandwidth)`` for all bandwidths: sums of coordinates, not Euclidean length.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import FullSampleTest, LaplacianL1, two_sample_test
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

    def lift(self, rows: Array, centre: Array) -> LiftedKernel:
        centred = rows - centre
        return _L1Rows(np.abs(centred).sum(axis=1), centred)

    def lift_lipschitz(self, rows: Array) -> float:
        """Return sqrt(d): the L1 norm is at most sqrt(d) times the L2 norm."""
        return float(np.sqrt(rows.shape[1]))


@dataclass(frozen=True, eq=False)
class _L1Rows(LiftedKernel):
    rows: Array

    def distances(self, rows: slice, others: LiftedKernel, columns: slice) -> Array:
        assert isinstance(others, _L1Rows)
        return np.asarray(cdist(self.rows[rows], others.rows[columns], "cityblock"))


@dataclass(frozen=True)
class Radius(ScaleFamily):
    """``exp(-| |x| - |x'| | / bandwidth)`` for all bandwidths.

    On standardised coordinates a length is a distance from the centre. The family sees what moves all columns outwards or inwards
    together: heavier tails, or another scale. It does not see directions.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import FullSampleTest, KernelClass, Radius, two_sample_test
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

    def lift(self, rows: Array, centre: Array) -> LiftedKernel:  # noqa: ARG002 - lengths are not shift invariant
        return _Lengths(np.sqrt(np.einsum("ij,ij->i", rows, rows)))

    def proxy_constant(self, columns: int, size: int) -> float:  # noqa: ARG002
        """Return c_H = 1, as for a single column."""
        return 1.0


@dataclass(frozen=True, eq=False)
class _Lengths(LiftedKernel):
    def distances(self, rows: slice, others: LiftedKernel, columns: slice) -> Array:
        apart = np.subtract.outer(self.norms[rows], others.norms[columns])
        return np.asarray(np.abs(apart, out=apart))


@dataclass(frozen=True)
class Polynomial(ScaleFamily):
    """k(Psi_p(x)/b, Psi_p(x')/b), Psi_p all monomials of degree 1 to p, for all bandwidths.

    Parameters
    ----------
    degree : int
        p, from 1 to 6.
    base : str
        ``"laplacian"`` (the paper's) or ``"gaussian"``.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Polynomial, SplitTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> two_sample_test(x, y, method=SplitTest(Polynomial(degree=2)), rng=0).reject
    True
    """

    degree: int = 4
    base: str = "laplacian"

    citations = ("ni2026kernel",)
    about_origin = True

    def __post_init__(self) -> None:
        validation.whole("degree", self.degree, at_least=1, at_most=MAX_DEGREE)
        base_kernel(self.base)

    @property
    def label(self) -> str:  # type: ignore[override]
        """The family in few words, for a legend."""
        return f"polynomial of degree {self.degree}"

    @property
    def geometry(self) -> tuple[object, ...]:  # type: ignore[override]
        """Degrees do not share their distances."""
        return ("lift of raw rows", self.degree)

    def lift(self, rows: Array, centre: Array) -> LiftedRows:  # noqa: ARG002 - monomials are not shift invariant
        """Return the monomials, never formed: power sums and Newton's identities give their distances."""
        return LiftedRows.of(rows, self.degree)

    def lift_lipschitz(self, rows: Array) -> float:
        """Bound the Jacobian of Psi_p over the ball around 0 that holds ``rows``: L^2 <= sum_k k^2 R^(2k-2), R its radius."""
        # The degree-k monomials differ by no more than x^{(x)k}, whose Jacobian has norm k |x|^(k-1): the tensor power weighs
        # each monomial by the root of its multinomial coefficient, which is at least 1.
        radius = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)))
        return float(np.sqrt(sum((k * radius ** (k - 1)) ** 2 for k in range(1, self.degree + 1))))

    def proxy_constant(self, columns: int, size: int) -> float:  # noqa: ARG002
        """Return c_H = 1 (proof of the proxy bound, polynomial regime)."""
        return 1.0
