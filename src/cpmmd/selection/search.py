"""C1-hat: how large MMD2 / G gets under the null, by permuting the training half (App. Calibration procedure)."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Labels
from cpmmd.core.installation import missing_extra
from cpmmd.data.preparation import PreparedPool
from cpmmd.draws.labels import draw_labels
from cpmmd.errors import InputError
from cpmmd.kernels.base import TrainedFamily
from cpmmd.kernels.scaled import ScaledKernel, ScaleFamily, median_distance
from cpmmd.selection.criteria import ComplexityPenalized, Criterion, Plain
from cpmmd.selection.values import Ascent, BandwidthPath, Calibration, Selection
from cpmmd.statistics import mmd

# Bandwidth search: a coarse scan over the range, then bounded Brent on log bandwidth inside the best bracket.
#
# The criterion is not unimodal in bandwidth, so the scan finds the hill and Brent its top.


# Multiples of the median distance. Down to 1/64: a two-scale mixture needs 1/30. Up to 4: where no bandwidth is certified the
# penalised maximum sits at the upper end, and a kernel of 4 medians still sees means and scales (docs/design.md).
RANGE = (1 / 64, 4.0)
SCAN_POINTS = 17  # a ratio of sqrt(2) between neighbours
LOG_TOLERANCE = 1e-3  # relative precision of the bandwidth


@dataclass(frozen=True)
class Evaluation:
    """One bandwidth on one labeling."""

    bandwidth: float
    mmd2: float
    variance: float | None
    complexity: float
    criterion: float


class _Landscape:
    """Criterion values over bandwidth for one pool; the distances are computed once."""

    def __init__(self, family: ScaleFamily, train: PreparedPool) -> None:
        self.family = family
        self.exponents = family.exponents(train.matrix)
        self.lift_lipschitz = family.lift_lipschitz(train.matrix)
        self.data_norm = train.data_norm
        self.buffer = np.empty_like(self.exponents)
        self.scan = search_grid(self.exponents, family.base_kernel.power)

    def gram(self, bandwidth: float) -> Array:
        return self.family.base_kernel.of_exponent(self.exponents, bandwidth, out=self.buffer)

    def complexity(self, bandwidth: float) -> float:
        return self.lift_lipschitz / bandwidth * self.data_norm

    def mmd2(self, bandwidth: float, labels: Labels) -> Array:
        """Squared MMD of every labeling (rows of ``labels``) at one bandwidth."""
        return mmd.labelled_mmd2(self.gram(bandwidth), labels)

    def variance(self, bandwidth: float, labels: Labels) -> float:
        K = self.gram(bandwidth)
        x, y = np.flatnonzero(labels), np.flatnonzero(~labels)
        return mmd.variance(K[np.ix_(x, x)], K[np.ix_(y, y)], K[np.ix_(x, y)])

    def evaluate(self, bandwidth: float, labels: Labels, criterion: Criterion) -> Evaluation:
        mmd2 = float(self.mmd2(bandwidth, labels[None])[0])
        return self.judge(bandwidth, mmd2, labels, criterion)

    def judge(self, bandwidth: float, mmd2: float, labels: Labels, criterion: Criterion) -> Evaluation:
        variance = self.variance(bandwidth, labels) if criterion.needs_variance else None
        complexity = self.complexity(bandwidth)
        value = float(criterion.value(mmd2, variance, complexity))
        return Evaluation(bandwidth, mmd2, variance, complexity, value)


@dataclass(frozen=True)
class ScalarSelector:
    """Selects the bandwidth of a :class:`~cpmmd.kernels.scaled.ScaleFamily`."""

    family: ScaleFamily
    calibration_note: str = ""
    matrices: int = 4

    def select(self, train: PreparedPool, criterion: Criterion, rng: np.random.Generator) -> Selection:  # noqa: ARG002
        """Return the bandwidth that maximises ``criterion`` on the training half."""
        landscape = _Landscape(self.family, train)
        labels = train.labels
        scanned = [landscape.evaluate(bandwidth, labels, criterion) for bandwidth in landscape.scan]
        path = climb(scanned, lambda bandwidth: landscape.evaluate(bandwidth, labels, criterion))
        return _selection(self.family, landscape.lift_lipschitz, path, criterion)

    def maxima(
        self,
        train: PreparedPool,
        labels: Labels,
        criterion: Criterion,
        rng: np.random.Generator,  # noqa: ARG002
    ) -> tuple[Array, Array]:
        """Return (MMD2, complexity) at the maximiser of each relabeling (rows of ``labels``)."""
        landscape = _Landscape(self.family, train)
        scan = np.array([landscape.mmd2(bandwidth, labels) for bandwidth in landscape.scan])
        best = []
        for row, scanned in zip(labels, scan.T, strict=True):
            points = [landscape.judge(s, v, row, criterion) for s, v in zip(landscape.scan, scanned, strict=True)]
            path = climb(points, lambda bandwidth, row=row: landscape.evaluate(bandwidth, row, criterion))  # type: ignore[misc]
            best.append(max(path, key=lambda point: point.criterion))
        return np.array([b.mmd2 for b in best]), np.array([b.complexity for b in best])


def search_grid(exponents: Array, power: int) -> Array:
    """Return the scan over the search range: multiples of the median distance of the pool."""
    median = median_distance(exponents, power)
    return np.asarray(median * np.geomspace(*RANGE, SCAN_POINTS))


def climb(scanned: list[Evaluation], evaluate: Callable[[float], Evaluation]) -> list[Evaluation]:
    """Refine the best scanned point by bounded Brent between its neighbours; give every point looked at."""
    from scipy.optimize import minimize_scalar  # a tenth of the package's start-up, and cp-full does without

    best = int(np.argmax([point.criterion for point in scanned]))
    low, high = scanned[max(best - 1, 0)].bandwidth, scanned[min(best + 1, len(scanned) - 1)].bandwidth
    visited = list(scanned)

    def objective(log_bandwidth: float) -> float:
        visited.append(evaluate(float(np.exp(log_bandwidth))))
        return -visited[-1].criterion

    minimize_scalar(
        objective,
        bounds=(np.log(low), np.log(high)),
        method="bounded",
        options={"xatol": LOG_TOLERANCE, "maxiter": 60},
    )
    return sorted(visited, key=lambda point: point.bandwidth)


def _selection(family: ScaleFamily, lift_lipschitz: float, path: list[Evaluation], criterion: Criterion) -> Selection:
    best = max(path, key=lambda point: point.criterion)
    columns = (np.array([getattr(point, name) for point in path]) for name in ("bandwidth", "criterion", "mmd2", "complexity"))
    return Selection(
        kernel=ScaledKernel(family, best.bandwidth, lift_lipschitz),
        criterion=best.criterion,
        mmd2=best.mmd2,
        variance=best.variance,
        complexity=best.complexity,
        path=BandwidthPath(*columns),
        max_complexity=float(max(point.complexity for point in path)),
        c1=criterion.constant,
    )


# Selectors: which member of a family maximises a criterion on the training half.


class Selector(Protocol):
    """Maximises any criterion over one family."""

    @property
    def matrices(self) -> int:
        """How many kernel matrices of the training half it holds at once, as measured."""

    @property
    def calibration_note(self) -> str:
        """What calibration does differently from selection, if anything."""

    def select(self, train: PreparedPool, criterion: Criterion, rng: np.random.Generator) -> Selection:
        """Return the kernel that maximises ``criterion`` on the training half."""

    def maxima(self, train: PreparedPool, labels: Labels, criterion: Criterion, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return (MMD2, complexity) at the maximiser of each relabeling (rows of ``labels``)."""


