"""Does a sample come from a model? Statistics of many kernels, under data sets drawn from the model or under random signs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from math import inf
from typing import ClassVar

import numpy as np
from scipy.spatial.distance import pdist

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import PlainValue
from cpmmd.draws.labels import Relabelings
from cpmmd.engines.signed import TIE, signed_values
from cpmmd.engines.simulated import LandmarkKernel, landmark_means, summarise_all
from cpmmd.errors import InputError
from cpmmd.evidence import ClassEvidence, Ranking, rank_classes
from cpmmd.models.model import Model
from cpmmd.procedures.mmdagg import aggregate, bandwidth_weights, combine
from cpmmd.statistics.misfit import (
    MOMENTS,
    ColumnMisfit,
    column_misfits,
    normal_scores,
    stein_moments,
    tail_shares,
)
from cpmmd.statistics.moments import hermite_means, mardia, whiten
from cpmmd.statistics.stein import GaussianKernel, PairKernel, Pairs, Scored, SteinKernel

SIMULATION, SIGNS = "simulation", "wild bootstrap"
REFERENCE_ROWS = 3000  # of the model, from which bandwidths, landmarks and variances come
MARGINAL_ROWS = 10_000  # of the model, among which values of columns are ranked
LANDMARKS = 200
KSDAGG_COUNT = 10  # bandwidths
MEDIAN_ROWS = 500
MOST_ROWS = 10_000  # of methods that take all pairs: 800 MB


@dataclass(frozen=True)
class SteinMember:
    """A kernel in units of the median distance, with its spectral parameters."""

    base: str  # ``imq``, ``gaussian`` (both as Stein kernels), or ``mass``, the Gaussian kernel itself
    multiple: float
    gammas: tuple[float, ...] = (inf,)

    @property
    def spectral(self) -> bool:
        """Whether directions are divided by their variances."""
        return self.gammas != (inf,)

    def kernel(self, unit: float) -> PairKernel:
        """Return the kernel, the median distance being ``unit``."""
        bandwidth = self.multiple * unit
        if self.base == "mass":
            return GaussianKernel(bandwidth)
        return SteinKernel("imq" if self.base == "imq" else "gaussian", bandwidth)


@dataclass(frozen=True)
class SteinClass:
    """Members that compete as one class."""

    name: str
    members: tuple[SteinMember, ...] = ()
    weight: float = 1.0


# Chosen on seeds other than those reported (docs/theory/fit.md).
WIDE = SteinClass("wide kernel", (SteinMember("gaussian", 4),), weight=3.0)
KERNELS = SteinClass("kernels", (SteinMember("gaussian", 1), SteinMember("gaussian", 0.5), SteinMember("imq", 1)))
SPECTRAL = SteinClass("spectral", (SteinMember("imq", 1, (0.1, 0.01, 0.001)), SteinMember("gaussian", 0.5, (0.1, 0.01))))
MASS = SteinClass("mass", (SteinMember("mass", 1, (inf, 0.1)), SteinMember("mass", 0.5, (inf, 0.1))))
SKEWNESS, KURTOSIS, COLUMNS = (SteinClass(name) for name in ("skewness", "kurtosis", "columns"))


@dataclass(frozen=True)
class FitClass(PlainValue):
    """What one class of statistics says."""

    document: ClassVar[tuple[str, ...]] = (
        *("name", "evidence", "score", "penalty", "base", "bandwidth", "gamma", "squared_ksd"),
    )

    name: str  #: of the class
    evidence: float  #: its largest score less its penalty
    score: float  #: -log p of its best member
    penalty: float  #: its complexity: the 90% quantile of its largest score, less the logarithm of its weight
    base: str | None = None  #: base kernel of the best member; None for moments
    bandwidth: float | None = None  #: its bandwidth, in the coordinates that the test compares
    gamma: float | None = None  #: its spectral parameter; None for KSD itself
    squared_ksd: float | None = None  #: the unbiased KSD^2, of methods that have single tests


@dataclass(frozen=True, eq=False)
class Fit:
    """What a method found."""

    ranking: Ranking
    classes: tuple[FitClass, ...]
    columns: tuple[ColumnMisfit, ...]
    null: str
    decision: bool | None = None  # the authors' own, of KSDAgg


def _evidence_of(asked: SteinClass, members: Sequence[tuple[PairKernel, float]], values: Array) -> tuple[FitClass, ClassEvidence]:
    found = ClassEvidence.of(values, weight=asked.weight)
    best = int(found.scores.argmax())
    kernel = members[best] if members else None
    return FitClass(
        asked.name,
        float(found.total[0]),
        float(found.scores[best]),
        found.penalty,
        base=None if kernel is None else getattr(kernel[0], "base", "mass"),
        bandwidth=None if kernel is None else kernel[0].bandwidth,
        gamma=None if kernel is None or np.isinf(kernel[1]) else kernel[1],
    ), found


def _concluded(found: Sequence[tuple[FitClass, ClassEvidence]], columns: tuple[ColumnMisfit, ...], null: str) -> Fit:
    ordered = sorted((of_class for of_class, _ in found), key=lambda of_class: -of_class.evidence)
    ranking = rank_classes([evidence for _, evidence in found], exhaustive=False)
    return Fit(ranking, tuple(ordered), columns, null)


# By simulation: exact.


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Rows as a model that can be sampled is compared with them."""

    model: Model
    columns: int
    origin: Array  # of the model's columns, where it is not N(0, I) in coordinates of its own
    scale: Array
    marginal_rows: Array  # rows of the model, among which values of columns are ranked; none where scores are known

    @classmethod
    def of(cls, model: Model, columns: int, rng: np.random.Generator) -> Coordinates:
        """Return the coordinates of a model: of its own, or less its medians, divided by its quartiles' distance."""
        if model.estimated or model.to_normal is not None:
            own = np.empty((0, columns))
            if columns > 1 and model.to_normal is not None:
                own = model.draw(MARGINAL_ROWS, columns, rng)
            return cls(model, columns, np.zeros(columns), np.ones(columns), own)
        drawn = model.draw(MARGINAL_ROWS, columns, rng)
        low, middle, high = np.quantile(drawn, (0.25, 0.5, 0.75), axis=0)
        return cls(model, columns, middle, np.where(high > low, (high - low) / 1.349, 1.0), drawn)

    @property
    def normal(self) -> bool:
        """Whether the model is N(0, I) in these coordinates."""
        return self.model.estimated or self.model.to_normal is not None

    def scored(self, rows: Array) -> Scored:
        """Return rows in these coordinates, with the model's scores."""
        if self.model.estimated:
            z = whiten(rows)
            return Scored(z, -z)
        if self.model.to_normal is not None:
            z = self.model.to_normal(rows)
            return Scored(z, -z)
        z = (rows - self.origin) / self.scale
        if self.model.score is None:
            return Scored(z, np.zeros_like(z))
        return Scored(z, self.model.scores(rows) * self.scale)

    def marginal(self, rows: Array) -> Array:
        """Return the columns as normal scores under the model."""
        if self.model.estimated:
            return np.asarray((rows - rows.mean(axis=0)) / rows.std(axis=0))
        if self.columns == 1 and self.model.to_normal is not None:
            return self.model.to_normal(rows)
        return normal_scores(rows, self.marginal_rows)

    def draw(self, rows: int, rng: np.random.Generator) -> Array:
        """Return a data set of the model, as rows of the data come."""
        if self.model.estimated:  # whatever its mean and covariance: white rows have one distribution
            return rng.normal(size=(rows, self.columns))
        return self.model.draw(rows, self.columns, rng)

    def classes(self) -> tuple[SteinClass, ...]:
        """Return the classes that compete."""
        if self.model.estimated:
            return (SKEWNESS, KURTOSIS, KERNELS)
        if self.model.to_normal is not None:
            return (WIDE, KERNELS, COLUMNS)
        return (WIDE, KERNELS, SPECTRAL, MASS, COLUMNS) if self.model.score is not None else (MASS, COLUMNS)


