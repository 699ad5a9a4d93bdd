"""Stacks of networks: E members of one architecture, evaluated together, with the Lipschitz bound of each.

One member is the deployed network; n_cal members are a calibration, trained in one run.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import nn

from cpmmd.errors import InputError

SMALL = 32  # sides up to this are decomposed exactly
BLOCK = 8  # singular vectors followed
DEPTH = 3  # products with W'W in a round
# Relative growth of the squared norm over a round that ends the search: what training in single precision can use, and what
# double precision is asked for (the norm is then right to 1e-10).
TOLERANCE = {torch.float32: 1e-5, torch.float64: 1e-13}
MAX_ROUNDS = 20


class SpectralNorms:
    """Spectral norms of a stack of matrices that change from step to step, differentiable: u' W v with u and v held.

    Small sides are decomposed exactly; of others a block of leading singular vectors is followed by block Krylov iteration on
    W'W, each call starting from where the last one ended. (Plain power iteration was wrong by 5 to 50%: the first steps of Adam
    add a direction that overtakes the followed one.)
    """

    def __init__(self, *, exact_side: int = SMALL) -> None:
        self.exact_side = exact_side
        self.followed: torch.Tensor | None = None

    def __call__(self, matrices: torch.Tensor) -> torch.Tensor:
        """Return the norm of each matrix of an (E, rows, columns) stack."""
        with torch.no_grad():
            u, v = self._leading(matrices.detach())
        return (u.mT @ matrices @ v).flatten()

    def _leading(self, W: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor]:
        """Return the leading left and right singular vectors as columns."""
        tall = W if W.shape[1] >= W.shape[2] else W.mT  # columns are the smaller side
        if tall.shape[2] <= self.exact_side or self.followed is None:
            self.followed = torch.linalg.eigh(tall.mT @ tall).eigenvectors[:, :, -BLOCK:]
        else:
            self.followed = _follow(tall, self.followed)
        v = self.followed[:, :, -1:]
        image = tall @ v
        u = image / torch.linalg.vector_norm(image, dim=1, keepdim=True).clamp(min=torch.finfo(W.dtype).tiny)
        return (u, v) if tall is W else (v, u)


def _follow(tall: torch.Tensor, block: torch.Tensor) -> torch.Tensor:
    """Return the leading right singular vectors near a block of earlier ones, the largest last."""
    value = (tall @ block[:, :, -1:]).square().sum(dim=(1, 2))
    tolerance = TOLERANCE.get(tall.dtype, 1e-5)
    for _ in range(MAX_ROUNDS):
        parts = [block]
        for _ in range(DEPTH):
            step = tall.mT @ (tall @ parts[-1])
            parts.append(step / torch.linalg.vector_norm(step, dim=1, keepdim=True).clamp(min=torch.finfo(step.dtype).tiny))
        basis = torch.linalg.qr(torch.cat(parts, dim=2)).Q
        image = tall @ basis
        ritz = torch.linalg.eigh(image.mT @ image)
        block = basis @ ritz.eigenvectors[:, :, -block.shape[2] :]
        before, value = value, ritz.eigenvalues[:, -1]
        if bool((value - before <= tolerance * value).all()):
            return block
    if tall.dtype == torch.float64:
        block = torch.linalg.eigh(tall.mT @ tall).eigenvectors[:, :, -block.shape[2] :]
    return block


Parameters = dict[str, torch.Tensor]

FUNCTIONS: dict[str, Callable[[torch.Tensor], torch.Tensor]] = {  # all 1-Lipschitz
    "leaky-relu": lambda x: nn.functional.leaky_relu(x, inplace=True),
    "relu": torch.relu_,
    "tanh": torch.tanh,
    "softplus": nn.functional.softplus,
    "elu": nn.functional.elu,
}


class Network(ABC):
    """An architecture whose members are stacked along a first dimension E of every parameter."""

    @abstractmethod
    def initialise(self, seeds: list[int], dtype: torch.dtype, device: str) -> Parameters:
        """Return the parameters of one member for each seed; a member depends on its own seed only."""

    @abstractmethod
    def features(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        """Return the (E, n, k) features of n rows."""

    @abstractmethod
    def lipschitz(self) -> Callable[[Parameters], torch.Tensor]:
        """Return a function from parameters to the (E,) Lipschitz bounds, for parameters that change slowly."""


def _start(init: str, shape: tuple[int, int], biases: int, g: torch.Generator, dtype: torch.dtype) -> list[torch.Tensor]:
    """Draw the weight of a layer and its biases."""
    fan_in, fan_out = shape
    if init == "torch":  # uniform of variance 1/(3 fan_in), as torch.nn.Linear
        return [(2 * torch.rand(size, generator=g, dtype=dtype) - 1) * (1 / math.sqrt(fan_in)) for size in (shape, (biases,))]
    variance = 2 / fan_in if init == "kaiming" else 2 / (fan_in + fan_out)
    return [math.sqrt(variance) * torch.randn(shape, generator=g, dtype=dtype), torch.zeros(biases, dtype=dtype)]


@dataclass(frozen=True)
class Mlp(Network):
    """sizes[0] -> ... -> sizes[-1], an activation between layers."""

    sizes: tuple[int, ...]
    activation: str
    init: str
    bias: bool
    gain: float = 1.0

    def initialise(self, seeds: list[int], dtype: torch.dtype, device: str) -> Parameters:
        members = [self._member(torch.Generator().manual_seed(seed), dtype) for seed in seeds]
        return {name: torch.stack([member[name] for member in members]).to(device) for name in members[0]}

    def _member(self, generator: torch.Generator, dtype: torch.dtype) -> Parameters:
        drawn = {}
        for layer, shape in enumerate(zip(self.sizes[:-1], self.sizes[1:], strict=True)):
            weight, bias = _start(self.init, shape, shape[1] if self.bias else 0, generator, dtype)
            drawn[f"weight{layer}"] = self.gain * weight
            if self.bias:
                drawn[f"bias{layer}"] = bias
        return drawn

    def features(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        hidden = rows.expand(parameters["weight0"].shape[0], *rows.shape)
        for layer in range(len(self.sizes) - 1):
            if layer:
                hidden = FUNCTIONS[self.activation](hidden)
            weight = parameters[f"weight{layer}"]
            if self.bias:
                hidden = torch.baddbmm(parameters[f"bias{layer}"].unsqueeze(1), hidden, weight)
            else:
                hidden = torch.bmm(hidden, weight)
        return hidden

    def lipschitz(self) -> Callable[[Parameters], torch.Tensor]:
        """The product of the layers' spectral norms (Bartlett et al. 2017)."""
        norms = [SpectralNorms() for _ in self.sizes[1:]]
        return lambda parameters: torch.stack([n(parameters[f"weight{i}"]) for i, n in enumerate(norms)]).prod(dim=0)


