"""How much of the squared MMD goes when a feature is permuted across the pool."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.explain.sides import Sides
from cpmmd.kernels.additive import AdditiveForm, additive_form
from cpmmd.kernels.base import Kernel
from cpmmd.kernels.tiles import cut
from cpmmd.permutation.mmd import quadratic_constant, u_centre

Group = tuple[int, ...]  # matrix columns that are permuted together
Orders = Sequence[Rows]  # permutations of the rows
Triangle = list[Array]  # one tile of rows after another, each against itself and the rows that follow
BUDGET = 4e8  # kernel values: seconds
TILE_ROWS = 64  # a tile of 64 rows by some 1000 columns stays in a core's cache


@dataclass(frozen=True, eq=False)
class Drops:
    """Squared MMD with all features in place, and what it loses without one.

    Attributes
    ----------
    mmd2
        The unbiased estimate on these rows.
    noise
        Its standard deviation over relabelings: what is no more than this is no difference.
    lost
        mmd2 less that with one feature permuted: a row for each feature, a column for each permutation.
    shares, standard_errors
        Mean of ``lost`` in units of mmd2, or of noise where that is larger; the error counts both the permutations and the rows.
    """

    mmd2: float
    noise: float
    lost: Array
    shares: Array
    standard_errors: Array


def affordable_rows(kernel: Kernel, features: int, permutations: int, width: int) -> int:
    """Return the number of rows whose contributions stay within the budget.

    Measured in values of an additive kernel: one of another kernel costs up to 4, the distance in one column a tenth.
    """
    if additive_form(kernel) is None:
        return math.isqrt(int(BUDGET / (4 * features * permutations)))
    return math.isqrt(int(BUDGET / (features * permutations + width * math.log2(features + 1) / 10)))


def permutation_drops(rows: Array, labels: Labels, kernel: Kernel, groups: Sequence[Group], orders: Orders) -> Drops:
    """Permute each group of columns by each of ``orders`` and give what the squared MMD loses.

    Notes
    -----
    Cost: groups x permutations x rows^2 / 2 kernel values where the kernel's distance adds up over columns; twice that, and the
    feature map each time, for other kernels.
    """
    sides, K = Sides(labels), kernel.gram(rows)
    full = sides.witness(K @ sides.marks, K.diagonal())
    mmd2, noise = float(sides.mmd2(full)), _noise(K, labels)
    del K
    form, numbered = additive_form(kernel), list(enumerate(groups))
    permuted = (
        _by_recomputing(rows, sides, kernel, numbered, orders)
        if form is None
        else _by_distances(rows, sides, form, numbered, orders)
    )
    lost, shares, errors = np.empty((len(groups), len(orders))), np.empty(len(groups)), np.empty(len(groups))
    unit = max(mmd2, noise) or math.inf  # nothing at all is no share of anything
    for position, witness in permuted:
        drop = full - witness
        lost[position] = sides.mmd2(drop)
        shares[position] = lost[position].mean() / unit
        # delta method: where the unit is mmd2 itself, a row moves numerator and denominator together
        influence = drop.mean(axis=0) - (shares[position] * full if unit == mmd2 else 0.0)
        rounds = lost[position].var(ddof=1) / len(orders)
        errors[position] = math.sqrt(rounds + float(sides.variance(influence))) / unit
    return Drops(mmd2, noise, lost, shares, errors)


def _by_recomputing(
    rows: Array, sides: Sides, kernel: Kernel, groups: list[tuple[int, Group]], orders: Orders
) -> Iterator[tuple[int, Array]]:
    """Return the witness under each permutation for kernels that mix columns: the whole matrix anew."""
    changed, marks = rows.copy(), sides.marks
    for position, group in groups:
        columns, witness = list(group), []
        for order in orders:
            changed[:, columns] = rows[order][:, columns]
            K = kernel.gram(changed)
            witness.append(sides.witness(K @ marks, K.diagonal()))
        changed[:, columns] = rows[:, columns]
        yield position, np.array(witness)


def _by_distances(
    rows: Array, sides: Sides, form: AdditiveForm, groups: list[tuple[int, Group]], orders: Orders
) -> Iterator[tuple[int, Array]]:
    """Return the witness under each permutation by exchanging one group's part of the distances."""
    marks, diagonal = sides.marks, np.full(len(rows), form.of(np.zeros(1))[0])
    permuted = {column for _, group in groups for column in group}
    untouched = [column for column in range(rows.shape[1]) if column not in permuted]
    for position, group, outside in _without_each(rows, groups, form, _triangle(rows[:, untouched], form)):
        own = rows[:, list(group)]
        sums = (_exchanged_sums(outside, own[order], form, marks) for order in orders)
        yield position, np.array([sides.witness(each, diagonal) for each in sums])


def _triangle(columns: Array, form: AdditiveForm) -> Triangle:
    """Return the part of some columns in the distances of each row to itself and the later ones, in tiles of rows."""
    blocks = cut(len(columns), TILE_ROWS)
    if columns.shape[1] == 0:
        return [np.zeros((block.stop - block.start, len(columns) - block.start)) for block in blocks]
    return [form.distances(columns[block], columns[block.start :]) for block in blocks]


def _without_each(
    rows: Array, groups: list[tuple[int, Group]], form: AdditiveForm, outside: Triangle
) -> Iterator[tuple[int, Group, Triangle]]:
    """Return each group with the distances that all other columns make.

    Halving adds each group about log2(groups) times and subtracts nothing: beside a column of 1e12 the distances of a column
    of 1 would not survive a subtraction.
    """
    if len(groups) == 1:
        yield (*groups[0], outside)
        return
    left, right = groups[: len(groups) // 2], groups[len(groups) // 2 :]
    for these, those in ((left, right), (right, left)):
        added = _triangle(rows[:, [column for _, group in those for column in group]], form)
        for tile, rest in zip(added, outside, strict=True):
            tile += rest
        yield from _without_each(rows, these, form, added)


def _exchanged_sums(outside: Triangle, own: Array, form: AdditiveForm, marks: Array) -> Array:
    """Return each row's kernel sums over X and Y, where one group's columns are ``own`` and the others are ``outside``."""
    sums = np.zeros_like(marks)
    for block, rest, tile in zip(cut(len(own), TILE_ROWS), outside, _triangle(own, form), strict=True):
        tile += rest
        K, width = form.of(tile), len(tile)
        sums[block] += K @ marks[block.start :]
        sums[block.stop :] += K[:, width:].T @ marks[block]
    return sums


def _noise(K: Array, labels: Labels) -> float:
    """Return the standard deviation of c w' K~ w over relabelings w, to first order: c sqrt(2) p(1-p) |K~|_F with p = m/N."""
    m, n = int(np.count_nonzero(labels)), int(np.count_nonzero(~labels))
    return quadratic_constant(m, n) * math.sqrt(2) * m * n / (m + n) ** 2 * float(np.linalg.norm(u_centre(K)))
