"""What a choice of kernel consists of: the constant of the penalty, the kernel, and everything that was looked at on the way."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict, PlainValue
from cpmmd.kernels.base import Kernel


@dataclass(frozen=True)
class Ascent:
    """How kernels are trained: by Adam, keeping the iterate t = 0..T that is best by the criterion itself.

    Parameters
    ----------
    steps : int
        T. The default is the paper's, as for the next two.
    learning_rate : float
        Adam's step size.
    clip : float
        The largest gradient norm.
    batch_rows : int
        Training halves larger than this are trained on random batches of this many rows, and judged on one fixed batch.
    device : str
        ``"cpu"`` or a torch device such as ``"cuda"``.
    dtype : str
        ``"float32"`` or ``"float64"``.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Ascent, Deep, SplitTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(4, 1, size=(40, 2))
    >>> method = SplitTest(Deep(width=8), ascent=Ascent(steps=2, dtype="float64"))
    >>> len(two_sample_test(x, y, method=method, rng=0).selection.path.steps)
    3
    """

    steps: int = 100
    learning_rate: float = 0.005
    clip: float = 5.0
    batch_rows: int = 4096
    device: str = "cpu"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        validation.whole("steps", self.steps, at_least=0)
        validation.positive("learning_rate", self.learning_rate)
        validation.positive("clip", self.clip)
        validation.whole("batch_rows", self.batch_rows, at_least=16)
        validation.one_of("dtype", self.dtype, ("float32", "float64"))


@dataclass(frozen=True, eq=False)
class Calibration(PlainValue):
    """C1-hat and the null ratios MMD2 / G it came from."""

    c1: float  #: C1-hat, the constant of the penalty
    ratios: Array  #: MMD2 / G of the kernels that were best under null permutations of the training half
    alpha: float  #: 1 - the quantile of the ratios that C1-hat is
    order: int  #: which order statistic of the ratios that is, from 1
    note: str = ""  #: what calibration had to say: another family that stood in, rounds until C1 settled; often empty

    document = ("c1", "ratios", "alpha", "order_statistic", "note")

    @property
    def order_statistic(self) -> int:
        """``order``, as documents call it."""
        return self.order


@dataclass(frozen=True, eq=False)
class BandwidthSearch(PlainValue):
    """Every bandwidth that a search looked at, ascending, with what was found there."""

    bandwidths: Array  #: the bandwidths
    #: criterion, mmd2, complexity: their values on the training half
    criterion: Array
    mmd2: Array
    complexity: Array


@dataclass(frozen=True, eq=False)
class TrainingHistory(PlainValue):
    """Every step of a training, the first one before any."""

    steps: Array  #: 0, 1, ..., the last one
    #: criterion, mmd2, variance, complexity, spectral_product: their values on the training half
    criterion: Array
    mmd2: Array
    variance: Array
    complexity: Array
    spectral_product: Array


@dataclass(frozen=True, eq=False)
class Selection(PlainValue):
    """The kernel that maximised a criterion, and every kernel looked at on the way."""

    kernel: Kernel  #: the choice
    #: criterion, mmd2, variance, complexity: their values at the choice, the variance where the criterion needs it
    criterion: float
    mmd2: float
    variance: float | None
    complexity: float
    path: BandwidthSearch | TrainingHistory  #: what was looked at
    max_complexity: float  #: ``L* |D|_F / N``, the largest complexity looked at
    #: the constant of the penalty that the criterion used, calibrated or given; None for criteria without one
    c1: float | None = None
    notes: tuple[str, ...] = ()  #: what selection had to say
    #: whether the ratio criterion's variance collapsed; None for other criteria and searches without training
    collapse: Collapse | None = None

    document = ("kernel", "criterion", "mmd2", "variance", "complexity", "c1", "max_complexity", "collapse", "path")


@dataclass(frozen=True)
class Collapse:
    """Variance collapse of the ratio criterion at the end of training (App. variance collapse).

    The three flags are MMD2 < 0.01, tau < 0.001 and sqrt(n) MMD2 / tau > 10: a large ratio at a kernel without signal.
    """

    #: mmd2, variance: squared MMD and its estimated variance at the last step, on the training half
    mmd2: float
    variance: float
    size: float  #: 2mn/(m+n): n where m = n

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
