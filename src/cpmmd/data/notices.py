"""What the data look like before any test: rows that tell of the next, columns that name groups, rows or times.

A note says what was seen and which argument helps. It never changes the test, draws nothing at random and looks at some
rows only.

How far one row tells of the next is seen in the order of the file. Columns are looked at by their ranks, by the squares of these
(a scale that comes and goes has no correlation of its own), by marks of missing values and of frequent levels. All of it is
taken within each sample, so that no difference between the samples is seen, and within each stratum where there are strata.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from itertools import pairwise
from typing import TYPE_CHECKING, NamedTuple, TypeVar

import numpy as np
from scipy import special

from cpmmd.core.arrays import Array, Rows
from cpmmd.data.numbers import Values
from cpmmd.errors import Note, ParameterReference, SampleName

if TYPE_CHECKING:
    from cpmmd.data.pool import Pool

T = TypeVar("T")

ROWS = 2000  # of each sample that notes look at
LONG = 20_000  # of each sample that the length of blocks is taken from
STRETCHES = 4  # of consecutive rows, at even distances in a sample that has more
CELLS = 4_000_000  # rows by traits: of more columns some are looked at, at even distances
LEVELS = 5  # the most frequent ones
FEWEST_MARKS = 0.1  # share of the rows: rare marks stand side by side by chance
LEFT = 0.1  # share of the long-run variance that block sums may miss
LIKELY = 2.0, 1.2  # standard errors of a correlation that goes on: those of independent rows, and Bartlett's
ALARM = 0.001  # chance that one which stands alone is taken for sure, over all traits and lags that are waited for
PATIENCE = 50  # lags without one that counts
LAGS = 3
FALSE_NOTE = 0.001  # chance of a note on independent rows, shared over columns and lags
CENTRED, EXACTLY = 20, 1e-10  # columns that are looked at, and what is left of a mean that was taken off
FEWEST_ROWS = 20  # of all samples: fewer cannot show it
ALL_DIFFERENT = 0.9  # share of the rows whose texts are different
REPEATED = 0.02  # share of a sample's rows that are copies, from which that is noted
MOST_COPIES = 5  # rows of a sample for each different one: beyond it data are discrete
FEWEST_PAIRS = 5  # of equal rows that are more than chance
LARGE = 1e9  # numbers beyond it are whole ones, as far as decimals go
NOT_CENTS = 1e-6  # from where a number has more than two decimals
FEWEST_LEVELS = 3  # of a column that names groups, in each sample


def notices(pool: Pool) -> tuple[str, ...]:
    """Return a note on each sign that single rows are not exchangeable."""
    if sum(pool.sizes) < FEWEST_ROWS:
        return ()
    named = telling_columns(pool)
    return (*named.values(), *fitted_steps(pool), *_all_different(pool), *_repeated(pool), *_dependent(pool, tuple(named)))


def fitted_steps(pool: Pool, names: Sequence[str] = ("x", "y")) -> Iterator[Note]:
    """Yield a note on each sample whose columns have mean 0 or are orthogonal to the last digit, as after a step fitted on it.

    A column of real data has mean 0 by chance only where its values are few.
    """
    real = [j for j, name in enumerate(pool.number_names) if name not in pool.dates and name not in pool.kinds]
    columns, ends = np.array(real[:CENTRED], dtype=np.intp), np.cumsum([0, *pool.sizes])
    if len(columns) < 2:
        return
    for sample, (start, end) in enumerate(pairwise(ends)):
        values = pool.numbers[np.arange(start, end), columns]
        size = np.abs(values).max(axis=0, initial=0.0)
        if end - start < FEWEST_ROWS or not np.isfinite(size).all() or not size.all() or not (values % 1).any(axis=0).all():
            continue
        values = values / size
        values /= np.linalg.norm(values, axis=0)
        centred = np.abs(values.sum(axis=0)).max() <= EXACTLY * np.sqrt(end - start)
        across = values.T @ values
        orthogonal = np.abs(across - np.diag(np.diag(across))).max() <= EXACTLY
        if centred or orthogonal:
            yield Note(
                "the columns of {sample} {trait} to the last digit, as after a step such as StandardScaler or PCA that was "
                "fitted on it: other rows then differ from it even if nothing changed. Pass the step as {preprocess} instead, "
                "or fit it on rows that are not compared",
                sample=SampleName(names[sample] if len(pool.sizes) <= len(names) else f"sample {sample + 1}"),
                trait="have mean 0" if centred else "are orthogonal",
                preprocess=ParameterReference("preprocess"),
            )


def _all_different(pool: Pool) -> Iterator[Note]:
    """Yield a note on each text column whose values hardly ever repeat: nothing in it can be compared."""
    for column, values in pool.categories.items():
        if len(set(values)) > ALL_DIFFERENT * len(values):
            yield Note(
                "nearly every text in column {column!r} is different. Texts are compared only as equal or unequal, so no "
                "difference in this column can be found. Pass numbers instead, such as embeddings, or a transformer with "
                "{preprocess}",
                column=column,
                preprocess=ParameterReference("preprocess"),
            )


def _repeated(pool: Pool) -> Iterator[Note]:
    """Yield a note on each sample that repeats its own rows far more often than it shares rows with the others.

    Discrete data repeat by chance, between samples as much as within them, or within each where the samples differ. Rows that a
    join has copied repeat in their own sample only, a few times each.
    """
    most = max(FEWEST_ROWS, min(LONG, CELLS // len(pool.columns)))
    rows = [start + np.arange(min(size, most)) for start, size in zip(np.cumsum([0, *pool.sizes]), pool.sizes, strict=False)]
    numbers = pool.numbers[np.concatenate(rows)] + 0.0  # no negative zero
    cents = 100 * np.clip(numbers, -LARGE, LARGE)
    continuous = bool((np.abs(cents - np.round(cents)) > NOT_CENTS).mean(axis=0).max(initial=0.0) > 1 / 2)
    texts = [np.unique([str(v) for v in some[np.concatenate(rows)]], return_inverse=True)[1] for some in pool.categories.values()]
    table = np.ascontiguousarray(np.column_stack([numbers, *texts]))
    keys = np.unique(table.view(np.dtype((np.void, table.itemsize * table.shape[1]))).ravel(), return_inverse=True)[1].ravel()
    ends = np.cumsum([len(part) for part in rows])
    counts = np.array([np.bincount(part, minlength=keys.max() + 1) for part in np.split(keys, ends[:-1])], dtype=np.float64)
    sizes = counts.sum(axis=1)
    # Pairs of rows of a sample that are equal, and the share of such pairs: at most so much, where there are few.
    within = (counts * (counts - 1)).sum(axis=1) / 2
    usual_within = _at_most(within) / (sizes * (sizes - 1) / 2)
    for i, own in enumerate(counts):
        n, others = sizes[i], counts.sum(axis=0) - own
        usual, distinct = _at_most(own @ others) / (n * others.sum()), np.count_nonzero(own)
        if not continuous:
            usual = max(usual, np.delete(usual_within, i).max())
        copied = n - distinct >= REPEATED * n and n <= MOST_COPIES * distinct
        if copied and within[i] > FEWEST_PAIRS + 3 * usual * n * (n - 1) / 2:
            yield Note(
                "{rows} of {total} rows of {sample} repeat another row of the same sample exactly, and hardly any of them are "
                "in both samples. Copied records make the test reject too often: drop the copies, or give all copies of a "
                "record one name in {groups}",
                rows=int(n - distinct),
                total=int(n),
                sample=SampleName("xy"[i] if len(counts) == 2 else f"sample {i + 1}"),
                groups=ParameterReference("groups"),
            )


def _at_most(count: Array) -> Array:
    """Return the largest mean of which a count is no surprise."""
    return np.asarray(count + 2 * np.sqrt(count) + 3)


def telling_columns(pool: Pool) -> dict[str, str]:
    """Return the columns that look like times, numbers of rows or names of groups, with a note on each."""
    return {column: words for column in pool.columns if (words := _names_something(pool, column))}


def _names_something(pool: Pool, column: str) -> str:
    """Return a note where a column looks like a time stamp, a number of rows, or the name of a group; empty where it does not."""
    if column not in (*pool.dates, *pool.categories) and pool.kinds.get(column) != "integer":
        return ""
    some = _values(pool, column, ROWS)
    if column in pool.dates:
        note = Note(
            "column {column!r} looks like the time of each row and is compared like any other column. Leave it out; if rows "
            "depend on each other, permute blocks of them with {blocks}",
            column=column,
            blocks=ParameterReference("blocks", "auto"),
        )
        return note if all(map(_rising, some)) else ""
    if column not in pool.categories and all(map(_counts, some)):
        return f"column {column!r} numbers the rows and is compared like any other column. Leave it out"
    if not _may_be_groups(some):
        return ""
    all_values = _values(pool, column, max(pool.sizes))
    if max(pool.sizes) > ROWS and not _may_be_groups(all_values):
        return ""
    *most, last = (str(len(np.unique(part))) for part in all_values)
    return Note(
        "column {column!r} looks like the name of a group: its {numbers} values repeat within a sample and never occur in "
        "two samples. Permute whole groups with {groups}",
        column=column,
        numbers=f"{', '.join(most)} and {last}",
        groups=ParameterReference("groups", column),
    )


def _values(pool: Pool, column: str, most: int) -> list[Values]:
    """Return the values of a column in the first rows of each sample."""
    starts = np.cumsum([0, *pool.sizes])
    parts = [start + np.arange(min(size, most)) for start, size in zip(starts, pool.sizes, strict=False)]
    if column in pool.categories:
        return [np.array([str(v) for v in pool.categories[column][rows]]) for rows in parts]
    return [pool.numbers[rows, pool.number_names.index(column)] for rows in parts]


def _may_be_groups(parts: list[Values]) -> bool:
    """Whether values repeat inside a sample and never stand in two."""
    levels = [np.unique(part) for part in parts]
    several = all(FEWEST_LEVELS <= len(own) <= len(part) / 2 for own, part in zip(levels, parts, strict=True))
    together = np.sort(np.concatenate(levels))
    return several and not (together[1:] == together[:-1]).any()


def _rising(values: Values) -> bool:
    """Whether values never fall, and rise more often than not."""
    steps = np.diff(values.astype(np.float64))
    return bool((steps >= 0).all() and (steps > 0).mean() > 0.5) if len(steps) else False


def _counts(values: Values) -> bool:
    """Whether values are consecutive whole numbers, up or in any order."""
    numbers = np.sort(values.astype(np.float64))
    return len(numbers) > 2 and bool((np.diff(numbers) == 1).all())


def _dependent(pool: Pool, leave: tuple[str, ...]) -> tuple[str, ...]:
    """Return a note where rows in the order of the file are visibly dependent."""
    traits = Traits.of(pool, leave=leave)
    found = list(traits.lag_correlations(most_lags=LAGS))
    if not found or not traits.looked_at:
        return ()
    lags = np.array([lag for lag, _ in found])
    # Correlations of independent rows are normal, of variance 1 / rows.
    bound = float(-special.ndtri(FALSE_NOTE / max(1, lags.size)) / np.sqrt(found[-1][1]))
    if not (lags > bound).any():
        return ()
    lag, at = np.unravel_index(int(lags.argmax()), lags.shape)
    trait, before = traits.looked_at[at], "one row" if lag == 0 else f"{lag + 1} rows"
    has, itself = ("have", "themselves") if trait.aspect is Aspect.MISSING else ("has", "itself")
    note = Note(
        "rows depend on each other in the order of the file: {seen} before, and independent rows would stay below {bound:.2f}. "
        "Permuting rows individually would reject too often. If rows are in time, permute blocks of them with {blocks}; if "
        "they belong to groups, name the groups with {groups}",
        seen=f"{trait} {has} correlation {lags[lag, at]:.2f} with {itself} {before}",
        bound=bound,
        blocks=ParameterReference("blocks", "auto"),
        groups=ParameterReference("groups"),
    )
    return (note,)


class Aspect(Enum):
    """What of a column is looked at."""

    VALUES = "column {!r}"
    SCALE = "the scale of column {!r}"
    MISSING = "the missing values of column {!r}"


class Trait(NamedTuple):
    """A column as it is looked at."""

    aspect: Aspect
    column: str

    def __str__(self) -> str:
        return self.aspect.value.format(self.column)


@dataclass(frozen=True, eq=False)
class Traits:
    """Columns as they are looked at: each of mean 0 and mean square 1 in every stretch of rows."""

    parts: list[Array]  # a matrix for each stretch of consecutive rows, a column for each trait
    looked_at: list[Trait]
    sample: list[int]  # of each stretch

    @classmethod
    def of(cls, pool: Pool, *, leave: Collection[str] = (), strata: Rows | None = None, most: int = ROWS) -> Traits:
        """Return the traits of a pool, columns in ``leave`` not looked at."""
        stretches = list(_stretches(pool, strata, most))
        traits = list(_traits(pool, np.concatenate([rows for _, rows in stretches]), leave))
        cuts = [slice(start, stop) for start, stop in pairwise(np.cumsum([0, *(len(rows) for _, rows in stretches)]))]
        parts = (
            [np.column_stack([made for _, make, values in traits for made in make(values[cut])]) for cut in cuts]
            if traits
            else []
        )
        return cls(parts, [trait for of_column, _, _ in traits for trait in of_column], [sample for sample, _ in stretches])

    def samples(self) -> list[Traits]:
        """Return the traits of each sample; without those that have not half as many rows as the longest."""
        apart = [
            replace(self, parts=[part for part, of in zip(self.parts, self.sample, strict=True) if of == sample])
            for sample in sorted(set(self.sample))
        ]
        rows = [sum(map(len, traits.parts)) for traits in apart]
        return [traits for traits, count in zip(apart, rows, strict=True) if 2 * count >= max(rows)]

    def lag_correlations(self, most_lags: int | None = None) -> Iterator[tuple[Array, int]]:
        """Yield the correlation of each trait at lag 1, 2, ... (rows) and over how many rows, those of stretches that have it."""
        last = max(map(len, self.parts), default=1) - 1
        for k in range(1, (last if most_lags is None else min(most_lags, last)) + 1):
            parts = [part for part in self.parts if len(part) > k]
            rows = sum(map(len, parts))
            yield np.asarray(sum(np.einsum("ij,ij->j", part[k:], part[:-k]) for part in parts) / rows), rows


class BlockLength(NamedTuple):
    """Rows of a block, and what needs them."""

    rows: int
    trait: str


def block_length(pool: Pool, *, leave: Collection[str] = (), strata: Rows | None = None) -> BlockLength:
    """Return the rows of a block that are enough for the most dependent trait.

    With lag correlations r_k the sum of n dependent rows has about n (1 + 2 sum r_k) times the variance of a row; blocks of K
    rows miss 2 sum k r_k / K of it. K keeps that below a tenth, however few blocks that leaves: shorter ones would not keep the
    level. Where nothing differs all samples depend alike, so of a scale or a mark that moves in one sample only (a transient,
    say) no more is taken than the others show.
    """
    traits = Traits.of(pool, leave=leave, strata=strata, most=LONG)
    if not traits.looked_at:
        return BlockLength(1, "")
    together, apart = _needed(traits), np.min([_needed(sample) for sample in traits.samples()], axis=0)
    values = np.array([trait.aspect is Aspect.VALUES for trait in traits.looked_at])
    needed = np.where(values, together, np.minimum(together, apart))
    most = int(needed.argmax())
    return BlockLength(max(1, int(np.ceil(needed[most]))), str(traits.looked_at[most]) if needed[most] > 1 else "")


def _needed(traits: Traits) -> Array:
    """Return the rows of a block that are enough for each trait."""
    seen = _seen(traits.lag_correlations())
    if not seen.size:
        return np.ones(len(traits.looked_at))
    missed, variance = 2 * (np.arange(1, len(seen) + 1) @ seen), 1 + 2 * seen.sum(axis=0)
    return np.asarray(missed / (LEFT * variance))


def _seen(lags: Iterable[tuple[Array, int]]) -> Array:
    """Return the correlations (lags x traits) that are not noise, zero where they are.

    A likely one counts after one that did, a sure one anywhere: of ten sensors in turn, only every tenth lag has one. A trait is
    done with at a sure negative one (a cycle, which blocks average out) or after a time without a sure one.
    """
    kept: list[Array] = []
    last = variance = np.zeros(0)  # of each trait: the lag that counted last, negative once it is done with; see below
    for k, (lag, rows) in enumerate(lags, start=1):
        before = kept[-1] > 0 if kept else np.ones(len(lag), dtype=bool)
        last, variance = (last, variance) if kept else (np.zeros(len(lag)), np.ones(len(lag)))
        sure = -special.ndtri(ALARM / (PATIENCE * max(1, len(lag)))) * np.sqrt(variance / rows)
        likely = np.maximum(LIKELY[0], LIKELY[1] * np.sqrt(variance)) / np.sqrt(rows)
        counts = ((lag > sure) | (before & (lag > likely))) & (last >= 0)
        kept.append(np.where(counts, lag, 0.0))
        variance = variance + 2 * kept[-1] ** 2  # Bartlett's, of a correlation behind the last one, in units of 1 / rows
        last = np.where(counts, k, last)
        last[(lag < -sure) | (k - last >= PATIENCE)] = -PATIENCE
        if (last < 0).all():
            break
    return np.array(kept)


def _traits(
    pool: Pool, rows: Rows, leave: Collection[str]
) -> Iterator[tuple[list[Trait], Callable[[Array], list[Array]], Array]]:
    """Yield traits of a column, how a stretch of them is made, and the column's values in all rows that are looked at."""
    room = max(10, CELLS // max(1, 3 * len(rows)))
    numbers = _some_of([j for j, name in enumerate(pool.number_names) if name not in leave], room)
    block = pool.numbers[rows, numbers] if numbers else np.empty((len(rows), 0))
    for j, values in zip(numbers, block.T, strict=True):
        name, missing = pool.number_names[j], np.isnan(values)
        yield [Trait(Aspect.VALUES, name), Trait(Aspect.SCALE, name)], _place_and_scale, values
        if missing.mean() >= FEWEST_MARKS:
            yield [Trait(Aspect.MISSING, name)], _mark, missing.astype(np.float64)
    for text in _some_of([name for name in pool.categories if name not in leave], room):
        given = np.array([str(v) for v in pool.categories[text][rows]])
        levels, counts = np.unique(given, return_counts=True)
        for k in np.argsort(-counts, kind="stable")[:LEVELS]:
            if counts[k] >= FEWEST_MARKS * len(rows):
                yield [Trait(Aspect.VALUES, text)], _mark, (given == levels[k]).astype(np.float64)


def _place_and_scale(values: Array) -> list[Array]:
    """Return ranks, and their squares, of one stretch of a column."""
    ranks = _ranks(values)
    return [_standard(ranks), _standard(np.square(ranks))]


def _mark(values: Array) -> list[Array]:
    return [_standard(values)]


def _stretches(pool: Pool, strata: Rows | None, most: int) -> Iterator[tuple[int, Rows]]:
    """Yield the rows that are looked at: those of each sample and stratum, in stretches where there are more than ``most``."""
    for sample, (start, stop) in enumerate(pairwise(np.cumsum([0, *pool.sizes]))):
        inside = np.arange(start, stop)
        for rows in [inside] if strata is None else [inside[strata[inside] == s] for s in np.unique(strata[inside])]:
            length = len(rows) if len(rows) <= most else most // STRETCHES
            for first in np.linspace(0, len(rows) - length, 1 if len(rows) <= most else STRETCHES).astype(int):
                yield sample, rows[first : first + length]


def _some_of(items: list[T], most: int) -> list[T]:
    """Return at most so many of a list, at even distances."""
    return items if len(items) <= most else [items[int(k)] for k in np.linspace(0, len(items) - 1, most)]


def _ranks(values: Array) -> Array:
    """Return ranks about their middle, ties shared, missing values in it: two large values side by side would look dependent."""
    present = ~np.isnan(values)
    ordered = np.sort(values[present])
    ranks = (np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")).astype(np.float64)
    ranks -= ranks[present].mean() if present.any() else 0.0
    ranks[~present] = 0.0
    return ranks


def _standard(values: Array) -> Array:
    """Return values about their mean with unit mean square; zeros where they do not vary."""
    centred = values - values.mean() if len(values) else values
    size = np.sqrt(np.mean(np.square(centred))) if len(values) else 0.0
    return np.asarray(centred / size if size > 0 else np.zeros(len(values)))
