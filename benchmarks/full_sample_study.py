"""Which classes ``cp-full`` should search: power of unions of classes, from one pass over the data.

``collect`` keeps, for every panel and draw, the scores of every member of every candidate class under common relabelings
(resumable, one file a draw); ``compare`` makes any union of them into a test and prints its power. Panels are those of practice
for choosing, and older ones; their draws have seeds of their own, which do not report.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from fnmatch import fnmatch
from functools import partial
from pathlib import Path

import numpy as np

from benchmarks import RESULTS
from cpmmd import Bandwidth, FullSampleTest, KernelClass, LaplacianL1, Polynomial, Radius
from cpmmd.data.pool import read_pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.layout import Layout
from cpmmd.engines.columns import column_sums
from cpmmd.engines.landmarks import landmark_count
from cpmmd.engines.members import View
from cpmmd.engines.memory import DEFAULT_LIMIT
from cpmmd.evidence import tail_scores
from experiments.panels import PANELS, PUBLISHED, mixture, perturbed_uniform
from experiments.practice import CHOOSING

SEED, RELABELINGS, ALPHA, QUANTILE = 77034, 299, 0.05, 0.9
FOLDER = RESULTS / "full_sample_study"  # not kept: some hundred megabytes
GAMMAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
Scores = Mapping[str, np.ndarray]  # of a draw: member -> score under every relabeling, the observed one first
Union = Mapping[tuple[str, ...], float]  # members of a class, by patterns -> its weight


def in_units(panel: str, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A panel whose columns come in units that differ by up to four orders of magnitude."""
    x, y = PANELS[panel](rng)
    units = 10.0 ** rng.uniform(-2, 2, x.shape[1])
    return x * units, y * units


