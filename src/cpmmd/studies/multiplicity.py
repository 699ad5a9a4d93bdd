"""Many tests at once: p-values adjusted for how many were looked at."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Array
from cpmmd.errors import InputError


def benjamini_hochberg(pvalues: npt.ArrayLike) -> Array:
    """Return p-values adjusted so that rejecting those <= q keeps the false discovery rate at q.

    Parameters
    ----------
    pvalues : array of shape (k,)
        The p-values. NaN stands for a test that was not made: it stays NaN and does not count.

    Returns
    -------
    array of shape (k,)
        The adjusted p-values, in the order they came.

    Notes
    -----
    Benjamini and Hochberg (1995): with k tests and p_(1) <= ... <= p_(k), adjusted p_(i) = min over j >= i of k p_(j) / j, at
    most 1. Valid for independent tests and for positively dependent ones, as batches against one reference are.

    Examples
    --------
    >>> from cpmmd import benjamini_hochberg
    >>> benjamini_hochberg([0.01, 0.02, 0.4]).tolist()
    [0.03, 0.03, 0.4]
    """
    values = np.asarray(pvalues, dtype=np.float64)
    if values.ndim != 1:
        raise InputError(f"P-values must come as a list of numbers. Got an array of shape {values.shape}.")
    made = np.flatnonzero(~np.isnan(values))
    outside = values[made][(values[made] < 0) | (values[made] > 1)]
    if outside.size:
        raise InputError(f"P-values must lie between 0 and 1. Got {outside[0]:g}; NaN stands for a test that was not made.")
    adjusted = np.full(len(values), np.nan)
    falling = made[np.argsort(values[made], kind="stable")[::-1]]
    ranks = np.arange(len(made), 0, -1)
    adjusted[falling] = np.minimum.accumulate(np.minimum(values[falling] * (len(made) / ranks), 1.0))
    return adjusted
