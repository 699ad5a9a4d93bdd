"""The layout of a test: rows in units that are permuted as a whole, units in strata inside which labels move, and labelings.

Units are single rows, bins of rows, or what a design says belongs together. Bins: rows are shuffled inside their sample and cut
into bins of one common size r. Permuting bins is a subgroup of all permutations, so the level stays exact (Domingo-Enrich,
Dwivedi, Mackey 2025), a kernel matrix is needed only as (N/r)^2 sums, and the relabelings themselves cost next to nothing; r = 1
is the full permutation test. Units of a design that are many are put together in bins as well: units of one sample in one
stratum are as exchangeable as rows are. Pairs stay pairs: several of them are flipped together.

Units stand in an order that does not look at labels. Sums round by where they stand, in a tile or across two; were the units of X
the first ones, rounding would look like the observed labeling and like no other, and where a statistic is nothing but rounding
(all rows equal but a few) the observed one would be the largest. So the level is exact in the machine's arithmetic, too.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import count
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array, Floating, Labels, Rows
from cpmmd.core.text import pluralize
from cpmmd.data.design import AUTO, PAIR, Design
from cpmmd.draws.labels import LabelCodes, Relabelings, number_of_labels
from cpmmd.draws.positions import KeyedPermutation, PositionBins
from cpmmd.errors import DeferredText, InputError, ParameterReference, TooFewUnitsError, Words

TARGET_BINS = 200  # in all: as powerful as rows one by one; 100 are not on small modes (benchmarks/full_sample.py)
FEWEST_BINS = 40  # of the smaller sample, where that does not make too many in all
MOST_BINS = 1000  # in all: a kernel's sums are then at most 8 MB
FEW_ROWS = 6  # of a unit, on average: below, a call for each costs more than it saves
NOT_DRAWN = Relabelings(np.empty((0, 0), np.uint8), 0)


@dataclass(frozen=True, eq=False)
class Layout:
    """What is relabelled, and how."""

    rows: Rows  # row numbers of the pool, unit after unit
    starts: Rows  # where each unit begins in `rows`
    units: tuple[int, ...]  # of each sample
    strata: Rows | None = None  # of each unit, from 0, as a design has them; None where there is no design, and rows are alike
    number: Rows | None = None  # of the unit at each place, sample after sample; None where they stand in that order
    dropped: tuple[int, ...] = (0, 0)  # rows of each sample that no unit has
    whole: bool = True  # whether every stratum has units of all samples; one of several samples may be in some strata only
    labels: Relabelings = NOT_DRAWN  # of the units of two samples, the observed labeling first; of several, see `against`
    against: tuple[Layout, ...] = ()  # of several samples: each as X, all others as Y, under common labelings

    def __post_init__(self) -> None:
        if self.strata is not None and len(self.units) == 2 and self.whole:
            of_x, of_y = np.unique(self.strata[self.of_x]), np.unique(self.strata[~self.of_x])
            if not np.array_equal(of_x, of_y):  # weights would be 0/0, and every p-value without meaning
                raise InputError("Each stratum must have units of both samples. Leave out strata of one sample.")

    @classmethod
    def of_rows(cls, *sizes: int) -> Layout:
        """Return every row of samples of these sizes as a unit, sample after sample."""
        rows = np.arange(sum(sizes))
        return cls(rows, rows, sizes, dropped=(0,) * len(sizes))

    @classmethod
    def of_bins(cls, x: Rows, y: Rows, size: int, first: int, second: int) -> Layout:
        """Cut shuffled rows into bins of one size, those of X first and the last rows left over."""
        rows = np.concatenate([x[: first * size], y[: second * size]])
        dropped = (len(x) - first * size, len(y) - second * size)
        return cls(rows, np.arange(0, len(rows), size), (first, second), dropped=dropped)

    @classmethod
    def of_design(cls, design: Design, rng: np.random.Generator | None = None, *, target: int | None = None) -> Layout:
        """Return the units of a design; more of them than ``target`` are put together at random, about that many in all.

        With ``rng`` they stand in an order that does not look at labels, without it those of X come first.
        """
        unit_of, strata = np.arange(design.size), design.strata
        if target is not None and rng is not None and design.size > target:
            unit_of, strata = _merge(design, rng, target)
        unit = unit_of[design.unit]
        rows = np.argsort(unit, kind="stable")
        rows = rows[np.searchsorted(unit[rows], 0) :]  # -1 is left over
        counts = np.bincount(unit[rows], minlength=len(strata))
        ends = [int(unit_of[:end].max(initial=-1)) + 1 for end in np.cumsum(design.units)]
        left = np.bincount(np.searchsorted(np.cumsum(design.rows), np.flatnonzero(unit < 0), side="right"), minlength=len(ends))
        units = tuple(np.diff([0, *ends]).tolist())
        layout = cls(rows, np.cumsum(counts) - counts, units, strata, dropped=tuple(left.tolist()))
        return layout if rng is None else layout.shuffled(rng)

    @classmethod
    def of_all(cls, m: int, n: int, design: Design | None) -> Layout:
        """Return every row, or every unit of a design, those of X first."""
        return cls.of_rows(m, n) if design is None else cls.of_design(design)

    @classmethod
    def cut(cls, m: int, n: int, design: Design | None, rng: np.random.Generator, *, target: int = TARGET_BINS) -> Layout:
        """Return about ``target`` units of rows, or of the units of a design, in an order that does not look at labels."""
        if design is not None:
            return cls.of_design(design, rng, target=target)
        size, first, second = bin_counts(m, n, target=target, most=MOST_BINS)
        return cls.of_bins(rng.permutation(m), m + rng.permutation(n), size, first, second).shuffled(rng)

    @classmethod
    def by_position(
        cls, m: int, n: int, rng: np.random.Generator, *, target: int = TARGET_BINS, held: bool = True
    ) -> tuple[Layout, PositionBins]:
        """Return about ``target`` bins that a row's position decides, in an order that does not look at labels.

        Where rows are not ``held``, their numbers are not either: every one is -1.
        """
        size, first, second = bin_counts(m, n, target=target, most=MOST_BINS)
        orders = KeyedPermutation.draw(m, rng), KeyedPermutation.draw(n, rng)
        number = rng.spawn(1)[0].permutation(first + second)
        bins = PositionBins(size, (first, second), orders, np.argsort(number))
        count = size * (first + second)
        rows = bins.rows() if held else np.broadcast_to(np.intp(-1), count)
        dropped = (m - first * size, n - second * size)
        return cls(rows, np.arange(0, count, size), (first, second), number=number, dropped=dropped), bins

    @classmethod
    def cut_several(
        cls, sizes: Sequence[int], design: Design | None, rng: np.random.Generator, *, target: int = TARGET_BINS
    ) -> Layout:
        """Return the same for several samples."""
        if design is not None:
            return cls.of_design(design, rng, target=target)
        size, bins = several_bin_counts(sizes, target=target, most=MOST_BINS)
        starts = np.cumsum(sizes) - sizes
        parts = [start + rng.permutation(rows)[: count * size] for start, rows, count in zip(starts, sizes, bins, strict=True)]
        dropped = tuple(rows - count * size for rows, count in zip(sizes, bins, strict=True))
        rows = np.concatenate(parts)
        return cls(rows, np.arange(0, len(rows), size), bins, dropped=dropped).shuffled(rng)

    def shuffled(self, rng: np.random.Generator) -> Layout:
        """Return the units in an order that does not look at labels, drawn from a stream that a generator spawns."""
        number = rng.spawn(1)[0].permutation(self.count)
        counts = self.counts[number]
        ends = zip(self.starts[number], self.starts[number] + counts, strict=True)
        rows = np.concatenate([self.rows[start:stop] for start, stop in ends])
        strata = None if self.strata is None else self.strata[number]
        return replace(self, rows=rows, starts=np.cumsum(counts) - counts, strata=strata, number=number)

    def of(self, rows: Rows) -> Layout:
        """Return the layout of these rows of a pool, whose places its own rows are."""
        return replace(self, rows=rows[self.rows])

    def draw(self, count: int, rng: np.random.Generator, limit: int | None = None, *, enumerate_few: bool = True) -> Layout:
        """Return the layout with ``count`` labelings by two labels, or with all there are where they are no more."""
        number = np.arange(self.count) if self.number is None else self.number
        strata = None if self.strata is None else self.strata[np.argsort(number)]
        labels = Relabelings.draw(self.count, self.first, count, rng, limit, strata=strata, enumerate_few=enumerate_few)
        return replace(self, labels=labels if self.number is None else labels.at(number))

    def draw_codes(self, count: int, rng: np.random.Generator) -> LabelCodes:
        """Return ``count`` labelings by as many labels as there are samples, or all there are where they are no more."""
        return LabelCodes.draw(self.sample, count, rng, strata=self.strata)

    def labelled(self, codes: LabelCodes, limit: int | None = None) -> Layout:
        """Return the layout of several samples with labelings: each sample against all others under every one of them."""
        against = []
        for sample, units in enumerate(self.units):
            labels = codes.of(sample, limit)
            number = np.empty(self.count, np.intp)
            number[np.argsort(self.sample != sample, kind="stable")] = np.arange(self.count)
            sides = (units, self.count - units)
            dropped = (self.dropped[sample], sum(self.dropped) - self.dropped[sample])
            against.append(replace(self, units=sides, number=number, dropped=dropped, labels=labels, whole=False))
        return replace(self, labels=against[0].labels, against=tuple(against))

    @property
    def count(self) -> int:
        """Number of units."""
        return len(self.starts)

    @property
    def first(self) -> int:
        """Number of units of X."""
        return self.units[0]

    @property
    def sample(self) -> Rows:
        """The sample of each unit, from 0."""
        number = np.arange(self.count) if self.number is None else self.number
        return np.searchsorted(np.cumsum(self.units), number, side="right")

    @cached_property
    def counts(self) -> Rows:
        """Rows of each unit."""
        return np.diff(self.starts, append=len(self.rows))

    @cached_property
    def size(self) -> int:
        """Rows of a unit; 0 where units differ."""
        return int(self.counts[0]) if (self.counts == self.counts[0]).all() else 0

    @cached_property
    def of_x(self) -> Labels:
        """Which units are of X."""
        return np.asarray(self.sample == 0)

    @property
    def m(self) -> int:
        """Rows of X in units."""
        return int(self.counts[self.of_x].sum())

    @property
    def n(self) -> int:
        """Rows of Y in units."""
        return len(self.rows) - self.m

    def sums(self, values: Array) -> Array:
        """Return the sums over units of values that are given for ``rows``, in their order."""
        return np.asarray(np.add.reduceat(values, self.starts, axis=0))

    @property
    def left_out(self) -> tuple[str, ...]:
        """A note on the rows that are in no unit, if any."""
        if sum(self.dropped) == 0:
            return ()
        left = f"{pluralize(self.dropped[0], 'row')} of the first sample and {self.dropped[1]} of the second, drawn at random,"
        if len(self.dropped) > 2:
            left = f"{pluralize(sum(self.dropped), 'row')} ({', '.join(map(str, self.dropped))} of the samples), drawn at random,"
        if self.strata is not None:
            return (f"{left} are left out: they do not fill a bin of units",)
        if max(self.dropped) < self.size:
            return (f"{left} are left out: they do not fill a bin of {self.size} rows",)
        each = pluralize(self.size, "row")
        return (f"{left} are left out: the smaller sample needs bins of {each}, and at most {MOST_BINS} bins are permuted",)


def bin_counts(m: int, n: int, *, target: int, most: int) -> tuple[int, int, int]:
    """Return the size of bins, about ``target`` and at most ``most`` in all, and how many X and Y have."""
    small = min(m, n)
    wanted = min((m + n) // target, small // FEWEST_BINS)
    size = max(1, min(max(wanted, -(-(m + n) // most)), small // 2))
    few = small // size
    many = min(max(m, n) // size, most - few)
    return (size, few, many) if m <= n else (size, many, few)


def several_bin_counts(sizes: Sequence[int], *, target: int, most: int) -> tuple[int, tuple[int, ...]]:
    """Return the same for several samples: the size of bins, and how many each has; the largest samples leave rows out."""
    total, smallest = sum(sizes), min(sizes)
    wanted = min(total // target, smallest // FEWEST_BINS)
    size = max(1, min(max(wanted, -(-total // most)), smallest // 2))
    bins, room = dict[int, int](), most
    ascending = sorted(range(len(sizes)), key=sizes.__getitem__)  # what a small sample does not need is for the larger ones
    for place, sample in enumerate(ascending):
        bins[sample] = max(2, min(sizes[sample] // size, room // (len(sizes) - place)))
        room -= bins[sample]
    return size, tuple(bins[sample] for sample in range(len(sizes)))


def _merge(design: Design, rng: np.random.Generator, target: int) -> tuple[Rows, Rows]:
    """Return the bin of each unit, those of X numbered first and -1 for what is left over, and the stratum of each bin."""
    few = min(design.units)
    together = max(1, min(design.size // target, few // FEWEST_BINS), -(-design.size // MOST_BINS))
    side = np.repeat(np.arange(len(design.units)), design.units)
    counts = [np.bincount(design.strata[side == sample], minlength=design.strata.max() + 1) for sample in range(side[-1] + 1)]
    paired = (np.array(counts) == 1).all(axis=0)
    lone = np.flatnonzero(paired)  # strata of one unit a sample are put together at random, several in one
    merged = np.arange(len(paired))
    merged[rng.permutation(lone)] = lone[(np.arange(len(lone)) // together) * together] if len(lone) else lone
    strata = merged[design.strata]
    piece = np.where(paired[design.strata], 0, -1)
    for units in (inside for inside in design.by_stratum() if not paired[design.strata[inside[0]]]):
        parts = [part for sample in range(len(design.units)) if len(part := units[side[units] == sample])]
        size = max(1, min(together, min(map(len, parts)) // 2))
        for part in parts:
            shuffled = rng.permutation(part)[: len(part) // size * size]
            piece[shuffled] = np.arange(len(shuffled)) // size
    key = (side * (strata.max() + 1) + strata) * (design.size + 1) + piece
    kept = piece >= 0
    _, first, number = np.unique(key[kept], return_index=True, return_inverse=True)
    bins = np.full(design.size, -1)
    bins[kept] = number.ravel()
    return bins, np.unique(strata[kept][first], return_inverse=True)[1].ravel()


def sum_rows(values: Floating, starts: Rows, dtype: Any = np.float64) -> Floating:
    """Return the sums of consecutive rows that begin at ``starts``; many a time faster than reduceat where those are long."""
    if FEW_ROWS * len(starts) > len(values):
        return np.asarray(np.add.reduceat(values, starts, axis=0, dtype=dtype))
    total = np.empty((len(starts), values.shape[1]), dtype)
    for unit, start, stop in zip(total, starts, (*starts[1:], len(values)), strict=True):
        np.sum(values[start:stop], axis=0, dtype=dtype, out=unit)
    return total


def sum_pairs(matrix: Floating, starts: Rows) -> Floating:
    """Return the sums of a square matrix over pairs of units of consecutive rows; where those are rows, the matrix itself."""
    if len(starts) == len(matrix):
        return matrix
    return np.asarray(np.add.reduceat(sum_rows(matrix, starts, matrix.dtype), starts, axis=1))


MANY = 10**100  # relabelings, more than enough for any level; their number itself may be beyond what a float holds


def require_relabelings(
    layout: Layout, design: Design | None, alpha: float, *, train: float = 0.0, combination_factor: float = 1.0
) -> None:
    """Refuse a design with too few units for a p-value of alpha.

    ``train`` is the share of units that is not tested, ``combination_factor`` what p-values of several splits are multiplied by.
    """
    if design is None or layout.strata is None:
        return
    total = number_of_labels(layout.count, layout.first, layout.strata[np.argsort(~layout.of_x, kind="stable")])
    of_x, of_y = (np.bincount(layout.strata[side]) for side in (layout.of_x, ~layout.of_x))
    swapped = bool((of_x == of_y).all())  # the samples may exchange all labels, which gives the same statistic
    least = min(1.0, combination_factor * (1 + swapped) / min(total, MANY))
    if least <= alpha + 1e-12:
        return
    x, y = layout.units
    tested = (x, y) != design.units
    needed = units_needed(design, alpha / combination_factor, train=train)
    raise TooFewUnitsError(
        "The test can never reject: {what}{part} {have} {total} permutations, so that every p-value is at least {least}, above "
        "{level}. At least {needed} are needed{where}{advice}.",
        what=pluralize(x, "pair") if design.kind == PAIR else f"{x} v {y} {design.kind}s",
        part=f" (the tested part of {design})" if tested else "",
        have="has" if (x, design.kind) == (1, PAIR) else "have",
        total=total,
        least=f"{least:.3g}",
        level=ParameterReference("alpha", alpha),
        needed=f"{needed} pairs" if design.kind == PAIR else f"{needed} v {needed} {design.kind}s",
        where=" if they are in one stratum, more if in several" if design.n_strata > 1 else "",
        advice=_advice(design, needed, tested),
    )


def units_needed(design: Design, alpha: float, *, train: float = 0.0) -> int:
    """Return how many units of each sample have relabelings enough, once a share of them chose the kernel."""
    tested = next(n for n in count(2) if 2 / (2**n if design.kind == PAIR else math.comb(2 * n, n)) <= alpha + 1e-12)
    return next(n for n in count(tested) if n - round(n * train) >= tested)


def _advice(design: Design, needed: int, tested: bool) -> str | DeferredText:
    """Return how to get enough units: test all of them, take longer samples, or name separate runs."""
    if tested:
        return ". A method that does not split tests all of them"
    if design.given.get("blocks") != AUTO or design.block_rows in (None, 1):
        return ""
    return DeferredText(_longer_samples, design.block_rows, needed, max(1, min(design.rows) // needed))


def _longer_samples(words: Words, length: int, needed: int, shorter: int) -> str:
    groups, blocks = words.setting(ParameterReference("groups")), words.setting(ParameterReference("blocks", shorter))
    return (
        f". Rows depend on each other so far that blocks must be {length} rows long. Take at least {needed * length} rows of "
        f"each sample, or name separate runs with {groups} (with shorter blocks, {blocks}, the test would reject too often)"
    )
