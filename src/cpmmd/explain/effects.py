"""How large a column's difference is: an estimate, and an interval from the spread of its influence over the units."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtri

from cpmmd.core.arrays import Array, Rows
from cpmmd.explain.differences import ColumnEffect

REACH = float(ndtri(0.975))
ALPHA = 0.05


@dataclass(frozen=True, eq=False)
class Sample:
    """The values of one sample that are there, and the unit of each.

    Rows of one unit may hang together, so that variances are those of sums over units.
    """

    values: Array
    unit: Rows

    @property
    def size(self) -> int:
        """Number of values."""
        return len(self.values)

    @property
    def moments(self) -> tuple[float, float]:
        """Mean and standard deviation."""
        return float(self.values.mean()), float(self.values.std())

    def variance_of_mean(self, influence: Array) -> float:
        """Return the variance of the mean of numbers with mean zero, one for each value."""
        sums = np.bincount(self.unit - self.unit.min(), weights=influence)
        units = len(np.unique(self.unit))
        return float(sums @ sums) / self.size**2 * units / max(units - 1, 1)

    def effective_size(self, marks: Array) -> float:
        """Return how many independent rows would know a share as well; no more than there are."""
        share = float(marks.mean())
        variance = self.variance_of_mean(marks - share)
        return min(self.size, share * (1 - share) / variance) if variance > 0 else self.size


def mean_effect(x: Sample, y: Sample) -> ColumnEffect | None:
    """Return the difference of means in standard deviations (those within the samples); None where there is no spread."""
    (mean_x, _), (mean_y, _) = x.moments, y.moments
    total = x.size + y.size
    within = math.sqrt((float(np.sum((x.values - mean_x) ** 2)) + float(np.sum((y.values - mean_y) ** 2))) / total)
    if within <= 1e-12 * max(abs(mean_x), abs(mean_y)) or within == 0:
        return None
    value = (mean_y - mean_x) / within
    variance = 0.0
    for sample, mean, sign in ((x, mean_x, -1.0), (y, mean_y, 1.0)):
        z = (sample.values - mean) / within
        # delta method: a row moves the mean, and by its square the common deviation
        influence = sign * z - value / 2 * sample.size / total * (z**2 - np.mean(z**2))
        variance += sample.variance_of_mean(influence)
    error = math.sqrt(variance)
    return ColumnEffect(value, value - REACH * error, value + REACH * error, "standard deviations")


def days_effect(x: Sample, y: Sample) -> ColumnEffect:
    """Return the difference of mean dates in days."""
    means = [one.moments[0] for one in (x, y)]
    variance = sum(one.variance_of_mean(one.values - mean) for one, mean in zip((x, y), means, strict=True))
    value, reach = means[1] - means[0], REACH * math.sqrt(variance)
    return ColumnEffect(value, value - reach, value + reach, "days")


def spread_effect(x: Sample, y: Sample) -> ColumnEffect | None:
    """Return the ratio of standard deviations, its interval on the logarithm; None where one is zero."""
    spreads, variance = [], 0.0
    for sample in (x, y):
        mean, spread = sample.moments
        if spread <= 1e-12 * abs(mean) or spread == 0:
            return None
        spreads.append(spread)
        variance += sample.variance_of_mean((((sample.values - mean) / spread) ** 2 - 1) / 2)
    ratio, factor = spreads[1] / spreads[0], math.exp(REACH * math.sqrt(variance))
    return ColumnEffect(ratio, ratio / factor, ratio * factor, "times the spread")


def share_effect(x: Sample, y: Sample, what: str) -> ColumnEffect:
    """Return the difference of shares with Newcombe's interval (Wilson's of both samples, combined).

    Values are marks, 1 or 0. Rows of a unit that hang together count as the number of independent rows that know as much.
    """
    (p, p_low, p_high), (q, q_low, q_high) = (_wilson(one) for one in (x, y))
    low = (q - p) - math.hypot(q - q_low, p_high - p)
    high = (q - p) + math.hypot(q_high - q, p - p_low)
    return ColumnEffect(q - p, max(low, -1.0), min(high, 1.0), "of the rows", what)


def _wilson(sample: Sample) -> tuple[float, float, float]:
    share, size = float(sample.values.mean()), sample.effective_size(sample.values)
    centre = (share + REACH**2 / (2 * size)) / (1 + REACH**2 / size)
    reach = REACH / (1 + REACH**2 / size) * math.sqrt(share * (1 - share) / size + REACH**2 / (4 * size**2))
    return share, min(centre - reach, share), max(centre + reach, share)


def distribution_effect(x: Sample, y: Sample) -> ColumnEffect:
    """Return the largest difference of the distribution functions, with the interval of Dvoretzky, Kiefer and Wolfowitz.

    Both functions are within sqrt(ln(2 / .025) / 2 size) of those of the populations, together with 95%.
    """
    distance, at = largest_gap(x.values, y.values)
    sizes = [one.effective_size((one.values <= at).astype(np.float64)) for one in (x, y)]
    reach = sum(math.sqrt(math.log(4 / ALPHA) / (2 * size)) for size in sizes)
    return ColumnEffect(distance, max(distance - reach, 0.0), min(distance + reach, 1.0), "of the rows at most")


def largest_gap(x: Array, y: Array) -> tuple[float, float]:
    """Return the largest difference of two distribution functions, and the value at which it is."""
    a, b = np.sort(x), np.sort(y)
    at = np.concatenate([a, b])
    gaps = np.abs(np.searchsorted(a, at, "right") / len(a) - np.searchsorted(b, at, "right") / len(b))
    best = int(np.argmax(gaps))
    return float(gaps[best]), float(at[best])
