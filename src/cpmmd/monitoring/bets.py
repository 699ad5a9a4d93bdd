"""Bets against "nothing changed": what a rank pays, and the wealth that independent ranks earn.

A rank is uniform on 1..total where nothing changed. A bet pays ``total`` times the mass that a density puts on the rank's cell
((rank - 1) / total, rank / total]: the mean over the cells is exactly 1, whatever the density and however coarse the lattice.
What a bet would pay beyond the wealth at which an alarm is raised is worth nothing; ``boost`` sells it for more elsewhere.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from typing import Self

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.errors import unknown_name

# Exponents of the densities a p^(a - 1): 1 does not bet, 0.05 stakes almost everything on p-values below 1e-3.
EXPONENTS = np.array([1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05])
SPLIT = np.array([1.0, 2.0, 3.0, 3.0, 3.0, 2.0, 1.0]) / 15  # of what begins to be bet, over all exponents but the first
PATIENCE = 20.0  # batches: after batch t, 1 / (PATIENCE + t) of what is not bet begins to be
LEAST_PATIENCE = 2.0  # in spans, which end seldom: half of the wealth is bet on the first one at most
RETURN = 0.01  # share that goes back to not betting after each batch: one odd batch is not the beginning of a change
LARGEST = 700.0  # logarithm of a wealth that is shown: exp of more is no number
ROUNDING = 1e-9  # the logarithm of a wealth that is cut ends so much above its limit: no rounding takes it below
# Of SAFFRON.
CANDIDATE = 0.5  # p-values above it are surely null and pay for the next ones
DECAY = 1.6  # of the share of the budget that goes to the k-th batch that is no candidate, as the authors have it
ZETA = 2.2857656  # sum of k^-1.6 over k = 1, 2, ..., rounded up
KEPT = 200  # of those found: what older ones still pay is less than a thousandth, and forgetting it lowers levels


def power_payoffs(rank: int, total: int, exponents: float | Array = EXPONENTS) -> Array:
    """Return what each density a p^(a - 1) pays for a rank."""
    return np.asarray(total * ((rank / total) ** exponents - ((rank - 1) / total) ** exponents), dtype=np.float64)


def lattice_payoffs(total: int) -> Array:
    """Return the same of every rank from 1 to ``total``, a row each."""
    return np.asarray(total * np.diff((np.arange(total + 1) / total)[:, None] ** EXPONENTS, axis=0), dtype=np.float64)


def mixed_payoff(rank: int, total: int) -> float:
    """Return what the mixture of a p^(a - 1) over all a in (0, 1) pays for a rank.

    Its mass below p is the integral of p^a, (p - 1) / log p.
    """
    above, below = (p if p in (0.0, 1.0) else (p - 1) / float(np.log(p)) for p in (rank / total, (rank - 1) / total))
    return total * (above - below)


def boost(payoffs: Array, most: float | Array) -> Array:
    """Return the factor, 1 at least, at which payoffs that are cut at ``most`` are 1 on average.

    With the first j payoffs cut, the others, multiplied by b, must add up to what is left: b = (total - j most) / (sum of the
    others). j is the smallest number at which the next payoff, multiplied, is not above the cut.
    """
    cut, total = np.asarray(most)[..., None], payoffs.shape[-1]
    others = np.cumsum(payoffs[..., ::-1], axis=-1)[..., ::-1]  # of each rank and all larger ones
    factors = (total - np.arange(total) * cut) / others
    first = np.argmax(factors * payoffs <= cut * (1 + 1e-12), axis=-1)
    return np.asarray(np.maximum(np.take_along_axis(factors, first[..., None], axis=-1)[..., 0], 1.0))


@dataclass(frozen=True)
class PowerBet:
    """The mixture of power calibrators, the same bet on every batch."""

    log_wealth: float = 0.0  # logarithm of the wealth so far

    def settle(self, rank: int, total: int) -> tuple[float, Self]:
        """Return what the rank pays, and the bet on the next one."""
        paid = mixed_payoff(rank, total)
        return paid, replace(self, log_wealth=self.log_wealth + float(np.log(paid)))

    def payoffs(self, total: int) -> Array:
        """Return what each rank would pay."""
        inner = np.arange(1, total) / total
        return total * np.diff(np.concatenate([[0.0], (inner - 1) / np.log(inner), [1.0]]))

    def tensor(self) -> Array:
        """Return everything it knows."""
        return np.array([self.log_wealth])

    def restore(self, values: Array) -> Self:
        """Return the bet of what :meth:`tensor` returned."""
        (log_wealth,) = values.tolist()
        return replace(self, log_wealth=log_wealth)


@dataclass(frozen=True, eq=False)
class AdaptiveBet:
    """Power calibrators weighted by what they would have paid so far, most of the weight on not betting until one pays.

    A change may begin at any batch: after rank t, 1 / (patience + t) of what is not bet moves to the bets, so that a bet that
    begins then has about patience / (patience + t)^2 of the first wealth, whatever came before; ``RETURN`` of what is bet moves
    back. This is the mixture over all sequences of bets and pauses, computed by one recursion. Methods are those of ``PowerBet``.
    """

    log_wealth: float = 0.0  # logarithm of the wealth so far
    settled: int = 0  # ranks so far
    weights: Array | None = None  # share of the wealth on each exponent, for the next rank
    patience: float = PATIENCE  # in ranks

    def settle(self, rank: int, total: int) -> tuple[float, Self]:
        payoffs = self._shares * power_payoffs(rank, total)
        paid = float(payoffs.sum())
        settled = self.settled + 1
        weights = move(payoffs / paid, settled + self.patience)
        return paid, replace(self, log_wealth=self.log_wealth + float(np.log(paid)), settled=settled, weights=weights)

    def payoffs(self, total: int) -> Array:
        return np.asarray(lattice_payoffs(total) @ self._shares)

    @property
    def _shares(self) -> Array:
        return move(np.eye(len(EXPONENTS))[0], self.patience) if self.weights is None else self.weights

    def tensor(self) -> Array:
        return np.array([self.log_wealth, self.settled, *self._shares])

    def restore(self, values: Array) -> Self:
        log_wealth, settled, *weights = values.tolist()
        if len(weights) != len(EXPONENTS) or min(weights) < 0 or abs(sum(weights) - 1) > 1e-6:
            raise ValueError("the shares of its bets do not add up to 1")
        return replace(self, log_wealth=log_wealth, settled=int(settled), weights=np.array(weights))


def move(weights: Array, waited: float) -> Array:
    """Return the shares of the wealth for the next rank: 1 / waited of what is not bet begins to be, some of what is pauses."""
    idle, bets = weights[..., :1], weights[..., 1:]
    paused = RETURN * bets.sum(axis=-1, keepdims=True)
    return np.concatenate([idle * (1 - 1 / waited) + paused, bets * (1 - RETURN) + idle / waited * SPLIT], axis=-1)


@dataclass(frozen=True, eq=False)
class AverageBet:
    """Half of the wealth on each of the two other bets: both see the same ranks, so that their average is a martingale, too."""

    power: PowerBet = PowerBet()
    adaptive: AdaptiveBet = AdaptiveBet()

    @property
    def log_wealth(self) -> float:
        """Logarithm of the average wealth."""
        return float(np.logaddexp(self.power.log_wealth, self.adaptive.log_wealth) - np.log(2))

    def settle(self, rank: int, total: int) -> tuple[float, Self]:
        after = replace(self, power=self.power.settle(rank, total)[1], adaptive=self.adaptive.settle(rank, total)[1])
        return float(np.exp(after.log_wealth - self.log_wealth)), after

    def payoffs(self, total: int) -> Array:
        share = float(np.exp(self.power.log_wealth - self.log_wealth)) / 2
        return share * self.power.payoffs(total) + (1 - share) * self.adaptive.payoffs(total)

    def tensor(self) -> Array:
        return np.concatenate([self.power.tensor(), self.adaptive.tensor()])

    def restore(self, values: Array) -> Self:
        return replace(self, power=self.power.restore(values[:1]), adaptive=self.adaptive.restore(values[1:]))


Bet = PowerBet | AdaptiveBet | AverageBet
BETS = ("adaptive", "average", "power")


def first_bet(name: object, batches: int = 1) -> Bet:
    """Return a bet by its name, before any rank; on spans of so many batches."""
    if not isinstance(name, str) or name not in BETS:
        raise unknown_name("value", name, BETS, parameter="bet")
    adaptive = AdaptiveBet(patience=max(LEAST_PATIENCE, PATIENCE / batches))
    bets: dict[str, Bet] = {"adaptive": adaptive, "average": AverageBet(adaptive=adaptive), "power": PowerBet()}
    return bets[name]


@dataclass(frozen=True, eq=False)
class Look:
    """One way of looking at a stream, with a bet of its own: at disjoint spans of so many batches."""

    batches: int  # of a span
    bet: Bet  # on the span that is open
    log_wealth: float  # logarithm of its share of the wealth, that of all looks being 1 at first

    @property
    def wealth(self) -> float:
        """Its share of the wealth."""
        return math.exp(min(LARGEST, self.log_wealth))

    def closes(self, number: int, start: int) -> bool:
        """Whether a span ends with batch ``number``, the first of all being ``start``."""
        return (number - start + 1) % self.batches == 0

    def settle(self, rank: int, total: int, limit: float) -> tuple[float, Look]:
        """Return what a span's rank pays, and the look at the next span.

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
    """Return looks at spans of so many batches; their shares of the first wealth are as 1 / batches.

    A span of eight batches sees a weak change far better than one batch does, and pays so much more that a small share is
    enough; a strong change is found by single batches, and the shares of longer spans are lost to them.
    """
    counts = batches if isinstance(batches, (list, tuple)) and all(type(count) is int for count in batches) else ()
    if not counts or counts[0] != 1 or any(low >= high or high % low for low, high in pairwise(counts)):
        rule = "must be whole numbers that begin with 1, each a multiple of the one before, such as (1, 4, 8)"
        raise validation.wrong("looks", rule, batches)
    return tuple(Look(count, first_bet(bet, count), math.log(share)) for count, share in first_shares(counts).items())


