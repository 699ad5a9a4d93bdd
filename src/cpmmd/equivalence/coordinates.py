"""The coordinates in which differences are measured: each column in standard deviations within the samples."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.text import harmless
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation

MEAN, ABSENT = "mean", "share missing"


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Pooled rows as features: numbers, marks of missing values, levels of categories.

    Attributes
    ----------
    matrix
        Rows of X first.
    columns, meanings
        Of each feature the column it came from, and what its mean says: "mean", "share missing", "share of 'ES'".
    blocks
        Of each feature the number of its block: a number, a mark, all levels of a category.
    """

    matrix: Array
    m: int
    columns: tuple[str, ...]
    meanings: tuple[str, ...]
    blocks: Rows

    @classmethod
    def of(cls, pool: Pool) -> Coordinates:
        """Return the features of a pool."""
        prepared = Preparation.fit(pool, scale="standard")  # centred: no digits are lost in what follows
        levels = list(prepared.levels.values())
        single = len(prepared.number_names) + len(prepared.indicators)
        return cls(
            matrix=prepared.transform(pool),
            m=pool.m,
            columns=prepared.feature_columns,
            meanings=(
                *(MEAN for _ in prepared.number_names),
                *(ABSENT for _ in prepared.indicators),
                *(f"share of {harmless(level)!r}" for kept in levels for level in kept),
            ),
            blocks=np.concatenate(
                [np.arange(single), np.repeat(single + np.arange(len(levels)), [len(kept) for kept in levels])]
            ).astype(np.intp),
        )

    @property
    def n(self) -> int:
        """Rows of Y."""
        return len(self.matrix) - self.m

    @property
    def sides(self) -> tuple[Array, Array]:
        """The rows of X and of Y."""
        return self.matrix[: self.m], self.matrix[self.m :]

    @cached_property
    def variances(self) -> Array:
        """Variance of each feature within the samples, weighted by their rows; exactly 0 where both are constant."""
        x, y = self.sides
        within = ((self.m - 1) * x.var(axis=0, ddof=1) + (self.n - 1) * y.var(axis=0, ddof=1)) / (self.m + self.n - 2)
        constant = (np.ptp(x, axis=0) == 0) & (np.ptp(y, axis=0) == 0)
        return np.where(constant, 0.0, within)

    def standardised(self) -> tuple[Array, int]:
        """Return the rows with each block at total variance 1 within the samples, and the number of blocks that vary.

        A block that varies between the samples only has no such unit; it keeps that of the pool.
        """
        totals = np.bincount(self.blocks, weights=self.variances)
        unit = np.sqrt(np.where(totals > 0, totals, 1.0))
        varies = np.bincount(self.blocks, weights=np.ptp(self.matrix, axis=0)) > 0
        return self.matrix / unit[self.blocks], max(1, int(np.count_nonzero(varies)))
