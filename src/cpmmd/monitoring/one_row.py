"""A batch of one row against many: the rank of how unlike the others it is."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.permutation.ranking import Ranking
from cpmmd.procedures.base import Procedure, RunOptions
from cpmmd.procedures.median import median_kernel
from cpmmd.procedures.outcome import TestOutcome

TIE = 1e-9  # kernel values are at most 1: means closer than this are equal but for rounding


@dataclass(frozen=True)
class OneRowTest(Procedure):
    """Test of one row, which has no unbiased squared MMD: the mean kernel value between it and the others.

    Notes
    -----
    The Gaussian kernel at the median distance of standardised columns is symmetric in all rows, and each row in turn is the
    single one: the rank is exact, among all relabelings there are.
    """

    citations = ("gretton2012kernel",)
    statistic_meaning = "minus the mean kernel value between the row and the others"

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestOutcome:  # noqa: ARG002
        """Rank the last row of the pool among all."""
        preparation = Preparation.fit(pool, scale="standard")
        rows = preparation.transform(pool)
        kernel = median_kernel(rows, "gaussian")
        means = -(kernel.gram(rows, rows).sum(axis=1) - 1.0) / (len(rows) - 1)
        ranking = Ranking.of(np.roll(means, 1), tolerance=TIE, exhaustive=True)
        return self.conclude(pool, options, ranking, tested_sizes=(pool.m, pool.n), kernel=kernel, preparation=preparation)
