"""Radial kernels f(|x - x'| / bandwidth) on the L1 or the L2 norm: the collections of MMDAgg and MMD-FUSE."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict
from cpmmd.errors import unknown_name
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import Tensors
from cpmmd.kernels.laplacian_l1 import LaplacianL1

RADIAL = "radial"  # what files call the family of these kernels: it is a list of names, not a class


@dataclass(frozen=True)
class Profile:
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
    if norm == "l2":
        return Bandwidth("laplacian").exponents(rows, others)  # the Laplacian's exponent is the distance
    return LaplacianL1().exponents(rows, others)


@dataclass(frozen=True)
class RadialKernel:
    """A radial kernel at one bandwidth."""

    name: str
    bandwidth: float

    bound: ClassVar[float] = 1.0
    base_lipschitz: ClassVar[float] = 1.0  # an upper bound on the slope of every profile here

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
        """Kernel matrix of ``rows`` with ``others`` (or with themselves)."""
        return self.of_distances(distances(self.norm, rows, others))

    def to_dict(self) -> PlainDict:
        """Describe the kernel in plain JSON types."""
        return {"family": RADIAL, "options": {"name": self.name}, "bandwidth": self.bandwidth}

    def tensors(self) -> Tensors:
        """Return no arrays: the description says it all."""
        return {}

    @classmethod
    def restore(cls, described: Mapping[str, Any]) -> RadialKernel:
        """Return the kernel that :meth:`to_dict` described."""
        profile(described["options"]["name"])
        return cls(described["options"]["name"], validation.positive("bandwidth", described["bandwidth"]))

    def __str__(self) -> str:
        return f"{self.name} at bandwidth {self.bandwidth:.4g}"
