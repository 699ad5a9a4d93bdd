"""Scores that make statistics of different kernels comparable: upper-tail -log p by three moments over the relabelings."""

from __future__ import annotations

import numpy as np
from scipy import special

from cpmmd.core.arrays import Array

LEAST_SKEWNESS = 0.02  # below it the gamma is a normal for every purpose, and its shape overflows


def tail_scores(statistics: Array) -> Array:
    """Return -log of the upper tail probability of each value among its row, by a Pearson type III fit.

    The null distribution of a squared MMD is a sum of weighted chi-squares: from nearly normal (narrow kernels) to a single
    chi-square (wide ones). A shifted gamma of the same mean, variance and skewness follows all of them, where a z-score
    over-rewards the skewed. Its tail is taken by the Wilson-Hilferty cube root, which costs a tenth of the incomplete gamma
    function. Moments are taken over all relabelings, the observed one among them: a symmetric function. Rows without
    spread score zero.
    """
    centred = statistics - statistics.mean(axis=1, keepdims=True)
    largest = np.abs(centred).max(axis=1, keepdims=True)
    flat = largest <= 1e-12 * np.abs(statistics).max(axis=1, keepdims=True)
    unit = centred / np.where(flat, 1.0, largest)  # tiny statistics would underflow when cubed
    spread = np.sqrt(np.mean(unit * unit, axis=1, keepdims=True))
    z = unit / np.where(spread > 0, spread, 1.0)
    skewness = np.maximum(np.mean(z * z * z, axis=1, keepdims=True), LEAST_SKEWNESS)
    shape = 4 / skewness**2
    relative = np.maximum(1 + z / np.sqrt(shape), 0.0)  # gamma variable over its mean
    normal = (np.cbrt(relative) - 1 + 1 / (9 * shape)) * 3 * np.sqrt(shape)
    return np.asarray(np.where(flat, 0.0, -special.log_ndtr(-normal)))
