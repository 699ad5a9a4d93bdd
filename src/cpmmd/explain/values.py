"""Explanations and their rows: frozen values that print for a person and turn into JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.metrics import Measured
from cpmmd.core.plain import NoTruthValue, PlainDict, PlainValue
from cpmmd.core.text import LINE, number_format, pluralize, sanitize
from cpmmd.data.preparation import MISSING
from cpmmd.explain.differences import LONGEST, ColumnDifference, PairDifference, SuspiciousColumn
from cpmmd.procedures.outcome import TestResult
from cpmmd.statistics.columns import Change, date_text

PRINTED = 8  # columns in the printed summary
LEVEL = 24  # characters of a level
WHOLE = 1e12  # means from 1e7 up to here are shown without decimals, not with an exponent: identifiers, seconds, prices

_OF_TEST = "Use `result.{0}` for the whole test{1}."
_PVALUES = _OF_TEST.format("pvalue", "; each column and pair has its own, as `explanation.columns[0].pvalue`")
# Attributes that people look for, and where they find them.
MEANT = {
    "pvalue": _PVALUES,
    "p_value": _PVALUES,
    "reject": _OF_TEST.format("reject", "; the columns that differ are `explanation.differing`"),
    "statistic": _OF_TEST.format("statistic", ""),
    "effect": "The effect size of all columns together is `.auc`; each column has its own, as `explanation.columns[0].effect`.",
    "told": "Use `.auc_sentence` instead.",
    "features": "Use `.columns` instead.",
}


@dataclass(frozen=True)
class NotableRow(PlainValue):
    """A row that is among the most unlike the other sample."""

    sample: str  #: ``"x"`` or ``"y"``
    row: int  #: its number in that sample as it was passed in, from 0
    witness: float  #: positive where X is denser, negative where Y is
    values: Mapping[str, object] = field(repr=False)  #: the row as it was passed in, the columns that differ most first


@dataclass(frozen=True)
class AUC(PlainValue):
    """How often a witness ranks a row of X above a row of Y (the area under its ROC curve), with a 95% confidence interval."""

    #: for rows that the witness was not fitted to: 0.5 is chance, 1 is complete separation
    value: float
    #: low, high: its 95% confidence interval (DeLong)
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} (95% confidence interval {self.low:.2f} to {self.high:.2f})"


@dataclass(frozen=True, eq=False, repr=False)
class Explanation(NoTruthValue, PlainValue, Measured):
    """Where two samples differ, and how much."""

    document = (
        *("sentence", "where", "auc_sentence", "names", "auc", "marginal_auc", "unexplained", "columns", "pairs", "suspicious"),
        *("top_x", "top_y", "pvalue_without", "witness_x", "witness_y", "rows_x", "rows_y", "held_out", "notes"),
    )
    truth_hint = "`.differing`, or `.reject` of the result"

    #: where, auc_sentence: where the samples differ, and how well their rows are separated, in plain words
    where: str
    auc_sentence: str
    columns: tuple[ColumnDifference, ...]  #: every column, smallest p-value first, then the largest distance
    #: pairs of columns: those that differ first, by how much their correlation changed (Cohen's q), then the others by p-value
    pairs: tuple[PairDifference, ...]
    #: columns that separate the samples without saying anything about them: identifiers, counters, clocks, constants
    suspicious: tuple[SuspiciousColumn, ...]
    #: of all other columns and their pairs together, under the same permutations; None where no column is suspicious or all are
    pvalue_without: float | None
    #: of the kernel's witness, on rows that it was not fitted to, inside strata where there are any; None for pairs, for strata
    #: of few rows, and with fewer than two rows (groups, blocks) of a sample
    auc: AUC | None
    marginal_auc: AUC | None  #: of the columns one by one: of the sum of their log ratios of class frequencies
    names: tuple[str, str]  #: what the samples are called
    #: witness_x, witness_y: leave-one-out witness of each row that was drawn for it; positive for X, negative for Y
    witness_x: Array
    witness_y: Array
    #: rows_x, rows_y: the numbers of those rows in the samples as they were passed in
    rows_x: Rows
    rows_y: Rows
    #: top_x, top_y: the rows of X that are most unlike Y, and the rows of Y that are most unlike X
    top_x: tuple[NotableRow, ...]
    top_y: tuple[NotableRow, ...]
    held_out: bool  #: whether the explained rows had no part in choosing the kernel
    notes: tuple[str, ...] = ()  #: limits of the explanation
    #: how columns and rows are compared, in words, after a test with strata or pairs; empty where all rows are exchangeable
    compared: str = ""
    outcome: TestResult | None = field(default=None, repr=False)  #: the result that is explained

    @property
    def sentence(self) -> str:
        """The finding in plain words."""
        return f"{self.where} {self.auc_sentence}".strip()

    @property
    def unexplained(self) -> float | None:
        """Share of the AUC above 0.5 that single columns do not reach; None where the AUC may be 0.5."""
        if self.auc is None or self.marginal_auc is None or self.auc.low <= 0.5:
            return None
        return min(max(1 - (self.marginal_auc.value - 0.5) / (self.auc.value - 0.5), 0.0), 1.0)

    @property
    def differing(self) -> tuple[ColumnDifference, ...]:
        """The columns that differ at the test's level, adjusted for all columns."""
        return tuple(column for column in self.columns if column.significant)

    @property
    def differing_pairs(self) -> tuple[PairDifference, ...]:
        """The pairs whose dependence differs at the test's level, adjusted for all pairs."""
        return tuple(pair for pair in self.pairs if pair.significant)

    def to_dict(self) -> PlainDict:
        """Return the explanation in plain JSON types."""
        return {**super().to_dict(), "notes": self._all_notes}

    def _measures(self) -> Mapping[str, float | None]:
        auc = (None, None, None) if self.auc is None else (self.auc.value, self.auc.low, self.auc.high)
        differing = {"differing_columns": len(self.differing), "differing_pairs": len(self.differing_pairs)}
        return {**dict(zip(("auc", "auc_low", "auc_high"), auc, strict=True)), **differing}

    if not TYPE_CHECKING:  # the checker knows the attributes there are

        def __getattr__(self, name: str) -> object:
            """Name the attribute that is meant by one that belongs to a test's result or to an earlier version."""
            meant = f" {MEANT[name]}" if name in MEANT else ""
            message = f"An Explanation has no attribute '{name}'.{meant}"
            raise AttributeError(message, name=name, obj=self)

    @property
    def _all_notes(self) -> list[str]:
        return [*([self.compared] if self.compared else []), *self.notes]

    def __repr__(self) -> str:
        found = f"{len(self.differing)} of {pluralize(len(self.columns), 'column')} differ{'s' * (len(self.differing) == 1)}"
        return f"<Explanation: {sanitize(self.where, LINE)} {found}; print it for all>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import explanation_card

        return explanation_card(self)

    def __str__(self) -> str:
        lines = [self.sentence]
        lines += [f"  suspicious   {sanitize(column.label, LONGEST)}: {column.why}" for column in self.suspicious]
        lines.append("  columns      p-value, adjusted for all columns")
        for column in self.columns[:PRINTED]:
            found = f": {column.words}, {column.effect}" if column.significant else ""
            lines.append(f"    {column.pvalue:<8.3g} {sanitize(column.label, LONGEST)}{found}")
        if self.differing_pairs:
            lines.append("  pairs        p-value, adjusted for all pairs")
        for pair in self.differing_pairs[:PRINTED]:
            x, y = pair.correlations
            lines.append(f"    {pair.pvalue:<8.3g} {sanitize(' and '.join(pair.labels), LONGEST)}: {pair.words} ({x} and {y})")
        for sample, rows in zip(self.names, (self.top_x, self.top_y), strict=True):
            lines.append(f"  rows of {sanitize(sample, LONGEST)}: {', '.join(str(row.row) for row in rows)}")
        return "\n".join([*lines, *(f"  note         {note}" for note in self._all_notes)])


