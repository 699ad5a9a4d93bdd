"""The words of this room: base kernel (k on distances), kernel (a fixed function of two rows), family (a set of kernels).

A *base kernel* has a bound and a Lipschitz constant (Assumption 1 of the paper). A *kernel* is what is tested. A *family* is
what may be chosen from; a *class* (:class:`cpmmd.KernelClass`) is a family with its coordinates and the range that is searched.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar, Protocol, runtime_checkable

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Array, Real
from cpmmd.core.plain import PlainDict, to_plain
from cpmmd.errors import unknown_name

if TYPE_CHECKING:
    import torch
    from torch import nn

    from cpmmd.data.preparation import PreparedPool
    from cpmmd.kernels.deep.feature_kernel import Trainable


@dataclass(frozen=True)
class BaseKernel:
    """k(u, u') = exp(-e(u - u') / bandwidth^power), with e the base kernel's exponent."""

    name: str
    power: int  # 2 for squared distances, 1 for distances
    bound: float  # nu: 0 <= k <= nu
    lipschitz: float  # l: |k(u, v) - k(u', v)| <= l |u - u'| at bandwidth 1

    def exponent(self, sq_distances: Real) -> Real:
        """Turn squared distances into exponents at bandwidth 1, in place."""
        if self.power == 2:
            sq_distances *= 0.5
            return sq_distances
        return np.sqrt(sq_distances, out=sq_distances)

    def of_exponent(self, exponent: Array, bandwidth: float, out: Array | None = None) -> Array:
        """Return the kernel values at one bandwidth."""
        # Two divisions instead of bandwidth**2: the square over- and underflows long before the ratio does.
        inverse = 1.0 / float(bandwidth)
        if np.isinf(inverse):  # of rows that differ by denormal numbers: 0 times infinity would be no number
            with np.errstate(over="ignore"):  # far rows: exp gives 0
                exponent, inverse = exponent / bandwidth / (bandwidth if self.power == 2 else 1.0), 1.0
        scaled = np.multiply(exponent, -inverse, out=out)
        if self.power == 2:
            scaled *= inverse
        return np.exp(scaled, out=scaled)


# Gaussian exp(-u^2/2): steepest at u = 1. Laplacian exp(-|u|_2): steepest at 0.
GAUSSIAN = BaseKernel("gaussian", power=2, bound=1.0, lipschitz=math.exp(-0.5))
LAPLACIAN = BaseKernel("laplacian", power=1, bound=1.0, lipschitz=1.0)
BASE_KERNELS = {kernel.name: kernel for kernel in (GAUSSIAN, LAPLACIAN)}


def base_kernel(name: str) -> BaseKernel:
    """Look a base kernel up by name."""
    if name not in BASE_KERNELS:
        raise unknown_name("base kernel", name, BASE_KERNELS)
    return BASE_KERNELS[name]


Tensors = dict[str, npt.NDArray[Any]]  # the arrays that make a trained kernel
Description = Mapping[str, Any]  # a kernel in plain JSON types, as ``to_dict`` wrote it


@runtime_checkable
class Kernel(Protocol):
    """A fixed kernel: everything that tests, certificates, explanations and files need of it."""

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
        """Return the kernel matrix of ``rows`` with ``others`` (or with themselves)."""

    def to_dict(self) -> PlainDict:
        """Return the kernel in plain JSON types: its ``family``, that family's ``options``, and its own numbers."""

    def tensors(self) -> Tensors:
        """Return the arrays that make the kernel beside its description: none but for trained ones."""


class FrozenKernel(Kernel):
    """What the kernels of this package share: each says its formula (``gram``), its ``lipschitz`` and what describes it."""

    family: KernelFamily
    described: ClassVar[tuple[str, ...]]  # the fields and properties that stand in its description

    @property
    def family_name(self) -> str:
        """What files call its family."""
        return type(self.family).__name__

    @property
    def options(self) -> PlainDict:
        """The options of its family, as files hold them."""
        return dict(vars(self.family))

    @property
    def base_kernel(self) -> BaseKernel:
        """The base kernel k."""
        return GAUSSIAN

    @property
    def bound(self) -> float:
        """Nu of the kernel."""
        return self.base_kernel.bound

    @property
    def base_lipschitz(self) -> float:
        """L of the base kernel."""
        return self.base_kernel.lipschitz

    def tensors(self) -> Tensors:
        """Return no arrays: the description says it all."""
        return {}

    def to_dict(self) -> PlainDict:
        """Return the kernel in plain JSON types."""
        own = {name: to_plain(getattr(self, name)) for name in self.described}
        return {"family": self.family_name, "options": dict(self.options), **own}

    def __eq__(self, other: object) -> bool:
        """Whether description and arrays are the same: a kernel from a file is the one that was saved."""
        if not isinstance(other, type(self)):
            return NotImplemented
        mine, its = self.tensors(), other.tensors()
        same = self.to_dict() == other.to_dict() and mine.keys() == its.keys()
        return same and all(np.array_equal(mine[name], its[name]) for name in mine)

    def __hash__(self) -> int:
        return hash((self.family_name, str(self)))


@runtime_checkable
class ColumnWeights(Protocol):
    """A kernel that gives each column a weight of its own."""

    @property
    def column_weights(self) -> Array:
        """Share of each column that the kernel sees; they add up to 1."""


class KernelFamily(ABC):
    """A set of kernels to choose from."""

    citations: ClassVar[tuple[str, ...]] = ()  #: keys in ``citations.bib`` of what to cite for it
    proxy_proven: ClassVar[bool] = True  #: whether c_H of the proxy bound is known in full, or up to an absolute constant only

    @abstractmethod
    def proxy_constant(self, columns: int, size: int) -> float | None:
        """Return c_H of the proxy bound for ``size`` inputs of so many columns; None outside the theorem."""

    @classmethod
    @abstractmethod
    def restore(cls, described: Description, tensors: Tensors, module: nn.Module | None) -> Kernel:
        """Return the kernel of this family that ``to_dict`` and ``tensors`` described."""


class TrainedFamily(KernelFamily):
    """A family whose members are found by gradient ascent."""

    @abstractmethod
    def trainable(self, train: PreparedPool, dtype: torch.dtype, device: str) -> Trainable:
        """Return the family on one training half, for gradient ascent."""

    @abstractmethod
    def for_calibration(self) -> tuple[TrainedFamily, str]:
        """Return the family that C1 is calibrated on, and a note where it is not this one."""
