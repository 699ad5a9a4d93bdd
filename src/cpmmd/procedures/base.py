"""What every procedure is: a frozen recipe that turns a pool of two samples into an outcome."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping
from dataclasses import dataclass, fields, replace
from typing import Any, ClassVar, Self

import numpy as np

from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.errors import InputError
from cpmmd.kernels.base import Kernel
from cpmmd.permutation.engine import KernelTest
from cpmmd.permutation.enough import require_relabelings
from cpmmd.permutation.memory import DEFAULT_LIMIT
from cpmmd.permutation.ranking import Ranking
from cpmmd.procedures.findings import Evidence
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.selection.values import Calibration

OWN_PERMUTATIONS = 999
SQUARED_MMD = "the unbiased squared MMD on the tested rows"


@dataclass(frozen=True)
class RunOptions:
    """What a caller decides for any procedure.

    Attributes
    ----------
    alpha : float
        Level of the test.
    n_permutations : int
        Number of relabelings.
    method, summary : str
        The method's name and its one line.
    memory_limit : int
        Bytes that kernel matrices, tiles and prepared rows may take.
    decides : bool
        Whether the test must be able to reach ``alpha`` by itself; one of a series whose evidence adds up need not.
    """

    alpha: float
    n_permutations: int
    method: str
    summary: str = ""
    memory_limit: int = DEFAULT_LIMIT
    decides: bool = True


@dataclass(frozen=True)
class Method:
    """A procedure with a name of its own, and its one line.

    Attributes
    ----------
    make : callable
        Returns the procedure.
    summary : str
        The one line.
    """

    make: Callable[[], Procedure]
    summary: str


@dataclass(frozen=True, eq=False)
class Choice:
    """The kernel that a procedure settles on, and the coordinates it is for.

    Attributes
    ----------
    kernel : Kernel
        The choice.
    preparation : Preparation
        Its coordinates.
    calibration : Calibration or None
        C1-hat, where it was calibrated.
    notes : tuple of str
        What the choice had to say.
    """

    kernel: Kernel
    preparation: Preparation
    calibration: Calibration | None = None
    notes: tuple[str, ...] = ()


@dataclass(frozen=True)
class Procedure(ABC):
    """A two-sample test, ready to run.

    Attributes
    ----------
    citations : tuple of str
        Keys in ``citations.bib`` of what to cite for it.
    statistic_meaning : str
        What its statistic is, for a reader.
    exact : bool
        Whether its p-value is exact on the data as they come (rather than given something that looked at the labels).

    Examples
    --------
    >>> from cpmmd import FullSampleTest
    >>> procedure = FullSampleTest()
    >>> procedure.exact, procedure.default_permutations
    (True, 999)
    """

    citations: ClassVar[tuple[str, ...]] = ()
    statistic_meaning: ClassVar[str] = SQUARED_MMD
    exact: ClassVar[bool] = True

    @classmethod
    def methods(cls) -> Mapping[str, Method]:
        """Return the names under which it is ready-made.

        Returns
        -------
        mapping of str to Method
            The names, each with what makes the procedure and its one line.
        """
        return {}

    @property
    def default_permutations(self) -> int:
        """Relabelings when the call does not say."""
        return OWN_PERMUTATIONS

    @property
    def parts(self) -> tuple[object, ...]:
        """What it is made of that has citations of its own: families and criteria."""
        return ()

    @property
    def price(self) -> float:
        """What the p-values of several splits are multiplied by where they are combined."""
        return 1.0

    def train_share(self, rows: int = 1) -> float:  # noqa: ARG002 - what procedures that split may look at
        """Return the share of each sample that chooses the kernel and is not tested.

        Parameters
        ----------
        rows : int
            Rows of both samples, where there is a most that choose.

        Returns
        -------
        float
            0 where all rows are tested.
        """
        return 0.0

    @abstractmethod
    def run(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> TestOutcome:
        """Run the test.

        Parameters
        ----------
        pool : Pool
            The rows of both samples, those of X first.
        options : RunOptions
            What the caller decided.
        rng : Generator
            Where randomness comes from.

        Returns
        -------
        TestOutcome
            What :meth:`conclude` returns.
        """

    def choose(self, pool: Pool, options: RunOptions, rng: np.random.Generator) -> Choice:
        """Return the kernel for tests of other rows: these have chosen it, so that none of them may be tested with it.

        Parameters
        ----------
        pool, options, rng
            As for :meth:`run`.

        Returns
        -------
        Choice
            The kernel and its coordinates.
        """
        outcome = self.run(pool, options, rng)
        if outcome.kernel is None or outcome.preparation is None:
            raise InputError(f"{options.method} settles on no kernel, so none can be kept for other rows. Use another method.")
        return Choice(outcome.kernel, outcome.preparation, outcome.calibration, outcome.notes)

    def with_scale(self, scale: str) -> Self:
        """Return the procedure on columns scaled in this way.

        Parameters
        ----------
        scale : str
            ``"standard"``.

        Returns
        -------
        Procedure
            The same but for its ``scale``; procedures without that option refuse.
        """
        if "scale" not in {option.name for option in fields(self)}:
            raise InputError(
                f"{type(self).__name__} has no 'scale' option (it searches coordinates itself, or needs none); leave it out."
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
    ) -> TestOutcome:
        """Return the outcome of a permutation test on this pool.

        Parameters
        ----------
        pool, options
            As for :meth:`run`.
        ranking : Ranking
            The statistic among its relabelings.
        tested_sizes : tuple of int
            Rows of X and Y that the statistic saw.
        evidence : Evidence, optional
            The rows that were tested, and those that chose; None: all rows were tested, and chose.
        notes : tuple of str
            What to bear in mind, beside the notes of the pool.
        exact : bool, optional
            Whether the p-value is exact where the design is; None: as the procedure says of itself.
        **more : object
            Further fields of the outcome, such as ``kernel``.

        Returns
        -------
        TestOutcome
            With what the procedure says of itself.
        """
        units = None if evidence is None else evidence.units
        if options.decides and units is not None and units.contrast is not None:
            train = self.train_share(pool.m + pool.n)
            require_relabelings(units.contrast, pool.design, options.alpha, train=train, price=self.price)
        powerless = note_powerless(ranking.smallest_pvalue, options.alpha, tested_sizes) if options.decides else ()
        return TestOutcome(
            method=options.method,
            summary=options.summary,
            statistic=ranking.statistic,
            statistic_meaning=self.statistic_meaning + ("" if pool.design is None else ", between units of the design"),
            pvalue=ranking.pvalue,
            alpha=options.alpha,
            null_distribution=ranking.null_distribution,
            exhaustive=ranking.exhaustive,
            ties=ranking.ties,
            n_permutations=options.n_permutations,
            sizes=(pool.m, pool.n),
            tested_sizes=tested_sizes,
            n_columns=len(pool.columns),
            notes=(*pool.notes, *notes, *powerless),
            evidence=Evidence(pool) if evidence is None else evidence,
            design=pool.design,
            exact=(self.exact if exact is None else exact) and (pool.design is None or pool.design.exact),
            **{"citations": self.all_citations(), **more},
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
    ) -> TestOutcome:
        """Return the outcome of a fixed kernel's test, with how it was computed.

        Parameters
        ----------
        test : KernelTest
            What :func:`cpmmd.permutation.engine.kernel_test` returned.
        pool, options, evidence, notes, **more
            As for :meth:`conclude`.

        Returns
        -------
        TestOutcome
            With ``engine``.
        """
        return self.conclude(
            pool,
            options,
            test.ranking,
            tested_sizes=test.sizes,
            notes=(*notes, *test.notes),
            engine=test.engine,
            evidence=replace(Evidence(pool) if evidence is None else evidence, units=test.units),
            citations=(*self.all_citations(), *(("domingo2025cheap",) if test.engine.name == "binned" else ())),
            **more,
        )

    def all_citations(self) -> tuple[str, ...]:
        """Return what to cite for the procedure and its parts, each once.

        Returns
        -------
        tuple of str
            Keys in ``citations.bib``.
        """
        of_parts = (key for part in self.parts for key in getattr(part, "citations", ()))
        return tuple(dict.fromkeys((*self.citations, *of_parts)))


def note_powerless(smallest: float, alpha: float, sizes: tuple[int, int]) -> tuple[str, ...]:
    """Say that a test could not have rejected, whatever the data; nothing where it could."""
    if smallest <= alpha + 1e-12:
        return ()
    m, n = sizes
    least = f"with {m} v {n} tested rows no p-value below {smallest:.3g} is possible, above the level {alpha:g}"
    return (f"this test cannot reject: {least}",)
