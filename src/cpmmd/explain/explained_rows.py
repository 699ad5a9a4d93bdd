"""What is explained: the rows that the test saw (or some of them), prepared as the test prepared them, and its kernel."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.errors import InputError
from cpmmd.explain.rows import draw_rows, own_order
from cpmmd.explain.strata import Strata
from cpmmd.kernels.base import Kernel
from cpmmd.procedures.median import median_kernel
from cpmmd.procedures.outcome import TestOutcome

NOT_HELD_OUT = (
    "rows are told apart by a kernel that was chosen on these rows, so how well may flatter (columns and pairs do not look at "
    "the kernel); a method that splits, such as cp-linear, uses rows that had no part in it"
)


@dataclass(frozen=True, eq=False)
class ExplainedRows:
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

    pool: Pool
    preparation: Preparation
    kernel: Kernel
    tested: Rows
    rows: Rows
    labels: Labels
    matrix: Array
    notes: tuple[str, ...]

    @property
    def units(self) -> Rows | None:
        """The unit of each row where a design has units of several; None where rows are as good as independent."""
        design = self.pool.design
        return None if design is None or design.size == len(design.unit) else design.unit[self.rows]

    @cached_property
    def strata(self) -> Strata | None:
        """The strata of the rows, inside which they are compared; None where a design has none."""
        return Strata.of(self.pool.design, self.rows)

    @property
    def tells(self) -> bool:
        """Whether rows are told apart one by one: not where they are compared in pairs, or in strata of few rows."""
        return self.strata is None or self.strata.inside

    @property
    def weights(self) -> Array | None:
        """Weights that give both samples one mix of strata; None where rows weigh the same."""
        if self.strata is None or self.strata.paired:
            return None
        return self.strata.weights(np.ones(len(self.rows), dtype=bool))

    def row_numbers(self, rows: Rows) -> Rows:
        """Return the numbers of pool rows in their own sample, as it was passed in."""
        if self.pool.kept is not None:
            return np.asarray(self.pool.kept[rows])
        return np.where(rows < self.pool.m, rows, rows - self.pool.m)


def tested_rows(outcome: TestOutcome) -> tuple[Pool, Rows]:
    """Return the pool behind an outcome and the rows of it that the test saw."""
    if outcome.n_columns is None:
        raise InputError("A kernel matrix says how alike rows are, not what they hold: it has no columns to explain.")
    if outcome.evidence is None:
        raise InputError("A result can be explained while it has its data. Got one without evidence; run the test again.")
    return outcome.evidence.pool, outcome.evidence.tested_rows


def gather_rows(outcome: TestOutcome, max_rows: int, rng: np.random.Generator) -> ExplainedRows:
    """Return the rows that an outcome rests on, at most ``max_rows`` of them."""
    pool, tested = tested_rows(outcome)
    rows = tested[draw_rows(tested < pool.m, max_rows, rng)]
    preparation = outcome.preparation or Preparation.fit(pool)
    matrix = preparation.transform(pool, rows)
    strata = Strata.of(pool.design, rows)
    told = strata is None or strata.inside
    notes = [] if not told or (outcome.evidence is not None and outcome.evidence.held_out) else [NOT_HELD_OUT]
    kernel = outcome.kernel
    if kernel is None:
        kernel = median_kernel(matrix, "gaussian")
        notes.append(
            f"the method names no kernel; rows are told apart with a Gaussian at the median distance, {kernel.bandwidth:.4g}"
        )
    if len(rows) < len(tested):
        notes.append(
            f"rows are told apart, the most telling ones named, among {len(rows)} of {len(tested)} tested rows, drawn at random"
        )
    order = own_order(matrix)
    return ExplainedRows(pool, preparation, kernel, tested, rows[order], rows[order] < pool.m, matrix[order], tuple(notes))
