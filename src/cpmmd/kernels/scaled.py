"""One-parameter families k(psi(x)/bandwidth, psi(x')/bandwidth): what bandwidths and polynomial lifts share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Real
from cpmmd.errors import InputError, ParameterReference
from cpmmd.kernels.base import BaseKernel, Description, FrozenKernel, KernelFamily, Tensors, base_kernel

if TYPE_CHECKING:
    from torch import nn


MEDIAN_OF = 1024  # values that show where a median is
TILE = 144  # rows and columns of a tile: half a dozen of them fit a core's cache


def cut(size: int, tile: int = TILE) -> list[slice]:
    """Cut ``range(size)`` into slices."""
    return [slice(start, min(start + tile, size)) for start in range(0, size, tile)]


# Squared distances between polynomial lifts, without features: power sums and Newton's identities.
#
# <Psi_p(x), Psi_p(z)> = h_1 + ... + h_p, the complete homogeneous polynomials of the products x_i z_i. Their power sums are
# matrix products of elementwise powers, P_k = X^(k) Z^(k)', and k h_k = sum_{i=1..k} P_i h_{k-i}. So p products of width d give
# what D_p = C(d+p, p) - 1 features would, and p = 1 is the plain Euclidean distance.
#
# With a, b the squared norms, the last product carries V = P_p - (p/2)(a + b) in two more columns, and
#
#     |Psi_p(x) - Psi_p(z)|^2 = a + b - 2 (h_1 + ... + h_p) = -(2/p) [ V + sum_{i<p} (P_i + p) h_{p-i} ],
#
# which takes the fewest passes over the tile; passes are what costs.

# What rounding may leave of a zero distance, relative to the two squared norms.
ZERO = 16 * float(np.finfo(np.float64).eps)


@dataclass(frozen=True, eq=False)
class LiftedKernel(ABC):
    """Rows in the form that gives their distances tile by tile; ``norms`` are their own sizes."""

    norms: Array

    @abstractmethod
    def distances(self, rows: slice, others: LiftedKernel, columns: slice) -> Array:
        """Return the family's (squared) distances for a tile of pairs; the result may be overwritten."""


@dataclass(frozen=True, eq=False)
class LiftedRows(LiftedKernel):
    """Rows in the form that gives squared distances of their degree-p lifts; ``norms`` are |Psi_p(x)|^2."""

    # left, right: elementwise powers, the last with the norms beside it; ``right`` is transposed
    left: tuple[Array, ...]
    right: tuple[Array, ...]

    @classmethod
    def of(cls, rows: Array, degree: int) -> LiftedRows:
        """Lift rows to all monomials of degree 1 to ``degree``."""
        powers = [rows]
        for _ in range(1, degree):
            powers.append(powers[-1] * rows)
        norms = _homogeneous_sum([np.einsum("ij,ij->i", power, power) for power in powers])
        weighted, ones = (-degree / 2 * norms)[:, None], np.ones((len(rows), 1))
        left = (*powers[:-1], np.hstack([powers[-1], weighted, ones]))
        right = (*powers[:-1], np.hstack([powers[-1], ones, weighted]))
        return cls(norms, left, tuple(np.ascontiguousarray(power.T) for power in right))

    def distances(self, rows: slice, others: LiftedKernel, columns: slice) -> Array:
        """Return |Psi(x_i) - Psi(z_j)|^2 for a tile of pairs, duplicates exactly at zero."""
        assert isinstance(others, LiftedRows)
        *sums, total = (a[rows] @ b[:, columns] for a, b in zip(self.left, others.right, strict=True))  # P_1, ..., P_{p-1} and V
        degree, term = len(sums) + 1, np.empty_like(total)
        h = sums[:1]  # h_1, h_2, ...
        for k in range(2, degree):
            value = sums[0] * h[k - 2]
            for i in range(2, k):
                value += np.multiply(sums[i - 1], h[k - i - 1], out=term)
            value += sums[k - 1]
            value *= 1 / k
            h.append(value)
        for i in range(1, degree):
            np.add(sums[i - 1], degree, out=term)
            term *= h[degree - i - 1]
            total += term
        total *= -2 / degree
        a, b = self.norms[rows], others.norms[columns]
        # What the products' rounding leaves of a zero distance is set to zero: a square root would blow 1e-16 up to 1e-8.
        if total.min() <= ZERO * (a.max() + b.max()):
            np.putmask(total, total <= ZERO * np.add.outer(a, b), 0.0)
        return total


def _homogeneous_sum(power_sums: list[Array]) -> Array:
    """Return h_1 + ... + h_p by Newton's identities, in plain form."""
    h = [np.ones_like(power_sums[0])]
    for k in range(1, len(power_sums) + 1):
        h.append(np.asarray(sum(power_sums[i - 1] * h[k - i] for i in range(1, k + 1))) / k)
    return np.asarray(sum(h[1:]))


