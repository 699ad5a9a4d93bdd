"""Does y given x differ between two samples? Residuals of the label on x times residuals of features of y on x.

With e(x) the probability that a row is of the new sample, and f features of y with conditional means m(x) in the pool, the
products U_i = (L_i - e(x_i)) (f(y_i) - m(x_i)) w(x_i) have mean zero for every weight w where y given x is the same in both
samples, also if one of e and m is wrong: the error of their mean is the product of both errors. A statistic is a norm of
sum U_i / sqrt(n), perhaps in the directions of its covariance. Given x and y only labels are random, and to first order
sum U_i = sum (L_i - e(x_i)) g_i with g_i the features and weights of row i less what its label adds through the probabilities
estimated from it. Random signs in front of these terms give the null distribution; their covariance around zero sees no signs.

Features are of the residual of y rather than of y: what x explains is no noise for them, and a change of scale or shape
given x is a change of their mean. Where the weight is 1 a change on average is seen, with weights in x also one that
has another sign elsewhere.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.draws.labels import Relabelings
from cpmmd.evidence import ClassEvidence, Ranking, rank_classes, without_rounding
from cpmmd.statistics.cross_fitting import Probabilities, Ridge, landmark_features, median_distance, principal

NORMAL_QUARTILES = 1.349  # distance of the quartiles of N(0, 1)
CLIPPED = 4.0  # standard deviations of residuals
WILD = 6.0  # of y itself, so that a few far rows do not decide a regression
WAVES = np.array([0.5, 1.0, 1.5, 2.2, 3.0])  # frequencies of the features of one number, in standard deviations of the residual
MANY_WAVES = 40  # random frequencies for several numbers
GAMMAS = (None, 0.1, 0.01)  # None is the plain norm
MOST_FEATURES = 12  # of y, and of x, in a product of both
MOST_SLOPES = 20  # columns of x that a slope may change in
LANDMARKS = 60
TINY = 1e-9  # relative size of a residual that is rounding

# How y given x may change, by class: what a reader is told.
WORDS = {
    "location": "its mean",
    "distribution": "its distribution",
    "slopes": "its slopes in the inputs",
    "surface": "its distribution, differently at different inputs",
}


@dataclass(frozen=True, eq=False)
class Residuals:
    """Cross-fitted residuals of rows: of the label, and of y's encoded columns."""

    label: Array  # L - e(x)
    probabilities: Probabilities  # e(x)
    outcomes: Array  # y - E[y | x], a column each
    numbers: Rows  # which of the columns are numbers; the others are marks of levels
    ridge: Ridge


def softened(outcomes: Array, numbers: Rows) -> Array:
    """Return y's columns with numbers in robust standard deviations, far ones cut."""
    found = outcomes.astype(np.float64)
    part = found[:, numbers]
    part = (part - np.median(part, axis=0)) / robust_scale(part)
    found[:, numbers] = np.clip(part, -WILD, WILD)
    return found


def robust_scale(columns: Array) -> Array:
    """Return the standard deviations that the quartiles of columns suggest; their own where quartiles are equal."""
    low, high = np.quantile(columns, (0.25, 0.75), axis=0)
    quartiles, own = (high - low) / NORMAL_QUARTILES, columns.std(axis=0)
    return np.where(quartiles > TINY * own, quartiles, np.where(own > 0, own, 1.0))


