"""Which rows are whose: from sums over a kernel matrix's rows to the leave-one-out witness and the squared MMD."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array, Labels


@dataclass(frozen=True, eq=False)
class Sides:
    """Which rows are whose: from sums over a kernel matrix's rows to witness and squared MMD."""

    labels: Labels

    @property
    def marks(self) -> Array:
        """N x 2 marks of X and Y."""
        return np.column_stack([self.labels, ~self.labels]).astype(np.float64)

    def witness(self, sums: Array, diagonal: Array) -> Array:
        """Return the leave-one-out witness from each row's sums over X and Y, its own value among them.

        The only row of a sample is like none of its own: it has how little it is like the other sample.
        """
        m, n = np.count_nonzero(self.labels), np.count_nonzero(~self.labels)
        to_x = (sums[:, 0] - diagonal * self.labels) / np.maximum(m - self.labels, 1)
        to_y = (sums[:, 1] - diagonal * ~self.labels) / np.maximum(n - ~self.labels, 1)
        return np.asarray(to_x - to_y)

    def weighted_witness(self, K: Array, weights: Array) -> Array:
        """Return the leave-one-out witness of each row where rows have weights, as they have to give both samples one mix."""
        others = K.copy()
        np.fill_diagonal(others, 0.0)
        to = []
        for side in (self.labels, ~self.labels):
            own = weights * side
            left = own.sum() - own  # of the others
            to.append(others @ own / np.where(left > 0, left, 1.0))
        return np.asarray(to[0] - to[1])

    def witness_of(self, K: Array) -> Array:
        """Return the leave-one-out witness of each row from its kernel matrix.

        The mean over the rows of X less the mean over the rows of Y is the unbiased squared MMD.
        """
        others = K.copy()
        np.fill_diagonal(others, 0.0)
        sums = np.column_stack([others[:, self.labels].sum(axis=1), others[:, ~self.labels].sum(axis=1)])
        return self.witness(sums, np.zeros(len(K)))

    def mmd2(self, witness: Array) -> Array:
        """Return the unbiased squared MMD of witness values (in the last axis)."""
        return np.asarray(witness[..., self.labels].mean(axis=-1) - witness[..., ~self.labels].mean(axis=-1))

    def variance(self, influence: Array) -> Array:
        """Return the first-order variance of the U-statistic whose witness this is: 4 Var_x/m + 4 Var_y/n."""
        parts = [influence[..., side] for side in (self.labels, ~self.labels)]
        return np.asarray(sum(4 * part.var(axis=-1) / part.shape[-1] for part in parts))
