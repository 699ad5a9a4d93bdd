"""How much of the squared MMD goes when a feature is permuted across the pool."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cpmmd.kernels.additive import AdditiveForm, additive_form
from cpmmd.kernels.base import SelectedKernel
from cpmmd.kernels.tiles import cut
from cpmmd.mmd import quadratic_constant, u_centre
from cpmmd.samples import Array, Labels

Orders = npt.NDArray[np.intp]  # one permutation of the rows in each row
Group = tuple[int, ...]  # matrix columns that are permuted together
TILE_ROWS = 64  # a tile of 64 rows by some 1000 columns stays in a core's cache


@dataclass(frozen=True, eq=False)
class Drops:
    """Squared MMD with all features in place, and what it loses.

    Attributes
    ----------
    mmd2
        The unbiased estimate on these rows.
    noise
        Its standard deviation over relabelings: what is no more than this is no difference.
    lost
        mmd2 less that with one feature permuted: a row for each feature, a column for each permutation.
    """

    mmd2: float
    noise: float
    lost: Array

    @property
    def unit(self) -> float:
        """What contributions are shares of: the squared MMD, or its noise where that is larger."""
        return max(self.mmd2, self.noise)

    @property
    def shares(self) -> Array:
        """Mean share lost for each feature."""
        return self._in_units(self.lost.mean(axis=1))

    @property
    def standard_errors(self) -> Array:
        """Standard errors of the shares over the permutations."""
        count = self.lost.shape[1]
        return self._in_units(self.lost.std(axis=1, ddof=1) / math.sqrt(count))

    def _in_units(self, values: Array) -> Array:
        return values / self.unit if self.unit > 0 else np.zeros_like(values)


def permutation_drops(rows: Array, labels: Labels, kernel: SelectedKernel, groups: Sequence[Group], orders: Orders) -> Drops:
    """Permute each group of columns by each of ``orders`` and give what the squared MMD loses.

    Notes
    -----
    Cost: groups x permutations x rows^2 / 2 kernel values where the kernel's distance adds up over columns; twice that, and the
    feature map each time, for other kernels.
    """
    K = kernel.gram(rows)
    sides = np.column_stack([labels, ~labels]).astype(np.float64)
    mmd2 = _mmd2(sides.T @ K @ sides, K.diagonal() @ sides, sides)
    form = additive_form(kernel)
    if form is not None:
        changed = _by_distances(rows, sides, form, list(enumerate(groups)), orders)
    else:
        changed = _by_recomputing(rows, sides, kernel, list(enumerate(groups)), orders)
    values = np.empty((len(groups), len(orders)))
    for position, permuted in changed:
        values[position] = permuted
    return Drops(mmd2, _noise(K, sides), mmd2 - values)


def _by_recomputing(
    rows: Array, sides: Array, kernel: SelectedKernel, groups: list[tuple[int, Group]], orders: Orders
) -> Iterator[tuple[int, list[float]]]:
    """Give the squared MMDs of kernels that mix columns: the whole matrix anew for each permutation."""
    changed = rows.copy()
    for position, group in groups:
        columns, permuted = list(group), []
        for order in orders:
            changed[:, columns] = rows[order][:, columns]
            K = kernel.gram(changed)
            permuted.append(_mmd2(sides.T @ K @ sides, K.diagonal() @ sides, sides))
        changed[:, columns] = rows[:, columns]
        yield position, permuted


def _by_distances(
    rows: Array, sides: Array, form: AdditiveForm, groups: list[tuple[int, Group]], orders: Orders
) -> Iterator[tuple[int, list[float]]]:
    """Give the squared MMDs by exchanging one group's part of the distances."""
    for position, group, outside in _without_each(rows, groups, form, np.zeros((len(rows), len(rows)))):
        own = form.distances(rows[:, list(group)])
        yield position, [_exchanged(outside, own, order, form, sides) for order in orders]


def _without_each(
    rows: Array, groups: list[tuple[int, Group]], form: AdditiveForm, outside: Array
) -> Iterator[tuple[int, Group, Array]]:
    """Give each group with the distances that all other columns make.

    Halving adds each group about log2(groups) times and subtracts nothing: beside a column of 1e12 the distances of a column
    of 1 would not survive a subtraction.
    """
    if len(groups) == 1:
        yield (*groups[0], outside)
        return
    left, right = groups[: len(groups) // 2], groups[len(groups) // 2 :]
    for these, those in ((left, right), (right, left)):
        columns = [column for _, group in those for column in group]
        yield from _without_each(rows, these, form, outside + form.distances(rows[:, columns]))


def _exchanged(outside: Array, own: Array, order: npt.NDArray[np.intp], form: AdditiveForm, sides: Array) -> float:
    """Give the squared MMD with one group's distances in another order of rows, from one triangle of tiles."""
    sums = np.zeros((2, 2))
    for block in cut(len(order), TILE_ROWS):
        rest = slice(block.start, None)
        tile = np.take(own[order[block]], order[rest], axis=1)
        tile += outside[block, rest]
        K, width = form.of(tile), len(tile)
        beyond = sides[block].T @ (K[:, width:] @ sides[block.stop :])
        sums += sides[block].T @ (K[:, :width] @ sides[block]) + beyond + beyond.T
    return _mmd2(sums, form.of(np.zeros(1)) * sides.sum(axis=0), sides)


def _mmd2(sums: Array, diagonal: Array, sides: Array) -> float:
    """Give the unbiased estimate from sums over pairs within and between samples, the diagonal's share among them."""
    m, n = sides.sum(axis=0)
    within = (sums[0, 0] - diagonal[0]) / (m * (m - 1)) + (sums[1, 1] - diagonal[1]) / (n * (n - 1))
    return float(within - 2 * sums[0, 1] / (m * n))


def _noise(K: Array, sides: Array) -> float:
    """Give the standard deviation of c w' K~ w over relabelings w, to first order: c sqrt(2) p(1-p) |K~|_F with p = m/N."""
    m, n = (int(size) for size in sides.sum(axis=0))
    return quadratic_constant(m, n) * math.sqrt(2) * m * n / (m + n) ** 2 * float(np.linalg.norm(u_centre(K)))