@dataclass(frozen=True, eq=False)
class SimulatedNull:
    """Data sets of one size drawn from a model, summed: any number of samples of that size can be ranked among them."""

    coordinates: Coordinates
    rows: int
    landmarks: Scored
    members: Mapping[SteinMember, LandmarkKernel]
    sums: Array  # a data set a row: means of every kernel with the landmarks, moments of columns and of the whole

    @classmethod
    def of(cls, model: Model, rows: int, columns: int, count: int, rng: np.random.Generator) -> SimulatedNull:
        """Draw the landmarks and the data sets."""
        marginal_stream, reference_stream, data_stream = rng.spawn(3)
        coordinates = Coordinates.of(model, columns, marginal_stream)
        if coordinates.normal:
            z = reference_stream.normal(size=(REFERENCE_ROWS, columns))
            reference = Scored(z, -z)
        else:
            reference = coordinates.scored(coordinates.draw(REFERENCE_ROWS, reference_stream))
        landmarks = reference.take(slice(0, LANDMARKS))
        unit = float(np.median(pdist(reference.rows[:MEDIAN_ROWS])))
        members = dict.fromkeys(member for some in coordinates.classes() for member in some.members)
        among = Pairs.of(landmarks, landmarks)
        seen = Pairs.of(reference, landmarks) if any(member.spectral for member in members) else None
        kernels = {m: LandmarkKernel.of(m.kernel(unit), among, seen if m.spectral else None) for m in members}
        none_yet = cls(coordinates, rows, landmarks, kernels, np.empty((0, 0)))
        return replace(none_yet, sums=summarise_all(lambda: coordinates.draw(rows, data_stream), none_yet.summarise, count))

    def summarise(self, rows: Array) -> Array:
        """Return all that is summed of a data set."""
        scored = self.coordinates.scored(rows)
        means = landmark_means(scored, self.landmarks, [member.kernel for member in self.members.values()])
        moments = hermite_means(self.coordinates.marginal(rows))
        whole = mardia(scored.rows) if self.coordinates.model.estimated else ()
        return np.concatenate([means.ravel(), moments.ravel(), whole])

    def fit(self, rows: Array, names: Sequence[str]) -> Fit:
        """Rank a sample among the data sets."""
        sums, d = np.vstack([self.summarise(rows), self.sums]), len(names)
        means, rest = np.split(sums, [len(self.members) * len(self.landmarks)], axis=1)
        moments, whole = np.split(rest, [MOMENTS * d], axis=1)
        moments, of_kernel = moments.reshape(len(sums), MOMENTS, d), means.reshape(len(sums), len(self.members), -1)
        values = {
            member: seen.statistics(of_kernel[:, j], self.rows, member.gammas)
            for j, (member, seen) in enumerate(self.members.items())
        }
        of_moments, found = _moment_classes(moments, whole), []
        for some in self.coordinates.classes():
            listed = [(self.members[member].kernel, gamma) for member in some.members for gamma in member.gammas]
            rows_of = np.concatenate([values[member] for member in some.members]) if listed else of_moments[some.name]
            found.append(_evidence_of(some, listed, rows_of))
        shares = tail_shares(self.coordinates.marginal(rows))
        first = 2 if self.coordinates.model.estimated else 0
        columns = column_misfits(names, moments, moments[0] / np.sqrt(self.rows), shares, first=first)
        return _concluded(found, columns, SIMULATION)


