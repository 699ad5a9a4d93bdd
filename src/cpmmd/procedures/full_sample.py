"""The full-sample test: complexity-penalised selection repeated under every relabeling, so that no row is given away."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.layout import TARGET_BINS, Layout
from cpmmd.engines.columns import ColumnSums, column_sums
from cpmmd.engines.fixed_kernel import SCORE_TIE, Engine
from cpmmd.engines.landmarks import kernel_path, landmark_count, landmark_paths
from cpmmd.engines.paths import (
    GRID_RATIO,
    PAIR_ROWS,
    UNREGULARISED,
    Grid,
    MemberPath,
    View,
    bandwidth_multiples,
    geometry_paths,
    pairwise_statistics,
)
from cpmmd.errors import InputError, ParameterReference
from cpmmd.evidence import Ranking, tail_scores
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.families import Bandwidth, LaplacianL1, Polynomial, Radius
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.procedures.base import Method, Procedure, RunOptions
from cpmmd.procedures.outcome import ClassPath, Evidence, TestResult

RATIO = float(GRID_RATIO)
NARROW = 0.5  # of the median distance: a class of no wider bandwidth is called so
FEW_COLUMNS, MANY_COLUMNS = 2, 64  # of more, reading each under every relabeling takes several times what the kernels do
ONE_UNIT = 2.0  # columns whose standard deviations differ by no more than this factor count as in one unit
Views = Mapping[str | None, View]  # the pool in raw and in standardised coordinates


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
    summed : bool
        Whether the class is one kernel, the sum of those at all its bandwidths, each divided by the spread of its squared MMD
        over the relabelings, instead of a choice of one.

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

    @property
    def coordinates(self) -> str:
        """What its kernels see."""
        return "raw coordinates" if self.scale is None else "standardised coordinates"

    @property
    def label(self) -> str:
        """The class in few words."""
        kinds = {"spectral ": bool(self.gammas), "summed ": self.summed, "narrow ": self.widest < NARROW}
        return f"{''.join(kind for kind, has in kinds.items() if has)}{self.family.label} on {self.coordinates.split()[0]}"

    def __str__(self) -> str:
        kinds = {", spectrum regularised": bool(self.gammas), ", summed": self.summed, ", narrow": self.widest < NARROW}
        return f"{self.family} on {self.coordinates}{''.join(kind for kind, has in kinds.items() if has)}"


@dataclass(frozen=True)
class AdditiveClass:
    """The sum over columns of one kernel each: on ranks of numbers, on levels of categories, and a mark of what is missing.

    Parameters
    ----------
    weight : float
        Share of the level that the class competes for, beside those of the others.
    gammas : tuple of float
        Spectral parameters, as those of :class:`KernelClass`; none for the squared MMD itself.

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

    def __str__(self) -> str:
        return f"sum over columns{', spectrum regularised' if self.gammas else ''}"


