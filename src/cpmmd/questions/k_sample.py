"""Do several samples come from one distribution, and which of them differ? One call: ``k_sample_test``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from itertools import combinations
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from cpmmd import registry
from cpmmd.core import validation
from cpmmd.core.parallel import threads
from cpmmd.core.plain import NoTruthValue, PlainValue
from cpmmd.core.progress import Progress, report, reporting_to
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.core.text import pluralize, sanitize
from cpmmd.data.design import CUT, NAMED, Design, split_table
from cpmmd.data.pool import Pool, read_samples, take_samples
from cpmmd.data.table import read_table
from cpmmd.draws.group_sizes import cut_groups
from cpmmd.draws.layout import Layout
from cpmmd.engines.fixed_kernel import Engine
from cpmmd.errors import InputError, name_keywords, name_some
from cpmmd.explain.differences import LONGEST, join
from cpmmd.explain.several import SeveralColumn, compare_columns
from cpmmd.explain.values import Explanation
from cpmmd.procedures.base import Procedure
from cpmmd.procedures.full_sample import FullSampleTest
from cpmmd.procedures.outcome import ClassScores, TestResult
from cpmmd.questions.answer import Answer
from cpmmd.questions.options import TestOptions, TestPlan
from cpmmd.report.figures import Drawings
from cpmmd.report.page import AnyPart, Figure, Number, Table, count
from cpmmd.statistics.k_sample import adjusted_pairs, largest_factor

if TYPE_CHECKING:
    from matplotlib.axes import Axes

PRINTED = 6  # columns and pairs in printed text
NAMED_PAIRS, MOST_LISTED = 4, 12  # pairs, and samples, in a sentence
MOST_EXPLAINED = 15  # pairs that a report and an explanation look into: each takes as long as an explanation of two samples
MOST_SAMPLES = 40  # whose pairs are compared: 780
SPARE = 2  # times the permutations with which the smallest p-value of a pair just reaches the level
MEANING = "the best class's score -log p minus its penalty, of all samples against each other"
CITATIONS = ("gretton2012kernel", "rizzo2010disco", "marcus1976closed", "ryan1960significance")
ADJUSTED = "p-values are adjusted for the number of pairs (closed testing)"
NO_PAIRS = "not compared, because the test of all samples does not reject"


@dataclass(frozen=True, eq=False)
class SamplePair(PlainValue):
    """Two of several samples, compared on their own rows."""

    document = ("names", "sizes", "pvalue", "adjusted", "differs", "statistic")

    names: tuple[str, str]  #: what the samples are called
    adjusted: float  #: the p-value adjusted for the number of pairs, so that the family-wise error is at most alpha
    differs: bool  #: whether the adjusted p-value is at most alpha
    test: TestResult = field(repr=False)  #: the test of these two samples

    @property
    def pvalue(self) -> float:
        """The p-value of this pair alone, exact."""
        return self.test.pvalue

    @property
    def statistic(self) -> float:
        """The statistic of this pair's test."""
        return self.test.statistic

    @property
    def sizes(self) -> tuple[int, int]:
        """Rows of both samples."""
        return self.test.sizes

    def explain(self) -> Explanation:
        """Return where these two samples differ; p-values of its columns are adjusted over the columns of this pair."""
        return self.test.explain(names=self.names)

    def __str__(self) -> str:
        return " v ".join(sanitize(name, LONGEST) for name in self.names)


