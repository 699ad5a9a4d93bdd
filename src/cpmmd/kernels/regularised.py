"""Spectral regularisation as a fixed kernel: a kernel whose directions in the pool are divided by their variance."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.errors import InputError
from cpmmd.kernels.base import Description, FrozenKernel, Kernel, Tensors

REGULARISED = "Regularised"
PARTS = ("landmarks", "offset", "projection")
INNER = "inner."  # before the names of the tensors of the kernel inside


@dataclass(frozen=True, eq=False)
class RegularisedKernel(FrozenKernel):
    """The inner product of ``(k(x, landmarks) - offset) @ projection``."""

    inner: Kernel  # k: the kernel that is regularised
    gamma: float  # directions whose variance is well below ``gamma`` times the largest one grow no further
    landmarks: Array  # rows of the pool
    offset: Array  # the pool's mean of k with each
    projection: Array  # to the pool's principal directions, each times its weight

    family_name = REGULARISED
    options = {}  # noqa: RUF012 - a family of its own, without any
    described = ("gamma", "inner")

    @property
    def growth(self) -> float:
        """(1 + gamma) / gamma: what the square of a direction grows by at most."""
        return (1 + self.gamma) / self.gamma

    @property
    def bound(self) -> float:
        """Nu of the kernel: centred features are twice as long at most."""
        return 4 * self.inner.bound * self.growth

    @property
    def base_lipschitz(self) -> float:
        """L of the base kernel."""
        return self.inner.base_lipschitz

    @property
    def lipschitz(self) -> float:
        """L(h) of the kernel inside, times what directions grow by."""
        return self.inner.lipschitz * float(np.sqrt(self.growth))

    def coordinates(self, rows: Array) -> Array:
        """Return the rows in the weighted directions."""
        return np.asarray((self.inner.gram(rows, self.landmarks) - self.offset) @ self.projection)

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Return the inner products of the coordinates."""
        left = self.coordinates(rows)
        return np.asarray(left @ (left if others is None else self.coordinates(others)).T)

    def tensors(self) -> Tensors:
        """Return the arrays, and those of the kernel inside."""
        inside = {INNER + name: values for name, values in self.inner.tensors().items()}
        return {**{name: np.ascontiguousarray(getattr(self, name)) for name in PARTS}, **inside}

    @classmethod
    def restore(
        cls, described: Description, tensors: Tensors, inside: Callable[[Description, Tensors], Kernel]
    ) -> RegularisedKernel:
        """Return the kernel that ``to_dict`` and ``tensors`` described; ``inside`` restores the kernel that is regularised."""
        inner = inside(described["inner"], {n.removeprefix(INNER): v for n, v in tensors.items() if n.startswith(INNER)})
        landmarks, offset, projection = (np.asarray(tensors[name], dtype=np.float64) for name in PARTS)
        if landmarks.ndim != 2 or offset.shape != landmarks.shape[:1] or projection.shape[:1] != landmarks.shape[:1]:
            raise InputError(
                "The arrays of a regularised kernel must have the same number of landmarks. They differ; save the kernel again."
            )
        return cls(inner, validation.positive("gamma", described["gamma"]), landmarks, offset, projection)

    def __str__(self) -> str:
        return f"{self.inner}, spectrum regularised at {self.gamma:.4g}"
