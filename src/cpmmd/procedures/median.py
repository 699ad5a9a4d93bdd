"""The median heuristic: a Gaussian kernel at the median distance, no selection."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.data.splitting import split_pool
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import base_kernel
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.permutation.engine import DENSE_ROWS, kernel_test
from cpmmd.permutation.paths import MEDIAN_ROWS
from cpmmd.procedures.base import Method, Procedure, RunOptions
from cpmmd.procedures.findings import Evidence
from cpmmd.procedures.outcome import TestOutcome


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
        """Return the share that gives the median and is not tested: none without a split."""
        return self.train_fraction if self.split else 0.0

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestOutcome:
        """Take the median, test."""
        split_stream, permutation_stream = rng.spawn(2)
        everything: Rows = np.arange(pool.m + pool.n)
        fitted, tested, m, evidence, shared = everything, everything, pool.m, Evidence(pool), ""
        if self.split:
            halves, shared = split_pool(pool, self.train_fraction, split_stream)
            fitted, tested, m = halves.train, halves.test, halves.m_test
            evidence = Evidence(pool, np.sort(halves.test), np.sort(halves.train))
        preparation = Preparation.fit(pool, fitted, scale=self.scale)
        some = fitted if len(fitted) <= DENSE_ROWS else np.sort(split_stream.choice(fitted, MEDIAN_ROWS, replace=False))
        kernel = median_kernel(preparation.transform(pool, some), self.base)
        test = kernel_test(
            kernel,
            lambda rows: preparation.transform(pool, rows),
            tested,
            m,
            n_permutations=options.n_permutations,
            rng=permutation_stream,
            memory_limit=options.memory_limit,
            design=None if pool.design is None else pool.design.take(tested, m),
        )
        notes = tuple(filter(None, [shared]))
        return self.conclude_kernel(pool, options, test, kernel=kernel, preparation=preparation, evidence=evidence, notes=notes)


def median_kernel(rows: Array, base: str) -> ScaledKernel:
    """Return the kernel whose bandwidth is the median distance of ``rows``."""
    family = Bandwidth(base)
    return ScaledKernel(family, family.median_bandwidth(rows))
