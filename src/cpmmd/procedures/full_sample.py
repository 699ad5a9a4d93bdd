"""The full-sample test: complexity-penalised selection repeated under every relabeling, so that no row is given away."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Rows
from cpmmd.data.pool import Pool, rows_alone
from cpmmd.data.preparation import Preparation
from cpmmd.draws.layout import TARGET_BINS, Layout
from cpmmd.draws.positions import KeyedPermutation, PositionBins
from cpmmd.engines.cells import Cells, cells_of, counted_columns
from cpmmd.engines.columns import ColumnSums, column_sums
from cpmmd.engines.directions import Sketch
from cpmmd.engines.fixed_kernel import Engine
from cpmmd.engines.landmarks import among_neighbours, landmark_count, landmark_members, landmark_statistics
from cpmmd.engines.members import (
    COVARIANCE_ROWS,
    PAIR_ROWS,
    UNREGULARISED,
    KernelMembers,
    View,
    pairwise_members,
    pairwise_statistics,
)
from cpmmd.engines.one_pass import KernelGroup, OnePass, summarise
from cpmmd.errors import InputError, ParameterReference
from cpmmd.evidence import SCORE_TIE, ClassEvidence, Ranking, rank_classes
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.procedures.base import Method, Procedure, RunOptions
from cpmmd.procedures.classes import (
    MANY_COLUMNS,
    ClassOfColumns,
    CompetingClass,
    FixedClass,
    KernelClass,
    Members,
    ProductsClass,
    default_classes,
    without_twins,
)
from cpmmd.procedures.outcome import ClassScores, Evidence, TestResult
from cpmmd.statistics.columns import columns_of

SCALES = (None, "standard")
SAMPLE_ROWS = 2**16  # rows, drawn without looking at labels, that coordinates, cells and landmarks of larger pools are of
Views = Mapping[str | None, View]  # the pool in raw and in standardised coordinates


@dataclass(frozen=True)
class FullSampleTest(Procedure):
    """Selects kernel class and bandwidth on all rows, under every permutation alike.

    Parameters
    ----------
    classes : tuple of classes or kernel families, optional
        The classes that compete: kernel families, :class:`KernelClass` (for standardised coordinates, say),
        :class:`AdditiveClass`, :class:`ColumnsClass` and :class:`ProductsClass`. None is the default for the number of columns,
        listed in the documentation.
    fixed : tuple of Kernel
        Kernels chosen on other data, such as a trained one; each competes as a class of its own.
    penalty_quantile : float
        A class's complexity is this quantile of its best score over the permutations.
    bins : int
        Approximate number of bins of rows that are permuted; samples of fewer rows are permuted row by row.
    landmarks : int, optional
        Number of landmarks: rows of the pool through which spectral members are computed, and all members in pools of more than
        ``pair_rows`` rows. None is 200, or twice the square root of the rows (at most 512) in such pools. Smaller pools use all
        rows.
    pair_rows : int
        Pools of at most this many rows take the squared MMD itself over all pairs of rows; larger ones compute everything through
        landmarks, at a cost linear in the rows.
    covariance_rows : int, optional
        Number of rows that give the variances of directions in those larger pools; None is ten per landmark, at most 5000.

    Notes
    -----
    For each class and permutation, the squared MMD of every member (bandwidth by spectral parameter) is computed, with its
    directions divided by the spectrum where the class asks for it. Its first three moments over the permutations turn it into an
    upper-tail score -log p. The largest score is the evidence of the class. The statistic is the largest value, over classes, of
    evidence minus complexity plus the logarithm of the weight. Everything else is a symmetric function of the pooled rows, or of
    all permutations together, so the observed statistic is exchangeable with the others under the null hypothesis and its rank is
    an exact p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Bandwidth, FullSampleTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(60, 2)), data.normal(1, 1, size=(60, 2))
    >>> two_sample_test(x, y, method=FullSampleTest(classes=(Bandwidth(),)), rng=0).pvalue
    0.001
    """

    classes: tuple[CompetingClass | ScaleFamily, ...] | None = None
    fixed: tuple[Kernel, ...] = ()
    penalty_quantile: float = 0.9
    bins: int = TARGET_BINS
    landmarks: int | None = None
    pair_rows: int = PAIR_ROWS
    covariance_rows: int | None = None

    citations = ("ni2026kernel", "hagrass2024spectral", "domingo2025cheap")
    statistic_meaning = "the best class's score -log p minus its penalty"

    def __post_init__(self) -> None:
        if self.classes is not None:
            listed = self.classes if isinstance(self.classes, Sequence) else (self.classes,)
            object.__setattr__(self, "classes", tuple(c if isinstance(c, CompetingClass) else KernelClass(c) for c in listed))
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
        """Compute all members under common relabelings, score, rank."""
        bin_stream, label_stream, sample_stream = rng.spawn(3)
        if self.reads_once(pool):
            layout, bins = Layout.by_position(pool.m, pool.n, bin_stream, target=self.bins, held=not pool.streamed)
            layout = layout.draw(options.n_permutations, label_stream, options.memory_limit)
            contest = self._compete_in_one_pass(pool, layout, bins, options.memory_limit, sample_stream)
        else:
            layout = Layout.cut(pool.m, pool.n, pool.design, bin_stream, target=self.bins)
            layout = layout.draw(options.n_permutations, label_stream, options.memory_limit)
            contest = self.compete(pool, layout, options.memory_limit, sample_stream)
        ranking = contest.ranking
        shown = _simplest(contest.classes, float(ranking.null_distribution.max(initial=-np.inf)))
        return self.conclude(
            pool,
            options,
            ranking,
            tested_sizes=(layout.m, layout.n),
            kernel=None if shown is None else shown.kernel,
            preparation=contest.preparations[None if shown is None else shown.of.searched.scale],
            notes=layout.left_out,
            evidence=(
                Evidence(contest.sample, sample_of=sum(pool.sizes))
                if pool.streamed
                else Evidence(pool, np.sort(layout.rows) if sum(layout.dropped) else None, units=layout)
            ),
            engine=contest.engine,
            classes=tuple(
                replace(scored.reported, selected=shown.member) if shown is not None and scored is shown.of else scored.reported
                for scored in contest.classes
            ),
        )

    def compete(self, pool: Pool, layout: Layout, memory_limit: int, rng: np.random.Generator) -> Contest:
        """Score all classes under every labeling of a layout, of two samples or of several, and rank the best."""
        order = rng.permutation(sum(pool.sizes))
        strata = None if pool.design is None else pool.design.strata[pool.design.unit[order]]
        preparations = {scale: Preparation.fit(pool, scale=scale) for scale in SCALES}
        views = self._views(pool, preparations, layout, order, memory_limit, strata)
        classes = without_twins(self.classes_for(pool), preparations)
        products = any(isinstance(searched, ProductsClass) for searched in classes)
        read_columns = partial(column_sums, pool, preparations[None], layout, products=products)
        return self._conclude_contest(pool, classes, preparations, views, read_columns)

    @property
    def batch_rows(self) -> int | None:
        """Pools of more rows are read once, in any order."""
        return self.pair_rows

    def reads_once(self, pool: Pool) -> bool:
        """Whether the rows of a pool are read once, in any order, instead of as often as classes ask for them."""
        if any(isinstance(searched, ProductsClass) for searched in self.classes or ()) and not pool.streamed:
            return False  # asked for: products of columns take two passes
        return sum(pool.sizes) > self.pair_rows and pool.design is None and pool.preprocess is None

    def _compete_in_one_pass(
        self, pool: Pool, layout: Layout, bins: PositionBins, memory_limit: int, rng: np.random.Generator
    ) -> Contest:
        """Score all classes by what one pass over the rows found.

        Everything that must be known before is of a sample of rows, the first ones of a keyed order of all.
        """
        total = sum(pool.sizes)
        count = min(total, max(SAMPLE_ROWS, self.landmarks or 0, self.covariance_rows or 0))
        drawn = KeyedPermutation.draw(total, rng).positions(np.arange(count))
        rows = np.sort(drawn)
        sample = pool if count == total and not pool.streamed else pool.take(rows)
        if count < total:
            sample = replace(sample, open_ended=True)
        preparations = {scale: Preparation.fit(sample, scale=scale) for scale in SCALES}
        views = self._views(sample, preparations, layout, np.searchsorted(rows, drawn), memory_limit)
        classes = without_twins(self.classes_for(pool), preparations)
        classes = [searched for searched in classes if not isinstance(searched, ProductsClass)]  # one pass has single columns
        if not classes and not self.fixed:
            raise InputError("Products of columns need rows in memory. Got rows read in batches; name other classes too.")
        cells: tuple[Cells, ...] = ()
        if any(isinstance(searched, ClassOfColumns) for searched in classes):
            cells = cells_of(columns_of(sample, preparations[None]), sample, layout.count)
        by_geometry = _by_geometry(classes).items()
        groups: list[KernelGroup] = []
        for (scale, _), some in by_geometry:
            view, grids = views[scale], [searched.grid for searched in some if not searched.narrow]
            groups += [KernelGroup.of(scale, view, grids)] if grids else []
            narrow = [searched.grid for searched in some if searched.narrow]
            groups += [KernelGroup.of(scale, among_neighbours(view, grid), [grid]) for grid in narrow]
        fixed = [KernelGroup.of_kernel(views[None], kernel) for kernel in self.fixed]
        plan = OnePass(bins, preparations, (*groups, *fixed), cells)
        summary = summarise(plan, pool.blocks(), total, memory_limit)
        sketches: dict[str | None, dict[object, Sketch]] = {scale: {} for scale in SCALES}
        for group, sums in zip(plan.groups, summary.sums, strict=True):
            sketches[group.scale] |= group.sketches(views[group.scale], sums)
        varied = rows_alone(sample, views[None].order[: self.covariance_rows or COVARIANCE_ROWS])
        read_columns = partial(counted_columns, cells, summary.cells, varied, layout)
        views = {scale: replace(view, sketches=sketches[scale]) for scale, view in views.items()}
        return self._conclude_contest(sample, classes, preparations, views, read_columns)

    def _conclude_contest(
        self,
        sample: Pool,
        classes: Sequence[CompetingClass],
        preparations: Mapping[str | None, Preparation],
        views: Views,
        read_columns: Callable[[], ColumnSums],
    ) -> Contest:
        """Score classes and rank the best."""
        view, layout = views[None], views[None].layout
        members = self.members(classes, views, read_columns)
        scored_classes = tuple(_ScoredClass.of(searched, some, self.penalty_quantile) for searched, some in members)
        ranking = rank_classes([scored.evidence for scored in scored_classes], exhaustive=layout.labels.exhaustive)
        spectral = any(searched.gammas for searched in classes if isinstance(searched, KernelClass))
        engine = Engine.of(
            layout,
            view.count if spectral or view.linear else None,
            view.variance_rows if spectral else None,
            linear=view.linear,
        )
        return Contest(ranking, scored_classes, preparations, engine, sample)

    def _views(
        self,
        pool: Pool,
        preparations: Mapping[str | None, Preparation],
        layout: Layout,
        order: Rows,
        memory_limit: int,
        strata: Rows | None = None,
    ) -> Views:
        """Return a pool in the coordinates of each preparation."""
        sizes = (landmark_count(len(layout.rows), self.landmarks, self.pair_rows), strata, self.pair_rows, self.covariance_rows)
        return {
            scale: View(partial(fitted.transform, pool), layout, order, memory_limit, *sizes)
            for scale, fitted in preparations.items()
        }

    def classes_for(self, pool: Pool) -> Sequence[CompetingClass]:
        """Return the classes that compete on a pool; columns as they came are not what is compared after a transformer."""
        if self.classes is None and pool.preprocess is None:
            return default_classes(len(pool.columns), mixed=bool(pool.categories))
        asked = default_classes(MANY_COLUMNS + 1) if self.classes is None else self.classes
        classes = [searched for searched in asked if isinstance(searched, CompetingClass)]
        if pool.preprocess is not None and any(isinstance(searched, ClassOfColumns) for searched in classes):
            raise InputError(
                "Classes of columns compare the original columns. Got {preprocess} as well; leave one of them out.",
                preprocess=ParameterReference("preprocess"),
            )
        return classes

    def members(
        self, classes: Sequence[CompetingClass], views: Views, read_columns: Callable[[], ColumnSums]
    ) -> Iterator[tuple[CompetingClass, Members]]:
        """Yield every class with its members; columns are read where a class asks for them."""
        for searched, found in self.kernel_members(classes, views):
            yield searched, searched.members(found)
        view = views[None]
        for kernel in self.fixed:
            values = (
                landmark_statistics(view, kernel, (UNREGULARISED,)) if view.linear else pairwise_statistics(view, kernel)[None]
            )
            yield (fixed := FixedClass(kernel)), fixed.members(values)
        of_columns = [searched for searched in classes if isinstance(searched, ClassOfColumns)]
        if of_columns:
            columns = read_columns()
            yield from ((searched, searched.members(columns)) for searched in of_columns)

    def kernel_members(self, classes: Sequence[CompetingClass], views: Views) -> Iterator[tuple[KernelClass, KernelMembers]]:
        """Yield every class of kernels with its members under every relabeling; those of one geometry are computed together."""
        for (scale, _), group in _by_geometry(classes).items():
            view = views[scale]
            pairwise = [] if view.linear else [searched for searched in group if not searched.gammas]
            narrow = [searched for searched in group if view.linear and searched.narrow and not view.sketches]
            landmark = [searched for searched in group if searched not in (*pairwise, *narrow)]
            if pairwise:
                yield from zip(pairwise, pairwise_members(view, [searched.grid for searched in pairwise]), strict=True)
            if landmark:
                yield from zip(landmark, landmark_members(view, [searched.grid for searched in landmark]), strict=True)
            for searched in narrow:
                yield searched, landmark_members(among_neighbours(view, searched.grid), [searched.grid])[0]


def _by_geometry(classes: Sequence[CompetingClass]) -> dict[tuple[str | None, tuple[object, ...]], list[KernelClass]]:
    """Return the classes of kernels that share coordinates and distances."""
    groups: dict[tuple[str | None, tuple[object, ...]], list[KernelClass]] = {}
    for searched in classes:
        if isinstance(searched, KernelClass):
            groups.setdefault((searched.scale, searched.family.geometry), []).append(searched)
    return groups


@dataclass(frozen=True, eq=False)
class _ScoredClass:
    """A class in the contest: what a result shows of it, its evidence less penalty under every relabeling, and its kernels."""

    searched: CompetingClass
    reported: ClassScores
    evidence: ClassEvidence
    kernel: Callable[[int], Kernel] | None

    @classmethod
    def of(cls, searched: CompetingClass, members: Members, quantile: float) -> _ScoredClass:
        """Score every member, and subtract the penalty of the class."""
        evidence = ClassEvidence.of(members.values, weight=searched.weight, quantile=quantile)
        reported = ClassScores(
            name=str(searched),
            label=searched.label,
            coordinates=searched.coordinates,
            bandwidths=members.bandwidths,
            gammas=members.gammas,
            mmd2=members.values[:, 0].copy() if members.squared_mmd else np.empty(0),
            scores=evidence.scores,
            penalty=evidence.penalty,
        )
        return cls(searched, reported, evidence, members.kernel)


@dataclass(frozen=True, eq=False)
class Contest:
    """All classes, scored under common labelings, and the rank of the best."""

    ranking: Ranking
    classes: tuple[_ScoredClass, ...]
    preparations: Mapping[str | None, Preparation]  # of raw and of standardised coordinates
    engine: Engine
    sample: Pool  # the rows in memory: all of them, or a sample of those that are read and not held


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
        scores = scored_class.reported
        gammas = scores.gammas if len(scores.gammas) else np.full(len(scores.scores), UNREGULARISED)
        for j in np.flatnonzero(scores.scores - scores.penalty > threshold + SCORE_TIE):
            evidence = float(scores.scores[j] - scores.penalty)
            able.append(
                (-float(gammas[j]), scored_class.searched.about_origin, scored_class.searched.narrow, -evidence, c, int(j))
            )
    if able:
        *_, c, member = min(able)
        winner = with_kernels[c]
    elif with_kernels:
        winner = max(with_kernels, key=lambda scored: scored.reported.criterion)
        member = winner.reported.best
    else:
        return None
    assert winner.kernel is not None
    return _ShownKernel(winner, member, winner.kernel(member))
