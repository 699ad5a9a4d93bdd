"""What a choice of kernel consists of: the constant of the penalty, the kernel, and everything that was looked at on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict
from cpmmd.kernels.base import Kernel


@dataclass(frozen=True, eq=False)
class Calibration:
    """C1-hat and the null ratios MMD2 / G it came from.

    Attributes
    ----------
    c1 : float
        C1-hat, the constant of the penalty.
    ratios : array
        MMD2 / G of the kernels that were best under null permutations of the training half.
    alpha : float
        1 - the quantile of the ratios that C1-hat is.
    order : int
        Which order statistic of the ratios that is, from 1.
    note : str
        What calibration had to say: another family that stood in, rounds until C1 settled; often empty.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> calibration = two_sample_test(x, y, method="cp-linear", rng=0).calibration
    >>> len(calibration.ratios), calibration.alpha
    (10, 0.05)
    """

    c1: float
    ratios: Array
    alpha: float
    order: int
    note: str = ""

    def to_dict(self) -> PlainDict:
        """Return the calibration in plain JSON types."""
        return {
            "c1": self.c1,
            "ratios": self.ratios.tolist(),
            "alpha": self.alpha,
            "order_statistic": self.order,
            "note": self.note,
        }


@dataclass(frozen=True, eq=False)
class BandwidthPath:
    """Every bandwidth that a search looked at, ascending, with what was found there.

    Attributes
    ----------
    bandwidths : array
        The bandwidths.
    criterion, mmd2, complexity : array
        Their values on the training half.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> path = two_sample_test(x, y, method="cp-linear", rng=0).selection.path
    >>> bool((np.diff(path.bandwidths) > 0).all())
    True
    """

    bandwidths: Array
    criterion: Array
    mmd2: Array
    complexity: Array

    def to_dict(self) -> PlainDict:
        """Return the path in plain JSON types."""
        return _columns(self)


@dataclass(frozen=True, eq=False)
class TrainingHistory:
    """Every step of a training, the first one before any.

    Attributes
    ----------
    steps : array
        0, 1, ..., the last one.
    criterion, mmd2, variance, complexity, spectral_product : array
        Their values on the training half.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Ascent, Deep, SplitTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> method = SplitTest(Deep(width=8), ascent=Ascent(steps=2))
    >>> len(two_sample_test(x, y, method=method, rng=0).selection.path.steps)
    3
    """

    steps: Array
    criterion: Array
    mmd2: Array
    variance: Array
    complexity: Array
    spectral_product: Array

    def to_dict(self) -> PlainDict:
        """Return the history in plain JSON types."""
        return _columns(self)


def _columns(table: BandwidthPath | TrainingHistory) -> PlainDict:
    return {column.name: np.asarray(getattr(table, column.name)).tolist() for column in fields(table)}


@dataclass(frozen=True, eq=False)
class Selection:
    """The kernel that maximised a criterion, and every kernel looked at on the way.

    Attributes
    ----------
    kernel : Kernel
        The choice.
    criterion, mmd2, complexity : float
        Their values at the choice.
    variance : float or None
        None where the criterion does not need it.
    c1 : float or None
        The constant of the penalty that the criterion used, calibrated or given; None for criteria without one.
    path : BandwidthPath or TrainingHistory
        What was looked at.
    max_complexity : float
        ``L* |D|_F / N``, the largest complexity on the path.
    notes : tuple of str
        What selection had to say.
    collapse : Collapse or None
        Whether the ratio criterion's variance collapsed; None for other criteria and searches without training.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> result = two_sample_test(x, y, method="cp-linear", rng=0)
    >>> result.selection.kernel == result.kernel, result.selection.c1 == result.calibration.c1
    (True, True)
    """

    kernel: Kernel
    criterion: float
    mmd2: float
    variance: float | None
    complexity: float
    path: BandwidthPath | TrainingHistory
    max_complexity: float
    c1: float | None = None
    notes: tuple[str, ...] = ()
    collapse: Collapse | None = None

    def to_dict(self) -> PlainDict:
        """Return the selection in plain JSON types."""
        return {
            "kernel": self.kernel.to_dict(),
            "criterion": self.criterion,
            "mmd2": self.mmd2,
            "variance": self.variance,
            "complexity": self.complexity,
            "c1": self.c1,
            "max_complexity": self.max_complexity,
            "collapse": None if self.collapse is None else self.collapse.to_dict(),
            "path": self.path.to_dict(),
        }


@dataclass(frozen=True)
class Collapse:
    """Variance collapse of the ratio criterion at the end of training (App. variance collapse).

    The three flags are MMD2 < 0.01, tau < 0.001 and sqrt(n) MMD2 / tau > 10: a large ratio at a kernel without signal.

    Attributes
    ----------
    mmd2, variance : float
        Squared MMD and its estimated variance at the last step, on the training half.
    size : float
        2mn/(m+n): n where m = n.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Ascent, Deep, Ratio, SplitTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(2, 1, size=(40, 2))
    >>> method = SplitTest(Deep(width=8), Ratio(), ascent=Ascent(steps=2))
    >>> two_sample_test(x, y, method=method, rng=0).selection.collapse.flagged
    False
    """

    mmd2: float
    variance: float
    size: float

    @property
    def tau(self) -> float:
        """Estimated standard deviation of sqrt(n) MMD2."""
        return math.sqrt(max(self.variance, 0.0))

    @property
    def ratio(self) -> float:
        """J = sqrt(n) MMD2 / tau."""
        return math.sqrt(self.size) * self.mmd2 / max(self.tau, 1e-12)

    @property
    def flagged(self) -> bool:
        """Whether all three flags are up."""
        return bool(self.mmd2 < 0.01 and self.tau < 0.001 and self.ratio > 10)

    @property
    def note(self) -> str:
        """The finding in a sentence."""
        return f"variance collapse: ratio {self.ratio:.0f} at MMD^2 {self.mmd2:.2g}, tau {self.tau:.2g}; no signal left"

    def to_dict(self) -> PlainDict:
        """Return what collapsed in plain JSON types."""
        return {"mmd2": float(self.mmd2), "tau": self.tau, "ratio": self.ratio, "collapsed": self.flagged}