@dataclass(frozen=True)
class ColumnsClass:
    """The largest score of any column, as explanations compute them.

    Parameters
    ----------
    weight : float
        Share of the level that the class competes for, beside those of the others.

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

    def __str__(self) -> str:
        return "largest difference of one column"


AnyClass = KernelClass | AdditiveClass | ColumnsClass


def default_classes(columns: int, *, mixed: bool = False) -> tuple[AnyClass, ...]:
    """Return the classes for data of so many columns, chosen in docs/theory/full-sample.md.

    In one or two columns fine structure is seen at a quarter of the median distance, the L1 norm is nearly the Euclidean one, and
    classes of columns see little that kernels do not. In ``mixed`` tables, which have categories, single columns change more
    often than what they are together. Standardised classes leave where columns have one unit.
    """
    gaussian, few = Bandwidth("gaussian"), columns <= FEW_COLUMNS
    gammas, fine = (1e-1, 1e-2, 1e-3, 1e-4), (1e-5, 1e-6) if few else ()
    kernels: tuple[AnyClass, ...] = (
        KernelClass(gaussian, narrowest=1, widest=2, ratio=2, weight=2 if few else 1.5),
        KernelClass(gaussian, narrowest=1 / 4 if few else 1, widest=1, ratio=4, gammas=(*gammas, *fine)),
        KernelClass(gaussian, "standard", narrowest=1, widest=1),
        KernelClass(gaussian, "standard", narrowest=1, widest=1, gammas=gammas, weight=0.5),
        KernelClass(gaussian, "standard", narrowest=1 / 8, widest=1 / 8, weight=1.5 if few else 0.7),
        KernelClass(Polynomial(degree=2), "standard", narrowest=1 / 2, widest=1 / 2, weight=0.25 if few else 0.5),
    )
    if few:
        return kernels
    radius = KernelClass(Radius(), "standard", narrowest=1, widest=1, weight=0.7)
    kernels = (*kernels, radius, KernelClass(LaplacianL1(), "standard", narrowest=2, widest=2, gammas=(1e-1, 1e-2)))
    if columns > MANY_COLUMNS:
        return kernels
    return (*kernels, AdditiveClass(gammas=(1e-1, 1e-2)), ColumnsClass(weight=8 if mixed else 1))


@dataclass(frozen=True)
class FullSampleTest(Procedure):
    """Selects kernel class and bandwidth on all rows, under every relabeling alike.

    Parameters
    ----------
    classes : tuple of classes or kernel families, optional
        What to choose from: families, or :class:`KernelClass` to ask for standardised coordinates, :class:`AdditiveClass` and
        :class:`ColumnsClass`. None is what the documentation lists for as many columns as the data have.
    fixed : tuple of Kernel
        Kernels chosen on other data (a trained one, say), each one more class without a bandwidth.
    penalty_quantile : float
        A class's complexity is this quantile of its best score over the relabelings.
    bins : int
        About how many bins of rows are relabelled; samples of fewer rows are permuted row by row.
    landmarks : int, optional
        Rows of the pool that spectral members, and pools of more than ``pair_rows`` rows altogether, are computed through; None
        is 200, and twice the root of the rows, at most 512, in such pools. All rows where there are no more.
    pair_rows : int
        Pools of more rows are computed through landmarks altogether, at a cost linear in the rows; up to here the squared MMD
        itself is taken over all pairs of rows.
    covariance_rows : int, optional
        Rows that the variances of directions are taken over in those larger pools; None is ten a landmark, at most 5000.

    Notes
    -----
    For each class and relabeling the squared MMD, its directions divided by the spectrum where the class asks for it, is computed
    for every member (bandwidth by spectral parameter), turned into an upper-tail score -log p by the first three moments over the
    relabelings, and maximised over the class: its evidence. Less the class's complexity, plus the logarithm of its weight,
    maximised over classes, it is the statistic. Everything else is a symmetric function of the pooled rows or of all relabelings
    together, so the observed statistic is exchangeable with the others under the null and its rank is an exact p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Bandwidth, FullSampleTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(60, 2)), data.normal(1, 1, size=(60, 2))
    >>> two_sample_test(x, y, method=FullSampleTest(classes=(Bandwidth(),)), rng=0).pvalue
    0.001
    """

    classes: tuple[AnyClass | ScaleFamily, ...] | None = None
    fixed: tuple[Kernel, ...] = ()
    penalty_quantile: float = 0.9
    bins: int = TARGET_BINS
    landmarks: int | None = None
    pair_rows: int = PAIR_ROWS
    covariance_rows: int | None = None

    citations = ("ni2026kernel", "hagrass2024spectral", "domingo2025cheap")
    statistic_meaning = "the best class's score -log p less its penalty"

    def __post_init__(self) -> None:
        if self.classes is not None:
            listed = self.classes if isinstance(self.classes, Sequence) else (self.classes,)
            object.__setattr__(self, "classes", tuple(c if isinstance(c, AnyClass) else KernelClass(c) for c in listed))
        object.__setattr__(self, "fixed", tuple(self.fixed))
        if self.classes == () and not self.fixed:
            raise InputError("The full-sample test needs at least one kernel class. Got none.")
        validation.open_unit("penalty_quantile", self.penalty_quantile)
        validation.whole("bins", self.bins, at_least=10)
        if self.landmarks is not None:
            validation.whole("landmarks", self.landmarks, at_least=2)
        validation.whole("pair_rows", self.pair_rows, at_least=0)
        if self.covariance_rows is not None:
            validation.whole("covariance_rows", self.covariance_rows, at_least=10)

    @classmethod
    def methods(cls) -> Mapping[str, Method]:
        """Return the default of the library."""
        summary = "CP-MMD extended to all rows by this library: class and bandwidth chosen under every permutation (the default)"
        return {"cp-full": Method(cls, summary)}

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Evaluate all paths under common relabelings, score, rank."""
        bin_stream, label_stream, sample_stream = rng.spawn(3)
        layout = Layout.cut(pool.m, pool.n, pool.design, bin_stream, target=self.bins)
        layout = layout.draw(options.n_permutations, label_stream, options.memory_limit)
        order = sample_stream.permutation(pool.m + pool.n)
        landmarks = landmark_count(len(layout.rows), self.landmarks, self.pair_rows)
        preparations = {scale: Preparation.fit(pool, scale=scale) for scale in (None, "standard")}
        strata = None if pool.design is None else pool.design.strata[pool.design.unit[order]]
        sizes = (landmarks, strata, self.pair_rows, self.covariance_rows)
        views = {
            scale: View(partial(fitted.transform, pool), layout, order, options.memory_limit, *sizes)
            for scale, fitted in preparations.items()
        }
        classes = _without_twins(self.classes_for(pool), preparations)
        scored_classes = [_ScoredClass.of(path, searched, self.penalty_quantile) for searched, path in self.paths(classes, views)]
        scored_classes += [_ScoredClass.fixed(kernel, views[None], self.penalty_quantile) for kernel in self.fixed]
        by_column = [searched for searched in classes if isinstance(searched, (AdditiveClass, ColumnsClass))]
        if by_column:
            columns = column_sums(pool, preparations[None], layout)
            scored_classes += [_ScoredClass.of_columns(columns, searched, self.penalty_quantile) for searched in by_column]
        totals = np.max([scored.total for scored in scored_classes], axis=0)
        ranking = Ranking.of(totals, tolerance=SCORE_TIE, exhaustive=layout.labels.exhaustive)
        shown = _simplest(scored_classes, float(ranking.null_distribution.max(initial=-np.inf)))
        spectral, linear = any(scored.spectral for scored in scored_classes), views[None].linear
        return self.conclude(
            pool,
            options,
            ranking,
            tested_sizes=(layout.m, layout.n),
            kernel=None if shown is None else shown.kernel,
            preparation=preparations[None if shown is None else shown.of.scale],
            notes=layout.left_out,
            evidence=Evidence(pool, np.sort(layout.rows) if sum(layout.dropped) else None, units=layout),
            engine=Engine.of(
                layout,
                landmarks if spectral or linear else None,
                views[None].variance_rows if spectral else None,
                linear=linear,
            ),
            classes=tuple(
                replace(scored.path, selected=shown.member) if shown is not None and scored is shown.of else scored.path
                for scored in scored_classes
            ),
        )

    def classes_for(self, pool: Pool) -> tuple[AnyClass, ...]:
        """Return the classes that compete on a pool; columns as they came are not what is compared after a transformer."""
        if pool.preprocess is not None:
            asked = default_classes(MANY_COLUMNS + 1) if self.classes is None else self.classes
            if any(isinstance(searched, (AdditiveClass, ColumnsClass)) for searched in asked):
                raise InputError(
                    "Classes of columns compare columns as they came. Got {preprocess}, too; leave one of them out.",
                    preprocess=ParameterReference("preprocess"),
                )
            return tuple(searched for searched in asked if isinstance(searched, AnyClass))
        if self.classes is None:
            return default_classes(len(pool.columns), mixed=bool(pool.categories))
        return tuple(searched for searched in self.classes if isinstance(searched, AnyClass))

    def paths(self, classes: Sequence[AnyClass], views: Views) -> Iterator[tuple[KernelClass, MemberPath]]:
        """Yield every class of kernels with its members under every relabeling; those of one geometry are computed together."""
        groups: dict[tuple[str | None, tuple[object, ...]], list[KernelClass]] = {}
        for searched in classes:
            if isinstance(searched, KernelClass):
                groups.setdefault((searched.scale, searched.family.geometry), []).append(searched)
        for (scale, _), group in groups.items():
            view = views[scale]
            pairwise = [] if view.linear else [searched for searched in group if not searched.gammas]
            landmark = [searched for searched in group if searched not in pairwise]
            if pairwise:
                yield from zip(pairwise, geometry_paths(view, [searched.grid for searched in pairwise]), strict=True)
            if landmark:
                yield from zip(landmark, landmark_paths(view, [searched.grid for searched in landmark]), strict=True)


