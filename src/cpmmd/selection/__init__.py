"""Selectors: which member of a family maximises a criterion on the training half."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cpmmd.criteria import Criterion
from cpmmd.errors import InputError
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.results import Selection
from cpmmd.samples import Array, Labels, TwoSample
from cpmmd.selection.ascent_options import Ascent
from cpmmd.selection.scalar import ScalarSelector


class Selector(Protocol):
    """Maximises any criterion over one family."""

    @property
    def calibration_note(self) -> str:
        """What calibration does differently from selection, if anything."""

    def select(self, train: TwoSample, criterion: Criterion, rng: np.random.Generator) -> Selection:
        """Give the kernel that maximises ``criterion`` on the training half."""

    def maxima(self, train: TwoSample, labels: Labels, criterion: Criterion, rng: np.random.Generator) -> tuple[Array, Array]:
        """Give (MMD2, complexity) at the maximiser of each relabeling (rows of ``labels``)."""


def selector_for(family: object, ascent: Ascent | None = None) -> Selector:
    """Give the selector of a kernel family; ``ascent`` is for families that are trained."""
    if isinstance(family, ScaleFamily):
        if ascent is not None:
            raise InputError(f"The 'ascent' parameter is for trained kernels; {family!r} is searched, not trained. Leave it out.")
        return ScalarSelector(family)
    if hasattr(family, "trainable"):
        from cpmmd.selection.ascent import AscentSelector  # torch is there, or the family could not have been made

        return AscentSelector(family, ascent or Ascent())
    raise InputError(
        "The 'kernel' parameter must be a kernel family such as Bandwidth(), Polynomial(degree=4) or Deep(). "
        f"Got {family!r} instead."
    )
