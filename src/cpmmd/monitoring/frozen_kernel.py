"""A kernel chosen once, and the test that uses it: reference rows held out from the choice against a batch."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Rows
from cpmmd.core.text import pluralize
from cpmmd.data.pool import Pool, pool_of_one, pool_tables
from cpmmd.data.preparation import Preparation
from cpmmd.data.splitting import hold_out
from cpmmd.data.table import Table
from cpmmd.engines.fixed_kernel import Engine
from cpmmd.engines.fixed_reference import FixedReference
from cpmmd.errors import InputError
from cpmmd.kernels.base import Kernel
from cpmmd.procedures.base import Choice, Procedure, RunOptions
from cpmmd.procedures.outcome import Evidence, TestResult
from cpmmd.questions.options import TestPlan

# Of either sample: most methods hold the kernel matrix of the rows that they choose on, here 128 MB.
TRAIN_ROWS = 2000


@dataclass(frozen=True, eq=False)
class FrozenKernel:
    """A choice of kernel, and how it divides the reference."""

    choice: Choice
    # train_rows, test_rows: reference rows that kernel or coordinates were chosen on, and those that batches are tested against,
    # in random order
    train_rows: Rows
    test_rows: Rows
    example: str | None = None  # digest of the example that trained the kernel, None where there was none


def train(
    plan: TestPlan,
    reference: Table,
    example: Table,
    *,
    digest: str,
    train_fraction: float,
    rng: np.random.Generator,
) -> FrozenKernel:
    """Return the kernel that a procedure chooses on a part of the reference against an example that differs."""
    split_stream, example_stream, choice_stream = rng.spawn(3)
    train_rows, test_rows = hold_out(reference.rows, train_fraction, split_stream, at_most=TRAIN_ROWS)
    some = example_stream.permutation(example.rows)[:TRAIN_ROWS]
    pool = pool_tables(reference.take(train_rows), example.take(some), open_ended=True)
    choice = plan.procedure.choose(replace(pool, preprocess=plan.preprocess), plan.options, choice_stream)
    note = (
        f"kernel trained on {len(train_rows)} of {reference.rows} reference rows and {len(some)} of {example.rows} example rows"
    )
    return FrozenKernel(replace(choice, notes=(note, *choice.notes)), train_rows, test_rows, digest)


def adopt(kernel: object, reference: Table, plan: TestPlan, *, train_fraction: float, rng: np.random.Generator) -> FrozenKernel:
    """Return a kernel that was chosen elsewhere, or a test result's, in a form that batches can be tested with.

    What has to be fitted (categories, dates, imputation) must not look at rows that are tested, or reference
    and batch would be treated differently: it is fitted on rows that are held out. Plain numbers need none, so no row is lost.
    """
    if isinstance(kernel, TestResult):
        if kernel.kernel is None or kernel.preparation is None:
            raise InputError(f"The result must have one kernel. {kernel.method!r} has none; pass the result of another method.")
        columns = (kernel.preparation.number_names, tuple(kernel.preparation.levels))
        if kernel.preparation.transformer is None and columns != (reference.number_names, tuple(reference.categories)):
            raise InputError(
                "The test of the kernel and the reference must have the same columns in the same order. They differ; reorder or "
                "drop columns."
            )
        choice = Choice(kernel.kernel, kernel.preparation, kernel.calibration)
        return FrozenKernel(choice, np.arange(0), rng.permutation(reference.rows))
    if not isinstance(kernel, Kernel):
        rule = "must be a selected kernel, such as result.kernel or load_kernel(path), or a test result"
        raise validation.wrong("kernel", rule, kernel)
    needs_fit = reference.categories or reference.dates or plan.missing == "impute" or plan.preprocess is not None
    if needs_fit:
        train_rows, test_rows = hold_out(reference.rows, train_fraction, rng, at_most=TRAIN_ROWS)
    else:
        train_rows, test_rows = np.arange(0), rng.permutation(reference.rows)
    pool = replace(pool_of_one(reference), preprocess=plan.preprocess)
    return FrozenKernel(Choice(kernel, Preparation.fit(pool, train_rows if needs_fit else None)), train_rows, test_rows)


@dataclass(frozen=True, eq=False)
class FrozenTest(Procedure):
    """The test of a reference's held-out rows against a batch, with a kernel that was chosen on neither."""

    frozen: FrozenKernel
    fixed: FixedReference

    @classmethod
    def of(cls, frozen: FrozenKernel, reference: Table) -> FrozenTest:
        """Return the test against a reference; a kernel that cannot take its rows is refused now, not in the first test."""
        rows = frozen.choice.preparation.transform(pool_of_one(reference), frozen.test_rows)
        try:
            values = frozen.choice.kernel.gram(rows[:2], rows[:2])
        except InputError:
            raise
        except (ValueError, RuntimeError, KeyError, IndexError, TypeError) as error:
            raise InputError(
                f"The kernel cannot take the reference's rows of {pluralize(rows.shape[1], 'column')}, encoded: "
                f"{str(error).splitlines()[0]}. Use a kernel that was chosen on data with the same columns."
            ) from error
        if values.shape != (2, 2) or not np.isfinite(values).all():
            raise InputError(
                "The kernel must have finite values on the reference's rows. Some are not; use a kernel that was chosen on such "
                "data."
            )
        return cls(frozen, FixedReference(frozen.choice.kernel, rows))

    @property
    def parts(self) -> tuple[object, ...]:
        """The kernel's family."""
        return (getattr(self.frozen.choice.kernel, "family", None),)

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Transform the batch, test it; the reference is the pool's X."""
        choice = self.frozen.choice
        of_batch = np.arange(pool.m, pool.m + pool.n)
        batch = choice.preparation.transform(pool, of_batch)
        ranking, layout = self.fixed.test(batch, n_permutations=options.n_permutations, rng=rng)
        units = layout.of(np.concatenate([self.frozen.test_rows, of_batch]))
        absent = np.flatnonzero(np.isnan(pool.numbers[pool.m :]).any(axis=0))
        marked = range(len(pool.number_names)) if choice.preparation.transformer is not None else choice.preparation.indicators
        filled = (
            f"column {pool.number_names[j]!r} had no missing values in training: those of the batch are filled in, and "
            "missingness is not tested"
            for j in absent
            if j not in marked
        )
        return self.conclude(
            pool,
            options,
            ranking,
            tested_sizes=(layout.m, layout.n),
            kernel=choice.kernel,
            preparation=choice.preparation,
            calibration=choice.calibration,
            notes=(*layout.left_out, *filled),
            evidence=Evidence(pool, np.sort(units.rows), np.sort(self.frozen.train_rows), units),
            engine=Engine.of(layout),
        )