class ScaleFamily(KernelFamily):
    """All x -> psi(x)/bandwidth for one fixed lift psi: one kernel for each bandwidth."""

    base: str  #: name of the base kernel
    label: str  #: the family in few words, for a legend
    geometry: tuple[object, ...]  #: what the distances depend on: families of one geometry share them
    squared: ClassVar[bool] = True  #: whether the lifted rows give squared distances
    about_origin: ClassVar[bool] = False  #: whether moving all rows changes the distances

    @abstractmethod
    def lift(self, rows: Array, centre: Array) -> LiftedKernel:
        """Lift rows; ``centre`` may be taken off first where the family does not notice."""

    def lift_lipschitz(self, rows: Array) -> float:  # noqa: ARG002 - for lifts that need them
        """Bound the Lipschitz constant of psi on the ball that holds ``rows``."""
        return 1.0

    def proxy_constant(self, columns: int, size: int) -> float:  # noqa: ARG002
        """Return c_H = d_out (proof of the proxy bound, linear regime)."""
        return float(columns)

    @property
    def base_kernel(self) -> BaseKernel:
        """The base kernel k."""
        return base_kernel(self.base)

    def exponent_of(self, distances: Real) -> Real:
        """Turn a tile of (squared) distances into exponents at bandwidth 1, in place."""
        return self.base_kernel.exponent(distances) if self.squared else distances

    def exponents(self, rows: Array, others: Array | None = None) -> Array:
        """Return the base kernel's exponents at bandwidth 1 for all pairs."""
        return self._over_pairs(rows, others, lambda exponent: exponent, diagonal=0.0)

    def gram(self, bandwidth: float, rows: Array, others: Array | None = None) -> Array:
        """Return the kernel at one bandwidth for all pairs."""
        k = self.base_kernel
        return self._over_pairs(rows, others, lambda exponent: k.of_exponent(exponent, bandwidth, out=exponent), diagonal=1.0)

    def _over_pairs(self, rows: Array, others: Array | None, value: Callable[[Array], Array], *, diagonal: float) -> Array:
        """Return a value of the exponents of all pairs, tile by tile so that intermediate arrays stay in the cache."""
        centre = np.median(rows, axis=0)  # one wild row would drag the mean away from all others, and their digits with it
        a = self.lift_checked(rows, centre)
        b = a if others is None else self.lift_checked(others, centre)
        out = np.empty((len(a.norms), len(b.norms)))
        columns = cut(len(b.norms))
        for position, i in enumerate(cut(len(a.norms))):
            for j in columns if others is not None else columns[position:]:
                out[i, j] = tile = value(self.exponent_of(a.distances(i, b, j)))
                if others is None and i != j:
                    out[j, i] = tile.T
        if others is None:
            np.fill_diagonal(out, diagonal)
        return out

    def median_bandwidth(self, rows: Array) -> float:
        """Return the median distance of ``rows`` as this family measures it: the bandwidth of the median heuristic."""
        return median_distance(self.exponents(rows), self.base_kernel.power)

    def lift_checked(self, rows: Array, centre: Array) -> LiftedKernel:
        """Lift rows, refused when that overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            lifted = self.lift(rows, centre)
        refuse_overflow(str(self), lifted.norms, rows)
        return lifted

    @classmethod
    def restore(cls, described: Description, tensors: Tensors, module: nn.Module | None) -> ScaledKernel:  # noqa: ARG003
        """Return the kernel that its description says; it has no arrays."""
        numbers = (validation.positive(name, described[name]) for name in ("bandwidth", "lift_lipschitz"))
        return ScaledKernel(cls(**described["options"]), *numbers)


def refuse_overflow(what: str, norms: Array, rows: Array) -> None:
    """Refuse rows whose distances would overflow."""
    if not float(norms.max(initial=0.0)) < 1e300:  # also when not a number
        raise InputError(
            "Distances of {what} overflow on values as large as {largest:.3g}. Rescale the columns, for instance with {setting}.",
            what=what,
            largest=float(np.abs(rows).max()),
            setting=ParameterReference("scale", "standard"),
        )


def median_distance(exponents: Array, power: int) -> float:
    """Return the median distance over pairs; over distinct pairs if that is 0, and 1 if all rows are the same."""
    pairs = np.concatenate([row[i + 1 :] for i, row in enumerate(exponents)])
    median = _median(pairs)
    if median == 0.0:
        distinct = pairs[pairs > 0]
        if len(distinct) == 0:
            return 1.0
        median = _median(distinct)
    return float(np.sqrt(2 * median)) if power == 2 else median


def _median(values: Array) -> float:
    """Return the median, as `np.median` does: of many values by a search among those near the median of some."""
    if len(values) < 4 * MEDIAN_OF:
        return float(np.median(values))
    upper = len(values) // 2
    some = np.sort(values[:: len(values) // MEDIAN_OF])
    low, high = some[int(0.45 * len(some))], some[int(0.55 * len(some))]
    below, near = int(np.count_nonzero(values < low)), values[(values >= low) & (values <= high)]
    if not below < upper < below + len(near):
        return float(np.median(values))
    near = np.partition(near, upper - below)
    found = near[upper - below]
    return float(found if len(values) % 2 else (near[: upper - below].max() + found) / 2)


@dataclass(frozen=True, eq=False)
class ScaledKernel(FrozenKernel):
    """A frozen member of a :class:`ScaleFamily`: the family at one bandwidth."""

    family: ScaleFamily
    bandwidth: float
    lift_lipschitz: float = 1.0

    described = ("bandwidth", "lift_lipschitz", "lipschitz")

    @property
    def base_kernel(self) -> BaseKernel:
        """The base kernel of the family."""
        return self.family.base_kernel

    @property
    def lipschitz(self) -> float:
        """L(h) = L_psi / bandwidth."""
        return self.lift_lipschitz / self.bandwidth

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        return self.family.gram(self.bandwidth, rows, others)

    def __str__(self) -> str:
        return f"{self.family} at bandwidth {self.bandwidth:.4g}"
