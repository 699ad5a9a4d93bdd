"""The p-value of a fixed kernel at any size: one matrix while that is small, streamed tiles and binned permutations beyond."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.text import counted
from cpmmd.data.design import Design
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.tilers import tiler_for
from cpmmd.permutation.binned import (
    MOST_BINS,
    TARGET_BINS,
    Bins,
    bin_sums,
    binned_statistics,
    cut_bins,
    largest_rounding,
    relabelings,
)
from cpmmd.permutation.contrasts import sums_over_units
from cpmmd.permutation.dense import permutation_test, tie_tolerance
from cpmmd.permutation.labels import Relabelings
from cpmmd.permutation.memory import DEFAULT_LIMIT, plan_tiles
from cpmmd.permutation.ranking import Ranking
from cpmmd.permutation.unit_bins import unit_bins
from cpmmd.permutation.units import Units

DENSE_ROWS = 4096  # up to here all rows are permuted, in a matrix of 128 MB
MIDDLE_ROWS = 1000  # rows that tell where the middle of the pool is
# Sums of single-precision values agree to about this share of the statistic's spread; closer ones count as ties.
TIE = 1e-6


@dataclass(frozen=True)
class Engine:
    """How the statistics were computed: from one matrix, row by row, or in bins of rows.

    Attributes
    ----------
    name : str
        ``"dense"`` (one kernel matrix), ``"rows"`` (each row relabelled) or ``"binned"`` (bins relabelled).
    bins : int or None
        Number of bins; None where rows are relabelled.
    bin_rows : int
        Rows of a bin; the mean of them where bins are groups of different sizes.
    landmarks : int or None
        Rows of the pool that kernels were computed through; None where only pairs of rows were used.
    covariance_rows : int or None
        Rows that the variances of spectral members were taken over; None where no member has a spectral parameter.
    linear : bool
        Whether every kernel was computed through landmarks in one pass, at a cost linear in the rows.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> two_sample_test(data.normal(size=(40, 2)), data.normal(size=(50, 2)), method="median", rng=0).engine
    Engine(name='dense', bins=None, bin_rows=1, landmarks=None, covariance_rows=None, linear=False)
    """

    name: str
    bins: int | None = None
    bin_rows: int = 1
    landmarks: int | None = None
    covariance_rows: int | None = None
    linear: bool = False

    @classmethod
    def of(cls, bins: Bins, landmarks: int | None = None, covariance_rows: int | None = None, *, linear: bool = False) -> Engine:
        """Return the engine that relabels these bins.

        Parameters
        ----------
        bins : Bins
            How the rows were cut.
        landmarks : int, optional
            Rows that kernels were computed through.
        covariance_rows : int, optional
            Rows that variances were taken over.
        linear : bool, optional
            Whether landmarks saw every row in one pass.

        Returns
        -------
        Engine
            ``"rows"`` where each bin is one row.
        """
        if bins.size != 1:
            return cls("binned", bins.count, max(1, round(len(bins.order) / bins.count)), landmarks, covariance_rows, linear)
        return cls("rows", landmarks=landmarks, covariance_rows=covariance_rows, linear=linear)


@dataclass(frozen=True, eq=False)
class KernelTest:
    """A fixed kernel's permutation test, and how it was computed."""

    ranking: Ranking
    sizes: tuple[int, int]
    engine: Engine
    units: Units
    notes: tuple[str, ...] = ()


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
) -> KernelTest:
    """Test one fixed kernel.

    Parameters
    ----------
    load
        Gives the prepared matrix of some rows of the pool.
    rows, m
        The rows to test, those of X first, and how many those are.
    design
        Of these rows: which of their relabelings are allowed; None allows all.

    Notes
    -----
    The number of rows decides the engine, unless the memory cannot hold even a small matrix; the result says which it was.
    """
    if len(rows) > DENSE_ROWS or 8 * len(rows) ** 2 > memory_limit:
        return _binned_test(kernel, load, rows, m, n_permutations, rng, memory_limit, design)
    if design is not None:
        return _designed_test(kernel, load, rows, design, n_permutations, rng, memory_limit)
    labels = Relabelings.draw(len(rows), m, n_permutations, rng, memory_limit)
    ranking = permutation_test(kernel.gram(load(rows)), m, labels, overwrite=True)
    return KernelTest(ranking, (m, len(rows) - m), Engine("dense"), Units.of_size(rows, 1, labels))


