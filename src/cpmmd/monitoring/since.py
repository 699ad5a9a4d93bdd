"""Since when: the batch at which a change most likely began, and the evidence for each one."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np

from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.monitoring.bets import power_payoff

# Of the bet that dates a change. Smaller ones are late where p-values are moderate; larger ones, and the mixture, date a change
# too early, at a chance dip before it: mean error .6 batches at 0.15 over changes found within five, 1.2 with the mixture.
EXPONENT = 0.15


@dataclass(frozen=True)
class Since:
    """The estimated first batch of a change.

    Attributes
    ----------
    name : str
        What that batch is called.
    number : int
        Which batch it is, the first after the reference being 1.
    evidence : dict of int to float
        For the number of each batch of the last hundred, the product of what the density 0.15 p^-0.85 pays from it to the
        latest one: the evidence that a change began there.

    Examples
    --------
    >>> from cpmmd import Since
    >>> since = Since("wednesday", 3, {1: 40.0, 2: 60.0, 3: 900.0, 4: 30.0})
    >>> str(since), since.number, max(since.evidence, key=since.evidence.get)
    ('wednesday', 3, 3)
    """

    name: str
    number: int
    evidence: dict[int, float] = field(repr=False)

    def to_dict(self) -> PlainDict:
        """Return it in plain JSON types."""
        return plain_dict(vars(self))

    def __str__(self) -> str:
        return self.name


def estimate(names: Sequence[str], numbers: Sequence[int], ranks: Sequence[tuple[int, int]]) -> Since:
    """Return where the product of payoffs up to the latest batch is largest; the earliest such batch among equals."""
    payoffs = [float(np.log(power_payoff(EXPONENT, rank, total))) for rank, total in ranks]
    from_here = np.cumsum(payoffs[::-1])[::-1]
    best = int(np.argmax(from_here))
    evidence = dict(zip(numbers, np.exp(np.minimum(from_here, 700.0)).tolist(), strict=True))
    return Since(names[best], numbers[best], evidence)
