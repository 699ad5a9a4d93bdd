"""Rows one by one: which are explained, and how well they are told apart by scores that were learnt from others."""

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
from cpmmd.explain.values import Effect
from cpmmd.kernels.base import Kernel
from cpmmd.procedures.fixed import median_kernel
from cpmmd.procedures.outcome import Evidence, TestResult
from cpmmd.statistics.columns import DataColumn, category_levels, number_values
from cpmmd.statistics.strata import Strata

CONFIDENCE = 0.95
CLASSES = 8  # of a number's pooled ranks
NOT_HELD_OUT = (
    "rows are told apart by a kernel that was chosen on these rows, so how well may flatter (columns and pairs do not look at "
    "the kernel); a method that splits, such as cp-linear, uses rows that had no part in it"
)


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """Rows to explain, prepared as the test prepared them, in an order that does not depend on which sample is called X."""

    pool: Pool
    preparation: Preparation
    kernel: Kernel
    tested: Rows  # all rows of the pool that the test saw
    rows: Rows  # row numbers of the pool, of those that are explained
    strata: Strata  # of those that are explained
    matrix: Array  # the rows as the kernel sees them
    notes: tuple[str, ...]

    def row_numbers(self, rows: Rows) -> Rows:
        """Return the numbers of pool rows in their own sample, as it was passed in."""
        if self.pool.kept is not None:
            return np.asarray(self.pool.kept[rows])
        return np.where(rows < self.pool.m, rows, rows - self.pool.m)


def evidence_of(outcome: TestResult) -> Evidence:
    """Return the data behind an outcome; an error where it has none to explain."""
    if outcome.n_columns is None:
        raise InputError("A kernel matrix says how alike rows are, not what they hold: it has no columns to explain.")
    if outcome.evidence is None:
        raise InputError("A result can be explained while it has its data. Got one without evidence; run the test again.")
    return outcome.evidence


def gather_rows(outcome: TestResult, max_rows: int, rng: np.random.Generator) -> ExplainedRows:
    """Return the rows that an outcome rests on, at most ``max_rows`` of them; the smaller sample gives up to half of those."""
    evidence = evidence_of(outcome)
    pool, tested = evidence.pool, evidence.tested_rows
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
    notes = [NOT_HELD_OUT] if strata.inside and not evidence.held_out else []
    kernel = outcome.kernel
    if kernel is None:
        kernel = median_kernel(matrix, "gaussian")
        notes.append(
            f"the method names no kernel; rows are told apart with a Gaussian at the median distance, {kernel.bandwidth:.4g}"
        )
    if len(rows) < len(tested):
        notes.append(
            f"rows are told apart, the most telling ones named, among {len(rows)} of {len(tested)} tested rows, drawn at random"
        )
    return ExplainedRows(pool, preparation, kernel, tested, rows[order], strata, matrix[order], tuple(notes))


def kernel_effect(material: ExplainedRows, K: Array, rng: np.random.Generator) -> Effect | None:
    """Return how often one half's witness ranks a row of X above one of Y in the other half, both ways together."""
    return cross_fitted(lambda fitted: material.strata.fitted_witness(K, fitted), material.strata, rng)


def one_by_one_effect(columns: Sequence[DataColumn], material: ExplainedRows, rng: np.random.Generator) -> Effect | None:
    """Return how often rows are told apart by the sum of what each column says alone: how much likelier its class is in X."""
    strata = material.strata
    codes = [_codes(material, column) for column in columns] if strata.inside else []

    def scores(fitted: Labels) -> Array:
        total = np.zeros(np.count_nonzero(~fitted))
        weights = strata.row_weights(fitted)
        for code in codes:
            x, y = (
                np.bincount(code[side], weights[side], minlength=int(code.max()) + 1) + 1.0  # a row more, so that none is 0
                for side in (fitted & strata.labels, fitted & ~strata.labels)
            )
            total += (np.log(x / x.sum()) - np.log(y / y.sum()))[code[~fitted]]
        return total

    return cross_fitted(scores, strata, rng)


