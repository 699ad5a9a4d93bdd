"""Bandwidth search: a coarse scan over the range, then bounded Brent on log bandwidth inside the best bracket.

The criterion is not unimodal in bandwidth, so the scan finds the hill and Brent its top.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array, Labels
from cpmmd.data.prepared import PreparedPool
from cpmmd.kernels.scaled import ScaledKernel, ScaleFamily, median_distance
from cpmmd.permutation import mmd
from cpmmd.selection.criteria import Criterion
from cpmmd.selection.values import BandwidthPath, Selection

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
