"""Tilers: kernels as streams of single-precision tiles, for pools of which no whole matrix is ever made.

A tiler first turns rows into operands (once), then gives the tile of each of its kernels for any two slices of them.
Neighbouring bandwidths are a factor sqrt(2) apart and come by squaring: exp(-e/b^2) from b to b/sqrt(2),
exp(-e/b) from b to b/2, in two chains that take turns. Squaring doubles the relative error, so a chain starts anew
every few links.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cpmmd.core.arrays import Array, Floating
from cpmmd.kernels.base import GAUSSIAN, Kernel
from cpmmd.kernels.families import Bandwidth, FeatureKernel, LaplacianL1, Radius
from cpmmd.kernels.scaled import LiftedKernel, ScaledKernel, ScaleFamily, refuse_overflow

Tile = npt.NDArray[np.float32]
LINKS = 6  # of a chain: rounding of 6e-8 grows to 4e-6
# Largest |x|^2 / 2 b^2 for products in single precision. Rounding of a distance is then 6e-8 times the two rows' own share of
# it, so only rows this far from the middle, among themselves, would notice.
SINGLE_PRECISION = 1e6
# Kernel values are lifted by this before every other squaring: squared twice it is the smallest normal number.
# Arithmetic on smaller ones is forty times slower, and 3e-10 is nothing beside the 6e-8 that single precision rounds away.
FLOOR = np.float32(3.3e-10)
L1_ROWS = 128  # of a tile: sums of so many rows and 512 landmarks are 256 kB
ORDINARY = (1e-15, 1e15)  # sizes whose squares and inverses are numbers in single precision
LOG_FLOOR = np.float32(2 * np.log(FLOOR))  # exp of it can be squared once


class Scratch:
    """Buffers that are used again for every tile of a row: fresh memory costs as much as a pass over it."""

    def __init__(self) -> None:
        self._held: dict[str, Tile] = {}

    def tile(self, name: str, shape: tuple[int, int]) -> Tile:
        """Return the buffer of that name as an array of that shape; its values are whatever was there."""
        size = shape[0] * shape[1]
        if name not in self._held or len(self._held[name]) < size:
            self._held[name] = np.empty(size, np.float32)
        return self._held[name][:size].reshape(shape)


Operand = Any  # rows in the form that tiles are made from: each tiler has its own


class Tiler(ABC):
    """Kernels, one after the other, for tiles of pairs."""

    @property
    def n_kernels(self) -> int:
        """How many tiles each pair of slices gives."""
        return 1

    def settled(self, blocks: Iterable[Array]) -> Tiler:  # noqa: ARG002
        """Return the tiler for a pool whose rows these blocks are: what depends on all of them is decided once, not by tiles."""
        return self

    @abstractmethod
    def operand(self, rows: Array) -> Operand:
        """Return rows in the form that tiles are made from."""

    @abstractmethod
    def tiles(self, a: Operand, i: slice, b: Operand, j: slice, scratch: Scratch) -> Iterator[Tile]:
        """Yield the tile of every kernel for two slices of two operands; each may be overwritten when the next is asked for."""


Products = tuple[Floating, Floating]  # left and right factors of a product that is the exponent


@dataclass(frozen=True, eq=False)
class GaussianTiler(Tiler):
    """Gaussian kernels on the rows, or on a trained kernel's features of them: one product gives the exponent."""

    bandwidths: Array  # from wide to narrow, a factor sqrt(2) apart
    centre: Array  # taken off first, which keeps products small
    on: FeatureKernel | None = None  # whose features stand for the rows
    dtype: type[np.float32 | np.float64] | None = None  # the product's precision, None until a pool has settled it

    @property
    def n_kernels(self) -> int:
        return len(self.bandwidths)

    def settled(self, blocks: Iterable[Array]) -> GaussianTiler:
        """Return the tiler in the precision that the row farthest from the middle needs."""
        farthest = max((float(self._scaled(rows)[1].max(initial=0.0)) for rows in blocks), default=0.0)
        return replace(self, dtype=_precision(farthest))

    def _scaled(self, rows: Array) -> tuple[Array, Array]:
        """Return r = (x - centre) / b sqrt(2) and |r|^2."""
        if self.on is not None:
            rows = self.on.features(rows)
        with np.errstate(over="ignore", invalid="ignore"):
            scaled = (rows - self.centre) * (np.sqrt(0.5) / self.bandwidths[0])
            squares = np.einsum("ij,ij->i", scaled, scaled)
        refuse_overflow("Gaussian kernels", squares, rows)
        return scaled, squares

    def operand(self, rows: Array) -> Products:
        """Return left [2r, -|r|^2, 1] and right [r, 1, -|r|^2]' with r = x / b sqrt(2): their product is -|r - r'|^2."""
        scaled, squares = self._scaled(rows)
        dtype = self.dtype or _precision(float(squares.max(initial=0.0)))
        minus = -squares[:, None]
        ones = np.ones_like(minus)
        left: Floating = np.hstack([2 * scaled, minus, ones]).astype(dtype)
        right: Floating = np.ascontiguousarray(np.hstack([scaled, ones, minus]).T.astype(dtype))
        return left, right

    def tiles(self, a: Products, i: slice, b: Products, j: slice, scratch: Scratch) -> Iterator[Tile]:
        left, right = a[0][i], b[1][:, j]
        exponent = scratch.tile("exponent", (len(left), right.shape[1]))
        with np.errstate(over="ignore"):  # far rows: exp gives 0
            np.matmul(left, right, out=exponent, casting="same_kind")
        if self.n_kernels == 1:
            yield np.exp(exponent, out=exponent)
        else:
            yield from _chain(exponent, self.n_kernels, scratch)


