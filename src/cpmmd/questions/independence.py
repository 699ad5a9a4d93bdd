"""Are two tables, row by row, independent? One call: ``independence_test``."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, ClassVar

from cpmmd.core import validation
from cpmmd.core.parallel import threads
from cpmmd.core.plain import NoTruthValue, PlainValue
from cpmmd.core.progress import Progress, reporting_to
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.core.text import NAME, pluralize, sanitize
from cpmmd.data.design import CUT, DesignOptions
from cpmmd.data.paired import PairedTables, read_paired
from cpmmd.draws.pairings import Pairings, Shifts, draw_pairings
from cpmmd.errors import name_keywords
from cpmmd.procedures.independence import METHODS, PairedOptions, SelectedProduct, SingleHSIC, method_of
from cpmmd.questions.answer import Answer
from cpmmd.report.figures import Drawings
from cpmmd.report.page import AnyPart, Figure, Number, Table, count, number
from cpmmd.statistics.column_pairs import MOST_PAIRS, ColumnPair, PairScores, count_pairs

DEFAULT_METHOD = "cp-hsic"
DEFAULT_PERMUTATIONS = 999
PRINTED = 5  # pairs in the printed summary


@dataclass(frozen=True, repr=False)
class IndependenceExplanation(NoTruthValue, PlainValue):
    """Which columns of x go with which of y."""

    sentence: str  #: the finding in plain words
    pairs: tuple[ColumnPair, ...]  #: every pair of a column of x and one of y, the clearest first
    alpha: float  #: level of the adjusted p-values

    def __repr__(self) -> str:
        return f"<IndependenceExplanation: {self.sentence} {pluralize(len(self.pairs), 'pair')}; print it for all>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import table_card

        rows = [
            {"column of x": _called(p.x), "column of y": _called(p.y), "how": p.words, "p-value": p.pvalue} for p in self.pairs
        ]
        return table_card(self.sentence, ["p-values are adjusted over pairs."], rows)

    def __str__(self) -> str:
        lines = [f"  {_called(p.x, 20):<20} {_called(p.y, 20):<20} {p.words}, p = {p.pvalue:.4g}" for p in self.pairs[:PRINTED]]
        more = [f"  and {pluralize(len(self.pairs) - PRINTED, 'more pair')}"] if len(self.pairs) > PRINTED else []
        return "\n".join([self.sentence, *lines, *more])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class IndependenceResult(Answer):
    """The answer of an independence test.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import independence_test
    >>> x = np.random.default_rng(0).normal(size=(80, 2))
    >>> result = independence_test(x, x[:, 0] ** 2, rng=0)
    >>> result.reject, result.explain().pairs[0].x, result.explain().pairs[0].words
    (True, '0', 'related, neither rising nor falling')
    """

    title: ClassVar[str] = "Do the two tables depend on each other?"
    found: ClassVar[str] = "The tables depend on each other"
    not_found: ClassVar[str] = "No dependence found"
    document: ClassVar[tuple[str, ...]] = (
        *Answer.document,
        *("statistic_meaning", "rows", "columns_x", "columns_y", "exchanged", "classes", "singles"),
    )
    measured: ClassVar[tuple[str, ...]] = ("rows",)

    statistic_meaning: str = ""  #: what the statistic is
    rows: int  #: rows that were tested
    columns_x: tuple[str, ...]  #: columns of x
    columns_y: tuple[str, ...]  #: columns of y
    exchanged: str  #: what exchanges partners under the null hypothesis, in words
    classes: tuple[SelectedProduct, ...] = ()  #: what ``cp-hsic`` selected of each class, the strongest evidence first
    singles: tuple[SingleHSIC, ...] = ()  #: the single tests of ``hsicagg``
    tables: PairedTables = field(repr=False)  #: the data, not copied
    draws: Pairings | Shifts = field(repr=False)  #: the re-pairings of the test and of its explanation

    @property
    def shape(self) -> str:
        """The data in a few words."""
        x, y = (pluralize(len(columns), "column") for columns in (self.columns_x, self.columns_y))
        return f"{self.exchanged}, {x} v {y}"

    def explain(self) -> IndependenceExplanation:
        """Return which columns of x go with which of y, under the re-pairings of the test; computed once."""
        return self._explanation

    @cached_property
    def _explanation(self) -> IndependenceExplanation:
        if not count_pairs(self.tables):
            most = f"Pairs of columns are not tested: there are more than {MOST_PAIRS}. Choose fewer columns to see them."
            return IndependenceExplanation(most, (), self.alpha)
        with threads(None):
            pairs = PairScores.of(self.tables, self.draws).described(self.alpha)
        sure = [pair for pair in pairs if pair.pvalue <= self.alpha]
        if not sure:
            sentence = "No pair of columns stands out."
        else:
            first = sure[0]
            others = f", and {pluralize(len(sure) - 1, 'more pair')} of columns" if len(sure) > 1 else ""
            sentence = f"{_named(first.x)} of x goes with {_named(first.y)} of y ({first.words}){others}."
        return IndependenceExplanation(sentence, pairs, self.alpha)

    def terms(self) -> Iterator[tuple[str, str]]:
        """Yield the method and what it selected."""
        yield "method", f"{self.method} ({self.statistic_meaning}: {self.statistic:.4g})"
        if self.classes:
            first = self.classes[0]
            yield "selected", f"{first.x} v {first.y}{_said_gamma(first.gamma)}"
        kind = "all" if self.exhaustive else "random"
        yield "re-pairings", f"{self.n_permutations + 1} {kind}, the observed one among them"

    def sentences(self) -> Iterator[str]:
        """Yield the finding."""
        yield self.explain().sentence

    def numbers(self) -> Iterator[Number]:
        """Yield how much was compared."""
        yield Number("Rows", count(self.rows))
        yield Number("Columns", f"{count(len(self.columns_x))} v {count(len(self.columns_y))}")

    def parts(self) -> Iterator[AnyPart | None]:
        """Yield the picture and the table of pairs of columns."""
        pairs = self.explain().pairs
        if len(pairs) > 1:
            yield Figure(
                "column-pairs",
                "Which columns go together",
                "Columns of x against columns of y; darker squares are clearer, and dots mark adjusted p-values up to the level.",
                wide=True,
            )
        yield Table.of(
            "pairs",
            "Pairs of columns, with p-values adjusted over pairs (max-T)",
            [
                ("Column of x", "text", [pair.x for pair in pairs]),
                ("Column of y", "text", [pair.y for pair in pairs]),
                ("How", "words", [pair.words for pair in pairs]),
                ("Rank correlation", "number", [pair.correlation for pair in pairs]),
                ("p-value", "pvalue", [pair.pvalue for pair in pairs]),
            ],
            flagged=[i for i, pair in enumerate(pairs) if pair.pvalue <= self.alpha],
        )

    def drawings(self) -> Drawings:
        """Return what draws the picture."""
        from cpmmd import plotting

        return {"column-pairs": lambda ax: plotting.column_pairs(self, ax=ax)}

    def assurance(self) -> dict[str, str | None]:
        """Return how the p-value was found."""
        selected = None
        if self.classes:
            first = self.classes[0]
            selected = f"{first.x} v {first.y}{_said_gamma(first.gamma)}"
        return {
            "Exchanged": self.exchanged,
            "Re-pairings": f"{count(self.n_permutations + 1)}, {'all there are' if self.exhaustive else 'drawn at random'}",
            "Method": f"{self.method}: {METHODS[self.method].summary}" if self.method in METHODS else self.method,
            "Statistic": f"{number(self.statistic)}, {self.statistic_meaning}",
            "Selected": selected,
        }


@name_keywords
def independence_test(
    x: Any,
    y: Any,
    *,
    method: str = DEFAULT_METHOD,
    alpha: float = 0.05,
    n_permutations: int | None = None,
    rng: RNG = None,
    n_jobs: int | None = None,
    missing: str = "error",
    progress: Progress | None = None,
    groups: Any = None,
    strata: Any = None,
    blocks: int | str | None = None,
    group_sizes: str = CUT,
) -> IndependenceResult:
    """Test whether two tables, row by row, are independent.

    Parameters
    ----------
    x, y : array, data frame, path or source
        The tables, as for :func:`two_sample_test`: row i of x was observed together with row i of y. Columns may be of any kind,
        and any number on each side.
    method : str
        ``"cp-hsic"``, HSIC over products of kernels with spectral parameters, selected under every re-pairing; or
        ``"hsic-median"``, ``"distance-correlation"``, ``"hsicagg"``.
    alpha : float
        Significance level.
    n_permutations : int, optional
        Number of re-pairings; None is 999 (500 for ``hsicagg``, twice).
    rng : int, Generator, RandomState or None
        Seed or generator. The same seed gives the same answer with any number of threads.
    n_jobs : int, optional
        Number of threads, -1 for all cores; None leaves the setting of the process.
    missing : str
        ``"error"``; ``"drop"``, which leaves out rows with a missing value on either side; or ``"impute"``, which fills in
        medians and tests indicators of missing values as well.
    progress : callable, optional
        Called as ``progress(stage, done, total)``.
    groups : str or array, optional
        The group of each row, such as a patient: the name of a column of x or y, which is then not tested, or an array. Rows of y
        exchange partners by whole groups.
    strata : str or array, optional
        The stratum of each row, such as a site: rows exchange partners inside a stratum only. The test is then one of conditional
        independence, given the stratum.
    blocks : int or "auto", optional
        For rows in time: this many consecutive rows exchange partners as a whole. The level is then approximate.
    group_sizes : str
        What to do where groups differ in their numbers of rows: ``"cut"`` draws as many rows from each as the smallest of its
        stratum has; ``"keep"`` lets groups of equal size exchange partners, which tests given the size. Both are exact.

    Returns
    -------
    IndependenceResult
        With ``pvalue``, ``reject``, ``statistic``, ``explain()``, ``report()``, ...; print it for a summary.

    Notes
    -----
    All re-pairings are used where they are no more than ``n_permutations``. Otherwise they are random; above 200 units they are
    turns of random cycles, whose sums a Fourier transform gives all at once. The level is exact in every case.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import independence_test
    >>> data = np.random.default_rng(0)
    >>> x = data.normal(size=(100, 1))
    >>> independence_test(x, np.cos(2 * x) + 0.3 * data.normal(size=(100, 1)), rng=0).pvalue
    0.001
    >>> independence_test(x, data.normal(size=(100, 1)), rng=0).reject
    False
    """
    alpha = validation.open_unit("alpha", alpha)
    name, procedure = method_of(method)
    asked = (500 if name == "hsicagg" else DEFAULT_PERMUTATIONS) if n_permutations is None else n_permutations
    asked = validation.permutation_count(asked, alpha)
    design = DesignOptions(groups, strata, None, blocks, group_sizes)
    jobs = validation.jobs(n_jobs)
    seed, generator = resolve_rng(rng)
    of_reading, of_draws, of_test = generator.spawn(3)
    with threads(jobs), reporting_to(progress):
        tables = read_paired(x, y, missing=missing, design=design, alpha=alpha, rng=of_reading)
        draws = draw_pairings(tables.parts, asked, of_draws)
        found = procedure.run(tables, PairedOptions(alpha, asked, draws), of_test)
    repeat = {
        **({} if name == DEFAULT_METHOD else {"method": name}),
        **({} if alpha == 0.05 else {"alpha": alpha}),
        **({} if n_permutations is None else {"n_permutations": asked}),
        **({} if missing == "error" else {"missing": missing}),
        **design.call,
    }
    given = "".join(f"{key}={value!r}, " for key, value in repeat.items())
    return IndependenceResult(
        method=name,
        statistic=found.ranking.statistic,
        statistic_meaning=found.meaning,
        pvalue=found.ranking.pvalue,
        alpha=alpha,
        null_distribution=found.ranking.null_distribution,
        exhaustive=found.ranking.exhaustive,
        exact=found.exact and tables.exact,
        rows=tables.rows,
        columns_x=tables.x.columns,
        columns_y=tables.y.columns,
        exchanged=str(tables),
        classes=found.classes,
        singles=found.singles,
        tables=tables,
        draws=draws,
        seed=seed,
        notes=(*tables.notes, *found.notes),
        citations=procedure.citations,
        call=f"independence_test(x, y, {given}rng={'rng' if seed is None else seed})",
    )


def _named(column: str) -> str:
    return f"Column {column}" if column.isdigit() else f"'{sanitize(column)}'"


def _called(name: str, limit: int = NAME) -> str:
    return f"column {name}" if name.isdigit() else sanitize(name, limit)  # columns of an array have numbers


def _said_gamma(gamma: float) -> str:
    return "" if gamma == float("inf") else f", spectral parameter {gamma:g}"
