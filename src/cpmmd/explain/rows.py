"""The witness of each row, and how well it tells rows it has not seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.special import expit, logit, stdtrit

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.errors import InputError
from cpmmd.explain.strata import Strata
from cpmmd.explain.values import Effect
from cpmmd.kernels.base import Kernel
from cpmmd.procedures.one_kernel import median_kernel
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.statistics.mmd import witness

CONFIDENCE = 0.95


def draw_rows(labels: Labels, at_most: int, rng: np.random.Generator) -> Rows:
    """Draw rows of both samples, ``at_most`` in all, ascending; the smaller sample gives up to half of them."""
    x, y = np.flatnonzero(labels), np.flatnonzero(~labels)
    if len(labels) <= at_most:
        return np.arange(len(labels))
    of_x = min(len(x), max(at_most // 2, at_most - len(y)))
    chosen = [rng.permutation(x)[:of_x], rng.permutation(y)[: at_most - of_x]]
    return np.sort(np.concatenate(chosen))


def own_order(matrix: Array) -> Rows:
    """Return an order of rows by their values alone, so that rounding does not depend on which sample is called X."""
    rows = np.ascontiguousarray(matrix)
    keys = rows.view(np.dtype((np.void, rows.dtype.itemsize * rows.shape[1]))).ravel()
    return np.argsort(keys, kind="stable")


@dataclass(frozen=True, eq=False)
class _Fold:
    """One half of the rows under the other half's witness: placements of its rows (DeLong's components)."""

    of_x: Array
    of_y: Array
    units_x: Rows | None = None
    units_y: Rows | None = None

    @property
    def area(self) -> float:
        return float(self.of_x.mean())

    @property
    def error(self) -> float:
        """DeLong's standard error of the area; of sums over units where rows hang together in them (Obuchowski 1997)."""
        parts = ((self.of_x, self.units_x), (self.of_y, self.units_y))
        return math.sqrt(sum(_variance_of_mean(placements, units) for placements, units in parts))

    @property
    def pairs(self) -> float:
        return float(len(self.of_x) * len(self.of_y))


@dataclass(frozen=True, eq=False)
class _InStrata:
    """Rows placed among those of their own stratum: a fold for each that has both samples, and what it is weighed by."""

    folds: list[_Fold]

    @property
    def _shares(self) -> Array:
        precision = np.array([len(f.of_x) * len(f.of_y) / (len(f.of_x) + len(f.of_y)) for f in self.folds])
        return np.asarray(precision / precision.sum())

    @property
    def area(self) -> float:
        return float(self._shares @ [fold.area for fold in self.folds])

    @property
    def error(self) -> float:
        return float(np.linalg.norm(self._shares * [fold.error for fold in self.folds]))

    @property
    def pairs(self) -> float:
        return sum(fold.pairs for fold in self.folds)


def cross_fitted_effect(
    K: Array, labels: Labels, rng: np.random.Generator, units: Rows | None = None, strata: Strata | None = None
) -> Effect | None:
    """Return how often one half's witness ranks a row of X above one of Y in the other half, both ways together.

    Where a design has ``units`` of rows that hang together, halves have whole units and errors are those of sums over units.
    Where it has ``strata``, rows are compared with those of their own stratum, by a witness of samples of one mix of strata.
    The interval is DeLong's on the logit scale, with Student's quantile for the smaller sample. The two halves' areas come from
    the same kernel values between them, and are nearly equal where the samples are; so the errors are averaged, as those of
    one half, not divided by the root of two. When all pairs are told apart the width would be zero; the k disjoint pairs of the
    smaller sample, all told apart, then bound the probability by p^k = 2.5%.
    """

    def scores(fitted: Labels) -> Array:
        if strata is not None:
            return np.asarray(K[~fitted] @ (strata.weights(fitted) * np.where(labels, 1.0, -1.0)))
        return witness(K[np.ix_(~fitted, fitted & labels)], K[np.ix_(~fitted, fitted & ~labels)])

    return cross_fitted(scores, labels, rng, units, strata)


def cross_fitted(
    scores: Callable[[Labels], Array],
    labels: Labels,
    rng: np.random.Generator,
    units: Rows | None = None,
    strata: Strata | None = None,
) -> Effect | None:
    """Return how often scores rank a row of X above one of Y; ``scores`` learns from the rows marked and scores the others.

    None with fewer than two rows, or units, of a sample (in a stratum): there are none to learn from and others to tell.
    """
    smaller = min(np.count_nonzero(side) if units is None else len(np.unique(units[side])) for side in (labels, ~labels))
    if smaller < 2:
        return None
    first = _halves(labels, rng, units, None if strata is None else strata.of_row)
    folds: list[_Fold | _InStrata] = []
    for fitted in (first, ~first):
        told = labels[~fitted], None if units is None else units[~fitted]
        if strata is None:
            folds.append(_fold(scores(fitted), *told))
        elif strata.in_both(fitted) and strata.in_both(~fitted):
            folds.append(_fold_in_strata(scores(fitted), *told, strata.of_row[~fitted]))
        else:
            return None
    pairs = np.array([fold.pairs for fold in folds])
    weights = pairs / pairs.sum()
    area = float(sum(w * f.area for w, f in zip(weights, folds, strict=True)))
    error = float(sum(w * f.error for w, f in zip(weights, folds, strict=True)))
    if area in (0.0, 1.0):
        bound = ((1 - CONFIDENCE) / 2) ** (1 / smaller)
        return Effect(area, bound, 1.0) if area == 1.0 else Effect(area, 0.0, 1 - bound)
    reach = float(stdtrit(smaller - 1, (1 + CONFIDENCE) / 2)) * error / (area * (1 - area))
    centre = float(logit(area))
    return Effect(area, float(expit(centre - reach)), float(expit(centre + reach)))


