"""Linear maps while they are trained: a network of one layer without bias, or of one factor a column."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import torch

from cpmmd.core.arrays import Array, Labels
from cpmmd.data.prepared import PreparedPool
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.deep.feature_kernel import NetworkTrainable
from cpmmd.kernels.deep.networks import Network, Parameters
from cpmmd.kernels.deep.spectral import SpectralNorms
from cpmmd.kernels.linear_map import LinearMap, LinearMapKernel

# Sides up to this are decomposed exactly. A map starts as a multiple of the identity, whose singular values are all the same:
# there is no leading one to follow until training has drawn them apart.
EXACT_SIDE = 256
MEDIAN_ROWS = 1000  # for the median distance, spread evenly over the half
ROUNDING = 8 * np.finfo(np.float64).eps  # of the largest value: what sums in another order differ by


class LinearTrainable(NetworkTrainable):
    """Linear maps on one training half."""

    def __init__(self, family: LinearMap, train: PreparedPool, dtype: torch.dtype, device: str) -> None:
        self.family = family
        self.centre, self.scale = column_scales(train.matrix)
        self.varying = varies(train.matrix)
        inputs = (train.matrix - self.centre) / self.scale
        columns = inputs.shape[1]
        every = inputs[:: max(1, len(inputs) // MEDIAN_ROWS)]
        network = LinearMaps(columns, family.rows_of(columns), family.diagonal, Bandwidth().median_bandwidth(every))
        super().__init__(network, inputs, dtype, device)

    def freeze(self, parameters: Parameters, spectral_product: float) -> LinearMapKernel:  # noqa: ARG002 - W tells it
        """Return the trained kernel of one member."""
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
        """Start at the median bandwidth: the identity, or a random projection that keeps lengths on average."""
        return {"weight": torch.stack([self._member(seed) for seed in seeds]).to(device, dtype)}

    def _member(self, seed: int) -> torch.Tensor:
        if self.diagonal:
            return torch.full((self.columns,), 1 / self.bandwidth, dtype=torch.float64)
        if self.rows == self.columns:
            return torch.eye(self.columns, dtype=torch.float64) / self.bandwidth
        drawn = torch.randn(self.columns, self.rows, generator=torch.Generator().manual_seed(seed), dtype=torch.float64)
        start: torch.Tensor = torch.linalg.qr(drawn).Q * (math.sqrt(self.columns / self.rows) / self.bandwidth)
        return start

    def features(self, parameters: Parameters, rows: torch.Tensor) -> torch.Tensor:
        """One batched product."""
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
