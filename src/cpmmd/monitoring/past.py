"""Rows that came before, and tests of a span of batches against a part of them: ranks on an exactly uniform lattice."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cpmmd.core.arrays import Rows
from cpmmd.core.parallel import threads
from cpmmd.core.progress import Progress, reporting_to
from cpmmd.core.seeds import keyed_rng, short_seed
from cpmmd.core.text import pluralize
from cpmmd.data.design import as_texts
from cpmmd.data.missing import check_present, drop_missing, find_missing
from cpmmd.data.numbers import Matrix
from cpmmd.data.pool import Pool, apply_design
from cpmmd.data.preparation import Preparation
from cpmmd.data.table import Table
from cpmmd.draws.group_sizes import cut_groups
from cpmmd.errors import InputError, name_some
from cpmmd.evidence import Ranking
from cpmmd.monitoring.answers import LookResult
from cpmmd.monitoring.bets import Look
from cpmmd.procedures.base import Procedure, RunOptions
from cpmmd.procedures.fixed import median_kernel
from cpmmd.procedures.outcome import TestResult
from cpmmd.questions.options import TestPlan

# How missing values are dealt with is part of a monitor: one way for all batches, or changing it would change the data.
OTHER_WAY = (
    "Leave those rows out, or fit a new monitor with {drop}, which drops them, or {impute}, which fills in the values and tests "
    "missingness too."
)
TOO_FEW = "leave it out, or fit a new monitor with {impute}"
# Rows that came before in one test: so many that having more would add little (with a batch of 50, a tenth of the variance).
LEAST_COMPARED = 500
COMPARED = 4  # for each row of the span, where that is more
ONE_ROW = "one row"
TIE = 1e-9  # kernel values are at most 1: means closer than this are equal but for rounding


def apply_missing_policy(table: Table, sample: str, *, missing: str, least: int) -> tuple[Table, tuple[str, ...]]:
    """Return at least so many rows without missing values that were to be refused or dropped, and notes."""
    if table.rows < least:
        raise InputError(
            "{Sample} must have at least {least}. Got {rows}.", sample=sample, least=pluralize(least, "row"), rows=table.rows
        )
    found, notes = find_missing(table, sample), list[str]()
    if missing == "error":
        check_present({sample: found}, advice=OTHER_WAY)
    elif missing == "drop":
        table = drop_missing(table, sample, found, notes, least=least, advice=TOO_FEW)
    return table, tuple(notes)


@dataclass(frozen=True, eq=False)
class Past:
    """Rows that came before, and the number of the batch that each came with: a bounded pool that looks at no values.

    Rows are dropped from the whole pool with equal probability, the new as the old. A reservoir that keeps a uniform sample of
    *all* rows ever seen does not do that: once full it hardly ever takes a new row, so that every batch meets the same rows and
    all answers depend on them. With equal probability, what is kept says nothing about which rows came last, as independence
    requires. Where a design has groups, whole groups are kept, dropped and compared, and their numbers do not depend on
    how many rows those of the batch have.
    """

    table: Table  # the rows
    numbers: Rows  # the batch of each; 0 is the reference

    @classmethod
    def of(cls, reference: Table) -> Past:
        """Return the past of a reference."""
        return cls(_own(reference), np.zeros(reference.rows, dtype=np.intp))

    def add(self, batch: Table, number: int) -> Past:
        """Return the past with a batch in it; one with rows of a group that is remembered is refused."""
        if "groups" in batch.design_values:  # torn in two, its parts would not be exchangeable with anything
            again = sorted({*as_texts(batch.design_values["groups"])} & {*as_texts(self.table.design_values["groups"])})
            if again:
                raise InputError(
                    "Each group must come in one batch only, because groups are permuted as a whole. The batch repeats "
                    f"{pluralize(len(again), 'group')} of earlier ones: {name_some(again)}. Leave them out, or rename later "
                    "visits if they may count as new groups."
                )
        table = replace(
            self.table,
            numbers=Matrix(np.concatenate([np.asarray(self.table.numbers), np.asarray(batch.numbers)])),
            categories={c: np.concatenate([known, batch.categories[c]]) for c, known in self.table.categories.items()},
            kinds=dict(self.table.kinds.items() & batch.kinds.items()),
            kept=None,
            design_values={
                name: np.concatenate([as_texts(a), as_texts(batch.design_values[name])])
                for name, a in self.table.design_values.items()
            },
        )
        return Past(table, np.concatenate([self.numbers, np.full(batch.rows, number, dtype=np.intp)]))

    @cached_property
    def units(self) -> Rows:
        """What each row is kept, dropped and compared with: itself, or its group where a design has groups."""
        groups = self.table.design_values.get("groups")
        return np.arange(self.table.rows) if groups is None else np.unique(groups.astype(str), return_inverse=True)[1].ravel()

    def count_of(self, rows: int) -> int:
        """Return how many units have about so many rows: by the mean over all of the past, which is blind to what came last."""
        return max(1, rows * (int(self.units.max()) + 1) // self.table.rows)

    def cut(self, number: int, rows: int, rng: np.random.Generator) -> Past:
        """Return the past with no more units of batch ``number`` than have about so many rows."""
        batch, most = np.unique(self.units[self.numbers == number]), self.count_of(rows)
        if len(batch) <= most:
            return self
        return self.take(np.flatnonzero(~np.isin(self.units, rng.permutation(batch)[most:])))

    def keep(self, rows: int, rng: np.random.Generator) -> Past:
        """Return units of about so many rows at most, each kept with equal probability."""
        if self.table.rows <= rows:
            return self
        return self.take(np.sort(self._rows_of(rng.permutation(int(self.units.max()) + 1)[: self.count_of(rows)])))

    def take(self, rows: Rows) -> Past:
        """Return some rows."""
        return Past(_own(self.table.take(rows)), self.numbers[rows])

    def draw_before(self, first: int, count: int, rng: np.random.Generator, *, beside: Table) -> Table:
        """Return at most so many units from before batch ``first``, at random and in random order.

        Where a design has strata, they come from the strata of ``beside`` only, because nothing else is compared with it: a
        stratum that is rare in the past has its rows all the same. The choice follows from strata, never from values.
        """
        among = self.numbers < first
        if "strata" in beside.design_values:
            among = among & np.isin(self.table.design_values["strata"], np.unique(beside.design_values["strata"]))
        return self.table.take(self._rows_of(rng.permutation(np.unique(self.units[among]))[:count]))

    def draw_since(self, first: int, rows: int, rng: np.random.Generator) -> tuple[Table, int]:
        """Return units of batch ``first`` and later ones, of about so many rows, in the order they came in, and their number."""
        chosen, most = np.unique(self.units[self.numbers >= first]), self.count_of(rows)
        if len(chosen) > most:
            chosen = rng.permutation(chosen)[:most]
        return self.table.take(np.sort(self._rows_of(chosen))), len(chosen)

    def _rows_of(self, units: Rows) -> Rows:
        """Return the rows of some units, unit after unit."""
        place = np.full(int(self.units.max()) + 1, -1)
        place[units] = np.arange(len(units))
        rows = np.flatnonzero(place[self.units] >= 0)
        return np.asarray(rows[np.argsort(place[self.units[rows]], kind="stable")])


def _own(table: Table) -> Table:
    """Return a copy in memory: a caller's array may change."""
    design_values = {name: as_texts(values) for name, values in table.design_values.items()}
    return replace(table, numbers=Matrix(np.asarray(table.numbers)), kept=None, design_values=design_values)


