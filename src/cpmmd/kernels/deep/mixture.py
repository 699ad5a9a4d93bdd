"""Liu's mixture: [(1 - eps) kappa(phi(x), phi(y)) + eps] q(x, y), both Gaussian, all of it trained."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import nn

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import GaussianBased, Tensors
from cpmmd.kernels.deep.families import Mixture
from cpmmd.kernels.deep.feature_kernel import DeepKernel, DeepTrainable, gaussian_gram, unit_diagonal
from cpmmd.kernels.deep.networks import Parameters

SCALARS = ("log_feature_bandwidth", "log_input_bandwidth", "logit_epsilon")


class MixtureTrainable:
    """Liu's mixture on one training half."""

    def __init__(self, family: Mixture, deep: DeepTrainable) -> None:
        self.family, self.deep = family, deep
        self._distances: torch.Tensor | None = None

    def initialise(self, seeds: list[int]) -> Parameters:
        """Return the network's parameters and the three scalars."""
        rows = self.deep.inputs()
        input_bandwidth = self.family.input_bandwidth or _median_distance(rows)
        start = {
            "log_feature_bandwidth": np.log(self.family.feature_bandwidth),
            "log_input_bandwidth": np.log(input_bandwidth),
            "logit_epsilon": np.log(self.family.epsilon / (1 - self.family.epsilon)),
        }
        scalars = {
            name: torch.full((len(seeds),), float(value), dtype=rows.dtype, device=rows.device) for name, value in start.items()
        }
        return {**self.deep.initialise(seeds), **scalars}

    def inputs(self) -> torch.Tensor:
        """Return the mapped rows."""
        return self.deep.inputs()

    def gram(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        """Return the mixture's kernel matrices."""
        feature_bandwidth, input_bandwidth, epsilon = _scalars(parameters)
        features = self.deep.network.features(_weights(parameters), rows)
        kappa = gaussian_gram(features / feature_bandwidth.view(-1, 1, 1))
        q = torch.exp(-self._squared_distances(rows) / (2 * input_bandwidth.square().view(-1, 1, 1)))
        weight = epsilon.view(-1, 1, 1)
        return unit_diagonal(((1 - weight) * kappa + weight) * q)

    def _squared_distances(self, rows: torch.Tensor) -> torch.Tensor:
        """Return them exactly zero between equal rows; those of the whole training half are computed once."""
        if rows is not self.deep.inputs():
            return squared_distances(rows)
        if self._distances is None:
            self._distances = squared_distances(rows)
        return self._distances

    def lipschitz(self, parameters: Parameters) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (1 - eps) Pi / feature_bandwidth + eps / input_bandwidth, and Pi."""
        feature_bandwidth, input_bandwidth, epsilon = _scalars(parameters)
        _, product = self.deep.lipschitz(_weights(parameters))
        return (1 - epsilon) * product / feature_bandwidth + epsilon / input_bandwidth, product

    def freeze(self, parameters: Parameters, spectral_product: float) -> MixtureKernel:
        """Return the trained kernel of one member."""
        deep = self.deep.freeze(_weights(parameters), spectral_product)
        stacked = {name: p.detach().cpu().double().unsqueeze(0) for name, p in parameters.items() if name in SCALARS}
        values = [float(value[0]) for value in _scalars(stacked)]
        return MixtureKernel(self.family, deep, *values)


def _scalars(parameters: Parameters) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (feature_bandwidth, input_bandwidth, epsilon) from their unconstrained forms."""
    return (
        parameters["log_feature_bandwidth"].exp(),
        parameters["log_input_bandwidth"].exp(),
        parameters["logit_epsilon"].sigmoid(),
    )


def _weights(parameters: Parameters) -> Parameters:
    return {name: p for name, p in parameters.items() if name not in SCALARS}


def squared_distances(rows: torch.Tensor) -> torch.Tensor:
    """Return |x_i - x_j|^2 from differences of coordinates.

    Products would leave up to 1e-4 between equal rows in single precision. Where all other values of q are next to nothing, that
    rounding is all that a bandwidth's gradient has, and Adam makes full steps of it.
    """
    return torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist").square()


def _median_distance(rows: torch.Tensor) -> float:
    distances = torch.pdist(rows)
    distinct = distances[distances > 0]
    return float(distinct.median()) if len(distinct) else 1.0


@dataclass(frozen=True, eq=False)
class MixtureKernel(GaussianBased):
    """A trained mixture, frozen; bandwidths are on the mapped inputs."""

    family: Mixture
    deep: DeepKernel
    feature_bandwidth: float
    input_bandwidth: float
    epsilon: float

    @property
    def lipschitz(self) -> float:
        """The heuristic's L: no Lipschitz constant of a feature map exists."""
        heuristic = (1 - self.epsilon) * self.deep.spectral_product / self.feature_bandwidth + self.epsilon / self.input_bandwidth
        return heuristic / self.deep.scale

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Kernel matrix of ``rows`` with ``others`` (or with themselves)."""
        features = self.deep.features(rows), None if others is None else self.deep.features(others)
        kappa = Bandwidth().gram(self.feature_bandwidth, *features)
        q = Bandwidth().gram(self.input_bandwidth * self.deep.scale, rows, others)
        return np.asarray(((1 - self.epsilon) * kappa + self.epsilon) * q)

    def tensors(self) -> Tensors:
        """The arrays that make the kernel, for saving."""
        return self.deep.tensors()

    def to_dict(self) -> PlainDict:
        """Describe the kernel in plain JSON types."""
        scalars = {name: getattr(self, name) for name in ("feature_bandwidth", "input_bandwidth", "epsilon")}
        return {"family": "Mixture", "options": {}, **scalars, "lipschitz": self.lipschitz, "deep": self.deep.to_dict()}

    @classmethod
    def restore(cls, description: Mapping[str, Any], tensors: Tensors, module: nn.Module | None) -> MixtureKernel:
        """Rebuild a saved kernel."""
        deep = DeepKernel.restore(description["deep"], tensors, module)
        scalars = (validation.positive(name, description[name]) for name in ("feature_bandwidth", "input_bandwidth", "epsilon"))
        return cls(Mixture(features=deep.family), deep, *scalars)

    def __str__(self) -> str:
        return f"mixture at epsilon = {self.epsilon:.3g}, input_bandwidth = {self.input_bandwidth:.4g} of a {self.deep}"
