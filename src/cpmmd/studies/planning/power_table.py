"""What a pilot says about sample sizes: a table that prints for a person and turns into JSON."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.core.text import counted
from cpmmd.studies.planning.law import Range

FAR = 20  # times the pilot: a bound beyond that is what a pilot without any difference gives


@dataclass(frozen=True)
class PowerRow:
    """Power at one sample size.

    Attributes
    ----------
    size : int
        Rows of each sample.
    power, low, high : float
        Estimate by the law fitted to all draws, and the interval that holds it with probability 0.9 given this pilot. The law
        has two constants for all sizes; where draws were made, ``estimate`` follows them instead.
    observed : float or None
        Share of rejections among draws of that size without replacement; None beyond the pilot.
    repetitions : int
        How many draws were made; 0 beyond the pilot.
    extrapolated : bool
        Whether the size is beyond the pilot.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import power_from_pilot
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(1, 1, size=(40, 2))
    >>> table = power_from_pilot(x, y, [20, 80], method="median", repetitions=10, n_permutations=99, rng=0)
    >>> [row.extrapolated for row in table.rows]
    [False, True]
    >>> table.rows[0].estimate == table.rows[0].observed, table.rows[1].estimate == table.rows[1].power
    (True, True)
    """

    size: int
    power: float
    low: float
    high: float
    observed: float | None
    repetitions: int
    extrapolated: bool

    @property
    def estimate(self) -> float:
        """What to believe: the share of draws that rejected; the law's power where none, or only all rows at once, were drawn."""
        return self.power if self.observed is None or self.repetitions < 2 else self.observed

    @property
    def source(self) -> str:
        """Where the estimate comes from, in words."""
        if self.extrapolated:
            return "extrapolated"
        return f"{self.repetitions} draws" if self.repetitions > 1 else "by the law"


@dataclass(frozen=True)
class PowerTable:
    """Power over sample sizes, and how many rows a wanted power takes.

    Attributes
    ----------
    rows : tuple of PowerRow
        One for each size asked for.
    needed : Range
        Rows of each sample for ``target`` power, with bounds; infinite where no number is in sight, never fewer than can have a
        p-value of ``alpha``.
    target : float
        The power that was asked for.
    method : str
        The method's name.
    alpha : float
        Level of the test.
    pilot : tuple of int
        Rows of the two pilot samples.
    n_permutations : int
        Relabelings of each test.
    seed : int or None
        What repeats the table as ``rng=``; None when a Generator was passed in.
    notes : tuple of str
        What to bear in mind.
    unit : str
        What sizes count: ``"rows"``, or ``"groups"``, ``"pairs"``, ``"blocks"`` of a design.
    block_rows : int or None
        Rows of a block, where sizes count blocks.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import power_from_pilot
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(1, 1, size=(40, 2))
    >>> table = power_from_pilot(x, y, [10, 100], method="median", repetitions=10, n_permutations=99, rng=0)
    >>> table.pilot, [row.size for row in table.rows], table.needed.low <= table.needed.high
    ((40, 40), [10, 100], True)
    """

    rows: tuple[PowerRow, ...]
    needed: Range
    target: float
    method: str
    alpha: float
    pilot: tuple[int, int]
    n_permutations: int
    seed: int | None
    notes: tuple[str, ...] = ()
    unit: str = "rows"
    block_rows: int | None = None

    @property
    def unit_in_words(self) -> str:
        """What sizes count, with how long a block is.

        Examples
        --------
        >>> from cpmmd.studies.planning.law import Range
        >>> PowerTable((), Range(8, 7, 9), 0.8, "median", 0.05, (20, 20), 99, 0, unit="blocks", block_rows=50).unit_in_words
        'blocks of 50 rows'
        """
        return self.unit if self.block_rows is None else f"{self.unit} of {counted(self.block_rows, 'row')}"

    @property
    def sentence(self) -> str:
        """The answer to: how many rows would I need?"""
        low, about, most = (_round(n) for n in (self.needed.low, self.needed.estimate, self.needed.high))
        known = FAR * min(self.pilot)
        unit = f"{self.unit_in_words} of each" if self.block_rows is None else f"{self.unit_in_words} of each sample"
        if self.needed.estimate > known:
            return f"This pilot shows no difference to plan for: more than {low} {unit} for power {self.target:.2f}."
        if self.needed.high > known:
            return (
                f"This pilot shows no clear difference: perhaps {about} {unit} for power {self.target:.2f}, "
                f"at least {low}, and it does not rule out any number."
            )
        beyond = ", beyond the pilot" if self.needed.estimate > min(self.pilot) else ""
        return f"About {about} {unit} for power {self.target:.2f}{beyond} (between {low} and {most}, given this pilot)."

    def to_dict(self) -> PlainDict:
        """Return the table in plain JSON types."""
        return plain_dict(
            {
                **{name: value for name, value in vars(self).items() if name not in ("rows", "needed")},
                "sentence": self.sentence,
                "needed": vars(self.needed),
                "rows": [{**vars(row), "estimate": row.estimate} for row in self.rows],
            }
        )

    def __str__(self) -> str:
        lines = [self.sentence, f"{self.unit + ' of each':>14}   power   {'':<14}   law, 90% interval"]
        for row in self.rows:
            source = f"({row.source})"
            law = f"{row.power:.2f}, {row.low:.2f} to {row.high:.2f}"
            lines.append(f"  {row.size:>12}   {row.estimate:>5.2f}   {source:<14}   {law}")
        lines += [f"  note  {note}" for note in self.notes]
        return "\n".join(lines)


def _round(count: float) -> str:
    """Return a number of rows to two digits: more would pretend to know."""
    if not math.isfinite(count):
        return "any number of"
    if count < 10:
        return str(max(math.ceil(count), 1))
    scale = 10 ** (math.floor(math.log10(count)) - 1)
    return str(math.ceil(count / scale - 1e-9) * scale)
