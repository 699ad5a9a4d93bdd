"""MMD-FUSE (Biggs, Schrab, Gretton 2023): a soft maximum of normalised MMDs over kernels, by permutations."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, field, replace

import numpy as np
from scipy.special import logsumexp

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.labels import chunk_bytes
from cpmmd.draws.layout import Layout
from cpmmd.engines.dense import pooled_statistics
from cpmmd.engines.memory import require_dense
from cpmmd.evidence import Ranking, upper_ranks
from cpmmd.kernels.collection import RadialKernel, collection_names, distances, profile
from cpmmd.procedures.base import Method, Procedure, RunOptions
from cpmmd.procedures.outcome import Collection, Evidence, SingleTest, TestResult

# The authors' Laplacian is exp(-sqrt(2) d / l): ours, exp(-d / b), at this multiple of l. Their Gaussian is ours.
CONVENTION = {"laplacian_l1": math.sqrt(0.5)}


@dataclass(frozen=True)
class MMDFuse(Procedure):
    """Fused MMD test over a collection of kernels and bandwidths.

    Parameters
    ----------
    kernels : tuple of str
        Names, as for :class:`MMDAgg`.
    n_bandwidths : int
        Bandwidths of each kernel, evenly spaced between distance quantiles of the pool.
    lambda_multiplier : float
        Factor of the soft maximum's sharpness.
    n_permutations : int
        Number of permutations if the call gives none.
    scaling : str
        ``"code"``: sharpness n(n-1), as the authors' code; ``"paper"``: sqrt(n(n-1)), as their text.
    scale : str, optional
        None or ``"standard"`` (by pooled statistics).

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import MMDFuse, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(1, 1, size=(50, 2))
    >>> result = two_sample_test(x, y, method=MMDFuse(n_bandwidths=3, n_permutations=300), rng=0)
    >>> result.reject, len(result.collection.tests)
    (True, 6)
    """

    kernels: tuple[str, ...] = ("laplacian_l1", "gaussian")
    n_bandwidths: int = 10
    lambda_multiplier: float = 1.0
    n_permutations: int = 2000
    scaling: str = "code"
    scale: str | None = None

    citations = ("biggs2023mmdfuse",)
    statistic_meaning = "a soft maximum of the kernels' normalised squared MMD"

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", collection_names(self.kernels))
        validation.whole("n_bandwidths", self.n_bandwidths, at_least=1)
        validation.positive("lambda_multiplier", self.lambda_multiplier)
        validation.whole("n_permutations", self.n_permutations, at_least=1)
        validation.one_of("scaling", self.scaling, ("code", "paper"))
        validation.scale(self.scale)

    @classmethod
    def methods(cls) -> Mapping[str, Method]:
        """Return the authors' defaults."""
        return {"mmdfuse": Method(cls, "MMD-FUSE: 20 Laplacian and Gaussian kernels, a soft maximum, no split")}

    @property
    def default_permutations(self) -> int:
        """The authors' 2000."""
        return self.n_permutations

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Fuse the normalised statistics under every permutation, rank the observed one."""
        m, n = pool.m, pool.n
        require_dense(options.memory_limit, rows=m + n, matrices=2, method=type(self).__name__)
        preparation = Preparation.fit(pool, scale=self.scale)
        layout = Layout.of_all(m, n, pool.design).draw(options.n_permutations, rng, options.memory_limit)
        pairs = _pairs_of_rows(layout)
        sharpness = self.lambda_multiplier * (pairs if self.scaling == "code" else math.sqrt(pairs))
        fusion = _Fusion(sharpness, np.full(len(layout.labels), -np.inf))
        self._fuse(fusion, preparation.transform(pool, layout.rows), layout, pairs, chunk_bytes(options.memory_limit))
        ranking = Ranking.of(
            fusion.fused - math.log(len(fusion.singles)),
            tolerance=fusion.tolerance,
            exhaustive=layout.labels.exhaustive,
            statistic=float(logsumexp(fusion.exact)) - math.log(len(fusion.exact)),
        )
        return self.conclude(
            pool,
            options,
            ranking,
            tested_sizes=(m, n),
            kernel=fusion.kernels[int(np.argmax(fusion.exact))],
            preparation=preparation,
            evidence=Evidence(pool, units=layout),
            collection=Collection(fusion.tests, "permutations", sharpness=sharpness),
        )

    def _fuse(self, fusion: _Fusion, matrix: Array, layout: Layout, pairs: float, nbytes: int) -> None:
        """Add every kernel of the collection under all permutations."""
        for norm in dict.fromkeys(profile(name).norm for name in self.kernels):
            apart = distances(norm, matrix)
            grid = bandwidth_grid(apart, self.n_bandwidths)
            for kernel in (k for name in self.kernels if profile(name).norm == norm for k in _kernels(name, grid)):
                values, tolerance, observed, squares = pooled_statistics(apart, kernel.of_distances, layout, nbytes)
                fusion.add(kernel, values, tolerance, math.sqrt(max(squares / pairs, 1e-300)), observed)


@dataclass(eq=False)
class _Fusion:
    """The soft maximum over kernels under all permutations, one kernel after the other: none but it is held for all of them."""

    sharpness: float
    fused: Array
    tolerance: float = 0.0
    kernels: list[RadialKernel] = field(default_factory=list)
    singles: list[SingleTest] = field(default_factory=list)
    exact: list[float] = field(default_factory=list)  # ranked in the precision of the permutations, reported in double precision

    def add(self, kernel: RadialKernel, values: Array, tolerance: float, spread: float, observed: float) -> None:
        """Take in a kernel: statistics (observed first), tie tolerance, norm to divide by, the observed one exactly."""
        rank = int(upper_ranks(values[:1], tolerance, values)[0])
        self.singles.append(SingleTest(kernel.name, kernel.bandwidth, observed, rank / len(values), 1.0))
        self.kernels.append(kernel)
        self.exact.append(self.sharpness * observed / spread)
        self.tolerance = max(self.tolerance, self.sharpness * tolerance / spread)
        values *= self.sharpness / spread
        np.logaddexp(self.fused, values, out=self.fused)

    @property
    def tests(self) -> tuple[SingleTest, ...]:
        """The single tests, of equal weight."""
        return tuple(replace(single, weight=1 / len(self.singles)) for single in self.singles)


def _pairs_of_rows(layout: Layout) -> float:
    """Return n(n - 1) with n the rows of the smaller sample; where units differ in size, what every labeling has on average."""
    few = min(layout.units)
    rows = few * layout.size if layout.size else len(layout.rows) * few / layout.count
    return max(1.0, rows * (rows - 1))  # strata may leave one row


def _kernels(name: str, grid: Array) -> list[RadialKernel]:
    return [RadialKernel(name, float(b * CONVENTION.get(name, 1.0))) for b in grid]


def bandwidth_grid(apart: Array, count: int) -> Array:
    """Return evenly spaced bandwidths from half the 5% to twice the 95% quantile of the pool's distances.

    The authors' quantiles: of the upper triangle with its diagonal, zeros replaced by the median.
    """
    upper = apart[np.triu_indices(len(apart))]
    median = float(np.median(upper))
    upper = np.where(upper == 0.0, median, upper)
    ends = [int(0.05 * len(upper)), int(0.95 * len(upper))]
    low, high = np.partition(upper, ends)[ends]
    if not high > 0:
        return np.ones(count)
    return np.linspace(max(low, 1e-12 * high) / 2, 2 * high, count)
