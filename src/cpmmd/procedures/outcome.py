"""What a test found: typed values that every renderer reads. :class:`cpmmd.TestResult` is an outcome that explains itself."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field

from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.core.text import counted, harmless
from cpmmd.data.design import Design
from cpmmd.data.preparation import Preparation
from cpmmd.kernels.base import Kernel
from cpmmd.permutation.engine import Engine
from cpmmd.procedures.findings import ClassPath, Collection, Evidence, Splits
from cpmmd.selection.certificates import Certificate
from cpmmd.selection.values import Calibration, Selection


@dataclass(frozen=True, eq=False, repr=False)
class TestOutcome:
    """The answer of a two-sample test.

    Attributes
    ----------
    method, summary : str
        The method's name and its one line; the line is empty for a procedure of the user's own.
    statistic : float
        What was ranked.
    statistic_meaning : str
        What the statistic is, in words.
    pvalue : float
        Counts the labels as they came: never 0.
    alpha : float
        Level of the test.
    null_distribution : array
        The statistic under the relabelings, the observed one not among them.
    exhaustive : bool
        True when every possible relabeling was used instead of random ones.
    ties : int
        Relabelings, the observed one among them, whose statistic equals the observed one; they count against rejection.
    n_permutations : int
        The number that was asked for, as in the call that repeats the result.
    sizes, tested_sizes : tuple of int
        Rows of X and Y that were compared (after any were dropped), and those that the statistic saw.
    n_columns : int or None
        Columns of the data; None where there are none, as for a kernel matrix.
    kernel : Kernel or None
        The kernel that was tested, or that carries most of the evidence.
    preparation : Preparation or None
        The coordinates that the kernel sees.
    selection : Selection or None
        How a split test chose its kernel; None for other tests.
    calibration : Calibration or None
        The constant of its penalty, where it was calibrated.
    certificate : Certificate or None
        What the choice certifies; None where nothing is known: designs, several splits, other tests.
    design : Design or None
        What was exchangeable, where the call said so (groups, strata, pairs, blocks); None: all rows.
    engine : Engine or None
        How the statistics were computed.
    classes : tuple of ClassPath
        The classes of a full-sample test.
    collection : Collection or None
        The single tests of a method that uses many kernels.
    splits : Splits or None
        The p-values of several splits.
    exact : bool
        Whether the p-value is exact on the data as they come (MMDAgg's is given its bandwidths, which look at the labels).
    citations : tuple of str
        Keys of what to cite.
    seed : int or None
        What repeats the result as ``rng=``; None when a Generator was passed in.
    notes : tuple of str
        What to bear in mind.
    evidence : Evidence or None
        The data, for explanations: kept in memory and in pickles, never printed or in ``to_dict``; drop it with
        ``dataclasses.replace(result, evidence=None)``.
    call : str
        The Python call that gives this result again; empty where no single call does.

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
    classes: tuple[ClassPath, ...] = ()
    collection: Collection | None = None
    splits: Splits | None = None
    exact: bool = True
    citations: tuple[str, ...] = ()
    seed: int | None = None
    notes: tuple[str, ...] = ()
    evidence: Evidence | None = None
    call: str = field(default="")
    ties: int = 1

    @property
    def reject(self) -> bool:
        """Whether the samples differ at level alpha: ``pvalue <= alpha``, for every method."""
        return bool(self.pvalue <= self.alpha)

    @property
    def selected_class(self) -> ClassPath | None:
        """The class that a full-sample test took its kernel from; None for other tests."""
        return next((one for one in self.classes if one.selected is not None), None)

    @property
    def verdict(self) -> str:
        """The answer in one line."""
        words = "The samples differ" if self.reject else "No difference found"
        return f"{words} (p = {self.pvalue:.4g} {'<=' if self.pvalue <= self.alpha else '>'} {self.alpha:g})."

    def to_dict(self, *, null_distribution: bool = False) -> PlainDict:
        """Return the result in plain JSON types.

        Parameters
        ----------
        null_distribution : bool
            Whether to put in the null distribution, which is long.

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
            "classes": [one.to_dict() for one in self.classes],
            **{name: None if part is None else part.to_dict() for name, part in parts.items()},
        }
        if null_distribution:
            answer["null_distribution"] = self.null_distribution
        return plain_dict(answer)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """How the answer was reached, as terms and values for a person."""
        (m, n), (mt, nt) = self.sizes, self.tested_sizes
        tested = "" if (m, n) == (mt, nt) else f", {mt} v {nt} of them tested"
        every = "all " if self.exhaustive else ""
        facts = [
            ("method", self.method),
            ("samples", f"{self._shape}{tested}"),
            *([] if self.design is None else [("exchangeable", str(self.design))]),
            ("statistic", f"{self.statistic:.5g}, against {every}{len(self.null_distribution)} other relabelings"),
        ]
        if self.selected_class is not None:
            facts.append(("class", self.selected_class.name))
        if self.kernel is not None:
            facts.append(("kernel", str(self.kernel)))
        if self.calibration is not None:
            facts.append(("penalty", f"C1 = {self.calibration.c1:.4g} from {len(self.calibration.ratios)} null permutations"))
        if self.certificate is not None and not self.certificate.vacuous:
            facts.append(("certificate", self.certificate.statement))
        return facts + [("note", note) for note in self.notes]

    def __str__(self) -> str:
        repeat = [] if self.seed is None else [("repeat with", f"rng={self.seed}")]
        return "\n".join([self.verdict, *(f"  {term:<12} {value}" for term, value in [*self.facts, *repeat])])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict[:-1]}; {harmless(self.method)}, {self._shape}>"

    @property
    def _shape(self) -> str:
        m, n = self.sizes
        columns = "" if self.n_columns is None else f", {counted(self.n_columns, 'column')}"
        return f"{m} v {n} rows{columns}"