def _moment_classes(moments: Array, whole: Array) -> Mapping[str, Array]:
    """Return the members of the classes of moments: either tail of kurtosis, either side of a column's moment at once."""
    found = {COLUMNS.name: np.abs(moments - moments.mean(axis=0)).reshape(len(moments), -1).T}
    if whole.size:
        found |= {SKEWNESS.name: whole[:, :1].T, KURTOSIS.name: np.array([whole[:, 1], -whole[:, 1]])}
    return found


# By random signs: approximate.

# No spectral members: with the variances of the data in place of the model's, they reject up to .99 of samples of the model.
SIGN_CLASSES = (WIDE, KERNELS)


@dataclass(frozen=True, eq=False)
class Signed:
    """The data in units of their columns, and the signs of rows or of blocks of them."""

    data: Scored
    starts: Rows | None
    signs: Relabelings
    rng: np.random.Generator

    @classmethod
    def of(cls, rows: Array, model: Model, starts: Rows | None, count: int, rng: np.random.Generator) -> Signed:
        """Draw the signs."""
        sign_stream, landmark_stream = rng.spawn(2)
        units = len(rows) if starts is None else len(starts)
        signs = Relabelings.draw_signs(units, count, sign_stream)
        return cls(Scored(rows, model.scores(rows, observed=True)), starts, signs, landmark_stream)

    def standardised(self) -> Scored:
        """Return the data less the means of columns, divided by their standard deviations."""
        rows = self.data.rows
        scale = rows.std(axis=0)
        return Scored((rows - rows.mean(axis=0)) / scale, self.data.scores * scale)

    def columns(self, names: Sequence[str]) -> tuple[ColumnMisfit, ...]:
        """Return how far each column is from the model."""
        data = self.standardised()
        of_rows = stein_moments(data.rows, data.scores).reshape(len(data), -1)
        of_units = of_rows if self.starts is None else np.add.reduceat(of_rows, self.starts, axis=0)
        sums = np.concatenate([block @ of_units for block in self.signs.blocks()]).reshape(len(self.signs), MOMENTS, -1)
        sizes = np.sqrt(np.square(of_units).sum(axis=0) * len(of_units)).reshape(MOMENTS, -1)
        return column_misfits(names, sums, sums[0] / np.where(sizes > 0, sizes, 1.0), None)


