"""Re-pairings: which row of a second table goes with each row of a first, where nothing ties them together.

Few rows are re-paired one by one (:class:`Pairings`). Many are put on cycles in random order, and a re-pairing turns each cycle
by some places (:class:`Shifts`). Turning cycles is a group. A round of turns begins with the observed pairing, or with a random
one, a coset of such a group; the round of the observed pairing is drawn, too. So the observed pairing is one of equally likely
ones, and the level is exact. Sums over all turns of a cycle are a cross-correlation, which a Fourier transform gives at the cost
of a few re-pairings. A place of a cycle has one unit, or many rows where rows are many: a
million rows on a thousand places cost no more re-pairings than a thousand rows do.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import permutations, product

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Rows
from cpmmd.draws.labels import BLOCK_ROWS, Draws, units_by_stratum

ONE_BY_ONE = 200  # units up to which rows are re-paired one by one: below, products are faster than transforms
MOST_GATHERED = 2**21  # partners of all re-pairings that are held at once


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
        return cls.of_units([units[:, None] for units in parts], count, rng)

    @classmethod
    def of_units(cls, parts: Sequence[Rows], count: int, rng: np.random.Generator) -> Pairings:
        """Return re-pairings of whole units: ``parts`` has the rows of units that may exchange partners, a unit a line."""
        counts = [len(part) for part in parts]
        exhaustive = number_of_pairings(counts, at_most=count) <= count
        if exhaustive:
            ways = product(*(permutations(range(units)) for units in counts))
            orders = [np.array(way) for way in zip(*ways, strict=True)]
        else:
            orders = []
            for units in counts:
                drawn = rng.random((count, units)).argsort(axis=1)
                orders.append(np.vstack([np.arange(units), drawn]))
        partners = np.empty((len(orders[0]), sum(part.size for part in parts)), dtype=np.intp)
        for part, order in zip(parts, orders, strict=True):
            partners[:, part.ravel()] = part[order].reshape(len(order), part.size)
        return cls(partners, exhaustive=exhaustive)

    def __len__(self) -> int:
        return len(self.partners)

    def blocks(self) -> Iterator[npt.NDArray[np.intp]]:
        """Yield the re-pairings, some at a time."""
        for start in range(0, len(self.partners), BLOCK_ROWS):
            yield self.partners[start : start + BLOCK_ROWS]


@dataclass(frozen=True, eq=False)
class Round:
    """Rows on cycles in one random order, and how far each re-pairing turns every cycle."""

    cycles: tuple[Rows, ...]  # rows at the places of each cycle, a place a line
    partners: tuple[Rows, ...]  # their partners before any turn: themselves where the round begins with the observed pairing
    turns: npt.NDArray[np.intp]  # places, a re-pairing a row and a cycle a column


@dataclass(frozen=True, eq=False)
class Shifts(Draws):
    """Re-pairings by turning cycles; the first turn of the first round is none, the observed pairing."""

    rounds: tuple[Round, ...]
    exhaustive: bool = False

    @classmethod
    def draw(cls, parts: Sequence[Rows], count: int, rng: np.random.Generator) -> Shifts:
        """Return the observed pairing and ``count`` others of units that may exchange partners inside their part."""
        orders, places, rounds = rng.spawn(1)[0], (count + 1) // len(parts) + 1, list[Round]()
        for size in _round_sizes(parts, places, count + 1, rng):
            cycles = tuple(cycle for part in parts for cycle in _cycles(part, places, orders))
            partners = tuple(cycle for part in parts for cycle in _cycles(part, places, orders)) if rounds else cycles
            turns = _turns([len(cycle) for cycle in cycles], size, rng, observed=not rounds)
            rounds.append(Round(cycles, partners, turns))
        return cls(tuple(rounds))

    def __len__(self) -> int:
        return sum(len(some.turns) for some in self.rounds)

    def blocks(self) -> Iterator[npt.NDArray[np.intp]]:
        """Yield the partner of every row in each re-pairing, round by round."""
        for some in self.rounds:
            partners = np.empty((len(some.turns), sum(cycle.size for cycle in some.cycles)), dtype=np.intp)
            for cycle, partner, turn in zip(some.cycles, some.partners, some.turns.T, strict=True):
                turned = (np.arange(len(cycle)) + turn[:, None]) % len(cycle)
                partners[:, cycle.ravel()] = partner[turned].reshape(len(turn), cycle.size)
            yield partners


def draw_pairings(parts: Sequence[Rows], count: int, rng: np.random.Generator) -> Pairings | Shifts:
    """Return re-pairings one by one where units are few, by turns of cycles where they are many."""
    units, rows = sum(map(len, parts)), sum(part.size for part in parts)
    few = number_of_pairings([len(part) for part in parts], at_most=count) <= count
    if few or (units <= ONE_BY_ONE and rows * (count + 1) <= MOST_GATHERED):
        return Pairings.of_units(parts, count, rng)
    return Shifts.draw(parts, count, rng)


def number_of_pairings(units: Sequence[int], *, at_most: int) -> int:
    """Return how many re-pairings there are, or a number above ``at_most`` where they are more.

    >>> number_of_pairings([3, 2], at_most=999), number_of_pairings([1000], at_most=999) > 999
    (12, True)
    """
    total = 1
    for count in units:
        for factor in range(2, count + 1):
            total *= factor
            if total > at_most:
                return total
    return total


def _round_sizes(parts: Sequence[Rows], places: int, count: int, rng: np.random.Generator) -> list[int]:
    """Return how many turns each round has, that of the observed pairing first, which any of them is as likely to be."""
    lengths = [length for part in parts for length in _lengths(len(part), places)]
    most = math.prod(lengths) if len(lengths) < 20 else count
    sizes = [min(most, count - start) for start in range(0, count, most)]
    first = int(np.searchsorted(np.cumsum(sizes), rng.integers(count), side="right"))
    return [sizes.pop(first), *sizes]


def _lengths(units: int, places: int) -> list[int]:
    """Return the places of the cycles of a part: of the one that holds as many units at each place, and of the rest."""
    together = max(1, units // places)
    return [units // together, *([units % together] if units % together else [])]


def _cycles(part: Rows, places: int, rng: np.random.Generator) -> Iterator[Rows]:
    """Yield cycles of about so many places for units in random order; what does not fill every place is a cycle of its own."""
    order = part[rng.permutation(len(part))]
    length, *rest = _lengths(len(part), places)
    whole = len(order) - sum(rest)
    yield order[:whole].reshape(length, -1)
    if rest:
        yield order[whole:]


def _turns(lengths: Sequence[int], count: int, rng: np.random.Generator, *, observed: bool) -> npt.NDArray[np.intp]:
    """Return at most ``count`` different turns of cycles, none of them first where they begin with the observed pairing."""
    total = math.prod(lengths) if len(lengths) < 20 else count**2 + 1
    if total <= count**2:  # few: drawn without replacement
        drawn = rng.permutation(total)[:count]
        if observed:
            drawn = np.concatenate([[0], drawn[drawn != 0][: count - 1]])
        return np.stack(np.unravel_index(drawn, lengths), axis=1).astype(np.intp)
    turns = np.stack([rng.integers(0, length, count) for length in lengths], axis=1)
    if observed:
        turns[0] = 0
    return turns
