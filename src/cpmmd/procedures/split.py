"""The paper's protocol: choose the kernel on one half, test it on the other."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace

import numpy as np

from cpmmd import validation
from cpmmd.calibration import calibrate
from cpmmd.certificates import certify
from cpmmd.criteria import ComplexityPenalized, Criterion
from cpmmd.errors import InputError
from cpmmd.inputs import Preparation, Samples
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.permutation.engine import KernelTest, kernel_test
from cpmmd.procedures.base import Choice, Procedure, RunOptions, conclude_kernel
from cpmmd.results import Calibration, Certificate, Selection, TestResult
from cpmmd.samples import Array, Rows, TwoSample
from cpmmd.selection import Selector, selector_for
from cpmmd.selection.ascent_options import Ascent
from cpmmd.splitting import Split, stratified_split

MAX_TRAIN_ROWS = 2048  # more hardly change the choice (benchmarks/results/selection_size.csv)
# Valid for p-values of any dependence: Rueschendorf (1982), Meinshausen et al. (2009), Vovk and Wang (2020).
COMBINE: dict[str, Callable[[Array], float]] = {
    "median": lambda p: 2 * float(np.median(p)),
    "mean": lambda p: 2 * float(np.mean(p)),
    "geometric": lambda p: float(np.e * np.exp(np.mean(np.log(p)))),
}


@dataclass(frozen=True)
class SplitTest(Procedure):
    """Selects a kernel on a training half and runs an exact permutation test on the other.

    Parameters
    ----------
    kernel
        The family to choose from.
    criterion
        What the choice maximises.
    train_fraction
        Share of each sample that chooses the kernel.
    scale
        None takes numbers as they come (the paper's); ``"standard"`` standardises by training statistics.
    ascent
        How trained kernels are trained; for :class:`~cpmmd.kernels.deep.Deep` and mixtures only.
    n_splits, combine
        Several random splits, their p-values combined by a rule that is valid whatever their dependence: ``"median"`` (twice
        the median), ``"mean"`` (twice the mean) or ``"geometric"`` (e times the geometric mean). The result is the split with the
        median p-value, with the combined p-value and the spread in ``details["splits"]``.
    delta
        Confidence parameter of the certificate.
    max_train_rows
        Rows of both samples that choose the kernel at most, for selection is quadratic in them; the others are tested.

    Notes
    -----
    Scaling, encoding, search range, C1-hat and kernel see the training half only; given them the test half is exchangeable
    under the null, so the permutation test has exact level.
    """

    kernel: object = field(default_factory=Bandwidth)
    criterion: Criterion = field(default_factory=ComplexityPenalized)
    train_fraction: float = 0.5
    scale: str | None = None
    ascent: Ascent | None = None
    n_splits: int = 1
    combine: str = "median"
    delta: float = 0.05
    max_train_rows: int = MAX_TRAIN_ROWS

    def __post_init__(self) -> None:
        validation.whole("max_train_rows", self.max_train_rows, at_least=8)
        validation.open_unit("train_fraction", self.train_fraction)
        validation.open_unit("delta", self.delta)
        validation.whole("n_splits", self.n_splits, at_least=1)
        validation.one_of("combine", self.combine, tuple(COMBINE))
        validation.scale(self.scale)
        if not isinstance(self.criterion, Criterion):
            raise InputError(
                f"The 'criterion' parameter must be ComplexityPenalized(), Ratio() or Plain(). Got {self.criterion!r} instead."
            )
        selector_for(self.kernel, self.ascent)

    def run(self, samples: Samples, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Run one split, or several and combine them."""
        if self.n_splits == 1:
            return self._run_split(samples, options, rng)
        results = [self._run_split(samples, options, stream) for stream in rng.spawn(self.n_splits)]
        pvalues = np.array([result.pvalue for result in results])
        typical = results[int(np.argsort(pvalues, kind="stable")[(self.n_splits - 1) // 2])]
        combined = min(1.0, COMBINE[self.combine](pvalues))
        spread = {"pvalues": pvalues, "combine": self.combine, "smallest": pvalues.min(), "largest": pvalues.max()}
        note = f"{self.n_splits} splits with p from {pvalues.min():.3g} to {pvalues.max():.3g}, combined by {self.combine}"
        details = {**typical.details, "splits": spread}
        return replace(typical, pvalue=combined, details=details, notes=(*typical.notes, note))

    def _run_split(self, samples: Samples, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Split, calibrate, select, test."""
        split_stream, *training_streams, permutation_stream = rng.spawn(4)
        split = stratified_split(samples.m, samples.n, self.train_fraction, split_stream, at_most=self.max_train_rows)
        trained = self._train(samples, split.train, split.m_train, options, training_streams)
        selection, calibration, preparation = trained.selection, trained.calibration, trained.preparation
        test = kernel_test(
            selection.kernel,
            lambda rows: preparation.transform(samples, rows),
            split.test,
            split.m_test,
            n_permutations=options.n_permutations,
            rng=permutation_stream,
            memory_limit=options.memory_limit,
        )
        return conclude_kernel(
            samples,
            options,
            test,
            kernel=selection.kernel,
            selection=selection,
            calibration=calibration,
            certificate=self._certificate(trained, test, options),
            preparation=preparation,
            notes=trained.notes,
            details=_details(split),
            tested=split.test,
            held_out=True,
        )

    def choose(self, samples: Samples, options: RunOptions, rng: np.random.Generator) -> Choice:
        """Select on all rows, none kept for a test."""
        trained = self._train(samples, None, samples.m, options, rng.spawn(2))
        return Choice(trained.selection.kernel, trained.preparation, trained.calibration, trained.notes)

    def _train(
        self, samples: Samples, rows: Rows | None, m: int, options: RunOptions, streams: list[np.random.Generator]
    ) -> _Trained:
        """Calibrate and select on some rows of the pool, the first ``m`` of which are of X."""
        calibration_stream, selection_stream = streams
        preparation = Preparation.fit(samples, rows, scale=self.scale)
        train = TwoSample(preparation.transform(samples, rows), m, samples.row_shape)
        selector = selector_for(self.kernel, self.ascent)
        criterion, calibration = self._calibrated(selector, train, options.alpha, calibration_stream)
        return _Trained(train, preparation, criterion, calibration, selector.select(train, criterion, selection_stream))

    def _calibrated(
        self, selector: Selector, train: TwoSample, alpha: float, rng: np.random.Generator
    ) -> tuple[Criterion, Calibration | None]:
        criterion = self.criterion
        if not (isinstance(criterion, ComplexityPenalized) and criterion.needs_calibration):
            return criterion, None
        level = criterion.calibration_alpha or alpha
        calibration = calibrate(selector, train, criterion, alpha=level, rng=rng)
        return criterion.calibrated(calibration.c1), calibration

    def _certificate(self, trained: _Trained, test: KernelTest, options: RunOptions) -> Certificate | None:
        if not hasattr(self.kernel, "proxy_constant"):  # outside the theorem, as Liu's mixture is
            return None
        train, selection, criterion = trained.train, trained.selection, trained.criterion
        kernel = selection.kernel
        return certify(
            mmd2=selection.mmd2,
            max_complexity=selection.max_complexity,
            proxy_constant=self.kernel.proxy_constant(train.pool.shape[1], train.size),
            calibrated_c1=criterion.c1 if isinstance(criterion, ComplexityPenalized) else None,
            bound=kernel.bound,
            lipschitz=kernel.base_lipschitz,
            train_sizes=(train.m, train.n),
            test_sizes=test.sizes,
            alpha=options.alpha,
            n_permutations=len(test.null.null),
            delta=self.delta,
        )


@dataclass(frozen=True, eq=False)
class _Trained:
    """A training half and what it chose."""

    train: TwoSample
    preparation: Preparation
    criterion: Criterion
    calibration: Calibration | None
    selection: Selection

    @property
    def notes(self) -> tuple[str, ...]:
        """What selection and calibration have to say."""
        calibrated = "" if self.calibration is None else self.calibration.note
        return (*self.selection.notes, *filter(None, [calibrated]))


def _details(split: Split) -> dict[str, object]:
    return {"train_rows": np.sort(split.train), "test_rows": np.sort(split.test)}
