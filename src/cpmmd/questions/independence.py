"""Are two tables, row by row, independent? The seed of a question of its own: dense, one kernel a table, no design yet."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.data.pool import pool_of_one
from cpmmd.data.preparation import Preparation
from cpmmd.data.table import read_table
from cpmmd.draws.pairings import Pairings
from cpmmd.errors import InputError
from cpmmd.evidence import rank
from cpmmd.procedures.fixed import median_kernel
from cpmmd.statistics.hsic import HSIC


@dataclass(frozen=True, eq=False)
class IndependenceResult:
    """The answer of an independence test."""

    statistic: float  #: HSIC of the rows as they are paired
    pvalue: float  #: counts the observed pairing: never 0
    alpha: float  #: level of the test
    null_distribution: Array  #: HSIC under the re-pairings, the observed one not among them
    exhaustive: bool  #: whether every possible re-pairing was used instead of random ones

    @property
    def reject(self) -> bool:
        """Whether the tables depend on each other at level alpha."""
        return bool(self.pvalue <= self.alpha)


def independence_test(x: Any, y: Any, *, alpha: float = 0.05, n_permutations: int = 999, rng: RNG = None) -> IndependenceResult:
    """Test whether the rows of two tables of equal length are independent, by HSIC with Gaussian kernels at the median distance.

    All n! re-pairings are used where they are no more than ``n_permutations``.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd.questions.independence import independence_test
    >>> x = np.random.default_rng(0).normal(size=(60, 1))
    >>> independence_test(x, x**2, rng=0).pvalue
    0.001
    """
    alpha = validation.open_unit("alpha", alpha)
    count = validation.permutation_count(n_permutations, alpha)
    tables = [read_table(data, name) for name, data in (("x", x), ("y", y))]
    if tables[0].rows != tables[1].rows:
        raise InputError(f"Both tables must have one row for each observation. Got {tables[0].rows} and {tables[1].rows} rows.")
    matrices = []
    for table in tables:
        pool = pool_of_one(table)
        rows = Preparation.fit(pool).transform(pool)
        matrices.append(median_kernel(rows, "gaussian").gram(rows))
    _, generator = resolve_rng(rng)
    ranking = rank(HSIC.of(*matrices), Pairings.draw(len(matrices[0]), count, generator))
    return IndependenceResult(ranking.statistic, ranking.pvalue, alpha, ranking.null_distribution, ranking.exhaustive)
