"""Names of the arrays that travel: one spelling for each."""

from __future__ import annotations

from typing import TypeVar

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float64]
Floating = npt.NDArray[np.floating]
Real = TypeVar("Real", npt.NDArray[np.float64], npt.NDArray[np.float32])  # either, and what comes out is what went in
Labels = npt.NDArray[np.bool_]  # true for the rows of X; several relabelings are rows of a matrix
Objects = npt.NDArray[np.object_]
Rows = npt.NDArray[np.intp]  # row numbers of a pool
