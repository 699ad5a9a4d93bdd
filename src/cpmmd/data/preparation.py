"""Preparation: encoding, imputation and scaling, fitted on the rows that the level rules allow, and the matrix that they give.

A split procedure fits on its training rows only, an unsplit one on the whole pool (which is symmetric in the labels).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Labels, Objects, Rows
from cpmmd.data.numbers import Numbers
from cpmmd.data.pool import Pool
from cpmmd.errors import InputError

MAX_LEVELS = 50  # of a category; the rarer ones share one level
ONE_HOT = np.sqrt(0.5)  # two different categories are then at distance 1
WHOLE_VALUES = 2**24  # numbers that are looked at as one matrix: 128 MB
ORDINARY = (1e-100, 1e100)  # sizes whose fourth powers are still numbers
MISSING = "(missing)"
OTHER = "(other)"


@dataclass(frozen=True, eq=False)
class PreparedPool:
    """The rows of two samples as one matrix."""

    matrix: Array
    m: int  # rows of X, which come first
    row_shape: tuple[int, ...] | None = None  # of a row before it was flattened, where that is more than a number of columns

    @property
    def n(self) -> int:
        """Number of rows of Y."""
        return len(self.matrix) - self.m

    @property
    def size(self) -> int:
        """Number of pooled rows, N = m + n."""
        return len(self.matrix)

    @property
    def labels(self) -> Labels:
        """True for the rows of X."""
        return np.arange(self.size) < self.m

    @property
    def data_norm(self) -> float:
        """|D|_F / N, the data factor of the complexity proxy."""
        scale = float(np.abs(self.matrix).max(initial=0.0))
        if scale == 0.0:
            return 0.0
        return float(np.linalg.norm(self.matrix / scale)) * scale / self.size


@dataclass(frozen=True, eq=False)
class Preparation:
    """Fitted encoding from tables to matrices."""

    number_names: tuple[str, ...]
    fill: Array  # median of each number column over the fitted rows
    # origin, scale: what is taken off and divided by
    origin: Array
    scale: Array
    # positions of the number columns that had missing values among the fitted rows: each gets a column that says so
    indicators: tuple[int, ...]
    levels: Mapping[str, tuple[str, ...]]  # kept levels of each category

    @classmethod
    def fit(cls, samples: Pool, rows: Rows | None = None, *, scale: str | None = None) -> Preparation:
        """Fit on some rows of the pool (all of them when None)."""
        validation.scale(scale)
        unit = _unit(samples.numbers, rows)
        fill, mean, deviation, absent = _moments(samples, rows, unit)
        is_date = np.array([name in samples.dates for name in samples.number_names], dtype=bool)
        origin, divisor = np.where(is_date, fill, 0.0), np.full(len(fill), unit)
        if scale == "standard":
            origin, divisor = mean, deviation
        fitted = slice(None) if rows is None else rows
        levels = {column: _levels(values[fitted], samples.open_ended) for column, values in samples.categories.items()}
        return cls(samples.number_names, fill, origin, np.where(divisor > 0, divisor, unit), absent, levels)

    @property
    def feature_columns(self) -> tuple[str, ...]:
        """Data column of each matrix column."""
        flags = [self.number_names[j] for j in self.indicators]
        return (*self.number_names, *flags, *(c for c, kept in self.levels.items() for _ in kept))

    @property
    def features(self) -> tuple[str, ...]:
        """Name of each matrix column."""
        flags = [f"{self.number_names[j]} {MISSING}" for j in self.indicators]
        return (*self.number_names, *flags, *(f"{c}={level}" for c, kept in self.levels.items() for level in kept))

    def transform(self, samples: Pool, rows: Rows | None = None) -> Array:
        """Return the matrix of some rows of the pool (all of them when None)."""
        numbers = np.asarray(samples.numbers) if rows is None else samples.numbers[rows]
        absent = np.isnan(numbers)
        filled = np.where(absent, self.fill, numbers) if absent.any() else numbers
        with np.errstate(over="ignore", invalid="ignore"):
            parts = [(filled - self.origin) / self.scale, absent[:, list(self.indicators)].astype(np.float64)]
        chosen = slice(None) if rows is None else rows
        parts += [_one_hot(samples.categories[column][chosen], kept) for column, kept in self.levels.items()]
        matrix = np.ascontiguousarray(np.hstack(parts))
        if not np.isfinite(matrix).all():
            raise InputError("Values are too large to be scaled in double precision (beyond 1e150). Rescale the columns first.")
        return matrix


def _moments(samples: Pool, rows: Rows | None, unit: float) -> tuple[Array, Array, Array, tuple[int, ...]]:
    """Return median, mean and standard deviation of each number column, and the columns with missing values.

    They are taken over some rows of the pool, in ``unit`` so that squares are finite; of many rows in passes over blocks.
    """
    numbers = samples.numbers
    count, width = (len(numbers) if rows is None else len(rows)), numbers.shape[1]
    if count * width > WHOLE_VALUES:
        mean = sum(((block / unit).sum(axis=0) for block in numbers.blocks(rows)), np.zeros(width)) / count
        if not np.isnan(mean).any():  # nothing is missing, so the median only says where dates begin
            squares = sum((np.square(block / unit - mean).sum(axis=0) for block in numbers.blocks(rows)), np.zeros(width))
            return mean * unit, mean * unit, np.sqrt(squares / count) * unit, ()
    whole = np.asarray(numbers) if rows is None else numbers[rows]
    absent = np.isnan(whole)
    fill = np.array([np.median(c[~a]) if not a.all() else 0.0 for c, a in zip(whole.T, absent.T, strict=True)])
    filled = np.where(absent, fill, whole)
    with np.errstate(over="ignore", invalid="ignore"):  # values that overflow are refused when they are transformed
        mean, deviation = (filled / unit).mean(axis=0) * unit, (filled / unit).std(axis=0) * unit
    return fill, mean, deviation, tuple(np.flatnonzero(absent.any(axis=0)).tolist())


def _unit(numbers: Numbers, rows: Rows | None) -> float:
    """Return 1, or a power of two near the typical size of values so large or small that their squares leave double precision.

    Distances, bandwidths and standard deviations are then computed in that unit, exactly as for values of ordinary size. One
    wild value among ordinary ones is no reason for another unit: it would hide the rest.
    """
    largest = max((float(np.nanmax(np.abs(block), initial=0.0)) for block in numbers.blocks(rows)), default=0.0)
    if ORDINARY[0] < largest < ORDINARY[1] or largest == 0.0:
        return 1.0
    sizes = np.concatenate([np.abs(block[np.isfinite(block) & (block != 0)]) for block in numbers.blocks(rows)])
    typical = float(np.median(sizes))
    return 1.0 if ORDINARY[0] < typical < ORDINARY[1] else float(2.0 ** np.floor(np.log2(typical)))


def _levels(values: Objects, keep_other: bool) -> tuple[str, ...]:
    counts = Counter(MISSING if v is None else v for v in values)
    if len(counts) + keep_other <= MAX_LEVELS:
        return (*sorted(counts), *((OTHER,) if keep_other and OTHER not in counts else ()))
    # Frequent first, ties by name: a symmetric function of the rows.
    ranked = sorted(counts, key=lambda level: (-counts[level], level))
    return (*sorted(ranked[: MAX_LEVELS - 1]), OTHER)


def _one_hot(values: Objects, kept: tuple[str, ...]) -> Array:
    position = {level: j for j, level in enumerate(kept)}
    other = position.get(OTHER, -1)
    codes = np.array([position.get(MISSING if v is None else v, other) for v in values], dtype=int)
    encoded = np.zeros((len(values), len(kept)))
    known = codes >= 0  # a level never seen while fitting is a row of zeros
    encoded[np.flatnonzero(known), codes[known]] = ONE_HOT
    return encoded
