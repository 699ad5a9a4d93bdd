"""What came before a batch: a bounded, unordered pool of rows that never looks at labels or values."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cpmmd.core.arrays import Rows
from cpmmd.data.numbers import Matrix
from cpmmd.data.table import Table


@dataclass(frozen=True, eq=False)
class Past:
    """Rows that came before, and the number of the batch that each came with.

    Attributes
    ----------
    table
        The rows.
    numbers
        The batch of each; 0 is the reference.

    Notes
    -----
    Rows are dropped from the whole pool with equal probability, the new as the old. A reservoir that keeps a uniform sample of
    *all* rows ever seen does not do that: once full it hardly ever takes a new row, so that every batch meets the same rows and
    all answers share their luck. With equal probability, what is kept says nothing about which rows came last, and that is what
    independence takes.
    """

    table: Table
    numbers: Rows

    @classmethod
    def of(cls, reference: Table) -> Past:
        """Return the past of a reference."""
        return cls(_own(reference), np.zeros(reference.rows, dtype=np.intp))

    def add(self, batch: Table, number: int) -> Past:
        """Return the past with a batch in it."""
        return Past(stack(self.table, batch), np.concatenate([self.numbers, np.full(batch.rows, number, dtype=np.intp)]))

    def keep(self, rows: int, rng: np.random.Generator) -> Past:
        """Return at most so many rows, each kept with equal probability."""
        return self if self.table.rows <= rows else self.take(np.sort(rng.permutation(self.table.rows)[:rows]))

    def take(self, rows: Rows) -> Past:
        """Return some rows."""
        return Past(_own(self.table.take(rows)), self.numbers[rows])

    def draw_before(self, first: int, rows: int, rng: np.random.Generator) -> Table:
        """Return at most so many rows from before batch ``first``, at random and in random order."""
        return self.table.take(rng.permutation(np.flatnonzero(self.numbers < first))[:rows])

    def draw_since(self, first: int, rows: int, rng: np.random.Generator) -> Table:
        """Return at most so many rows of batch ``first`` and later ones, at random, in the order in which they came."""
        chosen = self.of_batches(first)
        return self.table.take(chosen if len(chosen) <= rows else np.sort(rng.permutation(chosen)[:rows]))

    def of_batches(self, first: int) -> Rows:
        """Return which rows came with batch ``first`` or later."""
        return np.flatnonzero(self.numbers >= first)


def stack(a: Table, b: Table) -> Table:
    """Return the rows of two tables with the same columns."""
    return replace(
        a,
        numbers=Matrix(np.concatenate([np.asarray(a.numbers), np.asarray(b.numbers)])),
        categories={c: np.concatenate([a.categories[c], b.categories[c]]) for c in a.categories},
        kinds=dict(a.kinds.items() & b.kinds.items()),
        kept=None,
    )


def _own(table: Table) -> Table:
    """Return a copy in memory: a caller's array may change."""
    return replace(table, numbers=Matrix(np.asarray(table.numbers)), kept=None)
