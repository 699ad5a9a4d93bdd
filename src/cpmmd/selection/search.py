"""Selection on the training half: which member of a family maximises a criterion, and C1-hat, the constant of its penalty."""

from __future__ import annotations

import math
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
from cpmmd.selection.criteria import ComplexityPenalized, Criterion, LargestRatio, Plain
from cpmmd.selection.values import Ascent, BandwidthSearch, Calibration, Selection
from cpmmd.statistics import mmd

# Bandwidths searched, as multiples of the median distance. Down to 1/64: a two-scale mixture needs 1/30. Up to 4: where no
# bandwidth is certified the penalised maximum sits at the upper end, and a kernel of 4 medians still sees means and scales
# (docs/design.md).
RANGE = (1 / 64, 4.0)
SCAN_POINTS = 17  # a ratio of sqrt(2) between neighbours
LOG_TOLERANCE = 1e-3  # relative precision of the bandwidth
MAX_ROUNDS = 8  # of the self-consistent calibration
SETTLED = 0.02  # relative change of C1 that ends it


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
        """Return (MMD2, complexity) at the maximiser of each permutation (rows of ``labels``)."""


def check_family(family: object, ascent: Ascent | None) -> None:
    """Refuse what is no family, and training options for a family that is not trained."""
    if not isinstance(family, (ScaleFamily, TrainedFamily)):
        rule = "must be a kernel family such as Bandwidth(), Polynomial(degree=4) or Deep()"
        raise validation.wrong("family", rule, family)
    if ascent is not None and not isinstance(family, TrainedFamily):
        raise InputError(
            "{parameter} applies to trained kernels only. {family!r} is searched over a grid; leave the parameter out.",
            parameter="ascent",
            family=family,
        )


def selector_for(family: ScaleFamily | TrainedFamily, ascent: Ascent | None = None) -> Selector:
    """Return the selector of a kernel family; ``ascent`` is for families that are trained."""
    if isinstance(family, ScaleFamily):
        return ScalarSelector(family)
    try:
        from cpmmd.selection.ascent import AscentSelector
    except ImportError as error:
        raise missing_extra(f"Training {type(family).__name__}", "torch", "deep") from error
    return AscentSelector(family, ascent or Ascent())


@dataclass(frozen=True)
class ScalarSelector:
    """Selects the bandwidth of a family: a scan finds the hill, for criteria are not unimodal, and bounded Brent its top."""

    family: ScaleFamily
    calibration_note: str = ""
    matrices: int = 4

    def select(self, train: PreparedPool, criterion: Criterion, rng: np.random.Generator) -> Selection:  # noqa: ARG002
        """Return the bandwidth that maximises ``criterion`` on the training half."""
        landscape = _Landscape(self.family, train)
        path = landscape.climb(landscape.mmd2(train.labels[None])[:, 0], train.labels, criterion)
        best = max(path, key=lambda point: point.criterion)
        looked_at = ("bandwidth", "criterion", "mmd2", "complexity")
        return Selection(
            kernel=ScaledKernel(self.family, best.bandwidth, landscape.lift_lipschitz),
            criterion=best.criterion,
            mmd2=best.mmd2,
            variance=best.variance,
            complexity=best.complexity,
            path=BandwidthSearch(*(np.array([getattr(point, name) for point in path]) for name in looked_at)),
            max_complexity=float(max(point.complexity for point in path)),
            c1=criterion.constant,
        )

    def maxima(self, train: PreparedPool, labels: Labels, criterion: Criterion, rng: np.random.Generator) -> tuple[Array, Array]:  # noqa: ARG002
        """Return (MMD2, complexity) at the maximiser of each permutation (rows of ``labels``)."""
        landscape = _Landscape(self.family, train)
        paths = (
            landscape.climb(values, labeling, criterion)
            for values, labeling in zip(landscape.mmd2(labels).T, labels, strict=True)
        )
        best = [max(path, key=lambda point: point.criterion) for path in paths]
        return np.array([point.mmd2 for point in best]), np.array([point.complexity for point in best])


@dataclass(frozen=True)
class _Point:
    """One bandwidth on one labeling."""

    bandwidth: float
    mmd2: float
    variance: float | None
    complexity: float
    criterion: float


