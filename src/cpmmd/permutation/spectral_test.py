"""A frozen kernel tested at several spectral parameters at once: the squared MMD, and its directions divided by their variance.

The kernel was chosen on other rows. Directions and variances look at the pool of the tested rows alone, each parameter's
statistic becomes a tail score over the relabelings, and the largest score is ranked: exact, whatever the parameters.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.parallel import map_apart
from cpmmd.data.design import Design
from cpmmd.kernels.base import Kernel
from cpmmd.permutation.binned import TARGET_BINS, Bins, cut_bins, relabelings
from cpmmd.permutation.directions import whole_pool_directions
from cpmmd.permutation.engine import Engine, KernelTest, left_out
from cpmmd.permutation.labels import Relabelings
from cpmmd.permutation.landmarks import COVARIANCE_ROWS, View, kernel_path, landmark_count
from cpmmd.permutation.paths import PLAIN
from cpmmd.permutation.ranking import Ranking
from cpmmd.permutation.scores import tail_scores
from cpmmd.permutation.unit_bins import unit_bins
from cpmmd.permutation.units import Units

TIE = 1e-6  # scores closer than this count as equal


def spectral_test(
    kernel: Kernel,
    load: Callable[[Rows], Array],
    rows: Rows,
    m: int,
    *,
    gammas: Sequence[float],
    n_permutations: int,
    rng: np.random.Generator,
    memory_limit: int,
    design: Design | None = None,
) -> KernelTest:
    """Test one fixed kernel as :func:`cpmmd.permutation.engine.kernel_test` does, at these spectral parameters and at none."""
    bin_stream, label_stream, sample_stream = rng.spawn(3)
    bins = cut_bins(m, len(rows) - m, bin_stream) if design is None else unit_bins(design, bin_stream, target=TARGET_BINS)
    labels = relabelings(bins, n_permutations, label_stream, memory_limit)
    order, blind = rows[bins.order], sample_stream.permutation(len(rows))
    count = landmark_count(len(order))
    view = View(
        lambda part: load(order[part]),
        load(rows[blind[:COVARIANCE_ROWS]]),
        load(order if count == len(order) else rows[blind[:count]]),
        bins,
        labels,
        memory_limit,
        None if design is None else design.strata[design.unit[blind[:COVARIANCE_ROWS]]],
    )
    ranking = _rank(kernel_path(view, kernel, (PLAIN, *gammas)), labels)
    engine = Engine.of(bins, count, view.variance_rows, linear=view.linear)
    return KernelTest(ranking, (bins.m, bins.n), engine, Units.of(bins, labels, order), left_out(bins))


def rank_matrix(K: Array, bins: Bins, labels: Relabelings, gammas: Sequence[float]) -> Ranking:
    """Rank the observed labeling of a kernel matrix, rows in the order of the bins, in the same way."""

    def statistics(matrix: Array) -> Array:
        return whole_pool_directions(matrix, bins).statistics(bins, labels, (PLAIN, *gammas))

    (values,) = map_apart(statistics, [K])
    return _rank(values, labels)


def _rank(statistics: Array, labels: Relabelings) -> Ranking:
    """Rank the largest tail score over the spectral parameters."""
    return Ranking.of(tail_scores(statistics).max(axis=0), tolerance=TIE, exhaustive=labels.exhaustive)
