"""What competes in the full-sample test: classes of kernels, of columns, and kernels that were chosen on other data."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.data.preparation import Preparation
from cpmmd.engines.columns import ColumnSums
from cpmmd.engines.members import GRID_RATIO, UNREGULARISED, Grid, KernelMembers, bandwidth_multiples
from cpmmd.errors import InputError
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.families import Bandwidth, LaplacianL1, Polynomial, Radius
from cpmmd.kernels.scaled import ScaleFamily

RATIO = float(GRID_RATIO)
NARROW = 0.5  # of the median distance: a class of no wider bandwidth is called so
FEW_COLUMNS, MANY_COLUMNS = 2, 64  # of more, reading each under every relabeling takes several times what the kernels do
ONE_UNIT = 2.0  # columns whose standard deviations differ by no more than this factor count as in one unit


@dataclass(frozen=True, eq=False)
class Members:
    """The members of a class under every relabeling."""

    values: Array  # members x relabelings, the observed labeling first
    bandwidths: Array  # empty for a fixed kernel and for columns
    gammas: Array  # as those of `ClassScores`
    kernel: Callable[[int], Kernel] | None = None  # of each member; None for classes of columns
    squared_mmd: bool = True  # whether the values are squared MMDs, which a result shows

    @classmethod
    def of(cls, found: KernelMembers) -> Members:
        """Return the members of a class of kernels."""
        light = replace(found, mmd2=np.empty(0))  # kernels do not need the values, which are many
        return cls(found.mmd2, found.bandwidths, found.gammas, light.kernel)


class CompetingClass(ABC):
    """What classes have in common; a subclass says how its members are computed."""

    weight: float
    gammas: tuple[float, ...] = ()
    scale: str | None = None
    coordinates = ""  # what its kernels see
    about_origin = False  # whether its kernels see how far rows are from the origin
    narrow = False  # whether its kernels see close neighbours alone

    @property
    @abstractmethod
    def label(self) -> str:
        """The class in few words."""


class ClassOfColumns(CompetingClass):
    """A class that reads columns, and has no kernel of rows as they come."""

    @abstractmethod
    def members(self, columns: ColumnSums) -> Members:
        """Return its members."""


@dataclass(frozen=True)
class KernelClass(CompetingClass):
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
        Bandwidths at which rows have fewer effective neighbours on average (or a quarter of a small pool) are left out.
    weight : float
        Share of the level that the class competes for, relative to the other classes.
    ratio : float
        Ratio of neighbouring bandwidths: the square root of 2, or a power of it.
    gammas : tuple of float
        Spectral parameters: in the squared MMD each direction of feature space is divided by its variance in the pool plus gamma
        times the largest variance. Empty for the squared MMD itself.
    summed : bool
        Whether the class is a single kernel, the sum over all its bandwidths, each divided by the standard deviation of its
        squared MMD over the permutations, instead of a choice among them.

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
    summed: bool = False

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

    def _searches_within(self, other: KernelClass) -> bool:
        """Whether the other class has all members of this one, on the same coordinates."""
        alike = (self.family, self.scale, bool(self.gammas)) == (other.family, other.scale, bool(other.gammas))
        if not alike or self.summed or other.summed or not set(self.gammas) <= set(other.gammas):
            return False
        own, others = (searched.grid.multiples[:: searched._stride] for searched in (self, other))
        return all(np.isclose(others, multiple).any() for multiple in own)

    def members(self, found: KernelMembers) -> Members:
        """Return its members, or their sum."""
        return Members.of(found.summed() if self.summed else found)

    @property
    def coordinates(self) -> str:  # type: ignore[override]
        """What its kernels see."""
        return "raw coordinates" if self.scale is None else "standardised coordinates"

    @property
    def about_origin(self) -> bool:  # type: ignore[override]
        """Whether they see how far rows are from the origin."""
        return self.family.about_origin

    @property
    def narrow(self) -> bool:  # type: ignore[override]
        """Whether they see close neighbours alone."""
        return self.widest < NARROW

    @property
    def label(self) -> str:
        """The class in few words."""
        kinds = {"spectral ": bool(self.gammas), "summed ": self.summed, "narrow ": self.narrow}
        return f"{''.join(kind for kind, has in kinds.items() if has)}{self.family.label} on {self.coordinates.split()[0]}"

    def __str__(self) -> str:
        kinds = {", spectrum regularised": bool(self.gammas), ", summed": self.summed, ", narrow": self.narrow}
        return f"{self.family} on {self.coordinates}{''.join(kind for kind, has in kinds.items() if has)}"


@dataclass(frozen=True)
class AdditiveClass(ClassOfColumns):
    """The sum over columns of one kernel each: on ranks of numbers, levels of categories, and indicators of missing values.

    Parameters
    ----------
    weight : float
        Share of the level that the class competes for, relative to the other classes.
    gammas : tuple of float
        Spectral parameters, as those of :class:`KernelClass`; empty for the squared MMD itself.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import AdditiveClass, FullSampleTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(60, 4)), data.normal(0.6, 1, size=(60, 4))
    >>> two_sample_test(x, y, method=FullSampleTest(classes=(AdditiveClass(),)), rng=0).reject
    True
    """

    weight: float = 1.0
    gammas: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        validation.positive("weight", self.weight)
        object.__setattr__(self, "gammas", validation.gammas(self.gammas))

    @property
    def label(self) -> str:
        """The class in few words."""
        return f"{'spectral ' if self.gammas else ''}sum over columns"

    def members(self, columns: ColumnSums) -> Members:
        """Return one member for every spectral parameter."""
        return Members(columns.additive(self.gammas), np.empty(0), np.array(self.gammas or (UNREGULARISED,)))

    def __str__(self) -> str:
        return f"sum over columns{', spectrum regularised' if self.gammas else ''}"


@dataclass(frozen=True)
class ColumnsClass(ClassOfColumns):
    """The largest score of any column, as explanations compute them.

    Parameters
    ----------
    weight : float
        Share of the level that the class competes for, relative to the other classes.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import ColumnsClass, FullSampleTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(60, 4)), data.normal(size=(60, 4)) + [0, 1, 0, 0]
    >>> two_sample_test(x, y, method=FullSampleTest(classes=(ColumnsClass(),)), rng=0).reject
    True
    """

    weight: float = 1.0

    def __post_init__(self) -> None:
        validation.positive("weight", self.weight)

    @property
    def label(self) -> str:
        """The class in few words."""
        return "one column"

    def members(self, columns: ColumnSums) -> Members:
        """Return one member, whose values are scores."""
        return Members(columns.largest[None], np.empty(0), np.empty(0), squared_mmd=False)

    def __str__(self) -> str:
        return "largest difference of one column"


@dataclass(frozen=True)
class ProductsClass(ClassOfColumns):
    """The largest score of any product of two or three columns, of those whose mean over the pool is furthest from zero.

    It finds what changes in how columns go together: a correlation, or a column that follows the product of two others.

    Parameters
    ----------
    weight : float
        Share of the level that the class competes for, relative to the other classes.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import FullSampleTest, ProductsClass, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(2, 200, 5))
    >>> y[:, 2] = 0.7 * y[:, 0] * y[:, 1] + 0.7 * y[:, 2]
    >>> two_sample_test(x, y, method=FullSampleTest(classes=(ProductsClass(),)), rng=0).reject
    True
    """

    weight: float = 1.0

    def __post_init__(self) -> None:
        validation.positive("weight", self.weight)

    @property
    def label(self) -> str:
        """The class in few words."""
        return "product of columns"

    def members(self, columns: ColumnSums) -> Members:
        """Return one member, whose values are scores."""
        return Members(columns.products[None], np.empty(0), np.empty(0), squared_mmd=False)

    def __str__(self) -> str:
        return "largest difference of a product of columns"


@dataclass(frozen=True)
class FixedClass(CompetingClass):
    """A kernel that was chosen on other data: a class of one."""

    kernel: Kernel
    weight: float = 1.0

    def members(self, values: Array) -> Members:
        """Return its one member from its squared MMD under every relabeling."""
        return Members(values, np.empty(0), np.empty(0), lambda _: self.kernel)

    @property
    def label(self) -> str:
        """The kernel."""
        return str(self)

    def __str__(self) -> str:
        return f"fixed: {self.kernel}"


def default_classes(columns: int, *, mixed: bool = False) -> tuple[CompetingClass, ...]:
    """Return the classes for data of so many columns, chosen in docs/theory/full-sample.md.

    In one or two columns fine structure is seen at a quarter of the median distance, the L1 norm is nearly the Euclidean one, and
    of columns of numbers classes of columns see little that kernels do not. In ``mixed`` tables, which have categories, single
    columns change more often than what they are together, and kernels hardly see rare levels. Standardised classes leave where
    columns have one unit.
    """
    gaussian, few = Bandwidth("gaussian"), columns <= FEW_COLUMNS
    gammas, fine = (1e-1, 1e-2, 1e-3, 1e-4), (1e-5, 1e-6) if few else ()
    kernels: tuple[CompetingClass, ...] = (
        KernelClass(gaussian, narrowest=1, widest=2, ratio=2, weight=1.5),
        KernelClass(
            gaussian, narrowest=1 / 4 if few else 1, widest=1, ratio=4, gammas=(*gammas, *fine), weight=1.25 if few else 1
        ),
        KernelClass(gaussian, "standard", narrowest=1, widest=1),
        KernelClass(gaussian, "standard", narrowest=1, widest=1, gammas=gammas, weight=0.5),
        KernelClass(gaussian, "standard", narrowest=1 / 8, widest=1 / 8, weight=2 if few else 0.7),
        KernelClass(Polynomial(degree=2), "standard", narrowest=1 / 2, widest=1 / 2, weight=0.25 if few else 0.5),
    )
    if few:
        return (*kernels, ColumnsClass(weight=2)) if mixed else kernels
    radius = KernelClass(Radius(), "standard", narrowest=1, widest=1, weight=0.7)
    kernels = (*kernels, radius, KernelClass(LaplacianL1(), "standard", narrowest=2, widest=2, gammas=(1e-1, 1e-2)))
    if columns > MANY_COLUMNS:
        return kernels
    return (*kernels, AdditiveClass(gammas=(1e-1, 1e-2), weight=2), ColumnsClass(weight=8 if mixed else 1), ProductsClass())


def without_twins(classes: Sequence[CompetingClass], preparations: Mapping[str | None, Preparation]) -> list[CompetingClass]:
    """Return the classes, without those on standardised columns that find what one on raw columns of one unit finds.

    Whether columns have one unit is for the pooled rows. One column has one set of coordinates, but for families that look at
    distances from the origin.
    """
    raw, standard = preparations[None], preparations["standard"]
    deviations = standard.scale / raw.scale
    if len(raw.features) > len(deviations):  # of one-hot columns and marks, whose size is fixed
        deviations = np.append(deviations, 1.0)
    one_unit = bool(deviations.max() <= ONE_UNIT * deviations.min())
    kept: list[CompetingClass] = []
    for searched in classes:
        if not isinstance(searched, KernelClass):
            kept.append(searched)
            continue
        twin = replace(searched, scale=None) if one_unit and not searched.family.about_origin else searched
        if not any(twin._searches_within(other) for other in kept if isinstance(other, KernelClass)):
            kept.append(twin if len(raw.features) == 1 else searched)
    return kept
