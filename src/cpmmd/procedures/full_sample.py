"""The full-sample test: complexity-penalised selection repeated under every relabeling, so that no row is given away."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from cpmmd import validation
from cpmmd.errors import InputError
from cpmmd.inputs import Preparation, Samples
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import SelectedKernel
from cpmmd.kernels.manhattan import Manhattan
from cpmmd.kernels.polynomial import Polynomial
from cpmmd.kernels.radius import Radius
from cpmmd.kernels.scaled import ScaledKernel, ScaleFamily
from cpmmd.kernels.tilers import tiler_for
from cpmmd.permutation.binned import TARGET_BINS, Bins, bin_sums, binned_statistics, cut_bins, relabelings
from cpmmd.permutation.dense import PermutationNull
from cpmmd.permutation.engine import describe, left_out
from cpmmd.permutation.memory import plan_tiles
from cpmmd.permutation.normalise import tail_scores
from cpmmd.permutation.paths import MEDIAN_ROWS, Grid, Path, bandwidth_multiples, geometry_paths
from cpmmd.procedures.base import Procedure, RunOptions, conclude
from cpmmd.results import TestResult
from cpmmd.samples import Array, Rows

TIE = 1e-6  # scores closer than this count as equal


@dataclass(frozen=True)
class KernelClass:
    """A one-parameter family on raw or standardised coordinates.

    Parameters
    ----------
    narrowest, widest
        Bandwidths in units of the median distance of the pool.
    fewest_neighbours
        The path ends where rows have fewer effective neighbours on average (or a quarter of a small pool).
    weight
        Share of the level that the class competes for, beside those of the others.
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

    def __str__(self) -> str:
        return f"{self.family} on {'raw' if self.scale is None else 'standardised'} coordinates"


def default_classes() -> tuple[KernelClass, ...]:
    """Give the classes chosen in docs/theory/full-sample.md."""
    return (
        KernelClass(Bandwidth("gaussian"), fewest_neighbours=30),
        KernelClass(Manhattan(), "standard"),
        KernelClass(Polynomial(degree=2), "standard"),
        KernelClass(Radius(), "standard", narrowest=1, widest=1, weight=0.25),
    )


