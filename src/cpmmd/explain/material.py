"""What is explained: the rows that the test saw (or some of them), prepared as the test prepared them, and its kernel."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cpmmd.errors import InputError
from cpmmd.explain.rows import draw_rows, own_order
from cpmmd.inputs import Preparation, Samples
from cpmmd.kernels.base import SelectedKernel
from cpmmd.procedures.median import median_kernel
from cpmmd.results import TestResult
from cpmmd.samples import Array, Labels, Rows

NOT_HELD_OUT = (
    "the rows explained are the rows that chose the kernel, so shares and effect may flatter; a method that splits, such as "
    "method='cp-linear', explains rows that had no part in it"
)


@dataclass(frozen=True, eq=False)
class Material:
    """Rows to explain, in an order that does not depend on which sample is called X.

    Attributes
    ----------
    tested
        All rows of the pool that the test saw.
    rows
        Row numbers of the pool, of those that are explained.
    labels
        True for rows of X.
    matrix
        The rows as the kernel sees them.
    """

    samples: Samples
    preparation: Preparation
    kernel: SelectedKernel
    tested: Rows
    rows: Rows
    labels: Labels
    matrix: Array
    notes: tuple[str, ...]

    def some(self, at_most: int, rng: np.random.Generator) -> Material:
        """Give no more than so many of the rows."""
        kept = draw_rows(self.labels, at_most, rng)
        return replace(self, rows=self.rows[kept], labels=self.labels[kept], matrix=self.matrix[kept])

    def row_numbers(self, rows: Rows) -> Rows:
        """Give the numbers of pool rows in their own sample, as it was passed in."""
        if self.samples.kept is not None:
            return np.asarray(self.samples.kept[rows])
        return np.where(rows < self.samples.m, rows, rows - self.samples.m)


def tested_rows(result: TestResult) -> tuple[Samples, Rows]:
    """Give the samples behind a result and the rows of the pool that the test saw."""
    if result.evidence is None:
        raise InputError("A result can be explained while it has its data. Got one without evidence; run the test again.")
    samples: Samples = result.evidence.samples
    tested = result.evidence.tested
    return samples, np.arange(samples.m + samples.n) if tested is None else np.sort(tested)


def gather(result: TestResult, max_rows: int, rng: np.random.Generator) -> Material:
    """Give the rows that a result rests on, at most ``max_rows`` of them."""
    samples, tested = tested_rows(result)
    rows = tested[draw_rows(tested < samples.m, max_rows, rng)]
    preparation = result.preparation or Preparation.fit(samples)
    matrix = preparation.transform(samples, rows)
    notes = [NOT_HELD_OUT] if result.evidence is None or not result.evidence.held_out else []
    kernel = result.kernel
    if kernel is None:
        kernel = median_kernel(matrix, "gaussian")
        notes.append(f"the method names no kernel; explained with a Gaussian at the median distance, {kernel.sigma:.4g}")
    if len(rows) < len(tested):
        notes.append(f"{len(rows)} of {len(tested)} tested rows, drawn at random, are explained")
    order = own_order(matrix)
    return Material(samples, preparation, kernel, tested, rows[order], rows[order] < samples.m, matrix[order], tuple(notes))
