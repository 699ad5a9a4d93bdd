"""App. calibration for networks: four ways to calibrate C1, and how often J_CP > 0 under the null."""

from __future__ import annotations

from typing import Any

import numpy as np

from experiments.artefacts.c1_target import CALIBRATIONS, LAWS, answer
from experiments.base import ALL_CELLS, Experiment
from experiments.common import INIT, PERMUTATIONS, grid, network

REPETITIONS = 20


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test of the paper's network."""
    return answer(cell, network(), data_rng, test_rng)


EXPERIMENT = Experiment(
    id="c1-target-deep",
    artefact="App. calibration",
    title="C1, selection and power by the way of calibration: networks, d = 50, n = 100",
    task=task,
    cells=grid(**{"class": ["deep"], "law": LAWS, "calibration": CALIBRATIONS}),
    repetitions=REPETITIONS,
    data_keys=("class", "law"),
    settings={"n": 100, "d": 50, "init": INIT, "permutations": PERMUTATIONS},
    networks=ALL_CELLS,
    note="The rows under the null are the false selection of networks: the paper says that J_CP stays negative there.",
)
