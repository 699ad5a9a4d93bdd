"""MMD-FUSE (Biggs, Schrab, Gretton 2023): a soft maximum of normalised MMDs over kernels, by permutations."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import logsumexp

from cpmmd import validation
from cpmmd.inputs import Preparation, Samples
from cpmmd.kernels.radial import RadialKernel, collection_names, distances, profile
from cpmmd.permutation import collections as many
from cpmmd.permutation.dense import PermutationNull
from cpmmd.permutation.memory import require_dense
from cpmmd.procedures.base import Procedure, RunOptions, conclude
from cpmmd.results import TestResult
from cpmmd.samples import Array, draw_labels

# The authors' laplace is exp(-sqrt(2) d / l) and their gaussian exp(-d^2 / 2 l^2): ours at these multiples of l.
CONVENTION = {"laplace": math.sqrt(0.5), "gaussian": math.sqrt(2.0)}


@dataclass(frozen=True)
class MMDFuse(Procedure):
    """Fused MMD test over a collection of kernels and bandwidths.

    Parameters
    ----------
    kernels
        Names, as for :class:`~cpmmd.procedures.mmdagg.MMDAgg`.
    n_bandwidths
        Bandwidths of each kernel, evenly spaced between distance quantiles of the pool.
    lambda_multiplier
        Factor of the soft maximum's sharpness.
    n_permutations
        Relabelings when the call does not say.
    scaling
        ``"code"``: sharpness n(n-1), as the authors' code; ``"paper"``: sqrt(n(n-1)), as their text.
    scale
        None or ``"standard"`` (by pooled statistics).
    """

    kernels: tuple[str, ...] = ("laplace", "gaussian")
    n_bandwidths: int = 10
    lambda_multiplier: float = 1.0
    n_permutations: int = 2000
    scaling: str = "code"
    scale: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", collection_names(self.kernels))
        validation.whole("n_bandwidths", self.n_bandwidths, at_least=1)
        validation.positive("lambda_multiplier", self.lambda_multiplier)
        validation.whole("n_permutations", self.n_permutations, at_least=1)
        validation.one_of("scaling", self.scaling, ("code", "paper"))
        validation.scale(self.scale)

    @property
    def default_permutations(self) -> int:  # type: ignore[override]
        """The authors' 2000."""
        return self.n_permutations

    def run(self, samples: Samples, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Fuse the normalised statistics under every relabeling, rank the observed one."""
        require_dense(options.memory_limit, rows=samples.m + samples.n, matrices=2, method=type(self).__name__)
        preparation = Preparation.fit(samples, scale=self.scale)
        pool = preparation.transform(samples)
        m, n = samples.m, samples.n
        pairs = min(m, n) * (min(m, n) - 1)
        sharpness = self.lambda_multiplier * (pairs if self.scaling == "code" else math.sqrt(pairs))
        singles, values, spread, tolerance, observed = self._statistics(pool, m, pairs, options.n_permutations, rng)
        normalised = sharpness * values / spread[:, None]
        fused = logsumexp(normalised, axis=0) - math.log(len(singles))
        slack = float((sharpness * tolerance / spread).max())
        pvalue = float(np.mean(fused >= fused[0] - slack))  # ranked in the precision of the relabelings
        exact = sharpness * observed / spread  # reported in double precision
        statistic = float(logsumexp(exact)) - math.log(len(singles))
        null = PermutationNull(statistic, fused[1:], pvalue, exhaustive=False)
        ranks = [int(many.upper_ranks(v[:1], t, v)[0]) for v, t in zip(values, tolerance, strict=True)]
        tests = [
            {
                "kernel": s.name,
                "bandwidth": s.bandwidth,
                "mmd2": float(o),
                "pvalue": r / len(v),
                "weight": 1 / len(singles),
                "fused": f,
            }
            for s, v, o, r, f in zip(singles, values, observed, ranks, exact, strict=True)
        ]
        return conclude(
            samples,
            options,
            null,
            tested_sizes=(m, n),
            kernel=singles[int(np.argmax(exact))],
            preparation=preparation,
            details={"tests": tests, "sharpness": sharpness},
        )

    def _statistics(
        self, pool: Array, m: int, pairs: int, count: int, rng: np.random.Generator
    ) -> tuple[list[RadialKernel], Array, Array, Array, Array]:
        """Give the kernels, their statistics (observed first), norms to divide by, tie tolerances, and exact observed ones."""
        labels = np.vstack([(np.arange(len(pool)) < m)[None], draw_labels(len(pool), m, count, rng)])
        singles, rows = [], []
        for norm in dict.fromkeys(profile(name).norm for name in self.kernels):
            apart = distances(norm, pool)
            grid = bandwidth_grid(apart, self.n_bandwidths)
            for single in (s for name in self.kernels if profile(name).norm == norm for s in _members(name, grid)):
                matrix, observed, squares = many.pooled_matrix(apart, m, single.of_distances)
                spread = math.sqrt(max(squares / pairs, 1e-300))
                rows.append((*many.permutation_statistics(matrix, labels, m), spread, observed))
                singles.append(single)
        values, tolerance, norms, exact = (np.array(column) for column in zip(*rows, strict=True))
        return singles, values, norms, tolerance, exact


def _members(name: str, grid: Array) -> list[RadialKernel]:
    return [RadialKernel(name, float(b * CONVENTION.get(name, 1.0))) for b in grid]


def bandwidth_grid(apart: Array, count: int) -> Array:
    """Give evenly spaced bandwidths from half the 5% to twice the 95% quantile of the pool's distances.

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
