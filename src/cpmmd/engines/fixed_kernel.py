"""The p-value of a fixed kernel at any size: one matrix while that is small, streamed tiles and relabelled bins beyond."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.parallel import map_apart
from cpmmd.data.design import Design
from cpmmd.draws.layout import Layout
from cpmmd.engines.dense import rank_matrix
from cpmmd.engines.directions import whole_pool_directions
from cpmmd.engines.landmarks import landmark_count, landmark_statistics
from cpmmd.engines.members import UNREGULARISED, View
from cpmmd.engines.memory import DEFAULT_LIMIT, plan_tiles
from cpmmd.engines.tiles import tile_statistics, tile_sums
from cpmmd.evidence import SCORE_TIE, Ranking, tail_scores
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.tilers import tiler_for

DENSE_ROWS = 4096  # up to here all rows are permuted, in a matrix of 128 MB
MIDDLE_ROWS = 1000  # rows that tell where the middle of the pool is


@dataclass(frozen=True)
class Engine:
    """How the statistics were computed: from one matrix, row by row, or in bins of rows."""

    name: str  #: "dense" (one kernel matrix), "rows" (each row relabelled) or "binned" (bins relabelled)
    bins: int | None = None  #: number of bins; None where rows are relabelled
    bin_rows: int = 1  #: rows of a bin; the mean of them where bins are groups of different sizes
    landmarks: int | None = None  #: rows of the pool that kernels were computed through; None where only pairs of rows were used
    covariance_rows: int | None = None  #: rows that variances were taken over; None where no member has a spectral parameter
    linear: bool = False  #: whether every kernel was computed through landmarks in one pass, at a cost linear in the rows

    @classmethod
    def of(
        cls, layout: Layout, landmarks: int | None = None, covariance_rows: int | None = None, *, linear: bool = False
    ) -> Engine:
        """Return the engine that relabels the units of a layout."""
        if layout.size != 1:
            rows = max(1, round(len(layout.rows) / layout.count))
            return cls("binned", layout.count, rows, landmarks, covariance_rows, linear)
        return cls("rows", landmarks=landmarks, covariance_rows=covariance_rows, linear=linear)


@dataclass(frozen=True, eq=False)
class KernelTest:
    """A fixed kernel's permutation test, what it relabelled, and how it was computed."""

    ranking: Ranking
    layout: Layout
    engine: Engine


def kernel_test(
    kernel: Kernel,
    load: Callable[[Rows], Array],
    rows: Rows,
    m: int,
    *,
    n_permutations: int,
    rng: np.random.Generator,
    memory_limit: int = DEFAULT_LIMIT,
    design: Design | None = None,
    gammas: Sequence[float] = (),
) -> KernelTest:
    """Test one fixed kernel on ``rows`` of a pool, the first ``m`` of which are of X, under the relabelings of a design.

    ``load`` gives the prepared matrix of some rows of the pool; ``design`` is that of the tested rows, and None allows all
    relabelings. The number of rows decides the engine, unless the memory cannot hold even a small matrix; the result says which
    it was. With ``gammas`` the kernel is tested at these spectral parameters and at none: directions and variances look at the
    pool of the tested rows alone, each parameter's statistic becomes a tail score over the relabelings, and the largest score is
    ranked, which is exact whatever the parameters.
    """
    n = len(rows) - m
    if not gammas and len(rows) <= DENSE_ROWS and 8 * len(rows) ** 2 <= memory_limit:
        layout = Layout.of_all(m, n, design).draw(n_permutations, rng, memory_limit).of(rows)
        return KernelTest(rank_matrix(kernel.gram(load(layout.rows)), layout, overwrite=True), layout, Engine("dense"))
    unit_stream, label_stream, sample_stream = rng.spawn(3)
    layout = Layout.cut(m, n, design, unit_stream).draw(n_permutations, label_stream, memory_limit).of(rows)
    if gammas:
        blind = sample_stream.permutation(len(rows))
        strata = None if design is None else design.strata[design.unit[blind]]
        view = View(load, layout, rows[blind], memory_limit, landmark_count(len(layout.rows)), strata)
        ranking = _rank_scores(landmark_statistics(view, kernel, (UNREGULARISED, *gammas)), layout)
        return KernelTest(ranking, layout, Engine.of(layout, view.count, view.variance_rows, linear=view.linear))
    middle = load(np.sort(sample_stream.choice(rows, min(len(rows), MIDDLE_ROWS), replace=False)))
    plan = plan_tiles(memory_limit, width=middle.shape[1], n_kernels=1, bins=layout.count)
    (sums,) = tile_sums(lambda part: load(layout.rows[part]), tiler_for(kernel, middle), layout, plan)
    values, tolerance = tile_statistics(sums, layout)
    ranking = Ranking.of(values, tolerance=tolerance, exhaustive=layout.labels.exhaustive)
    return KernelTest(ranking, layout, Engine.of(layout))


def rank_spectral(K: Array, layout: Layout, gammas: Sequence[float]) -> Ranking:
    """Rank the observed labeling of a kernel matrix, rows in the order of the layout, over spectral parameters."""

    def statistics(matrix: Array) -> Array:
        return whole_pool_directions(matrix, layout).statistics(layout, (UNREGULARISED, *gammas))

    (values,) = map_apart(statistics, [K])
    return _rank_scores(values, layout)


def _rank_scores(statistics: Array, layout: Layout) -> Ranking:
    """Rank the largest tail score over the spectral parameters."""
    return Ranking.of(tail_scores(statistics).max(axis=0), tolerance=SCORE_TIE, exhaustive=layout.labels.exhaustive)
