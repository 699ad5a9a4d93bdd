"""What an explanation is made of: frozen values that print for a person and turn into JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import PlainDict, PlainValue
from cpmmd.core.text import number_format, sanitize
from cpmmd.data.preparation import MISSING
from cpmmd.explain.differences import LONGEST, ColumnDifference, PairDifference, SuspiciousColumn
from cpmmd.procedures.outcome import TestResult
from cpmmd.statistics.columns import Change, date_text

PRINTED = 8  # columns in the printed summary
LEVEL = 24  # characters of a level
WHOLE = 1e12  # means from 1e7 up to here are shown without decimals rather than with an exponent: identifiers, seconds, prices


@dataclass(frozen=True)
class RowEvidence(PlainValue):
    """A row that speaks for the difference."""

    sample: str  #: ``"x"`` or ``"y"``
    row: int  #: its number in that sample as it was passed in, from 0
    witness: float  #: positive where X is denser, negative where Y is
    values: Mapping[str, object]  #: the row as it came, the columns that differ most first


@dataclass(frozen=True)
class Effect(PlainValue):
    """How often the witness tells a row of X from a row of Y."""

    #: that of ranking a random row of X above a random row of Y, both unseen by the witness; 0.5 is indistinguishable, 1 is
    #: told apart always
    probability: float
    #: low, high: its 95% interval
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.probability:.0%} of the time (95% interval {self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True, eq=False)
class Explanation(PlainValue):
    """Where two samples differ, and how much."""

    document = (
        *("sentence", "where", "told", "names", "effect", "effect_one_by_one", "unexplained", "columns", "pairs", "suspicious"),
        *("top_x", "top_y", "pvalue_without", "witness_x", "witness_y", "rows_x", "rows_y", "held_out", "notes"),
    )

    #: where, told: where the samples differ, and how well their rows are told apart, in plain words
    where: str
    told: str
    columns: tuple[ColumnDifference, ...]  #: every column, smallest p-value first, then the largest distance
    pairs: tuple[PairDifference, ...]  #: pairs of columns, those whose dependence changed most first
    #: columns that tell the samples apart without saying anything about them: identifiers, counters, clocks, constants
    suspicious: tuple[SuspiciousColumn, ...]
    #: of all other columns and their pairs together, under the same relabelings; None where no column is suspicious, or no
    #: other is left
    pvalue_without: float | None
    #: how well rows are told apart by the test's kernel, on rows that the witness has not seen; None, and ``told`` empty, with
    #: fewer than two rows (groups, blocks) of a sample, and where rows are compared in pairs or in strata of few rows. With
    #: strata, of rows of the same one.
    effect: Effect | None
    #: how well they are told apart by what each column says alone, added up, on rows that it was not learnt from
    effect_one_by_one: Effect | None
    names: tuple[str, str]  #: what the samples are called
    #: witness_x, witness_y: witness of each row that was drawn for it, itself left out of its sample's mean; positive speaks
    #: for X, negative for Y
    witness_x: Array
    witness_y: Array
    #: rows_x, rows_y: the numbers of those rows in the samples as they were passed in
    rows_x: Rows
    rows_y: Rows
    #: top_x, top_y: the rows of X that are most unlike Y, and the rows of Y that are most unlike X
    top_x: tuple[RowEvidence, ...]
    top_y: tuple[RowEvidence, ...]
    held_out: bool  #: whether the explained rows had no part in choosing the kernel
    notes: tuple[str, ...] = ()  #: what to bear in mind
    #: how columns and rows are compared, in words, after a test with strata or pairs; empty where all rows are exchangeable
    compared: str = ""
    outcome: TestResult | None = field(default=None, repr=False)  #: the result that is explained

    @property
    def sentence(self) -> str:
        """The finding in plain words."""
        return f"{self.where} {self.told}".strip()

    @property
    def unexplained(self) -> float | None:
        """Share of the told-apart rate beyond chance that columns one by one do not reach; None where rows are not told apart."""
        if self.effect is None or self.effect_one_by_one is None or self.effect.low <= 0.5:
            return None
        return min(max(1 - (self.effect_one_by_one.probability - 0.5) / (self.effect.probability - 0.5), 0.0), 1.0)

    @property
    def differing(self) -> tuple[ColumnDifference, ...]:
        """The columns that differ at the test's level, all of them together."""
        return tuple(column for column in self.columns if column.significant)

    @property
    def differing_pairs(self) -> tuple[PairDifference, ...]:
        """The pairs whose dependence differs at the test's level, all of them together."""
        return tuple(pair for pair in self.pairs if pair.significant)

    def to_dict(self) -> PlainDict:
        """Return the explanation in plain JSON types."""
        return {**super().to_dict(), "notes": self._every_note}

    @property
    def _every_note(self) -> list[str]:
        return [*([self.compared] if self.compared else []), *self.notes]

    def __str__(self) -> str:
        lines = [self.sentence]
        lines += [f"  suspicious   {sanitize(one.label, LONGEST)}: {one.why}" for one in self.suspicious]
        lines.append("  columns      p-value, adjusted for all columns")
        for column in self.columns[:PRINTED]:
            found = f": {column.words}, {column.effect}" if column.significant else ""
            lines.append(f"    {column.pvalue:<8.3g} {sanitize(column.label, LONGEST)}{found}")
        if self.differing_pairs:
            lines.append("  pairs        p-value, adjusted for all pairs")
        for pair in self.differing_pairs[:PRINTED]:
            lines.append(f"    {pair.pvalue:<8.3g} {sanitize(' and '.join(pair.labels), LONGEST)}: {pair.words}")
        for sample, rows in zip(self.names, (self.top_x, self.top_y), strict=True):
            lines.append(f"  rows of {sanitize(sample, LONGEST)}: {', '.join(str(row.row) for row in rows)}")
        return "\n".join([*lines, *(f"  note         {note}" for note in self._every_note)])


def typical(column: ColumnDifference, *, nothing: str = "") -> tuple[str, str]:
    """Return what is typical of a column in X and in Y, ``nothing`` where all values are missing.

    A mean, a date, or the share of the level that changed most.
    """
    if column.found is Change.MISSING:
        return f"missing {column.missing_x:.0%}", f"missing {column.missing_y:.0%}"
    if column.levels:
        level, shares = next(iter(column.levels.items()))  # the one that the words speak of comes first
        name = "missing" if level == MISSING else sanitize(level, LEVEL)
        return f"{name} {shares[0]:.0%}", f"{name} {shares[1]:.0%}"
    if column.found is Change.SPREAD:
        return f"sd {column.spread_x:.3g}", f"sd {column.spread_y:.3g}"
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