@dataclass(frozen=True, eq=False, repr=False)
class KSampleExplanation(NoTruthValue, PlainValue):
    """Which samples differ, in which columns."""

    truth_hint = "`.differing`, or `.reject` of the result"
    document = ("sentence", "names", "columns", "pairs")

    sentence: str  #: the finding in plain words
    names: tuple[str, ...]  #: what the samples are called
    columns: tuple[SeveralColumn, ...]  #: every column, smallest p-value first, adjusted for all columns
    pairs: tuple[SamplePair, ...]  #: every pair of samples, smallest adjusted p-value first; empty where not all were rejected

    @property
    def differing(self) -> tuple[SeveralColumn, ...]:
        """The columns that differ at the test's level, adjusted for all columns."""
        return tuple(column for column in self.columns if column.significant)

    def __str__(self) -> str:
        lines = [self.sentence]
        if self.pairs:
            lines.append("  pairs        p-value, adjusted for all pairs")
            lines += [f"    {pair.adjusted:<8.3g} {pair}" for pair in self.pairs[:PRINTED]]
            lines += [f"    and {len(self.pairs) - PRINTED} more"] * (len(self.pairs) > PRINTED)
        lines.append("  columns      p-value, adjusted for all columns")
        for column in self.columns[:PRINTED]:
            found = f": {column.words} in {sanitize(column.sample, LONGEST)}, {column.effect}" if column.significant else ""
            lines.append(f"    {column.pvalue:<8.3g} {sanitize(column.label, LONGEST)}{found}")
        return "\n".join(lines)

    def __repr__(self) -> str:
        return f"<KSampleExplanation: {self.sentence} {pluralize(len(self.columns), 'column')}; print it for all>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import table_card

        rows = [
            {"column": column.label, "p-value": column.pvalue, "differs most": column.sample, "how": column.words}
            for column in self.columns
        ]
        return table_card(self.sentence, ["p-values are adjusted for all columns."], rows)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class KSampleResult(Answer):
    """The answer of a test of several samples.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import k_sample_test
    >>> data = np.random.default_rng(0)
    >>> result = k_sample_test({name: data.normal(name == "c", 1, size=(50, 2)) for name in "abcd"}, rng=0)
    >>> result
    <KSampleResult: The samples differ (p = 0.001 <= 0.05); 4 samples of 50 rows, 2 columns>
    >>> sorted(pair.names for pair in result.differing)
    [('a', 'c'), ('b', 'c'), ('c', 'd')]
    """

    title: ClassVar[str] = "Do the samples come from one distribution?"
    found: ClassVar[str] = "The samples differ"
    not_found: ClassVar[str] = "No difference found"
    subject: ClassVar[str] = "samples"
    document: ClassVar[tuple[str, ...]] = (
        *("method", "reject", "pvalue", "alpha", "statistic", "statistic_meaning", "exact", "exhaustive", "n_permutations"),
        *("names", "sizes", "tested_sizes", "n_columns", "pairs", "classes", "engine", "design", "seed", "notes", "citations"),
    )
    measured: ClassVar[tuple[str, ...]] = ("samples", "rows", "n_columns", "differing_pairs")

    names: tuple[str, ...]  #: what the samples are called
    sizes: tuple[int, ...]  #: rows of each that were compared
    tested_sizes: tuple[int, ...]  #: rows of each that the statistic saw
    n_columns: int  #: columns of the data
    statistic_meaning: str = MEANING  #: what the statistic is, in words
    #: every pair of samples, smallest adjusted p-value first, then the largest statistic; empty where the test does not reject
    pairs: tuple[SamplePair, ...] = ()
    classes: tuple[ClassScores, ...] = ()  #: the classes that competed
    engine: Engine | None = None  #: how the statistics were computed
    design: Design | None = None  #: what is exchangeable (groups, strata, pairs, blocks); None for all rows
    pool: Pool | None = field(default=None, repr=False)  #: the rows of all samples, for explanations
    layout: Layout | None = field(default=None, repr=False)  #: what was permuted, and how

    @property
    def differing(self) -> tuple[SamplePair, ...]:
        """The pairs that differ, with a family-wise error of at most alpha."""
        return tuple(pair for pair in self.pairs if pair.differs)

    @property
    def samples(self) -> int:
        """Number of samples."""
        return len(self.names)

    @property
    def rows(self) -> int:
        """Rows of all samples."""
        return sum(self.sizes)

    @property
    def differing_pairs(self) -> int:
        """Number of pairs that differ."""
        return len(self.differing)

    @property
    def statistic_class(self) -> ClassScores | None:
        """The class that gives the statistic."""
        return max(self.classes, key=lambda scored: scored.criterion, default=None)

    @property
    def shape(self) -> str:
        """The data in a few words."""
        low, high = min(self.sizes), max(self.sizes)
        rows = pluralize(low, "row") if low == high else f"{low} to {high} rows"
        return f"{len(self.names)} samples of {rows}, {pluralize(self.n_columns, 'column')}"

    @cached_property
    def _explanation(self) -> KSampleExplanation:
        if self.pool is None or self.layout is None:
            raise InputError("An explanation needs the data. This result was loaded or kept without them; run the test again.")
        columns = compare_columns(self.pool, self.layout, self.alpha, self.names)
        return KSampleExplanation(self._sentence(columns), self.names, columns, self.pairs)

    def explain(self) -> KSampleExplanation:
        """Return which samples differ, and in which columns; ``pair.explain()`` of one of ``pairs`` says where those two do."""
        return self._explanation

    def _sentence(self, columns: Sequence[SeveralColumn]) -> str:
        differing = [column for column in columns if column.significant]
        named = join([column.sentence for column in differing[:3]])
        named = f"{named[:1].upper()}{named[1:]}" if named else "No single column stands out"
        more = (
            f"; {pluralize(len(differing) - 3, 'more column')} differ{'s' * (len(differing) == 4)}" if len(differing) > 3 else ""
        )
        if not self.reject:
            found = f"No difference was found (p = {self.pvalue:.3g} at significance level {self.alpha:g})."
            return found if not differing else f"{found} Tested one by one (adjusted for all columns): {named}{more}."
        return f"{self._which} {named}{more}."

    @property
    def _which(self) -> str:
        """Which pairs differ, in a sentence."""
        found, total = self.differing, len(self.pairs)
        if not total:
            return f"The {len(self.names)} samples differ; pairs were not compared."
        if not found:
            return "The samples differ, but no single pair of them does after adjustment."
        sets = _sets_of_alike(self.names, found)
        whole = total == math.comb(len(self.names), 2)  # pairs that share no stratum are not compared
        if sets and whole and 2 < len(self.names) <= MOST_LISTED:
            return _say_sets(sets)
        listed = ", ".join(str(pair) for pair in found[:NAMED_PAIRS])
        more = f" and {len(found) - NAMED_PAIRS} more" if len(found) > NAMED_PAIRS else ""
        return f"{len(found)} of {total} pairs differ{'s' * (len(found) == 1)}: {listed}{more}."

    def terms(self) -> Iterator[tuple[str, str]]:
        """Yield the method, the class that decided, and which pairs differ."""
        yield "method", self.method
        best = self.statistic_class
        if best is not None:
            yield "class", best.label
        if self.design is not None:
            yield "design", str(self.design)
        how = "all that exist" if self.exhaustive else "drawn at random"
        yield "permutations", f"{self.n_permutations}, {how}"
        if self.reject:
            yield "pairs", self._which

    def sentences(self) -> Iterator[str]:
        """Yield the finding."""
        yield self.explain().sentence

    def numbers(self) -> Iterator[Number]:
        """Yield how many samples, pairs and rows there are."""
        yield Number("Samples", count(len(self.names)))
        if self.pairs:
            yield Number("Pairs that differ", f"{len(self.differing)} of {len(self.pairs)}", "family-wise error at most alpha")
        yield Number("Rows", count(sum(self.sizes)))
        yield Number("Columns", count(self.n_columns))

    def assurance(self) -> dict[str, str]:
        """Return how pairs were compared."""
        return {
            "Statistic": self.statistic_meaning,
            "Permutations": f"{count(self.n_permutations)}{', all that exist' if self.exhaustive else ''}",
            "Pairs": f"tested on their own rows; {ADJUSTED}" if self.pairs else NO_PAIRS,
        }

    def parts(self) -> Iterator[AnyPart]:
        """Yield the matrix and the table of pairs, and the table of columns."""
        if self.pairs:
            described = "Matrix of the samples: the adjusted p-value of each pair, filled where the pair differs"
            yield Figure("sample-pairs", "Pairs of samples", described)
            yield self._pair_table()
        yield self._column_table()

    def drawings(self) -> Drawings:
        """Return how to draw the matrix of pairs."""
        from cpmmd import plotting

        def draw(ax: Axes) -> Axes:
            return plotting.sample_pairs(self.names, self.pairs, ax=ax)

        return {"sample-pairs": draw}

    def _pair_table(self) -> Table:
        looked_into = {pair.names for pair in self.differing[:MOST_EXPLAINED]}
        where = {pair.names: pair.explain() for pair in self.pairs if pair.names in looked_into}
        aucs = [where[pair.names].auc if pair.names in where else None for pair in self.pairs]
        left = f" AUC and words are those of the first {MOST_EXPLAINED} pairs." if len(self.differing) > MOST_EXPLAINED else ""
        return Table.of(
            "pairs",
            "Pairs of samples",
            [
                ("First", "text", [pair.names[0] for pair in self.pairs]),
                ("Second", "text", [pair.names[1] for pair in self.pairs]),
                ("Differs", "flag", [pair.differs for pair in self.pairs]),
                ("Where", "text", [where[pair.names].where if pair.names in where else None for pair in self.pairs]),
                ("AUC", "number", [None if auc is None else auc.value for auc in aucs]),
                ("p-value", "pvalue", [pair.pvalue for pair in self.pairs]),
                ("Adjusted p", "pvalue", [pair.adjusted for pair in self.pairs]),
            ],
            note=f"{ADJUSTED[0].upper()}{ADJUSTED[1:]}.{left}",
            flagged=[i for i, pair in enumerate(self.pairs) if pair.differs],
        )

    def _column_table(self) -> Table:
        columns = self.explain().columns
        nothing: list[str | None] = [None] * len(self.names)
        shown = [column.shown() or nothing for column in columns]
        return Table.of(
            "columns",
            "Columns: the sample that differs most from the others, and a value of each sample where the column differs",
            [
                ("Column", "text", [column.label for column in columns]),
                ("Most different", "text", [column.sample or None for column in columns]),
                ("How", "text", [column.words or None for column in columns]),
                ("Effect", "text", [None if column.effect is None else str(column.effect) for column in columns]),
                ("Value", "text", [column.what or None for column in columns]),
                *((name, "text", [values[a] for values in shown]) for a, name in enumerate(self.names)),
                ("p-value", "pvalue", [column.pvalue for column in columns]),
            ],
            note="p-values are adjusted for all columns; effects are those of the sample against all others together.",
            flagged=[i for i, column in enumerate(columns) if column.significant],
        )


