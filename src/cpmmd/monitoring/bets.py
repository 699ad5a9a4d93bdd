"""Bets against "nothing changed": what a rank pays, and the wealth that independent ranks earn.

A rank is uniform on 1..total where nothing changed. A bet pays ``total`` times the mass that a density puts on the rank's cell
((rank - 1) / total, rank / total]: the mean over the cells is exactly 1, whatever the density and however coarse the lattice.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.errors import unknown_name

# Exponents of the densities a p^(a - 1): 1 does not bet, 0.05 stakes almost everything on p-values below 1e-3.
EXPONENTS = np.array([1.0, 0.8, 0.6, 0.45, 0.3, 0.2, 0.1, 0.05])
PATIENCE = 50  # batches: after batch t, 1 / (PATIENCE + t) of what is not bet begins to be
RETURN = 0.01  # share that goes back to not betting after each batch: one odd batch is not the beginning of a change


def power_payoffs(rank: int, total: int) -> Array:
    """Return what each density a p^(a - 1), a in ``EXPONENTS``, pays for a rank.

    Examples
    --------
    >>> np.mean([power_payoffs(rank, 20) for rank in range(1, 21)], axis=0).round(12).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0, 1.0]
    """
    return np.asarray(power_payoff(EXPONENTS, rank, total), dtype=np.float64)


def power_payoff(exponent: Any, rank: int, total: int) -> Any:
    """Return what the density a p^(a - 1) pays for a rank; of one exponent or of several."""
    return total * ((rank / total) ** exponent - ((rank - 1) / total) ** exponent)


def mixed_payoff(rank: int, total: int) -> float:
    """Return what the mixture of a p^(a - 1) over all a in (0, 1) pays for a rank.

    Notes
    -----
    Its mass below p is the integral of p^a, (p - 1) / log p.

    Examples
    --------
    >>> round(mixed_payoff(1, 1000), 1), round(sum(mixed_payoff(rank, 1000) for rank in range(1, 1001)) / 1000, 12)
    (144.6, 1.0)
    """
    return total * (_mixed_mass(rank / total) - _mixed_mass((rank - 1) / total))


def _mixed_mass(p: float) -> float:
    return p if p in (0.0, 1.0) else (p - 1) / float(np.log(p))


@dataclass(frozen=True)
class PowerBet:
    """The mixture of power calibrators, the same bet on every batch.

    Attributes
    ----------
    log_wealth
        Logarithm of the wealth so far.
    """

    name: ClassVar[str] = "power"
    log_wealth: float = 0.0

    def settle(self, rank: int, total: int) -> tuple[float, Self]:
        """Return what the rank pays, and the bet on the next one."""
        paid = mixed_payoff(rank, total)
        return paid, replace(self, log_wealth=self.log_wealth + float(np.log(paid)))

    def tensor(self) -> Array:
        """Return everything it knows."""
        return np.array([self.log_wealth])

    @classmethod
    def restore(cls, values: Array) -> Self:
        """Return the bet of what :meth:`tensor` returned."""
        (log_wealth,) = values.tolist()
        return cls(log_wealth)


@dataclass(frozen=True, eq=False)
class AdaptiveBet:
    """Power calibrators weighted by what they would have paid so far, most of the weight on not betting until one pays.

    Attributes
    ----------
    log_wealth
        Logarithm of the wealth so far.
    settled
        Ranks so far.
    weights
        Share of the wealth on each exponent, for the next rank.

    Notes
    -----
    A change may begin at any batch: after rank t, 1 / (PATIENCE + t) of what is not bet moves to the bets in equal shares, so
    that a bet that begins then has about that share of the first wealth, whatever came before; ``RETURN`` of what is bet moves
    back. This is the mixture over all sequences of bets and pauses, computed by one recursion.
    """

    name: ClassVar[str] = "adaptive"
    log_wealth: float = 0.0
    settled: int = 0
    weights: Array | None = None

    def settle(self, rank: int, total: int) -> tuple[float, Self]:
        """Return what the rank pays, and the bet on the next one."""
        weights = _first_weights() if self.weights is None else self.weights
        payoffs = weights * power_payoffs(rank, total)
        paid = float(payoffs.sum())
        settled = self.settled + 1
        return paid, replace(
            self, log_wealth=self.log_wealth + float(np.log(paid)), settled=settled, weights=_move(payoffs / paid, settled)
        )

    def tensor(self) -> Array:
        """Return everything it knows."""
        weights = _first_weights() if self.weights is None else self.weights
        return np.array([self.log_wealth, self.settled, *weights])

    @classmethod
    def restore(cls, values: Array) -> Self:
        """Return the bet of what :meth:`tensor` returned."""
        log_wealth, settled, *weights = values.tolist()
        if len(weights) != len(EXPONENTS) or min(weights) < 0 or abs(sum(weights) - 1) > 1e-6:
            raise ValueError("its bets are no shares of a whole")
        return cls(log_wealth, int(settled), np.array(weights))


def _first_weights() -> Array:
    idle = np.zeros(len(EXPONENTS))
    idle[0] = 1.0
    return _move(idle, 0)


def _move(weights: Array, settled: int) -> Array:
    begin, end = weights[0] / (settled + PATIENCE), RETURN * weights[1:].sum()
    moved = weights * (1 - RETURN)
    moved[0] = weights[0] - begin + end
    moved[1:] += begin / (len(weights) - 1)
    return moved


@dataclass(frozen=True, eq=False)
class AverageBet:
    """Half of the wealth on each of the two other bets: both see the same ranks, so that their average is a martingale, too."""

    name: ClassVar[str] = "average"
    power: PowerBet = PowerBet()
    adaptive: AdaptiveBet = AdaptiveBet()

    @property
    def log_wealth(self) -> float:
        """Logarithm of the average wealth."""
        return float(np.logaddexp(self.power.log_wealth, self.adaptive.log_wealth) - np.log(2))

    def settle(self, rank: int, total: int) -> tuple[float, Self]:
        """Return what the rank pays, and the bet on the next one."""
        after = replace(self, power=self.power.settle(rank, total)[1], adaptive=self.adaptive.settle(rank, total)[1])
        return float(np.exp(after.log_wealth - self.log_wealth)), after

    def tensor(self) -> Array:
        """Return everything it knows."""
        return np.concatenate([self.power.tensor(), self.adaptive.tensor()])

    @classmethod
    def restore(cls, values: Array) -> Self:
        """Return the bet of what :meth:`tensor` returned."""
        return cls(PowerBet.restore(values[:1]), AdaptiveBet.restore(values[1:]))


Bet = PowerBet | AdaptiveBet | AverageBet
BETS: dict[str, type[PowerBet] | type[AdaptiveBet] | type[AverageBet]] = {
    bet.name: bet for bet in (AverageBet, AdaptiveBet, PowerBet)
}


def first_bet(name: object) -> Bet:
    """Return a bet by its name, before any rank."""
    if not isinstance(name, str) or name not in BETS:
        raise unknown_name("value", name, tuple(BETS), parameter="bet")
    return BETS[name]()
