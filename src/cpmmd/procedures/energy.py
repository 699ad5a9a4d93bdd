"""The energy distance (Szekely and Rizzo 2013): the MMD of the kernel -|x - x'|, which has no bandwidth to choose."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.kernels.base import Tensors
from cpmmd.kernels.radial import distances
from cpmmd.permutation.engine import kernel_test
from cpmmd.procedures.base import Method, Procedure, RunOptions
from cpmmd.procedures.outcome import TestOutcome


@dataclass(frozen=True)
class EnergyTest(Procedure):
    """Permutation test of the energy distance, ``2 E|X - Y| - E|X - X'| - E|Y - Y'|``.

    Parameters
    ----------
    scale : str, optional
        None, or ``"standard"`` (by pooled statistics): without it the column of the largest unit decides.

    Notes
    -----
    The statistic is the unbiased estimate, on all rows. Nothing is selected, so the level is exact as for any fixed kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import EnergyTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(1, 1, size=(50, 2))
    >>> two_sample_test(x, y, method=EnergyTest(scale="standard"), rng=0).pvalue
    0.001
    """

    scale: str | None = None

    citations = ("szekely2013energy",)
    statistic_meaning = "the energy distance of the samples, unbiased"

    def __post_init__(self) -> None:
        validation.scale(self.scale)

    @classmethod
    def methods(cls) -> Mapping[str, Method]:
        """Return the test on the columns as they come."""
        return {"energy": Method(cls, "energy distance, no kernel to choose, no split")}

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestOutcome:
        """Test the one statistic there is."""
        preparation = Preparation.fit(pool, scale=self.scale)
        test = kernel_test(
            _MinusDistance(),
            lambda rows: preparation.transform(pool, rows),
            np.arange(pool.m + pool.n),
            pool.m,
            n_permutations=options.n_permutations,
            rng=rng,
            memory_limit=options.memory_limit,
            design=pool.design,
        )
        return self.conclude_kernel(pool, options, test, preparation=preparation)


class _MinusDistance:
    """k(x, x') = -|x - x'|: conditionally positive definite, which is all that a difference of means needs."""

    bound, base_lipschitz, lipschitz = np.inf, 1.0, 1.0

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Kernel matrix of ``rows`` with ``others`` (or with themselves)."""
        return -distances("l2", rows, others)

    def to_dict(self) -> PlainDict:
        """Describe the kernel; it is never kept."""
        return {}

    def tensors(self) -> Tensors:
        """Return no arrays."""
        return {}
