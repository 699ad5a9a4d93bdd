"""A kernel chosen once, and the test that uses it: the reference rows that had no say in it against a batch."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpmmd.errors import InputError
from cpmmd.inputs import Preparation, Samples, Table, alone, pooled
from cpmmd.permutation.engine import describe, left_out
from cpmmd.permutation.reference import FixedReference
from cpmmd.procedures.base import Choice, Procedure, RunOptions, conclude
from cpmmd.results import TestResult
from cpmmd.samples import Rows
from cpmmd.splitting import set_aside

# Of either sample: most methods hold the kernel matrix of the rows that they choose on, here 128 MB.
TRAIN_ROWS = 2000


@dataclass(frozen=True, eq=False)
class Frozen:
    """A choice of kernel, and how it divides the reference.

    Attributes
    ----------
    train_rows, test_rows
        Reference rows that had a say in kernel or coordinates, and those that batches are tested against, in random order.
    example
        Digest of the example that trained the kernel, None where there was none.
    """

    choice: Choice
    train_rows: Rows
    test_rows: Rows
    example: str | None = None


def train(
    procedure: Procedure,
    options: RunOptions,
    reference: Table,
    example: Table,
    *,
    digest: str,
    train_fraction: float,
    rng: np.random.Generator,
) -> Frozen:
    """Give the kernel that a procedure chooses on a part of the reference against an example that differs."""
    split_stream, example_stream, choice_stream = rng.spawn(3)
    train_rows, test_rows = set_aside(reference.rows, train_fraction, split_stream, at_most=TRAIN_ROWS)
    some = example_stream.permutation(example.rows)[:TRAIN_ROWS]
    samples = pooled(reference.take(train_rows), example.take(some), open_ended=True)
    choice = procedure.choose(samples, options, choice_stream)
    note = (
        f"kernel trained on {len(train_rows)} of {reference.rows} reference rows and {len(some)} of {example.rows} example rows"
    )
    return Frozen(replace(choice, notes=(note, *choice.notes)), train_rows, test_rows, digest)


def adopt(kernel: Any, reference: Table, *, missing: str, train_fraction: float, rng: np.random.Generator) -> Frozen:
    """Give a kernel that was chosen elsewhere, or a test result's, in a form that batches can be tested with.

    Notes
    -----
    What has to be fitted (categories, dates, imputation) must not look at rows that are tested, or reference
    and batch would be treated differently: it is fitted on rows set aside. Plain numbers need none, so no row is lost.
    """
    if isinstance(kernel, TestResult):
        columns = (kernel.preparation.number_names, tuple(kernel.preparation.levels))
        if columns != (reference.number_names, tuple(reference.categories)):
            raise InputError("The kernel's test and the reference must have the same columns in the same order. They differ.")
        choice = Choice(kernel.kernel, kernel.preparation, kernel.calibration)  # type: ignore[arg-type]
        return Frozen(choice, np.arange(0), rng.permutation(reference.rows))
    if not (hasattr(kernel, "gram") and hasattr(kernel, "to_dict")):
        raise InputError(
            f"The 'kernel' parameter must be a selected kernel, such as result.kernel or load_kernel(path), or a test result. "
            f"Got {kernel!r} instead."
        )
    needs_fit = reference.categories or reference.dates or missing == "impute"
    if needs_fit:
        train_rows, test_rows = set_aside(reference.rows, train_fraction, rng, at_most=TRAIN_ROWS)
    else:
        train_rows, test_rows = np.arange(0), rng.permutation(reference.rows)
    fitted = train_rows if needs_fit else None
    return Frozen(Choice(kernel, Preparation.fit(alone(reference), fitted)), train_rows, test_rows)


class FrozenTest(Procedure):
    """The test of one reference's held-out rows against a batch, with a kernel that neither has chosen."""

    def __init__(self, frozen: Frozen, reference: Table) -> None:
        self.frozen = frozen
        rows = frozen.choice.preparation.transform(alone(reference), frozen.test_rows)
        self.fixed = FixedReference(frozen.choice.kernel, rows)
        self._try(rows.shape[1])

    def _try(self, width: int) -> None:
        """Refuse a kernel that cannot take the reference's rows now rather than in the first test."""
        try:
            values = self.fixed.kernel.gram(self.fixed.rows[:2], self.fixed.rows[:2])
        except InputError:
            raise
        except (ValueError, RuntimeError, KeyError, IndexError, TypeError) as error:
            raise InputError(
                f"The kernel cannot take the reference's rows of {width} columns, encoded: {str(error).splitlines()[0]}. "
                "Use a kernel that was chosen on data with the same columns."
            ) from error
        if values.shape != (2, 2) or not np.isfinite(values).all():
            raise InputError("The kernel gives no finite values on the reference's rows. Use one that was chosen on such data.")

    def run(self, samples: Samples, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Transform the batch, test it; the reference is the samples' X."""
        choice = self.frozen.choice
        batch = choice.preparation.transform(samples, np.arange(samples.m, samples.m + samples.n))
        null, bins = self.fixed.test(batch, n_permutations=options.n_permutations, rng=rng)
        tested = np.concatenate([self.frozen.test_rows, np.arange(samples.m, samples.m + samples.n)])[bins.order]
        return conclude(
            samples,
            options,
            null,
            tested_sizes=(bins.m, bins.n),
            kernel=choice.kernel,
            preparation=choice.preparation,
            calibration=choice.calibration,
            notes=(*left_out(bins), *_unmarked(samples, choice.preparation)),
            details={"train_rows": np.sort(self.frozen.train_rows), "test_rows": np.sort(tested), "engine": describe(bins)},
            tested=np.sort(tested),
            held_out=True,
        )


def _unmarked(samples: Samples, preparation: Preparation) -> tuple[str, ...]:
    """Say which columns are missing values in the batch only, where the kernel cannot see that they are."""
    absent = np.flatnonzero(np.isnan(samples.numbers[samples.m :]).any(axis=0))
    columns = [samples.number_names[j] for j in absent if j not in preparation.indicators]
    return tuple(f"column {c!r} had no missing values in training: the batch's are filled in and not seen" for c in columns)
