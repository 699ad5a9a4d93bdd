"""What came before a batch: a bounded, unordered pool of rows that never looks at labels or values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from cpmmd.core.arrays import Rows
from cpmmd.core.text import counted
from cpmmd.data.design import as_texts
from cpmmd.data.numbers import Matrix
from cpmmd.data.table import Table, check_present, drop_missing, find_gaps
from cpmmd.errors import InputError, name_some

# Rows that come to a monitor that is fitted: enough of them, with their missing values dealt with as it was fitted to.


# How missing values are dealt with is part of a monitor: one way for all batches, or changing it would change the data.
OTHER_WAY = (
    "Leave those rows out, or fit a new monitor with {drop}, which does so, or {impute}, which fills them in and tests "
    "missingness too."
)
TOO_FEW = "leave it out, or fit a new monitor with {impute}"


def complete(table: Table, sample: str, *, missing: str, least: int) -> tuple[Table, tuple[str, ...]]:
    """Return at least so many rows without missing values that were to be refused or dropped, and notes."""
    if table.rows < least:
        raise InputError(
            "{Sample} must have at least {least}. Got {rows}.", sample=sample, least=counted(least, "row"), rows=table.rows
        )
    gaps, notes = find_gaps(table, sample), list[str]()
    if missing == "error":
        check_present({sample: gaps}, advice=OTHER_WAY)
    elif missing == "drop":
        table = drop_missing(table, sample, gaps, notes, least=least, advice=TOO_FEW)
    return table, tuple(notes)


@dataclass(frozen=True, eq=False)
class Past:
    """Rows that came before, and the number of the batch that each came with.

    Rows are dropped from the whole pool with equal probability, the new as the old. A reservoir that keeps a uniform sample of
    *all* rows ever seen does not do that: once full it hardly ever takes a new row, so that every batch meets the same rows and
    all answers share their luck. With equal probability, what is kept says nothing about which rows came last, and that is what
    independence takes. Where a design has groups, whole groups are kept, dropped and compared, and their numbers do not depend on
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
        self._refuse_known_groups(batch)
        return Past(stack(self.table, batch), np.concatenate([self.numbers, np.full(batch.rows, number, dtype=np.intp)]))

    @cached_property
    def units(self) -> Rows:
        """What each row is kept, dropped and compared with: itself, or its group where a design has groups."""
        groups = self.table.aside.get("groups")
        return np.arange(self.table.rows) if groups is None else np.unique(groups.astype(str), return_inverse=True)[1].ravel()

    def _refuse_known_groups(self, batch: Table) -> None:
        """Refuse what would tear a group: its two parts would not be exchangeable with anything."""
        if "groups" not in batch.aside:
            return
        again = sorted({*as_texts(batch.aside["groups"])} & {*as_texts(self.table.aside["groups"])})
        if again:
            raise InputError(
                f"A group comes to a monitor once, whole. {counted(len(again), 'group')} of the batch came before: "
                f"{name_some(again)}. Leave them out, or name later visits otherwise if they may count as groups of their own."
            )

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

        Where a design has strata, units of those that are ``beside`` alone: nothing else is compared with it, and a stratum that
        is rare in the past has its rows all the same. The choice follows from strata, never from values.
        """
        among = self.numbers < first
        if "strata" in beside.aside:
            among = among & np.isin(self.table.aside["strata"], np.unique(beside.aside["strata"]))
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
        aside={name: np.concatenate([as_texts(a.aside[name]), as_texts(b.aside[name])]) for name in a.aside},
    )


def _own(table: Table) -> Table:
    """Return a copy in memory: a caller's array may change."""
    aside = {name: as_texts(values) for name, values in table.aside.items()}
    return replace(table, numbers=Matrix(np.asarray(table.numbers)), kept=None, aside=aside)
