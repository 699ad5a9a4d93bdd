"""Columns of several samples: in which they differ, and the sample that differs most from the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.plain import PlainValue
from cpmmd.core.text import sanitize
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MISSING, Preparation
from cpmmd.draws.layout import Layout
from cpmmd.explain.differences import LONGEST, ColumnDifference, ColumnEffect, quote_name
from cpmmd.explain.summaries import describe
from cpmmd.statistics.columns import (
    Change,
    DataColumn,
    ReadColumn,
    adjusted_pvalues,
    columns_of,
    date_text,
    read_columns,
    score_columns,
)
from cpmmd.statistics.strata import Strata

ROOM, WIDEST = 2**26, 40  # bytes of columns that are read together, and features of a column
MOST_DESCRIBED = 50  # columns whose values are summed up


@dataclass(frozen=True, repr=False)
class SeveralColumn(PlainValue):
    """How one column differs between several samples."""

    #: name, label: the column's name in the data, and as text for a person (``"column 3"`` for arrays)
    name: str
    label: str
    kind: str  #: ``"number"``, ``"date"``, ``"boolean"``, ``"category"`` or ``"patch"`` (a rectangle of an image)
    #: from the test's own permutations, adjusted over all columns: the family-wise error, the probability that any column that
    #: does not differ has a p-value of alpha or less, is at most alpha
    pvalue: float
    sample: str = ""  #: the sample that differs most from all others together; empty where the p-value is above alpha
    words: str = ""  #: how it differs from the others: ``"higher"``, ``"more variable"``, ``"more often 'red'"``
    effect: ColumnEffect | None = None  #: the size of that difference, with its interval
    what: str = ""  #: what ``values`` are: ``"mean"``, ``"standard deviation"``, ``"share of 'red'"``, ``"share missing"``
    values: tuple[float | None, ...] = ()  #: of each sample, dates in days since 1970; None where a sample has no value

    @property
    def significant(self) -> bool:
        """Whether the column differs: its p-value is at most alpha."""
        return bool(self.sample)

    @property
    def sentence(self) -> str:
        """The finding in a few words."""
        return f"{quote_name(self.name, self.label)} is {self.words or 'different'} in {sanitize(self.sample, LONGEST)}"

    def shown(self) -> list[str]:
        """Return the value of each sample as text."""
        share = self.what.startswith("share")

        def text(value: float | None) -> str:
            if value is None:
                return ""
            if self.kind == "date" and self.what == "mean":
                return date_text(value)[:10]
            return f"{value:.0%}" if share else f"{value:.4g}"

        return [text(value) for value in self.values]

    def __repr__(self) -> str:
        found = f"{self.words} in {sanitize(self.sample, LONGEST)}, " if self.significant else ""
        return f"<SeveralColumn {sanitize(self.label, LONGEST)}: {found}p = {self.pvalue:.3g}>"


def compare_columns(pool: Pool, layout: Layout, alpha: float, names: Sequence[str]) -> tuple[SeveralColumn, ...]:
    """Return every column of several samples, smallest p-value first, by the permutations of their test."""
    columns = columns_of(pool, Preparation.fit(replace(pool, preprocess=None)))  # as they came, before any transformer
    strata, rows = Strata.of(pool, layout.rows, layout), len(layout.rows)
    step = max(1, ROOM // (8 * (WIDEST * layout.count + 3 * rows)))
    scores: list[Array] = []
    for start in range(0, len(columns), step):
        read = list(read_columns(pool, columns[start : start + step], layout, strata))
        scores += [scored.scores for scored in score_columns([column.features for column in read], layout)]
    pvalues = adjusted_pvalues(np.array(scores)).tolist()
    order = sorted(range(len(columns)), key=lambda i: (pvalues[i], -scores[i][0], i))
    differing = [i for i in order if pvalues[i] <= alpha]
    described = set(differing[:MOST_DESCRIBED])
    sample = np.searchsorted(np.cumsum(pool.sizes), layout.rows, side="right")
    found = []
    for i in order:
        plain = SeveralColumn(columns[i].name, columns[i].label, columns[i].kind, pvalues[i])
        found.append(_described(plain, columns[i], pool, layout, strata, sample, names) if i in described else plain)
    return tuple(found)


def _described(
    plain: SeveralColumn, column: DataColumn, pool: Pool, layout: Layout, strata: Strata, sample: Rows, names: Sequence[str]
) -> SeveralColumn:
    """Return a column with the sample that differs most from the others, how, and the values of all."""
    (read,) = read_columns(pool, [column], layout, strata)
    apart = [score_columns([read.features], side)[0] for side in layout.against]
    most = max(range(len(apart)), key=lambda a: (apart[a].scores[0], a))
    others = replace(strata, labels=sample != most)  # as X, so that words say how the sample differs from them
    difference = describe(replace(read, strata=others), apart[most].parts)
    what, value = _summary(read, difference)
    values = tuple(value(sample == a) for a in range(len(apart)))
    return replace(plain, sample=names[most], words=difference.words, effect=difference.effect, what=what, values=values)


def _summary(read: ReadColumn, found: ColumnDifference) -> tuple[str, Callable[[Labels], float | None]]:
    """Return what to show of each sample, and the function of its rows that computes it."""

    def share(marks: Labels, of: Labels) -> Callable[[Labels], float | None]:
        return lambda own: float(marks[own & of].mean()) if (own & of).any() else None

    all_rows = np.ones(len(read.values), dtype=bool)
    if found.change is Change.MISSING:
        return "share missing", share(~read.there, all_rows)
    if found.levels:
        level = next(iter(found.levels))
        name = "missing" if level == MISSING else f"of '{sanitize(level, LONGEST)}'"
        return f"share {name}", share(read.values == read.code(level), all_rows)
    if found.kind == "boolean":
        return "share true", share(read.values > 0, read.there)
    if found.change is Change.SCALE:
        return "standard deviation", lambda own: float(values.std()) if len(values := read.values[own & read.there]) else None
    return "mean", lambda own: float(values.mean()) if len(values := read.values[own & read.there]) else None
