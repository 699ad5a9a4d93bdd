"""H_deep: a Gaussian kernel on the features of a network, while it is trained and frozen afterwards."""

from __future__ import annotations

import copy
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn
from torch.autograd.function import BackwardCFunction, FunctionCtx

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Labels
from cpmmd.core.plain import PlainDict
from cpmmd.data.preparation import PreparedPool
from cpmmd.errors import InputError
from cpmmd.kernels.base import Description, Kernel, Tensors
from cpmmd.kernels.deep.families import Deep
from cpmmd.kernels.deep.networks import Mlp, ModuleNetwork, Network, Parameters, SpectralNorms
from cpmmd.kernels.families import Bandwidth, FeatureKernel
from cpmmd.kernels.linear_map import LinearMap, LinearMapKernel


class GaussianGram(torch.autograd.Function):
    """exp(-|f_i - f_j|^2 / 2) of (E, n, k) features, differentiable."""

    @staticmethod
    def forward(ctx: FunctionCtx, features: torch.Tensor) -> torch.Tensor:
        half = 0.5 * (features * features).sum(dim=-1)
        K = torch.bmm(features, features.mT)
        K.sub_(half.unsqueeze(1)).sub_(half.unsqueeze(2)).clamp_(max=0.0).exp_()
        ctx.save_for_backward(features, K)
        return K

    @staticmethod
    def backward(ctx: BackwardCFunction, grad: torch.Tensor) -> torch.Tensor:
        # With G = (dJ/dK) * K, dJ/df_i = sum_j (G_ij + G_ji)(f_j - f_i): two thin products instead of what automatic
        # differentiation would keep and multiply.
        saved: Sequence[torch.Tensor] = ctx.saved_tensors
        features, K = saved
        G = grad * K
        sums = (G.sum(dim=2) + G.sum(dim=1)).unsqueeze(-1)
        gradient: torch.Tensor = torch.baddbmm(torch.bmm(G.mT, features), G, features).sub_(sums * features)
        return gradient


def gaussian_gram(features: torch.Tensor) -> torch.Tensor:
    """Return exp(-|f_i - f_j|^2 / 2) of stacked features, differentiable."""
    K: torch.Tensor = GaussianGram.apply(features)  # type: ignore[no-untyped-call]
    return K


