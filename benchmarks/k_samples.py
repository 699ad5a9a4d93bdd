"""Power of ``k_sample_test`` beside DISCO, the k-sample MMD at the median, and pairwise tests with Holm's adjustment.

    python -m benchmarks.k_samples --repetitions 40

Alternatives: a shift of 5 columns, a scale of 5 columns, a correlation of 4 columns, a shift of one of 12 columns; of one sample
among 3, 5 or 8 (``one``), or growing from the first sample to the last (``trend``). Level .05, 199 permutations, 999 for pairs of
8 samples. ``pairs``: the share of truly different pairs that are found by closed testing, and by Holm's adjustment of the same
tests; ``false``: whether any pair is found that does not differ.
``--ablation`` compares the two parts of the statistic.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import combinations

import numpy as np
from scipy.spatial.distance import pdist, squareform

from benchmarks import RESULTS
from cpmmd import FullSampleTest, Study, evidence, two_sample_test
from cpmmd.core.arrays import Array
from cpmmd.data.pool import read_samples
from cpmmd.draws.labels import LabelCodes
from cpmmd.draws.layout import Layout
from cpmmd.evidence import rank, tail_scores
from cpmmd.statistics import columns, forms
from cpmmd.statistics.k_sample import KSampleMMD, adjusted_pairs

LEVEL, PERMUTATIONS = 0.05, 199
ROWS = {3: 40, 5: 30, 8: 25}  # of each sample, by their number
EFFECTS = {"shift": 0.3, "scale": 0.4, "dependence": 0.6, "one of twelve": 0.9}
TREND = 1.4  # times the effect of one sample, in the last one


def draw(kind: str, rows: int, effect: float, rng: np.random.Generator) -> Array:
    """Return one sample that differs from N(0, I) by an effect."""
    X = rng.standard_normal((rows, {"dependence": 4, "one of twelve": 12}.get(kind, 5)))
    if kind == "shift":
        X += effect
    elif kind == "scale":
        X *= 1 + effect
    elif kind == "dependence":
        common = min(effect, 0.95)
        X = math.sqrt(1 - common) * X + math.sqrt(common) * rng.standard_normal((rows, 1))
    else:
        X[:, 3] += effect
    return X


def samples(cell: dict, rng: np.random.Generator) -> tuple[list[Array], set[tuple[int, int]]]:
    """Return the samples of a cell, and the pairs that differ."""
    k, effect = cell["samples"], EFFECTS.get(cell["kind"], 0.0)
    own = [effect * (a == k - 1) for a in range(k)]
    if cell["spread"] == "trend":
        own = [TREND * effect * a / (k - 1) for a in range(k)]
    differ = {(a, b) for a, b in combinations(range(k), 2) if own[a] != own[b]}
    return [draw(cell["kind"], ROWS[k], some, rng) for some in own], differ


def several(found: list[Array], rng: np.random.Generator) -> float:
    """Return the p-value of all samples."""
    pool = read_samples({str(a): sample for a, sample in enumerate(found)})
    bins, labels, order = rng.spawn(3)
    layout = Layout.cut_several(pool.sizes, None, bins)
    layout = layout.labelled(layout.draw_codes(PERMUTATIONS, labels))
    return FullSampleTest().compete(pool, layout, 2**30, order).ranking.pvalue


def of_one_kernel(found: list[Array], rng: np.random.Generator) -> dict[str, float]:
    """Return the p-values of DISCO, and of the Gaussian kernel at the median distance, on standardised columns."""
    pooled = np.vstack(found)
    distances = squareform(pdist((pooled - pooled.mean(axis=0)) / pooled.std(axis=0)))
    median = float(np.median(distances[np.triu_indices(len(pooled), 1)]))
    codes = LabelCodes.draw(np.repeat(np.arange(len(found)), list(map(len, found))), PERMUTATIONS, rng)
    kernels = {"disco": -distances, "median": np.exp(-((distances / median) ** 2) / 2)}
    return {name: rank(KSampleMMD.of(K), codes).pvalue for name, K in kernels.items()}


def holm(pvalues: dict[tuple[int, int], float]) -> dict[tuple[int, int], float]:
    """Return adjusted p-values."""
    order, largest, adjusted = sorted(pvalues, key=pvalues.__getitem__), 0.0, {}
    for step, pair in enumerate(order):
        largest = max(largest, min(1.0, (len(order) - step) * pvalues[pair]))
        adjusted[pair] = largest
    return adjusted


def task(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    found, differ = samples(cell, data_rng)
    overall = several(found, test_rng)
    single = {name: int(p <= LEVEL) for name, p in of_one_kernel(found, test_rng).items()}
    count = 999 if len(found) > 5 else PERMUTATIONS
    pvalues = {
        (a, b): two_sample_test(found[a], found[b], n_permutations=count, rng=test_rng).pvalue
        for a, b in combinations(range(len(found)), 2)
    }
    answers = {"closed": adjusted_pairs(pvalues, len(found), overall), "holm": holm(pvalues)}
    rejected = {name: {pair for pair, p in adjusted.items() if p <= LEVEL} for name, adjusted in answers.items()}
    pairs = {f"pairs, {name}": len(some & differ) / max(len(differ), 1) for name, some in rejected.items()}
    false = {f"false, {name}": int(bool(some - differ)) for name, some in rejected.items()}
    return {"k_sample_test": int(overall <= LEVEL), **single, "any pair, holm": int(bool(rejected["holm"])), **pairs, **false}


@contextmanager
def joined_by(part: str) -> Iterator[None]:
    """Let several samples have one part of the statistic alone."""

    def alone(apart: list[Array], weights: list[float]) -> Array:
        if part == "sum":
            return np.sum([weight * values for weight, values in zip(weights, apart, strict=True)], axis=0)
        return np.max([tail_scores(values) for values in apart], axis=0)

    kept = evidence.sum_or_largest
    for module in (forms, columns):
        module.sum_or_largest = alone if part != "both" else kept  # type: ignore[attr-defined]
    yield
    for module in (forms, columns):
        module.sum_or_largest = kept  # type: ignore[attr-defined]


def ablation(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    found, _ = samples(cell, data_rng)
    answers, seed = {}, int(test_rng.integers(2**31))
    for part in ("both", "sum", "largest"):
        with joined_by(part):
            answers[part] = int(several(found, np.random.default_rng(seed)) <= LEVEL)
    return answers


def cells() -> list[dict]:
    """Return what is measured."""
    return [{"kind": kind, "samples": k, "spread": spread} for k in ROWS for kind in EFFECTS for spread in ("one", "trend")]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=40)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--ablation", action="store_true")
    options = arguments.parse_args()
    name, measured = ("k_samples_parts", ablation) if options.ablation else ("k_samples", task)
    table = Study(name, measured, cells(), options.repetitions).run(RESULTS / f"{name}.jsonl", n_jobs=options.jobs)
    (RESULTS / f"{name}.csv").write_text(table.to_csv())
    print(table.to_markdown())


if __name__ == "__main__":
    main()
