"""One-parameter families k(psi(x)/sigma, psi(x')/sigma): what bandwidths and polynomial lifts share."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from cpmmd.errors import InputError
from cpmmd.kernels.base import BaseKernel, base_kernel
from cpmmd.samples import Array


class ScaleFamily(ABC):
    """A class H = {x -> psi(x)/sigma : sigma > 0} for one fixed lift psi."""

    base: str

    @property
    def base_kernel(self) -> BaseKernel:
        """The base kernel k."""
        return base_kernel(self.base)

    @abstractmethod
    def squared_distances(self, rows: Array, others: Array | None = None) -> Array:
        """|psi(x) - psi(x')|^2 for all pairs."""

    @abstractmethod
    def lift_lipschitz(self, rows: Array) -> float:
        """Bound the Lipschitz constant of psi on the ball that holds ``rows``."""

    @abstractmethod
    def proxy_constant(self, width: int) -> float:
        """c_H of the proxy bound for inputs of ``width`` columns."""

    def exponents(self, rows: Array, others: Array | None = None) -> Array:
        """Give the base kernel's exponents at sigma = 1, refused when the lift overflows."""
        with np.errstate(over="ignore", invalid="ignore"):
            distances = self.squared_distances(rows, others)
        if not np.isfinite(distances).all():
            raise InputError(
                f"Distances of {self} overflow on values as large as {np.abs(rows).max():.3g}. "
                "Rescale the columns, for instance with scale='standard'."
            )
        return self.base_kernel.exponent(distances)


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
        exponents = self.family.exponents(rows, others)
        return self.family.base_kernel.of_exponent(exponents, self.sigma, out=exponents)

    def to_dict(self) -> dict[str, object]:
        """Describe the kernel in plain JSON types."""
        return {"family": repr(self.family), "sigma": self.sigma, "lipschitz": self.lipschitz}

    def __str__(self) -> str:
        return f"{self.family} at sigma = {self.sigma:.4g}"