@name_keywords
def k_sample_test(
    samples: Any,
    *,
    by: str | None = None,
    method: str | Procedure = registry.DEFAULT_METHOD,
    alpha: float = 0.05,
    n_permutations: int | None = None,
    rng: RNG = None,
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    missing: str = "error",
    progress: Progress | None = None,
    groups: Any = None,
    strata: Any = None,
    pairs: Any = None,
    blocks: int | str | None = None,
    group_sizes: str = CUT,
    preprocess: Any = None,
) -> KSampleResult:
    """Test whether several samples come from one distribution, and which of them differ.

    One exact test of all samples comes first. Where it rejects, every pair of samples is tested on its own rows, and closed
    testing adjusts the p-values for the number of pairs.

    Parameters
    ----------
    samples : list, mapping or table
        Two samples or more, as for :func:`two_sample_test`: in a list, or by name in a mapping; or one table, and ``by``.
    by : str, optional
        The column of one table that says which sample a row is of; it is not compared.
    method : str or FullSampleTest
        ``"cp-full"``, or a :class:`FullSampleTest` with classes of your own.
    alpha : float
        Significance level of the test of all samples, and of all pairs together.
    n_permutations : int, optional
        Number of permutations; None is 999. The tests of pairs take more where their number needs smaller p-values.
    rng, n_jobs, memory_limit, missing, progress
        As for :func:`two_sample_test`.
    groups, strata : str, list of arrays or mapping, optional
        The group or the stratum of each row, as for :func:`two_sample_test`: the name of a column of all samples, or one array
        for each sample.
    pairs : str, list of arrays or mapping, optional
        The subject of each row, where all samples have the same subjects (repeated measures): labels are permuted inside each
        subject.
    blocks : int or "auto", optional
        For rows in time: this many consecutive rows are permuted as a whole.
    group_sizes, preprocess
        As for :func:`two_sample_test`.

    Returns
    -------
    KSampleResult
        With ``pvalue``, ``reject``, ``pairs``, ``differing``, ...; print it for a summary.

    Notes
    -----
    The statistic of a kernel is the larger of two scores: that of the sum over samples of the squared MMD between a sample and
    all others, which is the between-sample variance of an analysis of variance in feature space, and that of the largest term,
    which sees a single sample that differs. Classes of kernels and of columns compete as in :class:`FullSampleTest`, under every
    permutation of all labels alike, so that the p-value is exact.

    A pair differs where every set of samples with both of them is rejected: the set of all samples by their test, a set of s
    of k samples by the smallest p-value of its s (s - 1) / 2 pairs, at the share s / k of the level (all of it for s = k - 1).
    The probability that any pair of equal distributions is called different is at most alpha, whichever samples differ.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import k_sample_test
    >>> data = np.random.default_rng(1)
    >>> north, south, east = (data.normal(shift, 1, size=(60, 3)) for shift in (0, 0, 0.8))
    >>> result = k_sample_test({"north": north, "south": south, "east": east}, rng=0)
    >>> result.pvalue, sorted(pair.names for pair in result.differing)
    (0.001, [('north', 'east'), ('south', 'east')])
    """
    named = _named(samples, by)
    plan = TestOptions(
        method=method,
        alpha=alpha,
        n_permutations=n_permutations,
        n_jobs=n_jobs,
        memory_limit=memory_limit,
        missing=missing,
        groups=_in_order(groups, named),
        strata=_in_order(strata, named),
        pairs=_in_order(pairs, named),
        blocks=blocks,
        group_sizes=group_sizes,
        preprocess=preprocess,
    ).plan()
    if not isinstance(plan.procedure, FullSampleTest):
        raise InputError(
            "{parameter} must be 'cp-full' or a FullSampleTest with classes of your own, for several samples. Got {got!r}.",
            parameter="method",
            got=method,
        )
    seed, generator = resolve_rng(rng)
    pool = read_samples(
        {called_in_messages(name): sample for name, sample in named.items()}, missing=plan.missing, design=plan.design
    )
    pool = cut_groups(replace(pool, preprocess=plan.preprocess), plan.design, generator)
    with threads(plan.n_jobs), reporting_to(progress):
        result = _test(plan, plan.procedure, pool, tuple(named), generator)
    repeat = {
        "method": method,
        "alpha": alpha,
        "n_permutations": plan.options.n_permutations,
        "missing": missing,
        "by": by,
        "preprocess": preprocess,
    }
    given = [f"{key}={value!r}" for key, value in {**repeat, **plan.design.call}.items() if value not in (None, "error")]
    call = f"k_sample_test(samples, {', '.join(given)}, rng={'rng' if seed is None else seed})"
    return replace(result, seed=seed, call=call)


