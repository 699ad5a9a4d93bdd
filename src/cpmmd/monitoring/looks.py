"""Looks at a stream: every batch by itself, and blocks of several, each with a bet of its own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

from cpmmd.core import validation
from cpmmd.monitoring.bets import Bet, boost, first_bet

LARGEST = 700.0  # logarithm of a wealth that is shown: exp of more is no number
ROUNDING = 1e-9  # the logarithm of a wealth that is cut ends so much above its limit: no rounding takes it below


@dataclass(frozen=True, eq=False)
class Look:
    """One way of looking: at disjoint blocks of so many batches.

    Attributes
    ----------
    batches
        Of a block.
    bet
        On the block that is open.
    log_wealth
        Logarithm of its share of the wealth, that of all looks being 1 at first.
    """

    batches: int
    bet: Bet
    log_wealth: float

    @property
    def wealth(self) -> float:
        """Its share of the wealth."""
        return math.exp(min(LARGEST, self.log_wealth))

    def closes(self, number: int, start: int) -> bool:
        """Whether a block ends with batch ``number``, the first of all being ``start``."""
        return (number - start + 1) % self.batches == 0

    def settle(self, rank: int, total: int, limit: float) -> tuple[float, Look]:
        """Return what a block's rank pays, and the look at the next block.

        Notes
        -----
        Until the wealth is at its limit no payoff takes it above, and all others are multiplied by as much as that saves: the
        mean over the ranks stays 1, and no evidence is paid for that an alarm does not need.
        """
        paid, bet = self.bet.settle(rank, total)
        room = math.log(limit) - self.log_wealth
        most = math.exp(min(LARGEST, room + ROUNDING))
        if room > 0 and self.bet.settle(1, total)[0] > most:
            paid = min(most, paid * float(boost(self.bet.payoffs(total), most)))
        return paid, replace(self, bet=bet, log_wealth=self.log_wealth + math.log(paid))


def first_looks(batches: object, bet: object) -> tuple[Look, ...]:
    """Return looks at blocks of so many batches; their shares of the first wealth are as 1 / batches.

    Notes
    -----
    A block of eight batches sees a weak change far better than one batch does, and pays so much more that a small share is
    enough; a strong change is found by single batches, and what blocks have is lost to them.
    """
    rule = "must be whole numbers that begin with 1, each a multiple of the one before, such as (1, 4, 8)"
    if not isinstance(batches, (list, tuple)) or not batches or any(type(count) is not int for count in batches):
        raise validation.wrong("looks", rule, batches)
    nested = all(low < high and high % low == 0 for low, high in pairwise(batches))
    if batches[0] != 1 or not nested:
        raise validation.wrong("looks", rule, batches)
    return tuple(Look(count, first_bet(bet, count), math.log(share)) for count, share in first_shares(batches).items())


def first_shares(batches: Sequence[int]) -> dict[int, float]:
    """Return what share of the first wealth looks at blocks of so many batches have.

    Examples
    --------
    >>> {count: round(share, 3) for count, share in first_shares((1, 4, 8)).items()}
    {1: 0.727, 4: 0.182, 8: 0.091}
    """
    parts = math.fsum(1 / count for count in batches)
    return {count: 1 / count / parts for count in batches}


def wealth_of(looks: tuple[Look, ...]) -> float:
    """Return the largest of the looks' shares of the wealth.

    Notes
    -----
    Each look's wealth is a test martingale of its own p-values. Those of a block are not independent of those of its batches, so
    that the sum of the shares is no martingale of both; but P(share of look k ever >= 1 / alpha) <= alpha times its first share,
    and the first shares add up to one.
    """
    return max(look.wealth for look in looks)