class _Landscape:
    """Criterion values over bandwidth for one pool; the distances are computed once."""

    def __init__(self, family: ScaleFamily, train: PreparedPool) -> None:
        self.base = family.base_kernel
        self.exponents = family.exponents(train.matrix)
        self.buffer = np.empty_like(self.exponents)
        self.lift_lipschitz, self.data_norm = family.lift_lipschitz(train.matrix), train.data_norm
        self.scan = median_distance(self.exponents, self.base.power) * np.geomspace(*RANGE, SCAN_POINTS)

    def gram(self, bandwidth: float) -> Array:
        return self.base.of_exponent(self.exponents, bandwidth, out=self.buffer)

    def mmd2(self, labels: Labels) -> Array:
        """Return the squared MMD at every scanned bandwidth (rows) of every labeling (rows of ``labels``)."""
        return np.array([mmd.labelled_mmd2(self.gram(bandwidth), labels) for bandwidth in self.scan])

    def climb(self, scanned: Array, labels: Labels, criterion: Criterion) -> list[_Point]:
        """Refine the best scanned point by bounded Brent between its neighbours; return every point looked at, ascending."""
        from scipy.optimize import minimize_scalar  # a tenth of the package's start-up, and cp-full does without

        points = [self.judge(b, float(value), labels, criterion) for b, value in zip(self.scan, scanned, strict=True)]
        best = int(np.argmax([point.criterion for point in points]))
        low, high = self.scan[max(best - 1, 0)], self.scan[min(best + 1, len(points) - 1)]

        def objective(log_bandwidth: float) -> float:
            bandwidth = float(np.exp(log_bandwidth))
            value = float(mmd.labelled_mmd2(self.gram(bandwidth), labels[None])[0])
            points.append(self.judge(bandwidth, value, labels, criterion))
            return -points[-1].criterion

        options = {"xatol": LOG_TOLERANCE, "maxiter": 60}
        minimize_scalar(objective, bounds=(np.log(low), np.log(high)), method="bounded", options=options)
        return sorted(points, key=lambda point: point.bandwidth)

    def judge(self, bandwidth: float, mmd2: float, labels: Labels, criterion: Criterion) -> _Point:
        variance = None
        if criterion.needs_variance:
            K, x, y = self.gram(bandwidth), np.flatnonzero(labels), np.flatnonzero(~labels)
            variance = mmd.variance(K[np.ix_(x, x)], K[np.ix_(y, y)], K[np.ix_(x, y)])
        complexity = self.lift_lipschitz / bandwidth * self.data_norm
        return _Point(bandwidth, mmd2, variance, complexity, float(criterion.value(mmd2, variance, complexity)))


def calibrate(
    selector: Selector, train: PreparedPool, criterion: ComplexityPenalized, *, alpha: float, rng: np.random.Generator
) -> Calibration:
    """Return C1-hat: how large MMD2 / G gets under null permutations of the training half (App. Calibration procedure).

    Each permuted pool is split back at m:n, the plain MMD maximised, and the ratio MMD2 / G recorded. C1-hat is the order
    statistic ceil((1 - alpha)(n_cal + 1)), the maximum when that exceeds n_cal. It is cut off at 0: a negative constant
    would reward complexity. ``criterion.calibration`` names the variants.
    """
    label_stream, search_stream = rng.spawn(2)
    labels = draw_labels(train.size, train.m, criterion.n_calibration, label_stream)
    order = quantile_order(criterion.n_calibration, alpha)

    def ratios_at_maximum(maximised: Criterion) -> Array:
        mmd2, complexity = selector.maxima(train, labels, maximised, search_stream)
        return np.divide(mmd2, complexity, out=np.zeros_like(mmd2), where=complexity > 0)

    def quantile(ratios: Array) -> float:
        return max(float(np.sort(ratios)[order - 1]), 0.0)

    ratios = ratios_at_maximum(LargestRatio() if criterion.calibration == "ratio" else Plain())
    c1, how = quantile(ratios), ""
    if criterion.calibration == "expectation":
        c1, how = max(float(ratios.mean()), 0.0), "C1 is the mean of the null ratios, not a quantile"
    elif criterion.calibration == "ratio":
        how = "C1 from the largest null ratios"
    elif criterion.calibration == "self-consistent":
        rounds, settled = 0, False
        while not settled and rounds < MAX_ROUNDS:
            ratios, previous = ratios_at_maximum(criterion.calibrated(c1)), c1
            c1 = quantile(ratios)
            rounds, settled = rounds + 1, abs(c1 - previous) <= SETTLED * previous
        how = f"self-consistent C1, {'settled' if settled else 'not settled'} after {rounds} rounds"
    note = "; ".join(filter(None, [selector.calibration_note, how]))
    return Calibration(c1=c1, ratios=ratios, alpha=alpha, order=order, note=note)


def quantile_order(n_calibration: int, alpha: float) -> int:
    """Return which order statistic is the (1 - alpha) quantile, counted from 1, at most ``n_calibration``."""
    # The tiny subtraction keeps ceil(0.95 * 20) at 19 although 0.95 * 20 rounds up.
    return min(math.ceil((1 - alpha) * (n_calibration + 1) - 1e-9), n_calibration)
