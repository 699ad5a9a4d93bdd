"""Criteria: how good a kernel is on the training half. Plain arithmetic, so floats, arrays and tensors all fit.

| criterion | value |
| --- | --- |
| :class:`Plain` | MMD2 |
| :class:`Ratio` | MMD2 / sqrt(V + 1e-8) (Liu et al. 2020, Sutherland et al. 2017) |
| :class:`ComplexityPenalized` | MMD2 - C1 * G (eq. criterion of the paper) |
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from typing import Any, ClassVar

from cpmmd.core import validation

RATIO_REGULARISATION = 1e-8  # lambda of Liu et al.'s code
CALIBRATIONS = ("plain", "ratio", "self-consistent", "expectation")
Number = Any  # a float, an array or a tensor, and what comes out is what went in


class Criterion(ABC):
    """Maps (MMD2, variance, complexity) of a kernel to the value that selection maximises."""

    citations: ClassVar[tuple[str, ...]] = ()  #: keys in ``citations.bib`` of what to cite for it
    #: needs_variance, needs_complexity: whether the value depends on them
    needs_variance: ClassVar[bool] = False
    needs_complexity: ClassVar[bool] = False

    @property
    def constant(self) -> float | None:
        """C1 of the penalty once it is known; None for criteria without one."""
        return None

    @abstractmethod
    def value(self, mmd2: Number, variance: Number, complexity: Number) -> Number:
        """Return the criterion."""


@dataclass(frozen=True)
class Plain(Criterion):
    """The squared MMD itself, no penalty.

    Examples
    --------
    >>> from cpmmd import Plain
    >>> Plain().value(0.25, variance=None, complexity=None)
    0.25
    """

    citations = ("gretton2012kernel",)

    def value(self, mmd2: Number, variance: Number, complexity: Number) -> Number:  # noqa: ARG002
        """Return MMD2."""
        return mmd2


@dataclass(frozen=True)
class Ratio(Criterion):
    """The squared MMD over its estimated standard deviation.

    Examples
    --------
    >>> from cpmmd import Ratio
    >>> round(Ratio().value(0.25, variance=0.01, complexity=None), 3)
    2.5
    """

    citations = ("sutherland2017generative", "liu2020learning")
    needs_variance = True

    def value(self, mmd2: Number, variance: Number, complexity: Number) -> Number:  # noqa: ARG002
        """Return MMD2 / sqrt(V + 1e-8)."""
        return mmd2 / (variance + RATIO_REGULARISATION) ** 0.5


@dataclass(frozen=True)
class ComplexityPenalized(Criterion):
    """The squared MMD minus the calibrated complexity of the feature map.

    Parameters
    ----------
    c1 : float, optional
        The constant of the penalty. None calibrates it on the training half; a number (for instance
        ``result.calibration.c1`` of an earlier test of the same kind) is used as it is.
    n_calibration : int
        Number of null permutations of the training half.
    calibration_alpha : float, optional
        1 - the quantile of the null ratios; None takes the level of the test.
    calibration : str
        What a null permutation contributes to C1. ``"plain"``: MMD2 / G at the largest MMD2, as in the paper's procedure.
        ``"ratio"``: the largest MMD2 / G itself, the target. ``"self-consistent"``: MMD2 / G at the largest J_CP, repeated
        until C1 settles (several times the cost). ``"expectation"``: as plain, but C1 is the mean, not a quantile.

    Examples
    --------
    >>> from cpmmd import ComplexityPenalized
    >>> ComplexityPenalized(c1=0.5).value(0.25, variance=None, complexity=0.25)
    0.125
    """

    c1: float | None = None
    n_calibration: int = 10
    calibration_alpha: float | None = None
    calibration: str = "plain"

    citations = ("ni2026kernel",)
    needs_complexity = True

    def __post_init__(self) -> None:
        if self.c1 is not None:
            validation.positive("c1", self.c1, or_zero=True)
        validation.whole("n_calibration", self.n_calibration, at_least=1)
        if self.calibration_alpha is not None:
            validation.open_unit("calibration_alpha", self.calibration_alpha)
        validation.one_of("calibration", self.calibration, CALIBRATIONS)

    @property
    def constant(self) -> float | None:
        """C1, None until it is known."""
        return self.c1

    @property
    def needs_calibration(self) -> bool:
        """True until the constant is known."""
        return self.c1 is None

    def calibrated(self, c1: float) -> ComplexityPenalized:
        """Return the same criterion with its constant set.

        Parameters
        ----------
        c1 : float
            The constant of the penalty.

        Returns
        -------
        ComplexityPenalized
            The criterion.
        """
        return replace(self, c1=c1)

    def value(self, mmd2: Number, variance: Number, complexity: Number) -> Number:  # noqa: ARG002
        """Return MMD2 - C1 G."""
        return mmd2 - self.c1 * complexity


@dataclass(frozen=True)
class LargestRatio(Criterion):
    """MMD2 over its complexity, which ``calibration="ratio"`` maximises. A map of complexity 0 is constant, and its MMD2 is 0."""

    needs_complexity = True

    def value(self, mmd2: Number, variance: Number, complexity: Number) -> Number:  # noqa: ARG002
        """Return MMD2 / G."""
        return mmd2 / (complexity + (complexity == 0))