def _designed_test(
    kernel: Kernel,
    load: Callable[[Rows], Array],
    rows: Rows,
    design: Design,
    n_permutations: int,
    rng: np.random.Generator,
    memory_limit: int,
) -> KernelTest:
    bins = unit_bins(design)
    labels = relabelings(bins, n_permutations, rng, memory_limit)
    ranking = rank_units(kernel.gram(load(rows[bins.order])), bins, labels)
    return KernelTest(ranking, (bins.m, bins.n), Engine("dense"), Units.of(bins, labels, rows[bins.order]))


def rank_units(K: Array, bins: Bins, labels: Relabelings) -> Ranking:
    """Rank the observed statistic among the relabelings of units; the kernel matrix, rows in their order, is overwritten."""
    contrast = bins.contrast
    assert contrast is not None
    if contrast.paired:  # a row with itself is in no pair of pairs; elsewhere the means of strata have it, and its rounding
        np.fill_diagonal(K, 0.0)
    mean = float(K.mean())
    centred = contrast.centre(sums_over_units(K, bins.starts[:-1]))
    tolerance = contrast.centred_scale(labels) * tie_tolerance(centred.between, mean)
    return Ranking.of(centred.statistics(labels), tolerance=tolerance, exhaustive=labels.exhaustive)


def _binned_test(
    kernel: Kernel,
    load: Callable[[Rows], Array],
    rows: Rows,
    m: int,
    n_permutations: int,
    rng: np.random.Generator,
    memory_limit: int,
    design: Design | None,
) -> KernelTest:
    bin_stream, label_stream, sample_stream = rng.spawn(3)
    bins = _bins(m, len(rows) - m, design, bin_stream)
    order = rows[bins.order]
    middle = load(np.sort(sample_stream.choice(rows, min(len(rows), MIDDLE_ROWS), replace=False)))
    plan = plan_tiles(memory_limit, width=middle.shape[1], n_kernels=1, bins=bins.count)
    sums = bin_sums(lambda part: load(order[part]), tiler_for(kernel, middle), bins, plan)[0]
    labels = relabelings(bins, n_permutations, label_stream, memory_limit)
    ranking = rank_bins(sums, bins, labels)
    return KernelTest(ranking, (bins.m, bins.n), Engine.of(bins), Units.of(bins, labels, order), left_out(bins))


def _bins(m: int, n: int, design: Design | None, rng: np.random.Generator) -> Bins:
    return cut_bins(m, n, rng) if design is None else unit_bins(design, rng, target=TARGET_BINS)


def rank_bins(sums: Array, bins: Bins, labels: Relabelings) -> Ranking:
    """Rank the observed statistic among the relabelings of bins; the sums are overwritten."""
    rounding = largest_rounding(sums, bins, labels)
    values = binned_statistics(sums, bins, labels)
    return Ranking.of(values, tolerance=max(rounding, TIE * float(np.ptp(values))), exhaustive=labels.exhaustive)


def left_out(bins: Bins) -> tuple[str, ...]:
    """Say which rows no bin has, if any."""
    if sum(bins.dropped) == 0:
        return ()
    left = f"{counted(bins.dropped[0], 'row')} of the first sample and {bins.dropped[1]} of the second, drawn at random,"
    if bins.contrast is None and max(bins.dropped) >= bins.size:
        each = counted(bins.size, "row")
        return (f"{left} are left out: the smaller sample asks for bins of {each}, and no more than {MOST_BINS} are relabelled",)
    bin_ = f"a bin of {bins.size}" if bins.contrast is None else "a bin of units"
    return (f"{left} do not fill {bin_} and are left out",)
