"""The tables of columns and pairs: all tested rows, p-values from the test's own relabelings, adjusted for all of a table.

A pair is one whose dependence changed: correlations within either side. Both columns may differ themselves: means and deviations
are taken within each side, so that the columns' own differences are out.
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

OWN = 999  # relabelings where the method has none
ROOM, WIDEST = 2**26, 40  # bytes of columns that are looked at together, and features of one
MOST_PAIRS = 2000  # of columns: all of up to 63 columns
MOST_SCORES, FEWEST_SCORES = 1000, 20  # number columns and levels among which pairs are looked for
SCORE_ROOM = 2**28  # bytes that their scores may take
LEVELS = 3  # of a category, the most frequent ones
TOGETHER = 256  # pairs of scores in one product
SCREENED_ROWS = 5000  # that the screen looks at
SECOND_LOOK = 2  # p-values are doubled: columns have the level to themselves, pairs half of it once more
CLOSEST = 0.999  # correlation beyond which Fisher's transform is cut off


@dataclass(frozen=True, eq=False)
class Tables:
    """Columns and pairs of columns, and what was noticed on the way."""

    columns: tuple[ColumnDifference, ...]
    pairs: tuple[PairDifference, ...]
    suspicious: tuple[SuspiciousColumn, ...]
    pvalue_without: float | None
    notes: tuple[str, ...]


def relabelled_units(evidence: Evidence, rng: np.random.Generator) -> tuple[Layout, tuple[str, ...]]:
    """Return what the test relabelled and how; relabelings of our own where the test flipped signs instead."""
    if evidence.units is not None:
        return evidence.units, ()
    tested = evidence.tested_rows
    m = int(np.count_nonzero(tested < evidence.pool.m))
    units = Layout.cut(m, len(tested) - m, None, rng).draw(OWN, rng).of(tested)
    return units, ("columns have relabelings of their own: the method has none that they could share",)


def difference_tables(pool: Pool, columns: Sequence[DataColumn], units: Layout, alpha: float, names: tuple[str, str]) -> Tables:
    """Return what is found of every column and of pairs of columns."""
    strata, rows = Strata.of(pool, units.rows, units), len(units.rows)
    found: list[ColumnDifference] = []
    suspicions: list[Suspicion] = []
    scores: list[Array] = []
    pair_scores = PairScores(min(MOST_SCORES, max(FEWEST_SCORES, SCORE_ROOM // (8 * max(rows, 1)))))
    step = max(1, ROOM // (8 * (WIDEST * len(units.starts) + 3 * rows)))  # columns whose sums and values fit
    for start in range(0, len(columns), step):
        read = list(read_columns(pool, columns[start : start + step], units, strata))
        for one, scored in zip(read, score_columns([one.features for one in read], units), strict=True):
            found.append(describe(one, scored.parts))
            suspicions.append(suspicion(one, pool, units.rows, names))
            scores.append(scored.scores)
            pair_scores.offer(one)
    pvalues = adjusted_pvalues(np.array(scores)).tolist()
    found = [_with_pvalue(one, p, alpha) for one, p in zip(found, pvalues, strict=True)]
    suspicious = [i for i, one in enumerate(suspicions) if one.why and (one.always or pvalues[i] <= alpha)]
    order = sorted(range(len(found)), key=lambda i: (found[i].pvalue, -found[i].distance, i))
    pairs = pair_table(pair_scores, units, alpha)
    return Tables(
        tuple(found[i] for i in order),
        pairs.pairs,
        tuple(SuspiciousColumn(found[i].name, found[i].label, suspicions[i].why) for i in order if i in suspicious),
        _pvalue_without(suspicious, scores, pairs),
        pairs.notes,
    )


def _with_pvalue(column: ColumnDifference, pvalue: float, alpha: float) -> ColumnDifference:
    significant = pvalue <= alpha and column.change is not None
    return replace(column, pvalue=pvalue, significant=significant, words=column.words if significant else "")


def _pvalue_without(suspicious: list[int], scores: list[Array], pairs: PairTable) -> float | None:
    """Return the p-value of all other columns and their pairs together: the largest of their scores under each relabeling."""
    left = [one for i, one in enumerate(scores) if i not in suspicious]
    if not suspicious or not left:
        return None
    every: Array = np.vstack([*left, *pairs.scores[~np.isin(pairs.owners, suspicious).any(axis=1)]])
    return float(adjusted_pvalues(every.max(axis=0)[None])[0])


@dataclass(eq=False)
class PairScores:
    """Columns as standardised scores: normal scores of numbers, marks of levels; as many as there is room for."""

    room: int  # how many there may be
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
            spread = float(values.std())
            if spread > 0 and len(self.values) < self.room:
                self.values.append((values - values.mean()) / spread)
                self.owner.append(len(self.columns) - 1)
                self.level.append(name)

    @property
    def cut_short(self) -> tuple[str, ...]:
        """The note that there was no room for all columns."""
        if len(self.owner) < self.room or self.owner[-1] == len(self.columns) - 1:
            return ()
        return (f"pairs were looked for among the first {self.owner[-1] + 1} of {len(self.columns)} columns",)


@dataclass(frozen=True, eq=False)
class PairTable:
    """Pairs by their p-value, smallest first, the scores of all relabelings, and what was left out."""

    pairs: tuple[PairDifference, ...]
    scores: Array
    owners: Rows  # the two columns of each row of scores
    notes: tuple[str, ...]


def pair_table(scores: PairScores, units: Layout, alpha: float) -> PairTable:
    """Return the pairs of columns with p-values adjusted over all that were looked at."""
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
    found.sort(key=lambda pair: (pair.pvalue, -abs(pair.correlation_y - pair.correlation_x)))
    return PairTable(tuple(found), together, np.array(list(groups), dtype=np.intp), notes)


def _words(x: float, y: float) -> str:
    less, more = sorted((abs(x), abs(y)))
    if x * y < 0 and less >= more / 2:
        return "go together the other way"
    return "go together more closely" if abs(y) >= abs(x) else "go together less closely"


def _screen(scores: PairScores, values: Array) -> tuple[Rows, tuple[str, ...]]:
    """Return the pairs of scores that are looked at: all, or those that hang together most in the pool.

    The mean of z_i^2 z_j^2 is 1 plus twice the mean squared correlation for normal scores: a pair that is correlated in one
    sample, or in both with opposite signs, has a large one. It looks at no label.
    """
    owner = scores.owner
    pairs = np.array([(i, j) for i, j in combinations(range(len(owner)), 2) if owner[i] != owner[j]])
    every = len({(owner[i], owner[j]) for i, j in pairs.tolist()})
    if every <= MOST_PAIRS:
        return pairs, scores.cut_short
    squares = values[:: max(1, len(values) // SCREENED_ROWS)] ** 2
    strength = (squares.T @ squares)[pairs[:, 0], pairs[:, 1]]
    kept = np.sort(np.argsort(-strength, kind="stable")[:MOST_PAIRS])
    said = f"of {every} pairs of columns, the {MOST_PAIRS} that hang together most in both samples taken as one were looked at"
    return pairs[kept], (said, *scores.cut_short)


def _statistics(values: Array, pairs: Rows, units: Layout) -> tuple[Array, Array]:
    """Return the squared difference of Fisher's z of each pair under every relabeling, and both correlations as they are."""
    counts = units.counts.astype(np.float64)[:, None]
    single = np.hstack([counts, units.sums(values), units.sums(values**2)])
    own = np.concatenate([labels @ single for labels in units.labels.blocks()])
    x, y = (_Moments.of(part) for part in (own, single.sum(axis=0) - own))
    # one over the variance of the difference of two Fisher z's, to first order
    precision = 1 / (1 / np.maximum(x.count - 3, 1) + 1 / np.maximum(y.count - 3, 1))
    statistics, correlations = np.empty((len(pairs), len(own))), np.empty((len(pairs), 2))
    for start in range(0, len(pairs), TOGETHER):
        block = slice(start, start + TOGETHER)
        i, j = pairs[block].T
        products = _unit_products(values, i, j, units)
        of_x = np.concatenate([labels @ products for labels in units.labels.blocks()])
        r_x, r_y = x.correlation(of_x, i, j), y.correlation(products.sum(axis=0) - of_x, i, j)
        statistics[block] = ((np.arctanh(r_x) - np.arctanh(r_y)) ** 2 * precision).T
        correlations[block] = np.column_stack([r_x[0], r_y[0]])
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
    """Counts, means and deviations of the scores on one side, a relabeling a row."""

    count: Array
    mean: Array
    spread: Array

    @classmethod
    def of(cls, sums: Array) -> _Moments:
        count, width = np.maximum(sums[:, :1], 1.0), (sums.shape[1] - 1) // 2
        mean = sums[:, 1 : 1 + width] / count
        variance = sums[:, 1 + width :] / count - mean**2
        return cls(count, mean, np.sqrt(np.maximum(variance, 0.0)))

    def correlation(self, products: Array, i: Rows, j: Rows) -> Array:
        """Return the correlations of pairs from the sums of their products; 0 where a score does not vary."""
        covariance = products / self.count - self.mean[:, i] * self.mean[:, j]
        scale = self.spread[:, i] * self.spread[:, j]
        varies = scale > 1e-9
        return np.clip(np.where(varies, covariance / np.where(varies, scale, 1.0), 0.0), -CLOSEST, CLOSEST)
