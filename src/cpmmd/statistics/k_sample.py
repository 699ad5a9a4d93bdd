"""Several samples: the k-sample MMD of one kernel, and which pairs of samples differ, by closed testing.

The k-sample MMD says how far the mean embeddings of several samples lie from that of all rows together. T(w) = sum over samples
a of n_a |mu_a - mu|^2 = sum over a of w_a' K~ w_a / n_a, with K~ the centred kernel matrix and w_a the rows that a labeling calls
a; with the kernel -|x - x'| it is twice DISCO's between-sample energy (Rizzo and Szekely 2010). For two samples it is
m n / (m + n) times the biased squared MMD. What many kernels say of several samples is :class:`cpmmd.statistics.forms.Several`.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import combinations

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.draws.labels import LabelCodes
from cpmmd.statistics.forms import quadratic_forms

TIE = 1e-12  # of |K~|_F, the size of a quadratic form of weights of norm one
MOST_SUBSETS = 10  # samples whose subsets are all looked at: 1013
Pairs = Mapping[tuple[int, int], float]  # a p-value for each pair of samples


@dataclass(frozen=True, eq=False)
class KSampleMMD:
    """A centred kernel matrix, ready to meet labelings by any number of labels."""

    centred: Array

    @classmethod
    def of(cls, K: Array) -> KSampleMMD:
        """Return the statistic of the kernel matrix of all rows."""
        means = K.mean(axis=0)
        return cls(np.asarray(K - means - (means[:, None] - means.mean())))

    @property
    def tolerance(self) -> float:
        """Values closer than this are equal but for rounding."""
        return TIE * float(np.linalg.norm(self.centred))

    def values(self, draws: LabelCodes) -> Array:
        """Return T of every labeling."""
        found = []
        for block in draws.blocks():
            total = np.zeros(len(block))
            for label in range(int(block[0].max()) + 1):
                called = (block == label).astype(np.float64)
                total += quadratic_forms(self.centred, called) / called[0].sum()
            found.append(total)
        return np.concatenate(found)


# Which pairs differ. Relabelings of all samples together are no null distribution for a pair: where a third sample differs, they
# mix its rows into both. So each pair has a test of its own rows, and closed testing adjusts the p-values for their number.
#
# Which samples are alike is a partition of the samples. The probability that it costs any pair in it a false rejection is bounded
# set by set: a set of s samples gets the share s / k of the level (Ryan 1960), all of it where no other set can have two samples
# (s >= k - 1), and divides it evenly among its s (s - 1) / 2 pairs (Bonferroni). The set of all samples has the test of all. A
# pair differs where every set that has both samples is rejected, so its adjusted p-value is the largest of those sets'. The
# family-wise error is at most alpha whichever samples are alike, and whatever the dependence of the tests.


def adjusted_pairs(pvalues: Pairs, samples: int, overall: float) -> dict[tuple[int, int], float]:
    """Return p-values of pairs of samples adjusted by closed testing, from those of their own tests and of the test of all.

    Beyond ten samples, the sets are too many to look at; Shaffer's steps, which are those of Holm with the number of pairs that
    can be alike together, take their place.

    >>> adjusted_pairs({(0, 1): 0.6, (0, 2): 0.001, (1, 2): 0.04}, 3, 0.002)
    {(0, 1): 0.6, (0, 2): 0.002, (1, 2): 0.04}
    """
    if samples > MOST_SUBSETS:
        return _shaffer(pvalues, samples, overall)
    found = dict.fromkeys(pvalues, overall)
    for size in range(2, samples):
        factor = pair_factor(size, samples)
        for subset in combinations(range(samples), size):
            inside = list(combinations(subset, 2))
            pvalue = min(1.0, factor * min(pvalues[pair] for pair in inside))
            for pair in inside:
                found[pair] = max(found[pair], pvalue)
    return found


def pair_factor(size: int, samples: int) -> float:
    """Return what the smallest p-value of the pairs of so many samples is multiplied by, as one set among all samples."""
    share = 1.0 if size >= samples - 1 else size / samples
    return math.comb(size, 2) / share


def largest_factor(samples: int) -> float:
    """Return the largest number that a pair's p-value can be multiplied by."""
    if samples > MOST_SUBSETS:
        return float(math.comb(samples - 1, 2))
    return max((pair_factor(size, samples) for size in range(2, samples)), default=1.0)


def _shaffer(pvalues: Pairs, samples: int, overall: float) -> dict[tuple[int, int], float]:
    """Return p-values adjusted step by step, the first step being the test of all samples."""
    counts = {0: {0}}  # how many pairs are alike in any partition of so many samples
    for size in range(1, samples + 1):
        counts[size] = {math.comb(block, 2) + rest for block in range(1, size + 1) for rest in counts[size - block]}
    alike = sorted(counts[samples] - {math.comb(samples, 2)})  # not all of them, once the test of all samples rejects
    found, largest = {}, overall
    for step, pair in enumerate(sorted(pvalues, key=pvalues.__getitem__)):
        factor = max(some for some in alike if some <= max(1, len(pvalues) - step))
        largest = max(largest, min(1.0, factor * pvalues[pair]))
        found[pair] = largest
    return {pair: found[pair] for pair in pvalues}