def signed_fit(signed: Signed, names: Sequence[str]) -> Fit:
    """Rank the data among random signs of rows or blocks."""
    data = signed.standardised()
    unit = float(np.median(pdist(data.rows[signed.rng.permutation(len(data))[:MEDIAN_ROWS]])))
    members = list(dict.fromkeys(member for some in SIGN_CLASSES for member in some.members))
    kernels = [(member.kernel(unit), member.gammas) for member in members]
    values = dict(zip(members, signed_values(data, kernels, signed.starts, signed.signs, signed.rng), strict=True))  # type: ignore[arg-type]
    found = []
    for some in SIGN_CLASSES:
        listed = [(member.kernel(unit), gamma) for member in some.members for gamma in member.gammas]
        found.append(_evidence_of(some, listed, np.concatenate([values[member] for member in some.members])))
    return _concluded(found, signed.columns(names), SIGNS)


def median_fit(signed: Signed, names: Sequence[str]) -> Fit:
    """Rank the KSD of the inverse multiquadric at the median distance among random signs."""
    rows = signed.data.rows
    kernel = SteinKernel("imq", float(np.median(pdist(rows[signed.rng.permutation(len(rows))[:MEDIAN_ROWS]]))))
    return _plain_fit(signed, names, [kernel])


def ksdagg_bandwidths(rows: Array, count: int = KSDAGG_COUNT) -> Array:
    """Return the authors' bandwidths: from 1 to the largest distance of the first 500 rows (at least 2), over the columns."""
    largest = max(float(pdist(rows[:500]).max()), 2.0)
    return np.asarray(largest ** (np.arange(count) / (count - 1)) / rows.shape[1])


def ksdagg_fit(signed: Signed, names: Sequence[str], alpha: float) -> Fit:
    """Aggregate the KSD of ten inverse multiquadrics (Schrab, Guedj, Gretton 2022)."""
    kernels = [SteinKernel("imq", float(b)) for b in ksdagg_bandwidths(signed.data.rows)]
    return _plain_fit(signed, names, kernels, alpha)


def _plain_fit(signed: Signed, names: Sequence[str], kernels: Sequence[SteinKernel], alpha: float | None = None) -> Fit:
    plain, n = [(kernel, (inf,)) for kernel in kernels], len(signed.data)
    if n > MOST_ROWS:
        rule = "This method takes all pairs, of at most {most:,}. Got {rows:,} rows; use method='cp-stein', or fewer rows."
        raise InputError(rule, most=MOST_ROWS, rows=n)
    values = np.concatenate(signed_values(signed.data, plain, signed.starts, signed.signs, signed.rng, pair_rows=n))
    values /= n * (n - 1)
    tolerance = TIE * np.abs(values).max(axis=1)
    if alpha is None:
        ranking = Ranking.of(values[0], tolerance=float(tolerance[0]), exhaustive=False)
        decision, first = None, np.array([ranking.pvalue])
    else:
        weights = bandwidth_weights("uniform", len(kernels))
        rejected, _ = aggregate(values, tolerance, weights, alpha, (values.shape[1] - 1) // 2, 50)
        combined, first = combine(values, tolerance, weights)
        ranking, decision = Ranking.of(-np.log(combined), tolerance=1e-12, exhaustive=False), bool(rejected.any())
    classes = [
        FitClass("single test", float(-np.log(p)), float(-np.log(p)), 0.0, kernel.base, kernel.bandwidth, None, float(value))
        for kernel, value, p in zip(kernels, values[:, 0], first, strict=True)
    ]
    ordered = sorted(classes, key=lambda of_class: -of_class.evidence)
    return Fit(ranking, tuple(ordered), signed.columns(names), SIGNS, decision)
