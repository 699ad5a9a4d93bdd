"""The exact test for a kernel of your own: all it needs is the kernel matrix of the pooled rows."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import validation
from cpmmd.errors import InputError
from cpmmd.permutation.dense import PermutationNull, permutation_test
from cpmmd.samples import Array


def kernel_matrix_test(
    K: Any, m: int, *, n_permutations: int = 999, rng: int | np.random.Generator | None = None
) -> PermutationNull:
    """Test whether two samples come from the same distribution, given the kernel matrix of both.

    For graphs, texts, trees or anything else that has a kernel. The kernel must not have been chosen by looking at which row
    belongs to which sample; otherwise choose it on other rows (see :class:`SplitTest`).

    Parameters
    ----------
    K
        Kernel matrix of the pooled rows, those of the first sample first: symmetric and finite.
    m
        Number of rows of the first sample.
    n_permutations
        Random relabelings; all C(N, m) of them are used instead where they are fewer.
    rng
        Seed, Generator or None.

    Returns
    -------
    PermutationNull
        With ``pvalue``, ``statistic`` (the unbiased squared MMD), ``null`` (the relabelings') and ``exhaustive``.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import kernel_matrix_test
    >>> words = ["ab", "abb", "aab", "ba", "abab", "xy", "xyy", "yx", "xxyx", "yyx"]
    >>> letters = np.array([[word.count(letter) for letter in "abxy"] for word in words])
    >>> kernel_matrix_test(letters @ letters.T, m=5, rng=0).pvalue
    0.007936507936507936
    """
    matrix = _checked(K)
    m = validation.whole("m", m, at_least=2, at_most=len(matrix) - 2)
    n_permutations = validation.whole("n_permutations", n_permutations, at_least=1)
    return permutation_test(matrix, m, n_permutations=n_permutations, rng=validation.generator(rng)[1])


def _checked(K: Any) -> Array:
    try:
        matrix = np.asarray(K, dtype=np.float64)
    except (TypeError, ValueError) as error:
        raise InputError(f"A kernel matrix must hold numbers. Got {type(K).__name__}: {error}.") from error
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise InputError(f"A kernel matrix must be square, a row and a column for each pooled row. Got shape {matrix.shape}.")
    if len(matrix) < 4:
        raise InputError(f"A kernel matrix must have at least 4 rows, 2 of each sample. Got {len(matrix)}.")
    largest = max(float(matrix.max()), -float(matrix.min()))  # NaN and infinity come through
    if not np.isfinite(largest):
        raise InputError("A kernel matrix must be finite. Got missing or infinite values; leave those rows out.")
    # A random vector sees any asymmetry, and two products with it are several times cheaper than K - K.T.
    probe = np.random.default_rng(0).standard_normal(len(matrix))
    if np.abs(matrix @ probe - probe @ matrix).max() > 1e-8 * largest:
        raise InputError(
            f"A kernel matrix must be symmetric. K[i, j] and K[j, i] differ by up to {np.abs(matrix - matrix.T).max():.3g}; pass "
            "(K + K.T) / 2 if that is rounding."
        )
    return matrix
