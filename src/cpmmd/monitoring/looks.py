"""Looks at a stream: every batch by itself, and blocks of several, each with a bet of its own."""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from itertools import pairwise

from cpmmd.core import validation
from cpmmd.monitoring.bets import Bet, first_bet

LARGEST = 700.0  # logarithm of a wealth that is shown: exp of more is no number


@dataclass(frozen=True, eq=False)
class Look:
    """One way of looking: at disjoint blocks of so many batches.

    Attributes
    ----------
    batches
        Of a block.
    share
        Of the first wealth, 1 in all.
    bet
        On the block that is open.
    """

    batches: int
    share: float
    bet: Bet

    @property
    def log_wealth(self) -> float:
        """Logarithm of its share of the wealth."""
        return math.log(self.share) + self.bet.log_wealth

    @property
    def wealth(self) -> float:
        """Its share of the wealth."""
        return math.exp(min(LARGEST, self.log_wealth))

    def closes(self, number: int, start: int) -> bool:
        """Whether a block ends with batch ``number``, the first of all being ``start``."""
        return (number - start + 1) % self.batches == 0

    def settle(self, rank: int, total: int) -> tuple[float, Look]:
        """Return what a block's rank pays, and the look at the next block."""
        paid, bet = self.bet.settle(rank, total)
        return paid, replace(self, bet=bet)


def first_looks(batches: object, bet: object) -> tuple[Look, ...]:
    """Return looks at blocks of so many batches that share the first wealth equally."""
    rule = "must be whole numbers that begin with 1, each a multiple of the one before, such as (1, 8)"
    if not isinstance(batches, (list, tuple)) or not batches or any(type(count) is not int for count in batches):
        raise validation.wrong("looks", rule, batches)
    nested = all(low < high and high % low == 0 for low, high in pairwise(batches))
    if batches[0] != 1 or not nested:
        raise validation.wrong("looks", rule, batches)
    return tuple(Look(count, 1 / len(batches), first_bet(bet)) for count in batches)


def wealth_of(looks: tuple[Look, ...]) -> float:
    """Return the largest of the looks' shares of the wealth.

    Notes
    -----
    Each look's wealth is a test martingale of its own p-values. Those of a block are not independent of those of its batches, so
    that the sum of the shares is no martingale of both; but P(share of look k ever >= 1 / alpha) <= alpha times its first share,
    and the first shares add up to one.
    """
    return max(look.wealth for look in looks)
