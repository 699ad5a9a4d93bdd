"""MMDAgg (Schrab et al. 2023): many kernels, one level, by a bootstrap correction that is no union bound."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.labels import Relabelings, chunk_bytes
from cpmmd.draws.layout import Layout
from cpmmd.engines.dense import pooled_statistics, signed_statistics
from cpmmd.engines.memory import require_dense
from cpmmd.evidence import Ranking, upper_ranks
from cpmmd.kernels.collection import RadialKernel, collection_names, distances, profile
from cpmmd.procedures.base import Method, Procedure, RunOptions
from cpmmd.procedures.outcome import Collection, Evidence, SingleTest, TestResult

WEIGHTS = ("uniform", "centred", "increasing", "decreasing")
GRID_ROWS = 500  # rows of each sample that the authors' grid looks at
# The authors' gaussian is exp(-d^2 / l^2): ours, exp(-d^2 / 2 b^2), at this multiple of l.
CONVENTION = {"gaussian": math.sqrt(0.5)}


@dataclass(frozen=True)
class MMDAgg(Procedure):
    """Aggregated MMD test over a collection of kernels and bandwidths.

    Parameters
    ----------
    kernels : tuple of str
        Names: ``"laplacian_l1"``, ``"gaussian"``, ``"imq"``, ``"matern_0.5_l1"`` to ``"matern_4.5_l2"``.
    n_bandwidths : int
        Bandwidths of each kernel.
    weights : str
        ``"uniform"``, ``"centred"``, ``"increasing"`` or ``"decreasing"`` along the bandwidths.
    b1, b2, b3 : int
        Simulations for the quantiles and for the level correction, and steps of its bisection.
    bandwidths : tuple of float, optional
        Bandwidths to use for every kernel instead of the authors' grid; the Gaussian is exp(-d^2 / 2 bandwidth^2) here as
        everywhere in this package.
    scale : str, optional
        None or ``"standard"`` (by pooled statistics).

    Notes
    -----
    If m = n, the wild bootstrap on the pairs (x_i, y_i) is used, otherwise permutations. ``pvalue`` is this library's: the rank
    of min_l p_l / w_l among the simulated values; it decides, as for every method. The authors' own decision is
    ``result.collection.decision``: nearly always the same with 2000 simulations, and less powerful with few.

    The authors' grid is made from distances between the first 500 rows of X and of Y. It depends on the labels, so the level is
    exact only given the grid. No excess was seen in thousands of null samples; with ``bandwidths`` of your own the level is
    exact. The grid's floors (distances of 0.1 and 0.3) are relative to the largest distance where that is below 1.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import MMDAgg, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(1, 1, size=(50, 2))
    >>> result = two_sample_test(x, y, method=MMDAgg(n_bandwidths=3, b1=300, b2=300), rng=0)
    >>> result.reject, len(result.collection.tests)
    (True, 6)
    """

    kernels: tuple[str, ...] = ("laplacian_l1", "gaussian")
    n_bandwidths: int = 10
    weights: str = "uniform"
    b1: int = 2000
    b2: int = 2000
    b3: int = 50
    bandwidths: tuple[float, ...] | None = None
    scale: str | None = None

    citations = ("schrab2023mmd",)
    statistic_meaning = "minus the log of the smallest weighted p-value of the single tests"
    exact = False  # its bandwidths look at the labels

    def __post_init__(self) -> None:
        object.__setattr__(self, "kernels", collection_names(self.kernels))
        validation.whole("n_bandwidths", self.n_bandwidths, at_least=1)
        validation.one_of("weights", self.weights, WEIGHTS)
        for name in ("b1", "b2", "b3"):
            validation.whole(name, getattr(self, name), at_least=1)
        if self.bandwidths is not None:
            if not isinstance(self.bandwidths, Sequence) or not len(self.bandwidths):
                raise validation.wrong("bandwidths", "must be a list of numbers, at least one, or None", self.bandwidths)
            object.__setattr__(self, "bandwidths", tuple(validation.positive("bandwidths", b) for b in self.bandwidths))
        validation.scale(self.scale)

    @classmethod
    def methods(cls) -> Mapping[str, Method]:
        """Return the authors' defaults."""
        return {"mmdagg": Method(cls, "MMDAgg: 20 Laplacian and Gaussian kernels, aggregated with corrected levels; no split")}

    @property
    def default_permutations(self) -> int:
        """b1, which bounds the smallest p-value of a single test."""
        return self.b1

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Simulate every single test under common permutations, correct, decide."""
        b1, b2 = (self.b1, self.b2) if options.n_permutations == self.b1 else (options.n_permutations,) * 2
        require_dense(options.memory_limit, rows=pool.m + pool.n, matrices=2, method=type(self).__name__)
        preparation = Preparation.fit(pool, scale=self.scale)
        designed = pool.design is not None
        layout = Layout.of_all(pool.m, pool.n, pool.design)
        matrix = preparation.transform(pool, layout.rows)
        collection = self._collection(matrix, pool.m, blind=designed)
        weights = bandwidth_weights(self.weights, len(collection[0][1])) / len(self.kernels)
        weight = np.concatenate([weights for _ in collection])
        singles = [RadialKernel(name, float(b)) for name, grid in collection for b in grid]
        signs = None  # the authors' permutations: signs of pairs where samples are of one size; never all there are
        if designed or pool.m != pool.n:
            layout = layout.draw(b1 + b2, rng, options.memory_limit, enumerate_few=False)
        else:
            signs = Relabelings.draw_signs(pool.n, b1 + b2, rng, options.memory_limit)
        values, tolerance, observed = simulate(matrix, singles, layout, signs, chunk_bytes(options.memory_limit))
        rejected, u = aggregate(values, tolerance, weight, options.alpha, b1, self.b3)
        combined, first = combine(values, tolerance, weight)
        tests = tuple(
            SingleTest(single.name, single.bandwidth, float(v), float(p), float(w), rejected=bool(hit))
            for single, v, p, w, hit in zip(singles, observed, first, weight, rejected, strict=True)
        )
        return self.conclude(
            pool,
            options,
            Ranking.of(-np.log(combined), tolerance=1e-12, exhaustive=False),
            tested_sizes=(pool.m, pool.n),
            kernel=singles[int(np.argmin(first / weight))],
            preparation=preparation,
            notes=() if designed else _note_few(pool.m, pool.n, options.alpha),
            collection=Collection(
                tests,
                "permutations" if signs is None else "wild bootstrap",
                level_correction=u,
                decision=bool(rejected.any()),
            ),
            evidence=Evidence(pool, units=layout if designed else None),
            exact=self.exact or designed,
        )

    def _collection(self, pool: Array, m: int, *, blind: bool) -> list[tuple[str, Array]]:
        """Return the bandwidths of each kernel; ``blind`` takes them from all distances, which do not look at labels."""
        if self.bandwidths is not None:
            return [(name, np.array(self.bandwidths)) for name in self.kernels]
        grids: dict[str, Array] = {}
        x, y = pool[:m][:GRID_ROWS], pool[m:][:GRID_ROWS]
        for norm in {profile(name).norm for name in self.kernels}:
            cross = distances(norm, pool)[np.triu_indices(len(pool), 1)] if blind else distances(norm, x, y)
            grids[norm] = bandwidth_grid(cross, self.n_bandwidths)
        return [(name, grids[profile(name).norm] * CONVENTION.get(name, 1.0)) for name in self.kernels]


def _note_few(m: int, n: int, alpha: float) -> tuple[str, ...]:
    """Return a note where too few rows can reject only through Monte Carlo error."""
    smallest = 2.0 ** (1 - m) if m == n else 1 / math.comb(m + n, m)
    if smallest <= alpha:
        return ()
    least = f"with {m} v {n} tested rows the smallest p-values are {smallest:.3g} on average, above the level {alpha:g}"
    return (f"this test can reject only through Monte Carlo error: {least}",)


def bandwidth_grid(cross: Array, count: int) -> Array:
    """Return the authors' grid from cross distances: from half the smallest to twice the largest, geometrically.

    The authors' floors are the distances 0.1 and 0.3, whatever the unit. Here they are relative where all distances are below 1:
    on data of 1e-27 the authors' grid sees all rows as one.
    """
    ordered = np.sort(cross, axis=None)
    unit = min(1.0, float(ordered[-1])) or 1.0
    low = ordered[0] if ordered[0] >= 0.1 * unit else max(ordered[math.floor(0.05 * len(ordered))], 0.1 * unit)
    high = max(ordered[-1], 0.3 * unit)
    if count == 1:
        return np.array([math.sqrt(low * high)])
    return np.asarray(low / 2 * (4 * high / low) ** (np.arange(count) / (count - 1)))


def bandwidth_weights(kind: str, count: int) -> Array:
    """Return weights over the bandwidths that sum to 1."""
    position = np.arange(1, count + 1)
    raw = {
        "uniform": np.ones(count),
        "decreasing": 1 / position,
        "increasing": 1 / (count + 1 - position),
        "centred": 1 / (np.abs((count + 1) / 2 - position) + 1),
    }[kind]
    return np.asarray(raw / raw.sum())


def simulate(
    rows: Array, singles: list[RadialKernel], layout: Layout, signs: Relabelings | None, nbytes: int
) -> tuple[Array, Array, Array]:
    """Return the statistics of all single tests, observed first, under common permutations: signs of pairs, or of the layout.

    Beside them their tie tolerances, and the observed ones again in double precision.
    """
    values = np.empty((len(singles), len(layout.labels if signs is None else signs)))
    tolerance, observed = np.empty(len(singles)), np.empty(len(singles))
    for norm in dict.fromkeys(single.norm for single in singles):
        apart = distances(norm, rows)
        for i, single in enumerate(singles):
            if single.norm != norm:
                continue
            if signs is None:
                values[i], tolerance[i], observed[i], _ = pooled_statistics(apart, single.of_distances, layout, nbytes)
            else:
                values[i], tolerance[i], observed[i] = signed_statistics(apart, single.of_distances, signs, nbytes)
    return values, tolerance, observed


def combine(values: Array, tolerance: Array, weight: Array) -> tuple[Array, Array]:
    """Return the smallest weighted p-value of each permutation, and each single test's own p-value on the labels as they came."""
    smallest, first = np.full(values.shape[1], np.inf), np.empty(len(values))
    for i, (row, close, share) in enumerate(zip(values, tolerance, weight, strict=True)):
        pvalues = upper_ranks(row, close) / len(row)
        first[i] = pvalues[0]
        np.minimum(smallest, pvalues / share, out=smallest)
    return smallest, first


def aggregate(
    values: Array, tolerance: Array, weight: Array, alpha: float, b1: int, b3: int
) -> tuple[npt.NDArray[np.bool_], float]:
    """Return which single tests reject at the corrected levels, and the correction u.

    Notes
    -----
    q_l(u) is the order statistic ceil((B1+1)(1 - u w_l)) of the first B1 simulated values and the observed one; u is the largest
    value, by bisection, at which the other B2 simulations exceed some q_l(u) with frequency at most alpha.
    """
    first = np.sort(values[:, : b1 + 1], axis=1)
    second = values[:, b1 + 1 :]

    def quantiles(u: float) -> Array:
        position = np.clip(np.ceil((b1 + 1) * (1 - u * weight)).astype(int), 1, b1 + 1) - 1
        return np.asarray(first[np.arange(len(first)), position])

    low, high = 0.0, float(1 / weight.max())
    for _ in range(b3):
        u = (low + high) / 2
        exceeded = (second > (quantiles(u) + tolerance)[:, None]).any(axis=0)
        low, high = (u, high) if exceeded.mean() <= alpha else (low, u)
    return values[:, 0] > quantiles(low) + tolerance, low
