"""The paper's protocol: choose the kernel on one half, test it on the other."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array, Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation, PreparedPool
from cpmmd.data.splitting import split_pool
from cpmmd.engines.fixed_kernel import KernelTest
from cpmmd.engines.memory import require_training
from cpmmd.kernels.base import TrainedFamily
from cpmmd.kernels.deep.families import Deep, Mixture
from cpmmd.kernels.families import Bandwidth, Polynomial
from cpmmd.kernels.linear_map import LinearMap
from cpmmd.kernels.scaled import ScaleFamily
from cpmmd.procedures.base import Choice, Method, Procedure, RunOptions
from cpmmd.procedures.outcome import Evidence, Splits, TestResult
from cpmmd.selection.certificates import Certificate, certify
from cpmmd.selection.criteria import ComplexityPenalized, Criterion, Plain, Ratio
from cpmmd.selection.search import Selector, calibrate, check_family, selector_for
from cpmmd.selection.values import Ascent, Calibration, Selection

SPECTRAL = "the best score -log p of the kernel over its spectral parameters"
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
    family : kernel family
        What to choose the kernel from.
    criterion : Criterion
        What the choice maximises.
    train_fraction : float
        Share of each sample that chooses the kernel.
    scale : str, optional
        None takes numbers as they come (the paper's); ``"standard"`` standardises by training statistics.
    ascent : Ascent, optional
        How trained kernels are trained; for :class:`LinearMap`, :class:`Deep` and :class:`Mixture` only.
    n_splits : int
        Number of random splits. With several, the result is that of the split with the median p-value, but its p-value is the
        combined one; ``splits`` has all of them.
    combine : str
        How the p-values of several splits are combined, by a rule that is valid under any dependence: ``"median"`` (twice the
        median), ``"mean"`` (twice the mean) or ``"geometric"`` (e times the geometric mean).
    delta : float
        Confidence parameter of the certificate. Only a single split of independent rows has a certificate: it is None with a
        design (``groups``, ``strata``, ``pairs``, ``blocks``), with several splits and with ``gammas``.
    max_train_rows : int
        Most rows, of both samples together, that choose the kernel, because selection is quadratic in them; the others are
        tested.
    gammas : tuple of float
        Spectral parameters at which the chosen kernel is tested beside the squared MMD: its directions divided by their variance
        among the tested rows, as in :class:`FullSampleTest`. Empty by default, as in the paper.

    Notes
    -----
    Scaling, encoding, search range, C1-hat and kernel see the training half only; given them the test half is exchangeable
    under the null, so the permutation test has exact level.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Polynomial, SplitTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(60, 2)), data.normal(2, 1, size=(60, 2))
    >>> result = two_sample_test(x, y, method=SplitTest(Polynomial(degree=2)), rng=0)
    >>> result.pvalue, result.tested_sizes
    (0.001, (30, 30))
    """

    family: ScaleFamily | TrainedFamily = field(default_factory=Bandwidth)
    criterion: Criterion = field(default_factory=ComplexityPenalized)
    train_fraction: float = 0.5
    scale: str | None = None
    ascent: Ascent | None = None
    n_splits: int = 1
    combine: str = "median"
    delta: float = 0.05
    max_train_rows: int = MAX_TRAIN_ROWS
    gammas: tuple[float, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "gammas", validation.gammas(self.gammas))
        validation.whole("max_train_rows", self.max_train_rows, at_least=8)
        validation.open_unit("train_fraction", self.train_fraction)
        validation.open_unit("delta", self.delta)
        validation.whole("n_splits", self.n_splits, at_least=1)
        validation.one_of("combine", self.combine, tuple(COMBINE))
        validation.scale(self.scale)
        if not isinstance(self.criterion, Criterion):
            raise validation.wrong("criterion", "must be ComplexityPenalized(), Ratio() or Plain()", self.criterion)
        check_family(self.family, self.ascent)

    @classmethod
    def methods(cls) -> Mapping[str, Method]:
        """Return every criterion on every family of the paper."""
        return {
            name: Method(partial(_ready_made, family, criterion), f"{_WORDS[criterion]} {what}, split in halves{aside}")
            for name, (family, criterion, what, aside) in _READY_MADE.items()
        }

    @property
    def parts(self) -> tuple[object, ...]:
        """Family and criterion."""
        return (self.family, self.criterion)

    @property
    def combination_factor(self) -> float:
        """The factor by which the rule multiplies p-values that are all equal."""
        return 1.0 if self.n_splits == 1 else COMBINE[self.combine](np.ones(1))

    def train_share(self, rows: int = 1) -> float:
        """Return ``train_fraction``, or as much of it as ``max_train_rows`` allows."""
        return min(self.train_fraction, self.max_train_rows / rows)

    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Run one split, or several and combine them."""
        if self.n_splits == 1:
            return self._run_split(pool, options, rng)
        outcomes = [self._run_split(pool, options, stream) for stream in rng.spawn(self.n_splits)]
        pvalues = np.array([outcome.pvalue for outcome in outcomes])
        typical = outcomes[int(np.argsort(pvalues, kind="stable")[(self.n_splits - 1) // 2])]
        combined = min(1.0, COMBINE[self.combine](pvalues))
        note = f"{self.n_splits} splits with p from {pvalues.min():.3g} to {pvalues.max():.3g}, combined by {self.combine}"
        return replace(
            typical,
            pvalue=combined,
            splits=Splits(tuple(pvalues.tolist()), self.combine),
            notes=(*typical.notes, note, *self._note_powerless(outcomes, options.alpha)),
            citations=(*typical.citations, "vovk2020combining", "meinshausen2009pvalues"),
        )

    def _note_powerless(self, outcomes: list[TestResult], alpha: float) -> tuple[str, ...]:
        """Say that even the smallest p-values could not be combined to one that rejects."""
        best = COMBINE[self.combine](np.array([1 / (len(outcome.null_distribution) + 1) for outcome in outcomes]))
        if best <= alpha + 1e-12:
            return ()
        return (
            f"this test cannot reject: the smallest p-values of {self.n_splits} splits combine to {best:.3g}, above the level "
            f"{alpha:g}; use more permutations",
        )

    def _run_split(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Split, calibrate, select, test."""
        split_stream, *training_streams, permutation_stream = rng.spawn(4)
        split, shared = split_pool(pool, self.train_fraction, split_stream, at_most=self.max_train_rows)
        trained = self._train(pool, split.train, split.m_train, options, training_streams)
        test = self.run_kernel(
            trained.selection.kernel,
            trained.preparation,
            pool,
            options,
            permutation_stream,
            rows=split.test,
            m=split.m_test,
            gammas=self.gammas,
        )
        outcome = self.conclude_kernel(
            pool,
            options,
            test,
            kernel=trained.selection.kernel,
            selection=trained.selection,
            calibration=trained.calibration,
            certificate=self._certificate(trained, test, options) if self._certifies(pool) else None,
            preparation=trained.preparation,
            notes=(*trained.notes, *filter(None, [shared])),
            evidence=Evidence(pool, np.sort(split.test), np.sort(split.train)),
        )
        if not self.gammas:
            return outcome
        return replace(outcome, statistic_meaning=SPECTRAL, citations=(*outcome.citations, "hagrass2024spectral"))

    def choose(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> Choice:
        """Select on all rows, none kept for a test."""
        trained = self._train(pool, None, pool.m, options, rng.spawn(2))
        unused = [name for name, given in (("n_splits", self.n_splits > 1), ("gammas", bool(self.gammas))) if given]
        note = (f"a frozen kernel is tested as it is, so these options are ignored: {' and '.join(unused)}",) if unused else ()
        return Choice(trained.selection.kernel, trained.preparation, trained.calibration, (*trained.notes, *note))

    def _train(
        self, pool: Pool, rows: Rows | None, m: int, options: RunOptions, streams: list[np.random.Generator]
    ) -> _TrainedKernel:
        """Calibrate and select on some rows of the pool, the first ``m`` of which are of X."""
        calibration_stream, selection_stream = streams
        selector = selector_for(self.family, self.ascent)
        size = pool.m + pool.n if rows is None else len(rows)
        at_once = size if self.ascent is None else min(size, self.ascent.batch_rows)
        require_training(options.memory_limit, rows=at_once, matrices=selector.matrices)
        preparation = Preparation.fit(pool, rows, scale=self.scale)
        train = PreparedPool(preparation.transform(pool, rows), m, pool.row_shape if pool.preprocess is None else None)
        criterion, calibration = self._calibrate(selector, train, options.alpha, calibration_stream)
        return _TrainedKernel(train, preparation, criterion, calibration, selector.select(train, criterion, selection_stream))

    def _calibrate(
        self, selector: Selector, train: PreparedPool, alpha: float, rng: np.random.Generator
    ) -> tuple[Criterion, Calibration | None]:
        criterion = self.criterion
        if not (isinstance(criterion, ComplexityPenalized) and criterion.needs_calibration):
            return criterion, None
        level = criterion.calibration_alpha or alpha
        calibration = calibrate(selector, train, criterion, alpha=level, rng=rng)
        return criterion.calibrated(calibration.c1), calibration

    def _certifies(self, pool: Pool) -> bool:
        """Whether the theorem is about this test: independent rows, one split, the squared MMD."""
        return pool.design is None and self.n_splits == 1 and not self.gammas

    def _certificate(self, trained: _TrainedKernel, test: KernelTest, options: RunOptions) -> Certificate | None:
        train, selection = trained.train, trained.selection
        proxy_constant = self.family.proxy_constant(train.matrix.shape[1], train.size)
        if proxy_constant is None:
            return None
        kernel = selection.kernel
        return certify(
            mmd2=selection.mmd2,
            max_complexity=selection.max_complexity,
            proxy_constant=proxy_constant,
            proxy_proven=self.family.proxy_proven,
            calibrated_c1=trained.criterion.constant,
            bound=kernel.bound,
            lipschitz=kernel.base_lipschitz,
            train_sizes=(train.m, train.n),
            test_sizes=(test.layout.m, test.layout.n),
            alpha=options.alpha,
            n_permutations=test.ranking.total - 1,
            delta=self.delta,
        )


@dataclass(frozen=True, eq=False)
class _TrainedKernel:
    """A training half and what it chose."""

    train: PreparedPool
    preparation: Preparation
    criterion: Criterion
    calibration: Calibration | None
    selection: Selection

    @property
    def notes(self) -> tuple[str, ...]:
        """What selection and calibration have to say."""
        calibrated = "" if self.calibration is None else self.calibration.note
        return (*self.selection.notes, *filter(None, [calibrated]))


# name -> (family, criterion, over what, aside)
_READY_MADE: dict[str, tuple[Callable[[], ScaleFamily | TrainedFamily], type[Criterion], str, str]] = {
    "cp-linear": (Bandwidth, ComplexityPenalized, "over Gaussian bandwidths", " (the paper's H_linear)"),
    "cp-linear-map": (LinearMap, ComplexityPenalized, "over linear maps", " (the paper's H_linear with a matrix)"),
    "cp-polynomial": (Polynomial, ComplexityPenalized, "over bandwidths of a degree-4 lift", " (the paper's H_polynomial)"),
    "plain-linear": (Bandwidth, Plain, "over Gaussian bandwidths, no penalty", ""),
    "plain-polynomial": (Polynomial, Plain, "over a degree-4 lift, no penalty", ""),
    "cp-deep": (Deep, ComplexityPenalized, "over the weights of a network", " (the paper's H_deep)"),
    "cp-mixture": (Mixture, ComplexityPenalized, "on Liu's mixture (a heuristic)", ""),
    "liu": (Deep, Ratio, "over the weights of a network", ""),
    "liu-mixture": (Mixture, Ratio, "on Liu's mixture (as published)", ""),
    "plain-deep": (Deep, Plain, "over a network's weights, no penalty", ""),
    "plain-mixture": (Mixture, Plain, "on Liu's mixture, no penalty", ""),
}
_WORDS: dict[type[Criterion], str] = {ComplexityPenalized: "CP-MMD", Ratio: "ratio criterion", Plain: "largest MMD"}


def _ready_made(family: Callable[[], ScaleFamily | TrainedFamily], criterion: Callable[[], Criterion]) -> SplitTest:
    return SplitTest(family(), criterion())
