"""The answer of :func:`cpmmd.change_test`: three tests, one sentence, and what explains a model's error."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import ClassVar

from cpmmd.core.arrays import Array
from cpmmd.core.plain import NoTruthValue, PlainValue
from cpmmd.core.text import pluralize, sanitize
from cpmmd.errors import name_some
from cpmmd.explain.values import Explanation
from cpmmd.procedures.outcome import TestResult
from cpmmd.questions.answer import Answer
from cpmmd.report.page import Number, Table, Text, count, number
from cpmmd.statistics.given_inputs import WORDS, Difference

PRINTED = 5  # differences of the target in the printed summary
SAMPLES = ("the reference", "the new sample")


@dataclass(frozen=True)
class ChangePart(PlainValue):
    """One of the three tests."""

    name: str  #: ``"inputs"``, ``"target"`` or ``"relation"`` (the target given the inputs)
    pvalue: float  #: of this test alone; 1 where it could not be made
    adjusted: float  #: for the three tests
    reject: bool  #: whether a change was found: ``adjusted <= alpha``
    exact: bool  #: whether its level holds for any number of rows
    method: str  #: how it was tested
    why: str = ""  #: why it could not be tested; empty where it was

    @property
    def testable(self) -> bool:
        """Whether it was tested."""
        return not self.why


@dataclass(frozen=True)
class Overlap(PlainValue):
    """How far the inputs of both samples overlap, by the estimated probability of being new."""

    share: float  #: 1 where the inputs do not tell the samples apart, 0 where they do so perfectly
    rows: tuple[int, int]  #: rows of reference and new sample whose inputs occur in both (neither 19 times as dense)
    # reference, new: quantiles (5%, 50%, 95%) of the probability in each sample
    reference: tuple[float, ...]
    new: tuple[float, ...]


@dataclass(frozen=True)
class TargetDifference(PlainValue):
    """By how much the target's mean, or a level's share, is larger in the new sample at equal inputs, where samples overlap."""

    name: str  #: the column, or ``column=level``
    difference: float  #: in the target's units
    low: float  #: end of the 95% confidence interval
    high: float  #: the other end


@dataclass(frozen=True)
class ErrorChange(PlainValue):
    """The change of a model's mean loss, divided: ``total`` is ``inputs`` plus ``relation``."""

    loss: str  #: how an error is counted
    reference: float  #: mean loss in the reference
    new: float  #: mean loss in the new sample
    total: Difference  #: new less reference
    inputs: Difference | None  #: what other inputs explain; None where there is no overlap
    relation: Difference | None  #: what the target given the inputs explains, on rows where the samples overlap

    @property
    def sentence(self) -> str:
        """The division in words."""
        went = f"The model's mean {self.loss} error went from {number(self.reference)} to {number(self.new)}"
        whole = f"{went}: {_signed(self.total)}"
        if self.inputs is None or self.relation is None:
            return f"{whole}. It cannot be divided, because the samples do not overlap."
        inputs, relation = _signed(self.inputs), _signed(self.relation)
        return f"{whole}. Other inputs explain {inputs}, another relation to them {relation}."


def _signed(difference: Difference) -> str:
    sign = "+" if difference.estimate >= 0 else ""
    return f"{sign}{number(difference.estimate)} ({_interval(difference.low, difference.high)})"


def _interval(low: float, high: float) -> str:
    return f"95% CI {number(low)} to {number(high)}"


@dataclass(frozen=True, repr=False)
class ChangeExplanation(NoTruthValue, PlainValue):
    """What changed, and how."""

    document = ("sentence", "differences", "error_change")

    sentence: str  #: the finding in plain words
    differences: tuple[TargetDifference, ...]  #: the target at equal inputs, the clearest first
    error_change: ErrorChange | None  #: of a model, where predictions were given
    inputs: Explanation | None = None  #: where the inputs differ, if they do
    target: Explanation | None = None  #: where the target differs, if it does

    def __repr__(self) -> str:
        return f"<ChangeExplanation: {self.sentence} Print it for all>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import table_card

        rows = [{"target": sanitize(d.name), "difference": d.difference, "from": d.low, "to": d.high} for d in self.differences]
        return table_card(self.sentence, ["Differences are at equal inputs."], rows[:PRINTED])

    def __str__(self) -> str:
        lines = [self.sentence]
        lines += [f"  inputs: {self.inputs.where}"] if self.inputs is not None else []
        lines += [f"  target: {self.target.where}"] if self.target is not None else []
        lines += [
            f"  at equal inputs, {sanitize(d.name, 40)} differs by {number(d.difference)} ({_interval(d.low, d.high)})"
            for d in self.differences[:PRINTED]
        ]
        lines += [f"  {self.error_change.sentence}"] if self.error_change is not None else []
        return "\n".join(lines)


