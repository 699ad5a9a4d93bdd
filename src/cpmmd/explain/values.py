"""What an explanation is made of: frozen values that print for a person and turn into JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import PlainDict, plain_dict, to_plain
from cpmmd.explain.differences import ColumnDifference, PairDifference, SuspiciousColumn
from cpmmd.procedures.outcome import TestOutcome

PRINTED = 8  # columns in the printed summary


@dataclass(frozen=True)
class RowEvidence:
    """A row that speaks for the difference."""

    sample: str  #: ``"x"`` or ``"y"``
    row: int  #: its number in that sample as it was passed in, from 0
    witness: float  #: positive where X is denser, negative where Y is
    values: Mapping[str, Any]  #: the row as it came, the columns that differ most first

    def to_dict(self) -> PlainDict:
        """Return the row in plain JSON types."""
        return {"sample": self.sample, "row": self.row, "witness": self.witness, "values": to_plain(self.values)}


@dataclass(frozen=True)
class Effect:
    """How often the witness tells a row of X from a row of Y."""

    #: that of ranking a random row of X above a random row of Y, both unseen by the witness; 0.5 is indistinguishable, 1 is
    #: told apart always
    probability: float
    #: low, high: its 95% interval
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """Return the effect in plain JSON types."""
        return dict(vars(self))

    def __str__(self) -> str:
        return f"{self.probability:.0%} of the time (95% interval {self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True, eq=False)
class Explanation:
    """Where two samples differ, and how much."""

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
    outcome: TestOutcome | None = field(default=None, repr=False)  #: the result that is explained

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
        return tuple(column for column in self.columns if column.words)

    @property
    def differing_pairs(self) -> tuple[PairDifference, ...]:
        """The pairs whose dependence differs at the test's level, all of them together."""
        return tuple(pair for pair in self.pairs if pair.words)

    def to_dict(self) -> PlainDict:
        """Return the explanation in plain JSON types."""
        lists = {name: getattr(self, name) for name in ("columns", "pairs", "suspicious", "top_x", "top_y")}
        return plain_dict(
            {
                "sentence": self.sentence,
                "where": self.where,
                "told": self.told,
                "names": list(self.names),
                "effect": None if self.effect is None else self.effect.to_dict(),
                "effect_one_by_one": None if self.effect_one_by_one is None else self.effect_one_by_one.to_dict(),
                "unexplained": self.unexplained,
                **{name: [one.to_dict() for one in found] for name, found in lists.items()},
                "pvalue_without": self.pvalue_without,
                "witness_x": self.witness_x,
                "witness_y": self.witness_y,
                "rows_x": self.rows_x,
                "rows_y": self.rows_y,
                "held_out": self.held_out,
                "notes": [*([self.compared] if self.compared else []), *self.notes],
            }
        )

    def __str__(self) -> str:
        from cpmmd.core.text import harmless
        from cpmmd.explain.differences import LONGEST

        columns = [
            f"    {c.pvalue:<8.3g} {harmless(c.label, LONGEST)}{': ' * bool(c.words)}{c.words}{f', {c.effect}' * bool(c.words)}"
            for c in self.columns[:PRINTED]
        ]
        pairs = [f"    {p.pvalue:<8.3g} {harmless(' and '.join(p.labels), LONGEST)}: {p.words}" for p in self.differing_pairs]
        tops = [
            f"  rows of {harmless(sample, LONGEST)}: {', '.join(str(row.row) for row in rows)}"
            for sample, rows in zip(self.names, (self.top_x, self.top_y), strict=True)
        ]
        return "\n".join(
            [
                self.sentence,
                *(f"  suspicious   {harmless(one.label, LONGEST)}: {one.why}" for one in self.suspicious),
                "  columns      p-value, adjusted for all columns",
                *columns,
                *(["  pairs        p-value, adjusted for all pairs", *pairs[:PRINTED]] if pairs else []),
                *tops,
                *(f"  note         {note}" for note in ([self.compared] if self.compared else []) + list(self.notes)),
            ]
        )
