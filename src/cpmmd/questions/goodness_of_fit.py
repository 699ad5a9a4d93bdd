"""Does a sample come from a model? One call: ``goodness_of_fit_test``."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Array
from cpmmd.core.parallel import threads
from cpmmd.core.plain import NoTruthValue, PlainValue
from cpmmd.core.progress import Progress, reporting_to
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.core.text import NAME, pluralize, sanitize
from cpmmd.data.design import AUTO, DesignOptions
from cpmmd.data.missing import check_present, drop_missing, find_missing
from cpmmd.data.notices import block_length
from cpmmd.data.pool import pool_tables
from cpmmd.data.table import Table, read_table
from cpmmd.errors import InputError, ParameterReference, TooFewUnitsError, name_keywords, name_some
from cpmmd.models.model import Model, read_model
from cpmmd.procedures.goodness_of_fit import (
    SIMULATION,
    Fit,
    FitClass,
    Signed,
    SimulatedNull,
    ksdagg_fit,
    median_fit,
    signed_fit,
)
from cpmmd.questions.answer import Answer
from cpmmd.report.page import AnyPart, Number, count, number
from cpmmd.report.page import Table as PageTable
from cpmmd.statistics.misfit import ColumnMisfit

STEIN, MEDIAN, KSDAGG = METHODS = ("cp-stein", "ksd-median", "ksdagg")
CITATIONS = {
    STEIN: ("liu2016kernelized", "chwialkowski2016kernel", "hagrass2024minimax"),
    MEDIAN: ("chwialkowski2016kernel", "gorham2017measuring"),
    KSDAGG: ("schrab2022ksd",),
}
NORMAL_CITATIONS = ("mardia1970measures",)
MOST_ROWS = {True: 10_000, False: 50_000}  # of simulated data sets, and of random signs: half a minute on one core
SIMULATIONS, SIGNS, KSDAGG_SIGNS = 299, 999, 4000  # data sets or signs by default; a data set costs far more than signs
PRINTED = 5  # columns in the printed summary
FEWEST = 50  # rows below which signs are known to be rough
ADVICE = "Pass {drop} to leave those rows out."
REPEATED = 0.1  # share of repeated values in a column from which on they are noticed
LEVEL = {
    True: "exact: the data are ranked among data sets drawn from the model",
    False: "approximate: random signs have the right distribution for many rows",
}
BLOCKS_LEVEL = "approximate: signs of blocks have the right distribution for many blocks that are longer than the dependence"


@dataclass(frozen=True, repr=False)
class FitExplanation(NoTruthValue, PlainValue):
    """How the data differ from the model."""

    sentence: str  #: the finding in plain words
    columns: tuple[ColumnMisfit, ...]  #: every column, the worst first
    classes: tuple[FitClass, ...]  #: what competed, the strongest first
    alpha: float = 0.05  #: level of the adjusted p-values

    def words(self, column: ColumnMisfit) -> str:
        """Return how a column differs, where it does."""
        return column.words if column.pvalue <= self.alpha else "no difference found"

    def __repr__(self) -> str:
        return f"<FitExplanation: {self.sentence} {pluralize(len(self.columns), 'column')}; print it for all>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import table_card

        rows = [{"column": _called(c.name), "than the model": self.words(c), "p": c.pvalue} for c in self.columns]
        return table_card(self.sentence, ["p is adjusted for all columns."], rows)

    def __str__(self) -> str:
        lines = [
            f"  {_called(c.name, 24):<24} {self.words(c)}{_beyond(c)} (adjusted p = {c.pvalue:.3g})"
            for c in self.columns[:PRINTED]
        ]
        more = [f"  and {pluralize(len(self.columns) - PRINTED, 'more column')}"] if len(self.columns) > PRINTED else []
        return "\n".join([self.sentence, *lines, *more])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class FitResult(Answer):
    """The answer of a goodness-of-fit test.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import goodness_of_fit_test
    >>> x = np.random.default_rng(0).exponential(size=(100, 2))
    >>> result = goodness_of_fit_test(x, "normal", rng=0)
    >>> result.reject, result.exact, result.columns[0].words
    (True, True, 'is skewed to the right')
    """

    title: ClassVar[str] = "Does the sample come from the model?"
    found: ClassVar[str] = "The data do not fit the model"
    not_found: ClassVar[str] = "No misfit found"
    document: ClassVar[tuple[str, ...]] = (
        *("method", "model", "gradient", "null", "reject", "pvalue", "alpha", "statistic", "exact", "n_permutations", "seed"),
        *("rows", "blocks", "notes", "classes", "columns"),
    )
    measured: ClassVar[tuple[str, ...]] = ("rows",)

    model: str  #: what the data are compared with
    gradient: str | None  #: where its gradient comes from: given, analytic, numerical, automatic; None where none was needed
    null: str  #: ``simulation`` from the model, or ``wild bootstrap`` (random signs)
    rows: int  #: rows of the data
    blocks: int | None = None  #: rows of a block, where blocks have one sign
    classes: tuple[FitClass, ...]  #: what competed, the strongest first
    columns: tuple[ColumnMisfit, ...]  #: every column, the worst first
    decision: bool | None = None  #: the authors' own decision, of KSDAgg

    @property
    def shape(self) -> str:
        """The data in a few words."""
        return f"{pluralize(self.rows, 'row')}, {pluralize(len(self.columns), 'column')}"

    @property
    def differing(self) -> tuple[ColumnMisfit, ...]:
        """The columns that differ from the model at level alpha, adjusted for all of them."""
        return tuple(column for column in self.columns if column.pvalue <= self.alpha)

    def explain(self) -> FitExplanation:
        """Return which columns differ from the model and how, in words and for every column."""
        differing = self.differing
        if differing:
            first = differing[0]
            others = f" {len(differing)} of {len(self.columns)} columns differ." if len(differing) > 1 else ""
            sentence = f"{_titled(first.name)} {first.words} compared with {self.model}{_beyond(first)}.{others}"
        elif self.reject and len(self.columns) > 1:
            sentence = "No single column differs from the model: their dependence differs, or a shape."
        elif self.reject:
            sentence = (
                f"Location, scale, skewness and tails do not differ one by one; the shape differs from that of {self.model}."
            )
        else:
            sentence = f"No difference from {self.model} beyond chance was found. That does not prove that it is right."
        return FitExplanation(sentence, self.columns, self.classes, self.alpha)

    def terms(self) -> Iterator[tuple[str, str]]:
        """Yield the model, what found the misfit, and the level."""
        yield "model", self.model
        yield "strongest", _of_class(self.classes[0])
        yield "null", f"{self.n_permutations} {'data sets drawn from the model' if self.exact else 'random signs'}"
        yield "level", self._level

    @property
    def _level(self) -> str:
        return BLOCKS_LEVEL if self.blocks is not None else LEVEL[self.exact]

    def sentences(self) -> Iterator[str]:
        """Yield the finding."""
        yield self.explain().sentence

    def numbers(self) -> Iterator[Number]:
        """Yield how much was compared."""
        yield Number("Rows", count(self.rows))
        yield Number("Columns", count(len(self.columns)))
        yield Number("Columns that differ", count(len(self.differing)))

    def _measures(self) -> Mapping[str, float | None]:
        return {**super()._measures(), "columns": len(self.columns), "differing_columns": len(self.differing)}

    def parts(self) -> Iterator[AnyPart]:
        """Yield the tables of columns and of what competed."""
        columns, explanation = self.columns, self.explain()
        yield PageTable.of(
            "columns",
            "Columns beside the model: normal scores have mean 0 of each under it",
            [
                ("Column", "text", [column.name for column in columns]),
                ("It", "words", [explanation.words(column) for column in columns]),
                ("Shift", "number", [column.shift for column in columns]),
                ("Scale", "number", [column.scale for column in columns]),
                ("Skewness", "number", [column.skewness for column in columns]),
                ("Tails", "number", [column.tails for column in columns]),
                ("Below 5%", "share", [column.below for column in columns]),
                ("Above 95%", "share", [column.above for column in columns]),
                ("p-value", "pvalue", [column.pvalue for column in columns]),
            ],
            note="p-values are adjusted for all columns. Shares are of rows beyond the model's 5% and 95% quantiles.",
        )
        yield PageTable.of(
            "classes",
            "What competed: evidence is the best member's score less the complexity of its class",
            [
                ("Class", "words", [of_class.name for of_class in self.classes]),
                ("Evidence", "number", [of_class.evidence for of_class in self.classes]),
                ("Score", "number", [of_class.score for of_class in self.classes]),
                ("Complexity", "number", [of_class.penalty for of_class in self.classes]),
            ],
        )

    def assurance(self) -> dict[str, str | None]:
        """Return how the level is kept."""
        return {
            "Level": f"{self.alpha:g}, {self._level}",
            "Model": self.model,
            "Gradient": self.gradient,
            "Null distribution": f"{self.null}, {self.n_permutations} times",
        }


@threads(None)
@name_keywords
def goodness_of_fit_test(
    x: Any,
    model: Any,
    *,
    method: str = STEIN,
    alpha: float = 0.05,
    n_permutations: int | None = None,
    rng: RNG = None,
    n_jobs: int | None = None,
    missing: str = "error",
    blocks: int | str | None = None,
    progress: Progress | None = None,
) -> FitResult:
    """Test whether the rows of a sample come from a model.

    Parameters
    ----------
    x : array or data frame
        The sample, columns of numbers.
    model : str or object
        - ``"normal"``: a normal distribution, whatever its mean and covariance.
        - A name with parameters, such as ``"gamma(5)"``, or a frozen scipy distribution: one-dimensional,
          ``multivariate_normal`` or ``multivariate_t``.
        - A fitted scikit-learn ``GaussianMixture``, ``BayesianGaussianMixture`` or Gaussian ``KernelDensity``.
        - A pair of functions (log-density up to a constant, its gradient), a function that returns both or the gradient alone, or
          an object whose ``score(rows)`` is the gradient; :class:`Density` holds these with a way to draw from the model.
        - A torch distribution, or :class:`TorchDensity` with a log-density that torch differentiates.
    method : str
        ``"cp-stein"`` (many kernels, penalised by their complexity), ``"ksd-median"`` or ``"ksdagg"``.
    alpha : float
        Significance level.
    n_permutations : int, optional
        Data sets drawn from the model (299), or random signs where it cannot be sampled (999; 4000 of ``"ksdagg"``).
    rng : int, Generator, RandomState or None
        Seed or generator.
    n_jobs : int, optional
        Threads, -1 for all cores; the answer is the same.
    missing : str
        ``"error"``, or ``"drop"`` to leave out rows with missing values.
    blocks : int or "auto", optional
        For rows in time, such as the draws of a Markov chain: this many consecutive rows share a sign.
    progress : callable, optional
        Called with stage, done and total; :class:`Meter` prints.

    Returns
    -------
    FitResult
        With ``reject``, ``pvalue``, ``exact``, ``columns``, ``explain()``, ``report()``, ...; print it for a summary.

    Notes
    -----
    Where the model can be sampled, the data are ranked among data sets drawn from it, with everything recomputed for each: exact
    for any number of rows. So is the normal family, because white rows have one distribution whatever mean and covariance were.
    Otherwise, and with ``blocks``, random signs are used: approximate, ``exact`` is False.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import goodness_of_fit_test
    >>> x = np.random.default_rng(0).gamma(7, size=300)
    >>> goodness_of_fit_test(x, "gamma(5)", rng=0).reject, goodness_of_fit_test(x, "gamma(7)", rng=0).reject
    (True, False)
    """
    validation.one_of("method", method, METHODS)
    validation.one_of("missing", missing, ("error", "drop"))
    alpha, workers = validation.open_unit("alpha", alpha), validation.jobs(n_jobs)
    asked = DesignOptions(blocks=blocks)
    known = read_model(model)
    seed, generator = resolve_rng(rng)
    table, notes = _read(x, missing)
    rows = np.asarray(table.numbers, dtype=np.float64)
    known.check_columns(rows.shape[1])
    simulated = method == STEIN and blocks is None and known.can_be_sampled
    if known.estimated:
        _check_normal(rows, table.number_names, method, blocks)
    usual = SIMULATIONS if simulated else KSDAGG_SIGNS if method == KSDAGG else SIGNS
    wanted = validation.permutation_count(usual if n_permutations is None else n_permutations, alpha)
    block_rows, about_blocks = _block_rows(table, asked)
    if len(rows) > MOST_ROWS[simulated]:
        rows = _some_rows(rows, MOST_ROWS[simulated], block_rows, generator)
        notes.append(f"{len(rows):,} of {table.rows:,} rows were used, drawn at random")
    with threads(workers), reporting_to(progress):
        if simulated:
            if known.score is not None and known.to_normal is None and not known.estimated:
                known.scores(rows, observed=True)  # refused here, before the work is done
            null = SimulatedNull.of(known, len(rows), rows.shape[1], wanted, generator)
            fit = null.fit(rows, table.number_names)
        else:
            starts = None if block_rows is None else np.arange(0, len(rows), block_rows)
            _check_units(len(rows) if starts is None else len(starts), alpha, block_rows)
            signed = Signed.of(rows, known, starts, wanted, generator)
            fit = _signed(signed, table, method, alpha)
    given = {
        "method": (method, STEIN),
        "n_permutations": (n_permutations, None),
        "missing": (missing, "error"),
        "blocks": (blocks, None),
    }
    more = "".join(f", {name}={value!r}" for name, (value, usual) in given.items() if value != usual)
    shown = repr(model) if isinstance(model, str) else "model"
    return FitResult(
        method=method,
        model=known.name,
        gradient=None if fit.null == SIMULATION and (known.estimated or known.to_normal is not None) else known.gradient,
        null=fit.null,
        pvalue=fit.ranking.pvalue,
        statistic=fit.ranking.statistic,
        null_distribution=fit.ranking.null_distribution,
        alpha=alpha,
        exact=fit.null == SIMULATION,
        seed=seed,
        rows=len(rows),
        blocks=block_rows,
        classes=fit.classes,
        columns=fit.columns,
        decision=fit.decision,
        notes=(*table.notes, *notes, *about_blocks, *_notes(rows, table, known, fit, block_rows)),
        call=f"goodness_of_fit_test(x, {shown}, alpha={alpha:g}{more}, rng={'rng' if seed is None else seed})",
        citations=(*CITATIONS[method], *(NORMAL_CITATIONS if known.estimated else ())),
    )


def _read(x: object, missing: str) -> tuple[Table, list[str]]:
    """Return a sample of numbers, its missing values dealt with."""
    table, notes = read_table(x, "x"), list[str]()
    if table.categories or table.dates:
        rule = "A density is of numbers. {Sample} has text or dates in {columns}; leave them out or convert them."
        raise InputError(rule, sample="x", columns=name_some([*table.categories, *table.dates]))
    if table.rows < 2:
        raise InputError("{Sample} must have at least 2 rows. It has {rows}.", sample="x", rows=table.rows)
    absent = find_missing(table, "x")
    if missing == "drop":
        table = drop_missing(table, "x", absent, notes, advice="check the columns")
    else:
        check_present({"x": absent}, advice=ADVICE)
    values = np.asarray(table.numbers)
    constant = np.flatnonzero(np.ptp(values, axis=0) == 0)
    if len(constant):
        names = name_some([table.number_names[j] for j in constant])
        rule = "Every column must vary: a density gives no probability to a single value. Constant: {columns}. Leave them out."
        raise InputError(rule, sample="x", column=table.number_names[int(constant[0])], columns=names)
    return table, notes


def _check_normal(rows: Array, names: tuple[str, ...], method: str, blocks: object) -> None:
    if method != STEIN:
        rule = "{parameter} must be 'cp-stein' for the normal family: random signs do not know that its parameters were fitted."
        raise InputError(rule, parameter="method")
    if blocks is not None:
        rule = (
            "{parameter} cannot be used with the normal family, which needs independent rows. Pass a normal with its parameters."
        )
        raise InputError(rule, parameter="blocks")
    n, d = rows.shape
    if n < d + 3:
        rule = "For {d} there must be at least {least} rows, or every sample looks normal. Got {n}; leave out columns."
        raise InputError(rule, d=pluralize(d, "column"), least=d + 3, n=n)
    z = (rows - rows.mean(axis=0)) / rows.std(axis=0)
    values, vectors = np.linalg.eigh(z.T @ z / n)
    if values[0] < 1e-10 * values[-1]:
        involved = name_some([names[j] for j in np.flatnonzero(np.abs(vectors[:, 0]) > 1e-3)])
        raise InputError(
            "No column may be a sum of others. These depend on each other exactly: {columns}. Leave out one.", columns=involved
        )


def _block_rows(table: Table, asked: DesignOptions) -> tuple[int | None, list[str]]:
    """Return the rows of a block and a note on where their number comes from."""
    if asked.blocks is None:
        return None, []
    if asked.blocks != AUTO:
        return int(asked.blocks), []
    # The smaller of both halves': where the model holds throughout they are alike, and a start from afar is no dependence.
    halves = np.array_split(np.arange(table.rows), 2)
    found = min((block_length(pool_tables(table.take(half))) for half in halves), key=lambda length: length.rows)
    return found.rows, [f"blocks have {pluralize(found.rows, 'row')}" + (f", for {found.trait}" if found.trait else "")]


def _some_rows(rows: Array, count: int, block_rows: int | None, rng: np.random.Generator) -> Array:
    """Return rows drawn without looking at their values; dependent ones cannot be drawn one by one."""
    if block_rows is not None:
        rule = "With {blocks} there may be at most {most:,} rows. Got {n:,}; thin the chain: take every k-th row."
        raise InputError(rule, blocks=ParameterReference("blocks"), most=count, n=len(rows))
    return np.asarray(rows[np.sort(rng.choice(len(rows), count, replace=False))])


def _check_units(units: int, alpha: float, block_rows: int | None) -> None:
    if 2.0 ** (1 - units) > alpha:
        things = "rows" if block_rows is None else "blocks"
        rule = "Random signs of {units} {things} can never reject at level {alpha:g}. Take more rows{shorter}."
        shorter = "" if block_rows is None else ": many times the length over which rows depend on each other"
        raise TooFewUnitsError(rule, units=units, things=things, alpha=alpha, shorter=shorter)


def _signed(signed: Signed, table: Table, method: str, alpha: float) -> Fit:
    if method == MEDIAN:
        return median_fit(signed, table.number_names)
    return ksdagg_fit(signed, table.number_names, alpha) if method == KSDAGG else signed_fit(signed, table.number_names)


def _notes(rows: Array, table: Table, model: Model, fit: Fit, block_rows: int | None) -> Iterator[str]:
    units = len(rows) if block_rows is None else -(-len(rows) // block_rows)
    if fit.null != SIMULATION and units < FEWEST:
        yield f"with {pluralize(units, 'row' if block_rows is None else 'block')} the level of random signs is rough"
    if model.fitted:
        yield "if the model was fitted to these rows, p is too large: fit it to others"
    shares = [1 - len(np.unique(column)) / len(column) for column in rows.T]
    if block_rows is not None:  # a chain that stays where it is repeats its rows
        return
    if repeated := [name for name, share in zip(table.number_names, shares, strict=True) if share > REPEATED]:
        yield f"values repeat in {name_some(repeated)}: a density has no ties, so rounding may be what is found"


def _called(name: str, limit: int = NAME) -> str:
    return f"column {name}" if name.isdigit() else sanitize(name, limit)  # columns of an array have numbers


def _titled(name: str) -> str:
    return f"Column {name}" if name.isdigit() else f"'{sanitize(name)}'"


def _beyond(column: ColumnMisfit) -> str:
    """Return how many rows lie in the model's tails, in a few words."""
    if column.below is None or column.above is None:
        return ""
    return f": {column.below:.1%} of rows are below its 5% quantile, {column.above:.1%} above its 95% quantile"


def _of_class(found: FitClass) -> str:
    where = "" if found.bandwidth is None else f", {found.base} of bandwidth {number(found.bandwidth)}"
    return found.name + where + ("" if found.gamma is None else f", spectral parameter {found.gamma:g}")
