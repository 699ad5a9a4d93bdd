"""The pool of two samples as one matrix: what every procedure below the data works on."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array, Labels


@dataclass(frozen=True, eq=False)
class PreparedPool:
    """Pooled rows, the first ``m`` of which are the sample X and the rest the sample Y.

    ``row_shape`` is the shape of a row before it was flattened, where that is more than a number of columns.
    """

    matrix: Array
    m: int
    row_shape: tuple[int, ...] | None = None

    @property
    def n(self) -> int:
        """Number of rows of Y."""
        return len(self.matrix) - self.m

    @property
    def size(self) -> int:
        """Number of pooled rows, N = m + n."""
        return len(self.matrix)

    @property
    def labels(self) -> Labels:
        """True for the rows of X."""
        return np.arange(self.size) < self.m

    @property
    def data_norm(self) -> float:
        """|D|_F / N, the data factor of the complexity proxy."""
        scale = float(np.abs(self.matrix).max(initial=0.0))
        if scale == 0.0:
            return 0.0
        return float(np.linalg.norm(self.matrix / scale)) * scale / self.size
