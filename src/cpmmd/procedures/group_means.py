"""The test of group means, for groups whose sizes differ: all rows count, and the level is approximate."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cpmmd.core import validation
from cpmmd.data.design import GROUP, DesignOptions
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.group_sizes import cut_groups
from cpmmd.draws.layout import Layout, sum_pairs
from cpmmd.engines.memory import require_dense
from cpmmd.errors import InputError
from cpmmd.evidence import Ranking
from cpmmd.kernels.base import base_kernel
from cpmmd.procedures.base import Method, Procedure, RunOptions
from cpmmd.procedures.fixed import median_kernel
from cpmmd.procedures.outcome import Evidence, TestResult
from cpmmd.statistics.group_means import studentised_distances

TIE = 1e-7  # of the statistic, whose standard deviation is about 1
APPROXIMATE = (
    "all rows of groups whose sizes differ are tested: the level is approximate, within about .03 in simulations; columns are "
    "explained on groups cut to one size"
)


@dataclass(frozen=True)
class GroupMeansTest(Procedure):
    """Studentised permutation test of group means, for groups whose sizes differ between the samples.

    Parameters
    ----------
    base : str
        ``"gaussian"`` or ``"laplacian"``, at the median distance of all rows.
    scale : str, optional
        None or ``"standard"``.

    Notes
    -----
    Other methods cut such groups to one size, which is exact. This one uses all rows: each group is one point, the mean of its
    rows, and the squared distance between the samples is divided by its own standard deviation under every permutation. The level
    is exact where groups have one size, or where sizes have the same distribution in both samples, and approximate otherwise.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> groups = np.repeat(np.arange(8), 12), np.repeat(np.arange(8, 30), 2)
    >>> effects = data.normal(size=(30, 2))
    >>> x, y = (effects[of] + data.normal(size=(len(of), 2)) for of in groups)
    >>> result = two_sample_test(x, y + 2, groups=groups, method="group-means", rng=0)
    >>> result.reject, result.exact
    (True, False)
    """

    base: str = "gaussian"
    scale: str | None = None

    citations = ("gretton2012kernel", "chung2013exact")
    statistic_meaning = "the squared distance of group means, studentised"
    cuts_groups = False
    exact = False

    def __post_init__(self) -> None:
        base_kernel(self.base)
        validation.scale(self.scale)

    @classmethod
    def methods(cls) -> Mapping[str, Method]:
        """Return the test at the median distance."""
        return {"group-means": Method(cls, "studentised distance of group means: all rows of groups of any sizes, approximate")}

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Take the kernel between group means, test their studentised distance."""
        design = pool.design
        if design is not None and (design.kind != GROUP or design.n_strata > 1):
            raise InputError(f"The test of group means takes groups only. Got {design}. Use another method, or groups alone.")
        require_dense(options.memory_limit, rows=pool.m + pool.n, matrices=2, method=type(self).__name__)
        order_stream, label_stream, cut_stream = rng.spawn(3)
        layout = Layout.of_all(pool.m, pool.n, design).shuffled(order_stream)
        if min(layout.units) < 2:
            raise InputError(f"The test of group means needs at least 2 groups of each sample. Got {design}.")
        layout = layout.draw(options.n_permutations, label_stream, options.memory_limit)
        preparation = Preparation.fit(pool, scale=self.scale)
        rows = preparation.transform(pool, layout.rows)
        kernel = median_kernel(rows, self.base)
        between = sum_pairs(kernel.gram(rows, rows), layout.starts) / np.outer(layout.counts, layout.counts)
        values = studentised_distances(between, layout.labels)
        tolerance = TIE * max(1.0, float(np.abs(values).max()))
        explained = cut_groups(pool, DesignOptions(), cut_stream)
        evidence = Evidence(pool, units=layout)
        if explained is not pool:
            units = Layout.of_all(explained.m, explained.n, explained.design)
            evidence = Evidence(explained, units=units.draw(options.n_permutations, cut_stream, options.memory_limit))
        return self.conclude(
            pool,
            options,
            Ranking.of(values, tolerance=tolerance, exhaustive=layout.labels.exhaustive),
            tested_sizes=(pool.m, pool.n),
            kernel=kernel,
            preparation=preparation,
            evidence=evidence,
            exact=explained is pool,
            notes=() if explained is pool else (APPROXIMATE,),
        )
