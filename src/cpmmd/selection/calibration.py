"""C1-hat: how large MMD2 / G gets under the null, by permuting the training half (App. Calibration procedure)."""

from __future__ import annotations

import math

import numpy as np

from cpmmd.core.arrays import Array, Labels
from cpmmd.data.prepared import PreparedPool
from cpmmd.permutation.labels import draw_labels
from cpmmd.selection.criteria import ComplexityPenalized, Criterion, Plain
from cpmmd.selection.selector import Selector
from cpmmd.selection.values import Calibration

MAX_ROUNDS = 8  # of the fixed point
SETTLED = 0.02  # relative change of C1 that ends it


def calibrate(
    selector: Selector, train: PreparedPool, criterion: ComplexityPenalized, *, alpha: float, rng: np.random.Generator
) -> Calibration:
    """Return C1-hat from null permutations of the training half.

    Notes
    -----
    Each permuted pool is split back at m:n, the plain MMD maximised, and the ratio MMD2 / G recorded. C1-hat is the order
    statistic ceil((1 - alpha)(n_cal + 1)), the maximum when that exceeds n_cal. It is cut off at 0: a negative constant
    would reward complexity. ``calibration="self-consistent"`` maximises J_CP itself instead and repeats until C1 settles.
    """
    label_stream, search_stream = rng.spawn(2)
    labels = draw_labels(train.size, train.m, criterion.n_calibration, label_stream)
    order = quantile_order(criterion.n_calibration, alpha)
    c1, ratios = _quantile(selector, train, labels, Plain(), order, search_stream)
    note = selector.calibration_note
    if criterion.calibration == "self-consistent":
        rounds, settled = 0, False
        while not settled and rounds < MAX_ROUNDS:
            previous, (c1, ratios) = c1, _quantile(selector, train, labels, criterion.calibrated(c1), order, search_stream)
            rounds, settled = rounds + 1, abs(c1 - previous) <= SETTLED * previous
        ending = f"settled after {rounds}" if settled else f"not settled after {rounds}"
        note = "; ".join(filter(None, [note, f"self-consistent C1, {ending} rounds"]))
    return Calibration(c1=c1, ratios=ratios, alpha=alpha, order=order, note=note)


def _quantile(
    selector: Selector, train: PreparedPool, labels: Labels, criterion: Criterion, order: int, rng: np.random.Generator
) -> tuple[float, Array]:
    mmd2, complexity = selector.maxima(train, labels, criterion, rng)
    ratios = np.divide(mmd2, complexity, out=np.zeros_like(mmd2), where=complexity > 0)
    return max(float(np.sort(ratios)[order - 1]), 0.0), ratios


def quantile_order(n_calibration: int, alpha: float) -> int:
    """Return which order statistic is the (1 - alpha) quantile, counted from 1, at most ``n_calibration``."""
    # The tiny subtraction keeps ceil(0.95 * 20) at 19 although 0.95 * 20 rounds up.
    return min(math.ceil((1 - alpha) * (n_calibration + 1) - 1e-9), n_calibration)
