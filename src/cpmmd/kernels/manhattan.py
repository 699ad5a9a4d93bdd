"""The Laplacian on the L1 norm, exp(-|x - x'|_1 / sigma): sums of coordinates, not Euclidean length."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from cpmmd.kernels.lift import Lifted
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.samples import Array


@dataclass(frozen=True, eq=False)
class _Rows(Lifted):
    rows: Array

    def distances(self, rows: slice, others: Lifted, columns: slice) -> Array:
        """Give the L1 distances of a tile of pairs."""
        assert isinstance(others, _Rows)
        return np.asarray(cdist(self.rows[rows], others.rows[columns], "cityblock"))


@dataclass(frozen=True)
class Manhattan(ScaleFamily):
    """``exp(-|x - x'|_1 / sigma)`` for all sigma > 0.

    Examples
    --------
    >>> Manhattan()
    Manhattan()
    """

    @property
    def base(self) -> str:  # type: ignore[override]
        """The base kernel's name."""
        return "laplacian"

    squared = False

    def lift(self, rows: Array, centre: Array) -> Lifted:
        """Give the centred rows."""
        centred = rows - centre
        return _Rows(np.abs(centred).sum(axis=1), centred)

    @property
    def geometry(self) -> tuple[object, ...]:
        """Families of one geometry share their distances."""
        return ("manhattan",)

    def lift_lipschitz(self, rows: Array) -> float:
        """Give sqrt(d): the L1 norm is at most sqrt(d) times the L2 norm."""
        return float(np.sqrt(rows.shape[1]))

    def proxy_constant(self, width: int, size: int) -> float:  # noqa: ARG002
        """c_H = d_out, as in the linear regime."""
        return float(width)
