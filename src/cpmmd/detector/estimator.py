"""The drift detector: a reference, fitted once, against any number of batches."""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError

from cpmmd import validation
from cpmmd.api import DEFAULT_METHOD, plan_test
from cpmmd.detector.batches import BatchResult, batch_seed, content_digest
from cpmmd.detector.frozen import Frozen, FrozenTest, adopt, train
from cpmmd.detector.state import State, pack, unpack
from cpmmd.errors import InputError
from cpmmd.files import Tensors, read_file, write_file
from cpmmd.inputs import Table, checked_tables, conform, pooled, read_table
from cpmmd.inputs.numbers import Matrix
from cpmmd.inputs.samples import MISSING
from cpmmd.parallel import threads
from cpmmd.procedures.base import Procedure, RunOptions


class UnfittedError(InputError, NotFittedError):  # type: ignore[misc]
    """A detector was used before it was fitted."""


class DriftDetector(BaseEstimator):  # type: ignore[misc]
    """Tests batch after batch against a fixed reference.

    Parameters
    ----------
    method
        A name from :func:`cpmmd.methods`, or a procedure.
    alpha
        Level of each batch's test, not adjusted for the number of batches.
    n_permutations
        Number of relabelings; None is the method's own.
    rng
        Seed, Generator or None. A batch's answer depends on it and on the batch's content, not on its name or on which batches
        came before.
    missing
        ``"error"``, ``"drop"`` rows with missing values, or ``"impute"``.
    scale
        ``"standard"`` standardises columns; None is the method's own.
    train_fraction
        Share of the reference that trains the kernel when there is an example, up to 2000 rows; batches are tested against the
        other rows.
    n_jobs
        Number of threads; None leaves the setting of the process.

    Attributes
    ----------
    reference_
        The reference as it was read.
    n_features_in_, feature_names_in_
        Its columns; names only where it has them.
    kernel_, preparation_, calibration_
        The kernel chosen at fit, its coordinates and C1-hat; None where each batch's test chooses its own.
    train_rows_, test_rows_
        Reference rows that had a say in the kernel, and those that batches are tested against.
    seed_
        What all randomness comes from.
    notes_
        What fitting had to say.

    Notes
    -----
    Without an example, each batch's test is the named two-sample test of the whole reference against the batch. With an
    example, the kernel is chosen once, on a part of the reference against the example, and each test is one permutation test
    of the other reference rows against the batch, the reference's own kernel values reused. Rows that trained the kernel are
    never tested with it, so that the level is exact.

    The level is that of one batch and a fresh reference. Tests against one reference share its luck: over many batches the
    share of false alarms is alpha on average over references, and near it where the reference is large.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import DriftDetector
    >>> data = np.random.default_rng(0)
    >>> detector = DriftDetector(rng=0).fit(data.normal(size=(200, 2)))
    >>> print(detector.test(data.normal(0.8, 1, size=(60, 2)), name="monday"))
    monday: differs (p = 0.001 <= 0.05), 60 rows
    """

    def __init__(
        self,
        method: str | Procedure = DEFAULT_METHOD,
        *,
        alpha: float = 0.05,
        n_permutations: int | None = None,
        rng: int | np.random.Generator | None = None,
        missing: str = "error",
        scale: str | None = None,
        train_fraction: float = 0.5,
        n_jobs: int | None = None,
    ) -> None:
        self.method = method
        self.alpha = alpha
        self.n_permutations = n_permutations
        self.rng = rng
        self.missing = missing
        self.scale = scale
        self.train_fraction = train_fraction
        self.n_jobs = n_jobs

    def fit(self, reference: Any, example: Any = None, *, kernel: Any = None) -> Self:
        """Keep the reference, and choose the kernel where there is an example.

        Parameters
        ----------
        reference
            The rows that batches are compared with: an array or a data frame.
        example
            A batch that differs, or the rows of a training period that did: the kernel is trained to see that difference.
        kernel
            A kernel that was chosen on other rows (``result.kernel``, ``load_kernel(path)``) and sees numbers as they come, or a
            :class:`~cpmmd.TestResult` whose kernel and coordinates are taken; ``method`` has no say then. None of the reference's
            rows may have had a say in the kernel, or the level is lost.
        """
        if kernel is not None and not (example is None and self.scale is None):
            raise InputError("A given kernel is neither trained nor rescaled. Leave out kernel=, or example= and scale=.")
        procedure, options = self._plan()
        seed = _seed(self.rng)
        (table,), notes = checked_tables({"reference": read_table(reference, "reference")}, missing=self.missing)
        table = replace(table, numbers=Matrix(np.asarray(table.numbers)))  # a copy: the caller's array may change
        rng, frozen = np.random.default_rng(seed), None
        with threads(self.n_jobs):
            if example is not None:
                frozen, more = self._trained(procedure, options, table, example, rng)
                notes += more
            elif kernel is not None:
                frozen = adopt(kernel, table, missing=self.missing, train_fraction=self.train_fraction, rng=rng)
            return self._assume(State(self.get_params(deep=False), seed, table, frozen, notes))

    def test(self, batch: Any, name: str | None = None) -> BatchResult:
        """Test one batch; without a name it is called by its content."""
        self._check_fitted()
        table, notes = conform(batch, self.reference_, "batch")
        digest = content_digest(table)
        (table,), dropped = checked_tables({"batch": table}, missing=self._state.params["missing"])
        if self._state.frozen is not None and self._state.frozen.example == digest:
            notes += ("this batch is the example that trained the kernel: its p-value is too small",)
        samples = pooled(self.reference_, table, (*notes, *dropped))
        seed = batch_seed(self.seed_, digest)
        with threads(self.n_jobs):
            result = self._test.run(samples, self._options, np.random.default_rng(seed))
        name = f"batch {digest[:12]}" if name is None else str(name)
        return BatchResult(name, datetime.now(UTC), replace(result, seed=seed))

    def save(self, path: str | Path) -> None:
        """Write the fitted detector, reference and all, to a file."""
        self._check_fitted()
        tensors, description = pack(self._state)
        write_file(path, tensors, description, kind="detector")

    @classmethod
    def load(cls, path: str | Path, *, module: Any = None) -> DriftDetector:
        """Read a detector that :meth:`save` wrote; one that trained a torch module of your own needs that module.

        Loading executes nothing that the file says. Damaged files are refused.
        """

        def restore(description: Any, tensors: Tensors) -> DriftDetector:
            state = unpack(description, tensors, module=module)
            return cls(**state.params)._assume(state)

        return read_file(path, restore, kind="detector")

    def _plan(self) -> tuple[Procedure, RunOptions]:
        """Give what the parameters ask for, all of them checked."""
        validation.one_of("missing", self.missing, MISSING)
        validation.scale(self.scale)
        validation.open_unit("train_fraction", self.train_fraction)
        if self.n_jobs is not None:
            validation.whole("n_jobs", self.n_jobs, at_least=1)
        return plan_test(self.method, alpha=self.alpha, n_permutations=self.n_permutations, scale=self.scale)

    def _trained(
        self, procedure: Procedure, options: RunOptions, reference: Table, example: Any, rng: np.random.Generator
    ) -> tuple[Frozen, tuple[str, ...]]:
        table, notes = conform(example, reference, "example")
        digest = content_digest(table)
        (table,), dropped = checked_tables({"example": table}, missing=self.missing)
        fraction = self.train_fraction
        frozen = train(procedure, options, reference, table, digest=digest, train_fraction=fraction, rng=rng)
        return frozen, (*notes, *dropped)

    def _assume(self, state: State) -> Self:
        """Become the detector of a state; after fitting and after loading alike."""
        procedure, options = self._plan()
        frozen, table = state.frozen, state.reference
        if frozen is not None:
            label = "given kernel" if frozen.example is None else f"{options.method}, frozen kernel"
            procedure, options = FrozenTest(frozen, table), replace(options, method=label)
        self._state, self._test, self._options = state, procedure, options
        self.reference_, self.seed_ = table, state.seed
        self.notes_ = (*state.notes, *(() if frozen is None else frozen.choice.notes))
        self.n_features_in_ = len(table.columns)
        self.__dict__.pop("feature_names_in_", None)
        if table.named:
            self.feature_names_in_ = np.array(table.columns, dtype=object)
        choice = None if frozen is None else frozen.choice
        self.kernel_, self.preparation_, self.calibration_ = (
            None if choice is None else getattr(choice, part) for part in ("kernel", "preparation", "calibration")
        )
        everything = np.arange(table.rows)
        self.train_rows_, self.test_rows_ = (
            (everything[:0], everything) if frozen is None else (np.sort(frozen.train_rows), np.sort(frozen.test_rows))
        )
        return self

    def __sklearn_is_fitted__(self) -> bool:
        """Whether there is a reference."""
        return hasattr(self, "_state")

    def _check_fitted(self) -> None:
        if not self.__sklearn_is_fitted__():
            raise UnfittedError("The detector has no reference yet. Call fit(reference) first.")


def _seed(rng: Any) -> int:
    """Give one number that all randomness of a detector comes from."""
    seed, generator = validation.generator(rng)
    return int(generator.integers(2**32)) if seed is None else seed
