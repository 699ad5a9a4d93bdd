"""Preparation: encoding, imputation and scaling, fitted on the rows that the level rules allow, and the matrix that they give.

A split procedure fits on its training rows only, an unsplit one on the whole pool (which is symmetric in the labels).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING
from zlib import crc32

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Labels, Objects, Rows
from cpmmd.data.numbers import Chosen, Matrix, Numbers
from cpmmd.data.preprocessing import Transformer, apply_transformer, fit_transformer
from cpmmd.errors import InputError, Note

if TYPE_CHECKING:
    from cpmmd.data.pool import Pool

MAX_LEVELS = 50  # of a category that all get a feature, even the rarest
MAX_FEATURES = 512  # of a category with more; fewer where the rows are so many that their matrix would be large
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
    levels: Mapping[str, tuple[str, ...]]  # names of each category's features: see :func:`_levels`
    transformer: Transformer | None = None  # fitted; what it makes of the rows is then scaled, and the other fields are of that

    @classmethod
    def fit(cls, samples: Pool, rows: Rows | None = None, *, scale: str | None = None) -> Preparation:
        """Fit on some rows of the pool (all of them when None)."""
        validation.scale(scale)
        if samples.preprocess is not None:
            fitted_rows = np.arange(sum(samples.sizes)) if rows is None else rows
            transformer = fit_transformer(samples.preprocess, samples, fitted_rows)
            made = _transformed(samples, apply_transformer(transformer, samples, fitted_rows))
            return replace(cls.fit(made, scale=scale), transformer=transformer)
        numbers = samples.numbers
        units, unit = _units(numbers, rows)
        fill, mean, deviation, absent = _moments(samples, rows, units)
        is_date = np.array([name in samples.dates for name in samples.number_names], dtype=bool)
        origin, divisor = np.where(is_date, fill, 0.0), np.full(len(fill), unit)
        if scale == "standard":
            origin, divisor = mean, deviation
        fitted = slice(None) if rows is None else rows
        levels = {c: _levels(v[fitted], len(numbers), samples.open_ended) for c, v in samples.categories.items()}
        return cls(
            samples.number_names,
            fill,
            origin,
            np.where(divisor > 0, divisor, units if scale == "standard" else unit),
            absent,
            levels,
        )

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

    @property
    def pooled(self) -> tuple[str, ...]:
        """Categories with a feature that several levels may share, so that these look the same or nearly so."""
        return tuple(column for column, names in self.levels.items() if OTHER in names)

    def transform(self, samples: Pool, rows: Rows | None = None) -> Array:
        """Return the matrix of some rows of the pool (all of them when None)."""
        if self.transformer is not None:
            made = apply_transformer(self.transformer, samples, np.arange(sum(samples.sizes)) if rows is None else rows)
            return replace(self, transformer=None).transform(_transformed(samples, made))
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


def _transformed(samples: Pool, made: Array) -> Pool:
    """Return the numbers that a transformer made in place of a pool's columns."""
    names = tuple(str(j) for j in range(made.shape[1]))
    return replace(samples, numbers=Matrix(made), number_names=names, dates=frozenset(), categories={}, preprocess=None)


def _moments(samples: Pool, rows: Rows | None, units: Array) -> tuple[Array, Array, Array, tuple[int, ...]]:
    """Return median, mean and standard deviation of each number column, and the columns with missing values.

    They are taken over some rows of the pool, each in its unit so that squares are finite; of many rows in passes over blocks.
    """
    numbers = samples.numbers
    count, width = (len(numbers) if rows is None else len(rows)), numbers.shape[1]
    if count * width > WHOLE_VALUES:
        mean = sum(((block / units).sum(axis=0) for block in numbers.blocks(rows)), np.zeros(width)) / count
        if not np.isnan(mean).any():  # nothing is missing, so the median only says where dates begin
            squares = sum((np.square(block / units - mean).sum(axis=0) for block in numbers.blocks(rows)), np.zeros(width))
            return mean * units, mean * units, np.sqrt(squares / count) * units, ()
    whole = np.asarray(numbers) if rows is None else numbers[rows]
    absent = np.isnan(whole)
    incomplete = np.flatnonzero(absent.any(axis=0))
    fill = np.median(whole, axis=0)
    for j in incomplete:
        fill[j] = np.median(whole[~absent[:, j], j]) if not absent[:, j].all() else 0.0
    filled = np.where(absent, fill, whole)
    with np.errstate(over="ignore", invalid="ignore"):  # values that overflow are refused when they are transformed
        mean, deviation = (filled / units).mean(axis=0) * units, (filled / units).std(axis=0) * units
    return fill, mean, deviation, tuple(incomplete.tolist())


