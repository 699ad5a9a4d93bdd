"""What the answers of all questions but the first share: verdict, report, notebook card, JSON document and printed text.

A question adds its own numbers, words and tables; ``questions/equivalence.py`` is the example.
"""

from __future__ import annotations

import os
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

from cpmmd.core.arrays import Array
from cpmmd.core.metrics import Measured
from cpmmd.core.near_names import NearNames
from cpmmd.core.plain import NoTruthValue, PlainDict, plain_dict
from cpmmd.report.content import UNKNOWN_SEED
from cpmmd.report.figures import Drawings
from cpmmd.report.page import AnyPart, Facts, Notes, Number, Page, Section, Verdict, line, number
from cpmmd.report.render import write_page


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class Answer(NoTruthValue, NearNames, Measured):
    """The answer to a question about data."""

    title: ClassVar[str]  # the question, which heads its report
    found: ClassVar[str]  # the headline of a rejection
    not_found: ClassVar[str]  # the headline otherwise
    subject: ClassVar[str] = "data"  # the term of its shape in printed text
    good_news: ClassVar[bool] = False  # whether a rejection is what one hopes for
    #: the fields and properties that make its JSON document
    document: ClassVar[tuple[str, ...]] = (
        *("method", "reject", "pvalue", "alpha", "statistic", "exact", "exhaustive", "n_permutations", "seed", "notes"),
    )

    statistic: float  #: what was ranked
    pvalue: float  #: counts the observed data: never 0
    alpha: float  #: significance level
    null_distribution: Array = field(repr=False)  #: the statistic under every action but the observed data
    method: str = ""  #: the name of the method
    exact: bool = True  #: whether the level holds for any number of rows
    exhaustive: bool = False  #: whether every possible action was used instead of random ones
    seed: int | None = None  #: what repeats the result as ``rng=``; None when a Generator was passed in
    notes: tuple[str, ...] = ()  #: limits of the result
    call: str = ""  #: the Python call that gives this result again
    citations: tuple[str, ...] = ()  #: keys of what to cite

    # What a question adds.

    @property
    @abstractmethod
    def shape(self) -> str:
        """The data in a few words: rows and columns."""

    @abstractmethod
    def explain(self) -> Any:
        """Return what lies behind the answer; print it for a summary."""

    def terms(self) -> Iterable[tuple[str, str]]:
        """Yield numbers behind the answer, as terms and values for a person, beside data and notes."""
        return ()

    def sentences(self) -> Iterable[str]:
        """Yield sentences below the headline of a report."""
        return ()

    def numbers(self) -> Iterable[Number]:
        """Yield the few numbers beside the headline of a report, after the p-value."""
        return ()

    def parts(self) -> Iterable[AnyPart | None]:
        """Yield the tables and figures of a report."""
        return ()

    def assurance(self) -> Mapping[str, str | None]:
        """Return what a report says of how sure the answer is, besides level and seed."""
        return {}

    def drawings(self) -> Drawings:
        """Return how to draw the figures among the parts of a report."""
        return {}

    # What all share.

    @property
    def reject(self) -> bool:
        """Whether the null hypothesis is rejected: ``pvalue <= alpha``."""
        return bool(self.pvalue <= self.alpha)

    @property
    def n_permutations(self) -> int:
        """Number of actions besides the observed data."""
        return len(self.null_distribution)

    @property
    def headline(self) -> str:
        """The answer in a few words."""
        return self.found if self.reject else self.not_found

    @property
    def verdict(self) -> str:
        """The answer in one line."""
        return f"{self.headline} (p = {self.pvalue:.4g} {'<=' if self.reject else '>'} {self.alpha:g})."

    @property
    def facts(self) -> list[tuple[str, str]]:
        """The numbers behind the answer, as terms and values for a person."""
        return [(self.subject, self.shape), *self.terms(), *(("note", note) for note in self.notes)]

    def page(self, *, title: str | None = None, command: str | None = None) -> Page:
        """Return the content of the report."""
        verdict = Verdict(
            reject=self.reject,
            headline=self.headline,
            sentences=[line(sentence) for sentence in self.sentences()],
            pvalue=self.pvalue,
            alpha=self.alpha,
            statistic=self.statistic,
            numbers=[Number("p-value", number(self.pvalue), f"level {self.alpha:g}"), *self.numbers()],
        )
        level = f"{self.alpha:g}, {'exact' if self.exact else 'approximate'}"
        seed = UNKNOWN_SEED if self.seed is None else str(self.seed)
        facts = Facts.of({"Level": level, **self.assurance(), "Seed": seed})
        sections = [Section.of("where", "What was found", self.parts())]
        sections = [section for section in sections if section.parts]
        sections.append(Section.of("assurance", "How sure", [facts, Notes.of(self.notes)]))
        return Page.of(verdict, sections, title=title or self.title, command=command, call=self.call, good_news=self.good_news)

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
        return write_page(self.page(title=title, command=command), self.drawings(), path)

    def to_dict(self, *, null_distribution: bool = False) -> PlainDict:
        """Return the result in plain JSON types.

        Parameters
        ----------
        null_distribution : bool
            Whether to include the null distribution, which is long.

        Returns
        -------
        dict
            Without the data; infinite values are None.
        """
        names = (*self.document, *(("null_distribution",) if null_distribution else ()))
        return plain_dict({name: getattr(self, name) for name in names})

    measured: ClassVar[tuple[str, ...]] = ()  # further numbers among its fields and properties, for :meth:`to_metrics`

    def _measures(self) -> Mapping[str, float | None]:
        return {name: getattr(self, name) for name in ("pvalue", "statistic", "reject", "alpha", *self.measured)}

    def __str__(self) -> str:
        repeat = [] if self.seed is None else [("repeat with", f"rng={self.seed}")]
        return "\n".join([self.verdict, *(f"  {term:<12} {value}" for term, value in [*self.facts, *repeat])])

    def __repr__(self) -> str:
        return f"<{type(self).__name__}: {self.verdict[:-1]}; {self.shape}>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import page_card

        return page_card(self.page())
