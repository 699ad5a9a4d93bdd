"""The trained families: what may be trained and how it starts. Torch is imported when training begins, not before."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from cpmmd.core import validation
from cpmmd.data.preparation import PreparedPool
from cpmmd.kernels.base import Description, Tensors, TrainedFamily

if TYPE_CHECKING:
    import torch
    from torch import nn

    from cpmmd.kernels.deep.feature_kernel import DeepKernel, DeepTrainable
    from cpmmd.kernels.deep.mixture import MixtureKernel, MixtureTrainable

WIDE = 500  # from this width on plain-max calibration breaks down (App. architecture stability of the paper)
ACTIVATIONS = ("leaky-relu", "relu", "tanh", "softplus", "elu")
INITS = ("kaiming", "torch", "xavier")


@dataclass(frozen=True)
class Deep(TrainedFamily):
    """k(h(x), h(x')) with h a network and k Gaussian with bandwidth 1.

    Parameters
    ----------
    width, depth, out : int
        Hidden width, number of hidden layers, and number of features: d -> width -> ... -> out.
    activation : str
        ``"leaky-relu"``, ``"relu"``, ``"tanh"``, ``"elu"`` or ``"softplus"``; all 1-Lipschitz.
    init : str
        ``"torch"`` (uniform, variance 1/(3 fan_in)), ``"kaiming"`` (normal, variance 2/fan_in, zero biases: the paper's regime)
        or ``"xavier"``.
    gain : float
        Factor on the starting weights. Where features start far apart (kernel matrix close to the identity) only a penalty moves
        them, so this number decides how the criteria compare.
    bias : bool
        Whether layers have biases.
    surrogate_width : int or None
        Networks of width 500 or more calibrate C1 at this width, the paper's rule; None calibrates at full width.
    module : torch.nn.Module, optional
        Your own network, used instead of the MLP: any ``torch.nn.Module`` from rows to features. It is copied, never changed.
    lipschitz : callable, optional
        For modules with layers of unknown Lipschitz constant: from the dict of trained parameters to a scalar tensor, a bound.

    Notes
    -----
    The complexity is the product of the layers' spectral norms times ``|D|_F / N``. The MLP sees inputs centred and divided by
    one number, the root mean square of the training half, so that units do not matter; a module sees them as they come.
    Convolutions are bounded by sqrt(ceil(k/s) per direction) times the norm of the weight reshaped to a matrix.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Ascent, Deep, SplitTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(60, 2)), data.normal(4, 1, size=(60, 2))
    >>> method = SplitTest(Deep(width=8), ascent=Ascent(steps=2))  # two steps: an example, no training
    >>> two_sample_test(x, y, method=method, rng=0).reject
    True
    """

    width: int = 200
    depth: int = 2
    out: int = 10
    activation: str = "leaky-relu"
    init: str = "torch"
    gain: float = 1.0
    bias: bool = True
    surrogate_width: int | None = 200
    module: nn.Module | None = None
    lipschitz: Callable[[dict[str, torch.Tensor]], torch.Tensor] | None = None

    citations = ("liu2020learning", "bartlett2017spectrally")
    proxy_proven = False  # the spectral bound's absolute constant is open, and biases break its h(0) = 0

    def __post_init__(self) -> None:
        for name in ("width", "depth", "out"):
            validation.whole(name, getattr(self, name), at_least=1)
        if self.surrogate_width is not None:
            validation.whole("surrogate_width", self.surrogate_width, at_least=1)
        validation.one_of("activation", self.activation, ACTIVATIONS)
        validation.one_of("init", self.init, INITS)
        validation.positive("gain", self.gain)
        if self.module is not None and not hasattr(self.module, "named_parameters"):
            raise validation.wrong("module", "must be a torch.nn.Module", self.module)
        if self.lipschitz is not None and not callable(self.lipschitz):
            raise validation.wrong("lipschitz", "must be a function", self.lipschitz)

    def trainable(self, train: PreparedPool, dtype: torch.dtype, device: str) -> DeepTrainable:
        from cpmmd.kernels.deep.feature_kernel import DeepTrainable

        return DeepTrainable(self, train, dtype, device)

    @classmethod
    def restore(cls, described: Description, tensors: Tensors, module: nn.Module | None) -> DeepKernel:
        from cpmmd.kernels.deep.feature_kernel import DeepKernel

        return DeepKernel.restore(described, tensors, module)

    def for_calibration(self) -> tuple[Deep, str]:
        """Return a narrower network where the width is 500 or more: the paper's surrogate rule."""
        surrogate = self.surrogate_width
        if self.module is not None or self.width < WIDE or surrogate is None:
            return self, ""
        return replace(self, width=surrogate), f"C1 calibrated at width {surrogate} for a network of width {self.width}"

    def proxy_constant(self, columns: int, size: int) -> float:  # noqa: ARG002
        """Return sqrt(ln N), the factor of the spectral bound whose absolute constant the theory leaves open."""
        return float(np.sqrt(np.log(size)))


@dataclass(frozen=True)
class Mixture(TrainedFamily):
    """Liu et al.'s deep kernel over a feature network.

    Parameters
    ----------
    features : Deep
        The network phi and its options.
    feature_bandwidth : float
        Starting bandwidth on features.
    input_bandwidth : float, optional
        Starting bandwidth on inputs; None is the median distance of the training half.
    epsilon : float
        Starting weight of the raw kernel, between 0 and 1.

    Notes
    -----
    The kernel is not a composite kernel, so the paper's theorems do not cover it; its complexity is the paper's heuristic (1 -
    eps) Pi / feature_bandwidth + eps / input_bandwidth, and C1 is calibrated on the pure feature kernel.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Ascent, Deep, Mixture, SplitTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(60, 2)), data.normal(4, 1, size=(60, 2))
    >>> method = SplitTest(Mixture(Deep(width=8)), ascent=Ascent(steps=2))  # two steps: an example, no training
    >>> two_sample_test(x, y, method=method, rng=0).reject
    True
    """

    features: Deep = field(default_factory=Deep)
    feature_bandwidth: float = 1.0
    input_bandwidth: float | None = None
    epsilon: float = 0.1

    citations = ("liu2020learning",)

    def __post_init__(self) -> None:
        if not isinstance(self.features, Deep):
            raise validation.wrong("features", "must be a Deep(...) family", self.features)
        validation.positive("feature_bandwidth", self.feature_bandwidth)
        if self.input_bandwidth is not None:
            validation.positive("input_bandwidth", self.input_bandwidth)
        validation.open_unit("epsilon", self.epsilon)

    def trainable(self, train: PreparedPool, dtype: torch.dtype, device: str) -> MixtureTrainable:
        from cpmmd.kernels.deep.mixture import MixtureTrainable

        return MixtureTrainable(self, train, dtype, device)

    @classmethod
    def restore(cls, described: Description, tensors: Tensors, module: nn.Module | None) -> MixtureKernel:
        from cpmmd.kernels.deep.mixture import MixtureKernel

        return MixtureKernel.restore(described, tensors, module)

    def for_calibration(self) -> tuple[Deep, str]:
        """Return the pure feature class: its C1 is reused (App. deep ablation)."""
        family, note = self.features.for_calibration()
        return family, note or "C1 calibrated on the pure feature kernel"

    def proxy_constant(self, columns: int, size: int) -> None:  # noqa: ARG002
        """Return None: the kernel is not a composite kernel."""
        return
