"""Selectors: which member of a family maximises a criterion on the training half."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cpmmd.criteria import Criterion
from cpmmd.errors import InputError
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.results import Selection
from cpmmd.samples import Array, Labels, TwoSample
from cpmmd.selection.scalar import ScalarSelector


class Selector(Protocol):
    """Maximises any criterion over one family."""

    def select(self, train: TwoSample, criterion: Criterion, rng: np.random.Generator) -> Selection:
        """Give the kernel that maximises ``criterion`` on the training half."""

    def plain_maxima(self, train: TwoSample, labels: Labels, rng: np.random.Generator) -> tuple[Array, Array]:
        """Give (MMD2, complexity) at the plain maximiser of each relabeling (rows of ``labels``)."""


def selector_for(family: object) -> Selector:
    """Give the selector of a kernel family."""
    if isinstance(family, ScaleFamily):
        return ScalarSelector(family)
    raise InputError(
        f"The 'kernel' parameter must be a kernel family such as Bandwidth() or Polynomial(degree=4). Got {family!r} instead."
    )
