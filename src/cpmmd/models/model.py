"""A model of rows: the score of its density, how to draw from it, and the checks of both."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.text import pluralize
from cpmmd.errors import InputError

OfRows: TypeAlias = Callable[[Array], Any]
Draw: TypeAlias = Callable[[int, np.random.Generator], Any]

THE_MODEL = "the model"
KINDS = (
    "a pair of functions (log-density, gradient), a function that returns the gradient, a Density, a TorchDensity, a torch "
    "distribution, a frozen scipy distribution, a fitted GaussianMixture or KernelDensity, or a name such as 'normal' or "
    "'gamma(5)'"
)
NO_GRADIENT = (
    "A log-density must come with its gradient. {name} returns one number a row. Pass a pair of functions (log-density, "
    "gradient), a function that returns both, or TorchDensity(f) for a function of a torch tensor."
)
WRONG_SHAPE = (
    "The gradient must have one row for each row of the data, and one column for each column. {name} returns shape {got} for "
    "rows of shape {shape}. A function of a single row can be wrapped: lambda rows: np.stack([f(row) for row in rows])."
)
NOT_FINITE = (
    "The {what} must be a finite number in every row. {name} returns {got} in row {row} (counted from 0), which is {values}. "
    "Leave that row out, or correct the function."
)
NOT_ITS_GRADIENT = (
    "The gradient must be that of the log-density. In row {row} (counted from 0) the log-density changes by {seen:.4g} a unit "
    "along a random direction, the gradient says {said:.4g}. Correct one of the two functions."
)
OTHER_COLUMNS = (
    "The data must have as many columns as the model. {name} has {expected}, and {sample} has {got}. Choose its columns."
)
CHECKED_ROWS = 5  # rows in which a gradient is compared with differences of the log-density
STEP = 1e-4  # of a column's standard deviation
GRADIENT_ERROR = 0.02  # relative difference from which on they are two functions; a difference of differences is no better


@dataclass(frozen=True, eq=False)
class Density:
    """A density that you can compute up to a constant, or only its gradient.

    Parameters
    ----------
    score : callable
        Rows (n x d) to the gradient of the log-density there (n x d).
    log_density : callable, optional
        Rows to the log-density, up to a constant (n). The gradient is compared with its differences in a few rows.
    sample : callable, optional
        ``sample(n, rng)`` returns n independent rows of the model (n x d), drawn with the generator ``rng``. With it the test is
        exact.
    name : str
        What to call the model.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Density, goodness_of_fit_test
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> model = Density(lambda rows: -rows, sample=lambda n, rng: rng.normal(size=(n, 2)), name="N(0, I)")
    >>> goodness_of_fit_test(x, model, rng=0).reject
    False
    """

    score: OfRows
    log_density: OfRows | None = None
    sample: Draw | None = None
    name: str = THE_MODEL

    def __post_init__(self) -> None:
        for what in ("score", "log_density", "sample"):
            value = getattr(self, what)
            if not callable(value) and (what == "score" or value is not None):
                raise InputError("{parameter} must be a function. Got {got!r} instead.", parameter=what, got=value)


@dataclass(frozen=True, eq=False)
class Model:
    """What a test needs to know of a model, however it was given."""

    name: str
    score: OfRows | None = None  # the gradient of the log-density; None where nothing but drawing is possible
    gradient: str = "given"  # where it comes from: given, analytic, numerical, automatic
    columns: int | None = None  # None: whatever the data have
    log_density: OfRows | None = None
    sample: Draw | None = None
    #: turns rows into ones that are N(0, I) under the model, so that neither its gradient nor draws of it are needed
    to_normal: Callable[[Array], Array] | None = None
    estimated: bool = False  # whether the family is meant, with parameters fitted to the data (the normal family only)
    fitted: bool = False  # whether it was fitted, perhaps to the same rows

    @property
    def can_be_sampled(self) -> bool:
        """Whether data sets of the model can be drawn."""
        return self.estimated or self.to_normal is not None or self.sample is not None

    def check_columns(self, got: int) -> None:
        """Refuse data of another number of columns."""
        if self.columns is not None and self.columns != got:
            name = self.name[:1].upper() + self.name[1:]
            raise InputError(OTHER_COLUMNS, sample="x", name=name, expected=pluralize(self.columns, "column"), got=got)

    def scores(self, rows: Array, *, observed: bool = False) -> Array:
        """Return the gradient of the log-density at rows, checked; of the data it is compared with the log-density as well."""
        if self.score is None:
            raise InputError("{name} has no density, so only draws of it can be compared.", name=self.name)
        with np.errstate(all="ignore"):  # what is not finite is refused with a sentence
            found = np.asarray(_numbers(self.score(rows)), dtype=np.float64)
        if found.shape == (len(rows),) and rows.shape[1] == 1:
            found = found[:, None]
        if found.shape != rows.shape:
            rule = NO_GRADIENT if found.shape == (len(rows),) else WRONG_SHAPE
            raise InputError(rule, parameter="model", name=self.name, got=found.shape, shape=rows.shape)
        _check_finite("gradient of the log-density", found, rows, self.name)
        if observed and self.log_density is not None:
            self._check_gradient(self.log_density, rows, found)
        return found

    def _check_gradient(self, log_density: OfRows, rows: Array, scores: Array) -> None:
        def value(at: Array) -> Array:
            with np.errstate(all="ignore"):
                return np.asarray(_numbers(log_density(at)), dtype=np.float64).reshape(len(at), -1)[:, 0]

        of_rows = value(rows)
        _check_finite("log-density", of_rows, rows, self.name)
        some = np.unique(np.linspace(0, len(rows) - 1, CHECKED_ROWS).astype(int))
        along = np.random.default_rng(0).normal(size=(len(some), rows.shape[1]))
        along /= np.linalg.norm(along, axis=1, keepdims=True)
        step = STEP * float(np.median(rows.std(axis=0)) or 1.0)
        seen = (value(rows[some] + step * along) - value(rows[some] - step * along)) / (2 * step)
        expected = (scores[some] * along).sum(axis=1)
        size = np.linalg.norm(scores[some], axis=1) + np.median(np.linalg.norm(scores, axis=1))
        rounding = 1e-12 * np.abs(of_rows[some]) / step  # of the difference, whatever the constant
        wrong = np.abs(seen - expected) > GRADIENT_ERROR * size + 100 * rounding
        if np.count_nonzero(wrong & np.isfinite(seen)) > len(some) // 2:  # one row may stand at a kink
            row = int(np.flatnonzero(wrong)[0])
            raise InputError(NOT_ITS_GRADIENT, parameter="model", row=int(some[row]), seen=seen[row], said=expected[row])

    def draw(self, count: int, columns: int, rng: np.random.Generator) -> Array:
        """Return independent rows of the model, checked."""
        if self.sample is None:
            raise InputError("{name} cannot be sampled.", name=self.name)
        found = np.asarray(_numbers(self.sample(count, rng)), dtype=np.float64)
        found = found[:, None] if found.shape == (count,) and columns == 1 else found
        if found.shape != (count, columns):
            rule = "Draws of the model must be rows like those of the data. Got shape {got} where {expected} was expected."
            raise InputError(rule, parameter="model", got=found.shape, expected=(count, columns))
        if not np.isfinite(found).all():
            raise InputError("Draws of the model must be finite numbers. {name} drew others.", parameter="model", name=self.name)
        return found


def read_model(given: object) -> Model:
    """Return what was passed as a model."""
    from cpmmd.models.autograd import of_torch
    from cpmmd.models.libraries import of_scipy, of_sklearn
    from cpmmd.models.named import named_model

    if isinstance(given, Model):
        return given
    if isinstance(given, str):
        return named_model(given)
    if isinstance(given, Density):
        return Model(given.name, given.score, log_density=given.log_density, sample=given.sample)
    for of_library in (of_scipy, of_sklearn, of_torch):
        found = of_library(given)
        if found is not None:
            return found
    name = getattr(given, "__name__", type(given).__name__)
    name = THE_MODEL if name in ("<lambda>", "function") else name
    if isinstance(given, tuple | list) and len(given) == 2 and all(map(callable, given)):
        log_density, gradient = given
        return Model(THE_MODEL, gradient, log_density=log_density)
    score = getattr(given, "score", None)
    if callable(score):
        return Model(name, score)
    if callable(given):
        return Model(name, _second(given))
    raise InputError("{parameter} must be " + KINDS + ". Got {got!r} instead.", parameter="model", got=given)


def _second(function: Callable[[Array], Any]) -> OfRows:
    """Return the gradient of a function that returns it alone, or after the log-density."""

    def gradient(rows: Array) -> Any:
        found = function(rows)
        return found[1] if isinstance(found, tuple) and len(found) == 2 else found

    return gradient


def _numbers(values: Any) -> Any:
    """Return values as numpy can read them; torch tensors that have a gradient must be detached first."""
    return values.detach().cpu().numpy() if hasattr(values, "detach") and hasattr(values, "cpu") else values


def _check_finite(what: str, values: Array, rows: Array, name: str) -> None:
    bad = ~np.isfinite(values.reshape(len(values), -1))
    if not bad.any():
        return
    row = int(np.flatnonzero(bad.any(axis=1))[0])
    got = float(values.reshape(len(values), -1)[row, np.flatnonzero(bad[row])[0]])
    shown = ", ".join(f"{value:.6g}" for value in rows[row, :4]) + (", ..." if rows.shape[1] > 4 else "")
    raise InputError(NOT_FINITE, parameter="model", what=what, name=name[:1].upper() + name[1:], got=got, row=row, values=shown)