def typical(column: ColumnDifference, *, nothing: str = "") -> tuple[str, str]:
    """Return a typical value of a column in X and in Y: a mean, a date, or the share of the level that changed most.

    Where all values are missing, it is ``nothing``.
    """
    if column.found is Change.MISSING:
        return f"missing {column.missing_x:.0%}", f"missing {column.missing_y:.0%}"
    if column.levels:
        level, shares = next(iter(column.levels.items()))  # the level that changed most comes first
        name = "missing" if level == MISSING else sanitize(level, LEVEL)
        return f"{name} {shares[0]:.0%}", f"{name} {shares[1]:.0%}"
    if column.found is Change.SCALE:
        return f"sd {column.sd_x:.3g}", f"sd {column.sd_y:.3g}"
    sides = (column.mean_x, column.mean_y)
    means = [mean for mean in sides if mean is not None]
    form = ".0f" if 1e7 <= max(map(abs, means), default=0.0) < WHOLE else number_format(means)

    def show(mean: float) -> str:
        if column.kind == "date":  # with the time of day where both are within one
            length = 16 if len(means) == 2 and abs(means[0] - means[1]) < 1 else 10
            return date_text(mean)[:length].replace("T", " ")
        return f"true {mean:.0%}" if column.kind == "boolean" else format(mean, form)

    x, y = (nothing if mean is None else show(mean) for mean in sides)
    return x, y