def _codes(material: ExplainedRows, column: DataColumn) -> Rows:
    """Return the class of each row: the level, or one of CLASSES of ranks, and one more for what is missing."""
    if column.kind == "category":
        return category_levels(material.pool.categories[column.name][material.rows]).codes
    values = number_values(material.pool, material.rows, column)
    there = ~np.isnan(values)
    codes = np.full(len(values), CLASSES)
    if there.any():
        codes[there] = np.minimum((material.strata.ranks(values[there], there) * CLASSES).astype(int), CLASSES - 1)
    return codes


def cross_fitted(scores: Callable[[Labels], Array], strata: Strata, rng: np.random.Generator) -> Effect | None:
    """Return how often scores rank a row of X above one of Y; ``scores`` learns from the rows marked and scores the others.

    Rows are compared with those of their own stratum; halves have whole units. The interval is DeLong's on the logit scale, with
    Student's quantile for the smaller sample. None where rows are not told apart one by one, and with fewer than two units of a
    sample (in a stratum): there are none to learn from and others to tell.
    """
    smaller = min(len(np.unique(strata.unit[side])) for side in (strata.labels, ~strata.labels))
    if not strata.inside or smaller < 2:
        return None
    first = _halves(strata, rng)
    if not (strata.in_both(first) and strata.in_both(~first)):
        return None
    areas, errors, pairs = zip(*(_told(scores(fitted), strata, ~fitted) for fitted in (first, ~first)), strict=True)
    # Both halves' areas come from the same kernel values between them, and are nearly equal where the samples are; so the errors
    # are averaged, as those of one half, not divided by the root of two.
    weights = np.array(pairs) / sum(pairs)
    area, error = (float(sum(w * one for w, one in zip(weights, parts, strict=True))) for parts in (areas, errors))
    if area in (0.0, 1.0):  # the width would be zero; but k disjoint pairs, all told apart, bound the probability by p^k = 2.5%
        bound = ((1 - CONFIDENCE) / 2) ** (1 / smaller)
        return Effect(area, bound, 1.0) if area == 1.0 else Effect(area, 0.0, 1 - bound)
    reach = float(stdtrit(smaller - 1, (1 + CONFIDENCE) / 2)) * error / (area * (1 - area))
    centre = float(logit(area))
    return Effect(area, float(expit(centre - reach)), float(expit(centre + reach)))


def _halves(strata: Strata, rng: np.random.Generator) -> Labels:
    """Mark a random half of each sample in whole units, of each stratum, whichever sample is called X."""
    units = strata.unit if strata.clustered else np.arange(len(strata.unit))  # lots follow the rows where they are units
    _, rows, unit = np.unique(units, return_index=True, return_inverse=True)  # the first row of each unit
    lot, first = rng.random(len(rows)), np.zeros(len(rows), dtype=bool)
    for side in (strata.labels[rows], ~strata.labels[rows]):
        first[unit.ravel()[strata.half(rows[side], lot[side])]] = True
    return np.asarray(first[unit.ravel()])


def _told(values: Array, strata: Strata, of: Labels) -> tuple[float, float, float]:
    """Return the area under the curve of rows ``of``, placed among their stratum's by values, its error, and the number of pairs.

    Errors are DeLong's; of sums over units where rows hang together in them (Obuchowski 1997). Strata weigh by their precision.
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
    """Return each value's rank, ties sharing their mean (scipy.stats does the same, and takes half a second to import)."""
    ordered = np.sort(values)
    below, not_above = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return np.asarray((below + not_above + 1) / 2)


def _variance_of_mean(placements: Array, unit: Rows, clustered: bool) -> float:
    """Return the variance of the mean of placements; a single row or unit has the largest that numbers from 0 to 1 allow."""
    size = len(placements)
    if not clustered:
        return float(placements.var(ddof=1)) / size if size > 1 else 0.25
    sums = np.bincount(np.unique(unit, return_inverse=True)[1].ravel(), weights=placements - placements.mean())
    return float(sums @ sums) / size**2 * len(sums) / (len(sums) - 1) if len(sums) > 1 else 0.25
