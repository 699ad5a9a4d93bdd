"""Tests of one kernel that nothing selects: the Gaussian at the median distance, and the energy distance.

The energy distance (Szekely and Rizzo 2013) is the MMD of the kernel -|x - x'|, which has no bandwidth to choose.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import PlainDict
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.data.splitting import split_pool
from cpmmd.engines.fixed_kernel import DENSE_ROWS
from cpmmd.engines.members import MEDIAN_ROWS
from cpmmd.kernels.base import Tensors, base_kernel
from cpmmd.kernels.collection import distances
from cpmmd.kernels.families import Bandwidth
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.procedures.base import Method, Procedure, RunOptions
from cpmmd.procedures.outcome import Evidence, TestResult


@dataclass(frozen=True)
class MedianTest(Procedure):
    """Permutation test with the bandwidth at the median pairwise distance.

    Parameters
    ----------
    base : str
        ``"gaussian"`` or ``"laplacian"``.
    scale : str, optional
        None or ``"standard"``.
    split : bool
        False uses all rows: the median of the pool is symmetric in the labels, so the level is exact. True is the paper's
        variant: the median of the training half, tested on the other half.
    train_fraction : float
        Share of each sample that gives the median when ``split`` is true.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import MedianTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(60, 2)), data.normal(1, 1, size=(60, 2))
    >>> two_sample_test(x, y, method=MedianTest(base="laplacian"), rng=0).pvalue
    0.001
    """

    base: str = "gaussian"
    scale: str | None = None
    split: bool = False
    train_fraction: float = 0.5

    citations = ("gretton2012kernel",)

    def __post_init__(self) -> None:
        base_kernel(self.base)
        validation.open_unit("train_fraction", self.train_fraction)
        validation.scale(self.scale)

    @classmethod
    def methods(cls) -> Mapping[str, Method]:
        """Return the heuristic without a split."""
        return {"median": Method(cls, "Gaussian kernel at the median distance of the pool, no split")}

    def train_share(self, rows: int = 1) -> float:  # noqa: ARG002 - all of them
        """Return the share that gives the median and is not tested: 0 without a split."""
        return self.train_fraction if self.split else 0.0

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Take the median, test."""
        split_stream, permutation_stream = rng.spawn(2)
        fitted: Rows = np.arange(pool.m + pool.n)
        tested, m, evidence, shared = None, pool.m, Evidence(pool), ""
        if self.split:
            halves, shared = split_pool(pool, self.train_fraction, split_stream)
            fitted, tested, m = halves.train, halves.test, halves.m_test
            evidence = Evidence(pool, np.sort(halves.test), np.sort(halves.train))
        preparation = Preparation.fit(pool, fitted, scale=self.scale)
        some = fitted if len(fitted) <= DENSE_ROWS else np.sort(split_stream.choice(fitted, MEDIAN_ROWS, replace=False))
        kernel = median_kernel(preparation.transform(pool, some), self.base)
        test = self.run_kernel(kernel, preparation, pool, options, permutation_stream, rows=tested, m=m)
        notes = tuple(filter(None, [shared]))
        return self.conclude_kernel(pool, options, test, kernel=kernel, preparation=preparation, evidence=evidence, notes=notes)


def median_kernel(rows: Array, base: str) -> ScaledKernel:
    """Return the kernel whose bandwidth is the median distance of ``rows``."""
    family = Bandwidth(base)
    return ScaledKernel(family, family.median_bandwidth(rows))


@dataclass(frozen=True)
class EnergyTest(Procedure):
    """Permutation test of the energy distance, ``2 E|X - Y| - E|X - X'| - E|Y - Y'|``.

    Parameters
    ----------
    scale : str, optional
        None, or ``"standard"`` (by pooled statistics): without it, columns with large values dominate.

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

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Test the energy distance."""
        preparation = Preparation.fit(pool, scale=self.scale)
        test = self.run_kernel(_MinusDistance(), preparation, pool, options, rng)
        return self.conclude_kernel(pool, options, test, preparation=preparation)


class _MinusDistance:
    """k(x, x') = -|x - x'|: conditionally positive definite, which is all that a difference of means needs."""

    bound, base_lipschitz, lipschitz = np.inf, 1.0, 1.0

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Return the kernel matrix of ``rows`` with ``others`` (or with themselves)."""
        return -distances("l2", rows, others)

    def to_dict(self) -> PlainDict:
        """Describe the kernel; it is never kept."""
        return {}

    def tensors(self) -> Tensors:
        """Return no arrays."""
        return {}