@dataclass(frozen=True)
class FullSampleTest(Procedure):
    """Selects kernel class and bandwidth on all rows, under every relabeling alike.

    Parameters
    ----------
    kernels
        The classes to choose from: families, or :class:`KernelClass` to ask for standardised coordinates.
    fixed
        Kernels chosen on other data (a trained one, say), each one more class without a bandwidth.
    penalty_quantile
        A class's complexity is this quantile of its best score over the relabelings.
    bins
        About how many bins of rows are relabelled; samples of fewer rows are permuted row by row.

    Notes
    -----
    For each class and relabeling the squared MMD is computed on a path of bandwidths, turned into an upper-tail score -log p by
    the first three moments over the relabelings, and maximised over the path: the class's evidence. Less the class's
    complexity, plus the logarithm of its weight, maximised over classes, it is the statistic. Everything else is a symmetric
    function of the pooled rows or of all relabelings together, so the observed statistic is exchangeable with the others under
    the null and its rank is an exact p-value.
    """

    kernels: tuple[KernelClass | ScaleFamily, ...] = field(default_factory=default_classes)
    fixed: tuple[SelectedKernel, ...] = ()
    penalty_quantile: float = 0.9
    bins: int = TARGET_BINS

    def __post_init__(self) -> None:
        listed = self.kernels if isinstance(self.kernels, Sequence) else (self.kernels,)
        classes = tuple(k if isinstance(k, KernelClass) else KernelClass(k) for k in listed)
        object.__setattr__(self, "kernels", classes)
        object.__setattr__(self, "fixed", tuple(self.fixed))
        if not classes and not self.fixed:
            raise InputError("The full-sample test needs at least one kernel class. Got none.")
        validation.open_unit("penalty_quantile", self.penalty_quantile)
        validation.whole("bins", self.bins, at_least=10)

    def run(self, samples: Samples, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Evaluate all paths under common relabelings, score, rank."""
        bin_stream, label_stream, sample_stream = rng.spawn(3)
        bins = cut_bins(samples.m, samples.n, bin_stream, target=self.bins)
        labels = relabelings(bins, options.n_permutations, label_stream)
        some = sample_stream.permutation(samples.m + samples.n)[:MEDIAN_ROWS]
        preparations = {scale: Preparation.fit(samples, scale=scale) for scale in (None, "standard")}
        entrants = self._entrants(samples, preparations, _Relabelled(bins, labels, some, options.memory_limit))
        scores = [tail_scores(entrant.mmd2) for entrant in entrants]
        evidence = np.array([score.max(axis=0) for score in scores])
        weights = np.array([entrant.weight for entrant in entrants])
        penalty = np.quantile(evidence, self.penalty_quantile, axis=1) - np.log(weights)
        total = evidence - penalty[:, None]
        statistic = total.max(axis=0)
        pvalue = float(np.mean(statistic >= statistic[0] - TIE))
        winner = int(np.argmax(total[:, 0]))
        best = int(np.argmax(scores[winner][:, 0]))
        return conclude(
            samples,
            options,
            PermutationNull(float(statistic[0]), statistic[1:], pvalue, exhaustive=False),
            tested_sizes=(bins.m, bins.n),
            kernel=entrants[winner].kernel(best),
            preparation=preparations[entrants[winner].scale],
            notes=left_out(bins),
            tested=np.sort(bins.order) if sum(bins.dropped) else None,
            details={
                "selected": {"class": entrants[winner].name, "mmd2": float(entrants[winner].mmd2[best, 0])},
                "engine": describe(bins),
                "path": [_rows(e, s[:, 0], p) for e, s, p in zip(entrants, scores, penalty, strict=True)],
            },
        )

    def _entrants(self, samples: Samples, preparations: dict[str | None, Preparation], relabelled: _Relabelled) -> list[_Entrant]:
        """Evaluate every class; one column has only one set of coordinates."""
        samplings = {scale: _Rows(samples, fitted, relabelled) for scale, fitted in preparations.items()}
        alone = len(preparations[None].features) == 1
        groups: dict[tuple[object, ...], list[KernelClass]] = {}
        for kernel in self.kernels:
            assert isinstance(kernel, KernelClass)
            chosen = replace(kernel, scale=None) if alone and not kernel.family.about_origin else kernel
            group = groups.setdefault((chosen.scale, chosen.family.geometry), [])
            if chosen not in group:
                group.append(chosen)
        entrants = []
        for (scale, _), classes in groups.items():
            rows = samplings[scale]  # type: ignore[index]
            bins, labels, limit = relabelled.bins, relabelled.labels, relabelled.memory_limit
            paths = geometry_paths(rows.load, [c.grid for c in classes], bins, labels, rows.sample, limit)
            entrants += [
                _Entrant(str(c), c.scale, path.mmd2, path=path, weight=c.weight) for c, path in zip(classes, paths, strict=True)
            ]
        return entrants + [_fixed_entrant(kernel, samplings[None], relabelled) for kernel in self.fixed]


@dataclass(frozen=True, eq=False)
class _Relabelled:
    """The relabelings common to all classes, some rows for medians, and the memory."""

    bins: Bins
    labels: Array
    some: Rows
    memory_limit: int


@dataclass(frozen=True, eq=False)
class _Rows:
    """The pool in one set of coordinates, in the order of the bins."""

    samples: Samples
    preparation: Preparation
    relabelled: _Relabelled

    def load(self, part: slice) -> Array:
        """Give a slice of the rows."""
        return self.preparation.transform(self.samples, self.relabelled.bins.order[part])

    @cached_property
    def sample(self) -> Array:
        """Some rows, chosen without looking at labels."""
        return self.preparation.transform(self.samples, self.relabelled.some)


@dataclass(frozen=True, eq=False)
class _Entrant:
    """A class under all relabelings: a path of bandwidths, or one fixed kernel."""

    name: str
    scale: str | None
    mmd2: Array
    path: Path | None = None
    fixed: SelectedKernel | None = None
    weight: float = 1.0

    def kernel(self, position: int) -> SelectedKernel:
        """Give the kernel at one position of the path."""
        if self.path is None:
            assert self.fixed is not None
            return self.fixed
        return ScaledKernel(self.path.family, float(self.path.sigmas[position]))


def _fixed_entrant(kernel: SelectedKernel, rows: _Rows, relabelled: _Relabelled) -> _Entrant:
    bins = relabelled.bins
    plan = plan_tiles(relabelled.memory_limit, width=rows.sample.shape[1], n_kernels=1, bins=bins.count)
    sums = bin_sums(rows.load, tiler_for(kernel, rows.sample), bins, plan)
    return _Entrant(f"fixed: {kernel}", None, binned_statistics(sums[0], bins, relabelled.labels)[None], fixed=kernel)


def _rows(entrant: _Entrant, scores: Array, penalty: float) -> dict[str, Any]:
    sigmas = [] if entrant.path is None else entrant.path.sigmas.tolist()
    return {
        "class": entrant.name,
        "sigma": sigmas,
        "mmd2": entrant.mmd2[:, 0].tolist(),
        "score": scores.tolist(),
        "penalty": float(penalty),
    }
