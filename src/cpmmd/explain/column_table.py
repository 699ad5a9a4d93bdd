"""The tables of columns and pairs: all tested rows, p-values from the test's own permutations, adjusted for all of a table.

Pairs are compared by their correlations within each sample. Means and deviations are taken within each sample, too, so that
differences of the columns themselves do not count.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import combinations

import numpy as np
from scipy import special

from cpmmd.core.arrays import Array, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import MISSING, OTHER
from cpmmd.draws.layout import Layout
from cpmmd.evidence import tail_scores
from cpmmd.explain.differences import ColumnDifference, PairDifference, SuspiciousColumn
from cpmmd.explain.summaries import Suspicion, describe, suspicion
from cpmmd.procedures.outcome import Evidence
from cpmmd.statistics.columns import DataColumn, ReadColumn, adjusted_pvalues, largest_score, read_columns, score_columns
from cpmmd.statistics.strata import Strata

OWN_PERMUTATIONS = 999  # where the method has none to share
ROOM, WIDEST = 2**26, 40  # bytes of columns that are read together, and features of a column
MOST_DESCRIBED = 2000  # columns whose values are summarised, and all that differ; the others have a p-value
NOT_DESCRIBED = "all {of:,} columns have a p-value; only the {found:,} with the smallest ones are summarised"
MOST_PAIRS = 2000  # of columns: all pairs of up to 63 columns
MOST_SCORES, FEWEST_SCORES = 1000, 20  # number columns and levels that make pairs
SCORE_ROOM = 2**28  # bytes that their scores may take
LEVELS = 3  # of a category, the most frequent ones
TOGETHER = 256  # pairs of scores in one product
SCREENED_ROWS = 5000  # rows that choose the pairs
SECOND_LOOK = 2  # p-values are doubled: columns have the level to themselves, pairs half of it once more
CLOSEST = 0.999  # correlation beyond which Fisher's transform is cut off


@dataclass(frozen=True, eq=False)
class Tables:
    """Columns, pairs of columns, suspicious columns, and notes."""

    columns: tuple[ColumnDifference, ...]
    pairs: tuple[PairDifference, ...]
    suspicious: tuple[SuspiciousColumn, ...]
    pvalue_without: float | None
    notes: tuple[str, ...]


def permuted_units(evidence: Evidence, rng: np.random.Generator) -> tuple[Layout, tuple[str, ...]]:
    """Return the units and permutations of the test, and notes; new permutations where the test flipped signs instead."""
    if evidence.units is not None:
        return evidence.units, ()
    tested = evidence.tested_rows
    m = int(np.count_nonzero(tested < evidence.pool.m))
    units = Layout.cut(m, len(tested) - m, None, rng).draw(OWN_PERMUTATIONS, rng).of(tested)
    own = f"p-values of columns use {OWN_PERMUTATIONS} permutations of their own"
    if evidence.sample_of is None:
        return units, (f"{own}, because the method has none to share",)
    sampled = (
        f"columns, pairs and rows are those of {len(tested):,} of {evidence.sample_of:,} rows, drawn without looking at labels"
    )
    return units, (sampled, own)


def difference_tables(pool: Pool, columns: Sequence[DataColumn], units: Layout, alpha: float, names: tuple[str, str]) -> Tables:
    """Compare the samples in every column and in pairs of columns."""
    strata, rows = Strata.of(pool, units.rows, units), len(units.rows)
    found: dict[int, ColumnDifference] = {}
    suspicions: list[Suspicion] = []
    scores: list[Array] = []
    parts: list[dict[str, float]] = []
    pair_scores = PairScores(min(MOST_SCORES, max(FEWEST_SCORES, SCORE_ROOM // (8 * max(rows, 1)))))
    step = max(1, ROOM // (8 * (WIDEST * len(units.starts) + 3 * rows)))  # columns whose sums and values fit
    few = len(columns) <= MOST_DESCRIBED
    for start in range(0, len(columns), step):
        read = list(read_columns(pool, columns[start : start + step], units, strata))
        for column, scored in zip(read, score_columns([column.features for column in read], units), strict=True):
            if few:
                found[len(scores)] = describe(column, scored.parts)
            else:
                parts.append(scored.parts)
            suspicions.append(suspicion(column, pool, units.rows, names))
            scores.append(scored.scores)
            pair_scores.offer(column)
    pvalues = adjusted_pvalues(np.array(scores)).tolist()
    suspicious = [i for i, reason in enumerate(suspicions) if reason.why and (reason.always or pvalues[i] <= alpha)]
    ranked = sorted(range(len(columns)), key=lambda i: (pvalues[i], -scores[i][0], i))
    if not few:
        shown = sorted({*ranked[:MOST_DESCRIBED], *suspicious, *(i for i in ranked if pvalues[i] <= alpha)})
        again = read_columns(pool, [columns[i] for i in shown], units, strata)
        found = {i: describe(column, parts[i]) for i, column in zip(shown, again, strict=True)}
    order = sorted(found, key=lambda i: (pvalues[i], -found[i].distance, i))
    compared = {i: _with_pvalue(found[i], pvalues[i], alpha) for i in order}
    compared |= {
        i: ColumnDifference(columns[i].name, columns[i].label, columns[i].kind, pvalues[i]) for i in ranked if i not in found
    }
    pairs = pair_table(pair_scores, units, alpha)
    return Tables(
        tuple(compared.values()),
        pairs.pairs,
        tuple(SuspiciousColumn(columns[i].name, columns[i].label, suspicions[i].why) for i in order if i in suspicious),
        _pvalue_without(suspicious, scores, pairs),
        pairs.notes if few else (NOT_DESCRIBED.format(of=len(columns), found=len(found)), *pairs.notes),
    )


def _with_pvalue(column: ColumnDifference, pvalue: float, alpha: float) -> ColumnDifference:
    significant = pvalue <= alpha and column.change is not None
    return replace(column, pvalue=pvalue, significant=significant, words=column.words if significant else "")


def _pvalue_without(suspicious: list[int], scores: list[Array], pairs: PairTable) -> float | None:
    """Return the p-value of all other columns and their pairs together: the largest of their scores under each permutation."""
    others = [score for i, score in enumerate(scores) if i not in suspicious]
    if not suspicious or not others:
        return None
    together: Array = np.vstack([*others, *pairs.scores[~np.isin(pairs.owners, suspicious).any(axis=1)]])
    return float(adjusted_pvalues(together.max(axis=0)[None])[0])


@dataclass(eq=False)
class PairScores:
    """Columns as standardised scores, up to a number: normal scores of numbers, marks of levels."""

    room: int  # most scores
    columns: list[DataColumn] = field(default_factory=list)  # all columns that were offered
    values: list[Array] = field(default_factory=list)  # scores of the units' rows; missing values are 0, the mean
    owner: list[int] = field(default_factory=list)  # the column that each score belongs to
    level: list[str] = field(default_factory=list)  # the level that a score marks, empty for numbers

    def offer(self, read: ReadColumn) -> None:
        """Take the scores of a column that vary, while there is room."""
        self.columns.append(read.column)
        found = {"": np.zeros(len(read.values))}
        if read.levels is not None:
            usual = [name for name in read.levels.names if name not in (MISSING, OTHER)]  # most frequent first
            chosen = usual[: 1 if len(usual) == 2 else LEVELS]
            found = {name: read.strata.centred((read.values == read.code(name)).astype(np.float64)) for name in chosen}
        elif read.ranks is not None:
            found[""][read.there] = special.ndtri(read.ranks[read.there])
        elif read.there.any():  # two values are their own scores
            found[""][read.there] = read.values[read.there] - read.values[read.there].mean()
            found[""] = read.strata.centred(found[""])
        for name, values in found.items():
            sd = float(values.std())
            if sd > 0 and len(self.values) < self.room:
                self.values.append((values - values.mean()) / sd)
                self.owner.append(len(self.columns) - 1)
                self.level.append(name)

    @property
    def cut_short(self) -> tuple[str, ...]:
        """The note that there was no room for all columns."""
        if len(self.owner) < self.room or self.owner[-1] == len(self.columns) - 1:
            return ()
        return (f"only pairs of the first {self.owner[-1] + 1} of {len(self.columns)} columns were compared, to limit memory",)


@dataclass(frozen=True, eq=False)
class PairTable:
    """Pairs in order, the scores of all permutations, and notes on pairs that were left out."""

    pairs: tuple[PairDifference, ...]
    scores: Array
    owners: Rows  # the two columns of each row of scores
    notes: tuple[str, ...]


def pair_table(scores: PairScores, units: Layout, alpha: float) -> PairTable:
    """Return the pairs of columns: significant ones first, those that changed most first; the others by their p-value.

    P-values are adjusted over all pairs that were compared. Among significant pairs they say nothing more: many have the smallest
    one, and with many rows a correlation of 0.9989 that became 0.9990 is one of them.
    """
    if len(set(scores.owner)) < 2:
        return PairTable((), np.zeros((0, len(units.labels))), np.zeros((0, 2), dtype=np.intp), ())
    values = np.column_stack(scores.values)
    chosen, notes = _screen(scores, values)
    statistics, correlations = _statistics(values, chosen, units)
    groups: dict[tuple[int, int], list[int]] = {}  # pairs of scores that are of the same two columns
    for position, (i, j) in enumerate(chosen.tolist()):
        groups.setdefault((scores.owner[i], scores.owner[j]), []).append(position)
    tails = [tail_scores(statistics[positions]) for positions in groups.values()]
    together = np.array([largest_score(tail) for tail in tails])
    pvalues = np.minimum(SECOND_LOOK * adjusted_pvalues(together), 1.0).tolist()
    found = []
    for positions, tail, pvalue in zip(groups.values(), tails, pvalues, strict=True):
        best = positions[int(np.argmax(tail[:, 0]))]
        (i, j), (x, y) = chosen[best].tolist(), correlations[best].tolist()
        a, b = (scores.columns[scores.owner[k]] for k in (i, j))
        words, levels = _words(x, y) if pvalue <= alpha else "", (scores.level[i], scores.level[j])
        found.append(PairDifference((a.name, b.name), (a.label, b.label), pvalue, words, x, y, levels, pvalue <= alpha))
    found.sort(key=lambda pair: (not pair.significant, 0.0 if pair.significant else pair.pvalue, -pair.cohens_q))
    return PairTable(tuple(found), together, np.array(list(groups), dtype=np.intp), notes)


def _words(x: float, y: float) -> str:
    less, more = sorted((abs(x), abs(y)))
    if x * y < 0 and less >= more / 2:
        return "correlated in the other direction"
    return "more strongly correlated" if abs(y) >= abs(x) else "less strongly correlated"


def _screen(scores: PairScores, values: Array) -> tuple[Rows, tuple[str, ...]]:
    """Return the pairs of scores to compare, all or those most dependent in the pool, and notes.

    The mean of z_i^2 z_j^2 is 1 plus twice the mean squared correlation for normal scores: a pair that is correlated in one
    sample, or in both with opposite signs, has a large one. Labels are not used.
    """
    owner = scores.owner
    pairs = np.array([(i, j) for i, j in combinations(range(len(owner)), 2) if owner[i] != owner[j]])
    total = len({(owner[i], owner[j]) for i, j in pairs.tolist()})
    if total <= MOST_PAIRS:
        return pairs, scores.cut_short
    squares = values[:: max(1, len(values) // SCREENED_ROWS)] ** 2
    strength = (squares.T @ squares)[pairs[:, 0], pairs[:, 1]]
    kept = np.sort(np.argsort(-strength, kind="stable")[:MOST_PAIRS])
    note = f"of {total} pairs of columns, only the {MOST_PAIRS} most dependent in the pooled samples were compared"
    return pairs[kept], (note, *scores.cut_short)


def _statistics(values: Array, pairs: Rows, units: Layout) -> tuple[Array, Array]:
    """Return the squared difference of Fisher's z of each pair under every permutation, and both correlations as they are."""
    counts = units.counts.astype(np.float64)[:, None]
    single = np.hstack([counts, units.sums(values), units.sums(values**2)])
    own = np.concatenate([labels @ single for labels in units.labels.blocks()])
    x, y = (_Moments.of(sums) for sums in (own, single.sum(axis=0) - own))
    # 1 / variance of the difference of two Fisher z's, to first order
    precision = 1 / (1 / np.maximum(x.count - 3, 1) + 1 / np.maximum(y.count - 3, 1))
    statistics, correlations = np.empty((len(pairs), len(own))), np.empty((len(pairs), 2))
    for start in range(0, len(pairs), TOGETHER):
        part = slice(start, start + TOGETHER)
        i, j = pairs[part].T
        products = _unit_products(values, i, j, units)
        of_x = np.concatenate([labels @ products for labels in units.labels.blocks()])
        r_x, r_y = x.correlation(of_x, i, j), y.correlation(products.sum(axis=0) - of_x, i, j)
        statistics[part] = ((np.arctanh(r_x) - np.arctanh(r_y)) ** 2 * precision).T
        correlations[part] = np.column_stack([r_x[0], r_y[0]])
    return statistics, correlations


