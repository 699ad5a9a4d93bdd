"""Gaussian Gram matrices of stacked features, with a backward pass of one product."""

from __future__ import annotations

from typing import Any, Protocol

import torch

from cpmmd.kernels.base import Kernel
from cpmmd.kernels.deep.networks import Parameters


class GaussianGram(torch.autograd.Function):
    """exp(-|f_i - f_j|^2 / 2) of (E, n, k) features.

    With G = (dJ/dK) * K, dJ/df_i = sum_j (G_ij + G_ji)(f_j - f_i): two thin products instead of what automatic
    differentiation would keep and multiply.
    """

    @staticmethod
    def forward(ctx: Any, features: torch.Tensor) -> torch.Tensor:
        """Return the (E, n, n) kernel matrices."""
        half = 0.5 * (features * features).sum(dim=-1)
        K = torch.bmm(features, features.mT)
        K.sub_(half.unsqueeze(1)).sub_(half.unsqueeze(2)).clamp_(max=0.0).exp_()
        ctx.save_for_backward(features, K)
        return K

    @staticmethod
    def backward(ctx: Any, grad: torch.Tensor) -> torch.Tensor:
        """Return dJ/d(features)."""
        features, K = ctx.saved_tensors
        G = grad * K
        sums = (G.sum(dim=2) + G.sum(dim=1)).unsqueeze(-1)
        gradient: torch.Tensor = torch.baddbmm(torch.bmm(G.mT, features), G, features).sub_(sums * features)
        return gradient


def gaussian_gram(features: torch.Tensor) -> torch.Tensor:
    """Return exp(-|f_i - f_j|^2 / 2) of stacked features, differentiable."""
    K: torch.Tensor = GaussianGram.apply(features)  # type: ignore[no-untyped-call]
    return K


def unit_diagonal(K: torch.Tensor) -> torch.Tensor:
    """Return stacked kernel matrices with a diagonal of exactly one, which parameters cannot move.

    The criteria take k(x, x) = 1 for granted (the squared MMD by what it leaves out, the variance by what it keeps); computed, it
    is 1 up to rounding, and so is its gradient 0.
    """
    return K.masked_fill(torch.eye(K.shape[-1], dtype=torch.bool, device=K.device), 1.0)


class Trainable(Protocol):
    """A kernel class on one training half, in the form that gradient ascent needs."""

    def initialise(self, seeds: list[int]) -> Parameters:
        """Return starting parameters of one member for each seed."""

    def inputs(self) -> torch.Tensor:
        """Return the rows as the network sees them."""

    def gram(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        """Return the (E, n, n) kernel matrices of rows."""

    def lipschitz(self, parameters: Parameters) -> tuple[torch.Tensor, torch.Tensor]:
        """Return L(h) and the spectral product of each member, on the mapped inputs."""

    def freeze(self, parameters: Parameters, spectral_product: float) -> Kernel:
        """Return the kernel of one member (parameters without the first dimension)."""
