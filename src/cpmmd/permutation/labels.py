"""Relabelings: which rows (or units of rows) of the pool are called X. All that exist where those are few, else random ones.

Where a design has strata, labels move inside a stratum only: each keeps its number of units of X.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, replace
from itertools import chain, combinations, product
from typing import Any

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Labels, Rows
from cpmmd.core.text import bytes_in_words
from cpmmd.errors import InputError, Setting

CHUNK_BYTES = 64 * 2**20  # of labels in work at once
BLOCK_ROWS = 512  # relabelings multiplied at once
BLOCK_BYTES = 8 * 2**20  # of labels given out at once
SHARE_OF_LIMIT = 4  # a quarter of the memory may go to relabelings


@dataclass(frozen=True, eq=False)
class Relabelings:
    """Many labelings, the observed one first, held in one bit a row and given out in blocks.

    Attributes
    ----------
    bits
        A labeling a row, packed.
    size
        Rows (or bins) that are labelled.
    exhaustive
        Whether these are all there are.
    signs
        Whether a label is given out as 1 or -1 instead of 1 or 0.
    """

    bits: npt.NDArray[np.uint8]
    size: int
    exhaustive: bool = False
    signs: bool = False

    @classmethod
    def packed(cls, chunks: Iterator[Labels], count: int, size: int, limit: int | None, **kind: bool) -> Relabelings:
        """Hold ``count`` labelings that come in chunks; refused when they take more than their share of ``limit`` bytes."""
        width = -(-size // 8)
        _check_room(count, width, limit)
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

        Examples
        --------
        >>> labels = Relabelings.draw(6, 3, 999, np.random.default_rng(0))
        >>> len(labels), labels.exhaustive, labels.array()[0].tolist()
        (20, True, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0])
        """
        total = number_of_labels(size, first, strata)
        if enumerate_few and total <= count:
            return cls.packed(iter([all_labels(size, first, strata)]), total, size, limit, exhaustive=True)
        others = draw_in_chunks(size, first, count, rng, chunk_bytes(limit), strata)
        return cls.packed(chain([observed(size, first)[None]], others), count + 1, size, limit)

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


def chunk_bytes(limit: int | None) -> int:
    """Return how many bytes of labels may be in work at once within a limit."""
    return CHUNK_BYTES if limit is None else max(2**16, min(CHUNK_BYTES, limit // (4 * SHARE_OF_LIMIT)))


def _check_room(count: int, width: int, limit: int | None) -> None:
    if limit is not None and count * width > limit // SHARE_OF_LIMIT:
        raise InputError(
            "Relabelings may take a quarter of the memory. {count} of them take {needed}, and {setting} is {limit}. Raise it, or "
            "ask for fewer with {fewer}.",
            count=count,
            needed=bytes_in_words(count * width),
            setting=Setting("memory_limit"),
            limit=bytes_in_words(limit),
            fewer=Setting("n_permutations"),
        )


def number_of_labels(size: int, first: int, strata: Rows | None = None) -> int:
    """Return how many relabelings there are.

    Examples
    --------
    >>> number_of_labels(6, 3), number_of_labels(6, 3, np.array([0, 1, 2, 0, 1, 2]))
    (20, 8)
    """
    return math.prod(math.comb(len(units), marked) for units, marked in _by_stratum(size, first, strata))


def observed(size: int, first: int) -> Labels:
    """Return the labeling that marks the first rows."""
    return np.arange(size) < first


def all_labels(size: int, first: int, strata: Rows | None = None) -> Labels:
    """Return every relabeling once, the observed one first."""
    ways = [[units[list(some)] for some in combinations(range(len(units)), k)] for units, k in _by_stratum(size, first, strata)]
    chosen = np.array([np.concatenate(some) for some in product(*ways)])
    labels = np.zeros((len(chosen), size), dtype=bool)
    np.put_along_axis(labels, chosen, True, axis=1)
    return labels


def _by_stratum(size: int, first: int, strata: Rows | None) -> list[tuple[Rows, int]]:
    """Return the units of each stratum, those of X first, and how many of them are of X."""
    if strata is None:
        return [(np.arange(size), first)]
    order = np.argsort(strata, kind="stable")
    parts = np.split(order, np.flatnonzero(np.diff(strata[order])) + 1)
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
    for (of_one, marked), members in alike.items():
        where = np.concatenate(members)
        found = _mark(keys[:, where].reshape(-1, of_one), marked)
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


def draw_in_chunks(
    size: int, first: int, count: int, rng: np.random.Generator, chunk_bytes: int, strata: Rows | None = None
) -> Iterator[Labels]:
    """Yield ``count`` relabelings in chunks that fit the memory; the sequence does not depend on the chunks."""
    step = max(1, chunk_bytes // (size * 8))
    for start in range(0, count, step):
        yield draw_labels(size, first, min(step, count - start), rng, strata)
