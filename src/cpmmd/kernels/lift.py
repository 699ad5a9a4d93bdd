"""Squared distances between polynomial lifts, without features: power sums and Newton's identities.

<Psi_p(x), Psi_p(z)> = h_1 + ... + h_p, the complete homogeneous polynomials of the products x_i z_i. Their power sums are
matrix products of elementwise powers, P_k = X^(k) Z^(k)', and k h_k = sum_{i=1..k} P_i h_{k-i}. So p products of width d give
what D_p = C(d+p, p) - 1 features would, and p = 1 is the plain Euclidean distance.

With a, b the squared norms, the last product carries V = P_p - (p/2)(a + b) in two more columns, and

    |Psi_p(x) - Psi_p(z)|^2 = a + b - 2 (h_1 + ... + h_p) = -(2/p) [ V + sum_{i<p} (P_i + p) h_{p-i} ],

which takes the fewest passes over the tile; passes are what costs.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array

# What rounding may leave of a zero distance, relative to the two squared norms.
ZERO = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class Lifted(ABC):
    """Rows in the form that gives their distances tile by tile; ``norms`` are their own sizes."""

    norms: Array

    @abstractmethod
    def distances(self, rows: slice, others: Lifted, columns: slice) -> Array:
        """Return the family's (squared) distances for a tile of pairs; the result may be overwritten."""


@dataclass(frozen=True, eq=False)
class LiftedRows(Lifted):
    """Rows in the form that gives squared distances of their degree-p lifts; ``norms`` are |Psi_p(x)|^2.

    Attributes
    ----------
    left, right
        Elementwise powers, the last with the norms beside it; ``right`` is transposed.
    """

    left: tuple[Array, ...]
    right: tuple[Array, ...]

    @classmethod
    def of(cls, rows: Array, degree: int) -> LiftedRows:
        """Lift rows to all monomials of degree 1 to ``degree``."""
        powers = [rows]
        for _ in range(1, degree):
            powers.append(powers[-1] * rows)
        norms = _homogeneous_sum([np.einsum("ij,ij->i", power, power) for power in powers])
        weighted, one = (-degree / 2 * norms)[:, None], np.ones((len(rows), 1))
        left = (*powers[:-1], np.hstack([powers[-1], weighted, one]))
        right = (*powers[:-1], np.hstack([powers[-1], one, weighted]))
        return cls(norms, left, tuple(np.ascontiguousarray(power.T) for power in right))

    def distances(self, rows: slice, others: Lifted, columns: slice) -> Array:
        """Return |Psi(x_i) - Psi(z_j)|^2 for a tile of pairs, duplicates exactly at zero.

        What the products' rounding leaves of a zero distance is set to zero: a square root would blow 1e-16 up to 1e-8.
        """
        assert isinstance(others, LiftedRows)
        products = [a[rows] @ b[:, columns] for a, b in zip(self.left, others.right, strict=True)]
        tile = _distances_from_power_sums(products)
        a, b = self.norms[rows], others.norms[columns]
        if tile.min() <= ZERO * (a.max() + b.max()):
            np.putmask(tile, tile <= ZERO * np.add.outer(a, b), 0.0)
        return tile


def _distances_from_power_sums(power_sums: list[Array]) -> Array:
    """Return the squared distances from P_1, ..., P_{p-1} and V, overwriting V."""
    degree, total = len(power_sums), power_sums[-1]
    h, term = [power_sums[0]], np.empty_like(total)  # h_1, h_2, ...
    for k in range(2, degree):
        value = power_sums[0] * h[k - 2]
        for i in range(2, k):
            value += np.multiply(power_sums[i - 1], h[k - i - 1], out=term)
        value += power_sums[k - 1]
        value *= 1 / k
        h.append(value)
    for i in range(1, degree):
        np.add(power_sums[i - 1], degree, out=term)
        term *= h[degree - i - 1]
        total += term
    total *= -2 / degree
    return total


def _homogeneous_sum(power_sums: list[Array]) -> Array:
    """Return h_1 + ... + h_p by Newton's identities, in plain form."""
    h = [np.ones_like(power_sums[0])]
    for k in range(1, len(power_sums) + 1):
        h.append(np.asarray(sum(power_sums[i - 1] * h[k - i] for i in range(1, k + 1))) / k)
    return np.asarray(sum(h[1:]))
