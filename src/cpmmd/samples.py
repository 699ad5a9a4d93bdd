"""The pool of two samples as one matrix: what every procedure below the inputs works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Labels = npt.NDArray[np.bool_]
Rows = npt.NDArray[np.intp]  # row numbers of a pool


@dataclass(frozen=True, eq=False)
class TwoSample:
    """Pooled rows, the first ``m`` of which are the sample X and the rest the sample Y.

    ``row_shape`` is the shape of a row before it was flattened, where that is more than a number of columns.
    """

    pool: Array
    m: int
    row_shape: tuple[int, ...] | None = None

    @property
    def n(self) -> int:
        """Number of rows of Y."""
        return len(self.pool) - self.m

    @property
    def size(self) -> int:
        """Number of pooled rows, N = m + n."""
        return len(self.pool)

    @property
    def labels(self) -> Labels:
        """True for the rows of X."""
        return np.arange(self.size) < self.m

    @property
    def data_norm(self) -> float:
        """|D|_F / N, the data factor of the complexity proxy."""
        scale = float(np.abs(self.pool).max(initial=0.0))
        if scale == 0.0:
            return 0.0
        return float(np.linalg.norm(self.pool / scale)) * scale / self.size


def draw_labels(size: int, m: int, count: int, rng: np.random.Generator) -> Labels:
    """Draw ``count`` uniform relabelings, one a row, each marking ``m`` of ``size`` rows.

    A relabeling marks the m smallest of N uniform numbers (several times faster than a shuffle). Rows are drawn one after the
    other from one stream, so a longer draw starts with the shorter one.
    """
    keys = rng.random((count, size))
    labels: Labels = keys <= np.partition(keys, m - 1, axis=1)[:, m - 1, None]
    for row in np.flatnonzero(np.count_nonzero(labels, axis=1) != m):  # equal keys, once in 1e10 draws
        labels[row] = False
        labels[row, keys[row].argsort(kind="stable")[:m]] = True
    return labels
