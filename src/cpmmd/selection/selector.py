"""Selectors: which member of a family maximises a criterion on the training half."""

from __future__ import annotations

from typing import Protocol

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Labels
from cpmmd.core.installation import missing_extra
from cpmmd.data.prepared import PreparedPool
from cpmmd.errors import InputError
from cpmmd.kernels.base import TrainedFamily
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.selection.ascent_options import Ascent
from cpmmd.selection.criteria import Criterion
from cpmmd.selection.scalar import ScalarSelector
from cpmmd.selection.values import Selection


class Selector(Protocol):
    """Maximises any criterion over one family."""

    @property
    def matrices(self) -> int:
        """How many kernel matrices of the training half it holds at once, as measured."""

    @property
    def calibration_note(self) -> str:
        """What calibration does differently from selection, if anything."""

    def select(self, train: PreparedPool, criterion: Criterion, rng: np.random.Generator) -> Selection:
        """Return the kernel that maximises ``criterion`` on the training half."""

    def maxima(self, train: PreparedPool, labels: Labels, criterion: Criterion, rng: np.random.Generator) -> tuple[Array, Array]:
        """Return (MMD2, complexity) at the maximiser of each relabeling (rows of ``labels``)."""


def selector_for(family: ScaleFamily | TrainedFamily, ascent: Ascent | None = None) -> Selector:
    """Return the selector of a kernel family; ``ascent`` is for families that are trained."""
    if isinstance(family, ScaleFamily):
        return ScalarSelector(family)
    try:
        from cpmmd.selection.ascent import AscentSelector
    except ImportError as error:
        raise missing_extra(f"Training {type(family).__name__}", "torch", "deep") from error
    return AscentSelector(family, ascent or Ascent())


def check_family(family: object, ascent: Ascent | None) -> None:
    """Refuse what is no family, and training options for a family that is not trained."""
    if not isinstance(family, (ScaleFamily, TrainedFamily)):
        rule = "must be a kernel family such as Bandwidth(), Polynomial(degree=4) or Deep()"
        raise validation.wrong("family", rule, family)
    if ascent is not None and not isinstance(family, TrainedFamily):
        raise InputError(
            "{parameter} is for trained kernels; {family!r} is searched, not trained. Leave it out.",
            parameter="ascent",
            family=family,
        )
