"""H_deep: a Gaussian kernel on the features of a network, while it is trained and frozen afterwards."""

from __future__ import annotations

import copy
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict
from cpmmd.data.prepared import PreparedPool
from cpmmd.errors import InputError
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import GaussianBased, Kernel, Tensors
from cpmmd.kernels.deep.families import Deep
from cpmmd.kernels.deep.gram import gaussian_gram
from cpmmd.kernels.deep.networks import Mlp, ModuleNetwork, Network, Parameters


def network_of(family: Deep, columns: int, row_shape: tuple[int, ...]) -> Network:
    """Return a family's architecture for inputs of so many columns, rows of ``row_shape``."""
    if family.module is not None:
        return ModuleNetwork(copy.deepcopy(family.module), family.lipschitz, row_shape)
    sizes = (columns, *[family.width] * family.depth, family.out)
    return Mlp(sizes, family.activation, family.init, family.bias, family.gain)


def input_map(family: Deep, train: PreparedPool) -> tuple[Array, float]:
    """Return the centre and scale that inputs are mapped by, from the training half."""
    if family.module is not None:
        return np.zeros(train.matrix.shape[1]), 1.0
    centre = train.matrix.mean(axis=0)
    spread = float(np.abs(train.matrix - centre).max(initial=0.0))
    if spread == 0.0:
        return centre, 1.0
    return centre, spread * float(np.sqrt(np.mean(((train.matrix - centre) / spread) ** 2)))


class NetworkTrainable(ABC):
    """A Gaussian kernel on the features of a network, on one training half."""

    def __init__(self, network: Network, inputs: Array, dtype: torch.dtype, device: str) -> None:
        self.network = network
        self.dtype, self.device = dtype, device
        self._rows = torch.as_tensor(inputs, dtype=dtype, device=device)
        self._lipschitz = network.lipschitz()

    def initialise(self, seeds: list[int]) -> Parameters:
        """Return starting parameters of one member for each seed."""
        return self.network.initialise(seeds, self.dtype, self.device)

    def inputs(self) -> torch.Tensor:
        """Return the mapped rows."""
        return self._rows

    def gram(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        """Return the kernel matrices of the features."""
        return gaussian_gram(self.network.features(parameters, rows))

    def lipschitz(self, parameters: Parameters) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the spectral product, twice: it is the Lipschitz bound."""
        product = self._lipschitz(parameters)
        return product, product

    @abstractmethod
    def freeze(self, parameters: Parameters, spectral_product: float) -> Kernel:
        """Return the trained kernel of one member."""


class DeepTrainable(NetworkTrainable):
    """H_deep on one training half."""

    def __init__(self, family: Deep, train: PreparedPool, dtype: torch.dtype, device: str) -> None:
        self.family = family
        self.centre, self.scale = input_map(family, train)
        self.row_shape = train.row_shape or (train.matrix.shape[1],)
        network = network_of(family, train.matrix.shape[1], self.row_shape)
        super().__init__(network, (train.matrix - self.centre) / self.scale, dtype, device)

    def freeze(self, parameters: Parameters, spectral_product: float) -> DeepKernel:
        """Return the trained kernel of one member."""
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
        """Return h(x) of each row."""
        network = network_of(self.family, rows.shape[1], self.row_shape)
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

    def tensors(self) -> Tensors:
        """The arrays that make the kernel, for saving."""
        weights = {f"parameter.{name}": p.numpy() for name, p in self.parameters.items()}
        return {**weights, "centre": self.centre}

    def to_dict(self) -> PlainDict:
        """Describe the kernel in plain JSON types."""
        options = {name: getattr(self.family, name) for name in DESCRIBED}
        return {
            "family": "Deep",
            "options": options,
            "module": None if self.family.module is None else type(self.family.module).__name__,
            "row_shape": list(self.row_shape),
            "scale": self.scale,
            "spectral_product": self.spectral_product,
            "lipschitz": self.lipschitz,
        }

    @classmethod
    def restore(cls, description: Mapping[str, Any], tensors: Tensors, module: nn.Module | None) -> DeepKernel:
        """Rebuild a saved kernel; one of a user's own module needs that module."""
        if description["module"] is not None and module is None:
            raise InputError(f"The kernel was trained on a module of your own ({description['module']}). Pass it as module=.")
        family = Deep(**description["options"], module=module)
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
