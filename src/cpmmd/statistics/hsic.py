"""HSIC (Gretton et al. 2005): how far the kernel matrices of two tables, row by row, go together.

With centred matrices K and L of n rows, HSIC(p) = sum_ij K_ij L_p(i)p(j) / n^2 for a re-pairing p: the biased estimate, zero in
the limit only where the tables are independent. An action moves the rows of L, and the products with K are all that changes.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.draws.pairings import Pairings

# Of |K|_F |L|_F, the largest that the sum of products can be: its n^2 terms round by far less, and closer values are equal.
TIE = 1e-12


@dataclass(frozen=True, eq=False)
class HSIC:
    """Centred kernel matrices, ready to meet re-pairings."""

    first: Array
    second: Array

    @classmethod
    def of(cls, K: Array, L: Array) -> HSIC:
        """Return the statistic of two kernel matrices whose rows belong together."""
        return cls(_centre(K), _centre(L))

    @property
    def tolerance(self) -> float:
        """Values closer than this are equal but for rounding."""
        return TIE * float(np.linalg.norm(self.first) * np.linalg.norm(self.second)) / len(self.first) ** 2

    def values(self, draws: Pairings) -> Array:
        """Return HSIC under every re-pairing."""
        found = [np.vdot(self.first, self.second[np.ix_(order, order)]) for block in draws.blocks() for order in block]
        return np.asarray(found) / len(self.first) ** 2


def _centre(K: Array) -> Array:
    """Return the kernel matrix with the means of rows and columns taken off."""
    means = K.mean(axis=0)
    return np.asarray(K - means - (means[:, None] - means.mean()))
