"""What every procedure is: a frozen recipe that turns samples into a result."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from cpmmd.inputs import Preparation, Samples
from cpmmd.kernels.base import SelectedKernel
from cpmmd.permutation.dense import PermutationNull
from cpmmd.permutation.engine import KernelTest
from cpmmd.permutation.memory import DEFAULT_LIMIT
from cpmmd.results import Calibration, Evidence, TestResult
from cpmmd.samples import Rows


@dataclass(frozen=True)
class RunOptions:
    """What a caller decides for any procedure."""

    alpha: float
    n_permutations: int
    method: str
    memory_limit: int = DEFAULT_LIMIT


@dataclass(frozen=True, eq=False)
class Choice:
    """The kernel that a procedure settles on, and the coordinates it is for."""

    kernel: SelectedKernel
    preparation: Preparation
    calibration: Calibration | None = None
    notes: tuple[str, ...] = ()


class Procedure(ABC):
    """A two-sample test, ready to run."""

    default_permutations: int = 999

    @abstractmethod
    def run(self, samples: Samples, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Run the test."""

    def choose(self, samples: Samples, options: RunOptions, rng: np.random.Generator) -> Choice:
        """Give the kernel for tests of other rows: these have chosen it, so that none of them may be tested with it."""
        result = self.run(samples, options, rng)
        assert result.kernel is not None
        return Choice(result.kernel, result.preparation, result.calibration, result.notes)


def conclude(
    samples: Samples,
    options: RunOptions,
    null: PermutationNull,
    *,
    tested_sizes: tuple[int, int],
    notes: tuple[str, ...] = (),
    tested: Rows | None = None,
    held_out: bool = False,
    **more: Any,
) -> TestResult:
    """Give the result of a permutation test on these samples.

    ``tested`` are the rows of the pool that the statistic saw (None: all), ``held_out`` says that they did not choose the kernel.
    """
    return TestResult(
        method=options.method,
        statistic=null.statistic,
        pvalue=null.pvalue,
        alpha=options.alpha,
        null_distribution=null.null,
        exhaustive=null.exhaustive,
        sizes=(samples.m, samples.n),
        tested_sizes=tested_sizes,
        width=len(samples.columns),
        notes=(*samples.notes, *notes),
        evidence=Evidence(samples, tested, held_out),
        **more,
    )


def conclude_kernel(
    samples: Samples,
    options: RunOptions,
    test: KernelTest,
    *,
    notes: tuple[str, ...] = (),
    details: Mapping[str, Any] | None = None,
    **more: Any,
) -> TestResult:
    """Give the result of a frozen kernel's test, with how it was computed."""
    return conclude(
        samples,
        options,
        test.null,
        tested_sizes=test.sizes,
        notes=(*notes, *test.notes),
        details={**(details or {}), "engine": test.engine},
        **more,
    )
