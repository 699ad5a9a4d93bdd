"""Relabelings: which sample each unit of rows is called. All that exist where those are few, else random ones.

Where a design has strata, labels move inside a stratum only: each keeps its number of units of every sample.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Labels, Rows
from cpmmd.core.text import bytes_in_words
from cpmmd.errors import InputError, ParameterReference

CHUNK_BYTES = 64 * 2**20  # of labels in work at once
BLOCK_ROWS = 512  # relabelings multiplied at once
BLOCK_BYTES = 8 * 2**20  # of labels given out at once
SHARE_OF_LIMIT = 4  # a quarter of the memory may go to relabelings


class Draws(ABC):
    """Actions that the null hypothesis allows, the observed one (which changes nothing) first, given out in blocks."""

    exhaustive: bool  # whether these are all there are

    @abstractmethod
    def __len__(self) -> int:
        """Return the number of actions, the observed one among them."""

    @abstractmethod
    def blocks(self) -> Iterator[npt.NDArray[Any]]:
        """Yield the actions, some at a time, one a row."""


@dataclass(frozen=True, eq=False)
class Relabelings(Draws):
    """Labelings by two labels, held in one bit a unit."""

    bits: npt.NDArray[np.uint8]  # a labeling a row, packed
    size: int  # units that are labelled
    exhaustive: bool = False
    signs: bool = False  # whether a label is given out as 1 or -1 instead of 1 or 0

    @classmethod
    def packed(cls, chunks: Iterator[Labels], count: int, size: int, limit: int | None, **kind: bool) -> Relabelings:
        """Hold ``count`` labelings that come in chunks; refused when they take more than their share of ``limit`` bytes."""
        width = -(-size // 8)
        if limit is not None and count * width > limit // SHARE_OF_LIMIT:
            raise InputError(
                "Permutations may take at most a quarter of the memory limit. {count} permutations take {needed}, and {setting} "
                "is {limit}. Raise it, or use fewer permutations with {fewer}.",
                count=count,
                needed=bytes_in_words(count * width),
                setting=ParameterReference("memory_limit"),
                limit=bytes_in_words(limit),
                fewer=ParameterReference("n_permutations"),
            )
        bits, done = np.empty((count, width), np.uint8), 0
        for chunk in chunks:
            bits[done : done + len(chunk)] = np.packbits(chunk, axis=1)
            done += len(chunk)
        return cls(bits, size, **kind)

    @classmethod
    def draw(
        cls,
        size: int,
        first: int,
        count: int,
        rng: np.random.Generator,
        limit: int | None = None,
        *,
        strata: Rows | None = None,
        enumerate_few: bool = True,
    ) -> Relabelings:
        """Return the observed labeling and the others below it: all there are where they are no more than ``count``.

        The first units are those of X. ``strata`` numbers the stratum of each unit; None is one for all.

        >>> labels = Relabelings.draw(6, 3, 999, np.random.default_rng(0))
        >>> len(labels), labels.exhaustive, labels.array()[0].tolist()
        (20, True, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
        """
        total = number_of_labels(size, first, strata)
        if enumerate_few and total <= count:
            return cls.packed(iter([all_labels(size, first, strata)]), total, size, limit, exhaustive=True)
        step = max(1, chunk_bytes(limit) // (size * 8))  # the sequence does not depend on the chunks
        others = (draw_labels(size, first, min(step, count - start), rng, strata) for start in range(0, count, step))
        return cls.packed(chain([(np.arange(size) < first)[None]], others), count + 1, size, limit)

    @classmethod
    def draw_signs(cls, size: int, count: int, rng: np.random.Generator, limit: int | None = None) -> Relabelings:
        """Return ``count`` random signs of ``size`` units below those that are all 1."""
        step = max(1, CHUNK_BYTES // size)  # whatever the limit: a chunk's draws begin anew
        sizes = [min(step, count - start) for start in range(0, count, step)]
        chunks = (rng.integers(0, 2, size=(some, size), dtype=np.int8).astype(bool) for some in sizes)
        return cls.packed(chain([np.ones((1, size), bool)], chunks), count + 1, size, limit, signs=True)

    def at(self, number: Rows) -> Relabelings:
        """Return the same labelings of units that stand in another order: at each place the one of this number."""
        bits, step = np.empty_like(self.bits), max(1, BLOCK_BYTES // self.size)
        for start in range(0, len(bits), step):
            labels = np.unpackbits(self.bits[start : start + step], axis=1, count=self.size)
            bits[start : start + step] = np.packbits(labels[:, number], axis=1)
        return replace(self, bits=bits)

    def __len__(self) -> int:
        return len(self.bits)

    def blocks(self, dtype: Any = np.float64, nbytes: int = BLOCK_BYTES) -> Iterator[npt.NDArray[Any]]:
        """Yield the labelings, some at a time; what is computed from them one by one does not depend on how many."""
        step = max(1, nbytes // (16 * self.size * BLOCK_ROWS)) * BLOCK_ROWS
        for start in range(0, len(self.bits), step):
            labels = np.unpackbits(self.bits[start : start + step], axis=1, count=self.size).astype(dtype)
            yield 2 * labels - 1 if self.signs else labels

    def array(self, dtype: Any = np.float64) -> npt.NDArray[Any]:
        """Return all of them at once."""
        return np.concatenate(list(self.blocks(dtype)))


@dataclass(frozen=True, eq=False)
class LabelCodes(Draws):
    """Labelings by any number of labels: the sample's number, from 0, that each unit is given."""

    codes: npt.NDArray[np.unsignedinteger[Any]]  # a labeling a row
    exhaustive: bool = False

    @classmethod
    def draw(
        cls, observed: Rows, count: int, rng: np.random.Generator, *, strata: Rows | None = None, enumerate_few: bool = True
    ) -> LabelCodes:
        """Return the observed labeling and the others below it: all there are where they are no more than ``count``.

        >>> codes = LabelCodes.draw(np.array([0, 0, 1, 2]), 999, np.random.default_rng(0))
        >>> len(codes), codes.exhaustive, codes.codes[:2].tolist()
        (12, True, [[0, 0, 1, 2], [0, 0, 2, 1]])
        """
        # Units of each stratum sample after sample: the observed labeling gives them their labels in that order.
        strata = np.zeros(len(observed), dtype=np.intp) if strata is None else strata
        parts = [units[np.argsort(observed[units], kind="stable")] for units in units_by_stratum(strata)]
        sizes = [np.unique(observed[units], return_counts=True)[1].tolist() for units in parts]
        total = math.prod(math.factorial(sum(some)) // math.prod(map(math.factorial, some)) for some in sizes)
        if enumerate_few and total <= count:
            ways = [
                [units[list(order)] for order in _arrangements(range(len(units)), some)]
                for units, some in zip(parts, sizes, strict=True)
            ]
            chunks = iter([np.array([np.concatenate(some) for some in product(*ways)])])
            exhaustive, count = True, total
        else:
            drawn = _shuffled_units(parts, count, len(observed), rng)
            chunks, exhaustive, count = chain([np.concatenate(parts)[None]], drawn), False, count + 1
        codes = np.empty((count, len(observed)), np.min_scalar_type(int(observed.max())))
        ordered, done = observed[np.concatenate(parts)].astype(codes.dtype)[None], 0
        for where in chunks:
            np.put_along_axis(codes[done : done + len(where)], where, ordered, axis=1)
            done += len(where)
        return cls(codes, exhaustive)

    def of(self, sample: int, limit: int | None = None) -> Relabelings:
        """Return the labelings of one sample against all others."""
        marks = (block == sample for block in self.blocks())
        count, size = self.codes.shape
        return Relabelings.packed(marks, count, size, limit, exhaustive=self.exhaustive)

    def __len__(self) -> int:
        return len(self.codes)

    def blocks(self) -> Iterator[npt.NDArray[np.unsignedinteger[Any]]]:
        """Yield the labelings, some at a time."""
        for start in range(0, len(self.codes), BLOCK_ROWS):
            yield self.codes[start : start + BLOCK_ROWS]


def _shuffled_units(parts: Sequence[Rows], count: int, size: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Yield the units of strata in random orders, one a row; the sequence does not depend on how many are drawn at once."""
    step = max(1, CHUNK_BYTES // (16 * size))
    for start in range(0, count, step):
        keys = rng.random((min(step, count - start), size))
        yield np.hstack([units[keys[:, units].argsort(axis=1)] for units in parts])


def _arrangements(units: Sequence[int], sizes: Sequence[int]) -> Iterator[tuple[int, ...]]:
    """Yield units in every order that gives each label another set of them; those as they stand first."""
    if not sizes:
        yield ()
        return
    for chosen in combinations(units, sizes[0]):
        rest = [unit for unit in units if unit not in chosen]
        yield from (chosen + others for others in _arrangements(rest, sizes[1:]))


def chunk_bytes(limit: int | None) -> int:
    """Return how many bytes of labels may be in work at once within a limit."""
    return CHUNK_BYTES if limit is None else max(2**16, min(CHUNK_BYTES, limit // (4 * SHARE_OF_LIMIT)))


def number_of_labels(size: int, first: int, strata: Rows | None = None) -> int:
    """Return how many relabelings there are.

    >>> number_of_labels(6, 3), number_of_labels(6, 3, np.array([0, 1, 2, 0, 1, 2]))
    (20, 8)
    """
    return math.prod(math.comb(len(units), marked) for units, marked in _by_stratum(size, first, strata))


def all_labels(size: int, first: int, strata: Rows | None = None) -> Labels:
    """Return every relabeling once, the observed one first."""
    ways = [[units[list(some)] for some in combinations(range(len(units)), k)] for units, k in _by_stratum(size, first, strata)]
    chosen = np.array([np.concatenate(some) for some in product(*ways)])
    labels = np.zeros((len(chosen), size), dtype=bool)
    np.put_along_axis(labels, chosen, True, axis=1)
    return labels


def units_by_stratum(strata: Rows) -> list[Rows]:
    """Return the units of each stratum, in their order."""
    order = np.argsort(strata, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(strata[order])) + 1)


def _by_stratum(size: int, first: int, strata: Rows | None) -> list[tuple[Rows, int]]:
    """Return the units of each stratum, those of X first, and how many of them are of X."""
    parts = [np.arange(size)] if strata is None else units_by_stratum(strata)
    return [(units, int(np.count_nonzero(units < first))) for units in parts]


def draw_labels(size: int, first: int, count: int, rng: np.random.Generator, strata: Rows | None = None) -> Labels:
    """Draw ``count`` uniform relabelings, one a row, each marking ``first`` of ``size`` rows.

    A relabeling marks the m smallest of N uniform numbers (several times faster than a shuffle), in each stratum its own. Rows
    are drawn one after the other from one stream, so a longer draw starts with the shorter one.
    """
    keys = rng.random((count, size))
    if strata is None:
        return _mark(keys, first)
    alike: dict[tuple[int, int], list[Rows]] = {}  # strata of one shape are marked together
    for units, marked in _by_stratum(size, first, strata):
        alike.setdefault((len(units), marked), []).append(units)
    labels = np.empty((count, size), dtype=bool)
    for (in_stratum, marked), members in alike.items():
        where = np.concatenate(members)
        found = _mark(keys[:, where].reshape(-1, in_stratum), marked)
        labels[:, where] = found.reshape(count, len(where))
    return labels


def _mark(keys: npt.NDArray[np.float64], first: int) -> Labels:
    """Mark the ``first`` smallest keys of every row."""
    if first in (0, keys.shape[1]):
        return np.full(keys.shape, bool(first))
    if keys.shape[1] == 2:
        smaller = keys[:, :1] < keys[:, 1:]
        return np.hstack([smaller, ~smaller])
    labels: Labels = keys <= np.partition(keys, first - 1, axis=1)[:, first - 1, None]
    for row in np.flatnonzero(np.count_nonzero(labels, axis=1) != first):  # equal keys, once in 1e10 draws
        labels[row] = False
        labels[row, keys[row].argsort(kind="stable")[:first]] = True
    return labels
