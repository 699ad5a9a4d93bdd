"""Kernel classes: families with their coordinates and the range that is searched; what a full-sample test chooses from."""

from __future__ import annotations

from dataclasses import dataclass

from cpmmd.core import validation
from cpmmd.errors import InputError
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.laplacian_l1 import LaplacianL1
from cpmmd.kernels.polynomial import Polynomial
from cpmmd.kernels.radius import Radius
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.permutation.paths import Grid, bandwidth_multiples


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

    @property
    def grid(self) -> Grid:
        """The bandwidths, widest first."""
        return Grid(self.family, bandwidth_multiples(self.narrowest, self.widest), self.fewest_neighbours)

    @property
    def coordinates(self) -> str:
        """What its kernels see."""
        return "raw coordinates" if self.scale is None else "standardised coordinates"

    @property
    def label(self) -> str:
        """The class in few words."""
        return f"{self.family.label} on {self.coordinates.split()[0]}"

    def __str__(self) -> str:
        return f"{self.family} on {self.coordinates}"


def default_classes() -> tuple[KernelClass, ...]:
    """Return the classes chosen in docs/theory/full-sample.md."""
    return (
        KernelClass(Bandwidth("gaussian"), fewest_neighbours=30),
        KernelClass(LaplacianL1(), "standard"),
        KernelClass(Polynomial(degree=2), "standard"),
        KernelClass(Radius(), "standard", narrowest=1, widest=1, weight=0.25),
    )