def _halves(labels: Labels, rng: np.random.Generator, units: Rows | None = None, stratum: Rows | None = None) -> Labels:
    """Mark a random half of each sample, of each stratum and whole units where there are any, whichever sample is called X."""
    if units is not None:
        _, first_row, number = np.unique(units, return_index=True, return_inverse=True)
        of_units = _halves(labels[first_row], rng, None, None if stratum is None else stratum[first_row])
        return np.asarray(of_units[number.ravel()])
    lot, first = rng.random(len(labels)), np.zeros(len(labels), dtype=bool)
    for side in (labels, ~labels):
        rows = np.flatnonzero(side)
        if stratum is None:
            first[rows[np.argsort(lot[rows])[: len(rows) // 2]]] = True
        else:
            first[rows[np.lexsort([lot[rows], stratum[rows]])[1::2]]] = True
    return first


def _fold_in_strata(values: Array, labels: Labels, units: Rows | None, stratum: Rows) -> _InStrata:
    order = np.argsort(stratum, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(stratum[order])) + 1)
    both = (rows for rows in parts if labels[rows].any() and not labels[rows].all())
    return _InStrata([_fold(values[rows], labels[rows], None if units is None else units[rows]) for rows in both])


def _fold(values: Array, labels: Labels, units: Rows | None) -> _Fold:
    x, y = values[labels], values[~labels]
    ranks = _ranks(np.concatenate([x, y]))
    of_x = (ranks[: len(x)] - _ranks(x)) / len(y)
    of_y = 1 - (ranks[len(x) :] - _ranks(y)) / len(x)
    return _Fold(of_x, of_y) if units is None else _Fold(of_x, of_y, units[labels], units[~labels])


def _ranks(values: Array) -> Array:
    """Return each value's rank, ties sharing their mean (scipy.stats does the same, and takes half a second to import)."""
    ordered = np.sort(values)
    below, not_above = (np.searchsorted(ordered, values, side) for side in ("left", "right"))
    return np.asarray((below + not_above + 1) / 2)


def _variance_of_mean(placements: Array, units: Rows | None) -> float:
    """Return the variance of the mean of placements; a single row or unit has the largest that numbers from 0 to 1 allow."""
    size = len(placements)
    if units is None:
        return float(placements.var(ddof=1)) / size if size > 1 else 0.25
    sums = np.bincount(np.unique(units, return_inverse=True)[1].ravel(), weights=placements - placements.mean())
    return float(sums @ sums) / size**2 * len(sums) / (len(sums) - 1) if len(sums) > 1 else 0.25


# What is explained: the rows that the test saw (or some of them), prepared as the test prepared them, and its kernel.


NOT_HELD_OUT = (
    "rows are told apart by a kernel that was chosen on these rows, so how well may flatter (columns and pairs do not look at "
    "the kernel); a method that splits, such as cp-linear, uses rows that had no part in it"
)


@dataclass(frozen=True, eq=False)
class ExplainedRows:
    """Rows to explain, in an order that does not depend on which sample is called X."""

    pool: Pool
    preparation: Preparation
    kernel: Kernel
    tested: Rows  # all rows of the pool that the test saw
    rows: Rows  # row numbers of the pool, of those that are explained
    labels: Labels  # true for rows of X
    matrix: Array  # the rows as the kernel sees them
    notes: tuple[str, ...]

    @property
    def units(self) -> Rows | None:
        """The unit of each row where a design has units of several; None where rows are as good as independent."""
        design = self.pool.design
        return None if design is None or design.size == len(design.unit) else design.unit[self.rows]

    @cached_property
    def strata(self) -> Strata | None:
        """The strata of the rows, inside which they are compared; None where a design has none."""
        return Strata.of(self.pool.design, self.rows)

    @property
    def tells(self) -> bool:
        """Whether rows are told apart one by one: not where they are compared in pairs, or in strata of few rows."""
        return self.strata is None or self.strata.inside

    @property
    def weights(self) -> Array | None:
        """Weights that give both samples one mix of strata; None where rows weigh the same."""
        if self.strata is None or self.strata.paired:
            return None
        return self.strata.weights(np.ones(len(self.rows), dtype=bool))

    def row_numbers(self, rows: Rows) -> Rows:
        """Return the numbers of pool rows in their own sample, as it was passed in."""
        if self.pool.kept is not None:
            return np.asarray(self.pool.kept[rows])
        return np.where(rows < self.pool.m, rows, rows - self.pool.m)


def tested_rows(outcome: TestOutcome) -> tuple[Pool, Rows]:
    """Return the pool behind an outcome and the rows of it that the test saw."""
    if outcome.n_columns is None:
        raise InputError("A kernel matrix says how alike rows are, not what they hold: it has no columns to explain.")
    if outcome.evidence is None:
        raise InputError("A result can be explained while it has its data. Got one without evidence; run the test again.")
    return outcome.evidence.pool, outcome.evidence.tested_rows


def gather_rows(outcome: TestOutcome, max_rows: int, rng: np.random.Generator) -> ExplainedRows:
    """Return the rows that an outcome rests on, at most ``max_rows`` of them."""
    pool, tested = tested_rows(outcome)
    rows = tested[draw_rows(tested < pool.m, max_rows, rng)]
    preparation = outcome.preparation or Preparation.fit(pool)
    matrix = preparation.transform(pool, rows)
    strata = Strata.of(pool.design, rows)
    told = strata is None or strata.inside
    notes = [] if not told or (outcome.evidence is not None and outcome.evidence.held_out) else [NOT_HELD_OUT]
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
    order = own_order(matrix)
    return ExplainedRows(pool, preparation, kernel, tested, rows[order], rows[order] < pool.m, matrix[order], tuple(notes))
