"""Radial kernels f(|x - x'| / bandwidth) on the L1 or the L2 norm: the collections of MMDAgg and MMD-FUSE."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict
from cpmmd.errors import unknown_name
from cpmmd.kernels.base import LAPLACIAN, BaseKernel, Description, FrozenKernel
from cpmmd.kernels.families import Bandwidth, LaplacianL1

RADIAL = "radial"  # what files call the family of these kernels: it is a list of names, not a class


class Profile(NamedTuple):
    """A radial function and the norm it goes with."""

    norm: str
    values: Callable[[Array], Array]


def _matern(u: Array, half: int) -> Array:
    """Matern of smoothness half + 1/2: a polynomial of degree ``half`` times an exponential."""
    v = math.sqrt(2 * half + 1) * u
    total = np.zeros_like(v)
    for i in range(half + 1):
        weight = math.factorial(half + i) / (math.factorial(i) * math.factorial(half - i))
        total += weight * (2 * v) ** (half - i)
    return np.asarray(total * np.exp(-v) * math.factorial(half) / math.factorial(2 * half))


PROFILES: dict[str, Profile] = {
    "gaussian": Profile("l2", lambda u: np.exp(-0.5 * np.square(u))),
    "laplacian_l1": Profile("l1", lambda u: np.exp(-u)),
    "imq": Profile("l2", lambda u: np.asarray(1 / np.sqrt(1 + np.square(u)))),
    **{f"matern_{half}.5_{norm}": Profile(norm, partial(_matern, half=half)) for norm in ("l1", "l2") for half in range(5)},
}


def profile(name: str) -> Profile:
    """Look a radial kernel up by name."""
    if name not in PROFILES:
        raise unknown_name("kernel", name, PROFILES)
    return PROFILES[name]


def collection_names(kernels: str | Sequence[str]) -> tuple[str, ...]:
    """Return the names of a collection of kernels, checked."""
    names = (kernels,) if isinstance(kernels, str) else tuple(kernels) if isinstance(kernels, Sequence) else ()
    if not names:
        raise validation.wrong("kernels", "must name at least one kernel", kernels)
    for name in names:
        profile(name)
    return names


def distances(norm: str, rows: Array, others: Array | None = None) -> Array:
    """Return the L1 or L2 distances of all pairs."""
    family = Bandwidth("laplacian") if norm == "l2" else LaplacianL1()
    return family.exponents(rows, others)  # a Laplacian's exponent is the distance


@dataclass(frozen=True, eq=False)
class RadialKernel(FrozenKernel):
    """A radial kernel at one bandwidth."""

    name: str
    bandwidth: float

    family_name = RADIAL
    described = ("bandwidth",)

    @property
    def options(self) -> PlainDict:
        """Which of the radial functions it is."""
        return {"name": self.name}

    @property
    def base_kernel(self) -> BaseKernel:
        """The Laplacian, whose bound and slope of 1 no radial function here exceeds."""
        return LAPLACIAN

    @property
    def lipschitz(self) -> float:
        """1/bandwidth, in the kernel's own norm."""
        return 1 / self.bandwidth

    @property
    def norm(self) -> str:
        """The norm of its distances."""
        return profile(self.name).norm

    def of_distances(self, apart: Array) -> Array:
        """Return the kernel values at some distances."""
        return profile(self.name).values(apart / self.bandwidth)

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        return self.of_distances(distances(self.norm, rows, others))

    @classmethod
    def restore(cls, described: Description) -> RadialKernel:
        """Return the kernel that its description says."""
        profile(described["options"]["name"])
        return cls(described["options"]["name"], validation.positive("bandwidth", described["bandwidth"]))

    def __str__(self) -> str:
        return f"{self.name} at bandwidth {self.bandwidth:.4g}"
