"""Are two samples the same for a purpose? One call: ``equivalence_test``."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from cpmmd.core import validation
from cpmmd.core.parallel import threads
from cpmmd.core.plain import NoTruthValue, PlainValue
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.core.text import NAME, pluralize, sanitize
from cpmmd.data.pool import Pool, read_pool
from cpmmd.errors import name_some, refuse_keywords
from cpmmd.questions.answer import Answer
from cpmmd.report.page import Number, Table, count, number
from cpmmd.statistics.equivalence import (
    MOST_ROWS,
    ColumnEquivalence,
    Coordinates,
    JointEquivalence,
    auc_of_shift,
    column_differences,
    joint_difference,
)

PRINTED = 5  # columns in the printed summary
LEVEL = (
    "asymptotic: in simulations with 50 rows or more, samples that differ by the margin were called equivalent at most this often"
)
MEASURED = 50  # rows from which on the level at the margin was measured (benchmarks/equivalence.py)
WILD = 5.0  # standard deviation over what the quartiles of a normal sample would say: a few rows set the unit
LOOKED_AT = 10_000  # rows whose quartiles are taken
NORMAL_QUARTILES = 1.349  # distance of the quartiles of N(0, 1)


INDEPENDENT = (
    "{called} has no parameter {name!r}: its bounds take rows as independent, and would be too narrow. Pass one row of each "
    "group, pair or block, such as its mean; compare strata one by one."
)


@dataclass(frozen=True, repr=False)
class EquivalenceExplanation(NoTruthValue, PlainValue):
    """The largest differences that the data do not exclude."""

    sentence: str  #: the finding in plain words
    columns: tuple[ColumnEquivalence, ...]  #: every column, the largest bound first
    joint: JointEquivalence  #: all columns together

    def __repr__(self) -> str:
        return f"<EquivalenceExplanation: {self.sentence} {pluralize(len(self.columns), 'column')}; print it for all>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import table_card

        rows = [{"column": _called(c.name), "what differs": c.meaning, "from": c.low, "to": c.high} for c in self.columns]
        return table_card(self.sentence, ["Intervals are in standard deviations."], rows)

    def __str__(self) -> str:
        lines = [
            f"  {_called(c.name, 24):<24} {c.meaning}: {c.low:+.3g} to {c.high:+.3g} standard deviations"
            for c in self.columns[:PRINTED]
        ]
        more = [f"  and {pluralize(len(self.columns) - PRINTED, 'more column')}"] if len(self.columns) > PRINTED else []
        return "\n".join([self.sentence, *lines, *more])


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class EquivalenceResult(Answer):
    """The answer of an equivalence test.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import equivalence_test
    >>> data = np.random.default_rng(0)
    >>> few = equivalence_test(data.normal(size=(30, 2)), data.normal(size=(30, 2)), margin=0.3, rng=0)
    >>> many = equivalence_test(data.normal(size=(3000, 2)), data.normal(size=(3000, 2)), margin=0.3, rng=0)
    >>> few.reject, many.reject, few.largest > 0.5, many.largest < 0.1
    (False, True, True, True)
    """

    title: ClassVar[str] = "Are the two samples equivalent within the margin?"
    subject: ClassVar[str] = "samples"
    good_news: ClassVar[bool] = True
    document: ClassVar[tuple[str, ...]] = (
        *("method", "margin", "reject", "pvalue", "alpha", "statistic", "exact", "sizes", "seed", "notes"),
        *("largest", "auc_bound", "columns", "joint"),
    )

    # The p-value is the largest of all columns and of all together, because each difference must be below the margin. The
    # statistic is the biased squared MMD in all columns. Its null distribution is drawn from populations that differ by the
    # margin, least favourably.
    method: str = "equivalence"
    exact: bool = False  #: the level is approximate: it holds for many rows, and was measured from 50 rows on
    citations: tuple[str, ...] = ("liu2026equivalence", "lakens2017equivalence", "gretton2012kernel")  #: keys of what to cite
    margin: float  #: the smallest difference that matters, in standard deviations
    columns: tuple[ColumnEquivalence, ...]  #: every column, the largest bound first
    joint: JointEquivalence  #: all columns together
    sizes: tuple[int, int]  #: rows of X and Y

    @property
    def headline(self) -> str:
        """The answer in a few words."""
        return f"{'Equivalent' if self.reject else 'Equivalence not shown'} within {self.margin:g} standard deviations"

    @property
    def largest(self) -> float:
        """The largest difference that is not excluded, in standard deviations: the smallest margin that shows equivalence."""
        return max(self.joint.high, self.columns[0].largest)  # all columns together differ at least as much as one

    @property
    def auc_bound(self) -> float:
        """The largest AUC that is not excluded: that of two normal samples that differ by ``largest`` standard deviations."""
        return auc_of_shift(self.largest)

    @property
    def shape(self) -> str:
        """The data in a few words."""
        (m, n), columns = self.sizes, len(self.columns)
        return f"{m} v {n} rows, {pluralize(columns, 'column')}"

    def explain(self) -> EquivalenceExplanation:
        """Return the largest differences that are not excluded, in words and for every column."""
        first = self.columns[0]
        column = f"Column {first.name}" if first.name.isdigit() else f"'{sanitize(first.name)}'"
        sentence = (
            f"Differences of {self.margin:g} standard deviations or more are {'' if self.reject else 'not '}excluded. "
            f"{column} ({first.meaning}) may differ by {_up_to(first.largest)}, all columns together by "
            f"{_up_to(self.largest)}, with an AUC of at most {self.auc_bound:.3f}."
        )
        return EquivalenceExplanation(sentence, self.columns, self.joint)

    def terms(self) -> Iterator[tuple[str, str]]:
        """Yield the largest differences that are not excluded."""
        first = self.columns[0]
        yield "one column", f"may differ by {_up_to(first.largest)} ({_called(first.name)}, {first.meaning})"
        yield "all columns", f"may differ by {_up_to(self.largest)}, AUC at most {self.auc_bound:.3f}"

    def sentences(self) -> Iterator[str]:
        """Yield the finding."""
        yield self.explain().sentence

    def numbers(self) -> Iterator[Number]:
        """Yield the margin, the bound on the AUC, and how much was compared."""
        m, n = self.sizes
        yield Number("Margin", f"{self.margin:g}", "standard deviations")
        yield Number("AUC at most", f"{self.auc_bound:.3f}", "0.5 is chance")
        yield Number("Rows", f"{count(m)} v {count(n)}")
        yield Number("Columns", count(len(self.columns)))

    def _measures(self) -> Mapping[str, float | None]:
        m, n = self.sizes
        own = {name: getattr(self, name) for name in ("pvalue", "reject", "alpha", "margin", "largest", "auc_bound")}
        return {**own, "rows_x": m, "rows_y": n, "columns": len(self.columns)}

    def parts(self) -> Iterator[Table]:
        """Yield the table of columns."""
        yield Table.of(
            "columns",
            f"Differences (second sample minus first) in standard deviations, with {1 - 2 * self.alpha:.0%} confidence intervals",
            [
                ("Column", "text", [column.name for column in self.columns]),
                ("What differs", "text", [column.meaning for column in self.columns]),
                ("Difference", "number", [column.difference for column in self.columns]),
                ("From", "number", [column.low for column in self.columns]),
                ("To", "number", [column.high for column in self.columns]),
                ("p-value", "pvalue", [column.pvalue for column in self.columns]),
            ],
        )

    def assurance(self) -> dict[str, str]:
        """Return how the bounds were found."""
        joint = self.joint
        shift, low, high = (number(end) if math.isfinite(end) else "any size" for end in (joint.shift, joint.low, joint.high))
        return {
            "Level": f"{self.alpha:g}, {LEVEL}",
            "Together": f"shift of {shift}, interval {low} to {high}",
            "Kernel": f"Gaussian of bandwidth {number(joint.bandwidth)} standard deviations",
            "Rows compared": f"{count(joint.rows[0])} v {count(joint.rows[1])} by the kernel, all by columns",
        }


@threads(None)
@refuse_keywords(("groups", "strata", "pairs", "blocks"), INDEPENDENT)
def equivalence_test(
    x: Any,
    y: Any,
    *,
    margin: float,
    alpha: float = 0.05,
    rng: RNG = None,
    missing: str = "error",
) -> EquivalenceResult:
    """Test whether all differences between two samples are below a margin.

    "No difference found" may mean that there is no difference, or that there are too few rows. This test asks the other way
    round: it rejects, and so shows equivalence, where the data exclude every difference of the margin or more.

    Parameters
    ----------
    x, y : array or data frame
        The samples, as for :func:`two_sample_test`.
    margin : float
        The smallest difference that matters, in standard deviations within the samples. It applies to the mean of every column
        (for text, to the share of each level), and to all columns together, where it is the shift between two normal samples with
        the same MMD.
    alpha : float
        Significance level: the probability, at most, that samples which differ by the margin or more are called equivalent.
    rng : int, Generator, RandomState or None
        Seed or generator of the noise, and of the rows drawn from samples of more than 10,000.
    missing : str
        As for :func:`two_sample_test`.

    Returns
    -------
    EquivalenceResult
        With ``reject`` (equivalence is shown), ``pvalue``, ``columns``, ``joint``, ...; print it for a summary.

    Notes
    -----
    Columns: two one-sided t tests of the standardised difference of means, which take the error of the standard deviation into
    account. Together: the MMD of the Gaussian kernel whose bandwidth is the square root of the number of columns, against the
    distribution of the noise around a difference in the direction that is hardest to see. Each part must show equivalence at
    level alpha, so no adjustment is needed. Both distributions are asymptotic (``exact`` is False); the level at the margin was
    measured in simulations with 50 rows or more.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import equivalence_test
    >>> data = np.random.default_rng(0)
    >>> result = equivalence_test(data.normal(size=(800, 2)), data.normal(size=(900, 2)), margin=0.3, rng=0)
    >>> result.reject
    True
    """
    margin, alpha = validation.positive("margin", margin), validation.open_unit("alpha", alpha)
    seed, generator = resolve_rng(rng)
    pool = read_pool(x, y, missing=missing)
    coordinates = Coordinates.of(pool)
    columns = column_differences(coordinates, margin, alpha)
    joint, statistic, draws = joint_difference(coordinates, margin, alpha, generator)
    given = "" if missing == "error" else f", missing={missing!r}"
    return EquivalenceResult(
        margin=margin,
        pvalue=max(joint.pvalue, *(column.pvalue for column in columns)),
        statistic=statistic,
        null_distribution=draws,
        alpha=alpha,
        columns=columns,
        joint=joint,
        sizes=(pool.m, pool.n),
        seed=seed,
        notes=(*pool.notes, *_notes(pool, coordinates)),
        call=f"equivalence_test(x, y, margin={margin:g}, alpha={alpha:g}{given}, rng={'rng' if seed is None else seed})",
    )


def _notes(pool: Pool, coordinates: Coordinates) -> list[str]:
    notes = []
    if min(pool.m, pool.n) < MEASURED:
        notes.append(f"the level is asymptotic, and was confirmed in simulations with {MEASURED} rows or more of each sample")
    if max(pool.m, pool.n) > MOST_ROWS:
        notes.append(
            f"all columns together are compared on {MOST_ROWS} rows of each sample, drawn at random; single columns on all rows"
        )
    numbers = coordinates.matrix[:: 1 + len(coordinates.matrix) // LOOKED_AT, : len(pool.number_names)]
    low, high = np.quantile(numbers, (0.25, 0.75), axis=0)  # in standard deviations of the pool
    wild = (high > low) & (WILD * (high - low) < NORMAL_QUARTILES)
    if names := [name for name, is_wild in zip(pool.number_names, wild, strict=True) if is_wild]:
        notes.append(f"a few extreme rows dominate the standard deviation of {name_some(names)}, so differences in it look small")
    return notes


def _called(name: str, limit: int = NAME) -> str:
    return f"column {name}" if name.isdigit() else sanitize(name, limit)  # columns of an array have numbers


def _up_to(shift: float) -> str:
    return f"up to {shift:.3g} standard deviations" if math.isfinite(shift) else "any amount"
