"""Which classes ``cp-full`` should search: power of unions of classes, from one pass over the data.

``collect`` keeps, for every panel and draw, the scores of every member of every candidate class under common relabelings
(resumable, one file a draw); ``compare`` makes any union of them into a test and prints its power. Draws have seeds of
their own: what chose the classes does not report them (benchmarks/power_panels.py does).
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping
from functools import partial

import numpy as np

from benchmarks import RESULTS
from cpmmd import Bandwidth, FullSampleTest, KernelClass, LaplacianL1, Polynomial, Radius
from cpmmd.data.pool import read_pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.layout import Layout
from cpmmd.engines.landmarks import landmark_count
from cpmmd.engines.memory import DEFAULT_LIMIT
from cpmmd.engines.paths import View
from cpmmd.evidence import tail_scores
from experiments.panels import PANELS, PUBLISHED, mixture, perturbed_uniform

SEED, RELABELINGS, ALPHA, QUANTILE = 77001, 199, 0.05, 0.9
FOLDER = RESULTS / "full_sample_study"  # not kept: some hundred megabytes
GAMMAS = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6)
Scores = Mapping[str, np.ndarray]


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


CHOOSE = {
    **{
        name: (PANELS | PUBLISHED)[name]
        for name in (
            *("mixture .05 n=200", "kurtosis df=20 n=500", "higgs n=100", "higgs n=200", "higgs 100 v 400", "mean d=2 n=100"),
            *("mean d=20 n=75", "mean d=50 n=50", "scale d=10 n=100", "one of 50 n=100", "correlation d=6 n=200"),
            *("marginals d=5 n=200", "mnist Q1 n=60", "mnist Q2 n=80", "mnist Q3 n=100", "blobs n=200"),
            *("four modes 0.7 n=500", "uniform d=1 a=0.4 n=500"),
        )
    },
    **{
        f"{name}, units": partial(in_units, name)
        for name in ("correlation d=6 n=200", "mean d=20 n=75", "one of 50 n=100", "marginals d=5 n=200", "scale d=10 n=100")
    },
    "two scales n=200": two_scales,
    **{f"bumps d=2 a={a} n={n}": partial(perturbed_uniform, n=n, d=2, amplitude=a) for a, n in ((0.7, 500), (0.9, 300))},
    "bumps d=1 4 n=700": partial(perturbed_uniform, n=700, d=1, amplitude=2.7 / (4 * np.e), bumps=4),
}
GAUSSIAN, L1, LIFT = Bandwidth("gaussian"), LaplacianL1(), Polynomial(degree=2)
CANDIDATES = {
    "G raw": KernelClass(GAUSSIAN, fewest_neighbours=30),
    "G raw 2 1": KernelClass(GAUSSIAN, narrowest=1, widest=2, ratio=2),
    "G std 1": KernelClass(GAUSSIAN, "standard", narrowest=1, widest=1),
    "L1 std": KernelClass(L1, "standard"),
    "lift": KernelClass(LIFT, "standard"),
    "lift 1/2": KernelClass(LIFT, "standard", narrowest=1 / 2, widest=1 / 2),
    "radius": KernelClass(Radius(), "standard", narrowest=1, widest=1),
    "S-G raw 1": KernelClass(GAUSSIAN, narrowest=1, widest=1, gammas=GAMMAS),
    "S-G raw 1 1/4": KernelClass(GAUSSIAN, narrowest=1 / 4, widest=1, ratio=4, gammas=GAMMAS),
    "S-G raw 1/2": KernelClass(GAUSSIAN, narrowest=1 / 2, widest=1 / 2, gammas=GAMMAS),
    "S-L2 raw 1": KernelClass(Bandwidth("laplacian"), narrowest=1, widest=1, gammas=GAMMAS),
    "S-G std 1": KernelClass(GAUSSIAN, "standard", narrowest=1, widest=1, gammas=GAMMAS[:4]),
    "S-L1 std 2": KernelClass(L1, "standard", narrowest=2, widest=2, gammas=GAMMAS[:2]),
    "S-L1 raw 2": KernelClass(L1, narrowest=2, widest=2, gammas=GAMMAS),
    "S-lift 4": KernelClass(LIFT, "standard", narrowest=4, widest=4, gammas=GAMMAS[:2]),
    "G raw 1/8": KernelClass(GAUSSIAN, narrowest=1 / 8, widest=1 / 8),
    "L1 raw 1/8": KernelClass(L1, narrowest=1 / 8, widest=1 / 8),
    "S-G raw 1/8": KernelClass(GAUSSIAN, narrowest=1 / 8, widest=1 / 8, gammas=GAMMAS),
}
CHOSEN = {
    **{"G raw 2 1": 1.5, "S-G raw 1 1/4": 1, "S-L1 std 2": 1, "radius": 0.7, "G std 1": 1, "S-G std 1": 0.5},
    "lift 1/2": 0.5,
}
# Name -> class -> weight.
UNIONS = {
    "four classes": {"G raw": 1, "L1 std": 1, "lift": 1, "radius": 0.25},
    "+ S-G, S-L1": {"G raw 2 1": 1.5, "S-G raw 1 1/4": 1, "S-L1 std 2": 1, "radius": 0.7},
    "S-L2 for S-G": {"G raw 2 1": 1.5, "S-L2 raw 1": 1, "S-L1 std 2": 1, "radius": 0.7},
    "+ std": {"G raw 2 1": 1.5, "S-G raw 1 1/4": 1, "S-L1 std 2": 1, "radius": 0.7, "G std 1": 1, "S-G std 1": 0.5},
    "chosen": CHOSEN,
    "chosen, S-G 2": {**CHOSEN, "S-G raw 1 1/4": 2},
    **{f"chosen + {narrow}": {**CHOSEN, narrow: 1} for narrow in ("G raw 1/8", "L1 raw 1/8", "S-G raw 1/8")},
}


def scores_of(panel: str, draw: int) -> dict[str, np.ndarray]:
    """Return the scores (member x relabeling, the observed one first) of every candidate on one draw."""
    data, test = np.random.default_rng([SEED, draw]).spawn(2)
    pool = read_pool(*CHOOSE[panel](data))
    bin_stream, label_stream, sample_stream = test.spawn(3)
    layout = Layout.cut(pool.m, pool.n, None, bin_stream).draw(RELABELINGS, label_stream)
    order = sample_stream.permutation(pool.m + pool.n)
    preparations = {scale: Preparation.fit(pool, scale=scale) for scale in (None, "standard")}
    landmarks = landmark_count(len(layout.rows))
    views = {
        scale: View(partial(fitted.transform, pool), layout, order, DEFAULT_LIMIT, landmarks)
        for scale, fitted in preparations.items()
    }
    found = {}
    for name, one in CANDIDATES.items():
        for _, path in FullSampleTest().paths((one,), views):
            found[name] = tail_scores(path.mmd2).astype(np.float32)
    return found


def collect(draws: int, part: int, parts: int) -> None:
    """Keep the scores of every draw that has none yet."""
    FOLDER.mkdir(parents=True, exist_ok=True)
    for draw in range(part, draws, parts):
        for panel in CHOOSE:
            file = FOLDER / f"{panel.replace(' ', '_').replace('/', '')}__{draw}.npz"
            if not file.exists():
                whole = file.with_suffix(".part.npz")
                np.savez(whole, **scores_of(panel, draw))
                os.replace(whole, file)


def rejects(scores: Scores, union: Mapping[str, float]) -> bool:
    """Whether a union of classes rejects."""
    best = {name: scores[name].max(axis=0) for name in union}
    total = np.max([one - np.quantile(one, QUANTILE) + np.log(union[name]) for name, one in best.items()], axis=0)
    return bool(np.mean(total >= total[0] - 1e-6) <= ALPHA)


def compare() -> None:
    """Print the power of every candidate alone and of every union."""
    tests = {**{name: {name: 1.0} for name in CANDIDATES}, **UNIONS}
    table: dict[str, list[float]] = {}
    for panel in CHOOSE:
        stem = panel.replace(" ", "_").replace("/", "")
        files = sorted(p for p in FOLDER.glob(f"{stem}__*.npz") if ".part" not in p.name)
        drawn: list[Scores] = [dict(np.load(path)) for path in files]
        table[f"{panel} ({len(drawn)})"] = [float(np.mean([rejects(one, union) for one in drawn])) for union in tests.values()]
    lines = ["| panel (draws) | " + " | ".join(tests) + " |", "|" + " --- |" * (len(tests) + 1)]
    table["average"] = np.mean(list(table.values()), axis=0).tolist()
    lines += [f"| {panel} | " + " | ".join(f"{power:.2f}" for power in powers) + " |" for panel, powers in table.items()]
    (RESULTS / "full_sample_study.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("command", choices=("collect", "compare"))
    arguments.add_argument("--draws", type=int, default=60)
    arguments.add_argument("--part", type=int, default=0)
    arguments.add_argument("--parts", type=int, default=1)
    chosen = arguments.parse_args()
    if chosen.command == "collect":
        collect(chosen.draws, chosen.part, chosen.parts)
    compare()
