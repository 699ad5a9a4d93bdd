"""What people use instead of a kernel test, as functions of two samples and a generator that return a p-value."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import stats
from sklearn.ensemble import HistGradientBoostingClassifier
from sklearn.model_selection import StratifiedKFold

from cpmmd.data.pool import read_pool
from cpmmd.data.preparation import Preparation

ROUNDS, LEAVES, FOLDS = 80, 15, 5


def boosting(x: Any, y: Any, rng: np.random.Generator) -> float:
    """Cross-fitted gradient boosting: Mann-Whitney test of out-of-fold scores, categories one-hot as the library has them.

    Its p-value is no p-value, because folds are dependent: compare it with those of null draws of the same panel.
    """
    pool = read_pool(x, y, missing="impute")
    rows = Preparation.fit(pool).transform(pool)
    side = np.arange(len(rows)) < pool.m
    scores = np.empty(len(rows))
    folds = StratifiedKFold(FOLDS, shuffle=True, random_state=int(rng.integers(2**31)))
    for train, held_out in folds.split(rows, side):
        model = HistGradientBoostingClassifier(max_iter=ROUNDS, max_leaf_nodes=LEAVES, early_stopping=False)
        scores[held_out] = stats.rankdata(model.fit(rows[train], side[train]).predict_proba(rows[held_out])[:, 1])
    return float(stats.mannwhitneyu(scores[side], scores[~side], alternative="greater").pvalue)


def columns_holm(x: Any, y: Any, rng: np.random.Generator) -> float:  # noqa: ARG001
    """Kolmogorov-Smirnov for numbers, chi-square for categories, booleans and missing marks; the smallest p by Holm's rule."""
    pool = read_pool(x, y, missing="impute")
    numbers, m = np.asarray(pool.numbers), pool.m
    pvalues = []
    for name, column in zip(pool.number_names, numbers.T, strict=True):
        absent = np.isnan(column)
        if absent.any():
            pvalues.append(_chi_square(absent, m))
        if pool.kinds.get(name) == "boolean":
            pvalues.append(_chi_square(column, m))
        else:
            before, after = (half[~np.isnan(half)] for half in (column[:m], column[m:]))
            pvalues.append(float(stats.ks_2samp(before, after, method="asymp").pvalue))  # exact counts fail on ties
    pvalues += [_chi_square(np.array([str(value) for value in values]), m) for values in pool.categories.values()]
    return min(1.0, len(pvalues) * min(pvalues))


def _chi_square(levels: np.ndarray, m: int) -> float:
    """Pearson's chi-square test of a column's levels."""
    _, codes = np.unique(levels, return_inverse=True)
    counts = [np.bincount(half, minlength=codes.max() + 1) for half in (codes[:m], codes[m:])]
    return float(stats.chi2_contingency(counts, correction=False).pvalue) if codes.max() else 1.0
