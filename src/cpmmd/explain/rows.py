"""The rows that are explained, and the AUC by which scores separate rows that they were not fitted to."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, stdtrit

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.errors import InputError
from cpmmd.explain.values import AUC
from cpmmd.kernels.base import Kernel
from cpmmd.procedures.fixed import median_kernel
from cpmmd.procedures.outcome import Evidence, TestResult
from cpmmd.statistics.columns import DataColumn, category_levels, number_values
from cpmmd.statistics.strata import Strata

CONFIDENCE = 0.95
CLASSES = 8  # of a number's pooled ranks
NOT_HELD_OUT = (
    "the AUC may be optimistic, because its kernel was chosen on the same rows (columns and pairs do not use the kernel); "
    "a method that splits, such as cp-linear, holds rows out"
)


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """Rows to explain, prepared as in the test, in an order that does not depend on which sample is called X."""

    pool: Pool
    preparation: Preparation
    kernel: Kernel
    tested: Rows  # all rows of the pool that the test saw
    rows: Rows  # rows of the pool that are explained
    strata: Strata  # of the explained rows
    matrix: Array  # the rows as the kernel sees them
    notes: tuple[str, ...]

    def row_numbers(self, rows: Rows) -> Rows:
        """Return the numbers of pool rows in their own sample, as it was passed in."""
        if self.pool.kept is not None:
            return np.asarray(self.pool.kept[rows])
        return np.where(rows < self.pool.m, rows, rows - self.pool.m)


def tested_rows_of(outcome: TestResult) -> Evidence:
    """Return the data behind an outcome; an error where there are none to explain."""
    if outcome.n_columns is None:
        raise InputError("The test of a kernel matrix has no columns to explain. Pass the data to two_sample_test instead.")
    if outcome.evidence is None:
        raise InputError("A result can be explained only while it holds its data. Got a result without data; run the test again.")
    return outcome.evidence


def gather_rows(outcome: TestResult, max_rows: int, rng: np.random.Generator) -> ExplainedRows:
    """Return the rows that an outcome rests on, at most ``max_rows`` of them; the smaller sample gives up to half of those."""
    data = tested_rows_of(outcome)
    pool, tested = data.pool, data.tested_rows
    rows = tested
    if len(tested) > max_rows:
        x, y = tested[tested < pool.m], tested[tested >= pool.m]
        of_x = min(len(x), max(max_rows // 2, max_rows - len(y)))
        rows = np.sort(np.concatenate([rng.permutation(x)[:of_x], rng.permutation(y)[: max_rows - of_x]]))
    preparation = outcome.preparation or Preparation.fit(pool)
    matrix = np.ascontiguousarray(preparation.transform(pool, rows))
    # by their values alone, so that rounding does not depend on which sample is called X
    order = np.argsort(matrix.view(np.dtype((np.void, matrix.dtype.itemsize * matrix.shape[1]))).ravel(), kind="stable")
    strata = Strata.of(pool, rows[order])
    notes = []
    kernel = outcome.kernel
    if kernel is None:
        kernel = median_kernel(matrix, "gaussian")
        notes.append(f"the method selects no kernel; the witness uses a Gaussian at the median distance, {kernel.bandwidth:.4g}")
    if len(rows) < len(tested):
        notes.append(f"the AUC and the named rows are from {len(rows)} of {len(tested)} tested rows, drawn at random")
    return ExplainedRows(pool, preparation, kernel, tested, rows[order], strata, matrix[order], tuple(notes))


def estimate_kernel_auc(material: ExplainedRows, K: Array, rng: np.random.Generator) -> AUC | None:
    """Return the AUC of the witness of one half of the rows on the other half, both ways together."""
    return cross_fitted(lambda fitted: material.strata.fitted_witness(K, fitted), material.strata, rng)


def estimate_marginal_auc(columns: Sequence[DataColumn], material: ExplainedRows, rng: np.random.Generator) -> AUC | None:
    """Return the AUC of the sum over columns of the log ratio of class frequencies, each column alone."""
    strata = material.strata
    codes = [_codes(material, column) for column in columns] if strata.inside else []

    def scores(fitted: Labels) -> Array:
        total = np.zeros(np.count_nonzero(~fitted))
        weights = strata.row_weights(fitted)
        for code in codes:
            x, y = (
                np.bincount(code[side], weights[side], minlength=int(code.max()) + 1) + 1.0  # no class is empty
                for side in (fitted & strata.labels, fitted & ~strata.labels)
            )
            total += (np.log(x / x.sum()) - np.log(y / y.sum()))[code[~fitted]]
        return total

    return cross_fitted(scores, strata, rng)


def _codes(material: ExplainedRows, column: DataColumn) -> Rows:
    """Return the class of each row: its level, or one of CLASSES of ranks, and a class of missing values."""
    if column.kind == "category":
        return category_levels(material.pool.categories[column.name][material.rows]).codes
    values = number_values(material.pool, material.rows, column)
    there = ~np.isnan(values)
    codes = np.full(len(values), CLASSES)
    if there.any():
        codes[there] = np.minimum((material.strata.ranks(values[there], there) * CLASSES).astype(int), CLASSES - 1)
    return codes


def cross_fitted(scores: Callable[[Labels], Array], strata: Strata, rng: np.random.Generator) -> AUC | None:
    """Return the cross-fitted AUC of X against Y; ``scores`` is fitted to the rows marked and scores the others.

    Rows are compared inside their stratum; halves have whole units. The interval is DeLong's on the logit scale, with Student's
    quantile for the smaller sample. None for pairs, for strata of few rows, and with fewer than two units of a sample.
    """
    smaller = min(len(np.unique(strata.unit[side])) for side in (strata.labels, ~strata.labels))
    if not strata.inside or smaller < 2:
        return None
    first = _halves(strata, rng)
    if not (strata.in_both(first) and strata.in_both(~first)):
        return None
    areas, errors, pairs = zip(*(_auc_of(scores(fitted), strata, ~fitted) for fitted in (first, ~first)), strict=True)
    # Both halves use the same kernel values between them, so that their areas are nearly equal where the samples are. So errors
    # are averaged, not divided by the root of two.
    weights = np.array(pairs) / sum(pairs)
    area, error = (float(sum(w * part for w, part in zip(weights, parts, strict=True))) for parts in (areas, errors))
    if area in (0.0, 1.0):  # the width would be zero, but k disjoint pairs, all ranked right, bound the probability: p^k = 2.5%
        bound = ((1 - CONFIDENCE) / 2) ** (1 / smaller)
        return AUC(area, bound, 1.0) if area == 1.0 else AUC(area, 0.0, 1 - bound)
    reach = float(stdtrit(smaller - 1, (1 + CONFIDENCE) / 2)) * error / (area * (1 - area))
    centre = float(logit(area))
    return AUC(area, float(expit(centre - reach)), float(expit(centre + reach)))


def _halves(strata: Strata, rng: np.random.Generator) -> Labels:
    """Mark a random half of each sample, in whole units and inside strata, whichever sample is called X."""
    units = strata.unit if strata.clustered else np.arange(len(strata.unit))  # where rows are units, lots follow the rows
    _, rows, unit = np.unique(units, return_index=True, return_inverse=True)  # the first row of each unit
    lot, first = rng.random(len(rows)), np.zeros(len(rows), dtype=bool)
    for side in (strata.labels[rows], ~strata.labels[rows]):
        first[unit.ravel()[strata.half(rows[side], lot[side])]] = True
    return np.asarray(first[unit.ravel()])


def _auc_of(values: Array, strata: Strata, of: Labels) -> tuple[float, float, float]:
    """Return the AUC of the values of rows ``of`` inside strata, its standard error, and the number of pairs of rows.

    Errors are DeLong's, of sums over units where those have several rows (Obuchowski 1997). Strata are weighted by precision.
    """
    labels, unit, stratum = strata.labels[of], strata.unit[of], strata.of_row[of]
    order = np.argsort(stratum, kind="stable")
    areas, errors, sizes = [], [], []
    for rows in np.split(order, np.flatnonzero(np.diff(stratum[order])) + 1):
        x, y = rows[labels[rows]], rows[~labels[rows]]
        if not len(x) or not len(y):
            continue
        ranks = _ranks(values[np.concatenate([x, y])])
        of_x = (ranks[: len(x)] - _ranks(values[x])) / len(y)
        of_y = 1 - (ranks[len(x) :] - _ranks(values[y])) / len(x)
        variances = (_variance_of_mean(placed, unit[side], strata.clustered) for placed, side in ((of_x, x), (of_y, y)))
        areas.append(float(of_x.mean()))
        errors.append(math.sqrt(sum(variances)))
        sizes.append((len(x), len(y)))
    m, n = np.array(sizes).T
    shares = m * n / (m + n) / np.sum(m * n / (m + n))
    return float(shares @ areas), float(np.linalg.norm(shares * errors)), float(np.sum(m * n))


def _ranks(values: Array) -> Array:
    """Return each value's rank, ties sharing their mean (importing scipy.stats for it would take half a second)."""
    ordered = np.sort(values)
    below, not_above = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return np.asarray((below + not_above + 1) / 2)


def _variance_of_mean(placements: Array, unit: Rows, clustered: bool) -> float:
    """Return the variance of the mean of placements; of a single row or unit, the largest of numbers from 0 to 1."""
    size = len(placements)
    if not clustered:
        return float(placements.var(ddof=1)) / size if size > 1 else 0.25
    sums = np.bincount(np.unique(unit, return_inverse=True)[1].ravel(), weights=placements - placements.mean())
    return float(sums @ sums) / size**2 * len(sums) / (len(sums) - 1) if len(sums) > 1 else 0.25