def _test(
    plan: TestPlan, procedure: FullSampleTest, pool: Pool, names: tuple[str, ...], rng: np.random.Generator
) -> KSampleResult:
    """Test all samples, and where they differ every pair."""
    options = plan.options
    bin_stream, label_stream, sample_stream, pair_stream = rng.spawn(4)
    layout = Layout.cut_several(pool.sizes, pool.design, bin_stream, target=procedure.bins)
    codes = layout.draw_codes(options.n_permutations, label_stream)
    layout = layout.labelled(codes, options.memory_limit)
    contest = procedure.compete(pool, layout, options.memory_limit, sample_stream)
    ranking, notes = contest.ranking, [*pool.notes, *layout.left_out]
    if ranking.smallest_pvalue > options.alpha:
        least = f"the smallest possible p-value is {ranking.smallest_pvalue:.3g}, above the level {options.alpha:g}"
        notes.append(f"this test cannot reject: with so few units to permute {least}")
    result = KSampleResult(
        method=options.method,
        statistic=ranking.statistic,
        pvalue=ranking.pvalue,
        alpha=options.alpha,
        null_distribution=ranking.null_distribution,
        exhaustive=ranking.exhaustive,
        exact=pool.design is None or pool.design.exact,
        names=names,
        sizes=pool.sizes,
        tested_sizes=tuple(np.bincount(layout.sample, layout.counts, len(names)).astype(int).tolist()),
        n_columns=len(pool.columns),
        classes=tuple(replace(scored.reported, mmd2=np.empty(0)) for scored in contest.classes),
        engine=contest.engine,
        design=pool.design,
        notes=tuple(notes),
        citations=(*procedure.all_citations(), *CITATIONS),
        pool=pool,
        layout=layout,
    )
    if not result.reject:
        return result
    if len(names) > MOST_SAMPLES:
        note = f"pairs are compared for up to {MOST_SAMPLES} samples; here there are {len(names)}"
        return replace(result, notes=(*result.notes, note))
    pairs, lost = _compare_pairs(plan, procedure, pool, names, result.pvalue, pair_stream)
    return replace(result, pairs=pairs, notes=(*result.notes, *lost))


