"""What a test found: typed values that every renderer reads.

Explanations and reports are made from results, and so stand above them; a result imports them only when asked for one.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.metrics import Measured
from cpmmd.core.near_names import NearNames
from cpmmd.core.plain import NoTruthValue, PlainDict, plain_dict
from cpmmd.core.text import SAMPLES, pluralize, sanitize
from cpmmd.data.design import Design
from cpmmd.data.pool import Pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.layout import Layout
from cpmmd.engines.fixed_kernel import Engine
from cpmmd.errors import InputError
from cpmmd.kernels.base import Kernel
from cpmmd.selection.certificates import Certificate
from cpmmd.selection.values import Calibration, Selection

if TYPE_CHECKING:
    from cpmmd.explain.values import Explanation


@dataclass(frozen=True, eq=False)
class ClassScores:
    """One class of a full-sample test: the evidence of each of its members on the labels as they came, and its complexity."""

    name: str  #: the class
    label: str  #: the class in few words
    coordinates: str  #: what its kernels see: "raw coordinates", "standardised coordinates", or empty
    bandwidths: Array  #: of the members, widest first; empty for a fixed kernel and for columns
    gammas: Array  #: spectral parameter of each member, infinite for the squared MMD itself; empty for a fixed kernel
    mmd2: (
        Array  #: squared MMD of each member, directions divided by their spectrum where gamma is finite; empty for single columns
    )
    scores: Array  #: upper-tail score -log p of each member; of single columns that of the largest
    penalty: float  #: the complexity of the class, the logarithm of its weight taken off
    selected: int | None = None  #: the member that is the result's kernel: the simplest one that shows the difference alone

    @property
    def best(self) -> int:
        """Position of the member with the highest score."""
        return int(np.argmax(self.scores))

    @property
    def best_bandwidth(self) -> float | None:
        """Bandwidth of that member; None for a fixed kernel."""
        return float(self.bandwidths[self.best]) if len(self.bandwidths) else None

    @property
    def best_gamma(self) -> float | None:
        """Spectral parameter of that member; None where it is the squared MMD itself."""
        gamma = float(self.gammas[self.best]) if len(self.gammas) else np.inf
        return gamma if np.isfinite(gamma) else None

    @property
    def evidence(self) -> float:
        """The highest score."""
        return float(self.scores[self.best])

    @property
    def criterion(self) -> float:
        """Evidence minus penalty, by which classes compete."""
        return self.evidence - self.penalty

    def to_dict(self) -> PlainDict:
        """Return the class in plain JSON types; no spectral parameter is None."""
        gammas = [float(gamma) if np.isfinite(gamma) else None for gamma in self.gammas]
        return plain_dict({**vars(self), "gammas": gammas})


@dataclass(frozen=True)
class SingleTest:
    """One kernel of a collection, tested on its own."""

    kernel: str  #: its name
    bandwidth: float  #: its bandwidth
    mmd2: float  #: its squared MMD
    pvalue: float  #: its own p-value
    weight: float  #: its share in the collection
    rejected: bool | None = None  #: whether it rejects at its corrected level, where the method has one


@dataclass(frozen=True)
class Collection:
    """The single tests behind a method that uses many kernels at once."""

    tests: tuple[SingleTest, ...]  #: one for each kernel
    resampling: str  #: "permutations", or "wild bootstrap" (signs of pairs)
    level_correction: float | None = None  #: MMDAgg's factor u on the levels of the single tests
    sharpness: float | None = None  #: MMD-FUSE's lambda
    decision: bool | None = None  #: MMDAgg's own, whether some single test rejects at its corrected level; results decide by p

    def to_dict(self) -> PlainDict:
        """Return the collection in plain JSON types."""
        return plain_dict({**vars(self), "tests": [vars(test) for test in self.tests]})


@dataclass(frozen=True)
class Splits:
    """The p-values of several splits, and the rule that combined them."""

    pvalues: tuple[float, ...]  #: one for each split
    rule: str  #: "median", "mean" or "geometric", as in :class:`SplitTest`

    @property
    def smallest(self) -> float:
        """The smallest p-value."""
        return min(self.pvalues)

    @property
    def largest(self) -> float:
        """The largest p-value."""
        return max(self.pvalues)

    def to_dict(self) -> PlainDict:
        """Return the p-values and their rule in plain JSON types."""
        return plain_dict(vars(self))


@dataclass(frozen=True, eq=False)
class Evidence:
    """The data behind a result, not copied."""

    pool: Pool  #: the rows of both samples, those of X first
    tested: Rows | None = None  #: row numbers of the pool that the statistic saw, ascending; None for all
    trained: Rows | None = None  #: those that chose the kernel and were not tested, ascending; None where there are none
    units: Layout | None = None  #: what was permuted, and how; None where the method drew signs of pairs, and for a sample
    sample_of: int | None = None  #: where rows were read and not kept, how many there are; the pool is a sample of them

    @property
    def held_out(self) -> bool:
        """Whether none of the tested rows had a part in choosing the kernel."""
        return self.trained is not None

    @property
    def tested_rows(self) -> Rows:
        """Row numbers of the pool that the statistic saw."""
        return np.arange(self.pool.m + self.pool.n) if self.tested is None else self.tested


@dataclass(frozen=True, eq=False, repr=False)
class TestResult(NoTruthValue, NearNames, Measured):
    """The answer of a two-sample test.

    Attributes
    ----------
    method, summary : str
        The method's name, and one line about it, which is empty for a procedure of your own.
    statistic : float
        The observed statistic, which is ranked.
    statistic_meaning : str
        What the statistic is, in words.
    pvalue : float
        Includes the observed labels, so it is never 0.
    rank : int
        Rank of the observed statistic among all permutations: 1 is the largest, and ties count against rejection. With several
        splits, that of the split with the median p-value.
    alpha : float
        Significance level.
    null_distribution : array
        The statistic under every permutation but the observed labels.
    exhaustive : bool
        True when every possible permutation was used instead of random ones.
    ties : int
        Permutations, the observed labels among them, whose statistic equals the observed one; they count against rejection.
    n_permutations : int
        The number that was asked for.
    sizes, tested_sizes : tuple of int
        Rows of X and Y that were compared (after any were dropped), and those that the statistic saw.
    n_columns : int or None
        Columns of the data; None for a kernel matrix, which has no columns.
    kernel : Kernel or None
        The kernel that was tested. For a method that tests many, the one that explanations use; see ``kernel_note``.
    preparation : Preparation or None
        The coordinates that the kernel sees.
    selection : Selection or None
        How a split test chose its kernel; None for other tests.
    calibration : Calibration or None
        The constant of its penalty, where it was calibrated.
    certificate : Certificate or None
        What the choice certifies; None for designs, several splits, and other tests.
    design : Design or None
        What is exchangeable (groups, strata, pairs, blocks); None for all rows.
    engine : Engine or None
        How the statistics were computed.
    classes : tuple of ClassScores
        The classes of a full-sample test.
    collection : Collection or None
        The single tests of a method that uses many kernels.
    splits : Splits or None
        The p-values of several splits.
    exact : bool
        Whether the p-value is exact (MMDAgg's is exact given its bandwidths, which depend on the labels).
    citations : tuple of str
        Keys of what to cite.
    seed : int or None
        Repeats the result as ``rng=seed``; None when a Generator was passed.
    notes : tuple of str
        What to bear in mind.
    evidence : Evidence or None
        The data, for explanations. Pickles have them, ``to_dict`` and printed text do not. Drop them with
        ``dataclasses.replace(result, evidence=None)``.
    call : str
        The Python call that repeats the result; empty where no single call does.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> result = two_sample_test(data.normal(size=(40, 2)), data.normal(2, 1, size=(50, 2)), rng=0)
    >>> result
    <TestResult: The samples differ (p = 0.001 <= 0.05); cp-full, 40 v 50 rows, 2 columns>
    >>> result.reject, result.sizes, len(result.null_distribution)
    (True, (40, 50), 999)
    """

    __test__ = False  # not a test class, whatever pytest thinks of its name

    method: str
    statistic: float
    pvalue: float
    rank: int
    alpha: float
    null_distribution: Array
    exhaustive: bool
    n_permutations: int
    sizes: tuple[int, int]
    tested_sizes: tuple[int, int]
    n_columns: int | None
    summary: str = ""
    statistic_meaning: str = ""
    kernel: Kernel | None = None
    preparation: Preparation | None = None
    selection: Selection | None = None
    calibration: Calibration | None = None
    certificate: Certificate | None = None
    design: Design | None = None
    engine: Engine | None = None
    classes: tuple[ClassScores, ...] = ()
    collection: Collection | None = None
    splits: Splits | None = None
    exact: bool = True
    citations: tuple[str, ...] = ()
    seed: int | None = None
    notes: tuple[str, ...] = ()
    evidence: Evidence | None = None
    call: str = field(default="")
    ties: int = 1
    _explanations: dict[tuple[Any, ...], Explanation] = field(default_factory=dict, init=False)

    @property
    def reject(self) -> bool:
        """Whether the samples differ at level alpha: ``pvalue <= alpha``, for every method."""
        return bool(self.pvalue <= self.alpha)

    @property
    def selected_class(self) -> ClassScores | None:
        """The class of the kernel of a full-sample test; None for other tests."""
        return next((scored for scored in self.classes if scored.selected is not None), None)

    @property
    def statistic_class(self) -> ClassScores | None:
        """The class that gives a full-sample test its statistic; its kernel may be of another, see ``kernel_note``."""
        return max(self.classes, key=lambda scored: scored.criterion, default=None)

    @property
    def kernel_note(self) -> str:
        """How the kernel of a full-sample test was chosen, where it does not give the statistic; else empty."""
        chosen, best = self.selected_class, self.statistic_class
        if chosen is None or best is None or chosen.selected is None or (chosen is best and chosen.selected == best.best):
            return ""
        own = chosen.scores[chosen.selected] - chosen.penalty
        if own <= self.null_distribution.max(initial=-np.inf):
            return f"The kernel is the best one of any class with kernels: its score minus penalty is {own:.5g}."
        return (
            f"The kernel is a simpler member of {'the same' if chosen is best else 'another'} class. Its own score minus "
            f"penalty, {own:.5g}, also exceeds the statistic of every other permutation."
        )

    @property
    def verdict(self) -> str:
        """The answer in one line."""
        words = "The samples differ" if self.reject else "No difference found"
        return f"{words} (p = {self.pvalue:.4g} {'<=' if self.pvalue <= self.alpha else '>'} {self.alpha:g})."

    def explain(self, *, max_rows: int = 2000, top: int = 5, rng: Any = 0, names: Sequence[str] = SAMPLES) -> Explanation:
        """Return where the samples differ: columns, pairs of columns, rows. A second call returns the same object.

        Parameters
        ----------
        max_rows, top, rng, names
            As for :func:`cpmmd.explain.explain`.

        Returns
        -------
        Explanation
            With ``where``, ``columns``, ``pairs``, ``auc``, ...; print it for a summary.

        Examples
        --------
        >>> import numpy as np
        >>> from cpmmd import two_sample_test
        >>> data = np.random.default_rng(0)
        >>> result = two_sample_test(data.normal(size=(40, 2)), data.normal(size=(40, 2)) + [0, 2], rng=0)
        >>> result.explain(max_rows=60).columns[0].name
        '1'
        """
        from cpmmd.explain.explanation import explain

        options: dict[str, Any] = {"max_rows": max_rows, "top": top, "rng": rng, "names": names}
        key = (max_rows, top, rng, tuple(names))
        if not isinstance(rng, int):
            return explain(self, **options)
        if key not in self._explanations:
            self._explanations[key] = explain(self, **options)
        return self._explanations[key]

    def report(
        self,
        path: str | os.PathLike[str] | None = None,
        *,
        rows: bool = True,
        command: str | None = None,
        title: str | None = None,
        explanation: Explanation | None = None,
        explain: bool = True,
        names: Sequence[str] = SAMPLES,
    ) -> str:
        """Return a report for a colleague, and write it when a path is given.

        Parameters
        ----------
        path : str or Path, optional
            Ends in .html (one file that needs nothing else), .md or .json; without one the HTML text is only returned.
        rows : bool
            Whether values of single rows may appear.
        command : str, optional
            The shell command that repeats the result.
        title : str, optional
            What was compared.
        explanation : Explanation, optional
            What :meth:`explain` returned; computed when None.
        explain : bool
            False leaves out where the samples differ.
        names : sequence of str
            What the two samples are called; an explanation has its own.

        Returns
        -------
        str
            The text of the report.

        Examples
        --------
        >>> import numpy as np
        >>> from cpmmd import two_sample_test
        >>> data = np.random.default_rng(0)
        >>> result = two_sample_test(data.normal(size=(30, 2)), data.normal(2, 1, size=(30, 2)), rng=0)
        >>> result.report(title="Before and after", explain=False).startswith("<!doctype html>")
        True
        """
        from cpmmd.report.render import report

        if explain and explanation is None:
            explanation = self.try_explain(names)
        shown = explanation if explain else None
        return report(self, path, rows=rows, command=command, title=title, explanation=shown, names=names)

    def try_explain(self, names: Sequence[str] = SAMPLES) -> Explanation | None:
        """Return the explanation; None where the data are not at hand or cannot be explained.

        Parameters
        ----------
        names : sequence of str
            What the two samples are called in words.

        Returns
        -------
        Explanation or None
            As :meth:`explain` returns it.
        """
        if self.evidence is None:
            return None
        try:
            return self.explain(names=names)
        except InputError:  # a kernel or sample that cannot be explained
            return None

    def _repr_html_(self) -> str:
        """Return the verdict, where, and a small picture, for a notebook."""
        from cpmmd.report.notebook import result_card

        return result_card(self, self.try_explain())

    def to_dict(self, *, null_distribution: bool = False) -> PlainDict:
        """Return the result in plain JSON types.

        Parameters
        ----------
        null_distribution : bool
            Whether to include the null distribution, which is long.

        Returns
        -------
        dict
            Without the data.
        """
        parts = {
            name: getattr(self, name) for name in ("kernel", "selection", "calibration", "certificate", "collection", "splits")
        }
        answer: PlainDict = {
            "method": self.method,
            "reject": self.reject,
            "pvalue": self.pvalue,
            "alpha": self.alpha,
            "statistic": self.statistic,
            "statistic_meaning": self.statistic_meaning,
            "n_permutations": self.n_permutations,
            "n_relabelings": len(self.null_distribution),
            "exhaustive": self.exhaustive,
            "sizes": self.sizes,
            "tested_sizes": self.tested_sizes,
            "n_columns": self.n_columns,
            "seed": self.seed,
            "notes": self.notes,
            "design": None if self.design is None else self.design.to_dict(),
            "engine": None if self.engine is None else asdict(self.engine),
            "classes": [scored.to_dict() for scored in self.classes],
            "statistic_class": None if self.statistic_class is None else self.statistic_class.name,
            **{name: None if part is None else part.to_dict() for name, part in parts.items()},
        }
        if null_distribution:
            answer["null_distribution"] = self.null_distribution
        return plain_dict(answer)

    def _measures(self) -> Mapping[str, float | None]:
        m, n = self.sizes
        own = {name: getattr(self, name) for name in ("pvalue", "reject", "alpha", "statistic")}
        return {**own, "rows_x": m, "rows_y": n, "columns": self.n_columns}

    @property
    def facts(self) -> list[tuple[str, str]]:
        """How the answer was reached, as terms and values for a person."""
        (m, n), (mt, nt) = self.sizes, self.tested_sizes
        tested = "" if (m, n) == (mt, nt) else f", {mt} v {nt} of them tested"
        others = f"{'all ' if self.exhaustive else ''}{len(self.null_distribution)} other permutations"
        facts = [
            ("method", self.method),
            ("samples", f"{self._shape}{tested}"),
            *([] if self.design is None else [("exchangeable", str(self.design))]),
            ("statistic", f"{self.statistic:.5g}, compared with {others}"),
        ]
        chosen, best = self.selected_class, self.statistic_class
        if best is not None:
            facts.append(("class", f"{best.name}{', which gives the statistic' if self.kernel_note else ''}"))
        if self.kernel is not None:
            on = f" on {chosen.coordinates}" if chosen is not None and chosen.coordinates else ""
            facts.append(("kernel", f"{self.kernel}{on}"))
        if self.calibration is not None:
            facts.append(("penalty", f"C1 = {self.calibration.c1:.4g} from {len(self.calibration.ratios)} null permutations"))
        if self.certificate is not None and not self.certificate.vacuous:
            facts.append(("certificate", self.certificate.statement))
        return facts + [("note", note) for note in (self.kernel_note, *self.notes) if note]

    def __str__(self) -> str:
        repeat = [] if self.seed is None else [("repeat with", f"rng={self.seed}")]
        return "\n".join([self.verdict, *(f"  {term:<12} {value}" for term, value in [*self.facts, *repeat])])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict[:-1]}; {sanitize(self.method)}, {self._shape}>"

    @property
    def _shape(self) -> str:
        m, n = self.sizes
        columns = "" if self.n_columns is None else f", {pluralize(self.n_columns, 'column')}"
        return f"{m} v {n} rows{columns}"
