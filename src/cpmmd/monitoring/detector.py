"""The drift detector: a reference, fitted once, against any number of batches."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Self

import numpy as np
import numpy.typing as npt

from cpmmd.core import validation
from cpmmd.core.parallel import threads
from cpmmd.core.progress import reporting_to
from cpmmd.core.seeds import resolve_seed, short_seed
from cpmmd.data.design import DesignOptions
from cpmmd.data.missing import find_missing
from cpmmd.data.notices import fitted_steps
from cpmmd.data.numbers import Matrix
from cpmmd.data.pool import apply_design, check_tables, pool_of_one
from cpmmd.data.schema import match_schema
from cpmmd.data.table import Table, read_table
from cpmmd.draws.group_sizes import cut_groups
from cpmmd.errors import InputError, ParameterReference, name_keywords
from cpmmd.monitoring.answers import BatchResult, CheckedBatch, content_digest
from cpmmd.monitoring.checking import BatchCheck, NamedBatch
from cpmmd.monitoring.frozen_kernel import FrozenTest, adopt, train
from cpmmd.monitoring.history import History, keeping
from cpmmd.monitoring.states import Fitted, State
from cpmmd.questions.options import TestPlan


@name_keywords
@dataclass(eq=False, repr=False, kw_only=True)
class DriftDetector(Fitted[State]):
    """Tests batch after batch against a fixed reference.

    Parameters
    ----------
    method, n_permutations, n_jobs, memory_limit, scale, missing, progress, preprocess
        As for :func:`two_sample_test`.
    alpha : float
        Significance level of each batch's test, not adjusted for the number of batches.
    rng : int, Generator, RandomState or None
        Seed or generator. A batch's answer depends on it and on the batch's content, not on its name or on earlier batches.
    train_fraction : float
        Share of the reference that trains the kernel when there is an example, up to 2000 rows; batches are tested against the
        other rows.
    groups, strata, pairs : str, optional
        A column of reference and batches, as for :func:`two_sample_test`. They cannot be combined with an example or a kernel,
        whose tests permute rows individually. Groups of different sizes are cut to one size.
    blocks : int or "auto", optional
        As for :func:`two_sample_test`.

    Attributes
    ----------
    reference_ : Table
        The reference as it was read.
    n_features_in_, feature_names_in_ : int, array of str
        Number of its columns, and their names where it has them.
    kernel_, preparation_, calibration_ : Kernel, Preparation, Calibration or None
        The kernel chosen at fit, its coordinates and its C1-hat; None where each batch's test chooses its own.
    train_rows_, test_rows_ : array of int
        Reference rows that the kernel was chosen on, and those that batches are tested against.
    seed_, n_permutations_ : int
        The seed of all randomness, and permutations of each batch's test.
    notes_ : tuple of str
        Notes from fitting.

    Notes
    -----
    Without an example, each batch's test is the named two-sample test of the whole reference against the batch. With an
    example, the kernel is chosen once, on a part of the reference against the example, and each test is one permutation test
    of the other reference rows against the batch, the reference's own kernel values reused. Rows that trained the kernel are
    never tested with it, so that the level is exact.

    The level holds for one batch and a fresh reference. Tests against one reference depend on each other: over many batches the
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

    _kind = "detector"

    train_fraction: float = 0.5
    groups: str | None = None
    strata: str | None = None
    pairs: str | None = None
    blocks: int | str | None = None

    def fit(self, reference: object, y: npt.ArrayLike | None = None, *, example: object = None, kernel: object = None) -> Self:
        """Keep the reference, and choose the kernel if there is an example.

        Parameters
        ----------
        reference : array or data frame
            The rows that batches are compared with.
        y : array, optional
            Ignored; present for scikit-learn's pipelines, one value for each row.
        example : array or data frame, optional
            A batch that differs, or rows of a period that did; the kernel is trained to detect that difference.
        kernel : Kernel or TestResult, optional
            A kernel that was chosen on other rows (``result.kernel``, ``load_kernel(path)``) and sees raw numbers, or a
            :class:`~cpmmd.TestResult` whose kernel and coordinates are used; ``method`` is then ignored. The kernel must not have
            been chosen on any row of the reference, because the level would not hold.

        Returns
        -------
        DriftDetector
            Itself.
        """
        plan, seed = self._plan(), resolve_seed(self.rng)
        _check_kernel_sources(plan.design, self.scale, example=example, kernel=kernel)
        table = read_table(reference, "reference")
        _check_targets(y, table.rows)
        read = plan.design.split_design_columns(table, "reference")
        (table,), checked = check_tables({"reference": read}, missing=self.missing)
        notes = (*read.notes, *checked)
        table = replace(table, numbers=Matrix(np.asarray(table.numbers)))  # a copy: the caller's array may change
        rng, frozen = np.random.default_rng(seed), None
        with threads(plan.n_jobs), reporting_to(self.progress):
            if example is not None:
                examples, conformed = match_schema(example, table, "example")
                digest, share = content_digest(examples), self.train_fraction  # of the example as it came
                (examples,), dropped = check_tables({"example": examples}, missing=self.missing)
                notes += (*conformed, *dropped)
                frozen = train(plan, table, examples, digest=digest, train_fraction=share, rng=rng)
            elif kernel is not None:
                frozen = adopt(kernel, table, plan, train_fraction=self.train_fraction, rng=rng)
            return self._begin(State(self.get_params(deep=False), seed, table, frozen, notes))

    def test(
        self, batch: object, name: str | None = None, *, n_permutations: int | None = None, missing: str | None = None
    ) -> BatchResult:
        """Test one batch against the reference.

        Parameters
        ----------
        batch : array or data frame
            The rows to test, with the columns of the reference.
        name : str, optional
            The name of the batch; None names it after its content.
        n_permutations : int, optional
            Permutations for this batch; None is the detector's. A longer run begins with the same ones.
        missing : str, optional
            What to do about this batch's missing values: ``"error"``, ``"drop"`` or ``"impute"``; None is the detector's.

        Returns
        -------
        BatchResult
            With ``pvalue``, ``reject``, ``result``, ...; print it for a line.
        """
        frozen = self._fitted().frozen
        table, notes = self._conform(batch, "batch")
        digest, key = content_digest(table), self._key(table, missing)
        (table,), dropped = check_tables({"batch": table}, missing=self._missing(missing))
        if frozen is not None and frozen.example == digest:
            notes += ("the kernel was trained on this batch: its p-value is too small",)
        pool = apply_design((self.reference_, table), self._design, (*self._of_reference, *notes, *dropped))
        pool = replace(pool, preprocess=self.preprocess)
        seed, options = short_seed(self.seed_, digest), self._options
        if n_permutations is not None:
            options = replace(options, n_permutations=validation.permutation_count(n_permutations, options.alpha))
        with threads(validation.jobs(self.n_jobs)), reporting_to(self.progress):
            rng = np.random.default_rng(seed)
            pool = cut_groups(pool, self._design, rng) if self._test.cuts_groups else pool
            outcome = self._test.run(pool, options, rng)
        name = f"batch {digest[:12]}" if name is None else str(name)
        return BatchResult.of(replace(outcome, seed=seed), batch=name, key=key)

    def check(
        self,
        batches: Mapping[str, object],
        *,
        alpha: float | None = None,
        history: History | str | Path | None = None,
        again: bool = False,
        missing: str | None = None,
        explain: bool = True,
    ) -> list[CheckedBatch[BatchResult]]:
        """Test several batches and decide on them together, with p-values adjusted by Benjamini and Hochberg.

        Parameters
        ----------
        batches : mapping of str to array or data frame
            Rows by the name of the batch, or a function that returns them; it is called again where the p-value is small and the
            test gets more permutations.
        alpha : float, optional
            Level of the adjusted p-values; None is the detector's.
        history : History, str or Path, optional
            Keeps each answer at once and the decisions at the end; known batches keep their answers. A path names its file, which
            is created if it does not exist.
        again : bool
            Whether batches that the history knows are tested again.
        missing : str, optional
            As for :meth:`test`.
        explain : bool
            Whether to find the columns that differ in each batch that differs.

        Returns
        -------
        list of CheckedBatch
            In the same order. If a batch cannot be tested, its ``error`` has the reason, and the others are still tested.
        """
        self._fitted()
        level = validation.open_unit("alpha", self.alpha if alpha is None else alpha)
        self._missing(missing)
        named = NamedBatch.each(batches)
        with keeping(history) as kept:
            return BatchCheck(self, level, missing, kept, again).run(named, explain=explain)

    def score(self, batch: npt.ArrayLike, y: object = None) -> float:  # noqa: ARG002 - part of the contract
        """Return the p-value of a batch, so that a detector can end a pipeline.

        Parameters
        ----------
        batch : array or data frame
            As for :meth:`test`.
        y : array, optional
            Ignored, as by :meth:`fit`.

        Returns
        -------
        float
            Small where the batch differs from the reference.
        """
        self._fitted()
        width, wanted = np.shape(batch)[1:2], self.n_features_in_ + len(self._design.columns)
        if width not in ((), (wanted,)):  # the sentence that scikit-learn expects of this method
            raise InputError(f"X has {width[0]} features, but {type(self).__name__} is expecting {wanted} features as input.")
        return self.test(batch).pvalue

    def key(self, batch: object, *, missing: str | None = None) -> str:
        """Return the key of a batch in a history: the same for the same rows and this detector, whatever the batch is called.

        Parameters
        ----------
        batch : array or data frame
            The rows, with the columns of the reference.
        missing : str, optional
            As for :meth:`test`; a batch with missing values has another key for each way of dealing with them.

        Returns
        -------
        str
            A digest in hexadecimal digits.
        """
        self._fitted()
        return self._key(self._conform(batch, "batch")[0], missing)

    def _key(self, table: Table, missing: str | None) -> str:
        known, way = f"{self._identity} {content_digest(table)}", self._missing(missing)
        if way != self._state.params["missing"] and find_missing(table, "batch").counts:
            known = f"{known} {way}"
        return hashlib.sha256(known.encode()).hexdigest()[:32]

    def _missing(self, given: str | None) -> str:
        return str(self._state.params["missing"]) if given is None else validation.missing(given)

    def _plan(self) -> TestPlan:
        validation.open_unit("train_fraction", self.train_fraction)
        return self._test_options().plan()

    def _begin(self, state: State) -> Self:
        plan = self._plan()
        procedure, options = plan.procedure, plan.options
        frozen, table = state.frozen, state.reference
        everything = np.arange(table.rows)
        self.kernel_, self.preparation_, self.calibration_ = None, None, None
        self._of_reference = tuple(fitted_steps(pool_of_one(table), ("reference",)))
        self.train_rows_, self.test_rows_, self.notes_ = everything[:0], everything, (*state.notes, *self._of_reference)
        if frozen is not None:
            label = "given kernel" if frozen.example is None else f"{options.method}, frozen kernel"
            procedure, options = FrozenTest.of(frozen, table), replace(options, method=label, summary="")
            choice = frozen.choice
            self.kernel_, self.preparation_, self.calibration_ = choice.kernel, choice.preparation, choice.calibration
            self.train_rows_, self.test_rows_ = np.sort(frozen.train_rows), np.sort(frozen.test_rows)
            self.notes_ = (*self.notes_, *choice.notes)
        self._state, self._test, self._options = state, procedure, options
        self._identity = f"{content_digest(table)} {state.seed} {options}{plan.design.described or ''}{plan.preprocess or ''}"
        self.reference_, self.seed_, self.n_permutations_ = table, state.seed, options.n_permutations
        return self._expect(table, plan.design)

    def __sklearn_tags__(self) -> object:
        """Tell scikit-learn which inputs are taken: sparse matrices, and missing values where they may be."""
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = self.missing != "error"
        return tags


def _check_kernel_sources(design: DesignOptions, scale: str | None, *, example: object, kernel: object) -> None:
    """Refuse a given kernel beside what would change it, and a kernel that is chosen once beside a design."""
    if kernel is not None and not (example is None and scale is None):
        raise InputError("A given kernel cannot be trained or rescaled. Leave out kernel=, or example= and scale=.")
    if design.given and not (example is None and kernel is None):
        raise InputError(
            "A kernel that is chosen once permutes rows individually. Leave out example= and kernel=, or {design}.",
            design=ParameterReference(next(iter(design.given))),
        )


def _check_targets(y: npt.ArrayLike | None, rows: int) -> None:
    """Refuse a second table: it would be ignored, and was meant as an example."""
    shape = () if y is None else np.shape(y)
    several = len(shape) > 1 and math.prod(shape[1:]) > 1
    if y is not None and (several or shape[:1] != (rows,)):
        raise InputError(
            "The second argument is scikit-learn's y, which is ignored and has one value for each row. Got shape {shape}; pass a "
            "batch that differs as {example}.",
            shape=shape,
            example=ParameterReference("example"),
        )
