"""The table of columns: every column of the data on all tested rows, with its own p-value from the test's relabelings."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.data.pool import Pool
from cpmmd.explain.column_scores import ColumnScores, ReadColumn, read_columns, score_columns
from cpmmd.explain.columns import DataColumn
from cpmmd.explain.differences import ColumnDifference, PairDifference, SuspiciousColumn
from cpmmd.explain.maxt import adjusted_pvalues
from cpmmd.explain.pairs import PairTable, pair_table
from cpmmd.explain.summaries import ColumnSides, say_difference, summarise
from cpmmd.explain.suspicious import suspicion
from cpmmd.permutation.binned import cut_bins, relabelings
from cpmmd.permutation.units import Units
from cpmmd.procedures.outcome import TestOutcome

OWN = 999  # relabelings where the method has none


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
    read = list(read_columns(pool, columns, units))
    scored = score_columns([one.features for one in read], units)
    pvalues = adjusted_pvalues(np.array([one.scores for one in scored]))
    sides = _sides(read, units)
    found = [_describe(*one, alpha) for one in zip(sides, scored, pvalues.tolist(), strict=True)]
    why = [suspicion(side, pool, units.rows, names, differs=one.pvalue <= alpha) for side, one in zip(sides, found, strict=True)]
    pairs = pair_table(read, units, alpha)
    order = sorted(range(len(found)), key=lambda i: (found[i].pvalue, -found[i].distance, i))
    return Tables(
        tuple(found[i] for i in order),
        pairs.pairs,
        tuple(SuspiciousColumn(found[i].name, found[i].label, why[i]) for i in order if why[i]),
        _without([i for i, reason in enumerate(why) if reason], scored, pairs),
        pairs.notes,
    )


def _sides(read: Sequence[ReadColumn], units: Units) -> list[ColumnSides]:
    observed = next(iter(units.labels.blocks()))[0] > 0.5
    unit = np.repeat(np.arange(len(units.starts)), units.counts)
    return [ColumnSides(one, observed[unit], unit) for one in read]


def _describe(sides: ColumnSides, scored: ColumnScores, pvalue: float, alpha: float) -> ColumnDifference:
    column = sides.read.column
    words, effect = say_difference(sides, scored.parts)
    known = summarise(sides)
    said = words if pvalue <= alpha else ""
    return ColumnDifference(column.name, column.label, column.kind, pvalue, words=said, effect=effect, **known)


def _without(suspicious: list[int], scored: Sequence[ColumnScores], pairs: PairTable) -> float | None:
    """Return the p-value of all other columns and their pairs together: the largest of their scores under each relabeling."""
    left = [one.scores for i, one in enumerate(scored) if i not in suspicious]
    if not suspicious or not left:
        return None
    apart = ~np.isin(pairs.owners, suspicious).any(axis=1)
    every: Array = np.vstack([*left, *pairs.scores[apart]])
    return float(adjusted_pvalues(every.max(axis=0)[None])[0])