@dataclass(frozen=True, eq=False, repr=False, kw_only=True)
class ChangeResult(Answer):
    """The answer of a test of what changed.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import change_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(400, 2)), data.normal(size=400)
    >>> result = change_test(x[:200], x[200:], target=(y[:200], y[200:] + 2 * (x[200:, 0] > 0)), method="median", rng=0)
    >>> print(result.headline)
    'target' given the inputs changed; so did 'target' itself; no change found in the inputs
    """

    title: ClassVar[str] = "What kind of change is it?"
    subject: ClassVar[str] = "samples"
    document: ClassVar[tuple[str, ...]] = (
        *("method", "reject", "pvalue", "alpha", "exact", "sizes", "target_names", "n_inputs", "n_resamples", "seed", "notes"),
        *("inputs", "target", "relation", "overlap", "ways", "differences", "error_change"),
    )

    # The p-value is that of no change at all, the smallest of the three adjusted ones; the statistic is the smallest of the
    # three before they are adjusted, and has no null distribution of its own.
    null_distribution: Array = field(repr=False)  #: empty: each part has its own
    inputs: ChangePart  #: whether the inputs changed
    target: ChangePart  #: whether the target changed
    relation: ChangePart  #: whether the target given the inputs changed
    target_names: tuple[str, ...]  #: columns of the target
    sizes: tuple[int, int]  #: rows of reference and new sample
    n_inputs: int  #: columns of the inputs
    n_resamples: int  #: permutations of inputs and target, and signs of the residuals
    overlap: Overlap | None  #: of the inputs; None where there were too few rows
    ways: Mapping[str, float] | None  #: p-values of the ways in which the relation may change, the leading one first
    differences: tuple[TargetDifference, ...]  #: the target at equal inputs
    error_change: ErrorChange | None  #: of a model, where predictions were given
    input_test: TestResult = field(repr=False)  #: the test of the inputs
    target_test: TestResult = field(repr=False)  #: the test of the target

    @property
    def parts_of_change(self) -> tuple[ChangePart, ChangePart, ChangePart]:
        """The three tests."""
        return self.inputs, self.target, self.relation

    @property
    def _target(self) -> str:
        return name_some(self.target_names, 3)

    @property
    def headline(self) -> str:
        """The answer in one clause for each finding."""
        target, relation = self._target, f"{self._target} given the inputs"
        x, y, given = (part.reject for part in self.parts_of_change)
        if not self.relation.testable:
            untested = f"the relation to {target} was not testable ({self.relation.why.split(':')[0]})"
            if x or y:
                found = " and ".join([*(["the inputs"] if x else []), *([target] if y else [])])
                return f"{_capital(found)} changed; {untested}"
            return f"No change found in the inputs or {target}; {untested}"
        if x and given:
            return f"The inputs changed, and so did {relation}"
        if given:
            own = f"so did {target} itself; " if y else ""
            return f"{_capital(relation)} changed; {own}no change found in the inputs"
        if x:
            own = f"so did {target}; " if y else ""
            return f"The inputs changed; {own}no change found in {relation}"
        if y:
            return f"{_capital(target)} changed; it is not clear whether by the inputs or by the relation to them"
        return f"No change found in the inputs, in {target}, or in {relation}"

    @property
    def shape(self) -> str:
        """The data in a few words."""
        m, n = self.sizes
        return f"{m} v {n} rows, {pluralize(self.n_inputs, 'input')}"

    @property
    def way(self) -> str:
        """How the relation changed, as far as is known."""
        return WORDS[next(iter(self.ways))] if self.ways and self.relation.reject else ""

    def explain(self) -> ChangeExplanation:
        """Return what changed and how, in words and numbers."""
        sentence = f"{self.headline}." + (f" What leads the evidence on the relation is {self.way}." if self.way else "")
        clearest = sorted(self.differences, key=lambda d: -abs(d.difference) / ((d.high - d.low) or 1.0))
        inputs = self.input_test.explain(names=SAMPLES) if self.inputs.reject else None
        target = self.target_test.explain(names=SAMPLES) if self.target.reject else None
        return ChangeExplanation(sentence, tuple(clearest), self.error_change, inputs, target)

    def terms(self) -> Iterator[tuple[str, str]]:
        """Yield the three tests, the overlap, and what explains the model's error."""
        for part in self.parts_of_change:
            found = f"adjusted p = {part.adjusted:.4g} ({part.method}, {'exact' if part.exact else 'approximate'})"
            yield part.name, found if part.testable else f"not testable: {part.why}"
        if self.overlap is not None:
            m, n = self.overlap.rows
            yield "overlap", f"{m} and {n} rows with inputs that occur in both samples"
        for of in self.differences[:PRINTED]:
            size = f"{number(of.difference)} at equal inputs ({_interval(of.low, of.high)})"
            yield "difference", f"{sanitize(of.name, 40)} by {size}"
        if self.error_change is not None:
            yield "model", self.error_change.sentence

    def sentences(self) -> Iterator[str]:
        """Yield what leads the evidence, and what explains the model's error."""
        if self.way:
            yield f"What leads the evidence on {self._target} given the inputs is {self.way}."
        if self.error_change is not None:
            yield self.error_change.sentence

    def numbers(self) -> Iterator[Number]:
        """Yield how much was compared."""
        m, n = self.sizes
        yield Number("Rows", f"{count(m)} v {count(n)}")
        yield Number("Inputs", count(self.n_inputs))
        if self.overlap is not None:
            yield Number("Overlap", f"{100 * self.overlap.share:.0f}%", "100% is one distribution of inputs")

    def _measures(self) -> Mapping[str, float | None]:
        m, n = self.sizes
        own = {f"{part.name}_pvalue": part.adjusted if part.testable else None for part in self.parts_of_change}
        shared = {"pvalue": self.pvalue, "reject": self.reject, "alpha": self.alpha, "rows_reference": m, "rows_new": n}
        error = self.error_change
        divided = {
            "overlap": None if self.overlap is None else self.overlap.share,
            "error_change": None if error is None else error.total.estimate,
            "error_change_inputs": None if error is None or error.inputs is None else error.inputs.estimate,
            "error_change_relation": None if error is None or error.relation is None else error.relation.estimate,
        }
        return {**shared, **own, **divided}

    def parts(self) -> Iterator[Table | Text]:
        """Yield the three tests, and the target at equal inputs."""
        parts = self.parts_of_change
        yield Table.of(
            "tests",
            "Three tests, with p-values adjusted for all of them",
            [
                ("What", "words", ["the inputs", "the target", "the target given the inputs"]),
                ("Changed", "flag", [part.reject for part in parts]),
                ("p-value, adjusted", "pvalue", [part.adjusted if part.testable else None for part in parts]),
                ("p-value", "pvalue", [part.pvalue if part.testable else None for part in parts]),
                ("How", "words", [part.why or part.method for part in parts]),
            ],
        )
        for name, test, part in (("inputs", self.input_test, self.inputs), ("target", self.target_test, self.target)):
            if part.reject:
                yield Text(f"{name.capitalize()}: {test.explain(names=SAMPLES).where}")
        if self.differences:
            yield Table.of(
                "differences",
                "The target at equal inputs (new sample less reference), with 95% confidence intervals",
                [
                    ("Target", "text", [d.name for d in self.differences]),
                    ("Difference", "number", [d.difference for d in self.differences]),
                    ("From", "number", [d.low for d in self.differences]),
                    ("To", "number", [d.high for d in self.differences]),
                ],
            )
        error = self.error_change
        if error is not None and error.inputs is not None and error.relation is not None:
            causes = (error.total, error.inputs, error.relation)
            yield Table.of(
                "error",
                f"Change of the model's mean {error.loss} error, with 95% confidence intervals",
                [
                    ("Cause", "words", ["all", "other inputs", "another relation to them"]),
                    ("Change", "number", [cause.estimate for cause in causes]),
                    ("From", "number", [cause.low for cause in causes]),
                    ("To", "number", [cause.high for cause in causes]),
                ],
            )

    def assurance(self) -> dict[str, str | None]:
        """Return how the tests were made."""
        exact = [part.name for part in self.parts_of_change if part.testable and part.exact]
        return {
            "Together": "the probability of naming any change that did not happen is at most the level",
            "Exact": ", ".join(exact) or None,
            "Permutations": f"{self.n_resamples} of inputs and target, as many signs of residuals",
        }


def _capital(text: str) -> str:
    return text[:1].upper() + text[1:]