def _precision(farthest: float) -> type[np.float32 | np.float64]:
    return np.float32 if farthest < SINGLE_PRECISION else np.float64


@dataclass(frozen=True, eq=False)
class DistanceTiler(Tiler):
    """Families that share one geometry: double-precision distances once, single-precision kernels from them."""

    families: tuple[ScaleFamily, ...]
    bandwidths: tuple[Array, ...]  # of each family, from wide to narrow, a factor sqrt(2) apart
    centre: Array

    @property
    def n_kernels(self) -> int:
        return sum(map(len, self.bandwidths))

    def operand(self, rows: Array) -> LiftedKernel:
        return self.families[0].lift_checked(rows, self.centre)

    def tiles(self, a: LiftedKernel, i: slice, b: LiftedKernel, j: slice, scratch: Scratch) -> Iterator[Tile]:
        distances = a.distances(i, b, j)
        for family, bandwidths in zip(self.families, self.bandwidths, strict=True):
            yield from _family_tiles(family, bandwidths, distances, scratch)


def _family_tiles(family: ScaleFamily, bandwidths: Array, distances: Array, scratch: Scratch) -> Iterator[Tile]:
    """Yield a family's kernels from (squared) distances; the widest bandwidth brings them into single precision's range."""
    widest, power = float(bandwidths[0]), family.base_kernel.power
    exponent = scratch.tile("exponent", distances.shape)
    with np.errstate(over="ignore"):  # far rows: exp gives 0
        per_unit = np.float64(widest) ** -(2 if family.squared else 1)
        if np.isinf(per_unit):  # bandwidths whose inverse is no number, of rows that differ by denormal numbers
            distances, per_unit = distances / widest / (widest if family.squared else 1.0), np.float64(1.0)
        np.multiply(distances, per_unit, out=exponent, casting="same_kind")
    exponent = family.exponent_of(exponent)
    chains = 1 if power == 2 else min(2, len(bandwidths))
    started = []
    for chain in range(chains):
        scaled = scratch.tile(f"scaled{chain}", distances.shape)
        np.multiply(exponent, np.float32(-((widest / float(bandwidths[chain])) ** power)), out=scaled)
        started.append(_chain(scaled, len(bandwidths[chain::chains]), scratch, str(chain)))
    for k in range(len(bandwidths)):
        yield next(started[k % chains])


@dataclass(frozen=True, eq=False)
class SingleTiler(Tiler):
    """Kernels of one family, each at a bandwidth of its own, from exponents in single precision."""

    bandwidths: tuple[float, ...]
    centre: Array  # taken off first, in double precision

    power = 1  # of a bandwidth that the exponent is divided by

    @property
    def n_kernels(self) -> int:
        return len(self.bandwidths)

    @abstractmethod
    def _exponents(self, a: Operand, i: slice, b: Operand, j: slice, scratch: Scratch) -> Tile:
        """Return exponents at bandwidth 1 of all pairs of two slices."""

    def tiles(self, a: Operand, i: slice, b: Operand, j: slice, scratch: Scratch) -> Iterator[Tile]:
        exponents = self._exponents(a, i, b, j, scratch)
        tile = scratch.tile("kernel", exponents.shape)
        for bandwidth in self.bandwidths:
            np.multiply(exponents, np.float32(bandwidth**-self.power), out=tile)
            np.clip(tile, LOG_FLOOR, np.float32(0), out=tile)
            yield np.exp(tile, out=tile)


@dataclass(frozen=True, eq=False)
class SingleGaussianTiler(SingleTiler):
    """Gaussian kernels: one product gives -|x - x'|^2 / 2.

    It is in double precision: OpenBLAS rounds a row of a product in single precision by where it stands.
    """

    power = 2

    def operand(self, rows: Array) -> Products:
        centred = rows - self.centre
        minus = -0.5 * np.einsum("ij,ij->i", centred, centred)[:, None]
        ones = np.ones_like(minus)
        return np.hstack([centred, minus, ones]), np.ascontiguousarray(np.hstack([centred, ones, minus]).T)

    def _exponents(self, a: Products, i: slice, b: Products, j: slice, scratch: Scratch) -> Tile:
        left, right = a[0][i], b[1][:, j]
        exponents = scratch.tile("exponent", (len(left), right.shape[1]))
        np.copyto(exponents, left @ right, casting="same_kind")
        return exponents


