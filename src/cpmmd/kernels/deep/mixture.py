"""Liu's mixture: [(1 - eps) kappa(phi(x), phi(y)) + eps] q(x, y), both Gaussian, all of it trained."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.data.preparation import PreparedPool
from cpmmd.kernels.base import Description, FrozenKernel, Tensors
from cpmmd.kernels.deep.families import Mixture
from cpmmd.kernels.deep.feature_kernel import DeepKernel, DeepTrainable, gaussian_gram
from cpmmd.kernels.deep.networks import Parameters
from cpmmd.kernels.families import Bandwidth

SCALARS = ("log_feature_bandwidth", "log_input_bandwidth", "logit_epsilon")


class MixtureTrainable(DeepTrainable):
    """Liu's mixture on one training half."""

    def __init__(self, family: Mixture, train: PreparedPool, dtype: torch.dtype, device: str) -> None:
        super().__init__(family.features, train, dtype, device)
        self.family = family
        self._distances: torch.Tensor | None = None

    def initialise(self, seeds: list[int]) -> Parameters:
        """Return the network's parameters and the three scalars."""
        rows = self.inputs()
        starts = (
            np.log(self.family.feature_bandwidth),
            np.log(self.family.input_bandwidth or _median_distance(rows)),
            np.log(self.family.epsilon / (1 - self.family.epsilon)),
        )
        scalars = (torch.full((len(seeds),), float(value), dtype=rows.dtype, device=rows.device) for value in starts)
        return {**super().initialise(seeds), **dict(zip(SCALARS, scalars, strict=True))}

    def gram(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        """Return [(1 - eps) kappa + eps] q, its diagonal exactly one, which parameters cannot move."""
        feature_bandwidth, input_bandwidth, epsilon = _scalars(parameters)
        features = self.network.features(_weights(parameters), rows)
        kappa = gaussian_gram(features / feature_bandwidth.view(-1, 1, 1))
        q = torch.exp(-self._squared_distances(rows) / (2 * input_bandwidth.square().view(-1, 1, 1)))
        weight = epsilon.view(-1, 1, 1)
        K = ((1 - weight) * kappa + weight) * q
        # The criteria take k(x, x) = 1 for granted (the squared MMD by what it leaves out, the variance by what it keeps);
        # computed, it is 1 up to rounding, and so is its gradient 0.
        return K.masked_fill(torch.eye(K.shape[-1], dtype=torch.bool, device=K.device), 1.0)

    def _squared_distances(self, rows: torch.Tensor) -> torch.Tensor:
        """Return |x_i - x_j|^2, exactly zero between equal rows; those of the whole training half are computed once."""
        whole = rows is self.inputs()
        if whole and self._distances is not None:
            return self._distances
        # From differences of coordinates: products would leave up to 1e-4 between equal rows in single precision. Where all
        # other values of q are next to nothing, that rounding is all that a bandwidth's gradient has, and Adam makes full steps
        # of it.
        apart = torch.cdist(rows, rows, compute_mode="donot_use_mm_for_euclid_dist").square()
        if whole:
            self._distances = apart
        return apart

    def lipschitz(self, parameters: Parameters) -> tuple[torch.Tensor, torch.Tensor]:
        """Return (1 - eps) Pi / feature_bandwidth + eps / input_bandwidth, and Pi."""
        feature_bandwidth, input_bandwidth, epsilon = _scalars(parameters)
        _, product = super().lipschitz(_weights(parameters))
        return (1 - epsilon) * product / feature_bandwidth + epsilon / input_bandwidth, product

    def freeze(self, parameters: Parameters, spectral_product: float) -> MixtureKernel:
        network = self.freeze_network(_weights(parameters), spectral_product)
        stacked = {name: parameters[name].detach().cpu().double().unsqueeze(0) for name in SCALARS}
        return MixtureKernel(self.family, network, *(float(value[0]) for value in _scalars(stacked)))


def _scalars(parameters: Parameters) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Return (feature_bandwidth, input_bandwidth, epsilon) from their unconstrained forms."""
    return (
        parameters["log_feature_bandwidth"].exp(),
        parameters["log_input_bandwidth"].exp(),
        parameters["logit_epsilon"].sigmoid(),
    )


def _weights(parameters: Parameters) -> Parameters:
    return {name: p for name, p in parameters.items() if name not in SCALARS}


def _median_distance(rows: torch.Tensor) -> float:
    distances = torch.pdist(rows)
    distinct = distances[distances > 0]
    return float(distinct.median()) if len(distinct) else 1.0


@dataclass(frozen=True, eq=False)
class MixtureKernel(FrozenKernel):
    """A trained mixture, frozen; bandwidths are on the mapped inputs."""

    family: Mixture
    deep: DeepKernel
    feature_bandwidth: float
    input_bandwidth: float
    epsilon: float

    options = {}  # noqa: RUF012 - the numbers below say more than where training began
    described = ("feature_bandwidth", "input_bandwidth", "epsilon", "lipschitz", "deep")

    @property
    def lipschitz(self) -> float:
        """The heuristic's L: no Lipschitz constant of a feature map exists."""
        heuristic = (1 - self.epsilon) * self.deep.spectral_product / self.feature_bandwidth + self.epsilon / self.input_bandwidth
        return heuristic / self.deep.scale

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Return [(1 - eps) kappa + eps] q."""
        features = self.deep.features(rows), None if others is None else self.deep.features(others)
        kappa = Bandwidth().gram(self.feature_bandwidth, *features)
        q = Bandwidth().gram(self.input_bandwidth * self.deep.scale, rows, others)
        return np.asarray(((1 - self.epsilon) * kappa + self.epsilon) * q)

    def tensors(self) -> Tensors:
        """Return the arrays of the network."""
        return self.deep.tensors()

    @classmethod
    def restore(cls, described: Description, tensors: Tensors, module: nn.Module | None) -> MixtureKernel:
        """Return the kernel that was saved."""
        deep = DeepKernel.restore(described["deep"], tensors, module)
        scalars = (validation.positive(name, described[name]) for name in ("feature_bandwidth", "input_bandwidth", "epsilon"))
        return cls(Mixture(features=deep.family), deep, *scalars)

    def __str__(self) -> str:
        return f"mixture at epsilon = {self.epsilon:.3g}, input_bandwidth = {self.input_bandwidth:.4g} of a {self.deep}"
