"""H_deep: a Gaussian kernel on the features of a network."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch
from torch import nn

from cpmmd import validation
from cpmmd.errors import InputError
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import GaussianBased
from cpmmd.kernels.deep.gram import gaussian_gram
from cpmmd.kernels.deep.networks import Mlp, ModuleNetwork, Network, Parameters, check_names
from cpmmd.samples import Array, TwoSample

WIDE = 500  # from this width on plain-max calibration breaks down (App. architecture stability of the paper)


@dataclass(frozen=True)
class Deep:
    """k(h(x), h(x')) with h a network and k Gaussian with sigma = 1.

    Parameters
    ----------
    width, depth, out
        Hidden width, number of hidden layers, and number of features: d -> width -> ... -> out.
    activation
        ``"leaky-relu"``, ``"relu"``, ``"tanh"``, ``"elu"`` or ``"softplus"``; all 1-Lipschitz.
    init
        ``"torch"`` (uniform, variance 1/(3 fan_in)), ``"kaiming"`` (normal, variance 2/fan_in, zero biases: the paper's regime)
        or ``"xavier"``.
    gain
        Factor on the starting weights of every layer. Where features start far apart (kernel matrix close to the identity) only a
        penalty moves them, so this number decides how the criteria compare.
    bias
        Whether layers have biases.
    surrogate_width
        Networks of width 500 or more calibrate C1 at this width, the paper's rule; None calibrates at full width.
    module
        Your own network, used instead of the MLP: any ``torch.nn.Module`` from rows to features. It is copied, never changed.
    lipschitz
        For modules with layers whose Lipschitz constant is not known: a function from the dict of trained parameters to a
        scalar tensor that bounds it.

    Notes
    -----
    The complexity is the product of the layers' spectral norms times ``|D|_F / N``. The MLP sees inputs centred and divided by
    one number, the root mean square of the training half, so that units do not matter; a module sees them as they come.
    Convolutions are bounded by sqrt(ceil(k/s) per direction) times the norm of the weight reshaped to a matrix.
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
    lipschitz: Callable[[Parameters], torch.Tensor] | None = None

    def __post_init__(self) -> None:
        for name in ("width", "depth", "out"):
            validation.whole(name, getattr(self, name), at_least=1)
        if self.surrogate_width is not None:
            validation.whole("surrogate_width", self.surrogate_width, at_least=1)
        check_names(self.activation, self.init)
        validation.positive("gain", self.gain)
        if self.module is not None and not isinstance(self.module, nn.Module):
            raise InputError(f"The 'module' parameter must be a torch.nn.Module. Got {type(self.module).__name__} instead.")
        if self.lipschitz is not None and not callable(self.lipschitz):
            raise InputError(f"The 'lipschitz' parameter must be a function. Got {self.lipschitz!r} instead.")

    def network(self, width: int, row_shape: tuple[int, ...]) -> Network:
        """Give the architecture for inputs of ``width`` columns, rows of ``row_shape``."""
        if self.module is not None:
            return ModuleNetwork(copy.deepcopy(self.module), self.lipschitz, row_shape)
        return Mlp((width, *[self.width] * self.depth, self.out), self.activation, self.init, self.bias, self.gain)

    def input_map(self, train: TwoSample) -> tuple[Array, float]:
        """Give the centre and scale that inputs are mapped by, from the training half."""
        columns = train.pool.shape[1]
        if self.module is not None:
            return np.zeros(columns), 1.0
        centre = train.pool.mean(axis=0)
        spread = float(np.abs(train.pool - centre).max(initial=0.0))
        if spread == 0.0:
            return centre, 1.0
        return centre, spread * float(np.sqrt(np.mean(((train.pool - centre) / spread) ** 2)))

    def trainable(self, train: TwoSample, dtype: torch.dtype, device: str) -> DeepTrainable:
        """Give this class on one training half, for gradient ascent."""
        centre, scale = self.input_map(train)
        return DeepTrainable(self, train, centre, scale, dtype, device)

    def for_calibration(self) -> tuple[Deep, str]:
        """Give the family that C1 is calibrated on, and a note where it is not this one."""
        surrogate = self.surrogate_width
        if self.module is not None or self.width < WIDE or surrogate is None:
            return self, ""
        return replace(self, width=surrogate), f"C1 calibrated at width {surrogate} for a network of width {self.width}"

    def proxy_constant(self, width: int, size: int) -> float:  # noqa: ARG002
        """sqrt(ln N), the factor of the spectral bound whose absolute constant the theory leaves open."""
        return float(np.sqrt(np.log(size)))


class DeepTrainable:
    """H_deep on one training half."""

    def __init__(self, family: Deep, train: TwoSample, centre: Array, scale: float, dtype: torch.dtype, device: str) -> None:
        self.family, self.centre, self.scale = family, centre, scale
        self.dtype, self.device = dtype, device
        self.row_shape = train.row_shape or (train.pool.shape[1],)
        self.network = family.network(train.pool.shape[1], self.row_shape)
        self._rows = torch.as_tensor((train.pool - centre) / scale, dtype=dtype, device=device)
        self._lipschitz = self.network.lipschitz()

    def initialise(self, seeds: list[int]) -> Parameters:
        """Give starting parameters of one member for each seed."""
        return self.network.initialise(seeds, self.dtype, self.device)

    def inputs(self) -> torch.Tensor:
        """Give the mapped rows."""
        return self._rows

    def gram(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        """Give the kernel matrices of the features."""
        return gaussian_gram(self.network.features(parameters, rows))

    def lipschitz(self, parameters: Parameters) -> tuple[torch.Tensor, torch.Tensor]:
        """Give the spectral product, twice: it is the Lipschitz bound."""
        product = self._lipschitz(parameters)
        return product, product

    def freeze(self, parameters: Parameters, spectral_product: float) -> DeepKernel:
        """Give the trained kernel of one member."""
        weights = {name: p.detach().cpu().clone() for name, p in parameters.items()}
        return DeepKernel(self.family, self.row_shape, weights, self.centre, self.scale, spectral_product)


@dataclass(frozen=True, eq=False)
class DeepKernel(GaussianBased):
    """A trained feature kernel, frozen.

    Attributes
    ----------
    parameters
        The trained weights, one member.
    centre, scale
        Inputs are (x - centre) / scale.
    spectral_product
        Lipschitz bound of the network itself; ``lipschitz`` includes the input scale.
    """

    family: Deep
    row_shape: tuple[int, ...]
    parameters: Parameters
    centre: Array
    scale: float
    spectral_product: float

    @property
    def lipschitz(self) -> float:
        """L(h) of the feature map, inputs as given."""
        return self.spectral_product / self.scale

    def features(self, rows: Array) -> Array:
        """Give h(x) of each row."""
        network = self.family.network(rows.shape[1], self.row_shape)
        stacked = {name: p.unsqueeze(0) for name, p in self.parameters.items()}
        dtype = next(iter(stacked.values())).dtype
        if isinstance(network, ModuleNetwork):
            network.initialise([0], dtype, "cpu")  # casts the frozen part
        inputs = torch.as_tensor((rows - self.centre) / self.scale, dtype=dtype)
        with torch.no_grad():
            blocks = [network.features(stacked, block)[0] for block in torch.split(inputs, 8192)]
        return np.asarray(torch.cat(blocks).numpy(), dtype=np.float64)

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Kernel matrix of ``rows`` with ``others`` (or with themselves)."""
        return Bandwidth().gram(1.0, self.features(rows), None if others is None else self.features(others))

    def tensors(self) -> dict[str, Any]:
        """The arrays that make the kernel, for saving."""
        weights = {f"parameter.{name}": p.numpy() for name, p in self.parameters.items()}
        return {**weights, "centre": self.centre}

    def to_dict(self) -> dict[str, object]:
        """Describe the kernel in plain JSON types."""
        options = {name: getattr(self.family, name) for name in DESCRIBED}
        return {
            "type": "deep",
            "family": options,
            "module": None if self.family.module is None else type(self.family.module).__name__,
            "row_shape": list(self.row_shape),
            "scale": self.scale,
            "spectral_product": self.spectral_product,
            "lipschitz": self.lipschitz,
        }

    @classmethod
    def restore(cls, description: dict[str, Any], tensors: dict[str, Any], module: nn.Module | None) -> DeepKernel:
        """Rebuild a saved kernel; one of a user's own module needs that module."""
        if description["module"] is not None and module is None:
            raise InputError(f"The kernel was trained on a module of your own ({description['module']}). Pass it as module=.")
        family = Deep(**description["family"], module=module)
        names = [name for name in tensors if name.startswith("parameter.")]
        if module is None and len(names) != (family.depth + 1) * (1 + family.bias):
            raise InputError(f"The file's weights are not those of a network of {family.depth} hidden layers. Save it again.")
        kernel = cls(
            family=family,
            row_shape=tuple(description["row_shape"]),
            parameters={n.removeprefix("parameter."): torch.from_numpy(np.array(tensors[n])) for n in names},
            centre=np.array(tensors["centre"], dtype=np.float64),
            scale=validation.positive("scale", description["scale"]),
            spectral_product=validation.non_negative("spectral_product", description["spectral_product"]),
        )
        kernel.features(kernel.centre[None])  # weights that do not fit together fail here, not in the first test
        return kernel

    def __str__(self) -> str:
        deep = self.family
        what = type(deep.module).__name__ if deep.module is not None else f"MLP of {deep.depth} layers of {deep.width}"
        return f"Gaussian on {what} features, spectral product {self.spectral_product:.4g}"


DESCRIBED = ("width", "depth", "out", "activation", "init", "gain", "bias", "surrogate_width")
