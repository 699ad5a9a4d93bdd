"""The test of a block of batches against what came before it, and its rank on a lattice that is uniform exactly."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise

import numpy as np

from cpmmd.core import validation
from cpmmd.core.parallel import threads
from cpmmd.core.progress import Progress, reporting_to
from cpmmd.core.seeds import keyed_rng, short_seed
from cpmmd.data.design import DesignOptions
from cpmmd.data.pool import Pool, lay_out
from cpmmd.data.preparation import Preparation
from cpmmd.errors import InputError
from cpmmd.evidence import Ranking
from cpmmd.monitoring.answers import LookResult
from cpmmd.monitoring.bets import Bet, boost, first_bet
from cpmmd.monitoring.past import Past
from cpmmd.procedures.base import Procedure, RunOptions
from cpmmd.procedures.one_kernel import median_kernel
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.questions.options import TestPlan
from cpmmd.results import TestResult

# Looks at a stream: every batch by itself, and blocks of several, each with a bet of its own.


LARGEST = 700.0  # logarithm of a wealth that is shown: exp of more is no number
ROUNDING = 1e-9  # the logarithm of a wealth that is cut ends so much above its limit: no rounding takes it below


@dataclass(frozen=True, eq=False)
class Look:
    """One way of looking: at disjoint blocks of so many batches."""

    batches: int  # of a block
    bet: Bet  # on the block that is open
    log_wealth: float  # logarithm of its share of the wealth, that of all looks being 1 at first

    @property
    def wealth(self) -> float:
        """Its share of the wealth."""
        return math.exp(min(LARGEST, self.log_wealth))

    def closes(self, number: int, start: int) -> bool:
        """Whether a block ends with batch ``number``, the first of all being ``start``."""
        return (number - start + 1) % self.batches == 0

    def settle(self, rank: int, total: int, limit: float) -> tuple[float, Look]:
        """Return what a block's rank pays, and the look at the next block.

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
    """Return what share of the first wealth looks at blocks of so many batches have."""
    parts = math.fsum(1 / count for count in batches)
    return {count: 1 / count / parts for count in batches}


def wealth_of(looks: tuple[Look, ...]) -> float:
    """Return the largest of the looks' shares of the wealth.

    Each look's wealth is a test martingale of its own p-values. Those of a block are not independent of those of its batches, so
    that the sum of the shares is no martingale of both; but P(share of look k ever >= 1 / alpha) <= alpha times its first share,
    and the first shares add up to one.
    """
    return max(look.wealth for look in looks)


# A batch of one row against many: the rank of how unlike the others it is.


TIE = 1e-9  # kernel values are at most 1: means closer than this are equal but for rounding


@dataclass(frozen=True)
class OneRowTest(Procedure):
    """Test of one row, which has no unbiased squared MMD: the mean kernel value between it and the others.

    The Gaussian kernel at the median distance of standardised columns is symmetric in all rows, and each row in turn is the
    single one: the rank is exact, among all relabelings there are.
    """

    citations = ("gretton2012kernel",)
    statistic_meaning = "minus the mean kernel value between the row and the others"

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestOutcome:  # noqa: ARG002
        """Rank the last row of the pool among all."""
        preparation = Preparation.fit(pool, scale="standard")
        rows = preparation.transform(pool)
        kernel = median_kernel(rows, "gaussian")
        means = -(kernel.gram(rows, rows).sum(axis=1) - 1.0) / (len(rows) - 1)
        ranking = Ranking.of(np.roll(means, 1), tolerance=TIE, exhaustive=True)
        return self.conclude(pool, options, ranking, tested_sizes=(pool.m, pool.n), kernel=kernel, preparation=preparation)


# Rows that came before in one test: so many that having more would add little (with a batch of 50, a tenth of the variance).
LEAST_COMPARED = 500
COMPARED = 4  # for each row of the block, where that is more
ONE_ROW = "one row"


@dataclass(frozen=True)
class BlockTest:
    """How blocks are tested."""

    plan: TestPlan  # the procedure and its options
    seed: int  # what all randomness comes from: it is keyed by the number of the batch, never by what is in it
    batch_rows: int  # rows of a block that are tested
    progress: Progress | None = None

    def look(self, look: Look, past: Past, number: int) -> tuple[LookResult, Look]:
        """Test the block that ends with batch ``number``, which is already among the past, and settle the look's bet."""
        key = (self.seed, "block", number, look.batches)
        drawing, breaking = keyed_rng(*key).spawn(2)
        first = number - look.batches + 1
        block, units = past.draw_since(first, self.batch_rows, drawing)
        before = past.draw_before(first, max(past.count_of(LEAST_COMPARED), COMPARED * units), drawing, beside=block)
        seed, procedure, options = short_seed(*key), self.plan.procedure, self.plan.options
        if units == 1:
            _check_alone(self.plan.design)
            procedure, options = OneRowTest(), replace(options, method=ONE_ROW, summary="")
        pool = lay_out((before, block), self.plan.design)
        with threads(self.plan.n_jobs), reporting_to(self.progress):
            outcome = procedure.run(pool, options, np.random.default_rng(seed))
        rank, total = break_ties(outcome, breaking)
        evalue, settled = look.settle(rank, total, 1 / self.plan.options.alpha)
        return LookResult(look.batches, rank, total, evalue, settled.wealth, TestResult.of(outcome, seed=seed)), settled


def _check_alone(design: DesignOptions) -> None:
    """Refuse a batch of one unit where a design has a say: one row is compared with single rows."""
    if design.given:
        raise InputError("A batch must have 2 rows at least with strata, and 2 groups at least with groups. Got 1.")


def break_ties(outcome: TestOutcome, rng: np.random.Generator) -> tuple[int, int]:
    """Return the rank of the observed statistic among all relabelings, one of its ties' at random, and their number.

    Counting ties against rejection is safe for one test. Over a stream it would let the p-value depend on how many ties the pool
    has, and so on the next one; broken at random the rank is uniform whatever the pool.
    """
    total = len(outcome.null_distribution) + 1
    return int(rng.integers(outcome.rank - outcome.ties + 1, outcome.rank + 1)), total


def check_exact(procedure: Procedure, name: str) -> None:
    """Refuse procedures whose p-value is not the rank of one statistic among its relabelings."""
    if not procedure.exact or getattr(procedure, "n_splits", 1) > 1:
        raise InputError(
            f"A monitor needs a method whose p-value is one exact ranking. {name} has none; use another, or a single split."
        )
