"""Pairs of columns whose dependence changed: correlations within either side, under the test's own relabelings.

Both columns may differ themselves: means and deviations are taken within each side, so that the columns' own differences are out.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import combinations

import numpy as np
import numpy.typing as npt
from scipy import special

from cpmmd.core.arrays import Array, Rows
from cpmmd.data.preparation import MISSING, OTHER
from cpmmd.draws.layout import Layout
from cpmmd.evidence import tail_scores
from cpmmd.explain.column_scores import ReadColumn, adjusted_pvalues
from cpmmd.explain.columns import DataColumn
from cpmmd.explain.differences import PairDifference

MOST_PAIRS = 2000  # of columns: all of up to 63 columns
MOST_SCORES, FEWEST_SCORES = 1000, 20  # number columns and levels among which pairs are looked for
ROOM = 2**28  # bytes that their scores may take
LEVELS = 3  # of a category, the most frequent ones
TOGETHER = 256  # pairs of scores in one product
SCREENED_ROWS = 5000  # that the screen looks at
SECOND_LOOK = 2  # p-values are doubled: columns have the level to themselves, pairs half of it once more
CLOSEST = 0.999  # correlation beyond which Fisher's transform is cut off
Pair = tuple[int, int]


@dataclass(eq=False)
class Scores:
    """Columns as standardised scores: normal scores of numbers, marks of levels; as many as there is room for."""

    room: int  # how many there may be
    columns: list[DataColumn] = field(default_factory=list)  # all columns that were offered
    found: list[Array] = field(default_factory=list)  # scores of the units' rows; missing values are 0, the mean
    owner: list[int] = field(default_factory=list)  # the column that each score belongs to
    level: list[str] = field(default_factory=list)  # the level that a score marks, empty for numbers

    @classmethod
    def of_rows(cls, count: int) -> Scores:
        """Return an empty collection for so many rows."""
        return cls(min(MOST_SCORES, max(FEWEST_SCORES, ROOM // (8 * max(count, 1)))))

    def offer(self, read: ReadColumn) -> None:
        """Take the scores of a column that vary, while there is room."""
        self.columns.append(read.column)
        for name, values in _scores_of(read):
            spread = float(values.std())
            if spread > 0 and len(self.found) < self.room:
                self.found.append((values - values.mean()) / spread)
                self.owner.append(len(self.columns) - 1)
                self.level.append(name)

    @property
    def values(self) -> Array:
        """A row for each of the units' rows, a column for each score."""
        return np.column_stack(self.found)


@dataclass(frozen=True, eq=False)
class PairTable:
    """Pairs by their p-value, smallest first, the scores of all relabelings, and what was left out."""

    pairs: tuple[PairDifference, ...]
    scores: Array
    owners: npt.NDArray[np.intp]
    notes: tuple[str, ...]


def _scores_of(read: ReadColumn) -> Iterator[tuple[str, Array]]:
    if read.levels is None:
        there = ~np.isnan(read.ranks)
        values = np.zeros(len(read.ranks))
        of_two = read.ranks is read.values  # two values are their own scores
        if there.any():
            values[there] = read.values[there] - read.values[there].mean() if of_two else special.ndtri(read.ranks[there])
        yield "", _inside(values, read) if of_two else values
        return
    usual = [name for name in read.levels.names if name not in (MISSING, OTHER)]  # most frequent first
    for name in usual[: 1 if len(usual) == 2 else LEVELS]:
        yield name, _inside((read.levels.codes == read.levels.names.index(name)).astype(np.float64), read)


def _inside(marks: Array, read: ReadColumn) -> Array:
    """Return marks less their mean in each stratum, where ranks are those inside strata."""
    return read.strata.centred(marks) if read.strata is not None and read.strata.inside else marks


def pair_table(scores: Scores, units: Layout, alpha: float) -> PairTable:
    """Return the pairs of columns with p-values adjusted over all that were looked at."""
    if len(set(scores.owner)) < 2:
        return PairTable((), np.zeros((0, len(units.labels))), np.zeros((0, 2), dtype=np.intp), ())
    values = scores.values
    chosen, notes = _screen(scores, values)
    statistics, correlations = _statistics(values, chosen, units)
    owners = np.array(scores.owner, dtype=np.intp)[chosen]
    groups: dict[Pair, list[int]] = {}
    for position, pair in enumerate(owners.tolist()):
        groups.setdefault((pair[0], pair[1]), []).append(position)
    tails = [tail_scores(statistics[positions]) for positions in groups.values()]
    best = [positions[int(np.argmax(tail[:, 0]))] for positions, tail in zip(groups.values(), tails, strict=True)]
    together = np.array([tail[0] if len(tail) == 1 else tail_scores(tail.max(axis=0)[None])[0] for tail in tails])
    pvalues = np.minimum(SECOND_LOOK * adjusted_pvalues(together), 1.0)
    found = [
        _describe(scores, chosen[at], correlations[at], float(pvalue), alpha) for at, pvalue in zip(best, pvalues, strict=True)
    ]
    order = sorted(range(len(found)), key=lambda i: (pvalues[i], -abs(found[i].correlation_y - found[i].correlation_x)))
    return PairTable(tuple(found[i] for i in order), together, np.array(list(groups), dtype=np.intp), notes)