def two_scales(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A small shift of two tight modes, beside three columns of noise fifty times as wide."""
    x, y = mixture(rng, 200, 0.08)
    a, b = rng.normal(size=(2, 200, 3))
    return np.hstack([x, 50 * a]), np.hstack([y, 50 * b])


OLD = (
    *("mixture .05 n=200", "kurtosis df=20 n=500", "higgs n=100", "higgs n=200", "higgs 100 v 400", "mean d=2 n=100"),
    *("mean d=20 n=75", "mean d=50 n=50", "scale d=10 n=100", "one of 50 n=100", "correlation d=6 n=200"),
    *("mnist Q1 n=60", "mnist Q2 n=80", "mnist Q3 n=100", "four modes 0.7 n=500", "uniform d=1 a=0.4 n=500"),
)
CHOOSE = {
    **CHOOSING,
    **{name: (PANELS | PUBLISHED)[name] for name in OLD},
    **{f"{name}, units": partial(in_units, name) for name in ("correlation d=6 n=200", "mean d=20 n=75", "scale d=10 n=100")},
    "two scales n=200": two_scales,
    "bumps d=1 4 n=700": partial(perturbed_uniform, n=700, d=1, amplitude=2.7 / (4 * np.e), bumps=4),
}
GAUSSIAN, L1, LIFT = Bandwidth("gaussian"), LaplacianL1(), Polynomial(degree=2)
LOCAL = {"narrowest": 1 / 16, "widest": 1 / 4, "ratio": 2.0, "summed": True}


def _at(multiple: float, *scale: str, gammas: tuple[float, ...] = (), family: object = GAUSSIAN) -> KernelClass:
    return KernelClass(family, *scale, narrowest=multiple, widest=multiple, gammas=gammas)


CANDIDATES = {
    "G raw 2": _at(2),
    "G raw 1": _at(1),
    "G raw 1/8": _at(1 / 8),
    "local raw": KernelClass(GAUSSIAN, **LOCAL),
    "S-G raw 1": _at(1, gammas=GAMMAS),
    "S-G raw 1/4": _at(1 / 4, gammas=GAMMAS),
    "G std 1": _at(1, "standard"),
    "G std 1/8": _at(1 / 8, "standard"),
    "local std": KernelClass(GAUSSIAN, "standard", **LOCAL),
    "S-G std 1": _at(1, "standard", gammas=GAMMAS[:4]),
    "L1 std 1": _at(1, "standard", family=L1),
    "S-L1 std 2": _at(2, "standard", gammas=GAMMAS[:3], family=L1),
    "lift": _at(1 / 2, "standard", family=LIFT),
    "radius": _at(1, "standard", family=Radius()),
}
NAMES = {candidate: name for name, candidate in CANDIDATES.items()}
ADDITIVE = GAMMAS[:3]
SEVEN: Union = {
    ("G raw 2", "G raw 1"): 1.5,
    ("S-G raw *",): 1,
    ("S-L1 std 2 @0.1", "S-L1 std 2 @0.01"): 1,
    ("G std 1",): 1,
    ("S-G std 1 *",): 0.5,
    ("lift",): 0.5,
    ("radius",): 0.7,
}


def scores_of(panel: str, draw: int) -> dict[str, np.ndarray]:
    """Return the scores of every member of every candidate on one draw."""
    data, test = np.random.default_rng([SEED, draw]).spawn(2)
    pool = read_pool(*CHOOSE[panel](data), missing="impute")
    bin_stream, label_stream, sample_stream = test.spawn(3)
    layout = Layout.cut(pool.m, pool.n, None, bin_stream).draw(RELABELINGS, label_stream)
    order = sample_stream.permutation(pool.m + pool.n)
    preparations = {scale: Preparation.fit(pool, scale=scale) for scale in (None, "standard")}
    landmarks = landmark_count(len(layout.rows))
    views = {
        scale: View(partial(fitted.transform, pool), layout, order, DEFAULT_LIMIT, landmarks)
        for scale, fitted in preparations.items()
    }
    found: dict[str, np.ndarray] = {}
    for candidate, members in FullSampleTest().kernel_members(tuple(CANDIDATES.values()), views):
        name, values = NAMES[candidate], tail_scores((members.summed() if candidate.summed else members).mmd2)
        for row, gamma in zip(values, candidate.gammas or (None,), strict=True):
            found[name if gamma is None else f"{name} @{gamma:g}"] = row
    columns = column_sums(pool, preparations[None], layout, products=True)
    (found["products"],) = tail_scores(columns.products[None])
    (found["columns"],) = tail_scores(columns.largest[None])  # the largest of many scores is no score of its own
    (found["additive"],) = tail_scores(columns.additive(()))
    spectral = tail_scores(columns.additive(ADDITIVE))
    found |= {f"S-additive @{gamma:g}": row for row, gamma in zip(spectral, ADDITIVE, strict=True)}
    return {name: row.astype(np.float32) for name, row in found.items()}


def collect(folder: Path, draws: range) -> None:
    """Keep the scores of every draw that has none yet."""
    folder.mkdir(parents=True, exist_ok=True)
    for draw in draws:
        for panel in CHOOSE:
            file = folder / f"{panel.replace(' ', '_').replace('/', '')}__{draw}.npz"
            if not file.exists():
                whole = file.with_suffix(".part.npz")
                np.savez(whole, **scores_of(panel, draw))
                os.replace(whole, file)


def rejects(scores: Scores, union: Union) -> bool:
    """Whether a union of classes rejects."""
    totals = []
    for patterns, weight in union.items():
        members = [row for name, row in scores.items() if any(fnmatch(name, pattern) for pattern in patterns)]
        if members:
            evidence = np.max(members, axis=0)
            totals.append(evidence - np.quantile(evidence, QUANTILE) + np.log(weight))
    total = np.max(totals, axis=0) if totals else np.zeros(2)
    return bool(np.mean(total >= total[0] - 1e-6) <= ALPHA)


def stored(folder: Path) -> dict[str, list[Scores]]:
    """Return the finished draws of every panel."""
    found: dict[str, list[Scores]] = {}
    for panel in CHOOSE:
        files = sorted(folder.glob(f"{panel.replace(' ', '_').replace('/', '')}__*.npz"))
        drawn: list[Scores] = [dict(np.load(file)) for file in files if ".part" not in file.name]
        if drawn:
            found[panel] = drawn
    return found


def compare(found: Mapping[str, Sequence[Scores]], unions: Mapping[str, Union]) -> str:
    """Return a Markdown table of the power of unions, one row a panel."""
    table = {
        f"{panel} ({len(drawn)})": [float(np.mean([rejects(scores, union) for scores in drawn])) for union in unions.values()]
        for panel, drawn in found.items()
    }
    table["average"] = np.mean(list(table.values()), axis=0).tolist()
    lines = ["| panel (draws) | " + " | ".join(unions) + " |", "|" + " --- |" * (len(unions) + 1)]
    lines += [f"| {panel} | " + " | ".join(f"{power:.2f}" for power in powers) + " |" for panel, powers in table.items()]
    return "\n".join(lines)


ALONE: dict[str, Union] = {
    **{name: {(f"{name} *" if candidate.gammas else name,): 1} for name, candidate in CANDIDATES.items()},
    "columns": {("columns",): 1},
    "products": {("products",): 1},
    "additive": {("additive",): 1},
    "S-additive": {("S-additive @0.1", "S-additive @0.01"): 1},
}
KERNELS: Union = {
    ("G raw 2", "G raw 1"): 1.5,
    ("S-G raw 1 @0.*",): 1,
    ("G std 1",): 1,
    ("S-G std 1 *",): 0.5,
    ("G std 1/8",): 0.7,
    ("lift",): 0.5,
    ("radius",): 0.7,
    ("S-L1 std 2 @0.1", "S-L1 std 2 @0.01"): 1,
}
MANY: Union = {**KERNELS, ("S-additive @0.1", "S-additive @0.01"): 2, ("columns",): 1, ("products",): 1}
UNIONS: dict[str, Union] = {
    "seven classes": SEVEN,
    "seven, narrow": {**SEVEN, ("G std 1/8",): 0.7},
    "seven, local": {**SEVEN, ("local std",): 1},
    "seven, columns": {**SEVEN, ("columns",): 1},
    "one or two columns": {
        ("G raw 2", "G raw 1"): 1.5,
        ("S-G raw *",): 1.25,
        ("G std 1/8",): 2,
        ("lift",): 0.25,
    },
    "more columns": MANY,
    "without products": {name: weight for name, weight in MANY.items() if name != ("products",)},
    "mixed": {**MANY, ("columns",): 8},
}


def main() -> None:
    """Collect, or compare what there is."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("command", choices=("collect", "compare"))
    arguments.add_argument("--folder", type=Path, default=FOLDER)
    arguments.add_argument("--first", type=int, default=0)
    arguments.add_argument("--draws", type=int, default=60)
    chosen = arguments.parse_args()
    if chosen.command == "collect":
        collect(chosen.folder, range(chosen.first, chosen.first + chosen.draws))
    text = compare(stored(chosen.folder), {**ALONE, **UNIONS})
    (RESULTS / "full_sample_study.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
