"""Whole tests of independence, from two tables whose rows belong together to a rank among re-pairings."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.stats import rankdata

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.parallel import map_apart
from cpmmd.core.progress import report
from cpmmd.core.text import bytes_in_words
from cpmmd.data.paired import PairedTables, only_pool
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.labels import Relabelings
from cpmmd.draws.pairings import Pairings, Shifts
from cpmmd.engines.principal import LANDMARKS, PrincipalFeatures
from cpmmd.errors import InputError, ParameterReference, unknown_name
from cpmmd.evidence import ClassEvidence, Ranking, rank, rank_classes
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.collection import distances
from cpmmd.kernels.families import Bandwidth
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.procedures.fixed import median_kernel
from cpmmd.procedures.mmdagg import aggregate, combine
from cpmmd.statistics.column_pairs import PairScores, count_pairs
from cpmmd.statistics.forms import quadratic_forms
from cpmmd.statistics.hsic import HSIC, Side, spectral_hsic

MATRIX_ROWS = 4000  # of a table whose whole kernel matrix is held by the tests of one kernel; of more, landmarks see it
MEDIAN_ROWS = 500  # rows that median distances are taken over
PLAIN = math.inf  # the spectral parameter of HSIC itself
OTHER_METHOD = ParameterReference("method", "cp-hsic")
RANKS, STANDARD = "ranks", "standard"
REPORTED = {RANKS: "ranks", STANDARD: "standardised columns"}


@dataclass(frozen=True)
class SideView:
    """How one table is seen: its coordinates, and a kernel on them."""

    coordinates: str  # ``"ranks"`` of each column, or ``"standard"`` for standardised columns
    width: float | None = None  # of a Gaussian kernel, in median distances; None is the distance kernel

    def __str__(self) -> str:
        kernel = "distance" if self.width is None else f"Gaussian of {self.width:g} median distances"
        return f"{kernel} on {REPORTED[self.coordinates]}"


@dataclass(frozen=True)
class ProductClass:
    """Products of two kernels, one a table, and what is selected of them: views and spectral parameters."""

    name: str
    members: tuple[tuple[SideView, SideView, tuple[float, ...]], ...]  # views of x and of y, and spectral parameters
    weight: float = 1.0


@dataclass(frozen=True)
class SelectedProduct:
    """A class of products of kernels in a result, with the member that it selected."""

    name: str  #: of the class
    x: str  #: how the selected member sees x
    y: str  #: how the selected member sees y
    gamma: float  #: its spectral parameter, infinite for HSIC itself
    score: float  #: minus the log of its upper tail probability
    penalty: float  #: the complexity of its class: the 90% quantile of its best score under re-pairings

    @property
    def evidence(self) -> float:
        """The score less the penalty."""
        return self.score - self.penalty


@dataclass(frozen=True)
class SingleHSIC:
    """One pair of kernels of HSICAgg, tested on its own."""

    bandwidth_x: float  #: of the kernel of x
    bandwidth_y: float  #: of the kernel of y
    hsic: float  #: its HSIC
    pvalue: float  #: its own p-value
    rejected: bool  #: whether it rejects at its corrected level


@dataclass(frozen=True)
class PairedFinding:
    """What a test of independence found."""

    ranking: Ranking
    meaning: str  # of the statistic
    notes: tuple[str, ...] = ()
    classes: tuple[SelectedProduct, ...] = ()
    singles: tuple[SingleHSIC, ...] = ()
    exact: bool = True


@dataclass(frozen=True)
class PairedOptions:
    """What a caller decides for any test of independence."""

    alpha: float  # level of the test
    n_permutations: int  # re-pairings asked for
    draws: Pairings | Shifts  # the re-pairings


class IndependenceTest(ABC):
    """A test of independence, ready to run."""

    citations: ClassVar[tuple[str, ...]]  # keys in ``citations.bib``
    summary: ClassVar[str]  # its one line

    @abstractmethod
    def run(self, tables: PairedTables, options: PairedOptions, rng: np.random.Generator) -> PairedFinding:
        """Run the test."""


DISTANCES, WIDEST, WIDE, FINE = SideView(STANDARD), SideView(STANDARD, 4.0), SideView(STANDARD, 2.0), SideView(RANKS, 0.25)
# Chosen on seeds of their own over hyppo's simulations and twelve others; benchmarks/independence.py reports on other seeds.
CLASSES = (
    ProductClass("smooth", ((DISTANCES, DISTANCES, (PLAIN,)), (WIDEST, WIDEST, (0.03,))), weight=1.5),
    ProductClass("curved", ((DISTANCES, DISTANCES, (0.1,)), (WIDE, WIDE, (0.01,)))),
    ProductClass("local", ((FINE, WIDE, (PLAIN, 0.1)), (WIDE, FINE, (PLAIN, 0.1))), weight=0.5),
)


@dataclass(frozen=True)
class SpectralHSICTest(IndependenceTest):
    """HSIC over products of kernels with spectral parameters, selected by penalised evidence under every re-pairing."""

    classes: tuple[ProductClass, ...] = CLASSES
    columns_weight: float = 1.0  # of the class of single pairs of columns, where there are several; 0 leaves it out
    quantile: float = 0.9  # of a class's best score under re-pairings: its penalty

    citations = ("ni2026kernel", "gretton2005hsic", "hagrass2024spectral", "szekely2007distance")
    summary = "products of kernels with spectral parameters, selected by penalised evidence; no split"

    def run(self, tables: PairedTables, options: PairedOptions, rng: np.random.Generator) -> PairedFinding:
        """Score every member under every re-pairing, and rank the largest penalised evidence."""
        of_x, of_y = rng.spawn(2)
        gammas: dict[tuple[SideView, SideView], list[float]] = {}  # of every pair of views, whichever class asks for them
        for searched in self.classes:
            for a, b, some in searched.members:
                gammas[a, b] = list(dict.fromkeys([*gammas.get((a, b), []), *some]))
        sides = [
            _Sides(pool, tables, stream).features(tuple(dict.fromkeys(pair[i] for pair in gammas)))
            for i, (pool, stream) in enumerate(((tables.x, of_x), (tables.y, of_y)))
        ]
        values: dict[tuple[SideView, SideView, float], Array] = {}
        for k, ((a, b), asked) in enumerate(gammas.items()):
            report("kernels", k, len(gammas))
            found = spectral_hsic(sides[0][a], sides[1][b], asked, options.draws)
            values |= {(a, b, gamma): row for gamma, row in zip(asked, found, strict=True)}
        evidence, selected = [], []
        for searched in self.classes:
            members = [(a, b, gamma) for a, b, some in searched.members for gamma in some]
            scored = ClassEvidence.of(
                np.array([values[member] for member in members]), weight=searched.weight, quantile=self.quantile
            )
            evidence.append(scored)
            a, b, gamma = members[best := int(scored.scores.argmax())]
            selected.append(SelectedProduct(searched.name, str(a), str(b), gamma, float(scored.scores[best]), scored.penalty))
        if self.columns_weight > 0 and count_pairs(tables) > 1:
            scored = ClassEvidence.of(
                PairScores.of(tables, options.draws).largest()[None], weight=self.columns_weight, quantile=self.quantile
            )
            evidence.append(scored)
            column = "one column, by its ranks or levels"
            selected.append(SelectedProduct("columns", column, column, PLAIN, float(scored.scores[0]), scored.penalty))
        ranking = rank_classes(evidence, exhaustive=options.draws.exhaustive)
        selected.sort(key=lambda chosen: -chosen.evidence)
        return PairedFinding(ranking, "the largest evidence of a class less its complexity", classes=tuple(selected))


@dataclass(frozen=True)
class OneKernelTest(IndependenceTest):
    """HSIC of one kernel a table: what the tests of a fixed kernel share."""

    def run(self, tables: PairedTables, options: PairedOptions, rng: np.random.Generator) -> PairedFinding:
        """Rank HSIC among its values under re-pairings."""
        of_x, of_y = rng.spawn(2)
        matrices = [Preparation.fit(pool).transform(pool) for pool in map(only_pool, (tables.x, tables.y))]
        kernels = [self.kernel(rows[_some(len(rows), stream)]) for rows, stream in zip(matrices, (of_x, of_y), strict=True)]
        if tables.rows <= MATRIX_ROWS:
            K, L = (kernel.gram(rows) for kernel, rows in zip(kernels, matrices, strict=True))
            statistic = HSIC.of(K, L, tables.strata)
            return PairedFinding(*self.reported(rank(statistic, options.draws), statistic))
        sides = []
        for kernel, rows, stream in zip(kernels, matrices, (of_x, of_y), strict=True):
            found = PrincipalFeatures.of(kernel, rows, tables.strata, stream)
            sides.append(Side(found.variances, found.features))
        values = spectral_hsic(sides[0], sides[1], (PLAIN,), options.draws)[0]
        ranking = Ranking.of(values, tolerance=1e-12 * float(np.abs(values).max()), exhaustive=options.draws.exhaustive)
        note = f"kernels are seen through {LANDMARKS} landmarks of each table, because there are more than {MATRIX_ROWS} rows"
        return PairedFinding(ranking, "HSIC of the leading directions, in units of the largest variances", (note,))

    @abstractmethod
    def kernel(self, rows: Array) -> Kernel:
        """Return the kernel of a table, some rows of which are given."""

    def reported(self, ranking: Ranking, statistic: HSIC) -> tuple[Ranking, str]:  # noqa: ARG002
        """Return the ranking of what is reported, and what that is."""
        return ranking, "HSIC, biased"


@dataclass(frozen=True)
class MedianHSIC(OneKernelTest):
    """HSIC with Gaussian kernels at the median distances."""

    citations = ("gretton2005hsic",)
    summary = "HSIC with Gaussian kernels at the median distances"

    def kernel(self, rows: Array) -> Kernel:
        """Return the Gaussian kernel at the median distance."""
        return median_kernel(rows, "gaussian")


@dataclass(frozen=True)
class DistanceCorrelation(OneKernelTest):
    """The permutation test of distance covariance."""

    citations = ("szekely2007distance",)
    summary = "distance correlation, on the columns as they come"

    def kernel(self, rows: Array) -> Kernel:
        """Return the kernel whose HSIC is distance covariance."""
        return DistanceKernel(rows.mean(axis=0))

    def reported(self, ranking: Ranking, statistic: HSIC) -> tuple[Ranking, str]:
        """Return distance correlations: the root of distance covariance over that of each table with itself."""
        unit = float(np.linalg.norm(statistic.first) * np.linalg.norm(statistic.second)) / len(statistic.first) ** 2

        def correlation(values: Array) -> Array:
            return np.sqrt(np.maximum(values, 0.0) / unit) if unit > 0 else np.zeros_like(values)

        values = correlation(np.append(ranking.statistic, ranking.null_distribution))
        found = Ranking(float(values[0]), values[1:], ranking.rank, ranking.exhaustive, ranking.tolerance, ranking.ties)
        return found, "distance correlation, from 0 to 1"


@dataclass(frozen=True)
class DistanceKernel:
    """k(x, x') = |x - o| + |x' - o| - |x - x'|: -|x - x'| once it is centred, and positive definite before."""

    origin: Array

    bound, base_lipschitz, lipschitz = np.inf, 1.0, 1.0

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Return the kernel matrix of ``rows`` with ``others`` (or with themselves)."""
        own = np.linalg.norm(rows - self.origin, axis=1)
        beside = own if others is None else np.linalg.norm(others - self.origin, axis=1)
        return np.asarray(own[:, None] + beside - distances("l2", rows, others))

    def to_dict(self) -> dict[str, object]:
        """Describe the kernel; it is never kept."""
        return {}

    def tensors(self) -> dict[str, Array]:
        """Return no arrays."""
        return {}


@dataclass(frozen=True)
class HSICAgg(IndependenceTest):
    """HSICAgg of Schrab et al. (2022) over all pairs of rows of two halves, as its authors compute it.

    Notes
    -----
    Rows are cut into halves (x, x'), and h_X(i, j) = k(x_i, x_j) - k(x_i, x'_j) - k(x'_i, x_j) + k(x'_i, x'_j) with
    k = exp(-|.|^2 / b^2); HSIC is the mean of h_X h_Y over pairs. Random signs give its null distribution. Their code has no
    p-value; this one ranks the smallest weighted p-value of the single tests, beside the authors' decision.
    """

    powers: tuple[int, int] = (-2, 2)  # of 2, times the median distance: the bandwidths of each table
    b3: int = 50  # bisections of the correction

    citations = ("schrab2022efficient",)
    summary = "HSICAgg: 25 pairs of Gaussian kernels, aggregated with corrected levels; rows are independent"

    def run(self, tables: PairedTables, options: PairedOptions, rng: np.random.Generator) -> PairedFinding:
        """Simulate every single test under common signs, correct, decide."""
        if tables.kind != "row" or tables.strata is not None:
            rule = "hsicagg takes rows as independent: it has no groups, strata or blocks. Leave them out, or use {other}."
            raise InputError(rule, other=OTHER_METHOD)
        if tables.rows > MATRIX_ROWS:
            needed = bytes_in_words(10 * 4 * (tables.rows // 2) ** 2)
            rule = "hsicagg holds all pairs of rows, at most {most} rows. Got {rows}, which need {needed}; use {other}."
            raise InputError(rule, most=MATRIX_ROWS, rows=tables.rows, needed=needed, other=OTHER_METHOD)
        matrices = [Preparation.fit(pool).transform(pool) for pool in map(only_pool, (tables.x, tables.y))]
        half = tables.rows // 2
        signs = Relabelings.draw_signs(half, 2 * options.n_permutations, rng)
        bandwidths = [[2.0**p * median_bandwidth(rows) for p in range(self.powers[0], self.powers[1] + 1)] for rows in matrices]
        H = [[halves_matrix(rows, b) for b in some] for rows, some in zip(matrices, bandwidths, strict=True)]
        singles = [(i, j) for j in range(len(H[1])) for i in range(len(H[0]))]
        scale, labels = 1 / (half * (half - 1)), signs.array()

        def simulated(single: tuple[int, int]) -> tuple[Array, float]:
            product = H[0][single[0]] * H[1][single[1]]
            return scale * quadratic_forms(product, labels), 1e-12 * scale * float(np.linalg.norm(product))

        found = map_apart(simulated, singles)
        values, tolerance = np.array([of[0] for of in found]), np.array([of[1] for of in found])
        weight = np.full(len(singles), 1 / len(singles))
        rejected, _ = aggregate(values, tolerance, weight, options.alpha, options.n_permutations, self.b3)
        combined, first = combine(values, tolerance, weight)
        tests = tuple(
            SingleHSIC(bandwidths[0][i], bandwidths[1][j], float(v[0]), float(p), bool(hit))
            for (i, j), v, p, hit in zip(singles, values, first, rejected, strict=True)
        )
        ranking = Ranking.of(-np.log(combined), tolerance=1e-12, exhaustive=False)
        note = f"the authors' decision at level {options.alpha:g}: {'rejects' if rejected.any() else 'does not reject'}"
        meaning = "minus the log of the smallest weighted p-value of the single tests"
        return PairedFinding(ranking, meaning, (note,), singles=tests, exact=False)


def median_bandwidth(rows: Array) -> float:
    """Return the authors' median distance: of the first 500 rows, and at least 0.0001."""
    apart = distances("l2", rows[:500])
    return max(float(np.median(apart[np.triu_indices(len(apart), 1)])), 1e-4)


def halves_matrix(rows: Array, bandwidth: float) -> Array:
    """Return h(i, j) of two halves of the rows, zero on the diagonal."""
    half = len(rows) // 2
    K = np.exp(-((distances("l2", rows[: 2 * half]) / bandwidth) ** 2))
    H = K[:half, :half] - K[:half, half:] - K[half:, :half] + K[half:, half:]
    np.fill_diagonal(H, 0.0)
    return np.asarray(H)


METHODS: dict[str, IndependenceTest] = {
    "cp-hsic": SpectralHSICTest(),
    "hsic-median": MedianHSIC(),
    "distance-correlation": DistanceCorrelation(),
    "hsicagg": HSICAgg(),
}


@dataclass(frozen=True, eq=False)
class _Sides:
    """The views of one table."""

    pool: Pool
    tables: PairedTables
    rng: np.random.Generator

    def features(self, views: Sequence[SideView]) -> dict[SideView, Side]:
        """Return the features of every view, each with a random stream of its own."""
        coordinates = {name: self._matrix(name) for name in dict.fromkeys(view.coordinates for view in views)}
        streams = dict(zip(views, self.rng.spawn(len(views)), strict=True))

        def side(view: SideView) -> Side:
            rows, stream = coordinates[view.coordinates], streams[view]
            sample = rows[_some(len(rows), stream)]
            kernel: Kernel
            if view.width is None:
                kernel = DistanceKernel(sample.mean(axis=0))
            else:
                family = Bandwidth("gaussian")
                kernel = ScaledKernel(family, view.width * family.median_bandwidth(sample))
            found = PrincipalFeatures.of(kernel, rows, self.tables.strata, stream)
            return Side(found.variances, found.features)

        return dict(zip(views, map_apart(side, views), strict=True))

    def _matrix(self, coordinates: str) -> Array:
        """Return the table in some coordinates; categories have indicators of their levels in all of them."""
        pool = only_pool(self.pool)
        preparation = Preparation.fit(pool, scale="standard")
        rows = preparation.transform(pool)
        if coordinates == RANKS:
            numbers = len(preparation.number_names) + len(preparation.indicators)
            rows[:, :numbers] = (rankdata(rows[:, :numbers], axis=0) - 0.5) / len(rows)
        return rows


def _some(count: int, rng: np.random.Generator) -> Rows | slice:
    """Return rows that median distances are taken over, drawn without looking at the other table."""
    return slice(None) if count <= MEDIAN_ROWS else rng.permutation(count)[:MEDIAN_ROWS]


def method_of(name: object) -> tuple[str, IndependenceTest]:
    """Return a test by its name."""
    if not isinstance(name, str) or name not in METHODS:
        raise unknown_name("method", name if isinstance(name, str) else repr(name), METHODS, parameter="method")
    return name, METHODS[name]
