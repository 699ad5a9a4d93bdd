"""Base kernels on distances, each with its bound and Lipschitz constant (Assumption 1 of the paper)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cpmmd.errors import unknown_name
from cpmmd.samples import Array


@dataclass(frozen=True)
class BaseKernel:
    """k(u, u') = exp(-e(u - u') / sigma^power), with e the base kernel's exponent.

    Attributes
    ----------
    bound
        nu: 0 <= k <= nu.
    lipschitz
        l: |k(u, v) - k(u', v)| <= l |u - u'| at sigma = 1.
    """

    name: str
    power: int
    bound: float
    lipschitz: float

    def exponent(self, sq_distances: Array) -> Array:
        """Turn squared distances into exponents at sigma = 1, in place."""
        if self.power == 2:
            sq_distances *= 0.5
            return sq_distances
        return np.sqrt(sq_distances, out=sq_distances)

    def of_exponent(self, exponent: Array, sigma: float, out: Array | None = None) -> Array:
        """Give the kernel values at bandwidth ``sigma``."""
        # Two divisions instead of sigma**2: the square over- and underflows long before the ratio does.
        scaled = np.multiply(exponent, -1.0 / sigma, out=out)
        if self.power == 2:
            scaled *= 1.0 / sigma
        return np.exp(scaled, out=scaled)


# Gaussian exp(-u^2/2): steepest at u = 1. Laplacian exp(-|u|_2): steepest at 0.
GAUSSIAN = BaseKernel("gaussian", power=2, bound=1.0, lipschitz=math.exp(-0.5))
LAPLACIAN = BaseKernel("laplacian", power=1, bound=1.0, lipschitz=1.0)
BASE_KERNELS = {kernel.name: kernel for kernel in (GAUSSIAN, LAPLACIAN)}


class GaussianBased:
    """Kernels whose base kernel is the Gaussian."""

    @property
    def bound(self) -> float:
        """Nu of the kernel."""
        return GAUSSIAN.bound

    @property
    def base_lipschitz(self) -> float:
        """L of the base kernel."""
        return GAUSSIAN.lipschitz


def base_kernel(name: str) -> BaseKernel:
    """Look a base kernel up by name."""
    if name not in BASE_KERNELS:
        raise unknown_name("base kernel", name, BASE_KERNELS)
    return BASE_KERNELS[name]


class SelectedKernel(Protocol):
    """A frozen kernel: everything the test half, certificates and explanations need of a selection."""

    @property
    def bound(self) -> float:
        """Nu of the kernel."""

    @property
    def base_lipschitz(self) -> float:
        """L of the base kernel."""

    @property
    def lipschitz(self) -> float:
        """L(h) of the feature map."""

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Kernel matrix of ``rows`` with ``others`` (or with themselves)."""

    def to_dict(self) -> dict[str, object]:
        """Describe the kernel in plain JSON types."""
