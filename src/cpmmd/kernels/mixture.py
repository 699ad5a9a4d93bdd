"""Liu's mixture: [(1 - eps) kappa(phi(x), phi(y)) + eps] q(x, y), both Gaussian, all of it trained."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import nn

from cpmmd import validation
from cpmmd.errors import InputError
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.base import GaussianBased
from cpmmd.kernels.deep import Deep, DeepKernel, DeepTrainable
from cpmmd.kernels.deep.gram import gaussian_gram
from cpmmd.kernels.deep.networks import Parameters
from cpmmd.samples import Array, TwoSample

SCALARS = ("log_sigma_kappa", "log_sigma_q", "logit_epsilon")


@dataclass(frozen=True)
class Mixture:
    """Liu et al.'s deep kernel over a feature network.

    Parameters
    ----------
    features
        The network phi and its options.
    sigma_kappa, sigma_q
        Starting bandwidths on features and on inputs; None for ``sigma_q`` is the median distance of the training half.
    epsilon
        Starting weight of the raw kernel, between 0 and 1.

    Notes
    -----
    The kernel is no composite kernel, so the paper's theorems do not cover it; its complexity is the paper's heuristic
    (1 - eps) Pi / sigma_kappa + eps / sigma_q, and C1 is calibrated on the pure feature kernel.
    """

    features: Deep = field(default_factory=Deep)
    sigma_kappa: float = 1.0
    sigma_q: float | None = None
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        if not isinstance(self.features, Deep):
            raise InputError(f"The 'features' parameter must be a Deep(...) family. Got {self.features!r} instead.")
        validation.positive("sigma_kappa", self.sigma_kappa)
        if self.sigma_q is not None:
            validation.positive("sigma_q", self.sigma_q)
        validation.open_unit("epsilon", self.epsilon)

    def trainable(self, train: TwoSample, dtype: torch.dtype, device: str) -> MixtureTrainable:
        """Give this class on one training half, for gradient ascent."""
        return MixtureTrainable(self, self.features.trainable(train, dtype, device))

    def for_calibration(self) -> tuple[Deep, str]:
        """Give the pure feature class: its C1 is reused (App. deep ablation)."""
        family, note = self.features.for_calibration()
        return family, note or "C1 calibrated on the pure feature kernel"


class MixtureTrainable:
    """Liu's mixture on one training half."""

    def __init__(self, family: Mixture, deep: DeepTrainable) -> None:
        self.family, self.deep = family, deep

    def initialise(self, seeds: list[int]) -> Parameters:
        """Give the network's parameters and the three scalars."""
        rows = self.deep.inputs()
        sigma_q = self.family.sigma_q or _median_distance(rows)
        start = {
            "log_sigma_kappa": np.log(self.family.sigma_kappa),
            "log_sigma_q": np.log(sigma_q),
            "logit_epsilon": np.log(self.family.epsilon / (1 - self.family.epsilon)),
        }
        scalars = {
            name: torch.full((len(seeds),), float(value), dtype=rows.dtype, device=rows.device) for name, value in start.items()
        }
        return {**self.deep.initialise(seeds), **scalars}

    def inputs(self) -> torch.Tensor:
        """Give the mapped rows."""
        return self.deep.inputs()

    def gram(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        """Give the mixture's kernel matrices."""
        sigma_kappa, sigma_q, epsilon = _scalars(parameters)
        raw = torch.cdist(rows, rows).square()
        features = self.deep.network.features(_weights(parameters), rows)
        kappa = gaussian_gram(features / sigma_kappa.view(-1, 1, 1))
        q = torch.exp(-raw / (2 * sigma_q.square().view(-1, 1, 1)))
        weight = epsilon.view(-1, 1, 1)
        return ((1 - weight) * kappa + weight) * q

    def lipschitz(self, parameters: Parameters) -> tuple[torch.Tensor, torch.Tensor]:
        """Give (1 - eps) Pi / sigma_kappa + eps / sigma_q, and Pi."""
        sigma_kappa, sigma_q, epsilon = _scalars(parameters)
        _, product = self.deep.lipschitz(_weights(parameters))
        return (1 - epsilon) * product / sigma_kappa + epsilon / sigma_q, product

    def freeze(self, parameters: Parameters, spectral_product: float) -> MixtureKernel:
        """Give the trained kernel of one member."""
        deep = self.deep.freeze(_weights(parameters), spectral_product)
        stacked = {name: p.detach().cpu().double().unsqueeze(0) for name, p in parameters.items() if name in SCALARS}
        values = [float(value[0]) for value in _scalars(stacked)]
        return MixtureKernel(self.family, deep, *values)


def _scalars(parameters: Parameters) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
    """Give (sigma_kappa, sigma_q, epsilon) from their unconstrained forms."""
    return parameters["log_sigma_kappa"].exp(), parameters["log_sigma_q"].exp(), parameters["logit_epsilon"].sigmoid()


def _weights(parameters: Parameters) -> Parameters:
    return {name: p for name, p in parameters.items() if name not in SCALARS}


def _median_distance(rows: torch.Tensor) -> float:
    distances = torch.pdist(rows)
    distinct = distances[distances > 0]
    return float(distinct.median()) if len(distinct) else 1.0


@dataclass(frozen=True, eq=False)
class MixtureKernel(GaussianBased):
    """A trained mixture, frozen; bandwidths are on the mapped inputs."""

    family: Mixture
    deep: DeepKernel
    sigma_kappa: float
    sigma_q: float
    epsilon: float

    @property
    def lipschitz(self) -> float:
        """The heuristic's L: no Lipschitz constant of a feature map exists."""
        heuristic = (1 - self.epsilon) * self.deep.spectral_product / self.sigma_kappa + self.epsilon / self.sigma_q
        return heuristic / self.deep.scale

    def gram(self, rows: Array, others: Array | None = None) -> Array:
        """Kernel matrix of ``rows`` with ``others`` (or with themselves)."""
        features = self.deep.features(rows), None if others is None else self.deep.features(others)
        kappa = Bandwidth().gram(self.sigma_kappa, *features)
        q = Bandwidth().gram(self.sigma_q * self.deep.scale, rows, others)
        return np.asarray(((1 - self.epsilon) * kappa + self.epsilon) * q)

    def tensors(self) -> dict[str, Any]:
        """The arrays that make the kernel, for saving."""
        return self.deep.tensors()

    def to_dict(self) -> dict[str, object]:
        """Describe the kernel in plain JSON types."""
        scalars = {name: getattr(self, name) for name in ("sigma_kappa", "sigma_q", "epsilon")}
        return {"type": "mixture", **scalars, "lipschitz": self.lipschitz, "deep": self.deep.to_dict()}

    @classmethod
    def restore(cls, description: dict[str, Any], tensors: dict[str, Any], module: nn.Module | None) -> MixtureKernel:
        """Rebuild a saved kernel."""
        deep = DeepKernel.restore(description["deep"], tensors, module)
        scalars = (validation.positive(name, description[name]) for name in ("sigma_kappa", "sigma_q", "epsilon"))
        return cls(Mixture(features=deep.family), deep, *scalars)

    def __str__(self) -> str:
        return f"mixture at epsilon = {self.epsilon:.3g}, sigma_q = {self.sigma_q:.4g} of a {self.deep}"
