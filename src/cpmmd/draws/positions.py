"""Rows by their positions: a keyed permutation of row numbers, and the bin that each row is in.

A table of a permutation takes memory in proportion to the rows, and must be where the rows are. A Feistel network is a
permutation that needs none: six rounds mix the two halves of a number's bits, and numbers beyond the range are mixed again until
they fall into it (cycle walking). So the bin of a row follows from its position alone, whoever reads it, in which order, from
which file; and the rows of a bin, or the first rows of a random order, follow from the inverse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Rows

ROUNDS = 6  # four make a random permutation of many numbers; two more cost some 20 ns a row, and mix small ranges better
ODD, MIX = np.uint64(0x9E3779B97F4A7C15), np.uint64(0xBF58476D1CE4E5B9)  # those of splitmix64
Words: TypeAlias = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class KeyedPermutation:
    """A permutation of 0, ..., size - 1 that its key determines.

    >>> order = KeyedPermutation(5, (1, 2, 3, 4, 5, 6))
    >>> images = order.images(np.arange(5))
    >>> sorted(images.tolist()), order.positions(images).tolist()
    ([0, 1, 2, 3, 4], [0, 1, 2, 3, 4])
    """

    size: int
    keys: tuple[int, ...]

    @classmethod
    def draw(cls, size: int, rng: np.random.Generator) -> KeyedPermutation:
        """Draw a key."""
        return cls(size, tuple(rng.integers(2**64, size=ROUNDS, dtype=np.uint64).tolist()))

    def images(self, positions: Rows) -> Rows:
        """Return where positions go."""
        return self._walk(positions, inverse=False)

    def positions(self, images: Rows) -> Rows:
        """Return what goes to images."""
        return self._walk(images, inverse=True)

    def _walk(self, numbers: Rows, *, inverse: bool) -> Rows:
        """Return each number mixed until it is in the range."""
        found = self._mix(numbers.astype(np.uint64), inverse)
        while len(beyond := np.flatnonzero(found >= np.uint64(self.size))):
            found[beyond] = self._mix(found[beyond], inverse)
        return found.astype(np.intp)

    def _mix(self, numbers: Words, inverse: bool) -> Words:
        """Return numbers after all rounds: each changes one part of the bits by a function of the other, and exchanges them."""
        bits = max(2, (self.size - 1).bit_length())
        widths = [bits // 2, bits - bits // 2]  # of the high and of the low part, in turn
        rounds = [(key, widths[r % 2], widths[1 - r % 2]) for r, key in enumerate(self.keys)]
        for key, high, low in reversed(rounds) if inverse else rounds:
            above, below = _mask(high), _mask(low)
            if inverse:
                right, left = numbers >> np.uint64(high), numbers & above
                numbers = ((left ^ (_scramble(right, key) & above)) << np.uint64(low)) | right
            else:
                left, right = numbers >> np.uint64(low), numbers & below
                numbers = (right << np.uint64(high)) | (left ^ (_scramble(right, key) & above))
        return numbers


def _mask(bits: int) -> np.uint64:
    return np.uint64((1 << bits) - 1)


def _scramble(numbers: Words, key: int) -> Words:
    """Return a function of each number that looks random."""
    mixed = (numbers ^ np.uint64(key)) * ODD
    mixed ^= mixed >> np.uint64(29)
    mixed *= MIX
    mixed ^= mixed >> np.uint64(32)
    return mixed


@dataclass(frozen=True, eq=False)
class PositionBins:
    """Bins of rows of two samples, those of X first: equal in size, with a keyed order of the rows of each sample."""

    size: int  # rows of a bin
    bins: tuple[int, int]  # of each sample; rows beyond the last are left over
    orders: tuple[KeyedPermutation, KeyedPermutation]
    place: Rows  # where the bin of each number stands

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of each sample."""
        return self.orders[0].size, self.orders[1].size

    def of(self, positions: Rows) -> Rows:
        """Return where the bins of rows of the pool stand, -1 for rows that are left over."""
        m = self.sizes[0]
        found = np.full(len(positions), -1)
        for sample, here in enumerate((positions < m, positions >= m)):
            number = self.orders[sample].images(positions[here] - sample * m) // self.size
            inside = number < self.bins[sample]
            found[here] = np.where(inside, self.place[np.where(inside, number, 0) + sample * self.bins[0]], -1)
        return found

    def rows(self) -> Rows:
        """Return the rows of all bins, one after the other as they stand."""
        m = self.sizes[0]
        numbered = [
            sample * m + order.positions(np.arange(count * self.size))
            for sample, (order, count) in enumerate(zip(self.orders, self.bins, strict=True))
        ]
        by_bin = np.concatenate(numbered).reshape(-1, self.size)
        return np.asarray(by_bin[np.argsort(self.place)].ravel())
