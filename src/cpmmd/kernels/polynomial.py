"""H_polynomial: a base kernel on all monomials of degree 1 to p, without ever forming them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.kernels.base import base_kernel
from cpmmd.kernels.scaled import LiftedRows, ScaleFamily

MAX_DEGREE = 6


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