class Trainable(ABC):
    """A Gaussian kernel on the features of a network, on one training half: what gradient ascent needs of it."""

    def __init__(self, network: Network, inputs: Array, dtype: torch.dtype, device: str) -> None:
        self.network = network
        self.dtype, self.device = dtype, device
        self._rows = torch.as_tensor(inputs, dtype=dtype, device=device)
        self._lipschitz = network.lipschitz()

    def initialise(self, seeds: list[int]) -> Parameters:
        """Return starting parameters of one member for each seed."""
        return self.network.initialise(seeds, self.dtype, self.device)

    def inputs(self) -> torch.Tensor:
        """Return the rows as the network sees them."""
        return self._rows

    def gram(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        """Return the (E, n, n) kernel matrices of rows."""
        return gaussian_gram(self.network.features(parameters, rows))

    def lipschitz(self, parameters: Parameters) -> tuple[torch.Tensor, torch.Tensor]:
        """Return L(h) and the spectral product of each member, on the mapped inputs; of a network they are the same."""
        product = self._lipschitz(parameters)
        return product, product

    @abstractmethod
    def freeze(self, parameters: Parameters, spectral_product: float) -> Kernel:
        """Return the kernel of one member (parameters without the first dimension)."""


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


class DeepTrainable(Trainable):
    """H_deep on one training half."""

    def __init__(self, family: Deep, train: PreparedPool, dtype: torch.dtype, device: str) -> None:
        self.deep = family
        self.centre, self.scale = input_map(family, train)
        self.row_shape = train.row_shape or (train.matrix.shape[1],)
        network = network_of(family, train.matrix.shape[1], self.row_shape)
        super().__init__(network, (train.matrix - self.centre) / self.scale, dtype, device)

    def freeze(self, parameters: Parameters, spectral_product: float) -> Kernel:
        return self.freeze_network(parameters, spectral_product)

    def freeze_network(self, parameters: Parameters, spectral_product: float) -> DeepKernel:
        """Return the kernel on the features of one member."""
        weights = {name: p.detach().cpu().clone() for name, p in parameters.items()}
        return DeepKernel(self.deep, self.row_shape, weights, self.centre, self.scale, spectral_product)


# The options of a network that a file holds: all but the user's own module and its bound.
OPTIONS = ("width", "depth", "out", "activation", "init", "gain", "bias", "surrogate_width")
PARAMETER = "parameter."  # before the names of its weights in a file


@dataclass(frozen=True, eq=False)
class DeepKernel(FeatureKernel):
    """A trained feature kernel, frozen."""

    family: Deep
    row_shape: tuple[int, ...]
    parameters: Parameters  # the trained weights, one member
    # centre, scale: inputs are (x - centre) / scale
    centre: Array
    scale: float
    spectral_product: float  # lipschitz bound of the network itself; ``lipschitz`` includes the input scale

    described = ("module", "row_shape", "scale", "spectral_product", "lipschitz")

    @property
    def options(self) -> PlainDict:
        """The options of the family that a file holds."""
        return {name: getattr(self.family, name) for name in OPTIONS}

    @property
    def module(self) -> str | None:
        """The class of the user's own network, if it is one."""
        return None if self.family.module is None else type(self.family.module).__name__

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

    def tensors(self) -> Tensors:
        """Return the weights and the inputs' centre."""
        return {**{PARAMETER + name: p.numpy() for name, p in self.parameters.items()}, "centre": self.centre}

    @classmethod
    def restore(cls, described: Description, tensors: Tensors, module: nn.Module | None) -> DeepKernel:
        """Return the kernel that was saved; one of a user's own module needs that module."""
        if described["module"] is not None and module is None:
            raise InputError(f"The kernel was trained on a module of your own ({described['module']}). Pass it as module=.")
        family = Deep(**described["options"], module=module)
        names = [name for name in tensors if name.startswith(PARAMETER)]
        if module is None and len(names) != (family.depth + 1) * (1 + family.bias):
            raise InputError(f"The file's weights are not those of a network of {family.depth} hidden layers. Save it again.")
        kernel = cls(
            family=family,
            row_shape=tuple(described["row_shape"]),
            parameters={name.removeprefix(PARAMETER): torch.from_numpy(np.array(tensors[name])) for name in names},
            centre=np.array(tensors["centre"], dtype=np.float64),
            scale=validation.positive("scale", described["scale"]),
            spectral_product=validation.positive("spectral_product", described["spectral_product"], or_zero=True),
        )
        kernel.features(kernel.centre[None])  # weights that do not fit together fail here, not in the first test
        return kernel

    def __str__(self) -> str:
        what = self.module or f"MLP of {self.family.depth} layers of {self.family.width}"
        return f"Gaussian on {what} features, spectral product {self.spectral_product:.4g}"


# Linear maps while they are trained: a network of one layer without bias, or of one factor a column.

# Sides up to this are decomposed exactly. A map starts as a multiple of the identity, whose singular values are all the same:
# there is no leading one to follow until training has drawn them apart.
EXACT_SIDE = 256
MEDIAN_ROWS = 1000  # for the median distance, spread evenly over the half
ROUNDING = 8 * np.finfo(np.float64).eps  # of the largest value: what sums in another order differ by


class LinearTrainable(Trainable):
    """Linear maps on one training half."""

    def __init__(self, family: LinearMap, train: PreparedPool, dtype: torch.dtype, device: str) -> None:
        self.family = family
        self.centre, self.scale = column_scales(train.matrix)
        self.varying = varies(train.matrix)
        inputs = (train.matrix - self.centre) / self.scale
        columns = inputs.shape[1]
        thinned = inputs[:: max(1, len(inputs) // MEDIAN_ROWS)]
        network = LinearMaps(columns, family.rows_of(columns), family.diagonal, Bandwidth().median_bandwidth(thinned))
        super().__init__(network, inputs, dtype, device)

    def freeze(self, parameters: Parameters, spectral_product: float) -> LinearMapKernel:  # noqa: ARG002 - W tells it
        weight = parameters["weight"].detach().cpu().double().numpy()
        matrix = np.diag(weight) if self.family.diagonal else weight.T.copy()
        return LinearMapKernel(self.family, matrix, self.centre, self.scale, self.varying)


def column_scales(rows: Array) -> tuple[Array, Array]:
    """Return mean and standard deviation of each column; a constant one is in units of the others together."""
    varying = varies(rows)
    centre = np.where(varying, rows.mean(axis=0), rows[0])  # the mean of a constant is it up to rounding only
    largest = np.abs(rows - centre).max(axis=0, initial=0.0)
    unit = np.where(largest > 0, largest, 1.0)  # squares over- and underflow long before deviations do
    deviation = unit * np.sqrt((((rows - centre) / unit) ** 2).mean(axis=0))
    return centre, np.where(varying, deviation, deviation[varying].mean() if varying.any() else 1.0)


def varies(rows: Array) -> Labels:
    """Return which columns vary by more than rounding."""
    low, high = rows.min(axis=0), rows.max(axis=0)
    return np.asarray(high / 2 - low / 2 > ROUNDING / 2 * np.maximum(np.abs(low), np.abs(high)))


@dataclass(frozen=True)
class LinearMaps(Network):
    """x -> W x; W is (columns, rows) in a stack, as layers are, or its diagonal."""

    columns: int
    rows: int
    diagonal: bool
    bandwidth: float

    def initialise(self, seeds: list[int], dtype: torch.dtype, device: str) -> Parameters:
        return {"weight": torch.stack([self._member(seed) for seed in seeds]).to(device, dtype)}

    def _member(self, seed: int) -> torch.Tensor:
        """Start at the median bandwidth: the identity, or a random projection that keeps lengths on average."""
        if self.diagonal:
            return torch.full((self.columns,), 1 / self.bandwidth, dtype=torch.float64)
        if self.rows == self.columns:
            return torch.eye(self.columns, dtype=torch.float64) / self.bandwidth
        drawn = torch.randn(self.columns, self.rows, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        start: torch.Tensor = torch.linalg.qr(drawn).Q * (math.sqrt(self.columns / self.rows) / self.bandwidth)
        return start

    def features(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        weight = parameters["weight"]
        if self.diagonal:
            return rows * weight.unsqueeze(1)
        return torch.bmm(rows.expand(len(weight), *rows.shape), weight)

    def lipschitz(self) -> Callable[[Parameters], torch.Tensor]:
        """The spectral norm of W."""
        if self.diagonal:
            return lambda parameters: parameters["weight"].abs().amax(dim=1)
        norms = SpectralNorms(exact_side=EXACT_SIDE)
        return lambda parameters: norms(parameters["weight"])
