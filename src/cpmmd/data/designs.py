"""Designs: which relabelings are allowed, because what they exchange is exchangeable when nothing differs.

Rows stand in units that change sides whole, units stand in strata inside which labels move. Groups are units; strata are strata;
pairs are strata of two units, one of each sample; blocks are units of consecutive rows. A design never sees a value that is
compared.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace

import numpy as np

from cpmmd.core.arrays import Rows
from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.core.text import counted

ROW, GROUP, PAIR, BLOCK = "row", "group", "pair", "block"
BLOCKS_NOTE = "blocks are exchangeable as far as dependence fades within their length: the level is approximate"


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """What was exchangeable: rows in units, units in strata.

    Attributes
    ----------
    unit : array of int
        Unit of each row of the pool, those of X before those of Y.
    strata : array of int
        Stratum of each unit.
    rows : tuple of int
        Rows of X and of Y.
    kind : str
        What a unit is: ``"row"``, ``"group"``, ``"block"``, or one half of a ``"pair"``.
    block_rows : int or None
        Rows of a block.
    given : dict of str to str
        The arguments that made it, with the columns that they named: ``{"groups": "patient"}``.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> patients = np.repeat(np.arange(8), 5), np.repeat(np.arange(8, 18), 5)
    >>> result = two_sample_test(data.normal(size=(40, 2)), data.normal(size=(50, 2)), groups=patients, rng=0)
    >>> print(result.design)
    8 v 10 groups, 40 v 50 rows
    >>> result.design.units, result.design.permutation_type
    ((8, 10), 'independent')
    """

    unit: Rows
    strata: Rows
    rows: tuple[int, int]
    kind: str = ROW
    block_rows: int | None = None
    given: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, unit: Rows, stratum: Rows, rows: tuple[int, int], **more: object) -> Design:
        """Return the design of rows whose unit and stratum have any numbers; a unit of one number in both samples is two.

        Parameters
        ----------
        unit, stratum : array of int
            Of each row, those of X first.
        rows : tuple of int
            Rows of X and of Y.
        **more : object
            Further fields.

        Returns
        -------
        Design
            Units of X are numbered first, strata from 0.
        """
        side = np.arange(len(unit)) >= rows[0]
        _, first, numbers = np.unique(unit + (unit.max(initial=0) + 1) * side, return_index=True, return_inverse=True)
        strata = np.unique(stratum[first], return_inverse=True)[1]
        return cls(numbers.ravel(), strata.ravel(), rows, **more)  # type: ignore[arg-type]

    @property
    def size(self) -> int:
        """Number of units."""
        return len(self.strata)

    @property
    def first(self) -> int:
        """Units of X, which come first."""
        return int(self.unit[: self.rows[0]].max(initial=-1)) + 1

    @property
    def units(self) -> tuple[int, int]:
        """Units of X and of Y; pairs are counted as both."""
        return self.first, self.size - self.first

    @property
    def n_strata(self) -> int:
        """Number of strata; pairs are not counted as such."""
        return 1 if self.kind == PAIR else int(self.strata.max(initial=0)) + 1

    @property
    def permutation_type(self) -> str:
        """What ``scipy.stats.permutation_test`` calls it: ``"independent"``, or ``"samples"`` for pairs."""
        return "samples" if self.kind == PAIR else "independent"

    def by_stratum(self) -> list[Rows]:
        """Return the units of each stratum, those of X first."""
        order = np.argsort(self.strata, kind="stable")
        return np.split(order, np.flatnonzero(np.diff(self.strata[order])) + 1)

    @property
    def exact(self) -> bool:
        """Whether units are exchangeable by the design alone; blocks are so only as far as dependence fades within them."""
        return self.kind != BLOCK

    def take(self, rows: Rows, m: int) -> Design:
        """Return the design of some rows of the pool, whole units of it.

        Parameters
        ----------
        rows : array of int
            Row numbers, those of X first.
        m : int
            How many are of X.

        Returns
        -------
        Design
            With units and strata numbered anew.
        """
        made = Design.of(self.unit[rows], self.strata[self.unit[rows]], (m, len(rows) - m))
        return replace(self, unit=made.unit, strata=made.strata, rows=made.rows)

    def to_dict(self) -> PlainDict:
        """Return the design in plain JSON types, without the arrays."""
        return plain_dict(
            {
                "kind": self.kind,
                "units": self.units,
                "rows": self.rows,
                "strata": self.n_strata,
                "block_rows": self.block_rows,
                "permutation_type": self.permutation_type,
                "given": self.given,
                "sentence": str(self),
            }
        )

    def __str__(self) -> str:
        m, n = self.units
        stratified = self.n_strata > 1 or (self.kind == ROW and "strata" in self.given)
        of = f" in {counted(self.n_strata, 'stratum', 'strata')}" if stratified else ""
        rows = f"{self.rows[0]} v {self.rows[1]} rows"
        if self.kind == ROW:
            return rows + of
        if self.kind == PAIR:
            return counted(m, "pair") + ("" if self.rows == (m, n) else f", {rows}")
        length = "" if self.block_rows is None else f" of {counted(self.block_rows, 'row')}"
        return f"{m} v {n} {self.kind}s{length}{of}, {rows}"

    def __repr__(self) -> str:
        return f"<Design: {self}>"
