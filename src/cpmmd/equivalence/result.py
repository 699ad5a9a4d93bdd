"""What an equivalence test returns."""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass

from cpmmd.core.arrays import Array
from cpmmd.core.metrics import Measured
from cpmmd.core.near_names import NearNames
from cpmmd.core.plain import NoTruthValue, PlainDict, PlainValue, plain_dict
from cpmmd.core.text import NAME, pluralize, sanitize
from cpmmd.equivalence.bounds import ColumnEquivalence, JointEquivalence, auc_of_shift
from cpmmd.report.content import UNKNOWN_SEED
from cpmmd.report.page import Facts, Notes, Number, Page, Section, Table, Verdict, count, line, number
from cpmmd.report.render import write_page

PRINTED = 5  # columns in the printed summary


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


@dataclass(frozen=True, eq=False, repr=False)
class EquivalenceResult(NoTruthValue, NearNames, Measured):
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

    margin: float  #: the smallest difference that matters, in standard deviations
    pvalue: float  #: the largest p-value of the columns and of all together: each difference must be below the margin
    statistic: float  #: the squared MMD in all columns, biased (that of the samples themselves)
    #: draws of the statistic under the null hypothesis: populations that differ by the margin, least favourably
    null_distribution: Array
    #: significance level: large samples that differ by the margin or more are called equivalent at most this often
    alpha: float
    columns: tuple[ColumnEquivalence, ...]  #: every column, the largest bound first
    joint: JointEquivalence  #: all columns together
    sizes: tuple[int, int]  #: rows of X and Y
    seed: int | None = None  #: what repeats the result as ``rng=``; None when a Generator was passed in
    notes: tuple[str, ...] = ()  #: limits of the result
    call: str = ""  #: the Python call that gives this result again
    exact: bool = False  #: the level is approximate: it holds for many rows, and was measured from 50 rows on
    #: keys of what to cite
    citations: tuple[str, ...] = ("liu2026equivalence", "lakens2017equivalence", "gretton2012kernel")

    @property
    def reject(self) -> bool:
        """Whether equivalence is shown: differences of the margin or more are excluded at significance level alpha."""
        return bool(self.pvalue <= self.alpha)

    @property
    def headline(self) -> str:
        """The answer in a few words."""
        return f"{'Equivalent' if self.reject else 'Equivalence not shown'} within {self.margin:g} standard deviations"

    @property
    def verdict(self) -> str:
        """The answer in one line."""
        return f"{self.headline} (p = {self.pvalue:.4g} {'<=' if self.reject else '>'} {self.alpha:g})."

    @property
    def largest(self) -> float:
        """The largest difference that is not excluded, in standard deviations: the smallest margin that shows equivalence."""
        return max(self.joint.high, self.columns[0].largest)  # all columns together differ at least as much as one

    @property
    def auc_bound(self) -> float:
        """The largest AUC that is not excluded: that of two normal samples that differ by ``largest`` standard deviations."""
        return auc_of_shift(self.largest)

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The numbers behind the answer, as terms and values for a person."""
        first = self.columns[0]
        return [
            ("samples", self._shape),
            ("one column", f"may differ by {_up_to(first.largest)} ({_called(first.name)}, {first.meaning})"),
            ("all columns", f"may differ by {_up_to(self.largest)}, AUC at most {self.auc_bound:.3f}"),
            *(("note", note) for note in self.notes),
        ]

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

    def report(self, path: str | os.PathLike[str] | None = None, *, title: str | None = None, command: str | None = None) -> str:
        """Return a report for a colleague, and write it when a path is given.

        Parameters
        ----------
        path, title, command
            As for :meth:`cpmmd.TestResult.report`.

        Returns
        -------
        str
            The text of the report.
        """
        return write_page(_page(self, title=title, command=command), {}, path)

    def to_dict(self, *, null_distribution: bool = False) -> PlainDict:
        """Return the result in plain JSON types.

        Parameters
        ----------
        null_distribution : bool
            Whether to include the draws at the margin, which are many.

        Returns
        -------
        dict
            Without the data; infinite values are None.
        """
        names = ("margin", "reject", "pvalue", "alpha", "statistic", "exact", "sizes", "seed", "notes")
        names += ("largest", "auc_bound", "columns", "joint", *(("null_distribution",) if null_distribution else ()))
        return plain_dict({"method": "equivalence", **{name: getattr(self, name) for name in names}})

    def _measures(self) -> Mapping[str, float | None]:
        m, n = self.sizes
        own = {name: getattr(self, name) for name in ("pvalue", "reject", "alpha", "margin", "largest", "auc_bound")}
        return {**own, "rows_x": m, "rows_y": n, "columns": len(self.columns)}

    def __str__(self) -> str:
        repeat = [] if self.seed is None else [("repeat with", f"rng={self.seed}")]
        return "\n".join([self.verdict, *(f"  {term:<12} {value}" for term, value in [*self.facts, *repeat])])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict[:-1]}; {self._shape}>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import page_card

        return page_card(_page(self, title=None, command=None))

    @property
    def _shape(self) -> str:
        (m, n), columns = self.sizes, len(self.columns)
        return f"{m} v {n} rows, {pluralize(columns, 'column')}"


def _called(name: str, limit: int = NAME) -> str:
    return f"column {name}" if name.isdigit() else sanitize(name, limit)  # columns of an array have numbers


def _up_to(shift: float) -> str:
    return f"up to {shift:.3g} standard deviations" if math.isfinite(shift) else "any amount"


# The report of an equivalence test, without pictures.


QUESTION = "Are the two samples equivalent within the margin?"
LEVEL = (
    "asymptotic: in simulations with 50 rows or more, samples that differ by the margin were called equivalent at most this often"
)


def _page(result: EquivalenceResult, *, title: str | None, command: str | None) -> Page:
    m, n = result.sizes
    verdict = Verdict(
        reject=result.reject,
        headline=result.headline,
        sentences=[line(result.explain().sentence)],
        pvalue=result.pvalue,
        alpha=result.alpha,
        statistic=result.statistic,
        auc=result.auc_bound,
        numbers=[
            Number("p-value", number(result.pvalue), f"level {result.alpha:g}"),
            Number("Margin", f"{result.margin:g}", "standard deviations"),
            Number("AUC at most", f"{result.auc_bound:.3f}", "0.5 is chance"),
            Number("Rows", f"{count(m)} v {count(n)}"),
            Number("Columns", count(len(result.columns))),
        ],
    )
    table = Table.of(
        "columns",
        f"Differences (second sample minus first) in standard deviations, with {1 - 2 * result.alpha:.0%} confidence intervals",
        [
            ("Column", "text", [column.name for column in result.columns]),
            ("What differs", "text", [column.meaning for column in result.columns]),
            ("Difference", "number", [column.difference for column in result.columns]),
            ("From", "number", [column.low for column in result.columns]),
            ("To", "number", [column.high for column in result.columns]),
            ("p-value", "pvalue", [column.pvalue for column in result.columns]),
        ],
    )
    joint = result.joint
    shift, low, high = (number(end) if math.isfinite(end) else "any size" for end in (joint.shift, joint.low, joint.high))
    facts = {
        "Level": f"{result.alpha:g}, {LEVEL}",
        "Together": f"shift of {shift}, interval {low} to {high}",
        "Kernel": f"Gaussian of bandwidth {number(joint.bandwidth)} standard deviations",
        "Rows compared": f"{count(joint.rows[0])} v {count(joint.rows[1])} by the kernel, all by columns",
        "Seed": UNKNOWN_SEED if result.seed is None else str(result.seed),
    }
    sections = [
        Section.of("where", "The largest differences that are not excluded", [table]),
        Section.of("assurance", "How sure", [Facts.of(facts), Notes.of(result.notes)]),
    ]
    return Page.of(verdict, sections, title=title or QUESTION, command=command, call=result.call, good_news=True)
