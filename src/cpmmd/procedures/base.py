"""What every procedure is: a frozen recipe that turns a pool of two samples into an outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, fields, replace
from functools import partial
from typing import Any, ClassVar, Self

import numpy as np

from cpmmd.core.arrays import Rows
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.layout import require_relabelings
from cpmmd.engines.fixed_kernel import KernelTest, kernel_test
from cpmmd.engines.memory import DEFAULT_LIMIT
from cpmmd.errors import InputError
from cpmmd.evidence import Ranking
from cpmmd.kernels.base import Kernel
from cpmmd.procedures.outcome import Evidence, TestResult
from cpmmd.selection.values import Calibration

OWN_PERMUTATIONS = 999
SQUARED_MMD = "the unbiased squared MMD on the tested rows"


@dataclass(frozen=True)
class RunOptions:
    """What a caller decides for any procedure."""

    alpha: float  #: level of the test
    n_permutations: int  #: number of permutations
    method: str  #: the method's name
    summary: str = ""  #: its one line
    memory_limit: int = DEFAULT_LIMIT  #: bytes that kernel matrices, tiles and prepared rows may take
    decides: bool = True  #: whether the test must be able to reach alpha by itself; one of a series need not


@dataclass(frozen=True)
class Method:
    """A procedure with a name of its own, and its one line."""

    make: Callable[[], Procedure]  #: returns the procedure
    summary: str  #: the one line


@dataclass(frozen=True, eq=False)
class Choice:
    """The kernel that a procedure settles on, and the coordinates it is for."""

    kernel: Kernel  #: the choice
    preparation: Preparation  #: its coordinates
    calibration: Calibration | None = None  #: C1-hat, where it was calibrated
    notes: tuple[str, ...] = ()  #: what the choice had to say


@dataclass(frozen=True)
class Procedure(ABC):
    """A two-sample test, ready to run."""

    citations: ClassVar[tuple[str, ...]] = ()  #: keys in ``citations.bib`` of what to cite for it
    statistic_meaning: ClassVar[str] = SQUARED_MMD  #: what its statistic is, for a reader
    cuts_groups: ClassVar[bool] = True  #: whether groups of different sizes are cut to one size before it runs
    exact: ClassVar[bool] = True  #: whether p is exact on the data as they come, not given something that looked at the labels

    @classmethod
    def methods(cls) -> Mapping[str, Method]:
        """Return the names under which it is ready-made."""
        return {}

    @property
    def default_permutations(self) -> int:
        """Permutations when the call does not say."""
        return OWN_PERMUTATIONS

    @property
    def parts(self) -> tuple[object, ...]:
        """What it is made of that has citations of its own: families and criteria."""
        return ()

    @property
    def batch_rows(self) -> int | None:
        """Pools of more rows may be read batch by batch, without a design; None where rows must be in memory."""
        return None

    @property
    def combination_factor(self) -> float:
        """What the p-values of several splits are multiplied by where they are combined."""
        return 1.0

    def train_share(self, rows: int = 1) -> float:  # noqa: ARG002 - what procedures that split may look at
        """Return the share of each sample that chooses the kernel and is not tested, where both have so many rows."""
        return 0.0

    @abstractmethod
    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestResult:
        """Run the test on the rows of both samples, those of X first; returns what :meth:`conclude` does."""

    def choose(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> Choice:
        """Return the kernel for tests of other rows: these have chosen it, so that none of them may be tested with it."""
        outcome = self.run(pool, options, rng)
        if outcome.kernel is None or outcome.preparation is None:
            raise InputError(f"{options.method} selects no single kernel to freeze for later data. Use another method.")
        return Choice(outcome.kernel, outcome.preparation, outcome.calibration, outcome.notes)

    def with_scale(self, scale: str) -> Self:
        """Return the procedure on columns scaled in this way; procedures without that option refuse."""
        if "scale" not in {option.name for option in fields(self)}:
            raise InputError(
                f"{type(self).__name__} has no 'scale' option: it chooses coordinates itself, or needs none. Leave it out."
            )
        return replace(self, scale=scale)  # type: ignore[call-arg]

    def conclude(
        self,
        pool: Pool,
        options: RunOptions,
        ranking: Ranking,
        *,
        tested_sizes: tuple[int, int],
        evidence: Evidence | None = None,
        notes: tuple[str, ...] = (),
        exact: bool | None = None,
        **more: Any,
    ) -> TestResult:
        """Return the outcome of a permutation test on this pool, with what the procedure says of itself.

        Without ``evidence`` all rows were tested, and chose; ``exact`` is whether the p-value is exact where the design is, if
        not what the procedure says of itself; ``more`` are further fields of the outcome, such as ``kernel``.
        """
        evidence = Evidence(pool) if evidence is None else evidence
        if options.decides and evidence.units is not None:
            train = self.train_share(pool.m + pool.n)
            require_relabelings(
                evidence.units, pool.design, options.alpha, train=train, combination_factor=self.combination_factor
            )
        powerless = note_powerless(ranking.smallest_pvalue, options.alpha, tested_sizes) if options.decides else ()
        return TestResult(
            method=options.method,
            summary=options.summary,
            statistic=ranking.statistic,
            statistic_meaning=self.statistic_meaning + ("" if pool.design is None else ", between units of the design"),
            pvalue=ranking.pvalue,
            rank=ranking.rank,
            alpha=options.alpha,
            null_distribution=ranking.null_distribution,
            exhaustive=ranking.exhaustive,
            ties=ranking.ties,
            n_permutations=options.n_permutations,
            sizes=(pool.m, pool.n),
            tested_sizes=tested_sizes,
            n_columns=len(pool.columns),
            notes=(*pool.notes, *notes, *powerless),
            evidence=evidence,
            design=pool.design,
            exact=(self.exact if exact is None else exact) and (pool.design is None or pool.design.exact),
            **{"citations": self.all_citations(), **more},
        )

    def run_kernel(
        self,
        kernel: Kernel,
        preparation: Preparation,
        pool: Pool,
        options: RunOptions,
        rng: np.random.Generator,
        *,
        rows: Rows | None = None,
        m: int = 0,
        gammas: Sequence[float] = (),
    ) -> KernelTest:
        """Test one fixed kernel on all rows of a pool, or on ``rows`` of it, the first ``m`` of which are of X."""
        design = pool.design
        if rows is None:
            rows, m = np.arange(pool.m + pool.n), pool.m
        elif design is not None:
            design = design.take(rows, m)
        return kernel_test(
            kernel,
            partial(preparation.transform, pool),
            rows,
            m,
            n_permutations=options.n_permutations,
            rng=rng,
            memory_limit=options.memory_limit,
            design=design,
            gammas=gammas,
        )

    def conclude_kernel(
        self,
        pool: Pool,
        options: RunOptions,
        test: KernelTest,
        *,
        evidence: Evidence | None = None,
        notes: tuple[str, ...] = (),
        **more: Any,
    ) -> TestResult:
        """Return the outcome of a fixed kernel's test, with how it was computed."""
        return self.conclude(
            pool,
            options,
            test.ranking,
            tested_sizes=(test.layout.m, test.layout.n),
            notes=(*notes, *test.layout.left_out),
            engine=test.engine,
            evidence=replace(Evidence(pool) if evidence is None else evidence, units=test.layout),
            citations=(*self.all_citations(), *(("domingo2025cheap",) if test.engine.name == "binned" else ())),
            **more,
        )

    def all_citations(self) -> tuple[str, ...]:
        """Return what to cite for the procedure and its parts, each once."""
        of_parts = (key for part in self.parts for key in getattr(part, "citations", ()))
        return tuple(dict.fromkeys((*self.citations, *of_parts)))


def note_powerless(smallest: float, alpha: float, sizes: tuple[int, int]) -> tuple[str, ...]:
    """Return a note where a test cannot reject, whatever the data."""
    if smallest <= alpha + 1e-12:
        return ()
    m, n = sizes
    least = f"with {m} v {n} tested rows the smallest possible p-value is {smallest:.3g}, above the level {alpha:g}"
    return (f"this test cannot reject: {least}",)