def first_shares(batches: Sequence[int]) -> dict[int, float]:
    """Return what share of the first wealth looks at spans of so many batches have."""
    parts = math.fsum(1 / count for count in batches)
    return {count: 1 / count / parts for count in batches}


def wealth_of(looks: tuple[Look, ...]) -> float:
    """Return the largest of the looks' shares of the wealth.

    Each look's wealth is a test martingale of its own p-values. Those of a span are not independent of those of its batches, so
    that the sum of the shares is no martingale of both; but P(share of look k ever >= 1 / alpha) <= alpha times its first share,
    and the first shares add up to one.
    """
    return max(look.wealth for look in looks)


@dataclass(frozen=True)
class Saffron:
    """Which batches differ, decided one by one: levels for independent p-values by SAFFRON (Ramdas et al. 2018)."""

    fdr: float  # share of false ones among those that are found, in expectation
    seen: int = 0  # p-values so far
    candidates: int = 0  # those of them that were at most ``CANDIDATE``
    # for each of the latest that were found: how many had come by then, and how many of those were candidates
    found: tuple[tuple[int, int], ...] = ()

    @property
    def level(self) -> float:
        """Level of the next p-value."""
        budget = self.fdr / 2
        shares = [budget * _share(self.seen - self.candidates)]
        for order, (seen, candidates) in enumerate(self.found):
            earned = self.fdr - budget if order == 0 else self.fdr
            shares.append(earned * _share(self.seen - seen - (self.candidates - candidates)))
        return min(CANDIDATE, (1 - CANDIDATE) * math.fsum(shares))

    def decide(self, pvalue: float) -> tuple[bool, Self]:
        """Return whether the next p-value is found, and the state after it; no verdict is ever changed."""
        found, seen = pvalue <= self.level, self.seen + 1
        candidates = self.candidates + (pvalue <= CANDIDATE)
        known = (*self.found[-KEPT + 1 :], (seen, candidates)) if found else self.found
        return found, replace(self, seen=seen, candidates=candidates, found=known)


def _share(quiet: int) -> float:
    """Return the share of a budget for the next p-value, after ``quiet`` that were no candidates."""
    return float((quiet + 1) ** -DECAY / ZETA)
