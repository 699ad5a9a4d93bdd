"""Ranks of the drift monitor's looks, and of the fixed reference, on streams with a change: what every rule of an alarm reads.

Which rule raises an alarm when does not change the ranks, so they are computed once and kept in a journal. The test is the
library's ``"median"`` on standardised columns, written out in arrays: a relabeling of twenty rows takes the kernel values among
them only. Ranks are among 9999 relabelings; where the first 499 place the observed labels above .05 they stay among these.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from cpmmd.monitoring.past import COMPARED, LEAST_COMPARED

FIRST, ALL, GATE = 499, 9999, 25  # relabelings at first, of small ranks, and what a small rank is
TIE = 1e-9
GATHERED = 64  # rows of a block up to which pairs are looked up one by one
Rank = tuple[int, int]
Stop = Callable[[dict[str, Any]], bool]


def median_gram(rows: np.ndarray) -> np.ndarray:
    """Return the Gaussian kernel at the median distance of standardised columns, its diagonal 0."""
    spread = rows.std(axis=0)
    rows = (rows - rows.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    norms = (rows**2).sum(axis=1)
    squares = np.maximum(norms[:, None] + norms - 2 * rows @ rows.T, 0.0)
    gram = np.exp(-squares / (2 * np.median(squares[np.triu_indices(len(rows), 1)])))
    np.fill_diagonal(gram, 0.0)
    return gram


def subsets(count: int, size: int, n: int, rng: np.random.Generator) -> np.ndarray:
    """Return so many random subsets of n of ``range(size)``, by Floyd's algorithm."""
    chosen = np.empty((count, n), dtype=np.int32)
    for i, last in enumerate(range(size - n, size)):
        drawn = rng.integers(0, last + 1, count, dtype=np.int32)
        chosen[:, i] = np.where((chosen[:, :i] == drawn[:, None]).any(axis=1), last, drawn)
    return chosen


def squared_mmds(gram: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    """Return the unbiased squared MMD of each block of rows against all others."""
    size, n = len(gram), blocks.shape[1]
    m, sums = size - n, gram.sum(axis=1)
    within = _gathered(gram, blocks) if n <= GATHERED else _multiplied(gram, blocks)
    between = sums[blocks].sum(axis=1) - within
    others = sums.sum() - 2 * between - within
    return others / (m * (m - 1)) + within / (n * (n - 1)) - 2 * between / (m * n)


def _gathered(gram: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    flat, (a, b) = gram.astype(np.float32).ravel(), np.triu_indices(blocks.shape[1], 1)
    parts = np.array_split(blocks, 1 + len(blocks) * len(a) // 2_000_000)
    return np.concatenate([2 * flat[part[:, a] * len(gram) + part[:, b]].sum(axis=1, dtype=np.float64) for part in parts])


def _multiplied(gram: np.ndarray, blocks: np.ndarray) -> np.ndarray:
    single, sums = gram.astype(np.float32), []
    for part in np.array_split(blocks, 1 + len(blocks) // 1000):
        labels = np.zeros((len(part), len(gram)), dtype=np.float32)
        np.put_along_axis(labels, part.astype(np.int64), 1.0, axis=1)
        sums.append(np.einsum("ij,ij->i", labels @ single, labels, dtype=np.float64))
    return np.concatenate(sums)


def rank_of(before: np.ndarray, block: np.ndarray, rng: np.random.Generator) -> Rank:
    """Return the rank of a block among its relabelings, ties broken at random, and their number."""
    gram, size, n = median_gram(np.concatenate([before, block])), len(before) + len(block), len(block)
    observed = squared_mmds(gram, np.arange(size - n, size, dtype=np.int32)[None])[0]
    values = squared_mmds(gram, subsets(FIRST, size, n, rng))
    if _place(values, observed, rng) <= GATE:
        values = np.concatenate([values, squared_mmds(gram, subsets(ALL - FIRST, size, n, rng))])
    return _place(values, observed, rng), len(values) + 1


def _place(values: np.ndarray, observed: float, rng: np.random.Generator) -> int:
    ties = int((np.abs(values - observed) <= TIE).sum())
    return 1 + int((values > observed + TIE).sum()) + int(rng.integers(0, ties + 1))


def stream_ranks(
    reference: np.ndarray, batches: Iterator[np.ndarray], looks: tuple[int, ...], rng: np.random.Generator, stop: Stop
) -> dict[str, Any]:
    """Return the ranks of every look and of the fixed reference, until nobody wants more."""
    past, found = reference, {**{f"{count}": [] for count in looks}, "fixed": []}
    for number, batch in enumerate(batches, 1):
        past = np.concatenate([past, batch])
        for count in looks:
            if number % count == 0:
                cut = len(past) - count * len(batch)
                some = rng.permutation(cut)[: max(LEAST_COMPARED, COMPARED * count * len(batch))]
                found[f"{count}"].append(rank_of(past[some], past[cut:], rng))
        found["fixed"].append(rank_of(reference, batch, rng))
        if stop(found):
            break
    return found


def journal(path: Path, wanted: Iterator[tuple[str, int]], compute: Callable[[str, int], dict[str, Any]]) -> list[dict[str, Any]]:
    """Return what was computed for everything wanted, what is in the file already read from it."""
    known = [json.loads(line) for line in path.read_text().splitlines()] if path.is_file() else []
    found = {(one["kind"], one["number"]): one for one in known}
    with path.open("a") as file:
        for kind, number in wanted:
            if (kind, number) not in found:
                found[kind, number] = {"kind": kind, "number": number, **compute(kind, number)}
                file.write(json.dumps(found[kind, number]) + "\n")
                file.flush()
    return list(found.values())
