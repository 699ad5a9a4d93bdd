"""The witness of each row, and how well it tells rows it has not seen."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit, logit, stdtrit

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.explain.values import Effect
from cpmmd.permutation.mmd import witness

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


def cross_fitted_effect(K: Array, labels: Labels, rng: np.random.Generator, units: Rows | None = None) -> Effect | None:
    """Return how often one half's witness ranks a row of X above one of Y in the other half, both ways together.

    Notes
    -----
    Where a design has ``units`` of rows that hang together, halves have whole units and errors are those of sums over units.
    The interval is DeLong's on the logit scale, with Student's quantile for the smaller sample. The two halves' areas come from
    the same kernel values between them, and are nearly equal where the samples are; so the errors are averaged, as those of
    one half, not divided by the root of two. When all pairs are told apart the width would be zero; the k disjoint pairs of the
    smaller sample, all told apart, then bound the probability by p^k = 2.5%.
    """

    def scores(fitted: Labels) -> Array:
        return witness(K[np.ix_(~fitted, fitted & labels)], K[np.ix_(~fitted, fitted & ~labels)])

    return cross_fitted(scores, labels, rng, units)


def cross_fitted(
    scores: Callable[[Labels], Array], labels: Labels, rng: np.random.Generator, units: Rows | None = None
) -> Effect | None:
    """Return how often scores rank a row of X above one of Y; ``scores`` learns from the rows marked and scores the others.

    None with fewer than two rows, or units, of a sample: there are none to learn from and others to tell.
    """
    smaller = min(np.count_nonzero(side) if units is None else len(np.unique(units[side])) for side in (labels, ~labels))
    if smaller < 2:
        return None
    first = _halves(labels, rng, units)
    folds = [_fold(scores(fitted), labels[~fitted], None if units is None else units[~fitted]) for fitted in (first, ~first)]
    pairs = np.array([len(f.of_x) * len(f.of_y) for f in folds], dtype=float)
    weights = pairs / pairs.sum()
    area = float(sum(w * f.area for w, f in zip(weights, folds, strict=True)))
    error = float(sum(w * f.error for w, f in zip(weights, folds, strict=True)))
    if area in (0.0, 1.0):
        bound = ((1 - CONFIDENCE) / 2) ** (1 / smaller)
        return Effect(area, bound, 1.0) if area == 1.0 else Effect(area, 0.0, 1 - bound)
    reach = float(stdtrit(smaller - 1, (1 + CONFIDENCE) / 2)) * error / (area * (1 - area))
    centre = float(logit(area))
    return Effect(area, float(expit(centre - reach)), float(expit(centre + reach)))


def _halves(labels: Labels, rng: np.random.Generator, units: Rows | None = None) -> Labels:
    """Mark a random half of each sample, whole units where there are any; the draw does not depend on which is called X."""
    if units is not None:
        _, first_row, number = np.unique(units, return_index=True, return_inverse=True)
        return np.asarray(_halves(labels[first_row], rng)[number.ravel()])
    lot, first = rng.random(len(labels)), np.zeros(len(labels), dtype=bool)
    for side in (labels, ~labels):
        rows = np.flatnonzero(side)
        first[rows[np.argsort(lot[rows])[: len(rows) // 2]]] = True
    return first


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
