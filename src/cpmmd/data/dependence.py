"""Rows in the order of their file: how far one tells of the next.

Columns are looked at by their ranks, by the squares of these (a spread that comes and goes has no correlation of its own), by
marks of missing values and of frequent levels. All of it is taken within each sample, so that no difference between the samples
is seen, and within each stratum where there are strata.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from scipy import special

from cpmmd.core.arrays import Array, Rows

if TYPE_CHECKING:
    from cpmmd.data.pool import Pool

ROWS = 2000  # of each sample that notes look at
LONG = 20_000  # of each sample that the length of blocks is taken from
STRETCHES = 4  # of consecutive rows, spread over a sample that has more
CELLS = 4_000_000  # rows by traits: of more columns some are looked at, evenly spread
LEVELS = 5  # the most frequent ones
FEWEST_MARKS = 0.1  # share of the rows: rare marks stand side by side by chance
LEFT = 0.1  # share of the long-run variance that block sums may miss
LIKELY = 2.0, 1.2  # standard errors of a correlation that goes on: those of independent rows, and Bartlett's
ALARM = 0.001  # chance that one which stands alone is taken for sure, over all traits and lags that are waited for
PATIENCE = 50  # lags without one that counts


@dataclass(frozen=True, eq=False)
class Traits:
    """Columns as they are looked at: each of mean 0 and mean square 1 in every stretch of rows.

    Attributes
    ----------
    parts
        A matrix for each stretch of consecutive rows, a column for each trait.
    names
        What a trait is of: ``column 'a'``, ``the spread of column 'a'``.
    first
        Stretches of X, which come first.
    """

    parts: list[Array]
    names: list[str]
    first: int

    @classmethod
    def of(cls, pool: Pool, *, leave: Collection[str] = (), strata: Rows | None = None, most: int = ROWS) -> Traits:
        """Return the traits of a pool, columns in ``leave`` not looked at."""
        stretches = list(_stretches(pool, strata, most))
        traits = list(_traits(pool, np.concatenate(stretches), leave))
        cuts = [slice(start, stop) for start, stop in pairwise(np.cumsum([0, *map(len, stretches)]))]
        parts = [np.column_stack([make(values[cut]) for _, make, values in traits]) for cut in cuts] if traits else []
        first = sum(bool(rows[0] < pool.m) for rows in stretches)
        return cls(parts, [name for name, _, _ in traits], first)

    def samples(self) -> list[Traits]:
        """Return the traits of each sample; of the longer one alone where the other has not half as many rows."""
        apart = [replace(self, parts=parts) for parts in (self.parts[: self.first], self.parts[self.first :])]
        rows = [sum(map(len, one.parts)) for one in apart]
        return [one for one, count in zip(apart, rows, strict=True) if 2 * count >= max(rows)]

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
    level. Where nothing differs both samples depend alike, so of a spread or a mark that moves in one sample only (a transient,
    say) no more is taken than the other sample shows.
    """
    traits = Traits.of(pool, leave=leave, strata=strata, most=LONG)
    if not traits.names:
        return BlockLength(1, "")
    together, apart = _needed(traits), np.min([_needed(one) for one in traits.samples()], axis=0)
    values = np.array([name.startswith("column") for name in traits.names])
    needed = np.where(values, together, np.minimum(together, apart))
    most = int(needed.argmax())
    return BlockLength(max(1, int(np.ceil(needed[most]))), traits.names[most] if needed[most] > 1 else "")


def _needed(traits: Traits) -> Array:
    """Return the rows of a block that are enough for each trait."""
    seen = _seen(traits.lag_correlations())
    if not seen.size:
        return np.ones(len(traits.names))
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


def _traits(pool: Pool, rows: Rows, leave: Collection[str]) -> Iterator[tuple[str, Callable[[Array], Array], Array]]:
    """Yield the name of each trait, how a stretch of it is made, and its values in all rows that are looked at."""
    room = max(10, CELLS // max(1, 3 * len(rows)))
    numbers = _spread([j for j, name in enumerate(pool.number_names) if name not in leave], room)
    block = pool.numbers[rows, numbers] if numbers else np.empty((len(rows), 0))
    for j, values in zip(numbers, block.T, strict=True):
        name, missing = f"column {pool.number_names[j]!r}", np.isnan(values)
        yield name, _ranked, values
        yield f"the spread of {name}", _folded, values
        if missing.mean() >= FEWEST_MARKS:
            yield f"the missing values of {name}", _marked, missing
    for text in _spread([name for name in pool.categories if name not in leave], room):
        given = np.array([str(v) for v in pool.categories[text][rows]])
        levels, counts = np.unique(given, return_counts=True)
        for k in np.argsort(-counts, kind="stable")[:LEVELS]:
            if counts[k] >= FEWEST_MARKS * len(rows):
                yield f"column {text!r}", _marked, given == levels[k]


def _stretches(pool: Pool, strata: Rows | None, most: int) -> Iterator[Rows]:
    """Yield the rows that are looked at: those of each sample and stratum, in stretches where there are more than ``most``."""
    for start, count in ((0, pool.m), (pool.m, pool.n)):
        inside = np.arange(start, start + count)
        for rows in [inside] if strata is None else [inside[strata[inside] == s] for s in np.unique(strata[inside])]:
            if len(rows) <= most:
                yield rows
                continue
            length = most // STRETCHES
            for first in np.linspace(0, len(rows) - length, STRETCHES).astype(int):
                yield rows[first : first + length]


def _spread(items: list[Any], most: int) -> list[Any]:
    """Return at most so many of a list, evenly spread over it."""
    return items if len(items) <= most else [items[int(k)] for k in np.linspace(0, len(items) - 1, most)]


def _ranked(values: Array) -> Array:
    """Return ranks, ties shared, missing values in the middle: two large values side by side would look like dependence."""
    return _unit(_ranks(values))


def _folded(values: Array) -> Array:
    """Return the squares of ranks about their middle: how far a value is from it."""
    return _unit(np.square(_ranks(values)))


def _marked(values: Array) -> Array:
    return _unit(values.astype(np.float64))


def _ranks(values: Array) -> Array:
    present = ~np.isnan(values)
    ordered = np.sort(values[present])
    ranks = (np.searchsorted(ordered, values, side="left") + np.searchsorted(ordered, values, side="right")).astype(np.float64)
    ranks -= ranks[present].mean() if present.any() else 0.0
    ranks[~present] = 0.0
    return ranks


def _unit(values: Array) -> Array:
    """Return values about their mean with unit mean square; zeros where they do not vary."""
    centred = values - values.mean() if len(values) else values
    spread = np.sqrt(np.mean(np.square(centred))) if len(values) else 0.0
    return np.asarray(centred / spread if spread > 0 else np.zeros(len(values)))