@dataclass(frozen=True)
class OneRowTest(Procedure):
    """Test of one row, which has no unbiased squared MMD: the mean kernel value between it and the others.

    The Gaussian kernel at the median distance of standardised columns is symmetric in all rows, and each row in turn is the
    single one: the rank is exact, among all permutations.
    """

    citations = ("gretton2012kernel",)
    statistic_meaning = "minus the mean kernel value between the row and the others"

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestResult:  # noqa: ARG002
        """Rank the last row of the pool among all."""
        preparation = Preparation.fit(pool, scale="standard")
        rows = preparation.transform(pool)
        kernel = median_kernel(rows, "gaussian")
        means = -(kernel.gram(rows, rows).sum(axis=1) - 1.0) / (len(rows) - 1)
        ranking = Ranking.of(np.roll(means, 1), tolerance=TIE, exhaustive=True)
        return self.conclude(pool, options, ranking, tested_sizes=(pool.m, pool.n), kernel=kernel, preparation=preparation)


@dataclass(frozen=True)
class SpanTest:
    """How spans of batches are tested."""

    plan: TestPlan  # the procedure and its options
    seed: int  # what all randomness comes from: it is keyed by the number of the batch, never by what is in it
    batch_rows: int  # rows of a span that are tested
    progress: Progress | None = None

    def look(self, look: Look, past: Past, number: int) -> tuple[LookResult, Look]:
        """Test the span that ends with batch ``number``, which is already among the past, and settle the look's bet."""
        key = (self.seed, "block", number, look.batches)  # "block" is part of the seed: answers depend on it
        drawing, breaking = keyed_rng(*key).spawn(2)
        first = number - look.batches + 1
        span, units = past.draw_since(first, self.batch_rows, drawing)
        before = past.draw_before(first, max(past.count_of(LEAST_COMPARED), COMPARED * units), drawing, beside=span)
        seed, procedure, options = short_seed(*key), self.plan.procedure, self.plan.options
        if units == 1:
            if self.plan.design.given:  # one row is compared with single rows
                raise InputError(
                    "With strata, a batch must have at least 2 rows; with groups, at least 2 groups. Got 1; pass it together "
                    "with the next batch."
                )
            procedure, options = OneRowTest(), replace(options, method=ONE_ROW, summary="")
        pool = replace(self._cut(apply_design((before, span), self.plan.design), past), preprocess=self.plan.preprocess)
        with threads(self.plan.n_jobs), reporting_to(self.progress):
            outcome = procedure.run(pool, options, np.random.default_rng(seed))
        rank, total = break_ties(outcome, breaking)
        evalue, settled = look.settle(rank, total, 1 / self.plan.options.alpha)
        return LookResult(look.batches, rank, total, evalue, settled.wealth, replace(outcome, seed=seed)), settled

    def _cut(self, pool: Pool, past: Past) -> Pool:
        """Return a pool of rows of the past with groups of one size: in every test a group's rows come in the same random order.

        Drawn anew, they would let the p-values of two tests depend on each other where groups differ in size.
        """
        if "groups" not in past.table.design_values or pool.kept is None:
            return pool
        names = past.table.design_values["groups"][pool.kept]
        return cut_groups(pool, self.plan.design, keyed_rng(self.seed, "rows of groups"), names=names)


def break_ties(outcome: TestResult, rng: np.random.Generator) -> tuple[int, int]:
    """Return the rank of the observed statistic among all permutations, ties broken at random, and their number.

    Counting ties against rejection is safe for one test. Over a stream it would let the p-value depend on how many ties the pool
    has, and so on the next one; broken at random the rank is uniform whatever the pool.
    """
    total = len(outcome.null_distribution) + 1
    return int(rng.integers(outcome.rank - outcome.ties + 1, outcome.rank + 1)), total