def _without_twins(classes: Sequence[AnyClass], preparations: Mapping[str | None, Preparation]) -> list[AnyClass]:
    """Return the classes, without those on standardised columns that find what one on raw columns of one unit finds.

    Whether columns have one unit is for the pooled rows. One column has one set of coordinates, but for families that look at
    distances from the origin.
    """
    raw, standard = preparations[None], preparations["standard"]
    deviations = standard.scale / raw.scale
    if len(raw.features) > len(deviations):  # of one-hot columns and marks, whose size is fixed
        deviations = np.append(deviations, 1.0)
    one_unit = bool(deviations.max() <= ONE_UNIT * deviations.min())
    kept: list[AnyClass] = []
    for searched in classes:
        if not isinstance(searched, KernelClass):
            kept.append(searched)
            continue
        twin = replace(searched, scale=None) if one_unit and not searched.family.about_origin else searched
        if not any(twin._searches_within(other) for other in kept if isinstance(other, KernelClass)):
            kept.append(twin if len(raw.features) == 1 else searched)
    return kept


@dataclass(frozen=True, eq=False)
class _ScoredClass:
    """A class in the contest: what it has to show, its evidence less penalty under every relabeling, and its kernels."""

    path: ClassPath
    total: Array
    kernel: Callable[[int], Kernel] | None = None  # of each member; None for classes of columns
    scale: str | None = None
    spectral: bool = False
    # about_origin, narrow: whether its kernels see how far rows are from the origin, or close neighbours alone
    about_origin: bool = False
    narrow: bool = False

    @classmethod
    def of(cls, path: MemberPath, searched: KernelClass, quantile: float) -> _ScoredClass:
        """Score a class."""
        path = path.summed() if searched.summed else path
        shown = {
            "name": str(searched),
            "label": searched.label,
            "coordinates": searched.coordinates,
            "bandwidths": path.bandwidths,
        }
        found, total = _score(path.mmd2, searched.weight, quantile, gammas=path.gammas, **shown)
        members = replace(path, mmd2=np.empty(0))  # which is not needed any more, and large
        kind = {
            "spectral": bool(searched.gammas),
            "about_origin": searched.family.about_origin,
            "narrow": searched.widest < NARROW,
        }
        return cls(found, total, members.kernel, searched.scale, **kind)

    @classmethod
    def of_columns(cls, columns: ColumnSums, searched: AdditiveClass | ColumnsClass, quantile: float) -> _ScoredClass:
        """Score a class of columns, which has no kernel of rows as they come."""
        none = np.empty(0)
        shown: dict[str, Any] = {"name": str(searched), "label": searched.label, "coordinates": "", "bandwidths": none}
        if isinstance(searched, AdditiveClass):
            members = np.array(searched.gammas or (UNREGULARISED,))
            return cls(*_score(columns.additive(searched.gammas), searched.weight, quantile, gammas=members, **shown))
        found, total = _score(columns.largest[None], searched.weight, quantile, gammas=none, **shown)
        return cls(replace(found, mmd2=none), total)

    @classmethod
    def fixed(cls, kernel: Kernel, view: View, quantile: float) -> _ScoredClass:
        """Score a fixed kernel, a class of one."""
        name, none = f"fixed: {kernel}", np.empty(0)
        values = kernel_path(view, kernel, (UNREGULARISED,)) if view.linear else pairwise_statistics(view, kernel)[None]
        shown = {"name": name, "label": name, "coordinates": "", "bandwidths": none, "gammas": none}
        return cls(*_score(values, 1.0, quantile, **shown), lambda _: kernel)


