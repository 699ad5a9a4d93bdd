"""What a pilot says about sample sizes: a table that prints for a person and turns into JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainValue
from cpmmd.core.text import pluralize

# The law: how power grows with the number of rows. With a fixed kernel of eigenvalues l_i and samples of n rows each that differ
# by t_i along its eigenfunctions, n MMD2 over its standard deviation under the null has about (Gretton et al. 2012)
#
#     mean a n,  variance 1 + b n,  a = sum l t^2 / (2 sqrt(2 sum l^2)),  b = sum l^2 t^2 / sum l^2,
#
# so 0 <= b <= sqrt(8) a. MMD2 is constant and its threshold falls like 1/n, hence with c = b / a
#
#     power(n) = Phi((a n - z) / sqrt(1 + c a n)),  power(0) = alpha,  0 <= c <= sqrt(8).
#
# Selected kernels, and halves that are split off, change the constants rather than the shape.
#
# The pilot: rows drawn from a pilot of N are a sample of the population, so the share of rejections among draws is unbiased for
# power, but all draws share the pilot. Given it, a draw of n rows has mean a' n, where a' is a plus noise of variance
# (1 + b N) / N^2, and variance 1 - (n/N)^2 + b n (1 - n/N): nothing is left to chance at n = N. The posterior of (a, c), flat in
# both, carries that uncertainty, by far the largest, and the noise of finitely many draws.

LARGEST_RATIO = np.sqrt(8)
LEVEL = 0.9  # of the intervals
LEAST_VARIANCE = 0.02  # of a draw of all rows: the permutations are still random
TINY = 1e-9  # keeps a single surprise from ruling anything out


@dataclass(frozen=True)
class Draws:
    """Rejections among repeated draws of ``size`` rows of each sample."""

    size: int  #: rows of each sample
    #: rejections, repetitions: draws that rejected, and all draws
    rejections: int
    repetitions: int


@dataclass(frozen=True)
class Range:
    """An estimate between two bounds that hold it with probability 0.9."""

    estimate: float  #: the median of the posterior
    #: low, high: the bounds
    low: float
    high: float


@dataclass(frozen=True, eq=False)
class PowerLaw:
    """Posterior of the law's constants: a grid of (a, c) and its weights."""

    #: a, c: the constants at each point of the grid
    a: Array
    c: Array
    weight: Array  #: probability of each point
    z: float  #: the normal quantile of the level: power(0) = alpha

    def power(self, size: float) -> Range:
        """Return the power at so many rows of each sample."""
        from scipy.special import ndtr

        return self._range(np.asarray(ndtr((self.a * size - self.z) / np.sqrt(1 + self.c * self.a * size))))

    def rows_for(self, power: float) -> Range:
        """Return the rows of each sample that reach a power."""
        from scipy.special import ndtri

        target = float(ndtri(power))
        half = self.z + target**2 * self.c / 2  # a n - z = target sqrt(1 + c a n) is quadratic in a n
        root = np.sqrt(np.maximum(half**2 - self.z**2 + target**2, 0.0))
        needed = half + root if target >= 0 else half - root
        with np.errstate(divide="ignore"):
            return self._range(np.maximum(needed, 0.0) / self.a)

    def _range(self, values: Array) -> Range:
        order = np.argsort(values, axis=None)
        ranked, mass = values.ravel()[order], np.cumsum(self.weight.ravel()[order])
        low, middle, high = (
            ranked[min(int(np.searchsorted(mass, q)), len(ranked) - 1)] for q in ((1 - LEVEL) / 2, 0.5, (1 + LEVEL) / 2)
        )
        return Range(float(middle), float(low), float(high))


def fit_law(draws: Sequence[Draws], *, pilot: int, alpha: float) -> PowerLaw:
    """Return what draws from a pilot of ``pilot`` rows of each sample say about the law."""
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


FAR = 20  # times the pilot: a bound beyond that is what a pilot without any difference gives


