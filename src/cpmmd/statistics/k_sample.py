"""The k-sample MMD: how far the mean embeddings of several samples lie from that of all rows together.

T(w) = sum over samples a of n_a |mu_a - mu|^2 = sum over a of w_a' K~ w_a / n_a, with K~ the centred kernel matrix and w_a the
rows that a labeling calls a; with the kernel -|x - x'| it is twice DISCO's between-sample energy (Rizzo and Szekely 2010). For
two samples it is m n / (m + n) times the biased squared MMD. The seed of a question of its own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.draws.labels import LabelCodes
from cpmmd.statistics.forms import quadratic_forms

TIE = 1e-12  # of |K~|_F, the size of a quadratic form of weights of norm one


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
