"""Kernels of strings and other sequences, and the squared MMD summed over strata that are compared one by one.

``hamming`` is that of Model Equality Testing (Gao, Liang and Guestrin 2025): the share of places at which two sequences have the
same token, the shorter one padded. One word more at the beginning moves everything behind it; ``ngrams`` does not mind that.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from scipy import sparse

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.draws.labels import Relabelings
from cpmmd.evidence import tail_scores, without_rounding

Tokens = Sequence[Hashable]
BLOCK_CELLS = 2**24  # pairs of tokens compared at once
ROUNDING = 1e-11  # of sums of kernel values, which are at most 1


def codes_of(sequences: Sequence[Tokens]) -> Rows:
    """Return a row for each sequence, of a number from 1 for each token, padded with 0."""
    known: dict[Hashable, int] = {}
    codes = np.zeros((len(sequences), max(1, *map(len, sequences))), dtype=np.intp)
    for row, tokens in zip(codes, sequences, strict=True):
        row[: len(tokens)] = [known.setdefault(token, len(known) + 1) for token in tokens]
    return codes


def hamming(sequences: Sequence[Tokens]) -> Array:
    """Return the share of places at which sequences agree, padding included.

    >>> hamming(["abc", "abd", "a"]).round(2).tolist()
    [[1.0, 0.67, 0.33], [0.67, 1.0, 0.33], [0.33, 0.33, 1.0]]
    """
    codes = codes_of(sequences)
    matrix, step = np.empty((len(codes), len(codes))), max(1, BLOCK_CELLS // codes.size)
    for start in range(0, len(codes), step):
        matrix[start : start + step] = (codes[start : start + step, None] == codes).mean(axis=2)
    return matrix


def ngram_weights(sequences: Sequence[Tokens]) -> sparse.csr_array:
    """Return a row of length 1 for each sequence: how often single tokens and pairs of neighbours occur, rare ones weighted up.

    Weights are the usual inverse document frequencies of all sequences, so that they do not look at samples.
    """
    known: dict[Hashable, int] = {}
    columns, starts = list[int](), [0]
    for tokens in sequences:
        found = [*((token,) for token in tokens), *pairwise(tokens)] or [()]  # an empty one is like other empty ones
        columns += [known.setdefault(gram, len(known)) for gram in found]
        starts.append(len(columns))
    counts = sparse.csr_array((np.ones(len(columns)), columns, starts), shape=(len(sequences), len(known)))
    counts.sum_duplicates()
    documents = np.bincount(counts.indices, minlength=len(known))
    counts.data *= (np.log((1 + len(sequences)) / (1 + documents)) + 1)[counts.indices]
    lengths = np.sqrt(counts.multiply(counts).sum(axis=1))
    counts.data /= np.repeat(lengths, np.diff(counts.indptr))
    return counts


def ngrams(sequences: Sequence[Tokens]) -> Array:
    """Return the cosines of weighted single tokens and pairs of neighbours.

    >>> ngrams([("a", "b"), ("b", "a"), ("c",)]).round(2).tolist()
    [[1.0, 0.54, 0.0], [0.54, 1.0, 0.0], [0.0, 0.0, 1.0]]
    """
    weights = ngram_weights(sequences)
    return np.asarray((weights @ weights.T).toarray())


KERNELS: dict[str, Callable[[Sequence[Tokens]], Array]] = {"hamming": hamming, "ngrams": ngrams}


@dataclass(frozen=True, eq=False)
class StratumSums:
    """The squared MMD of several kernels in each stratum, and over all strata together."""

    matrices: Sequence[Sequence[Array]]  # of each kernel, in each stratum
    strata: Rows  # of each unit
    features: sparse.csr_array | None = None  # of each unit: what a change of all strata alike is looked for in

    def by_stratum(self, draws: Relabelings) -> Array:
        """Return kernels x strata x labelings: mn / (m + n) times the biased squared MMD inside each stratum."""
        units = [np.flatnonzero(self.strata == stratum) for stratum in range(int(self.strata.max()) + 1)]
        found = np.empty((len(self.matrices), len(units), len(draws)))
        centred = [[_centre(matrix) for matrix in of_kernel] for of_kernel in self.matrices]
        done = 0
        for block in draws.blocks():
            for s, inside in enumerate(units):
                labels = block[:, inside]
                m = labels[0].sum()
                scale = len(inside) / (m * (len(inside) - m))
                for k in range(len(centred)):
                    values = np.einsum("bi,bi->b", labels @ centred[k][s], labels)
                    found[k, s, done : done + len(block)] = scale * values
            done += len(block)
        return without_rounding(found, ROUNDING)

    def together(self, draws: Relabelings) -> Array:
        """Return the squared length of the sum over strata of mn / (m + n) times the difference of mean features.

        The sum is that of the features of X, less what it is on average: each stratum's mean times its number of units of X,
        which is the same under every labeling.
        """
        assert self.features is not None
        of_stratum = np.bincount(self.strata)
        labels = next(draws.blocks())[0]
        shares = np.bincount(self.strata, labels) / of_stratum
        expected = shares[self.strata] @ self.features
        found, step = np.empty(len(draws)), max(1, BLOCK_CELLS // max(self.features.shape[1], 1))
        done = 0
        for block in draws.blocks():
            for start in range(0, len(block), step):
                some = block[start : start + step]
                found[done : done + len(some)] = np.square(some @ self.features - expected).sum(axis=1)
                done += len(some)
        return without_rounding(found, ROUNDING * len(self.strata))

    def statistics(self, by_stratum: Array, draws: Relabelings) -> Array:
        """Return the sums over strata of each kernel, and that of a change of all strata alike, under every labeling."""
        sums = by_stratum.sum(axis=1)
        return sums if self.features is None else np.vstack([sums, self.together(draws)])

    @staticmethod
    def largest(values: Array) -> Array:
        """Return the largest tail score among rows of statistics, under every labeling."""
        return np.asarray(tail_scores(without_rounding(values, ROUNDING * len(values))).max(axis=0))


def _centre(matrix: Array) -> Array:
    """Return a kernel matrix whose rows and columns add up to zero: the weights of labelings add up to zero anyway."""
    mean = matrix.mean(axis=1)
    return np.asarray(matrix - mean - (mean[:, None] - mean.mean()))


def agreement(matrix: Array, of_x: Labels) -> tuple[float | None, float | None, float]:
    """Return the mean kernel value of pairs within X, within Y, and across; None where there is one sequence only."""

    def within(rows: Labels) -> float | None:
        size = int(rows.sum())
        inside = matrix[np.ix_(rows, rows)]
        return float((inside.sum() - np.trace(inside)) / (size * (size - 1))) if size > 1 else None

    return within(of_x), within(~of_x), float(matrix[np.ix_(of_x, ~of_x)].mean())
