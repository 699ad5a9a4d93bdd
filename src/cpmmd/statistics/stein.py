"""Kernel Stein discrepancy (Liu, Lee, Jordan 2016; Chwialkowski, Strathmann, Gretton 2016): how far rows are from a density.

With the score s = grad log p of the model, which does not depend on the density's constant, and a base kernel k,

    h(x, y) = s(x)'s(y) k + s(x)' grad_y k + s(y)' grad_x k + trace(grad_x grad_y k)

has mean zero in either argument where rows come from p. KSD^2 is the mean of h over pairs of rows.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal, Protocol

import numpy as np

from cpmmd.core.arrays import Array

BaseName = Literal["imq", "gaussian"]


@dataclass(frozen=True, eq=False)
class Scored:
    """Rows with the scores of a model there."""

    rows: Array
    scores: Array

    def __len__(self) -> int:
        return len(self.rows)

    def take(self, where: slice | Array) -> Scored:
        """Return some rows."""
        return Scored(self.rows[where], self.scores[where])


@dataclass(frozen=True, eq=False)
class Pairs:
    """What Stein kernels of any base and bandwidth need to know of pairs of rows."""

    squared: Array  # |x - y|^2
    inner: Array  # s(x)'s(y)
    cross: Array  # (x - y)'(s(y) - s(x)): positive where the density is log-concave
    columns: int

    @classmethod
    def of(cls, a: Scored, b: Scored) -> Pairs:
        """Return the pairs of each row of ``a`` with each of ``b``."""
        centre = b.rows.mean(axis=0)  # differences alone matter, and lose fewer digits near zero
        x, y = a.rows - centre, b.rows - centre
        squared = np.square(x).sum(axis=1)[:, None] + np.square(y).sum(axis=1) - 2 * x @ y.T
        own = (x * a.scores).sum(axis=1)[:, None] + (y * b.scores).sum(axis=1)
        cross = x @ b.scores.T + a.scores @ y.T - own
        return cls(np.maximum(squared, 0.0), a.scores @ b.scores.T, cross, x.shape[1])


class PairKernel(Protocol):
    """A kernel of pairs of rows."""

    @property
    def bandwidth(self) -> float:
        """Its bandwidth."""
        ...

    def of(self, pairs: Pairs) -> Array:
        """Return its value at every pair."""
        ...


@dataclass(frozen=True)
class GaussianKernel:
    """exp(-d^2 / 2 b^2): it asks for no score, and sees mass where a Stein kernel sees slopes."""

    bandwidth: float

    def of(self, pairs: Pairs) -> Array:
        """Return k of every pair."""
        return np.asarray(np.exp(pairs.squared / (-2 * self.bandwidth**2)))


@dataclass(frozen=True)
class SteinKernel:
    """The Stein kernel h of a base kernel: ``imq`` (1 + d^2 / b^2)^(-1/2), ``gaussian`` exp(-d^2 / 2 b^2)."""

    base: BaseName
    bandwidth: float

    def of(self, pairs: Pairs) -> Array:
        """Return h of every pair."""
        g = self.bandwidth**-2
        if self.base == "gaussian":
            k = np.exp(-0.5 * g * pairs.squared)
            return np.asarray(k * (pairs.inner + g * (pairs.columns - pairs.cross) - g * g * pairs.squared))
        slope = g / (1 + g * pairs.squared)  # k'/k = -slope / 2 in the squared distance
        inside = pairs.inner + slope * (pairs.columns - pairs.cross) - 3 * slope * slope * pairs.squared
        return np.asarray(inside * np.sqrt(slope / g))

    def matrix(self, a: Scored, b: Scored | None = None) -> Array:
        """Return h of the rows of ``a`` with those of ``b``, or with each other."""
        return self.of(Pairs.of(a, a if b is None else b))


def squared_ksd(matrix: Array) -> float:
    """Return the unbiased KSD^2: the mean over pairs of different rows."""
    n = len(matrix)
    return float((matrix.sum() - np.trace(matrix)) / (n * (n - 1)))
