"""Models of scipy and scikit-learn: frozen distributions, fitted mixtures and kernel density estimates."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import special, stats
from scipy.stats.distributions import rv_frozen

from cpmmd.core.arrays import Array
from cpmmd.errors import InputError
from cpmmd.models.model import Model

FARTHEST = 38.0  # normal scores beyond it, of rows whose tail probability rounds to 0
# Of the distance between quartiles. Four differences of fourth order err by 1e-12 f^(5) and 1e-13 f, so both are negligible.
STEP = 1e-3
ROWS_AT_ONCE = 1024
# d log f(z) / dz of standard forms, by scipy's names of distribution and shape parameters.
ANALYTIC: dict[str, Callable[..., Array]] = {
    "norm": lambda z: -z,
    "expon": lambda z: -np.ones_like(z),
    "logistic": lambda z: -np.tanh(z / 2),
    "t": lambda z, df: -(df + 1) * z / (df + z * z),
    "gamma": lambda z, a: (a - 1) / z - 1,
    "chi2": lambda z, df: (df / 2 - 1) / z - 0.5,
    "beta": lambda z, a, b: (a - 1) / z - (b - 1) / (1 - z),
    "lognorm": lambda z, s: -(1 + np.log(z) / (s * s)) / z,
}


def of_scipy(given: object) -> Model | None:
    """Return the model of a frozen scipy distribution; None for anything else."""
    if isinstance(given, stats.rv_continuous | stats.rv_discrete):
        rule = "{parameter} must be frozen: a distribution with its parameters, such as scipy.stats.{name}(...)."
        raise InputError(rule, parameter="model", name=given.name)
    if isinstance(given, rv_frozen):
        if not isinstance(given.dist, stats.rv_continuous):
            raise InputError("{parameter} must have a density. {name!r} is discrete.", parameter="model", name=given.dist.name)
        return of_continuous(given)
    if type(given).__name__ == "multivariate_normal_frozen":
        return _normal(given)
    if type(given).__name__ == "multivariate_t_frozen":
        return _student(given)
    if type(given).__module__.startswith("scipy.stats"):
        known = "one-dimensional distributions, multivariate_normal and multivariate_t"
        rule = "Of scipy, {parameter} may be frozen {known}. Got {got}; pass Density(gradient of its log-density)."
        raise InputError(rule.replace("{parameter}", "a model"), known=known, got=type(given).__name__)
    return None


def of_continuous(frozen: Any) -> Model:
    """Return the model of a frozen distribution of one column."""
    dist, name = frozen.dist, frozen.dist.name
    shapes, loc, scale = dist._parse_args(*frozen.args, **frozen.kwds)
    if not (np.size(loc) == np.size(scale) == 1 and all(np.size(shape) == 1 for shape in shapes) and scale > 0):
        rule = "{parameter} must be one distribution, with a scale above 0 and numbers as parameters. Got {got}."
        raise InputError(rule, parameter="model", got=_called(frozen))
    if not dist._argcheck(*shapes):
        raise InputError(
            "{parameter} must have parameters that {name} allows. Got {got}.", parameter="model", name=name, got=_called(frozen)
        )

    def to_normal(rows: Array) -> Array:
        with np.errstate(all="ignore"):
            low, high = frozen.cdf(rows), frozen.sf(rows)
            scores = np.where(low < high, special.ndtri(low), -special.ndtri(high))  # either tail to its last digit
        return np.asarray(np.clip(scores, -FARTHEST, FARTHEST))

    def sample(count: int, rng: np.random.Generator) -> Array:
        return np.asarray(frozen.rvs(size=(count, 1), random_state=rng))

    form = ANALYTIC.get(name)
    if form is None:
        return Model(_called(frozen), _differences(frozen), "numerical", 1, frozen.logpdf, sample, to_normal)

    def score(rows: Array) -> Array:
        inside = (rows > frozen.support()[0]) & (rows < frozen.support()[1])
        return np.where(inside, form((rows - loc) / scale, *shapes) / scale, np.nan)

    return Model(_called(frozen), score, "analytic", 1, None, sample, to_normal)


def _called(frozen: Any) -> str:
    inside = [f"{float(value):g}" if np.size(value) == 1 else str(value) for value in frozen.args]
    inside += [f"{key}={float(value):g}" if np.size(value) == 1 else f"{key}={value}" for key, value in frozen.kwds.items()]
    return f"{frozen.dist.name}({', '.join(inside)})" if inside else str(frozen.dist.name)


def _differences(frozen: Any) -> Callable[[Array], Array]:
    """Return the gradient of a log-density by differences of fourth order, in steps that stay inside its support."""
    low, high = frozen.support()
    usual = STEP * float(frozen.ppf(0.75) - frozen.ppf(0.25))

    def score(rows: Array) -> Array:
        h = np.minimum(usual, np.minimum(rows - low, high - rows) / 4)
        near, far = (frozen.logpdf(rows + k * h) - frozen.logpdf(rows - k * h) for k in (1, 2))
        return np.asarray((8 * near - far) / (12 * h))

    return score


def _normal(frozen: Any) -> Model:
    mean, covariance = np.asarray(frozen.mean, dtype=float), np.asarray(frozen.cov, dtype=float)
    root = _inverse_root(covariance)

    def sample(count: int, rng: np.random.Generator) -> Array:
        return np.asarray(frozen.rvs(size=count, random_state=rng)).reshape(count, -1)

    return Model(
        "the normal distribution",
        lambda rows: -(rows - mean) @ root @ root,
        "analytic",
        len(mean),
        None,
        sample,
        lambda rows: (rows - mean) @ root,
    )


def _student(frozen: Any) -> Model:
    loc, df = np.asarray(frozen.loc, dtype=float), float(frozen.df)
    root = _inverse_root(np.asarray(frozen.shape, dtype=float))

    def score(rows: Array) -> Array:
        white = (rows - loc) @ root
        weight = 1.0 if np.isinf(df) else (df + len(loc)) / (df + np.square(white).sum(axis=1))
        return np.asarray(-(np.asarray(weight).reshape(-1, 1)) * white @ root)

    def sample(count: int, rng: np.random.Generator) -> Array:
        return np.asarray(frozen.rvs(size=count, random_state=rng)).reshape(count, -1)

    return Model(f"the t distribution with {df:g} degrees of freedom", score, "analytic", len(loc), None, sample)


def _inverse_root(covariance: Array) -> Array:
    """Return the symmetric inverse root of a covariance matrix."""
    values, vectors = np.linalg.eigh(covariance)
    if values[0] <= 1e-12 * values[-1]:
        rule = "{parameter} must have a covariance matrix of full rank: rows of a singular one have no density. Drop columns."
        raise InputError(rule, parameter="model")
    return np.asarray((vectors / np.sqrt(values)) @ vectors.T)


def of_sklearn(given: object) -> Model | None:
    """Return the model of a fitted scikit-learn density; None for anything else."""
    if not type(given).__module__.startswith("sklearn."):
        return None
    name = type(given).__name__
    if name in ("GaussianMixture", "BayesianGaussianMixture"):
        _require_fitted(given, "weights_", name)
        return _mixture(given, name)
    if name == "KernelDensity":
        _require_fitted(given, "tree_", name)
        return _kernel_density(given)
    rule = "Of scikit-learn, a model may be a GaussianMixture, a BayesianGaussianMixture or a KernelDensity. Got {got} instead."
    raise InputError(rule, got=name)


def _require_fitted(given: object, attribute: str, name: str) -> None:
    if not hasattr(given, attribute):
        raise InputError("{parameter} must be fitted. This {name} is not; call its fit first.", parameter="model", name=name)


def _mixture(given: Any, name: str) -> Model:
    """Return the mixture of normals that the weights, means and covariances of an estimator say."""
    weights, means = np.asarray(given.weights_), np.asarray(given.means_)
    count, d = means.shape
    kind, stored = given.covariance_type, np.asarray(given.covariances_)
    if kind == "tied":
        stored = np.broadcast_to(stored, (count, d, d))
    elif kind != "full":  # diag, spherical
        stored = stored.reshape(count, -1, 1) * np.eye(d)
    roots = np.array([_inverse_root(covariance) for covariance in stored])
    halves = np.linalg.cholesky(stored)

    def score(rows: Array) -> Array:
        white = np.einsum("knd,kde->kne", rows[None] - means[:, None], roots)
        logs = np.log(weights)[:, None] + np.linalg.slogdet(roots)[1][:, None] - 0.5 * np.square(white).sum(axis=2)
        shares = special.softmax(logs, axis=0)
        return np.asarray(-np.einsum("kn,kne,ked->nd", shares, white, roots))

    def sample(size: int, rng: np.random.Generator) -> Array:
        chosen = rng.choice(count, size=size, p=weights / weights.sum())
        return np.asarray(means[chosen] + np.einsum("nde,ne->nd", halves[chosen], rng.normal(size=(size, d))))

    return Model(f"the {name}", score, "analytic", d, None, sample, fitted=True)


def _kernel_density(given: Any) -> Model:
    if given.kernel != "gaussian" or given.metric != "euclidean":
        rule = "A KernelDensity must be Gaussian with Euclidean distances, to have a gradient. Got {kernel!r}, {metric!r}."
        raise InputError(rule, kernel=given.kernel, metric=given.metric)
    centres, width = np.asarray(given.tree_.data), float(given.bandwidth_)
    stored = given.tree_.sample_weight
    weights = np.full(len(centres), 1.0) if stored is None else np.asarray(stored, dtype=float)
    squares = np.square(centres).sum(axis=1)

    def score(rows: Array) -> Array:
        found = np.empty_like(rows)
        for start in range(0, len(rows), ROWS_AT_ONCE):
            some = rows[start : start + ROWS_AT_ONCE]
            logs = np.log(weights) - 0.5 * (squares - 2 * some @ centres.T) / width**2  # but for a constant of each row
            found[start : start + len(some)] = (special.softmax(logs, axis=1) @ centres - some) / width**2
        return found

    def sample(size: int, rng: np.random.Generator) -> Array:
        chosen = rng.choice(len(centres), size=size, p=weights / weights.sum())
        return np.asarray(centres[chosen] + width * rng.normal(size=(size, centres.shape[1])))

    return Model("the KernelDensity", score, "analytic", centres.shape[1], None, sample, fitted=True)
