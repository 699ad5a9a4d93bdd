"""The table of columns: every column of the data on all tested rows, with its own p-value from the test's relabelings."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.plain import PlainDict
from cpmmd.core.text import harmless
from cpmmd.data.pool import Pool
from cpmmd.data.table import Objects
from cpmmd.draws.layout import Layout
from cpmmd.explain.column_scores import ColumnScores, adjusted_pvalues, read_columns, score_columns
from cpmmd.explain.columns import DataColumn, date_text
from cpmmd.explain.differences import LONGEST, ColumnDifference, PairDifference, SuspiciousColumn
from cpmmd.explain.pairs import PairTable, Scores, pair_table
from cpmmd.explain.strata import Strata
from cpmmd.explain.summaries import ColumnSides, say_difference, summarise
from cpmmd.procedures.outcome import TestOutcome

# Columns that tell the samples apart without saying anything about them: identifiers, counters, clocks, keys, constants.


FEWEST = 5  # rows of each sample: with fewer, being apart says little
IDENTIFIES = 20  # rows that all have a value of their own
IDENTIFIER = "every row has a value of its own, as identifiers do"
Suspicion = tuple[str, bool]  # why, and whether also where the column does not differ
NAMES = re.compile(
    r"(?i)(^|[\W_])(id|ids|uuid|guid|key|index|idx|row|row.?(id|nr|no|number))$|(?<=[a-z])(Id|ID|Key)$|^unnamed: \d+$|^$"
)


def suspicion(sides: ColumnSides, pool: Pool, rows: Rows, names: tuple[str, str]) -> Suspicion:
    """Return why a column is suspicious, and whether it is so without a difference; no reason where it is not."""
    if min(np.count_nonzero(sides.there & side) for side in (sides.labels, ~sides.labels)) < FEWEST:
        return _all_missing(sides, names), False
    if sides.read.levels is not None:
        return _of_category(sides, pool.categories[sides.read.column.name][rows], names)
    return _of_numbers(sides, rows, names)


def _all_missing(sides: ColumnSides, names: tuple[str, str]) -> str:
    empty = [n for n, side in zip(names, (sides.labels, ~sides.labels), strict=True) if not (sides.there & side).any()]
    return f"it is empty in {empty[0]}" if len(empty) == 1 else ""


def _of_category(sides: ColumnSides, values: Objects, names: tuple[str, str]) -> Suspicion:
    x, y = (set(values[side & sides.there].tolist()) for side in (sides.labels, ~sides.labels))
    count = int(np.count_nonzero(sides.there))
    if count >= IDENTIFIES and len(x | y) == count:
        return IDENTIFIER, True
    if not x & y:
        return "no value is in both samples: it tells them apart alone", False
    return _constant([len(x), len(y)], [next(iter(x)), next(iter(y))], names), False


def _constant(counts: list[int], values: Sequence[object], names: tuple[str, str]) -> str:
    for own, other in ((0, 1), (1, 0)):
        if counts[own] == 1 < counts[other]:
            return f"it is always {harmless(values[own], LONGEST)} in {names[own]}"
    return ""


def _of_numbers(sides: ColumnSides, rows: Rows, names: tuple[str, str]) -> Suspicion:
    column = sides.read.column
    x, y = (one.values for one in sides.numbers)
    whole = bool(np.all(sides.read.values[sides.there] % 1 == 0)) and column.kind == "number"
    if whole and all(_counts_up(sides, rows, side) for side in (sides.labels, ~sides.labels)):
        return "it counts the rows", True
    if whole and NAMES.search(column.name) and len(np.unique(np.concatenate([x, y]))) == len(x) + len(y):
        return IDENTIFIER, True
    return "" if column.kind == "boolean" else _apart(column, x, y, names), False


def _apart(column: DataColumn, x: Array, y: Array, names: tuple[str, str]) -> str:
    """Say that numbers are constant in one sample, or do not overlap."""
    first_values = [date_text(float(v[0]))[:16] if column.kind == "date" else f"{v[0]:.6g}" for v in (x, y)]
    constant = _constant([len(np.unique(v)) for v in (x, y)], first_values, names)
    if constant:
        return constant
    if x.max() < y.min() or y.max() < x.min():
        first, last = names if x.max() < y.min() else names[::-1]
        if column.kind == "date":
            return f"every date of {last} is after the last one of {first}: a clock tells them apart alone"
        return f"every value of {last} is above the largest one of {first}: it tells them apart alone"
    return ""


def _counts_up(sides: ColumnSides, rows: Rows, side: Labels) -> bool:
    """Whether the values of one sample, in the order of its rows, go up by equal steps wherever rows are neighbours."""
    chosen = np.flatnonzero(side & sides.there)
    order = chosen[np.argsort(rows[chosen])]
    steps, gaps = np.diff(sides.read.values[order]), np.diff(rows[order])
    return len(steps) > 0 and bool(np.all(steps > 0) and np.allclose(steps / gaps, steps[0] / gaps[0], rtol=1e-9))


OWN = 999  # relabelings where the method has none
ROOM, WIDEST = 2**26, 40  # bytes of columns that are looked at together, and features of one


@dataclass(frozen=True, eq=False)
class Tables:
    """Columns and pairs of columns, and what was noticed on the way."""

    columns: tuple[ColumnDifference, ...]
    pairs: tuple[PairDifference, ...]
    suspicious: tuple[SuspiciousColumn, ...]
    pvalue_without: float | None
    notes: tuple[str, ...]


def relabelled_units(outcome: TestOutcome, rng: np.random.Generator) -> tuple[Layout, tuple[str, ...]]:
    """Return what the test relabelled and how; relabelings of our own where the test flipped signs instead."""
    if outcome.evidence is None:
        raise ValueError("An outcome without evidence has no rows.")
    if outcome.evidence.units is not None:
        return outcome.evidence.units, ()
    pool, tested = outcome.evidence.pool, outcome.evidence.tested_rows
    m = int(np.count_nonzero(tested < pool.m))
    units = Layout.cut(m, len(tested) - m, None, rng).draw(OWN, rng).of(tested)
    return units, ("columns have relabelings of their own: the method has none that they could share",)


def difference_tables(pool: Pool, columns: Sequence[DataColumn], units: Layout, alpha: float, names: tuple[str, str]) -> Tables:
    """Return what is found of every column and of pairs of columns."""
    scanned, scores = _scan(pool, columns, units, names)
    pvalues = adjusted_pvalues(np.array([one.scored.scores for one in scanned])).tolist()
    found = [one.with_pvalue(p, alpha) for one, p in zip(scanned, pvalues, strict=True)]
    why = [one.why if one.always or p <= alpha else "" for one, p in zip(scanned, pvalues, strict=True)]
    pairs = pair_table(scores, units, alpha)
    order = sorted(range(len(found)), key=lambda i: (found[i].pvalue, -found[i].distance, i))
    return Tables(
        tuple(found[i] for i in order),
        pairs.pairs,
        tuple(SuspiciousColumn(found[i].name, found[i].label, why[i]) for i in order if why[i]),
        _without([i for i, reason in enumerate(why) if reason], [one.scored for one in scanned], pairs),
        pairs.notes,
    )


@dataclass(frozen=True, eq=False)
class _Scanned:
    """What one look at a column gives, before all p-values are known."""

    known: PlainDict
    words: str
    scored: ColumnScores
    why: str
    always: bool

    def with_pvalue(self, pvalue: float, alpha: float) -> ColumnDifference:
        return ColumnDifference(**self.known, pvalue=pvalue, words=self.words if pvalue <= alpha else "")


def _scan(pool: Pool, columns: Sequence[DataColumn], units: Layout, names: tuple[str, str]) -> tuple[list[_Scanned], Scores]:
    """Look at every column once, some at a time so that their sums and values fit."""
    observed = next(iter(units.labels.blocks()))[0] > 0.5
    unit = np.repeat(np.arange(len(units.starts)), units.counts)
    strata = Strata.of(pool.design, units.rows)
    step = max(1, ROOM // (8 * (WIDEST * len(units.starts) + 3 * len(unit))))
    scanned: list[_Scanned] = []
    scores = Scores.of_rows(len(unit))
    for start in range(0, len(columns), step):
        read = list(read_columns(pool, columns[start : start + step], units, strata))
        for one, scored in zip(read, score_columns([one.features for one in read], units), strict=True):
            scores.offer(one)
            sides = ColumnSides(one, observed[unit], unit if strata is None else strata.unit)
            scanned.append(_describe(sides, scored, suspicion(sides, pool, units.rows, names)))
    return scanned, scores


def _describe(sides: ColumnSides, scored: ColumnScores, suspicious: tuple[str, bool]) -> _Scanned:
    column = sides.read.column
    words, effect = say_difference(sides, scored.parts)
    named = {"name": column.name, "label": column.label, "kind": column.kind}
    return _Scanned({**named, "effect": effect, **summarise(sides)}, words, scored, *suspicious)


def _without(suspicious: list[int], scored: Sequence[ColumnScores], pairs: PairTable) -> float | None:
    """Return the p-value of all other columns and their pairs together: the largest of their scores under each relabeling."""
    left = [one.scores for i, one in enumerate(scored) if i not in suspicious]
    if not suspicious or not left:
        return None
    apart = ~np.isin(pairs.owners, suspicious).any(axis=1)
    every: Array = np.vstack([*left, *pairs.scores[apart]])
    return float(adjusted_pvalues(every.max(axis=0)[None])[0])
