"""C1-hat: how large MMD2 / G gets under the null, by permuting the training half (App. Calibration procedure)."""

from __future__ import annotations

import math

import numpy as np

from cpmmd.results import Calibration
from cpmmd.samples import TwoSample, draw_labels
from cpmmd.selection import Selector


def calibrate(selector: Selector, train: TwoSample, *, n_calibration: int, alpha: float, rng: np.random.Generator) -> Calibration:
    """Give C1-hat from ``n_calibration`` null permutations of the training half.

    Notes
    -----
    Each permuted pool is split back at m:n, the plain MMD maximised, and the ratio MMD2 / G recorded. C1-hat is the order
    statistic ceil((1 - alpha)(n_cal + 1)), the maximum when that exceeds n_cal. It is cut off at 0: a negative constant
    would reward complexity.
    """
    label_stream, search_stream = rng.spawn(2)
    labels = draw_labels(train.size, train.m, n_calibration, label_stream)
    mmd2, complexity = selector.plain_maxima(train, labels, search_stream)
    ratios = np.divide(mmd2, complexity, out=np.zeros_like(mmd2), where=complexity > 0)
    order = quantile_order(n_calibration, alpha)
    c1 = max(float(np.sort(ratios)[order - 1]), 0.0)
    return Calibration(c1=c1, ratios=ratios, alpha=alpha, order=order)


def quantile_order(n_calibration: int, alpha: float) -> int:
    """Give which order statistic is the (1 - alpha) quantile, counted from 1, at most ``n_calibration``."""
    # The tiny subtraction keeps ceil(0.95 * 20) at 19 although 0.95 * 20 rounds up.
    return min(math.ceil((1 - alpha) * (n_calibration + 1) - 1e-9), n_calibration)
