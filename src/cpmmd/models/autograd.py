"""Densities of torch: their gradient by automatic differentiation. torch is imported when a model of it is used."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.installation import require
from cpmmd.errors import InputError
from cpmmd.models.model import Draw, Model

NO_NUMBER_A_ROW = (
    "A torch log-density must return one number for each row, as a tensor that depends on them. {name} returns {got} for rows "
    "of shape {shape}."
)


class TorchDensity:
    """A log-density, up to a constant, that torch can differentiate.

    Parameters
    ----------
    log_density : callable
        A tensor of rows (n x d, float64) to a tensor of n log-densities; a module with parameters works as well.
    sample : callable, optional
        ``sample(n, rng)`` returns n independent rows of the model. With it the test is exact.
    name : str
        What to call the model.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import TorchDensity, goodness_of_fit_test
    >>> x = np.random.default_rng(0).normal(size=(100, 2))
    >>> goodness_of_fit_test(x, TorchDensity(lambda rows: -(rows**2).sum(1) / 2), rng=0).reject
    False
    """

    def __init__(self, log_density: Callable[[Any], Any], *, sample: Draw | None = None, name: str = "the model") -> None:
        self.log_density, self.sample, self.name = log_density, sample, name


def of_torch(given: object) -> Model | None:
    """Return the model of a TorchDensity, a torch distribution or a module; None for anything else."""
    if isinstance(given, TorchDensity):
        require("A TorchDensity", ("torch",), "deep")
        return _model(given.log_density, given.sample, given.name)
    kinds = {f"{kind.__module__}.{kind.__name__}" for kind in type(given).__mro__}
    name = type(given).__name__
    if "torch.distributions.distribution.Distribution" in kinds:
        return _of_distribution(given, name)
    if "torch.nn.modules.module.Module" in kinds:
        return _model(given, None, name)  # type: ignore[arg-type]
    return None


def _of_distribution(given: Any, name: str) -> Model:
    shape = tuple(given.batch_shape) + tuple(given.event_shape)
    columns = 1 if shape == () else int(np.prod(shape))

    def log_density(rows: Any) -> Any:
        return given.log_prob(rows.reshape(len(rows), *shape).to(rows.dtype)).reshape(len(rows), -1).sum(dim=1)

    def sample(count: int, rng: np.random.Generator) -> Array:
        import torch

        with torch.random.fork_rng(devices=[]):  # the caller's stream stays where it is
            torch.manual_seed(int(rng.integers(2**32)))
            return np.asarray(given.sample((count,)).reshape(count, columns).double().numpy())

    return _model(log_density, sample, name, columns)


def _model(log_density: Callable[[Any], Any], sample: Draw | None, name: str, columns: int | None = None) -> Model:
    def score(rows: Array) -> Array:
        import torch

        at = torch.tensor(rows, dtype=torch.float64, requires_grad=True)
        try:
            found = log_density(at)
        except RuntimeError as error:  # a module in single precision
            if "dtype" not in str(error):
                raise
            found = log_density(at.float())
        if not isinstance(found, torch.Tensor) or found.numel() != len(rows) or not found.requires_grad:
            got = f"shape {tuple(found.shape)}" if isinstance(found, torch.Tensor) else type(found).__name__
            raise InputError(NO_NUMBER_A_ROW, parameter="model", name=name, got=got, shape=rows.shape)
        (gradient,) = torch.autograd.grad(found.sum(), at)
        return np.asarray(gradient.numpy())

    return Model(name, score, "automatic", columns, sample=sample)
