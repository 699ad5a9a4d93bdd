"""What fitting a detector must be given, and what must be fitted before it is used."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
from sklearn.exceptions import NotFittedError

from cpmmd.data.design_options import DesignOptions
from cpmmd.errors import InputError, Setting


class UnfittedError(InputError, NotFittedError):  # type: ignore[misc]
    """A detector or a monitor was used before it was fitted."""


def check_kernel_sources(design: DesignOptions, scale: str | None, *, example: Any, kernel: Any) -> None:
    """Refuse a given kernel beside what would change it, and one that is chosen once beside a design."""
    if kernel is not None and not (example is None and scale is None):
        raise InputError("A given kernel is neither trained nor rescaled. Leave out kernel=, or example= and scale=.")
    if design.given and not (example is None and kernel is None):
        raise InputError(
            "A kernel that is chosen once is tested row by row. Leave out example= and kernel=, or {design}.",
            design=Setting(next(iter(design.given))),
        )


def check_targets(y: Any, rows: int) -> None:
    """Refuse a second table: it would be ignored, and was meant as an example."""
    shape = np.shape(y)
    several = len(shape) > 1 and math.prod(shape[1:]) > 1
    if y is not None and (several or shape[:1] != (rows,)):
        raise InputError(
            "What comes second is scikit-learn's y, one value for each row, and ignored. Got shape {shape}; pass a batch that "
            "differs as {example}.",
            shape=shape,
            example=Setting("example"),
        )
