"""All columns together: the MMD of one fixed kernel, said as the shift of a normal sample that has the same."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import ndtr

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.equivalence.coordinates import Coordinates
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.scaled import ScaledKernel

MOST_ROWS = 10_000  # of each sample in the statistic: 3e8 kernel values, some seconds
SPECTRUM_ROWS = 300  # of each sample for the noise, whose law depends on the populations and not on how many rows there are
DRAWS = 9_999
FEW = 1e-3  # share of the variance of |e|^2 in eigenvalues that are not drawn one by one: many and small, so normal together
TILE = 2**22  # kernel values at once
STEPS = 60  # bisections: double precision


@dataclass(frozen=True)
class JointEquivalence:
    """How far two samples may be apart in all columns together, to one fixed kernel.

    Attributes
    ----------
    shift : float
        The shift, in standard deviations, at which two normal samples have the same MMD; infinite beyond any.
    low, high : float
        Its interval: each end is crossed with probability alpha at most, in large samples.
    pvalue : float
        Of the test that the shift is at least the margin.
    bandwidth : float
        Of the Gaussian kernel, in standard deviations: the root of the number of columns.
    rows : tuple of int
        Rows of X and Y that were compared.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import equivalence_test
    >>> data = np.random.default_rng(0)
    >>> joint = equivalence_test(data.normal(size=(500, 2)), data.normal(size=(500, 2)), margin=0.4, rng=0).joint
    >>> joint.low, joint.high < 0.4
    (0.0, True)
    """

    shift: float
    low: float
    high: float
    pvalue: float
    bandwidth: float
    rows: tuple[int, int]

    def to_dict(self) -> PlainDict:
        """Return the difference in plain JSON types; what is infinite is None."""
        return plain_dict(vars(self))


def rate_of_shift(shift: float) -> float:
    """Return how often a row of a shifted normal sample is ranked above one of the other, at best: Phi(shift / sqrt(2))."""
    return float(ndtr(shift / math.sqrt(2)))


@dataclass(frozen=True)
class Yardstick:
    """The MMD between N(0, I) and its shift, Gaussian kernel of bandwidth sqrt(d) in d dimensions.

    MMD^2 = 2 (d / (d + 2))^(d/2) (1 - exp(-shift^2 / (2 (d + 2)))).
    """

    d: int

    @property
    def _most(self) -> float:
        return float(2 * (self.d / (self.d + 2)) ** (self.d / 2))

    def mmd(self, shift: float) -> float:
        """Return the MMD of a shift."""
        return math.sqrt(-self._most * math.expm1(-(shift**2) / (2 * (self.d + 2))))

    def shift(self, mmd: float) -> float:
        """Return the shift of an MMD; infinite where no shift is that far."""
        share = mmd**2 / self._most
        return math.inf if share >= 1 else math.sqrt(-2 * (self.d + 2) * math.log1p(-share))


@dataclass(frozen=True, eq=False)
class Noise:
    """Draws of e, the error of the difference of mean embeddings, Gaussian in the limit: along its widest direction u, and |e|^2.

    |theta u + e|^2 = theta^2 + 2 theta <u, e> + |e|^2. Of all differences of one MMD, the one along u gives small statistics
    most often, so a test that allows for it allows for every other (Anderson's inequality gives that it gets harder with theta).
    """

    along: Array
    squared: Array

    @classmethod
    def draw(cls, eigenvalues: Array, rng: np.random.Generator) -> Noise:
        """Draw from the spectrum of the covariance of the noise."""
        left = np.cumsum(np.square(eigenvalues)[::-1])[::-1]  # of the squares, from each eigenvalue on
        cut = max(1, int(np.count_nonzero(left > FEW * left[0])))
        first, rest = eigenvalues[:cut], eigenvalues[cut:]
        normal = rng.standard_normal((DRAWS, len(first)))
        squared = np.square(normal) @ first
        tail = rest.sum() + math.sqrt(2 * np.square(rest).sum()) * rng.standard_normal(DRAWS)
        return cls(normal[:, 0] * math.sqrt(first[0]), squared + np.maximum(tail, 0.0))

    def statistics(self, mmd: float) -> Array:
        """Return the squared MMD between samples whose populations are this far apart."""
        return np.asarray(mmd**2 + 2 * mmd * self.along + self.squared)

    def below(self, observed: float, mmd: float) -> float:
        """Return how often the statistic is as small as observed; the observed one is counted."""
        return float(1 + np.count_nonzero(self.statistics(mmd) <= observed)) / (DRAWS + 1)

    def above(self, observed: float, mmd: float) -> float:
        """Return how often the statistic is as large as observed."""
        return float(1 + np.count_nonzero(self.statistics(mmd) >= observed)) / (DRAWS + 1)

    def interval(self, observed: float, alpha: float) -> tuple[float, float]:
        """Return the smallest and the largest MMD that the observed statistic does not exclude."""
        far = math.sqrt(observed) + math.sqrt(float(self.squared.max()))  # beyond it every draw is larger than observed
        low = 0.0 if self.above(observed, 0.0) > alpha else _cross(lambda mmd: self.above(observed, mmd) > alpha, far)
        high = 0.0 if self.below(observed, 0.0) <= alpha else _cross(lambda mmd: self.below(observed, mmd) <= alpha, far)
        return low, high


def _cross(passed: Callable[[float], bool], far: float) -> float:
    """Return where a condition begins to hold between 0 and ``far``."""
    low, high = 0.0, far
    for _ in range(STEPS):
        middle = (low + high) / 2
        low, high = (low, middle) if passed(middle) else (middle, high)
    return high


def joint_difference(
    coordinates: Coordinates, margin: float, alpha: float, rng: np.random.Generator
) -> tuple[JointEquivalence, float, Array]:
    """Return the joint difference, the squared MMD that was observed, and its draws at the margin."""
    matrix, d = coordinates.standardised()
    kernel, yardstick = ScaledKernel(Bandwidth(), math.sqrt(d)), Yardstick(d)
    drawing, noising = rng.spawn(2)
    sides = [_some(rows, MOST_ROWS, drawing) for rows in (matrix[: coordinates.m], matrix[coordinates.m :])]
    of_x, of_y, between = _sum(kernel, sides[0]), _sum(kernel, sides[1]), _sum(kernel, *sides)
    m, n = map(len, sides)
    observed = max(of_x / m**2 + of_y / n**2 - 2 * between / (m * n), 0.0)  # rounding may take it below
    unbiased = (of_x - m) / (m * (m - 1)) + (of_y - n) / (n * (n - 1)) - 2 * between / (m * n)
    noise = Noise.draw(noise_spectrum(kernel, sides, drawing), noising)
    low, high = noise.interval(observed, alpha)
    mmd = yardstick.mmd(margin)
    found = JointEquivalence(
        shift=yardstick.shift(math.sqrt(max(unbiased, 0.0))),
        low=yardstick.shift(low),
        high=yardstick.shift(high),
        pvalue=noise.below(observed, mmd),
        bandwidth=math.sqrt(d),
        rows=(m, n),
    )
    return found, observed, noise.statistics(mmd)


def _some(rows: Array, most: int, rng: np.random.Generator) -> Array:
    if len(rows) <= most:
        return rows
    chosen: Rows = np.sort(rng.choice(len(rows), most, replace=False))
    return rows[chosen]


def _sum(kernel: Kernel, rows: Array, others: Array | None = None) -> float:
    """Return the sum of the kernel over all pairs, a tile at a time; of rows with themselves, each pair is computed once."""
    total, columns = 0.0, rows if others is None else others
    step = max(1, TILE // len(columns))
    for start in range(0, len(rows), step):
        some = rows[start : start + step]
        if others is not None:
            total += float(kernel.gram(some, others).sum())
        else:
            tile = kernel.gram(some, rows[start:])
            total += 2 * float(tile.sum()) - float(tile[:, : len(some)].sum())
    return total


def noise_spectrum(kernel: Kernel, sides: list[Array], rng: np.random.Generator) -> Array:
    """Return the eigenvalues of Cov_x/m + Cov_y/n, covariances of the kernel's features, the largest first.

    They are those of the kernel matrix centred within each sample, its rows and columns weighted by 1/sqrt(size (rows - 1)).
    """
    some = [_some(rows, SPECTRUM_ROWS, rng) for rows in sides]
    matrix = kernel.gram(np.vstack(some))
    weights = []
    cut = len(some[0])
    for side, rows, part in ((slice(cut), sides[0], some[0]), (slice(cut, None), sides[1], some[1])):
        matrix[side] -= matrix[side].mean(axis=0)
        matrix[:, side] -= matrix[:, side].mean(axis=1, keepdims=True)
        weights.append(np.full(len(part), 1 / math.sqrt(len(rows) * (len(part) - 1))))
    weight = np.concatenate(weights)
    eigenvalues = np.linalg.eigvalsh(matrix * weight[:, None] * weight)[::-1]
    return np.maximum(eigenvalues, 0.0)