def _unit_products(values: Array, i: Rows, j: Rows, units: Layout) -> Array:
    """Return the sums over units of the products of pairs of scores, some rows at a time."""
    if len(units.starts) == len(units.rows):
        return values[:, i] * values[:, j]
    used, place = np.unique(np.concatenate([i, j]), return_inverse=True)
    a, b = place[: len(i)], place[len(i) :]
    ends = np.append(units.starts[1:], len(units.rows))
    chosen = values[:, used]
    return np.array([(chosen[s:e].T @ chosen[s:e])[a, b] for s, e in zip(units.starts, ends, strict=True)])


@dataclass(frozen=True, eq=False)
class _Moments:
    """Counts, means and deviations of the scores on one side, a permutation a row."""

    count: Array
    mean: Array
    sd: Array

    @classmethod
    def of(cls, sums: Array) -> _Moments:
        count, width = np.maximum(sums[:, :1], 1.0), (sums.shape[1] - 1) // 2
        mean = sums[:, 1 : 1 + width] / count
        variance = sums[:, 1 + width :] / count - mean**2
        return cls(count, mean, np.sqrt(np.maximum(variance, 0.0)))

    def correlation(self, products: Array, i: Rows, j: Rows) -> Array:
        """Return the correlations of pairs from the sums of their products; 0 where a score does not vary."""
        covariance = products / self.count - self.mean[:, i] * self.mean[:, j]
        scale = self.sd[:, i] * self.sd[:, j]
        varies = scale > 1e-9
        return np.clip(np.where(varies, covariance / np.where(varies, scale, 1.0), 0.0), -CLOSEST, CLOSEST)
