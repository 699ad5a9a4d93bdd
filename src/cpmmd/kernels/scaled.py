"""One-parameter families k(psi(x)/bandwidth, psi(x')/bandwidth): what bandwidths and polynomial lifts share."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict
from cpmmd.errors import InputError, Setting
from cpmmd.kernels import tiles
from cpmmd.kernels.base import BaseKernel, KernelFamily, Tensors, base_kernel
from cpmmd.kernels.lift import Lifted

if TYPE_CHECKING:
    from torch import nn


class ScaleFamily(KernelFamily):
    """All x -> psi(x)/bandwidth for one fixed lift psi: one kernel for each bandwidth.

    Attributes
    ----------
    base : str
        Name of the base kernel.
    squared : bool
        Whether the lifted rows give squared distances.
    about_origin : bool
        Whether moving all rows changes the distances.
    """

    base: str
    squared: bool = True  # whether the lifted rows give squared distances
    about_origin: bool = False  # whether moving all rows changes the distances

    @property
    def label(self) -> str:
        """The family in few words, for a legend."""
        return type(self).__name__.lower()

    def exponent_of(self, distances: Array) -> Array:
        """Turn a tile of (squared) distances into exponents at bandwidth 1, in place.

        Parameters
        ----------
        distances : array
            What the lifted rows gave; overwritten.

        Returns
        -------
        array
            The same memory.
        """
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
        """Lift rows; ``centre`` may be taken off first where the family does not notice.

        Parameters
        ----------
        rows : array of shape (n, columns)
            In the coordinates that the kernel sees.
        centre : array of shape (columns,)
            A point amid the rows.

        Returns
        -------
        Lifted
            What gives distances tile by tile.
        """

    @abstractmethod
    def lift_lipschitz(self, rows: Array) -> float:
        """Bound the Lipschitz constant of psi on the ball that holds ``rows``.

        Parameters
        ----------
        rows : array of shape (n, columns)
            In the coordinates that the kernel sees.

        Returns
        -------
        float
            L_psi.
        """

    def exponents(self, rows: Array, others: Array | None = None) -> Array:
        """Return the base kernel's exponents at bandwidth 1 for all pairs.

        Parameters
        ----------
        rows : array of shape (n, columns)
            In the coordinates that the kernel sees.
        others : array of shape (k, columns), optional
            None is ``rows``.

        Returns
        -------
        array of shape (n, k)
            The exponents.
        """

        def compute(a: Lifted, i: slice, b: Lifted, j: slice) -> Array:
            return self.exponent_of(a.distances(i, b, j))

        return self._over_pairs(rows, others, compute, diagonal=0.0)

    def median_bandwidth(self, rows: Array) -> float:
        """Return the median distance of ``rows`` as this family measures it: the bandwidth of the median heuristic.

        Parameters
        ----------
        rows : array of shape (n, columns)
            In the coordinates that the kernel sees.

        Returns
        -------
        float
            The bandwidth.
        """
        return median_distance(self.exponents(rows), self.base_kernel.power)

    def gram(self, bandwidth: float, rows: Array, others: Array | None = None) -> Array:
        """Return the kernel at one bandwidth for all pairs.

        Parameters
        ----------
        bandwidth : float
            The bandwidth.
        rows : array of shape (n, columns)
            In the coordinates that the kernel sees.
        others : array of shape (k, columns), optional
            None is ``rows``.

        Returns
        -------
        array of shape (n, k)
            The kernel of all pairs.
        """
        base = self.base_kernel

        def compute(a: Lifted, i: slice, b: Lifted, j: slice) -> Array:
            tile = self.exponent_of(a.distances(i, b, j))
            return base.of_exponent(tile, bandwidth, out=tile)

        return self._over_pairs(rows, others, compute, diagonal=1.0)

    def _over_pairs(self, rows: Array, others: Array | None, compute: _Compute, *, diagonal: float) -> Array:
        centre = np.median(rows, axis=0)  # one wild row would drag the mean away from all others, and their digits with it
        a = self.lift_checked(rows, centre)
        if others is None:
            return tiles.symmetric(len(rows), lambda i, j: compute(a, i, a, j), diagonal)
        b = self.lift_checked(others, centre)
        return tiles.rectangular(len(rows), len(others), lambda i, j: compute(a, i, b, j))

    @classmethod
    def restore(cls, described: Mapping[str, Any], tensors: Tensors, module: nn.Module | None) -> ScaledKernel:  # noqa: ARG003
        """Return the kernel that :meth:`ScaledKernel.to_dict` described."""
        numbers = (validation.positive(name, described[name]) for name in ("bandwidth", "lift_lipschitz"))
        return ScaledKernel(cls(**described["options"]), *numbers)

    def lift_checked(self, rows: Array, centre: Array) -> Lifted:
        """Lift rows, refused when that overflows.

        Parameters
        ----------
        rows, centre
            As for :meth:`lift`.

        Returns
        -------
        Lifted
            What gives distances tile by tile.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            lifted = self.lift(rows, centre)
        refuse_overflow(str(self), lifted.norms, rows)
        return lifted


def refuse_overflow(what: str, norms: Array, rows: Array) -> None:
    """Refuse rows whose distances would overflow."""
    if not float(norms.max(initial=0.0)) < 1e300:  # also when not a number
        raise InputError(
            "Distances of {what} overflow on values as large as {largest:.3g}. Rescale the columns, for instance with {setting}.",
            what=what,
            largest=float(np.abs(rows).max()),
            setting=Setting("scale", "standard"),
        )


def median_distance(exponents: Array, power: int) -> float:
    """Return the median distance over pairs; over distinct pairs if that is 0, and 1 if all rows are the same."""
    pairs = exponents[np.triu_indices(len(exponents), 1)]
    median = float(np.median(pairs))
    if median == 0.0:
        distinct = pairs[pairs > 0]
        if len(distinct) == 0:
            return 1.0
        median = float(np.median(distinct))
    return float(np.sqrt(2 * median)) if power == 2 else median


class _Compute(Protocol):
    def __call__(self, a: Lifted, i: slice, b: Lifted, j: slice, /) -> Array: ...


@dataclass(frozen=True)
class ScaledKernel:
    """A frozen member of a :class:`ScaleFamily`: the family at one bandwidth."""

    family: ScaleFamily
    bandwidth: float
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
        """L(h) = L_psi / bandwidth."""
        return self.lift_lipschitz / self.bandwidth

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Kernel matrix of ``rows`` with ``others`` (or with themselves)."""
        return self.family.gram(self.bandwidth, rows, others)

    def tensors(self) -> Tensors:
        """Return no arrays: the description says it all."""
        return {}

    def to_dict(self) -> PlainDict:
        """Describe the kernel in plain JSON types."""
        return {
            "family": type(self.family).__name__,
            "options": dict(vars(self.family)),
            "bandwidth": self.bandwidth,
            "lift_lipschitz": self.lift_lipschitz,
            "lipschitz": self.lipschitz,
        }

    def __str__(self) -> str:
        return f"{self.family} at bandwidth {self.bandwidth:.4g}"
