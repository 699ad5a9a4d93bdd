"""Many tests at once: p-values adjusted for how many were looked at."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Array
from cpmmd.core.text import sanitize
from cpmmd.errors import InputError, unknown_name


def benjamini_hochberg(pvalues: npt.ArrayLike) -> Array:
    """Return p-values adjusted so that rejecting those <= q keeps the false discovery rate at q.

    Parameters
    ----------
    pvalues : array of shape (k,)
        The p-values. NaN stands for a test that was not run: it stays NaN and does not count.

    Returns
    -------
    array of shape (k,)
        The adjusted p-values, in the order they came.

    Notes
    -----
    Benjamini and Hochberg (1995): with k tests and p_(1) <= ... <= p_(k), adjusted p_(i) = min over j >= i of k p_(j) / j, at
    most 1. Proven for independent tests and for positive regression dependence (Benjamini and Yekutieli 2001), which single rows
    ranked by a fixed score among reference rows have (Bates et al. 2023). For two-sample tests of batches against one reference,
    or of groups against the rest, it is not proven: the rate was kept where it was measured (.036 at .05).
    :func:`benjamini_yekutieli` is proven for them.

    Examples
    --------
    >>> from cpmmd import benjamini_hochberg
    >>> benjamini_hochberg([0.01, 0.02, 0.4]).tolist()
    [0.03, 0.03, 0.4]
    """
    return _step_up(pvalues, _one)


def benjamini_yekutieli(pvalues: npt.ArrayLike) -> Array:
    """Return p-values adjusted so that rejecting those <= q keeps the false discovery rate at q under any dependence.

    Parameters
    ----------
    pvalues : array of shape (k,)
        The p-values. NaN stands for a test that was not run: it stays NaN and does not count.

    Returns
    -------
    array of shape (k,)
        The adjusted p-values, in the order they came.

    Notes
    -----
    Benjamini and Yekutieli (2001): those of :func:`benjamini_hochberg` times 1 + 1/2 + ... + 1/k, at most 1. That is the cost of
    assuming nothing about the dependence: a factor 2.9 among 10 tests, 5.2 among 100.

    Examples
    --------
    >>> from cpmmd import benjamini_yekutieli
    >>> benjamini_yekutieli([0.01, 0.02, 0.4]).round(3).tolist()
    [0.055, 0.055, 0.733]
    """
    return _step_up(pvalues, _harmonic)


def _one(tests: int) -> float:  # noqa: ARG001 - the same for every number
    return 1.0


def _harmonic(tests: int) -> float:
    return float((1 / np.arange(1, tests + 1)).sum())


@dataclass(frozen=True)
class Correction:
    """A way to adjust the p-values of many tests."""

    adjust: Callable[[npt.ArrayLike], Array]  # from p-values to adjusted ones
    factor: Callable[[int], float]  # from the number of tests to what the smallest p-value is multiplied by, over that number
    authors: str  # as a sentence names them
    citation: str  # its key in ``citations.bib``


CORRECTIONS = {
    "benjamini-hochberg": Correction(benjamini_hochberg, _one, "Benjamini and Hochberg", "benjamini1995controlling"),
    "benjamini-yekutieli": Correction(benjamini_yekutieli, _harmonic, "Benjamini and Yekutieli", "benjamini2001control"),
}


def find_correction(name: str) -> Correction:
    """Return a correction by its name."""
    if not isinstance(name, str) or name not in CORRECTIONS:
        raise unknown_name("correction", name, CORRECTIONS)
    return CORRECTIONS[name]


def _step_up(pvalues: npt.ArrayLike, factor: Callable[[int], float]) -> Array:
    """Return min over j >= i of factor(k) k p_(j) / j, at most 1, in the order that the p-values came."""
    # Not scipy.stats.false_discovery_control, the tests' oracle: it has the same digits for Benjamini and Hochberg but other last
    # digits for Benjamini and Yekutieli, and importing scipy.stats takes half a second of every check of a batch.
    try:
        values = np.asarray(pvalues, dtype=np.float64)
    except (TypeError, ValueError) as error:  # text, mappings, sets, lists of several lengths
        got = f"a {type(pvalues).__name__}" if not isinstance(pvalues, (list, tuple)) else repr(pvalues)
        hint = "; use list(pvalues.values())" if isinstance(pvalues, Mapping) else ""
        raise InputError(f"P-values must be a list of numbers. Got {sanitize(got)}{hint}.") from error
    if values.ndim != 1:
        raise InputError(f"P-values must be a list of numbers. Got an array of shape {values.shape}.")
    made = np.flatnonzero(~np.isnan(values))
    outside = values[made][(values[made] < 0) | (values[made] > 1)]
    if outside.size:
        raise InputError(f"P-values must lie between 0 and 1. Got {outside[0]:g}; use NaN for a test that was not run.")
    adjusted = np.full(len(values), np.nan)
    falling = made[np.argsort(values[made], kind="stable")[::-1]]
    ranks = np.arange(len(made), 0, -1)
    scaled = values[falling] * (factor(len(made)) * len(made) / ranks)
    adjusted[falling] = np.minimum.accumulate(np.minimum(scaled, 1.0))
    return adjusted
