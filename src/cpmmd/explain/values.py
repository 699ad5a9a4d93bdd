"""What an explanation is made of: frozen values that print for a person and turn into JSON."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.plain import PlainDict, plain_dict, to_plain
from cpmmd.procedures.outcome import TestOutcome

PRINTED = 8  # columns in the printed summary


@dataclass(frozen=True)
class RowEvidence:
    """A row that speaks for the difference.

    Attributes
    ----------
    sample : str
        ``"x"`` or ``"y"``.
    row : int
        Its number in that sample as it was passed in, from 0.
    witness : float
        Positive where X is denser, negative where Y is.
    values : mapping of str to object
        The row as it came, the columns with the largest contributions first.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(size=(40, 2)) + [0, 2]
    >>> two_sample_test(x, y, rng=0).explain().top_y[0].sample
    'y'
    """

    sample: str
    row: int
    witness: float
    values: Mapping[str, Any]

    def to_dict(self) -> PlainDict:
        """Return the row in plain JSON types."""
        return {"sample": self.sample, "row": self.row, "witness": self.witness, "values": to_plain(self.values)}


@dataclass(frozen=True)
class ColumnContribution:
    """What one column has to do with the difference.

    Attributes
    ----------
    name, label : str
        The column as the data calls it, and as text for a person (``"column 3"`` for arrays).
    kind : str
        ``"number"``, ``"date"``, ``"boolean"``, ``"category"`` or ``"patch"`` (a rectangle of an image).
    contribution : float
        Share of the squared MMD (or of its noise, where that is larger) that is lost when the column is permuted across the
        pool. Columns that tell the same story share it, columns that work together each have all of it, so the shares need not
        add up to 1; noise can make them negative.
    standard_error : float
        Of the contribution: that of the permutations and that of the rows, together.
    mean_x, mean_y, spread_x, spread_y : float or None
        Means and standard deviations of numbers (dates in days since 1970); None for categories.
    levels : mapping of str to tuple of float, or None
        Shares of a category's levels in X and Y, largest difference first; None for numbers.
    missing_x, missing_y : float
        Shares of missing values.
    difference : str
        How Y differs from X in this column alone, in words: ``"higher"``, ``"more often 'red'"``; empty where that is not
        clear or the test found no difference.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(size=(40, 2)) + [0, 2]
    >>> column = two_sample_test(x, y, rng=0).explain().columns[0]
    >>> column.name, column.difference
    ('1', 'higher')
    """

    name: str
    label: str
    kind: str
    contribution: float
    standard_error: float
    mean_x: float | None = None
    mean_y: float | None = None
    spread_x: float | None = None
    spread_y: float | None = None
    levels: Mapping[str, tuple[float, float]] | None = None
    missing_x: float = 0.0
    missing_y: float = 0.0
    difference: str = ""

    @property
    def clear(self) -> bool:
        """Whether the contribution is positive beyond two standard errors."""
        return self.contribution > 2 * self.standard_error and self.contribution > 0

    def to_dict(self) -> PlainDict:
        """Return the column in plain JSON types."""
        return plain_dict(vars(self))


@dataclass(frozen=True)
class Effect:
    """How often the witness tells a row of X from a row of Y.

    Attributes
    ----------
    probability : float
        That of ranking a random row of X above a random row of Y, both unseen by the witness; 0.5 is indistinguishable, 1 is told
        apart always.
    low, high : float
        Its 95% interval.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(size=(40, 2)) + [0, 2]
    >>> two_sample_test(x, y, rng=0).explain().effect.probability > 0.5
    True
    """

    probability: float
    low: float
    high: float

    def to_dict(self) -> dict[str, float]:
        """Return the effect in plain JSON types."""
        return dict(vars(self))

    def __str__(self) -> str:
        return f"{self.probability:.0%} of the time (95% interval {self.low:.0%} to {self.high:.0%})"


@dataclass(frozen=True, eq=False)
class Explanation:
    """Where two samples differ, and how much.

    Attributes
    ----------
    sentence : str
        The finding in plain words.
    witness_x, witness_y : array
        Witness of each explained row, itself left out of its sample's mean; positive speaks for X, negative for Y.
    rows_x, rows_y : array of int
        The numbers of those rows in the samples as they were passed in.
    top_x, top_y : tuple of RowEvidence
        The rows of X that are most unlike Y, and the rows of Y that are most unlike X.
    columns : tuple of ColumnContribution
        Columns by contribution, largest first.
    effect : Effect
        An effect size, on rows that the witness has not seen.
    held_out : bool
        Whether the explained rows had no part in choosing the kernel.
    notes : tuple of str
        What to bear in mind.
    outcome : TestResult or None
        The result that is explained.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> explanation = two_sample_test(data.normal(size=(60, 2)), data.normal(size=(60, 2)) + [0, 2], rng=0).explain(top=3)
    >>> explanation.columns[0].difference, explanation.effect.low > 0.5, [row.sample for row in explanation.top_y]
    ('higher', True, ['y', 'y', 'y'])
    """

    sentence: str
    witness_x: Array
    witness_y: Array
    rows_x: Rows
    rows_y: Rows
    top_x: tuple[RowEvidence, ...]
    top_y: tuple[RowEvidence, ...]
    columns: tuple[ColumnContribution, ...]
    effect: Effect
    held_out: bool
    notes: tuple[str, ...] = ()
    outcome: TestOutcome | None = field(default=None, repr=False)

    def to_dict(self) -> PlainDict:
        """Return the explanation in plain JSON types."""
        return plain_dict(
            {
                "sentence": self.sentence,
                "effect": self.effect.to_dict(),
                "columns": [column.to_dict() for column in self.columns],
                "top_x": [row.to_dict() for row in self.top_x],
                "top_y": [row.to_dict() for row in self.top_y],
                "witness_x": self.witness_x,
                "witness_y": self.witness_y,
                "rows_x": self.rows_x,
                "rows_y": self.rows_y,
                "held_out": self.held_out,
                "notes": list(self.notes),
            }
        )

    def __str__(self) -> str:
        from cpmmd.core.text import harmless
        from cpmmd.explain.words import LONGEST

        leading = self.columns[:PRINTED]
        names = [f"{harmless(f.label, LONGEST)}{': y is ' * bool(f.difference)}{f.difference}" for f in leading]
        shares = [f"    {f.contribution:7.1%} +- {f.standard_error:.1%}  {name}" for f, name in zip(leading, names, strict=True)]
        tops = [
            f"  rows of {sample}    {', '.join(str(row.row) for row in rows)}"
            for sample, rows in (("x", self.top_x), ("y", self.top_y))
        ]
        return "\n".join(
            [
                self.sentence,
                "  columns      share of the squared MMD lost when the column is permuted",
                *shares,
                *tops,
                *(f"  note         {note}" for note in self.notes),
            ]
        )
