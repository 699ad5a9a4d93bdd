"""App. real data: CIFAR-10 against CIFAR-10.1 after PCA to 500 columns; a named stand-in where CIFAR-10.1 is not at hand."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
from sklearn.decomposition import PCA

from cpmmd import StudyTable
from experiments.base import Experiment, Rows
from experiments.common import NEAR, NETWORKS, Pair, decision, grid, permutations_of, real_data_methods, test
from experiments.data import cifar10_1, draw_rows, load

N, COMPONENTS = 200, 500
FITTED = 5000  # images that give the components; samples are drawn from the others
CONTRAST = 0.8  # of the stand-in: pixels drawn towards their image's mean
STAND_IN, REAL, NULL = "stand-in: CIFAR-10 at 0.8 contrast", "CIFAR-10.1", "CIFAR-10 again"
REPETITIONS = 50
METHODS = real_data_methods()


@cache
def features(which: str) -> np.ndarray:
    """Return the 500 components of the images of one side."""
    images = load("cifar10")["images"].reshape(10_000, -1).astype(np.float32) / 255
    components = PCA(COMPONENTS, svd_solver="randomized", random_state=0).fit(images[:FITTED])
    chosen = images[FITTED:]
    if which == STAND_IN:
        centre = chosen.mean(axis=1, keepdims=True)
        chosen = centre + CONTRAST * (chosen - centre)
    elif which == REAL:
        found = cifar10_1()
        assert found is not None
        chosen = found.reshape(len(found), -1).astype(np.float32) / 255
    return np.asarray(components.transform(chosen))


def draw_pair(rng: np.random.Generator, against: str) -> Pair:
    """CIFAR-10 images against others; never the same image on both sides."""
    if against == REAL:
        return draw_rows(rng, features(NULL), N), draw_rows(rng, features(REAL), N)
    chosen = rng.choice(len(features(NULL)), 2 * N, replace=False)
    return features(NULL)[chosen[:N]].astype(float), features(against)[chosen[N:]].astype(float)


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test."""
    method = cell["method"]
    pair = draw_pair(data_rng, cell["against"])
    return decision(test(pair, METHODS[method], test_rng, n_permutations=permutations_of(method)))


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """Bars of rejections."""
    from experiments.figures import axes, bars, by_method

    figure, ax = axes(width=7)
    groups = list(dict.fromkeys(row["against"] for row in rows))
    bars(ax, groups, by_method(rows, METHODS))
    return figure


def sides() -> list[str]:
    """Return what CIFAR-10 is set against: itself, and CIFAR-10.1 or else the stand-in."""
    return [NULL, STAND_IN if cifar10_1() is None else REAL]


EXPERIMENT = Experiment(
    id="cifar",
    artefact="App. real data (CIFAR)",
    title="CIFAR-10 against CIFAR-10.1 (or a named stand-in), PCA to 500, n = 200",
    task=task,
    cells=grid(against=sides(), method=METHODS),
    repetitions=REPETITIONS,
    data_keys=("against",),
    settings={**NEAR, "n": N, "components": COMPONENTS, "contrast": CONTRAST, "fitted": FITTED},
    draw=draw,
    needs=("cifar10",),
    networks=tuple(NETWORKS),
    note="CIFAR-10.1 could not be obtained: the stand-in sets CIFAR-10 against other CIFAR-10 images at 0.8 contrast and says "
    "nothing about CIFAR-10.1.",
)
