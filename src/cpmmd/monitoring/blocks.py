"""The test of a block of batches against what came before it, and its rank on a lattice that is uniform exactly."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cpmmd.api.options import TestPlan
from cpmmd.core.parallel import threads
from cpmmd.core.progress import Progress, reporting_to
from cpmmd.core.seeds import keyed_rng, short_seed
from cpmmd.data.design_options import DesignOptions
from cpmmd.data.pool import lay_out, pool_tables
from cpmmd.errors import InputError
from cpmmd.monitoring.answers import LookResult
from cpmmd.monitoring.looks import Look
from cpmmd.monitoring.one_row import OneRowTest
from cpmmd.monitoring.past import Past
from cpmmd.procedures.base import Procedure
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.results import TestResult

# Rows that came before in one test: so many that having more would add little (with a batch of 50, a tenth of the variance).
LEAST_COMPARED = 500
COMPARED = 4  # for each row of the block, where that is more
ONE_ROW = "one row"


@dataclass(frozen=True)
class BlockTest:
    """How blocks are tested.

    Attributes
    ----------
    plan
        The procedure and its options.
    seed
        What all randomness comes from: it is keyed by the number of the batch, never by what is in it.
    batch_rows
        Rows of a block that are tested.
    """

    plan: TestPlan
    seed: int
    batch_rows: int
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
        pool = lay_out(pool_tables(before, block), before, block, self.plan.design)
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

    Notes
    -----
    Counting ties against rejection is safe for one test. Over a stream it would let the p-value depend on how many ties the pool
    has, and so on the next one; broken at random the rank is uniform whatever the pool.
    """
    total = len(outcome.null_distribution) + 1
    worst = round(outcome.pvalue * total)
    return int(rng.integers(worst - outcome.ties + 1, worst + 1)), total


def check_exact(procedure: Procedure, name: str) -> None:
    """Refuse procedures whose p-value is not the rank of one statistic among its relabelings."""
    if not procedure.exact or getattr(procedure, "n_splits", 1) > 1:
        raise InputError(
            f"A monitor needs a method whose p-value is one exact ranking. {name} has none; use another, or a single split."
        )