class ModuleNetwork(Network):
    """Any torch module from rows to features; every member starts from the module's own weights."""

    def __init__(
        self, module: nn.Module, lipschitz: Callable[[Parameters], torch.Tensor] | None, row_shape: tuple[int, ...]
    ) -> None:
        self.module = module.eval()
        self.row_shape = row_shape
        self.trained = {name: p.detach() for name, p in module.named_parameters() if p.requires_grad}
        self.fixed = {name: p.detach() for name, p in module.named_parameters() if not p.requires_grad}
        self.fixed |= {name: b.detach() for name, b in module.named_buffers()}
        self.given_lipschitz = lipschitz
        if not self.trained:
            raise InputError("The module has no parameter with requires_grad=True: there is nothing to train. Unfreeze a layer.")
        if lipschitz is None:
            self.steps = lipschitz_steps(module)

    def initialise(self, seeds: list[int], dtype: torch.dtype, device: str) -> Parameters:
        self.fixed = {n: b.to(device, dtype if b.is_floating_point() else b.dtype) for n, b in self.fixed.items()}
        return {name: p.to(device, dtype).expand(len(seeds), *p.shape).clone() for name, p in self.trained.items()}

    def features(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        """Run all members at once (torch.func.vmap over stacked parameters)."""
        shaped = rows.reshape(len(rows), *self.row_shape)

        def one(member: Parameters) -> torch.Tensor:
            out: torch.Tensor = torch.func.functional_call(self.module, {**member, **self.fixed}, (shaped,))
            return out

        try:
            out = torch.func.vmap(one, randomness="different")(parameters)
        except (RuntimeError, ValueError, TypeError, IndexError) as error:
            raise InputError(
                f"The module could not take rows of shape {self.row_shape}: {str(error).splitlines()[0]} "
                "Pass the samples as arrays of shape (rows, *shape of one row)."
            ) from error
        if not isinstance(out, torch.Tensor) or out.ndim < 3 or out.shape[1] != len(rows):
            got = tuple(out.shape[1:]) if isinstance(out, torch.Tensor) else type(out).__name__
            raise InputError(f"The module must return one feature vector per row, shape ({len(rows)}, k). Got {got} instead.")
        return out.reshape(out.shape[0], len(rows), -1)

    def lipschitz(self) -> Callable[[Parameters], torch.Tensor]:
        """The user's bound, or the product over the known layers."""
        if self.given_lipschitz is not None:
            return torch.func.vmap(self.given_lipschitz)
        steps = [(step, SpectralNorms()) for step in self.steps]

        def bound(parameters: Parameters) -> torch.Tensor:
            first = next(iter(parameters.values()))
            product = torch.ones(len(first), dtype=first.dtype)
            for step, norm in steps:
                product = product * step.bound(parameters, self.fixed, norm)
            return product

        return bound


@dataclass(frozen=True)
class LipschitzStep:
    """One layer's factor: a constant, times the spectral norm of a weight seen as a matrix, times a diagonal's largest entry."""

    constant: float
    weight: str | None = None
    diagonal: tuple[str, str, float] | None = None  # batch norm: weight, running variance, eps

    def bound(self, parameters: Parameters, fixed: Parameters, norm: SpectralNorms) -> torch.Tensor | float:
        """Return the layer's Lipschitz bound of each member."""
        if self.weight is not None:
            if self.weight in parameters:
                stacked = parameters[self.weight]
                return self.constant * norm(stacked.reshape(stacked.shape[0], stacked.shape[1], -1))
            return self.constant * float(torch.linalg.matrix_norm(fixed[self.weight].flatten(1), 2))
        if self.diagonal is not None:
            name, variance, eps = self.diagonal
            scale = (fixed[variance] + eps).rsqrt()
            weight = parameters[name] if name in parameters else fixed[name].unsqueeze(0)
            return self.constant * (weight.abs() * scale).amax(dim=1)
        return self.constant


ONE_LIPSCHITZ = (
    nn.ReLU, nn.Tanh, nn.Identity, nn.Flatten, nn.Unflatten, nn.Dropout, nn.Dropout2d, nn.Softplus, nn.Hardtanh, nn.ReLU6,
    nn.LogSigmoid, nn.Softsign, nn.AdaptiveAvgPool2d, nn.AdaptiveMaxPool2d, nn.AdaptiveAvgPool1d, nn.AdaptiveMaxPool1d,
)  # fmt: skip
# Largest slopes, rounded up.
SLOPES: dict[type[nn.Module], float] = {**dict.fromkeys(ONE_LIPSCHITZ, 1.0), nn.Sigmoid: 0.25, nn.GELU: 1.13, nn.SiLU: 1.1}


def lipschitz_steps(module: nn.Module, prefix: str = "") -> list[LipschitzStep]:
    """List the Lipschitz factors of a chain of known layers; anything else is refused by name."""
    if isinstance(module, nn.Sequential):
        return [step for name, child in module.named_children() for step in lipschitz_steps(child, f"{prefix}{name}.")]
    return [_layer_step(module, prefix)]


def _layer_step(layer: nn.Module, prefix: str) -> LipschitzStep:
    if isinstance(layer, nn.Linear):
        return LipschitzStep(1.0, weight=f"{prefix}weight")
    if isinstance(layer, (nn.Conv1d, nn.Conv2d)) and layer.padding_mode == "zeros":
        # Each patch meets the weight, reshaped to a matrix, once.
        return LipschitzStep(_overlaps(layer.kernel_size, layer.stride), weight=f"{prefix}weight")
    if isinstance(layer, (nn.MaxPool1d, nn.MaxPool2d, nn.AvgPool1d, nn.AvgPool2d)):
        return LipschitzStep(_overlaps(layer.kernel_size, layer.stride or layer.kernel_size))
    if isinstance(layer, (nn.BatchNorm1d, nn.BatchNorm2d)) and layer.affine and layer.track_running_stats:
        return LipschitzStep(1.0, diagonal=(f"{prefix}weight", f"{prefix}running_var", layer.eps))
    if isinstance(layer, nn.LeakyReLU):
        return LipschitzStep(max(1.0, abs(layer.negative_slope)))
    if isinstance(layer, nn.ELU):
        return LipschitzStep(max(1.0, layer.alpha))
    for kind, slope in SLOPES.items():
        if isinstance(layer, kind):
            return LipschitzStep(slope)
    raise InputError(
        f"No Lipschitz bound is known for the layer {type(layer).__name__} ({prefix.rstrip('.') or 'the module itself'}). Use a "
        "torch.nn.Sequential of linear, convolution, pooling and activation layers, or pass lipschitz=: a function from the dict "
        "of the module's trained parameters to a scalar tensor that bounds its Lipschitz constant."
    )


def _overlaps(sides: int | tuple[int, ...], strides: int | tuple[int, ...]) -> float:
    """Return the root of how many patches a pixel is in: at most ceil(k/s) a direction."""
    pairs = zip(*(value if isinstance(value, tuple) else (value,) for value in (sides, strides)), strict=True)
    return math.sqrt(math.prod(math.ceil(k / s) for k, s in pairs))