@dataclass(frozen=True, eq=False)
class _ShownKernel:
    """The kernel that a result has, a member of a class."""

    of: _ScoredClass
    member: int
    kernel: Kernel


def _simplest(scored_classes: Sequence[_ScoredClass], threshold: float) -> _ShownKernel | None:
    """Return the kernel to report and to explain by: the simplest one that shows the difference alone.

    A clear difference is seen by many members, and the sharpest of them, which divides by the smallest variances, says least
    about where it is. So among those whose evidence less penalty is above the statistic of every other permutation, the largest
    spectral parameter comes first, the squared MMD itself before any, and of those the kernels that see where rows are before
    those that see how far from the origin, and wide ones before narrow ones; where there are none, the best member of a class
    that has kernels.
    """
    with_kernels = [scored for scored in scored_classes if scored.kernel is not None]
    able = []
    for c, scored_class in enumerate(with_kernels):
        path = scored_class.path
        gammas = path.gammas if len(path.gammas) else np.full(len(path.scores), UNREGULARISED)
        for j in np.flatnonzero(path.scores - path.penalty > threshold + SCORE_TIE):
            evidence = float(path.scores[j] - path.penalty)
            able.append((-float(gammas[j]), scored_class.about_origin, scored_class.narrow, -evidence, c, int(j)))
    if able:
        *_, c, member = min(able)
        winner = with_kernels[c]
    elif with_kernels:
        winner = max(with_kernels, key=lambda scored: scored.path.criterion)
        member = winner.path.best
    else:
        return None
    assert winner.kernel is not None
    return _ShownKernel(winner, member, winner.kernel(member))


def _score(mmd2: Array, weight: float, quantile: float, **shown: Any) -> tuple[ClassPath, Array]:
    """Score every member, and take the class's own null quantile, less the logarithm of its weight, as its penalty.

    Returns what the class has to show under the labels as they came, and its evidence less penalty under every relabeling.
    """
    evidence, first = np.zeros(mmd2.shape[1]), np.empty(len(mmd2))
    for j, row in enumerate(mmd2):  # one by one: scores of all members at once would take several times their memory
        scores = tail_scores(row[None])[0]
        first[j] = scores[0]
        np.maximum(evidence, scores, out=evidence)
    penalty = float(np.quantile(evidence, quantile)) - float(np.log(weight))
    return ClassPath(mmd2=mmd2[:, 0].copy(), scores=first, penalty=penalty, **shown), evidence - penalty
