"""A transformer of the caller's, such as PCA: fitted without labels, on rows that the level rules allow."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, Protocol

import narwhals as nw
import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Rows
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from cpmmd.data.pool import Pool


class Transformer(Protocol):
    """What scikit-learn calls a transformer: ``fit`` looks at rows, ``transform`` makes numbers of each row."""

    def fit(self, X: Any) -> Any:
        """Fit on rows."""

    def transform(self, X: Any) -> Any:
        """Return a row of numbers for each row."""


def check_transformer(value: Any) -> Transformer | None:
    """Return a transformer, or None where there is none."""
    if value is None or (
        not isinstance(value, type) and all(hasattr(value, name) for name in ("fit", "transform", "get_params"))
    ):
        return value
    rule = "must be None or a scikit-learn transformer, an object with fit and transform such as PCA(10)"
    raise validation.wrong("preprocess", rule, value)


def fit_transformer(transformer: Transformer, pool: Pool, rows: Rows) -> Transformer:
    """Return a copy of a transformer, fitted on some rows of the pool.

    Rows are put in order by what is in them, and a random state that is None becomes 0: what is fitted depends on the set of
    rows alone, not on the sample that they are of.
    """
    from sklearn.base import clone

    fresh: Any = clone(transformer)
    seeds = {name: 0 for name, value in fresh.get_params().items() if name.endswith("random_state") and value is None}
    fresh.set_params(**seeds)
    texts = [np.unique([str(v) for v in values[rows]], return_inverse=True)[1] for values in pool.categories.values()]
    order = np.lexsort([*pool.numbers[rows].T, *texts])
    try:
        fresh.fit(_as_input(pool, rows[order]))
    except Exception as error:
        raise _failed("fit", len(rows), error) from error
    fitted: Transformer = fresh
    return fitted


def apply_transformer(transformer: Transformer, pool: Pool, rows: Rows) -> Array:
    """Return the numbers that a fitted transformer makes of some rows of the pool."""
    try:
        found = transformer.transform(_as_input(pool, rows))
        matrix = np.asarray(found.toarray() if hasattr(found, "toarray") else found, dtype=np.float64)
    except Exception as error:
        raise _failed("transform", len(rows), error) from error
    if matrix.ndim != 2 or len(matrix) != len(rows) or not matrix.shape[1] or not np.isfinite(matrix).all():
        raise InputError(
            "A transformer must turn each row into a row of finite numbers. {transformer} returned an array of shape {shape} for "
            "{rows} rows{infinite}. Check it on one of the samples first.",
            parameter="preprocess",
            transformer=type(transformer).__name__,
            shape=matrix.shape,
            rows=len(rows),
            infinite="" if np.isfinite(matrix).all() else ", some of it missing or infinite",
        )
    return matrix


def _failed(step: str, rows: int, error: Exception) -> InputError:
    reason = next(iter(str(error).splitlines()), "") or type(error).__name__
    rule = f"{{parameter}} could not {step} {rows} rows: {{reason}}. Check it on one of the samples first."
    return InputError(rule, parameter="preprocess", reason=reason.rstrip("."))


def _as_input(pool: Pool, rows: Rows) -> Any:
    """Return rows as a transformer takes them: an array, a list of texts where that is all there is, or a frame."""
    numbers = pool.numbers[rows]
    if not pool.categories and pool.number_names == tuple(map(str, range(len(pool.number_names)))):
        return numbers
    columns: dict[str, Any] = dict(zip(pool.number_names, numbers.T, strict=True))
    columns |= {name: values[rows] for name, values in pool.categories.items()}
    if len(columns) == 1 and pool.categories:
        return ["" if text is None else text for text in next(iter(columns.values()))]
    return nw.from_dict(columns, backend="pandas" if find_spec("pandas") else "polars").to_native()
