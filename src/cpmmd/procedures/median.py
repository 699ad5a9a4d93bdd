"""The median heuristic: a Gaussian kernel at the median distance, no selection."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd import validation
from cpmmd.inputs import Preparation, Samples
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import base_kernel
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.permutation.dense import permutation_test
from cpmmd.procedures.base import Procedure, RunOptions, conclude
from cpmmd.results import TestResult
from cpmmd.samples import Array
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
        fitted = tested = None
        m = samples.m
        if self.split:
            halves = stratified_split(samples.m, samples.n, self.train_fraction, split_stream)
            fitted, tested, m = halves.train, halves.test, halves.m_test
        preparation = Preparation.fit(samples, fitted, scale=self.scale)
        kernel = median_kernel(preparation.transform(samples, fitted), self.base)
        pool = preparation.transform(samples, tested)
        null = permutation_test(
            kernel.gram(pool), m, n_permutations=options.n_permutations, rng=permutation_stream, overwrite=True
        )
        return conclude(
            samples,
            options,
            null,
            tested_sizes=(m, len(pool) - m),
            kernel=kernel,
            preparation=preparation,
            tested=tested,
            held_out=self.split,
        )


def median_kernel(rows: Array, base: str) -> ScaledKernel:
    """Give the kernel whose bandwidth is the median distance of ``rows``."""
    family = Bandwidth(base)
    exponents = family.exponents(rows)
    return ScaledKernel(family, median_distance(exponents, family.base_kernel.power))