@dataclass(frozen=True)
class PowerRow(PlainValue):
    """Power at one sample size."""

    size: int  #: rows of each sample
    #: power, low, high: estimate fitted curve fitted to all draws, and the interval that holds it with probability 0.9 given this
    #: pilot. The law has two constants for all sizes; where draws were made, ``estimate`` follows them instead.
    power: float
    low: float
    high: float
    observed: float | None  #: share of rejections among draws of that size without replacement; None beyond the pilot
    repetitions: int  #: how many draws were made; 0 beyond the pilot
    extrapolated: bool  #: whether the size is beyond the pilot

    document = ("size", "power", "low", "high", "observed", "repetitions", "extrapolated", "estimate")

    @property
    def estimate(self) -> float:
        """The share of draws that rejected; the fitted power where there are fewer than two draws."""
        return self.power if self.observed is None or self.repetitions < 2 else self.observed

    @property
    def source(self) -> str:
        """Where the estimate comes from, in words."""
        if self.extrapolated:
            return "extrapolated"
        return f"{self.repetitions} draws" if self.repetitions > 1 else "fitted curve"


@dataclass(frozen=True, repr=False)
class PowerTable(PlainValue):
    """Power over sample sizes, and how many rows a wanted power takes."""

    rows: tuple[PowerRow, ...]  #: one for each size asked for
    #: rows of each sample for ``target`` power, with bounds; infinite where no number is in sight, never fewer than can have a
    #: p-value of ``alpha``
    needed: Range
    target: float  #: the power that was asked for
    method: str  #: the method's name
    alpha: float  #: level of the test
    pilot: tuple[int, int]  #: rows of the two pilot samples
    n_permutations: int  #: permutations of each test
    seed: int | None  #: what repeats the table as ``rng=``; None when a Generator was passed in
    notes: tuple[str, ...] = ()  #: what to bear in mind
    unit: str = "rows"  #: what sizes count: ``"rows"``, or ``"groups"``, ``"pairs"``, ``"blocks"`` of a design
    block_rows: int | None = None  #: rows of a block, where sizes count blocks

    document = (
        *("target", "method", "alpha", "pilot", "n_permutations", "seed", "notes", "unit", "block_rows"),
        *("sentence", "needed", "rows"),
    )

    @property
    def unit_in_words(self) -> str:
        """What sizes count, with how long a block is."""
        return self.unit if self.block_rows is None else f"{self.unit} of {pluralize(self.block_rows, 'row')}"

    @property
    def sentence(self) -> str:
        """The answer to: how many rows would I need?"""
        low, about, most = (_round(n) for n in (self.needed.low, self.needed.estimate, self.needed.high))
        known = FAR * min(self.pilot)
        unit = f"{self.unit_in_words} of each sample"
        if self.needed.estimate > known:
            return f"This pilot shows no difference to plan for: power {self.target:.2f} needs more than {low} {unit}."
        if self.needed.high > known:
            return (
                f"This pilot shows no clear difference: power {self.target:.2f} may need {about} {unit}, at least {low}, and "
                "the pilot sets no upper limit."
            )
        beyond = ", beyond the pilot" if self.needed.estimate > min(self.pilot) else ""
        return f"About {about} {unit} for power {self.target:.2f}{beyond} (between {low} and {most}, given this pilot)."

    def __repr__(self) -> str:
        return f"<PowerTable: {self.sentence} {pluralize(len(self.rows), 'size')}>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import table_card

        rows = [{"size": r.size, "power": r.estimate, "from": r.low, "to": r.high, "source": r.source} for r in self.rows]
        return table_card(self.sentence, self.notes, rows)

    def __str__(self) -> str:
        lines = [self.sentence, f"{self.unit + ' of each':>14}   power   {'':<14}   fitted, 90% confidence interval"]
        for row in self.rows:
            source = f"({row.source})"
            fitted = f"{row.power:.2f}, {row.low:.2f} to {row.high:.2f}"
            lines.append(f"  {row.size:>12}   {row.estimate:>5.2f}   {source:<14}   {fitted}")
        lines += [f"  note  {note}" for note in self.notes]
        return "\n".join(lines)


def _round(count: float) -> str:
    """Return a number of rows to two digits: more would pretend to know."""
    if not math.isfinite(count):
        return "any number of"
    if count < 10:
        return str(max(math.ceil(count), 1))
    scale = 10 ** (math.floor(math.log10(count)) - 1)
    return str(math.ceil(count / scale - 1e-9) * scale)