def _units(numbers: Numbers, rows: Rows | None) -> tuple[Array, float]:
    """Return a unit for each column and one for all: 1, or a power of two near the typical size of very large or small values.

    Distances, bandwidths and standard deviations are then computed in that unit, exactly as for values of ordinary size. One
    wild value among ordinary ones is no reason for another unit: it would hide the rest.
    """
    largest = np.zeros(numbers.shape[1])
    for block in numbers.blocks(rows):
        largest = np.fmax(largest, np.fmax.reduce(np.abs(block), axis=0))
    ordinary = (largest == 0.0) | ((ORDINARY[0] < largest) & (largest < ORDINARY[1]))
    units = np.ones(len(largest))
    for j in np.flatnonzero(~ordinary):
        units[j] = _unit_of(numbers, rows, np.array([j]))
    most = float(largest.max(initial=0.0))
    return units, 1.0 if ORDINARY[0] < most < ORDINARY[1] or most == 0.0 else _unit_of(numbers, rows, np.arange(len(largest)))


def _unit_of(numbers: Numbers, rows: Rows | None, columns: Rows) -> float:
    values = np.abs(Chosen(numbers, rows, columns).take(np.arange(len(numbers) if rows is None else len(rows))))
    typical = float(np.median(values[np.isfinite(values) & (values != 0)]))
    return 1.0 if ORDINARY[0] < typical < ORDINARY[1] else float(2.0 ** np.floor(np.log2(typical)))


def pooled_levels(pool: Pool) -> tuple[Note, ...]:
    """Return a note on each category whose rare levels share features."""
    rule = "column {column!r} has {levels:,} levels: the rare ones are pooled, and a difference between them may be missed"
    return tuple(
        Note(rule, column=column, levels=levels)
        for column, values in pool.categories.items()
        if (levels := len(set(values))) > MAX_LEVELS and OTHER in _levels(values, len(values), pool.open_ended)
    )


def _levels(values: Objects, rows: int, keep_other: bool) -> tuple[str, ...]:
    """Return the names of a category's features, of a pool of ``rows`` rows.

    Few levels have a feature each, and unseen ones none or a common one. Of many levels the frequent ones do, and those of one
    row share one, which finds that many levels are new. Where levels that repeat are left over, or may come later, what has no
    feature of its own is half in the common one, half in one that a hash of its name chooses, which finds a new level of many
    rows. Nothing of this looks at labels.
    """
    counts = Counter(MISSING if v is None else v for v in values)
    if len(counts) + keep_other <= MAX_LEVELS:
        return (*sorted(counts), *((OTHER,) if keep_other and OTHER not in counts else ()))
    most = max(MAX_LEVELS, min(MAX_FEATURES, WHOLE_VALUES // rows))
    # Frequent first, ties by name: a symmetric function of the rows.
    ranked = sorted(counts, key=lambda level: (-counts[level], level))
    kept = sorted(level for level in ranked[: most - most // 4 - 1] if counts[level] > 1)
    if len(kept) == len(counts) and not keep_other:
        return tuple(kept)
    hashed = most // 4 if keep_other or sum(count > 1 for count in counts.values()) > len(kept) else 0
    return (*kept, OTHER, *_hash_names(hashed))


def _hash_names(count: int) -> tuple[str, ...]:
    return tuple(f"(other {k})" for k in range(1, count + 1))


def _hashed(names: tuple[str, ...]) -> int:
    """Return how many of a category's features, the last ones, are chosen by a hash."""
    count = names[::-1].index(OTHER) if OTHER in names else 0
    return count if names[len(names) - count :] == _hash_names(count) else 0


def _one_hot(values: Objects, names: tuple[str, ...]) -> Array:
    hashed = _hashed(names)
    position = {level: j for j, level in enumerate(names[: len(names) - hashed])}
    other = position.get(OTHER, -1)
    codes = np.array([position.get(MISSING if v is None else v, other) for v in values], dtype=int)
    encoded = np.zeros((len(values), len(names)))
    known = codes >= 0  # a level never seen while fitting is a row of zeros
    encoded[np.flatnonzero(known), codes[known]] = ONE_HOT
    if hashed:
        rare = np.flatnonzero(codes == other)
        chosen = [other + 1 + crc32((values[row] or MISSING).encode(errors="surrogatepass")) % hashed for row in rare]
        encoded[rare, other] = encoded[rare, chosen] = 0.5  # at distance 1 from the others too
    return encoded
