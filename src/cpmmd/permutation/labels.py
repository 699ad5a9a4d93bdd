"""Relabelings: which rows (or bins of rows) of the pool are called X. All that exist where those are few, else random ones."""

from __future__ import annotations

import math
from collections.abc import Iterator
from itertools import combinations

import numpy as np

from cpmmd.core.arrays import Labels


def all_fit(size: int, first: int, count: int) -> bool:
    """Whether the relabelings of ``first`` among ``size`` are no more than ``count``, so that all of them can be used."""
    return math.comb(size, first) <= count


def observed_and_others(size: int, first: int, count: int, rng: np.random.Generator) -> tuple[Labels, bool]:
    """Return the observed labeling and the others below it, and whether those are all there are.

    Examples
    --------
    >>> labels, exhaustive = observed_and_others(6, 3, 999, np.random.default_rng(0))
    >>> labels.shape, exhaustive, labels[0].tolist()
    ((20, 6), True, [True, True, True, False, False, False])
    """
    if all_fit(size, first, count):
        return all_labels(size, first), True
    return np.vstack([observed(size, first)[None], draw_labels(size, first, count, rng)]), False


def observed(size: int, first: int) -> Labels:
    """Return the labeling that marks the first rows."""
    return np.arange(size) < first


def all_labels(size: int, first: int) -> Labels:
    """Return every relabeling once, the observed one first."""
    chosen = np.array(list(combinations(range(size), first)))
    labels = np.zeros((len(chosen), size), dtype=bool)
    np.put_along_axis(labels, chosen, True, axis=1)
    return labels


def draw_labels(size: int, first: int, count: int, rng: np.random.Generator) -> Labels:
    """Draw ``count`` uniform relabelings, one a row, each marking ``first`` of ``size`` rows.

    A relabeling marks the m smallest of N uniform numbers (several times faster than a shuffle). Rows are drawn one after the
    other from one stream, so a longer draw starts with the shorter one.
    """
    keys = rng.random((count, size))
    labels: Labels = keys <= np.partition(keys, first - 1, axis=1)[:, first - 1, None]
    for row in np.flatnonzero(np.count_nonzero(labels, axis=1) != first):  # equal keys, once in 1e10 draws
        labels[row] = False
        labels[row, keys[row].argsort(kind="stable")[:first]] = True
    return labels


def draw_in_chunks(size: int, first: int, count: int, rng: np.random.Generator, chunk_bytes: int) -> Iterator[Labels]:
    """Yield ``count`` relabelings in chunks that fit the memory; the sequence does not depend on the chunks."""
    step = max(1, chunk_bytes // (size * 8))
    for start in range(0, count, step):
        yield draw_labels(size, first, min(step, count - start), rng)
