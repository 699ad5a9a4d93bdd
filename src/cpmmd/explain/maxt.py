"""Several hypotheses, the same relabelings: p-values that hold for all of them together (Westfall and Young, step-down)."""

from __future__ import annotations

import numpy as np

from cpmmd.core.arrays import Array

TIE = 1e-9  # of a score: rounding must not split the ties of discrete data


def adjusted_pvalues(scores: Array) -> Array:
    """Return a p-value for each row of scores, adjusted for all rows.

    Parameters
    ----------
    scores : array
        A hypothesis a row, a relabeling a column, the labels as they came first; large speaks against the hypothesis.

    Returns
    -------
    array
        In the order of the rows; never 0, since the labels as they came are counted.

    Notes
    -----
    The row with the largest observed score is compared with the largest of all rows under each relabeling, the next one with
    the largest of the rows that are left, and so on; a p-value is never below that of a row before it.

    Examples
    --------
    >>> import numpy as np
    >>> adjusted_pvalues(np.array([[9.0, 1.0, 2.0, 3.0], [2.5, 1.0, 8.0, 0.0]]))
    array([0.25, 0.5 ])
    """
    observed = scores[:, 0]
    order = np.argsort(-observed, kind="stable")
    left = np.full(scores.shape[1], -np.inf)
    pvalues = np.empty(len(scores))
    for row in order[::-1]:  # from the weakest up: the maximum over what is left grows by one row at a time
        np.maximum(left, scores[row], out=left)
        pvalues[row] = np.mean(left >= observed[row] - TIE * max(1.0, abs(observed[row])))
    pvalues[order] = np.maximum.accumulate(pvalues[order])
    return pvalues
