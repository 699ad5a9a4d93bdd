"""H_linear: the bandwidth of a base kernel on the raw coordinates."""

from __future__ import annotations

from dataclasses import dataclass

from cpmmd.kernels.base import base_kernel
from cpmmd.kernels.lift import LiftedRows
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.samples import Array


@dataclass(frozen=True)
class Bandwidth(ScaleFamily):
    """k(x/sigma, x'/sigma) for all sigma > 0.

    Parameters
    ----------
    base
        ``"gaussian"``, ``exp(-|x-x'|^2 / 2 sigma^2)``, or ``"laplacian"``, ``exp(-|x-x'| / sigma)``.

    Examples
    --------
    >>> Bandwidth()
    Bandwidth(base='gaussian')
    """

    base: str = "gaussian"

    def __post_init__(self) -> None:
        base_kernel(self.base)

    @property
    def geometry(self) -> tuple[object, ...]:
        """Families of one geometry share their distances."""
        return ("lift", 1)

    def lift(self, rows: Array, centre: Array) -> LiftedRows:
        """Give the centred rows: distances do not change, cancellation does."""
        return LiftedRows.of(rows - centre, 1)

    def lift_lipschitz(self, rows: Array) -> float:  # noqa: ARG002 - the identity needs no data
        """Give 1: the lift is the identity."""
        return 1.0

    def proxy_constant(self, width: int, size: int) -> float:  # noqa: ARG002
        """c_H = d_out (proof of the proxy bound, linear regime)."""
        return float(width)
