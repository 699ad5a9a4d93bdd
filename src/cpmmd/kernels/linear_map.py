"""H_linear as the paper's theory states it: x -> W x for every matrix W of bounded spectral norm, W trained."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Labels
from cpmmd.core.text import pluralize
from cpmmd.data.preparation import PreparedPool
from cpmmd.errors import InputError
from cpmmd.kernels.base import Description, Tensors, TrainedFamily
from cpmmd.kernels.families import FeatureKernel

if TYPE_CHECKING:
    import torch
    from torch import nn

    from cpmmd.kernels.deep.feature_kernel import LinearTrainable


@dataclass(frozen=True)
class LinearMap(TrainedFamily):
    """k(W x, W x') with W a trained matrix and k Gaussian with bandwidth 1.

    Parameters
    ----------
    rank : int, optional
        Number of rows of W, which bounds its rank; None is the number of columns. The kernel depends on W'W only, so every matrix
        of at most this rank is included.
    diagonal : bool
        Whether W is diagonal: a bandwidth for each column, known as automatic relevance determination. It has no ``rank``.

    Notes
    -----
    The complexity is the spectral norm of W times ``|D|_F / N``, the paper's H_linear = ``{x -> W x : |W| <= L}`` with
    c_H = d_out; :class:`Bandwidth` is the same with W a multiple of the identity. W sees columns centred and divided by their
    standard deviation in the training half, so that units do not matter, and starts as the median bandwidth. W itself, without
    torch, is the kernel's ``matrix``; ``column_weights`` says which columns it looks at.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Ascent, LinearMap, SplitTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(80, 3)), data.normal(size=(80, 3)) + [0, 2, 0]
    >>> method = SplitTest(LinearMap(diagonal=True), ascent=Ascent(steps=40))
    >>> result = two_sample_test(x, y, method=method, rng=0)
    >>> result.reject, int(result.kernel.column_weights.argmax())
    (True, 1)
    """

    rank: int | None = None
    diagonal: bool = False

    citations = ("gretton2012kernel",)

    def __post_init__(self) -> None:
        if not isinstance(self.diagonal, bool):
            raise validation.wrong("diagonal", "must be True or False", self.diagonal)
        if self.rank is None:
            return
        validation.whole("rank", self.rank, at_least=1)
        if self.diagonal:
            raise validation.wrong("rank", "must be None for a diagonal map, which has as many rows as columns", self.rank)

    def rows_of(self, columns: int) -> int:
        """Return the number of rows of W, d_out.

        Parameters
        ----------
        columns : int
            Columns that the kernel sees.

        Returns
        -------
        int
            ``rank``, or the number of columns if that is smaller.
        """
        return columns if self.rank is None else min(self.rank, columns)

    def trainable(self, train: PreparedPool, dtype: torch.dtype, device: str) -> LinearTrainable:
        from cpmmd.kernels.deep.feature_kernel import LinearTrainable

        return LinearTrainable(self, train, dtype, device)

    def for_calibration(self) -> tuple[LinearMap, str]:
        """Return this family: C1 is calibrated on it as it is."""
        return self, ""

    def proxy_constant(self, columns: int, size: int) -> float:  # noqa: ARG002
        """Return c_H = d_out (proof of the proxy bound, linear regime)."""
        return float(self.rows_of(columns))

    @classmethod
    def restore(cls, described: Description, tensors: Tensors, module: nn.Module | None) -> LinearMapKernel:  # noqa: ARG003
        """Return the kernel that was saved; it needs no torch."""
        family = cls(**described["options"])
        weight, centre, scale = (np.array(tensors[name], dtype=np.float64) for name in ("weight", "centre", "scale"))
        columns = centre.size
        if weight.shape != (family.rows_of(columns), columns) or scale.shape != centre.shape or not (scale > 0).all():
            raise InputError(f"The file's weights are not those of a linear map of {columns} columns. Save it again.")
        varying = np.asarray(tensors.get("varying", np.ones(columns))) > 0  # files of 0.2.0 do not have it
        if varying.shape != centre.shape:
            raise InputError(
                f"The file must state for each of {columns} columns whether it varies. It does not; save the kernel again."
            )
        return LinearMapKernel(family, weight, centre, scale, varying)


@dataclass(frozen=True, eq=False)
class LinearMapKernel(FeatureKernel):
    """A trained linear map, frozen: the Gaussian of bandwidth 1 on W x."""

    family: LinearMap
    weight: Array  # W on inputs (x - centre) / scale, (d_out, columns)
    # centre, scale: of each column, from the training half
    centre: Array
    scale: Array
    # which columns varied in the training half. The others are in W, for a later sample may vary in them, but have no weight.
    varying: Labels

    described = ("shape", "column_weights", "lipschitz")

    @property
    def shape(self) -> tuple[int, ...]:
        """Rows and columns of W."""
        return self.weight.shape

    @property
    def matrix(self) -> Array:
        """W on rows as they come: h(x) is ``matrix @ x`` up to a shift, which no distance sees."""
        return self.weight / self.scale

    @property
    def lipschitz(self) -> float:
        """L(h) = |W|, the spectral norm, rows as they come."""
        return float(np.linalg.norm(self.matrix, 2))

    @property
    def column_weights(self) -> Array:
        """The share of |W|_F^2 that each column has, columns in standard deviations; constant ones have none."""
        seen = self.varying if self.varying.any() else np.ones_like(self.varying)
        squares = np.where(seen, (self.weight**2).sum(axis=0), 0.0)
        total = float(squares.sum())
        return np.asarray(squares / total if total > 0 else seen / np.count_nonzero(seen))

    def features(self, rows: Array) -> Array:
        """Return h(x) of each row."""
        if rows.shape[1] != self.centre.size:
            raise InputError(
                f"Rows must have the columns that the linear map was trained on, {self.centre.size}. Got {rows.shape[1]}; pass "
                "those columns, or use another kernel."
            )
        return np.asarray(((rows - self.centre) / self.scale) @ self.weight.T)

    def tensors(self) -> Tensors:
        """Return W, the columns' centres and scales, and which of them varied."""
        return {"weight": self.weight, "centre": self.centre, "scale": self.scale, "varying": self.varying.astype(np.float64)}

    def __str__(self) -> str:
        rows, columns = self.shape
        of = pluralize(columns, "column")
        what = f"diagonal map of {of}" if self.family.diagonal else f"linear map of {of} to {rows}"
        return f"Gaussian on a {what}, spectral norm {self.lipschitz:.4g}"
