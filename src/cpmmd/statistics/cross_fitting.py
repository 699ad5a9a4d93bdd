"""Cross-fitted regressions on inputs x: the mean of outcomes and the probability of a label, each row by folds without it.

The default is ridge regression on a few sets of features that do not look at labels or outcomes: linear, additive (cosines of
ranks), and landmarks of a Gaussian kernel at two bandwidths. Set and penalty are those with the smallest error on rows left out.
All outcomes share one factorisation for each set and fold.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy import special, stats

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.parallel import map_threads
from cpmmd.errors import InputError

FOLDS = 5
PENALTIES = 10.0 ** np.arange(-4.0, 2.1, 0.75)  # times the mean eigenvalue of the features
LANDMARKS = 150
MOST_COLUMNS = 200  # of x: more are cut to so many principal components
MOST_COSINES = 300  # in an additive set
HARMONICS = 5  # cosines of a column's rank
# The linear part is hardly penalised: what shrinkage leaves of a linear relation and of a shift would be of one direction, and
# their product is what the test is sensitive to.
LINEAR = 10.0
STEPS = 60  # of accelerated gradient ascent, each preconditioned by a bound of the Hessian
LEAST = 1e-3  # estimated probabilities stay this far from 0 and 1
BROKEN = "{parameter} must be fitted and predict on the encoded inputs. {model} failed: {reason}. Try it on the inputs first."


def draw_folds(labels: Rows, rng: np.random.Generator) -> Rows:
    """Return the fold of each row, of equal sizes in both samples."""
    folds = np.empty(len(labels), dtype=np.intp)
    for label in (0, 1):
        rows = np.flatnonzero(labels == label)
        folds[rows] = rng.permutation(np.arange(len(rows)) % FOLDS)
    return folds


def principal(matrix: Array, most: int) -> Array:
    """Return a matrix with centred columns, cut to its ``most`` leading principal components where it has more."""
    centred = matrix - matrix.mean(axis=0)
    if centred.shape[1] <= most:
        return np.asarray(centred)
    _, vectors = np.linalg.eigh(centred.T @ centred)
    return np.asarray(centred @ vectors[:, ::-1][:, :most])


def landmark_features(rows: Array, landmarks: Array, bandwidth: float) -> Array:
    """Return features whose inner products are the Gaussian kernel on the landmarks, and near it elsewhere."""
    K = _gaussian(landmarks, landmarks, bandwidth)
    values, vectors = np.linalg.eigh(K)
    kept = values > 1e-8 * values[-1]
    return np.asarray(_gaussian(rows, landmarks, bandwidth) @ (vectors[:, kept] / np.sqrt(values[kept])))


def median_distance(rows: Array) -> float:
    """Return the median distance of different rows; 1 where most are equal."""
    between = np.sqrt(_squares(rows, rows)[np.triu_indices(len(rows), 1)])
    return float(np.median(between)) or 1.0 if len(between) else 1.0


def _squares(a: Array, b: Array) -> Array:
    return np.asarray(np.maximum((a * a).sum(axis=1)[:, None] + (b * b).sum(axis=1) - 2 * a @ b.T, 0.0))


def _gaussian(a: Array, b: Array, bandwidth: float) -> Array:
    return np.asarray(np.exp(-_squares(a, b) / (2 * bandwidth**2)))


def feature_sets(inputs: Array, rng: np.random.Generator) -> list[Array]:
    """Return the sets of features of encoded inputs that compete, none of which looks at labels or outcomes."""
    n, columns = inputs.shape
    linear = LINEAR * inputs / np.sqrt(columns)
    sets = [linear]
    varied = inputs[:, [len(np.unique(column)) > 2 for column in inputs.T]]
    if varied.shape[1]:
        harmonics = max(1, min(HARMONICS, MOST_COSINES // varied.shape[1]))
        ranks = (stats.rankdata(varied, axis=0) - 0.5) / n
        cosines = [np.cos(np.pi * j * ranks) / (j * np.sqrt(columns)) for j in range(1, harmonics + 1)]
        sets.append(np.hstack([linear, *cosines]))
    landmarks = inputs[rng.choice(n, min(LANDMARKS, max(2, n // 4)), replace=False)]
    median = median_distance(landmarks)
    sets += [np.hstack([linear, landmark_features(inputs, landmarks, b)]) for b in (median, median / 2)]
    return sets


@dataclass(frozen=True, eq=False)
class _Fold:
    """One set of features without one fold, in the eigenvectors of its rows."""

    train: Rows
    test: Rows
    scores: Array  # of the training rows
    test_scores: Array
    values: Array  # eigenvalues of scores' scores

    @property
    def penalties(self) -> Array:
        return np.asarray(PENALTIES * self.values.mean())


@dataclass(frozen=True, eq=False)
class Ridge:
    """Ridge regression on competing sets of features, cross-fitted."""

    sets: Sequence[Sequence[_Fold]]  # by set and fold

    @classmethod
    def of(cls, inputs: Array, folds: Rows, rng: np.random.Generator) -> Ridge:
        """Factorise every set of features without every fold."""
        sets = feature_sets(inputs, rng)
        tasks = [(features, folds, k) for features in sets for k in range(FOLDS)]
        found = map_threads(_factorise, tasks)
        return cls([found[i : i + FOLDS] for i in range(0, len(found), FOLDS)])

    def means(self, outcomes: Array) -> Array:
        """Return the conditional means of outcomes, a column each, every row by a fit without its fold."""
        errors = np.array([self._errors(folds, outcomes) for folds in self.sets])  # set, penalty, outcome
        best = errors.reshape(-1, outcomes.shape[1]).argmin(axis=0)
        found = np.empty_like(outcomes)
        for choice in np.unique(best):
            (chosen, penalty), columns = divmod(int(choice), len(PENALTIES)), np.flatnonzero(best == choice)
            for fold in self.sets[chosen]:
                mean, sums = _sums(fold, outcomes[:, columns])
                shrunk = sums / (fold.values + fold.penalties[penalty])[:, None]
                found[np.ix_(fold.test, columns)] = mean + fold.test_scores @ shrunk
        return found

    def _errors(self, folds: Sequence[_Fold], outcomes: Array) -> Array:
        total = np.zeros((len(PENALTIES), outcomes.shape[1]))
        for fold in folds:
            mean, sums = _sums(fold, outcomes)
            left = outcomes[fold.test] - mean
            for j, penalty in enumerate(fold.penalties):
                total[j] += np.square(left - fold.test_scores @ (sums / (fold.values + penalty)[:, None])).sum(axis=0)
        return total

    def probabilities(self, labels: Rows) -> Probabilities:
        """Return the probability of label 1, by logistic regression on the set that is best for it.

        The penalty is the one with the smallest log loss on rows left out.
        """
        of_labels = labels.astype(np.float64)[:, None]
        losses = [self._errors(folds, of_labels).min() for folds in self.sets]
        folds = self.sets[int(np.argmin(losses))]
        log_odds = np.empty((len(labels), len(PENALTIES)))
        for fold, found in zip(folds, map_threads(lambda fold: _logistic(fold, labels), folds), strict=True):
            log_odds[fold.test] = found
        loss = np.logaddexp(0.0, np.where(labels[:, None] > 0, -log_odds, log_odds)).mean(axis=0)
        best = int(np.argmin(loss))
        return Probabilities(np.clip(special.expit(log_odds[:, best]), LEAST, 1 - LEAST), folds, best)


@dataclass(frozen=True, eq=False)
class Probabilities:
    """Cross-fitted probabilities of label 1, and how they follow the labels that they were fitted to."""

    values: Array
    folds: Sequence[_Fold] = ()  # of a logistic regression; none of a model that is not ours
    penalty: int = 0

    def carried(self, columns: Array) -> Array:
        """Return how much each row's label moves sum_j p_j c_j for columns c, to first order: a row and column each.

        Its slopes on features a_i follow the labels by (sum_i v_i a_i a_i' + penalty)^-1 sum_i a_i dL_i, with v = p (1 - p).
        """
        found, variance = np.zeros_like(columns), self.values * (1 - self.values)
        for fold in self.folds:
            train, test = (np.hstack([np.ones((len(part), 1)), part]) for part in (fold.scores, fold.test_scores))
            hessian = train.T @ (variance[fold.train, None] * train)
            hessian[np.diag_indices_from(hessian)] += np.append(0.0, np.full(len(fold.values), fold.penalties[self.penalty] / 4))
            moved = np.linalg.solve(hessian, test.T @ (variance[fold.test, None] * columns[fold.test]))
            found[fold.train] += train @ moved
        return found


def _factorise(task: tuple[Array, Rows, int]) -> _Fold:
    features, folds, k = task
    train, test = np.flatnonzero(folds != k), np.flatnonzero(folds == k)
    mean = features[train].mean(axis=0)
    centred = features[train] - mean
    values, vectors = np.linalg.eigh(centred.T @ centred)
    values = np.maximum(values, 1e-12 * max(values[-1], 1e-300))
    return _Fold(train, test, centred @ vectors, (features[test] - mean) @ vectors, values)


def _sums(fold: _Fold, outcomes: Array) -> tuple[Array, Array]:
    mean = outcomes[fold.train].mean(axis=0)
    return mean, fold.scores.T @ (outcomes[fold.train] - mean)


def _logistic(fold: _Fold, labels: Rows) -> Array:
    """Return the log odds of the rows left out under every penalty: accelerated steps, all penalties at once."""
    y = labels[fold.train].astype(np.float64)[:, None]
    penalties = fold.penalties / 4  # a quarter bounds the variance of a label
    step = 1 / (fold.values[:, None] / 4 + penalties)
    slopes, level = np.zeros((len(fold.values), len(PENALTIES))), np.full(len(PENALTIES), special.logit(y.mean()))
    before, momentum = (slopes, level), 1.0
    for _ in range(STEPS):
        following = (1 + np.sqrt(1 + 4 * momentum**2)) / 2
        ahead = (momentum - 1) / following
        momentum = following
        at_slopes, at_level = slopes + ahead * (slopes - before[0]), level + ahead * (level - before[1])
        residuals = y - special.expit(fold.scores @ at_slopes + at_level)
        before = slopes, level
        slopes = at_slopes + step * (fold.scores.T @ residuals - penalties * at_slopes)
        level = at_level + 4 * residuals.mean(axis=0)
    return np.asarray(fold.test_scores @ slopes + level)


def fitted_means(model: Any, inputs: Array, outcomes: Array, folds: Rows) -> Array:
    """Return the conditional means of outcomes by copies of a scikit-learn regressor, one for each column and fold."""
    from sklearn.base import clone

    found = np.empty_like(outcomes)
    for k in range(FOLDS):
        train, test = folds != k, folds == k
        for j in range(outcomes.shape[1]):
            found[test, j] = _predictions(clone(model), inputs, train, test, outcomes[train, j], "regressor")
    return found


def fitted_probabilities(model: Any, inputs: Array, labels: Rows, folds: Rows) -> Probabilities:
    """Return the probability of label 1 by copies of a scikit-learn classifier, one for each fold."""
    from sklearn.base import clone

    found = np.empty(len(labels))
    for k in range(FOLDS):
        train, test = folds != k, folds == k
        found[test] = _predictions(clone(model), inputs, train, test, labels[train], "classifier")
    return Probabilities(np.clip(found, LEAST, 1 - LEAST))


def _predictions(model: Any, inputs: Array, train: Any, test: Any, outcomes: Any, parameter: str) -> Array:
    try:
        model.fit(inputs[train], outcomes)
        if parameter == "regressor":
            found = np.asarray(model.predict(inputs[test]), dtype=np.float64)
        else:
            found = np.asarray(model.predict_proba(inputs[test]), dtype=np.float64)[:, 1]
    except Exception as error:
        reason = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise InputError(BROKEN, parameter=parameter, model=type(model).__name__, reason=reason.rstrip(".")) from error
    if found.shape != (np.count_nonzero(test),) or not np.isfinite(found).all():
        reason = f"it returned an array of shape {found.shape} for {np.count_nonzero(test)} rows, or values that are not finite"
        raise InputError(BROKEN, parameter=parameter, model=type(model).__name__, reason=reason)
    return found
