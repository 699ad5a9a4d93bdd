"""Kernels of a distance that is a sum over coordinates: one column's part can be taken out or exchanged."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import cdist

from cpmmd.core.arrays import Array
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.laplacian_l1 import LaplacianL1
from cpmmd.kernels.radial import RadialKernel
from cpmmd.kernels.scaled import ScaledKernel


@dataclass(frozen=True)
class AdditiveForm:
    """k = ``of(sum over columns of the columns' distances)``.

    Attributes
    ----------
    metric
        Distance that adds up over columns: ``"sqeuclidean"`` or ``"cityblock"``.
    of
        Kernel values from such distances; may overwrite them.
    """

    metric: str
    of: Callable[[Array], Array]

    def distances(self, rows: Array, others: Array) -> Array:
        """Return the part of some columns in the distances of all pairs."""
        return np.asarray(cdist(rows, others, self.metric))


def additive_form(kernel: Kernel) -> AdditiveForm | None:
    """Return a kernel's additive form, None where it has none (lifts and networks mix the columns)."""
    if isinstance(kernel, RadialKernel):
        if kernel.norm == "l1":
            return AdditiveForm("cityblock", kernel.of_distances)
        return AdditiveForm("sqeuclidean", lambda apart: kernel.of_distances(np.sqrt(apart, out=apart)))
    if isinstance(kernel, ScaledKernel) and isinstance(kernel.family, (Bandwidth, LaplacianL1)):
        family, bandwidth = kernel.family, kernel.bandwidth

        def of(apart: Array) -> Array:
            return family.base_kernel.of_exponent(family.exponent_of(apart), bandwidth, out=apart)

        return AdditiveForm("sqeuclidean" if family.squared else "cityblock", of)
    return None
