"""How power grows with the number of rows: a law with two constants, and what a pilot says about them.

The law
-------
With a fixed kernel of eigenvalues l_i and samples of n rows each that differ by t_i along its eigenfunctions, n MMD2 is about
sum_i l_i [2 (Z_i^2 - 1) + 2 sqrt(2 n) t_i Z_i + n t_i^2] with independent normal Z_i (Gretton et al. 2012). Over its standard
deviation under the null it has

    mean a n,  variance 1 + b n,  a = sum l t^2 / (2 sqrt(2 sum l^2)),  b = sum l^2 t^2 / sum l^2,

so 0 <= b <= sqrt(8) a, while the threshold stays where it is: MMD2 is constant, its threshold falls like 1/n. Hence

    power(n) = Phi((a n - z) / sqrt(1 + c a n)),  power(0) = alpha,  c = b / a between 0 and sqrt(8).

Selected kernels, and halves that are split off, change the constants rather than the shape.

The pilot
---------
Rows drawn from a pilot of N are a sample of the population, so rejections among them are unbiased for power; but all draws share
the pilot. Given it, a draw of n rows has mean a' n with a' = a + noise of variance (1 + b N) / N^2, and the variance
1 - (n/N)^2 + b n (1 - n/N): nothing is left to chance at n = N. The posterior of (a, c), flat in both, carries that uncertainty,
by far the largest, and the noise of finitely many draws.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cpmmd.core.arrays import Array

LARGEST_RATIO = np.sqrt(8)
LEVEL = 0.9  # of the intervals
LEAST_VARIANCE = 0.02  # of a draw of all rows: the relabelings are still random
TINY = 1e-9  # keeps a single surprise from ruling anything out


@dataclass(frozen=True)
class Draws:
    """Rejections among repeated draws of ``size`` rows of each sample.

    Attributes
    ----------
    size : int
        Rows of each sample.
    rejections, repetitions : int
        Draws that rejected, and all draws.
    """

    size: int
    rejections: int
    repetitions: int


@dataclass(frozen=True)
class Range:
    """An estimate between two bounds that hold it with probability 0.9.

    Attributes
    ----------
    estimate : float
        The median of the posterior.
    low, high : float
        The bounds.
    """

    estimate: float
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """Posterior of the law's constants: a grid of (a, c) and its weights.

    Attributes
    ----------
    a, c : array
        The constants at each point of the grid.
    weight : array
        Probability of each point.
    z : float
        The normal quantile of the level: power(0) = alpha.
    """

    a: Array
    c: Array
    weight: Array
    z: float

    def power(self, size: float) -> Range:
        """Return the power at so many rows of each sample.

        Parameters
        ----------
        size : float
            Rows of each sample.

        Returns
        -------
        Range
            The power, with bounds.
        """
        return self._range(_power(self.a, self.c, size, self.z))

    def rows_for(self, power: float) -> Range:
        """Return the rows of each sample that reach a power.

        Parameters
        ----------
        power : float
            The power, between 0 and 1.

        Returns
        -------
        Range
            The rows, with bounds; infinite where no number reaches it.
        """
        from scipy.special import ndtri

        target = float(ndtri(power))
        half = self.z + target**2 * self.c / 2  # a n - z = target sqrt(1 + c a n) is quadratic in a n
        root = np.sqrt(np.maximum(half**2 - self.z**2 + target**2, 0.0))
        needed = half + root if target >= 0 else half - root
        with np.errstate(divide="ignore"):
            return self._range(np.maximum(needed, 0.0) / self.a)

    @cached_property
    def _flat_weight(self) -> Array:
        return self.weight.ravel()

    def _range(self, values: Array) -> Range:
        order = np.argsort(values, axis=None)
        ranked, mass = values.ravel()[order], np.cumsum(self._flat_weight[order])
        low, middle, high = (
            ranked[min(int(np.searchsorted(mass, q)), len(ranked) - 1)] for q in ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)
        )
        return Range(float(middle), float(low), float(high))


def fit_law(draws: Sequence[Draws], *, pilot: int, alpha: float) -> PowerLaw:
    """Return what draws from a pilot of ``pilot`` rows of each sample say about the law.

    Examples
    --------
    >>> seen = [Draws(25, 12, 100), Draws(50, 20, 100), Draws(100, 45, 100)]
    >>> law = fit_law(seen, pilot=1000, alpha=0.05)
    >>> bool(0.6 < law.power(200).estimate < 0.9)
    True
    """
    from scipy.special import ndtri

    z = -float(ndtri(alpha))
    # In units of a N. The pilot's own mean lies within a few deviations of the true one; spacing grows with the value.
    true = np.concatenate([np.linspace(0, 10, 101), np.geomspace(10.1, 4.0 * max(pilot, 8), 100)])
    seen = np.concatenate([np.linspace(-5, 10, 151), np.geomspace(10.1, 8.0 * max(pilot, 8), 150)])
    c = np.linspace(0, LARGEST_RATIO, 9)
    likelihood = _likelihood(draws, seen[:, None] / pilot, c, z, pilot)
    spread = np.sqrt(1 + true[:, None, None] * c[None, :, None])
    link = np.exp(-0.5 * ((seen - true[:, None, None]) / spread) ** 2) / spread * np.gradient(seen)
    # Flat in a up to 10 deviations of a pilot, flat in log a beyond, where every draw rejects.
    prior = np.gradient(true) / np.maximum(true, 10.0)
    weight = np.einsum("acs,sc->ac", link, likelihood) * prior[:, None]
    a, ratio = np.broadcast_arrays((true / pilot)[:, None], c)
    return PowerLaw(a, ratio, weight / weight.sum(), z)


def _power(a: Array, c: Array, size: float, z: float) -> Array:
    from scipy.special import ndtr

    return np.asarray(ndtr((a * size - z) / np.sqrt(1 + c * a * size)))


def _likelihood(draws: Sequence[Draws], a: Array, c: Array, z: float, pilot: int) -> Array:
    """Return the probability of the draws for each mean of the pilot and each ratio, up to a factor."""
    from scipy.special import log_ndtr

    total = np.zeros(np.broadcast_shapes(a.shape, c.shape))
    for seen in draws:
        share = min(seen.size / pilot, 1.0)
        variance = 1 - share**2 + c * np.maximum(a, 0) * seen.size * (1 - share)
        score = (a * seen.size - z) / np.sqrt(np.maximum(variance, LEAST_VARIANCE))
        yes, no = (np.logaddexp(log_ndtr(s), np.log(TINY)) for s in (score, -score))
        total += seen.rejections * yes + (seen.repetitions - seen.rejections) * no
    return np.asarray(np.exp(total - total.max()))
