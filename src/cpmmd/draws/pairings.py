"""Re-pairings: which row of a second table goes with each row of a first, where nothing ties them together."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Rows
from cpmmd.draws.labels import BLOCK_ROWS, Draws, units_by_stratum


@dataclass(frozen=True, eq=False)
class Pairings(Draws):
    """Re-pairings of units, the observed one, in which each goes with itself, first."""

    partners: npt.NDArray[np.intp]  # a re-pairing a row: the partner of each unit
    exhaustive: bool = False

    @classmethod
    def draw(cls, size: int, count: int, rng: np.random.Generator, *, strata: Rows | None = None) -> Pairings:
        """Return the observed pairing and the others below it: all there are where they are no more than ``count``.

        Partners change inside a stratum only; None is one stratum for all.

        >>> pairings = Pairings.draw(3, 999, np.random.default_rng(0))
        >>> len(pairings), pairings.exhaustive, pairings.partners[:2].tolist()
        (6, True, [[0, 1, 2], [0, 2, 1]])
        """
        parts = units_by_stratum(np.zeros(size, dtype=np.intp) if strata is None else strata)
        total = math.prod(math.factorial(len(units)) for units in parts)
        if total <= count:
            ways = product(*(permutations(units.tolist()) for units in parts))
            ordered = np.array([[unit for some in way for unit in some] for way in ways])
        else:
            keys = rng.random((count, size))
            drawn = np.hstack([units[keys[:, units].argsort(axis=1)] for units in parts])
            ordered = np.vstack([np.concatenate(parts), drawn])
        partners = np.empty_like(ordered)
        partners[:, np.concatenate(parts)] = ordered
        return cls(partners, exhaustive=total <= count)

    def __len__(self) -> int:
        return len(self.partners)

    def blocks(self) -> Iterator[npt.NDArray[np.intp]]:
        """Yield the re-pairings, some at a time."""
        for start in range(0, len(self.partners), BLOCK_ROWS):
            yield self.partners[start : start + BLOCK_ROWS]