def outcome_features(residuals: Residuals, rng: np.random.Generator) -> tuple[Array, Array]:
    """Return y's residuals themselves, and features of their joint distribution (none where y is one category)."""
    numbers = residuals.outcomes[:, residuals.numbers]
    whole = residuals.outcomes.copy()
    whole[:, residuals.numbers] = np.clip(numbers / robust_scale(numbers), -CLIPPED, CLIPPED) if numbers.size else numbers
    if not len(residuals.numbers):
        return whole, whole[:, :0]
    if whole.shape[1] == 1:
        waves = WAVES[None]
        weights = np.exp(-np.square(WAVES) / 4)
    else:
        waves = rng.normal(size=(whole.shape[1], MANY_WAVES)) / np.sqrt(whole.shape[1])
        waves[:, MANY_WAVES // 2 :] *= 2
        weights = np.full(MANY_WAVES, 1 / np.sqrt(MANY_WAVES))
    angles = whole @ waves
    return whole, np.hstack([np.cos(angles) * weights, np.sin(angles) * weights])


def evidence_classes(
    residuals: Residuals, inputs: Array, rng: np.random.Generator
) -> dict[str, tuple[Array, Sequence[float | None]]]:
    """Return features times weights of each class, and the spectral parameters of its members."""
    wave_stream, landmark_stream = rng.spawn(2)
    own, joint = outcome_features(residuals, wave_stream)
    left = np.hstack([own, joint])
    left = left - residuals.ridge.means(left)
    own, joint = _unit(left[:, : own.shape[1]]), left[:, own.shape[1] :]
    label = residuals.label[:, None]
    classes: dict[str, tuple[Array, Sequence[float | None]]] = {"location": (own, GAMMAS if own.shape[1] > 1 else (None,))}
    if joint.shape[1]:
        classes["distribution"] = (joint, GAMMAS)
    slopes = principal(np.clip(inputs, -3, 3), MOST_SLOPES)
    classes["slopes"] = (_products(_weighted(_unit(slopes), label), _leading(own)), GAMMAS[:2])
    landmarks = inputs[landmark_stream.choice(len(inputs), min(LANDMARKS, max(2, len(inputs) // 4)), replace=False)]
    local = _weighted(landmark_features(inputs, landmarks, median_distance(landmarks)), label)
    classes["surface"] = (_products(_leading(local, label), _leading(joint if joint.shape[1] else own)), GAMMAS)
    return classes


def _unit(columns: Array) -> Array:
    """Return columns of mean square 1; those that are rounding, of zeros."""
    size = np.sqrt(np.mean(np.square(columns), axis=0))
    return np.where(size > TINY, columns / np.where(size > TINY, size, 1.0), 0.0)


def _weighted(columns: Array, label: Array) -> Array:
    """Return columns less their mean where samples overlap: a weight that is constant there adds nothing to the weight 1."""
    weights = np.square(label[:, 0]) + TINY
    return np.asarray(columns - np.average(columns, axis=0, weights=weights))


def _leading(columns: Array, label: Array | None = None) -> Array:
    """Return the leading directions of columns, at most MOST_FEATURES, perhaps of columns times the label's residual."""
    if columns.shape[1] <= MOST_FEATURES and label is None:
        return columns
    scaled = columns if label is None else columns * label
    _, vectors = np.linalg.eigh(scaled.T @ scaled)
    return np.asarray(columns @ vectors[:, ::-1][:, :MOST_FEATURES])


def _products(a: Array, b: Array) -> Array:
    """Return all products of a column of one and a column of the other."""
    return np.asarray((a[:, :, None] * b[:, None, :]).reshape(len(a), -1))


def signed_statistics(products: Array, terms: Array, draws: Relabelings, gammas: Sequence[float | None]) -> Array:
    """Return the statistics of the products U, and of their terms V under signs, a row for each spectral parameter.

    With M = V'V / n = sum_k l_k v_k v_k': sum_k (v_k'z)^2, and sum_k (v_k'z)^2 / (l_k + gamma l_1), of z = U'1 / sqrt(n) first
    and of z = V's / sqrt(n) for the signs s that follow.
    """
    n = len(products)
    values, vectors = np.linalg.eigh(terms.T @ terms / n)
    kept = values > TINY * max(values[-1], TINY**2)
    if not kept.any():
        return np.zeros((len(gammas), len(draws)))
    values, scores = values[kept], terms @ vectors[:, kept] / np.sqrt(n)
    weights = np.array([np.ones_like(values) if gamma is None else 1 / (values + gamma * values[-1]) for gamma in gammas])
    found = np.hstack([weights @ np.square(signs @ scores).T for signs in draws.blocks()])
    found[:, 0] = weights @ np.square(products.sum(axis=0) @ vectors[:, kept] / np.sqrt(n))
    return found


@dataclass(frozen=True, eq=False)
class RelationTest:
    """The answer on y given x: the rank of the largest penalised evidence, and the class that has it."""

    ranking: Ranking
    leading: str  # name of the class
    pvalues: Mapping[str, float]  # of every class alone


def relation_test(residuals: Residuals, inputs: Array, n_permutations: int, rng: np.random.Generator) -> RelationTest:
    """Test whether y given x is the same in both samples."""
    feature_stream, sign_stream = rng.spawn(2)
    draws = Relabelings.draw_signs(len(inputs), n_permutations, sign_stream)
    found = {}
    label = residuals.label[:, None]
    for name, (features, gammas) in evidence_classes(residuals, inputs, feature_stream).items():
        terms = label * (features - residuals.probabilities.carried(features))
        values = signed_statistics(label * features, terms, draws, gammas)
        found[name] = ClassEvidence.of(without_rounding(values, TINY * np.abs(values).max(axis=1, keepdims=True)))
    ranking = rank_classes(list(found.values()), exhaustive=False)
    alone = {name: Ranking.of(of.total, tolerance=1e-6, exhaustive=False).pvalue for name, of in found.items()}
    return RelationTest(ranking, max(found, key=lambda name: found[name].total[0]), alone)


# How large the change is: a mean over the rows where the samples overlap.


@dataclass(frozen=True)
class Difference:
    """A mean difference with its 95% confidence interval."""

    estimate: float
    low: float
    high: float

    @property
    def ends(self) -> tuple[float, float, float]:
        """The estimate and both ends of its interval."""
        return self.estimate, self.low, self.high


WIDTH = 1.959963984540054  # of a 95% interval, in standard errors


def interval(estimate: float, influence: Array) -> Difference:
    """Return an estimate with the interval of its influence function, a value for each row."""
    error = float(influence.std()) / np.sqrt(len(influence))
    return Difference(float(estimate), float(estimate - WIDTH * error), float(estimate + WIDTH * error))


def given_inputs(outcome: Array, mean: Array, label: Array) -> tuple[float, Array]:
    """Return by how much an outcome is larger in the new sample at equal inputs, and the influence of each row.

    The mean of E_new[outcome | x] - E_reference[outcome | x] with weights e(x) (1 - e(x)): large where the samples overlap.
    """
    overlap = float(np.mean(np.square(label)))
    estimate = float(np.mean(label * (outcome - mean)) / overlap)
    return estimate, np.asarray((label * (outcome - mean) - estimate * np.square(label)) / overlap)


def between_samples(outcome: Array, labels: Rows) -> tuple[float, Array]:
    """Return by how much an outcome's mean is larger in the new sample, and the influence of each row."""
    new, share = labels > 0, float(np.mean(labels > 0))
    means = outcome[~new].mean(), outcome[new].mean()
    influence = np.where(new, (outcome - means[1]) / share, -(outcome - means[0]) / (1 - share))
    return float(means[1] - means[0]), influence