def _compare_pairs(
    plan: TestPlan, procedure: FullSampleTest, pool: Pool, names: Sequence[str], overall: float, rng: np.random.Generator
) -> tuple[tuple[SamplePair, ...], list[str]]:
    """Return every pair of samples, tested on its own rows and adjusted, and a note on those that share no stratum."""
    alpha, chosen = plan.options.alpha, list(combinations(range(len(names)), 2))
    needed = math.ceil(SPARE * largest_factor(len(names)) / alpha) - 1
    options = replace(plan.options, n_permutations=max(plan.options.n_permutations, needed), decides=False)
    tests: dict[tuple[int, int], TestResult] = {}
    for pair, stream in zip(chosen, rng.spawn(len(chosen)), strict=True):
        own = take_samples(pool, *pair)
        if min(own.sizes) > 0:
            tests[pair] = procedure.run(own, options, stream)
        report("pairs", len(tests), len(chosen))
    pvalues = {pair: tests[pair].pvalue if pair in tests else 1.0 for pair in chosen}
    adjusted = adjusted_pairs(pvalues, len(names), overall)
    found = [
        SamplePair((names[a], names[b]), adjusted[a, b], bool(adjusted[a, b] <= alpha), test) for (a, b), test in tests.items()
    ]
    found.sort(key=lambda pair: (pair.adjusted, -pair.statistic))
    lost = [f"{names[a]} and {names[b]}" for a, b in chosen if (a, b) not in tests]
    return tuple(found), [f"{name_some(lost)}: not compared, because they share no stratum"] if lost else []


