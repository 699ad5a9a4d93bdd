"""One-parameter families k(psi(x)/sigma, psi(x')/sigma): what bandwidths and polynomial lifts share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cpmmd.errors import InputError
from cpmmd.kernels import tiles
from cpmmd.kernels.base import BaseKernel, base_kernel
from cpmmd.kernels.lift import Lifted
from cpmmd.samples import Array


class ScaleFamily(ABC):
    """A class H = {x -> psi(x)/sigma : sigma > 0} for one fixed lift psi."""

    base: str
    squared: bool = True  # whether the lifted rows give squared distances
    about_origin: bool = False  # whether moving all rows changes the distances

    def exponent_of(self, distances: Array) -> Array:
        """Turn a tile of (squared) distances into exponents at sigma = 1, in place."""
        return self.base_kernel.exponent(distances) if self.squared else distances

    @property
    @abstractmethod
    def geometry(self) -> tuple[object, ...]:
        """What the distances depend on: families of one geometry share them."""

    @property
    def base_kernel(self) -> BaseKernel:
        """The base kernel k."""
        return base_kernel(self.base)

    @abstractmethod
    def lift(self, rows: Array, centre: Array) -> Lifted:
        """Lift rows; ``centre`` may be taken off first where the family does not notice."""

    @abstractmethod
    def lift_lipschitz(self, rows: Array) -> float:
        """Bound the Lipschitz constant of psi on the ball that holds ``rows``."""

    @abstractmethod
    def proxy_constant(self, width: int, size: int) -> float:
        """c_H of the proxy bound for ``size`` inputs of ``width`` columns."""

    def exponents(self, rows: Array, others: Array | None = None) -> Array:
        """Give the base kernel's exponents at sigma = 1 for all pairs."""

        def compute(a: Lifted, i: slice, b: Lifted, j: slice) -> Array:
            return self.exponent_of(a.distances(i, b, j))

        return self._over_pairs(rows, others, compute, diagonal=0.0)

    def gram(self, sigma: float, rows: Array, others: Array | None = None) -> Array:
        """Give the kernel at one bandwidth for all pairs."""
        base = self.base_kernel

        def compute(a: Lifted, i: slice, b: Lifted, j: slice) -> Array:
            tile = self.exponent_of(a.distances(i, b, j))
            return base.of_exponent(tile, sigma, out=tile)

        return self._over_pairs(rows, others, compute, diagonal=1.0)

    def _over_pairs(self, rows: Array, others: Array | None, compute: _Compute, *, diagonal: float) -> Array:
        centre = np.median(rows, axis=0)  # one wild row would drag the mean away from all others, and their digits with it
        a = self.lifted(rows, centre)
        if others is None:
            return tiles.symmetric(len(rows), lambda i, j: compute(a, i, a, j), diagonal)
        b = self.lifted(others, centre)
        return tiles.rectangular(len(rows), len(others), lambda i, j: compute(a, i, b, j))

    def lifted(self, rows: Array, centre: Array) -> Lifted:
        """Lift rows, refused when that overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            lifted = self.lift(rows, centre)
        refuse_overflow(str(self), lifted.norms, rows)
        return lifted


def refuse_overflow(what: str, norms: Array, rows: Array) -> None:
    """Refuse rows whose distances would overflow."""
    if not float(norms.max(initial=0.0)) < 1e300:  # also when not a number
        raise InputError(
            f"Distances of {what} overflow on values as large as {np.abs(rows).max():.3g}. "
            "Rescale the columns, for instance with scale='standard'."
        )


class _Compute(Protocol):
    def __call__(self, a: Lifted, i: slice, b: Lifted, j: slice, /) -> Array: ...


@dataclass(frozen=True)
class ScaledKernel:
    """A frozen member of a :class:`ScaleFamily`: the family at one bandwidth."""

    family: ScaleFamily
    sigma: float
    lift_lipschitz: float = 1.0

    @property
    def bound(self) -> float:
        """Nu of the kernel."""
        return self.family.base_kernel.bound

    @property
    def base_lipschitz(self) -> float:
        """L of the base kernel."""
        return self.family.base_kernel.lipschitz

    @property
    def lipschitz(self) -> float:
        """L(h) = L_psi / sigma."""
        return self.lift_lipschitz / self.sigma

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Kernel matrix of ``rows`` with ``others`` (or with themselves)."""
        return self.family.gram(self.sigma, rows, others)

    def to_dict(self) -> dict[str, object]:
        """Describe the kernel in plain JSON types."""
        return {
            "type": "scaled",
            "family": type(self.family).__name__,
            "options": dict(vars(self.family)),
            "sigma": self.sigma,
            "lift_lipschitz": self.lift_lipschitz,
            "lipschitz": self.lipschitz,
        }

    def __str__(self) -> str:
        return f"{self.family} at sigma = {self.sigma:.4g}"
