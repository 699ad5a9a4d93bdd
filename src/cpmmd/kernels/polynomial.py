"""H_polynomial: a base kernel on all monomials of degree 1 to p, without ever forming them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd import validation
from cpmmd.kernels.base import base_kernel, from_inner_products
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.samples import Array

MAX_DEGREE = 6


@dataclass(frozen=True)
class Polynomial(ScaleFamily):
    """k(Psi_p(x)/sigma, Psi_p(x')/sigma), Psi_p all monomials of degree 1 to p, for all sigma > 0.

    Parameters
    ----------
    degree
        p, from 1 to 6.
    base
        ``"laplacian"`` (the paper's) or ``"gaussian"``.

    Examples
    --------
    >>> Polynomial(degree=3)
    Polynomial(degree=3, base='laplacian')
    """

    degree: int = 4
    base: str = "laplacian"

    def __post_init__(self) -> None:
        validation.whole("degree", self.degree, at_least=1, at_most=MAX_DEGREE)
        base_kernel(self.base)

    def squared_distances(self, rows: Array, others: Array | None = None) -> Array:
        """|Psi_p(x) - Psi_p(x')|^2 for all pairs, from p matrix products."""
        b = rows if others is None else others
        inner = inner_products(rows, b, self.degree)
        norms_a = row_norms(rows, self.degree)
        norms_b = norms_a if others is None else row_norms(b, self.degree)
        return from_inner_products(inner, norms_a, norms_b, same=others is None)

    def lift_lipschitz(self, rows: Array) -> float:
        """Bound |J Psi_p| over the ball around 0 that holds ``rows``.

        Notes
        -----
        The degree-k monomials differ by no more than x^{(x)k}, whose Jacobian has norm k |x|^(k-1): the tensor power
        weighs each monomial by the root of its multinomial coefficient, which is at least 1. Hence
        L^2 <= sum_k k^2 R^(2k-2) with R the largest row norm.
        """
        radius = float(np.sqrt(np.einsum("ij,ij->i", rows, rows).max(initial=0.0)))
        return float(np.sqrt(sum((k * radius ** (k - 1)) ** 2 for k in range(1, self.degree + 1))))

    def proxy_constant(self, width: int) -> float:  # noqa: ARG002 - the same for every width
        """c_H = 1 (proof of the proxy bound, polynomial regime)."""
        return 1.0


def inner_products(a: Array, b: Array, degree: int) -> Array:
    """Give <Psi_p(a_i), Psi_p(b_j)> for all pairs.

    Notes
    -----
    The power sums of the products a_i b_i are P_k = A^(k) B^(k)' with elementwise powers; Newton's identities
    h_k = (1/k) sum_{i=1..k} P_i h_{k-i} give the complete homogeneous polynomials, which sum the monomials of degree k.
    """
    return _homogeneous_sum([(a**k) @ (b**k).T for k in range(1, degree + 1)])


def row_norms(rows: Array, degree: int) -> Array:
    """Give |Psi_p(x)|^2 of each row."""
    squares = rows * rows
    return _homogeneous_sum([(squares**k).sum(axis=1) for k in range(1, degree + 1)])


def _homogeneous_sum(power_sums: list[Array]) -> Array:
    h = [np.ones_like(power_sums[0])]
    for k in range(1, len(power_sums) + 1):
        h.append(np.asarray(sum(power_sums[i - 1] * h[k - i] for i in range(1, k + 1))) / k)
    return np.asarray(sum(h[1:]))
