"""What every procedure is: a frozen recipe that turns samples into a result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass

import numpy as np

from cpmmd.inputs import Samples
from cpmmd.results import TestResult


@dataclass(frozen=True)
class RunOptions:
    """What a caller decides for any procedure."""

    alpha: float
    n_permutations: int
    method: str


class Procedure(ABC):
    """A two-sample test, ready to run."""

    default_permutations: int = 999

    @abstractmethod
    def run(self, samples: Samples, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Run the test."""
