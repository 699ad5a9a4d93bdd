"""Kernel classes: families with their coordinates and the range that is searched; what a full-sample test chooses from."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from cpmmd.core import validation
from cpmmd.errors import InputError
from cpmmd.kernels.bandwidth import Bandwidth, LaplacianL1, Radius
from cpmmd.kernels.polynomial import Polynomial
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.permutation.paths import GRID_RATIO, Grid, bandwidth_multiples

RATIO = float(GRID_RATIO)


@dataclass(frozen=True)
class KernelClass:
    """A one-parameter family on raw or standardised coordinates.

    Parameters
    ----------
    family : kernel family
        A family with one parameter, such as ``Bandwidth()``; trained kernels go into ``fixed`` of :class:`FullSampleTest`.
    scale : str, optional
        ``"standard"`` standardises columns by pooled statistics; None takes numbers as they come.
    narrowest, widest : float
        Bandwidths in units of the median distance of the pool.
    fewest_neighbours : float
        The path ends where rows have fewer effective neighbours on average (or a quarter of a small pool).
    weight : float
        Share of the level that the class competes for, beside those of the others.
    ratio : float
        Between neighbouring bandwidths: the square root of 2, or a power of it.
    gammas : tuple of float
        Spectral parameters: the squared MMD has each direction of feature space divided by its variance in the pool plus gamma
        times the largest variance. None for the squared MMD itself.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Bandwidth, FullSampleTest, KernelClass, two_sample_test
    >>> wide = KernelClass(Bandwidth(), "standard", narrowest=1.0)
    >>> print(wide)
    Bandwidth(base='gaussian') on standardised coordinates
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(1, 1, size=(40, 2))
    >>> two_sample_test(x, y, method=FullSampleTest(classes=(wide,)), rng=0).reject
    True
    """

    family: ScaleFamily
    scale: str | None = None
    narrowest: float = 1 / 64
    widest: float = 4.0
    fewest_neighbours: float = 1.0
    weight: float = 1.0
    ratio: float = RATIO
    gammas: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        if not isinstance(self.family, ScaleFamily):
            raise InputError(
                f"A class of the full-sample test must be a one-parameter family such as Bandwidth(). Got {self.family!r}; "
                "trained kernels go into fixed=."
            )
        validation.scale(self.scale)
        if validation.positive("narrowest", self.narrowest) > validation.positive("widest", self.widest):
            raise InputError(f"The narrowest bandwidth must not exceed the widest. Got {self.narrowest} and {self.widest}.")
        validation.positive("fewest_neighbours", self.fewest_neighbours)
        validation.positive("weight", self.weight)
        if not math.isclose(RATIO**self._stride, validation.positive("ratio", self.ratio), rel_tol=1e-6) or self._stride < 1:
            raise validation.wrong("ratio", "must be the square root of 2 or a power of it, such as 2 or 4", self.ratio)
        object.__setattr__(self, "gammas", validation.gammas(self.gammas))

    @property
    def _stride(self) -> int:
        return round(math.log(self.ratio) / math.log(RATIO))

    @property
    def grid(self) -> Grid:
        """What is searched."""
        multiples = bandwidth_multiples(self.narrowest, self.widest)
        return Grid(self.family, multiples, self.fewest_neighbours, self._stride, self.gammas)

    def searches_within(self, other: KernelClass) -> bool:
        """Whether the other class has all members of this one, on the same coordinates.

        Parameters
        ----------
        other : KernelClass
            The other class.

        Returns
        -------
        bool
            True where this one adds nothing to it.
        """
        alike = (self.family, self.scale, bool(self.gammas)) == (other.family, other.scale, bool(other.gammas))
        if not alike or not set(self.gammas) <= set(other.gammas):
            return False
        own, others = (one.grid.multiples[:: one._stride] for one in (self, other))
        return all(np.isclose(others, multiple).any() for multiple in own)

    @property
    def coordinates(self) -> str:
        """What its kernels see."""
        return "raw coordinates" if self.scale is None else "standardised coordinates"

    @property
    def label(self) -> str:
        """The class in few words."""
        return f"{'spectral ' if self.gammas else ''}{self.family.label} on {self.coordinates.split()[0]}"

    def __str__(self) -> str:
        return f"{self.family} on {self.coordinates}{', spectrum regularised' if self.gammas else ''}"


def default_classes() -> tuple[KernelClass, ...]:
    """Return the classes chosen in docs/theory/full-sample.md."""
    gaussian = Bandwidth("gaussian")
    return (
        KernelClass(gaussian, narrowest=1, widest=2, ratio=2, weight=1.5),
        KernelClass(gaussian, narrowest=1 / 4, widest=1, ratio=4, gammas=(1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)),
        KernelClass(LaplacianL1(), "standard", narrowest=2, widest=2, gammas=(1e-1, 1e-2)),
        KernelClass(gaussian, "standard", narrowest=1, widest=1),
        KernelClass(gaussian, "standard", narrowest=1, widest=1, gammas=(1e-1, 1e-2, 1e-3, 1e-4), weight=0.5),
        KernelClass(Polynomial(degree=2), "standard", narrowest=1 / 2, widest=1 / 2, weight=0.5),
        KernelClass(Radius(), "standard", narrowest=1, widest=1, weight=0.7),
    )