def _describe(scores: Scores, pair: Rows, correlations: Array, pvalue: float, alpha: float) -> PairDifference:
    (i, j), (x, y) = pair.tolist(), correlations.tolist()
    own = [scores.columns[scores.owner[k]] for k in (i, j)]
    return PairDifference(
        (own[0].name, own[1].name),
        (own[0].label, own[1].label),
        pvalue,
        _words(x, y) if pvalue <= alpha else "",
        x,
        y,
        (scores.level[i], scores.level[j]),
    )


def _words(x: float, y: float) -> str:
    if abs(y) >= abs(x):
        return "go together more closely" if x * y >= 0 or abs(x) < abs(y) / 2 else "go together the other way"
    return "go together less closely" if x * y >= 0 or abs(y) < abs(x) / 2 else "go together the other way"


def _screen(scores: Scores, values: Array) -> tuple[npt.NDArray[np.intp], tuple[str, ...]]:
    """Return the pairs of scores that are looked at: all, or those that hang together most in the pool.

    The mean of z_i^2 z_j^2 is 1 plus twice the mean squared correlation for normal scores: a pair that is correlated in one
    sample, or in both with opposite signs, has a large one. It looks at no label.
    """
    pairs = np.array([p for p in combinations(range(len(scores.owner)), 2) if scores.owner[p[0]] != scores.owner[p[1]]])
    every = len({(scores.owner[a], scores.owner[b]) for a, b in pairs.tolist()})
    if every <= MOST_PAIRS:
        return pairs, _cut_short(scores)
    step = max(1, len(values) // SCREENED_ROWS)
    squares = values[::step] ** 2
    strength = (squares.T @ squares)[pairs[:, 0], pairs[:, 1]]
    kept = np.sort(np.argsort(-strength, kind="stable")[:MOST_PAIRS])
    said = f"of {every} pairs of columns, the {MOST_PAIRS} that hang together most in both samples taken as one were looked at"
    return pairs[kept], (said, *_cut_short(scores))


def _cut_short(scores: Scores) -> tuple[str, ...]:
    if len(scores.owner) < scores.room or scores.owner[-1] == len(scores.columns) - 1:
        return ()
    return (f"pairs were looked for among the first {scores.owner[-1] + 1} of {len(scores.columns)} columns",)


def _statistics(values: Array, pairs: npt.NDArray[np.intp], units: Layout) -> tuple[Array, Array]:
    """Return the squared difference of Fisher's z of each pair under every relabeling, and both correlations as they are."""
    counts = units.counts.astype(np.float64)[:, None]
    single = np.hstack([counts, units.sums(values), units.sums(values**2)])
    own = np.concatenate([labels @ single for labels in units.labels.blocks()])
    sides = [_Moments.of(part) for part in (own, single.sum(axis=0) - own)]
    statistics, correlations = np.empty((len(pairs), len(own))), np.empty((len(pairs), 2))
    for start in range(0, len(pairs), TOGETHER):
        block = slice(start, start + TOGETHER)
        i, j = pairs[block].T
        products = _unit_products(values, i, j, units)
        of_x = np.concatenate([labels @ products for labels in units.labels.blocks()])
        r = [side.correlation(part, i, j) for side, part in zip(sides, (of_x, products.sum(axis=0) - of_x), strict=True)]
        statistics[block] = ((np.arctanh(r[0]) - np.arctanh(r[1])) ** 2 * _precision(*sides)).T
        correlations[block] = np.column_stack([r[0][0], r[1][0]])
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


def _precision(x: _Moments, y: _Moments) -> Array:
    """Return one over the variance of the difference of two Fisher z's, to first order."""
    return np.asarray(1 / (1 / np.maximum(x.count - 3, 1) + 1 / np.maximum(y.count - 3, 1)))


@dataclass(frozen=True, eq=False)
class _Moments:
    """Counts, means and deviations of the scores on one side, a relabeling a row."""

    count: Array
    mean: Array
    spread: Array

    @classmethod
    def of(cls, sums: Array) -> _Moments:
        """Return them from the number of rows, the sums and the sums of squares."""
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
