"""The table of columns: every column of the data on all tested rows, with its own p-value from the test's relabelings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict
from cpmmd.data.pool import Pool
from cpmmd.explain.column_scores import ColumnScores, read_columns, score_columns
from cpmmd.explain.columns import DataColumn
from cpmmd.explain.differences import ColumnDifference, PairDifference, SuspiciousColumn
from cpmmd.explain.maxt import adjusted_pvalues
from cpmmd.explain.pairs import PairTable, Scores, pair_table
from cpmmd.explain.strata import Strata
from cpmmd.explain.summaries import ColumnSides, say_difference, summarise
from cpmmd.explain.suspicious import suspicion
from cpmmd.permutation.binned import cut_bins, relabelings
from cpmmd.permutation.units import Units
from cpmmd.procedures.outcome import TestOutcome

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


def relabelled_units(outcome: TestOutcome, rng: np.random.Generator) -> tuple[Units, tuple[str, ...]]:
    """Return what the test relabelled and how; relabelings of our own where the test flipped signs instead."""
    if outcome.evidence is None:
        raise ValueError("An outcome without evidence has no rows.")
    if outcome.evidence.units is not None:
        return outcome.evidence.units, ()
    pool, tested = outcome.evidence.pool, outcome.evidence.tested_rows
    m = int(np.count_nonzero(tested < pool.m))
    bins = cut_bins(m, len(tested) - m, rng)
    units = Units.of_size(tested[bins.order], bins.size, relabelings(bins, OWN, rng))
    return units, ("columns have relabelings of their own: the method has none that they could share",)


def difference_tables(pool: Pool, columns: Sequence[DataColumn], units: Units, alpha: float, names: tuple[str, str]) -> Tables:
    """Return what is found of every column and of pairs of columns.

    Parameters
    ----------
    pool
        The data.
    columns
        Those to look at.
    units
        What is relabelled, and how.
    alpha
        Level up to which a difference has words.
    names
        What the samples are called.
    """
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


def _scan(pool: Pool, columns: Sequence[DataColumn], units: Units, names: tuple[str, str]) -> tuple[list[_Scanned], Scores]:
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