@dataclass(frozen=True, eq=False)
class SingleL1Tiler(SingleTiler):
    """Laplacian kernels of the L1 norm, added up column by column for as many rows as fit the cache."""

    def operand(self, rows: Array) -> Tile:
        return np.ascontiguousarray((rows - self.centre).T.astype(np.float32))

    def _exponents(self, a: Tile, i: slice, b: Tile, j: slice, scratch: Scratch) -> Tile:
        own, others = a[:, i], b[:, j]
        total = scratch.tile("exponent", (own.shape[1], others.shape[1]))
        for start in range(0, len(total), L1_ROWS):
            part, rows = total[start : start + L1_ROWS], own[:, start : start + L1_ROWS, None]
            difference = scratch.tile("difference", part.shape)
            for column in range(len(own)):
                out = difference if column else part
                np.subtract(rows[column], others[column], out=out)
                np.abs(out, out=out)
                if column:
                    np.add(part, out, out=part)
        return np.negative(total, out=total)


@dataclass(frozen=True, eq=False)
class SingleRadiusTiler(SingleTiler):
    """Laplacian kernels of the difference in length."""

    def operand(self, rows: Array) -> Tile:
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", rows, rows)), np.float32)

    def _exponents(self, a: Tile, i: slice, b: Tile, j: slice, scratch: Scratch) -> Tile:
        apart = scratch.tile("exponent", (len(a[i]), len(b[j])))
        np.subtract(a[i][:, None], b[j], out=apart)
        np.abs(apart, out=apart)
        return np.negative(apart, out=apart)


def single_tiler(family: ScaleFamily, bandwidths: Sequence[float], centre: Array, landmarks: Array) -> SingleTiler | None:
    """Return the tiler of kernels of a family from exponents in single precision; None where there is none.

    Bandwidths and landmarks must be of ordinary size.
    """
    if not all(ORDINARY[0] < b < ORDINARY[1] for b in bandwidths) or not np.abs(landmarks - centre).max() < ORDINARY[1]:
        return None
    widths = tuple(bandwidths)
    if family == Bandwidth():
        return SingleGaussianTiler(widths, centre)
    if isinstance(family, LaplacianL1):
        return SingleL1Tiler(widths, centre)
    return SingleRadiusTiler(widths, centre) if isinstance(family, Radius) else None


@dataclass(frozen=True, eq=False)
class GramTiler(Tiler):
    """Any frozen kernel, by its own Gram matrix."""

    kernel: Kernel

    def operand(self, rows: Array) -> Array:
        return rows

    def tiles(self, a: Array, i: slice, b: Array, j: slice, scratch: Scratch) -> Iterator[Tile]:  # noqa: ARG002
        yield self.kernel.gram(a[i], b[j]).astype(np.float32)


def _chain(exponent: Tile, count: int, scratch: Scratch, name: str = "") -> Iterator[Tile]:
    """Yield exp(exponent), its square, the square of that, ...: ``count`` tiles; the exponent is overwritten."""
    tile = scratch.tile(f"chain{name}", exponent.shape)
    for k in range(count):
        if k % LINKS:
            if k % LINKS % 2 == 0:
                np.add(tile, FLOOR, out=tile)
            np.multiply(tile, tile, out=tile)
        else:
            if k:
                np.multiply(exponent, np.float32(2**LINKS), out=exponent)
            np.clip(exponent, LOG_FLOOR, np.float32(0), out=exponent)
            np.exp(exponent, out=tile)
        yield tile


def tiler_for(kernel: Kernel, sample: Array) -> Tiler:
    """Return the tiler of a frozen kernel; ``sample`` is some rows of the pool, which tell where its middle is."""
    if isinstance(kernel, ScaledKernel):
        return grid_tiler((kernel.family,), (np.array([kernel.bandwidth]),), sample)
    if isinstance(kernel, FeatureKernel):  # its features are computed once a row
        return GaussianTiler(np.ones(1), np.median(kernel.features(sample), axis=0), on=kernel)
    return GramTiler(kernel)


def grid_tiler(families: Sequence[ScaleFamily], bandwidths: Sequence[Array], sample: Array) -> Tiler:
    """Return the tiler of families that share one geometry, each on its bandwidths."""
    # The median, not the mean: one wild row must not move the centre away from all others.
    centre = np.median(sample, axis=0)
    if len(families) == 1 and isinstance(families[0], Bandwidth) and families[0].base_kernel is GAUSSIAN:
        return GaussianTiler(bandwidths[0], centre)
    return DistanceTiler(tuple(families), tuple(bandwidths), centre)
