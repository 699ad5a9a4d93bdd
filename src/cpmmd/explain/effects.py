"""How large a column's difference is: an estimate, and an interval from the influence of each value."""

from __future__ import annotations

import math
from collections.abc import Callable

import numpy as np
from scipy.special import ndtri

from cpmmd.explain.differences import ColumnEffect, Unit
from cpmmd.statistics.samples import LARGE, ROUNDING, Sample

REACH = float(ndtri(0.975))
ALPHA = 0.05


def _from_origin(effect: Callable[[Sample, Sample], ColumnEffect | None], x: Sample, y: Sample) -> ColumnEffect | None:
    """Return the effect on values less the first of them; None where it is 0 already, so that all deviations are rounding.

    Deviations of 1e-12 of the mean may be rounding, or small differences of large numbers. Nearby numbers have exact differences,
    so that equal ones then have none.
    """
    origin = float(x.values[0])
    return effect(x.less(origin), y.less(origin)) if origin != 0 else None


def mean_effect(x: Sample, y: Sample) -> ColumnEffect | None:
    """Return the difference of means in standard deviations within samples or strata; None where they are 0."""
    if x.is_large or y.is_large:
        return mean_effect(x.times(1 / LARGE), y.times(1 / LARGE))
    mean_x, mean_y, total = x.mean(x.values), y.mean(y.values), x.size + y.size
    within = math.sqrt((x.sum_of_squares + y.sum_of_squares) / total)
    if within <= ROUNDING * max(abs(mean_x), abs(mean_y)):
        return _from_origin(mean_effect, x, y)
    value = (mean_y - mean_x) / within
    influences = []
    for sample, mean, sign in ((x, mean_x, -1.0), (y, mean_y, 1.0)):
        z, squares = (sample.values - mean) / within, (sample.deviations / within) ** 2
        # delta method: a row moves the mean, and by its square the common deviation
        influences.append(sign * z - value / 2 * sample.size / total * (squares - sample.mean(squares)))
    error = math.sqrt(x.variance(influences[0], (y, influences[1])))
    return ColumnEffect(value, value - REACH * error, value + REACH * error, Unit.DEVIATIONS)


def days_effect(x: Sample, y: Sample) -> ColumnEffect:
    """Return the difference of mean dates in days."""
    mean_x, mean_y = x.mean(x.values), y.mean(y.values)
    value, reach = mean_y - mean_x, REACH * math.sqrt(x.variance(mean_x - x.values, (y, y.values - mean_y)))
    return ColumnEffect(value, value - reach, value + reach, Unit.DAYS)


def sd_effect(x: Sample, y: Sample) -> ColumnEffect | None:
    """Return the ratio of standard deviations, its interval on the logarithm; None where one is zero."""
    if x.is_large or y.is_large:
        return sd_effect(x.times(1 / LARGE), y.times(1 / LARGE))
    deviations, influences = [], []
    for sample, sign in ((x, -1.0), (y, 1.0)):
        mean, sd = sample.moments
        if sd <= ROUNDING * abs(mean):
            return _from_origin(sd_effect, x, y)
        deviations.append(sd)
        influences.append(sign * sample.excess(sd) / 2)
    ratio, factor = deviations[1] / deviations[0], math.exp(REACH * math.sqrt(x.variance(influences[0], (y, influences[1]))))
    return ColumnEffect(ratio, ratio / factor, ratio * factor, Unit.RATIO)


def share_effect(x: Sample, y: Sample, what: str) -> ColumnEffect:
    """Return the difference of shares with Newcombe's interval (Wilson's of both samples, combined).

    Values are marks, 1 or 0. Dependent rows of a unit count as their effective number of independent rows. The intervals of pairs
    are combined by the correlation of their shares (Newcombe's method 10).
    """
    (p, p_low, p_high), (q, q_low, q_high) = (_wilson(sample) for sample in (x, y))
    together = _correlation(x, y)
    low = (q - p) - _combined(q - q_low, p_high - p, together)
    high = (q - p) + _combined(q_high - q, p - p_low, together)
    return ColumnEffect(q - p, max(low, -1.0), min(high, 1.0), Unit.SHARE, what)


def _combined(a: float, b: float, correlation: float) -> float:
    return math.hypot(a, b) if correlation == 0 else math.sqrt(max(a * a + b * b - 2 * correlation * a * b, 0.0))


def _correlation(x: Sample, y: Sample) -> float:
    """Return the correlation of the samples' means: 0 where no stratum has a single unit of either."""
    off = [sample.values - sample.mean(sample.values) for sample in (x, y)]
    own = [sample.variance(numbers) for sample, numbers in zip((x, y), off, strict=True)]
    if min(own) <= 0:
        return 0.0
    return min(max((sum(own) - x.variance(-off[0], (y, off[1]))) / (2 * math.sqrt(own[0] * own[1])), -1.0), 1.0)


def _wilson(sample: Sample) -> tuple[float, float, float]:
    share, size = sample.mean(sample.values), sample.effective_size(sample.values)
    centre = (share + REACH**2 / (2 * size)) / (1 + REACH**2 / size)
    reach = REACH / (1 + REACH**2 / size) * math.sqrt(share * (1 - share) / size + REACH**2 / (4 * size**2))
    return share, min(centre - reach, share), max(centre + reach, share)


def distribution_effect(x: Sample, y: Sample) -> ColumnEffect:
    """Return the largest difference of the distribution functions, with the interval of Dvoretzky, Kiefer and Wolfowitz.

    Both functions are within sqrt(ln(2 / .025) / 2 size) of those of the populations, together with 95%.
    """
    distance, at = largest_difference(x, y)
    sizes = [sample.effective_size((sample.values <= at).astype(np.float64)) for sample in (x, y)]
    reach = sum(math.sqrt(math.log(4 / ALPHA) / (2 * size)) for size in sizes)
    return ColumnEffect(distance, max(distance - reach, 0.0), min(distance + reach, 1.0), Unit.SHARE_AT_MOST)


def largest_difference(x: Sample, y: Sample) -> tuple[float, float]:
    """Return the largest difference of two distribution functions, and the value at which it is."""
    at = np.concatenate([np.sort(sample.values) for sample in (x, y)])
    differences = np.abs(x.distribution(at) - y.distribution(at))
    best = int(np.argmax(differences))
    return float(differences[best]), float(at[best])
