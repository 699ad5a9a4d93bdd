"""Not in the paper: its kurtosis panel with n read as rows in each half, 1000 rows a sample."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from cpmmd import StudyTable
from experiments.artefacts import polynomial
from experiments.base import Rows
from experiments.common import grid

N = 1000
DEGREES_OF_FREEDOM = (12, 20)
METHODS = ("cp", "plain", "mmdagg B=10", "cp-full")
REPETITIONS = 100


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, Any]:
    """One test."""
    return polynomial.tested(cell, N, data_rng, test_rng)


def draw(table: StudyTable, rows: Rows) -> Any:  # noqa: ARG001
    """The panel again."""
    return polynomial.power_against_df(rows, DEGREES_OF_FREEDOM)


EXPERIMENT = replace(
    polynomial.EXPERIMENT,
    id="polynomial-rows",
    artefact="beside Fig. three regimes (b)",
    title="kurtosis shift with 1000 rows a sample, 500 in each half",
    task=task,
    cells=grid(df=DEGREES_OF_FREEDOM, method=METHODS),
    repetitions=REPETITIONS,
    settings={**polynomial.EXPERIMENT.settings, "n": N},
    draw=draw,
    note="The paper's numbers beside a sample twice as large as it names, in case its n is that of a half.",
)
