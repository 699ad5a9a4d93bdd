"""The median heuristic: a Gaussian kernel at the median distance, no selection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd import validation
from cpmmd.inputs import Preparation, Samples
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import base_kernel
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.permutation.engine import DENSE_ROWS, kernel_test
from cpmmd.permutation.paths import MEDIAN_ROWS
from cpmmd.procedures.base import Procedure, RunOptions, conclude_kernel
from cpmmd.results import TestResult
from cpmmd.samples import Array, Rows
from cpmmd.selection.scalar import median_distance
from cpmmd.splitting import stratified_split


@dataclass(frozen=True)
class MedianTest(Procedure):
    """Permutation test with the bandwidth at the median pairwise distance.

    Parameters
    ----------
    base
        ``"gaussian"`` or ``"laplacian"``.
    scale
        None or ``"standard"``.
    split
        False uses all rows: the median of the pool is symmetric in the labels, so the level is exact. True is the paper's
        variant: the median of the training half, tested on the other half.
    train_fraction
        Share of each sample that gives the median when ``split`` is true.
    """

    base: str = "gaussian"
    scale: str | None = None
    split: bool = False
    train_fraction: float = 0.5

    def __post_init__(self) -> None:
        base_kernel(self.base)
        validation.open_unit("train_fraction", self.train_fraction)
        validation.scale(self.scale)

    def run(self, samples: Samples, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Take the median, test."""
        split_stream, permutation_stream = rng.spawn(2)
        everything: Rows = np.arange(samples.m + samples.n)
        fitted, tested, m = everything, everything, samples.m
        if self.split:
            halves = stratified_split(samples.m, samples.n, self.train_fraction, split_stream)
            fitted, tested, m = halves.train, halves.test, halves.m_test
        preparation = Preparation.fit(samples, fitted, scale=self.scale)
        some = fitted if len(fitted) <= DENSE_ROWS else np.sort(split_stream.choice(fitted, MEDIAN_ROWS, replace=False))
        kernel = median_kernel(preparation.transform(samples, some), self.base)
        test = kernel_test(
            kernel,
            lambda rows: preparation.transform(samples, rows),
            tested,
            m,
            n_permutations=options.n_permutations,
            rng=permutation_stream,
            memory_limit=options.memory_limit,
        )
        return conclude_kernel(
            samples,
            options,
            test,
            kernel=kernel,
            preparation=preparation,
            tested=tested if self.split else None,
            held_out=self.split,
        )


def median_kernel(rows: Array, base: str) -> ScaledKernel:
    """Give the kernel whose bandwidth is the median distance of ``rows``."""
    family = Bandwidth(base)
    exponents = family.exponents(rows)
    return ScaledKernel(family, median_distance(exponents, family.base_kernel.power))