def _sets_of_alike(names: Sequence[str], found: Sequence[SamplePair]) -> list[list[str]]:
    """Return sets of samples such that exactly the pairs across sets differ; none where there are no such sets."""
    apart = {pair.names for pair in found}
    sets: list[list[str]] = []
    for name in names:
        own = [some for some in sets if (some[0], name) not in apart]
        if len(own) > 1:
            return []
        own[0].append(name) if own else sets.append([name])
    inside = sum(math.comb(len(some), 2) for some in sets)
    alike = not any((a, b) in apart for some in sets for a, b in combinations(some, 2))
    return sets if alike and inside + len(apart) == math.comb(len(names), 2) else []


def _say_sets(sets: Sequence[Sequence[str]]) -> str:
    """State which samples differ from which."""
    ascending = sorted(sets, key=len)
    if len(ascending[-1]) == 1:
        return "All samples differ from each other."
    first, *others = [join([sanitize(name, LONGEST) for name in some]) for some in ascending]
    if len(ascending) == 2 and len(ascending[0]) == 1:
        return f"{first} differs from all others, among which no difference was found."
    listed = "; ".join([first, *others])
    return f"Samples of different sets differ, and no difference was found within a set: {listed}."


def _named(samples: object, by: str | None) -> dict[str, Any]:
    """Return the samples by their names."""
    if by is not None:
        if isinstance(samples, list | tuple | Mapping):
            raise validation.wrong("samples", "must be one table where a column splits it (by=...)", type(samples).__name__)
        named: dict[str, Any] = dict(split_table(read_table(samples, "table"), by, "table", "by"))
    elif isinstance(samples, Mapping):
        named = {str(name): sample for name, sample in samples.items()}
        if len(named) < len(samples):
            raise InputError("Names of samples must differ as text. Got some more than once; rename them.")
    elif isinstance(samples, list | tuple):
        named = {f"sample {number}": sample for number, sample in enumerate(samples, 1)}
    else:
        rule = "must be a list of samples, a mapping from names to samples, or a table with the column that splits it (by=...)"
        raise validation.wrong("samples", rule, type(samples).__name__)
    if len(named) < 2:
        raise InputError("There must be at least two samples. Got {found}.", found=len(named))
    return named


def called_in_messages(name: str) -> str:
    """Return what an error calls a sample: it says "sample 2", or "the sample 'north'"."""
    return name.removeprefix("sample ") if name.startswith("sample ") and len(name) == 8 else f"sample {name!r}"


def _in_order(value: Any, named: Mapping[str, Any]) -> Any:
    """Return arrays of a design that are given by the names of the samples as a list."""
    if not isinstance(value, Mapping):
        return value
    given = {str(name): part for name, part in value.items()}
    if set(given) != set(named):
        raise InputError(
            f"A mapping of {join(NAMED, ' or ')} must have the names of the samples. Got {name_some(sorted(given))} for samples "
            f"{name_some(sorted(named))}."
        )
    return [given[name] for name in named]
