"""The full-sample test: complexity-penalised selection repeated under every relabeling, so that no row is given away."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.errors import InputError
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.scaled import ScaledKernel, ScaleFamily
from cpmmd.kernels.tilers import tiler_for
from cpmmd.permutation.binned import TARGET_BINS, Bins, bin_sums, binned_statistics, cut_bins, relabelings
from cpmmd.permutation.engine import Engine, left_out
from cpmmd.permutation.labels import Relabelings
from cpmmd.permutation.memory import plan_tiles
from cpmmd.permutation.paths import MEDIAN_ROWS, Path, geometry_paths
from cpmmd.permutation.ranking import Ranking
from cpmmd.permutation.scores import tail_scores
from cpmmd.procedures.base import Method, Procedure, RunOptions
from cpmmd.procedures.classes import KernelClass, default_classes
from cpmmd.procedures.findings import ClassPath, Evidence
from cpmmd.procedures.outcome import TestOutcome

TIE = 1e-6  # scores closer than this count as equal


@dataclass(frozen=True)
class FullSampleTest(Procedure):
    """Selects kernel class and bandwidth on all rows, under every relabeling alike.

    Parameters
    ----------
    classes : tuple of KernelClass or kernel families
        What to choose from: families, or :class:`KernelClass` to ask for standardised coordinates.
    fixed : tuple of Kernel
        Kernels chosen on other data (a trained one, say), each one more class without a bandwidth.
    penalty_quantile : float
        A class's complexity is this quantile of its best score over the relabelings.
    bins : int
        About how many bins of rows are relabelled; samples of fewer rows are permuted row by row.

    Notes
    -----
    For each class and relabeling the squared MMD is computed on a path of bandwidths, turned into an upper-tail score -log p by
    the first three moments over the relabelings, and maximised over the path: the class's evidence. Less the class's
    complexity, plus the logarithm of its weight, maximised over classes, it is the statistic. Everything else is a symmetric
    function of the pooled rows or of all relabelings together, so the observed statistic is exchangeable with the others under
    the null and its rank is an exact p-value.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Bandwidth, FullSampleTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(60, 2)), data.normal(1, 1, size=(60, 2))
    >>> two_sample_test(x, y, method=FullSampleTest(classes=(Bandwidth(),)), rng=0).pvalue
    0.001
    """

    classes: tuple[KernelClass | ScaleFamily, ...] = field(default_factory=default_classes)
    fixed: tuple[Kernel, ...] = ()
    penalty_quantile: float = 0.9
    bins: int = TARGET_BINS

    citations = ("ni2026kernel", "domingo2025cheap")
    statistic_meaning = "the best class's score -log p less its penalty"

    def __post_init__(self) -> None:
        listed = self.classes if isinstance(self.classes, Sequence) else (self.classes,)
        object.__setattr__(self, "classes", tuple(c if isinstance(c, KernelClass) else KernelClass(c) for c in listed))
        object.__setattr__(self, "fixed", tuple(self.fixed))
        if not self.classes and not self.fixed:
            raise InputError("The full-sample test needs at least one kernel class. Got none.")
        validation.open_unit("penalty_quantile", self.penalty_quantile)
        validation.whole("bins", self.bins, at_least=10)

    @classmethod
    def methods(cls) -> Mapping[str, Method]:
        """Return the default of the library."""
        return {"cp-full": Method(cls, "CP-MMD on all rows: class and bandwidth chosen under every relabeling (the default)")}

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestOutcome:
        """Evaluate all paths under common relabelings, score, rank."""
        bin_stream, label_stream, sample_stream = rng.spawn(3)
        bins = cut_bins(pool.m, pool.n, bin_stream, target=self.bins)
        labels = relabelings(bins, options.n_permutations, label_stream, options.memory_limit)
        some = sample_stream.permutation(pool.m + pool.n)[:MEDIAN_ROWS]
        preparations = {scale: Preparation.fit(pool, scale=scale) for scale in (None, "standard")}
        entrants = self._entrants(pool, preparations, _Relabelled(bins, labels, some, options.memory_limit))
        contest = _contest(entrants, self.penalty_quantile)
        winner, best = contest.winner
        return self.conclude(
            pool,
            options,
            Ranking.of(contest.statistic, tolerance=TIE, exhaustive=labels.exhaustive),
            tested_sizes=(bins.m, bins.n),
            kernel=entrants[winner].kernel(best),
            preparation=preparations[entrants[winner].scale],
            notes=left_out(bins),
            evidence=Evidence(pool, np.sort(bins.order) if sum(bins.dropped) else None),
            engine=Engine.of(bins),
            classes=contest.class_paths(),
        )

    def _entrants(self, pool: Pool, preparations: dict[str | None, Preparation], relabelled: _Relabelled) -> list[_Entrant]:
        """Evaluate every class, those of one geometry together."""
        coordinates = {scale: _Coordinates(pool, fitted, relabelled) for scale, fitted in preparations.items()}
        entrants = []
        for scale, classes in self._groups(one_column=len(preparations[None].features) == 1):
            rows = coordinates[scale]
            grids, limit = [c.grid for c in classes], relabelled.memory_limit
            paths = geometry_paths(rows.load, grids, relabelled.bins, relabelled.labels, rows.sample, limit)
            entrants += [_Entrant.of_class(c, path) for c, path in zip(classes, paths, strict=True)]
        return entrants + [_fixed_entrant(kernel, coordinates[None], relabelled) for kernel in self.fixed]

    def _groups(self, *, one_column: bool) -> list[tuple[str | None, list[KernelClass]]]:
        """Return the classes by coordinates and geometry; one column has only one set of coordinates."""
        groups: dict[tuple[str | None, tuple[object, ...]], list[KernelClass]] = {}
        for one in self.classes:
            assert isinstance(one, KernelClass)
            chosen = replace(one, scale=None) if one_column and not one.family.about_origin else one
            group = groups.setdefault((chosen.scale, chosen.family.geometry), [])
            if chosen not in group:
                group.append(chosen)
        return [(scale, classes) for (scale, _), classes in groups.items()]


@dataclass(frozen=True, eq=False)
class _Relabelled:
    """The relabelings common to all classes, some rows for medians, and the memory."""

    bins: Bins
    labels: Relabelings
    some: Rows
    memory_limit: int


@dataclass(frozen=True, eq=False)
class _Coordinates:
    """The pool in one set of coordinates, in the order of the bins."""

    pool: Pool
    preparation: Preparation
    relabelled: _Relabelled

    def load(self, part: slice) -> Array:
        """Return a slice of the rows."""
        return self.preparation.transform(self.pool, self.relabelled.bins.order[part])

    @cached_property
    def sample(self) -> Array:
        """Some rows, chosen without looking at labels."""
        return self.preparation.transform(self.pool, self.relabelled.some)


@dataclass(frozen=True, eq=False)
class _Entrant:
    """A class under all relabelings: a path of bandwidths, or one fixed kernel."""

    name: str
    label: str
    mmd2: Array
    scale: str | None = None
    coordinates: str = ""
    path: Path | None = None
    fixed: Kernel | None = None
    weight: float = 1.0

    @classmethod
    def of_class(cls, one: KernelClass, path: Path) -> _Entrant:
        """Return a class with its path."""
        return cls(str(one), one.label, path.mmd2, one.scale, one.coordinates, path=path, weight=one.weight)

    @property
    def bandwidths(self) -> Array:
        """Of the path; none for a fixed kernel."""
        return np.empty(0) if self.path is None else self.path.bandwidths

    def kernel(self, position: int) -> Kernel:
        """Return the kernel at one position of the path."""
        if self.fixed is not None:
            return self.fixed
        assert self.path is not None
        return ScaledKernel(self.path.family, float(self.path.bandwidths[position]))


def _fixed_entrant(kernel: Kernel, rows: _Coordinates, relabelled: _Relabelled) -> _Entrant:
    bins = relabelled.bins
    plan = plan_tiles(relabelled.memory_limit, width=rows.sample.shape[1], n_kernels=1, bins=bins.count)
    sums = bin_sums(rows.load, tiler_for(kernel, rows.sample), bins, plan)
    name = f"fixed: {kernel}"
    return _Entrant(name, name, binned_statistics(sums[0], bins, relabelled.labels)[None], fixed=kernel)


@dataclass(frozen=True, eq=False)
class _Contest:
    """The classes' scores (member x relabeling) and penalties."""

    entrants: list[_Entrant]
    scores: list[Array]
    penalties: Array

    @cached_property
    def total(self) -> Array:
        """Evidence less penalty, class x relabeling."""
        return np.array([score.max(axis=0) for score in self.scores]) - self.penalties[:, None]

    @property
    def statistic(self) -> Array:
        """The best class under each relabeling."""
        return np.asarray(self.total.max(axis=0))

    @property
    def winner(self) -> tuple[int, int]:
        """The class that wins under the labels as they came, and its best member."""
        winner = int(np.argmax(self.total[:, 0]))
        return winner, int(np.argmax(self.scores[winner][:, 0]))

    def class_paths(self) -> tuple[ClassPath, ...]:
        """Return what each class has to show under the labels as they came."""
        return tuple(
            ClassPath(e.name, e.label, e.coordinates, e.bandwidths, e.mmd2[:, 0], score[:, 0], float(penalty))
            for e, score, penalty in zip(self.entrants, self.scores, self.penalties, strict=True)
        )


def _contest(entrants: list[_Entrant], penalty_quantile: float) -> _Contest:
    """Score every member, and take each class's own null quantile, less the logarithm of its weight, as its penalty."""
    scores = [tail_scores(entrant.mmd2) for entrant in entrants]
    evidence = np.array([score.max(axis=0) for score in scores])
    weights = np.array([entrant.weight for entrant in entrants])
    return _Contest(entrants, scores, np.quantile(evidence, penalty_quantile, axis=1) - np.log(weights))