def selector_for(family: ScaleFamily | TrainedFamily, ascent: Ascent | None = None) -> Selector:
    """Return the selector of a kernel family; ``ascent`` is for families that are trained."""
    if isinstance(family, ScaleFamily):
        return ScalarSelector(family)
    try:
        from cpmmd.selection.ascent import AscentSelector
    except ImportError as error:
        raise missing_extra(f"Training {type(family).__name__}", "torch", "deep") from error
    return AscentSelector(family, ascent or Ascent())


def check_family(family: object, ascent: Ascent | None) -> None:
    """Refuse what is no family, and training options for a family that is not trained."""
    if not isinstance(family, (ScaleFamily, TrainedFamily)):
        rule = "must be a kernel family such as Bandwidth(), Polynomial(degree=4) or Deep()"
        raise validation.wrong("family", rule, family)
    if ascent is not None and not isinstance(family, TrainedFamily):
        raise InputError(
            "{parameter} is for trained kernels; {family!r} is searched, not trained. Leave it out.",
            parameter="ascent",
            family=family,
        )


MAX_ROUNDS = 8  # of the fixed point
SETTLED = 0.02  # relative change of C1 that ends it


def calibrate(
    selector: Selector, train: PreparedPool, criterion: ComplexityPenalized, *, alpha: float, rng: np.random.Generator
) -> Calibration:
    """Return C1-hat from null permutations of the training half.

    Each permuted pool is split back at m:n, the plain MMD maximised, and the ratio MMD2 / G recorded. C1-hat is the order
    statistic ceil((1 - alpha)(n_cal + 1)), the maximum when that exceeds n_cal. It is cut off at 0: a negative constant
    would reward complexity. ``calibration="self-consistent"`` maximises J_CP itself instead and repeats until C1 settles.
    """
    label_stream, search_stream = rng.spawn(2)
    labels = draw_labels(train.size, train.m, criterion.n_calibration, label_stream)
    order = quantile_order(criterion.n_calibration, alpha)
    c1, ratios = _quantile(selector, train, labels, Plain(), order, search_stream)
    note = selector.calibration_note
    if criterion.calibration == "self-consistent":
        rounds, settled = 0, False
        while not settled and rounds < MAX_ROUNDS:
            previous, (c1, ratios) = c1, _quantile(selector, train, labels, criterion.calibrated(c1), order, search_stream)
            rounds, settled = rounds + 1, abs(c1 - previous) <= SETTLED * previous
        ending = f"settled after {rounds}" if settled else f"not settled after {rounds}"
        note = "; ".join(filter(None, [note, f"self-consistent C1, {ending} rounds"]))
    return Calibration(c1=c1, ratios=ratios, alpha=alpha, order=order, note=note)


def _quantile(
    selector: Selector, train: PreparedPool, labels: Labels, criterion: Criterion, order: int, rng: np.random.Generator
) -> tuple[float, Array]:
    mmd2, complexity = selector.maxima(train, labels, criterion, rng)
    ratios = np.divide(mmd2, complexity, out=np.zeros_like(mmd2), where=complexity > 0)
    return max(float(np.sort(ratios)[order - 1]), 0.0), ratios


def quantile_order(n_calibration: int, alpha: float) -> int:
    """Return which order statistic is the (1 - alpha) quantile, counted from 1, at most ``n_calibration``."""
    # The tiny subtraction keeps ceil(0.95 * 20) at 19 although 0.95 * 20 rounds up.
    return min(math.ceil((1 - alpha) * (n_calibration + 1) - 1e-9), n_calibration)
