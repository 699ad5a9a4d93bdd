"""The units of a design as bins: one bin a unit, or bins of several units where those are many.

Units of one sample in one stratum are as exchangeable as rows are, so bins of equally many of them are, too. Pairs stay pairs:
several of them are flipped together.
"""

from __future__ import annotations

import numpy as np

from cpmmd.core.arrays import Rows
from cpmmd.data.design import Design
from cpmmd.permutation.binned import FEWEST_BINS, MOST_BINS, Bins
from cpmmd.permutation.contrasts import Contrast


def unit_bins(design: Design, rng: np.random.Generator | None = None, *, target: int | None = None) -> Bins:
    """Return the rows of a design in bins; more units than ``target`` are put together at random, about that many in all.

    With ``rng`` they stand in an order that does not look at labels, without it those of X come first.
    """
    number, strata = np.arange(design.size), design.strata
    if target is not None and rng is not None and design.size > target:
        number, strata = _merge(design, rng, target)
    bins_of_rows = number[design.unit]
    order = np.argsort(bins_of_rows, kind="stable")
    order = order[np.searchsorted(bins_of_rows[order], 0) :]  # -1 is left over
    counts = np.bincount(bins_of_rows[order], minlength=len(strata))
    first = int(number[: design.first].max(initial=-1)) + 1
    size = int(counts[0]) if (counts == counts[0]).all() else 0
    left = np.bincount((np.flatnonzero(bins_of_rows < 0) >= design.rows[0]).astype(int), minlength=2)
    bins = Bins(order, size, first, len(strata), (int(left[0]), int(left[1])), Contrast(counts, strata, first))
    return bins if rng is None else bins.shuffled(rng)


def _merge(design: Design, rng: np.random.Generator, target: int) -> tuple[Rows, Rows]:
    """Return the bin of each unit, those of X numbered first and -1 for what is left over, and the stratum of each bin."""
    few = min(design.units)
    together = max(1, min(design.size // target, few // FEWEST_BINS), -(-design.size // MOST_BINS))
    side = np.arange(design.size) >= design.first
    of_x, of_y = (np.bincount(design.strata[side == s], minlength=design.strata.max() + 1) for s in (False, True))
    paired = (of_x == 1) & (of_y == 1)
    strata = _merge_pairs(design.strata, paired, together, rng)
    piece = np.where(paired[design.strata], 0, -1)
    for units in (inside for inside in design.by_stratum() if not paired[design.strata[inside[0]]]):
        halves = units[~side[units]], units[side[units]]
        size = max(1, min(together, min(map(len, halves)) // 2))
        for half in halves:
            shuffled = rng.permutation(half)[: len(half) // size * size]
            piece[shuffled] = np.arange(len(shuffled)) // size
    key = (side * (strata.max() + 1) + strata) * (design.size + 1) + piece
    kept = piece >= 0
    _, first, number = np.unique(key[kept], return_index=True, return_inverse=True)
    bins = np.full(design.size, -1)
    bins[kept] = number.ravel()
    return bins, np.unique(strata[kept][first], return_inverse=True)[1].ravel()


def _merge_pairs(strata: Rows, paired: Rows, together: int, rng: np.random.Generator) -> Rows:
    """Return strata with those of one unit a sample put together at random, several in one."""
    lone = np.flatnonzero(paired)
    new = np.arange(len(paired))
    new[rng.permutation(lone)] = lone[(np.arange(len(lone)) // together) * together] if len(lone) else lone
    return np.asarray(new[strata])
