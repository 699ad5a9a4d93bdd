"""From groups, strata, pairs and blocks to one design of the pool: what belongs together, and what may change sides."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cpmmd.core import validation
from cpmmd.core.arrays import Labels, Rows
from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.core.text import counted
from cpmmd.data.numbers import Chosen, category_text, is_missing
from cpmmd.data.table import Objects, Table
from cpmmd.errors import InputError, Setting, name_some, unknown_name

# Designs: which relabelings are allowed, because what they exchange is exchangeable when nothing differs.
#
# Rows stand in units that change sides whole, units stand in strata inside which labels move. Groups are units; strata are
# strata; pairs are strata of two units, one of each sample; blocks are units of consecutive rows. A design never sees a value
# that is compared.


ROW, GROUP, PAIR, BLOCK = "row", "group", "pair", "block"
BLOCKS_NOTE = "blocks are exchangeable as far as dependence fades within their length: the level is approximate"


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """What was exchangeable: rows in units, units in strata."""

    unit: Rows  #: unit of each row of the pool, those of X before those of Y
    strata: Rows  #: stratum of each unit
    rows: tuple[int, int]  #: rows of X and of Y
    kind: str = ROW  #: what a unit is: ``"row"``, ``"group"``, ``"block"``, or one half of a ``"pair"``
    block_rows: int | None = None  #: rows of a block
    #: the arguments that made it, with the columns that they named: ``{"groups": "patient"}``
    given: dict[str, str] = field(default_factory=dict)

    @classmethod
    def of(cls, unit: Rows, stratum: Rows, rows: tuple[int, int], **more: object) -> Design:
        """Return the design of rows whose unit and stratum have any numbers; a unit of one number in both samples is two."""
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
        """Return the design of some rows of the pool, whole units of it."""
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


# What a caller says about the design: groups, strata, pairs, blocks; each a column, or an array for each sample.


AUTO = "auto"
NAMED = ("groups", "strata", "pairs")
# What does not go together, and why.
AT_ODDS = {
    ("groups", "blocks"): "blocks are groups of consecutive rows",
    ("pairs", "strata"): "pairs are strata of two already",
    ("pairs", "blocks"): "pairs change places one by one",
}


@dataclass(frozen=True, eq=False)
class DesignOptions:
    """The design as it was passed."""

    # groups, strata, pairs: the name of a column of both samples, or an array for each; None where there are none
    groups: Any = None
    strata: Any = None
    pairs: Any = None
    blocks: Any = None  # rows of a block, or ``"auto"``

    def __post_init__(self) -> None:
        for (one, other), why in AT_ODDS.items():
            if one in self.given and other in self.given:
                raise InputError(
                    "{one} and {other} cannot be given together: " + why + ". Leave one of them out.",
                    one=Setting(one),
                    other=Setting(other),
                )
        if isinstance(self.blocks, str):
            if self.blocks != AUTO:
                raise validation.wrong("blocks", "must be a number of rows or 'auto'", self.blocks)
        elif self.blocks is not None:
            validation.whole("blocks", self.blocks, at_least=1)

    @property
    def given(self) -> dict[str, Any]:
        """What was passed."""
        every = {"groups": self.groups, "strata": self.strata, "pairs": self.pairs, "blocks": self.blocks}
        return {name: value for name, value in every.items() if value is not None}

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that were named."""
        return tuple(dict.fromkeys(v for name, v in self.given.items() if name in NAMED and isinstance(v, str)))

    @property
    def described(self) -> dict[str, str]:
        """The arguments with the columns they named, the number of rows of blocks, or nothing for arrays."""
        return {name: str(v) if isinstance(v, (str, int, np.integer)) else "" for name, v in self.given.items()}

    @property
    def call(self) -> dict[str, Any]:
        """The arguments as they can be typed again: an array by the name of its argument."""
        return {name: v if isinstance(v, (str, int, np.integer)) else Typed(name) for name, v in self.given.items()}

    def set_aside(self, table: Table, sample: str) -> Table:
        """Return a sample without the columns that were named, their values and arrays in ``aside``."""
        chosen = {name: value for name, value in self.given.items() if name in NAMED}
        if not chosen:
            return table
        position = {"x": 0, "y": 1}.get(sample)
        aside = {
            name: _column(table, value, sample, name) if isinstance(value, str) else _array(value, position, table, sample, name)
            for name, value in chosen.items()
        }
        for name, values in aside.items():
            _refuse_missing(values, name, sample)
        return replace(_without(table, self.columns, sample), aside=aside)


class Typed(str):
    """Text that stands for a variable in a call that is typed again."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def _column(table: Table, column: str, sample: str, parameter: str) -> npt.NDArray[Any]:
    if not table.named:
        raise InputError(
            "{parameter} names a column, {column!r}, but {sample} is an array, whose columns have no names. Pass an array for "
            "each sample instead.",
            parameter=parameter,
            sample=sample,
            column=column,
        )
    if column in table.categories:
        return table.categories[column]
    if column not in table.number_names:
        raise unknown_name("column", column, table.names, parameter=parameter)
    return table.numbers[:, table.number_names.index(column)]


def _array(value: Any, position: int | None, table: Table, sample: str, parameter: str) -> npt.NDArray[Any]:
    try:
        parts = [_as_array(part) for part in value]
    except (TypeError, ValueError):
        parts = []
    if len(parts) != 2 or position is None or any(part.ndim != 1 for part in parts):
        raise validation.wrong(
            parameter, "must be the name of a column of both samples, or a pair of arrays, one for each", type(value).__name__
        )
    if len(parts[position]) != table.rows:
        raise InputError(
            "{parameter} must have a value for each row. Got {got} for the {rows} of {sample}.",
            parameter=parameter,
            sample=sample,
            got=len(parts[position]),
            rows=counted(table.rows, "row"),
        )
    return parts[position]


def _as_array(values: Any) -> npt.NDArray[Any]:
    """Return values as an array in which missing ones can still be told: numpy makes text of NaN beside text."""
    if isinstance(values, np.ma.MaskedArray):
        return np.array(values.tolist(), dtype=object)  # None where it is masked
    if isinstance(values, (list, tuple)) and any(is_missing(v) for v in values):
        return np.array(values, dtype=object)
    return np.asarray(values)


def _refuse_missing(values: npt.NDArray[Any], parameter: str, sample: str) -> None:
    gaps = np.isnan(values) if values.dtype.kind == "f" else np.isnat(values) if values.dtype.kind in "mM" else None
    if gaps is None:
        gaps = np.array([category_text(v) is None for v in values]) if values.dtype.kind == "O" else np.zeros(len(values), bool)
    if gaps.any():
        raise InputError(
            "{parameter} must have a value in every row. It is missing in {count} of {sample}, the first of them {row} "
            "(counted from 0); fill them in, or leave those rows out.",
            parameter=parameter,
            sample=sample,
            row=int(gaps.argmax()),
            count=counted(int(gaps.sum()), "row"),
        )


def _without(table: Table, columns: tuple[str, ...], sample: str) -> Table:
    """Return a table without some columns."""
    if not columns:
        return table
    kept = [j for j, name in enumerate(table.number_names) if name not in columns]
    left = {name: values for name, values in table.categories.items() if name not in columns}
    if not kept and not left:
        raise InputError(
            "There must be a column to compare. {Sample} has none but {named}.", sample=sample, named=", ".join(columns)
        )
    every = table.columns or table.names
    return replace(
        table,
        numbers=Chosen(table.numbers, columns=np.array(kept, dtype=np.intp)),
        number_names=tuple(table.number_names[j] for j in kept),
        dates=table.dates - set(columns),
        categories=left,
        kinds={name: kind for name, kind in table.kinds.items() if name not in columns},
        columns=tuple(name for name in every if name not in columns),
        row_shape=(len(kept) + len(left),),
    )


def codes(x: npt.NDArray[Any], y: npt.NDArray[Any], parameter: str) -> tuple[Rows, Objects]:
    """Return a number for each value of both samples, and what each number stands for, as text."""
    if x.dtype.kind != y.dtype.kind and {x.dtype.kind, y.dtype.kind} & set("mM"):
        raise InputError(
            "{parameter} must be of one kind in both samples. Got {of_x} and {of_y}; convert one of them.",
            parameter=parameter,
            of_x=x.dtype,
            of_y=y.dtype,
        )
    if x.dtype.kind == "O" or y.dtype.kind == "O" or (x.dtype.kind in "US") != (y.dtype.kind in "US"):
        x, y = as_texts(x).astype(str), as_texts(y).astype(str)
    levels, numbers = np.unique(np.concatenate([x, y]), return_inverse=True)
    return np.asarray(numbers).ravel(), as_texts(levels)


def as_texts(values: npt.NDArray[Any]) -> Objects:
    """Return values as the text of categories."""
    texts = np.empty(len(values), dtype=object)
    texts[:] = [category_text(v) for v in (values.astype(str) if values.dtype.kind in "mM" else values).tolist()]
    return texts


def all_codes(a: Mapping[str, npt.NDArray[Any]], b: Mapping[str, npt.NDArray[Any]]) -> dict[str, tuple[Rows, Objects]]:
    """Return the codes of everything that was set aside in two samples."""
    return {name: codes(a[name], b[name], name) for name in a}


MOST_STRATA = 1000  # more are no strata but groups, pairs or names of rows

Coded = Mapping[str, tuple[Rows, Objects]]


def make_design(
    coded: Coded, sizes: tuple[int, int], block_rows: int | None, given: dict[str, str]
) -> tuple[Design, Rows, list[str]]:
    """Return the design, the rows of the pool that it is of, and notes on what was left out."""
    in_y = np.arange(sum(sizes)) >= sizes[0]
    kept: Labels = np.ones(len(in_y), dtype=bool)
    notes: list[str] = []
    if "pairs" in coded:
        unit = stratum = _pairs(coded, in_y)
        kind = PAIR
    else:
        stratum, unit, kind = _strata(coded, in_y), np.arange(len(in_y)), ROW
        if "groups" in coded:
            unit, kind = coded["groups"][0], GROUP
            stratum, notes = _groups_in_strata(coded, stratum, in_y)
        kept, left_out = _in_both(coded, stratum, in_y)
        notes = left_out + notes
    rows = np.flatnonzero(kept)
    m = int(np.count_nonzero(rows < sizes[0]))
    if block_rows is not None:
        unit, kind = _blocks(stratum[rows], in_y[rows], block_rows), BLOCK
    else:
        unit = unit[rows]
    design = Design.of(unit, stratum[rows], (m, len(rows) - m), kind=kind, block_rows=block_rows, given=given)
    return design, rows, notes


def _pairs(coded: Coded, in_y: Labels) -> Rows:
    """Return the pair of each row; where groups are given, too, all pairs of a group are one."""
    pair, names = coded["pairs"]
    lonely = _in_one(pair, in_y)
    if lonely.any():
        raise InputError(
            "Every pair must have rows in both samples. {count} in one only: {pairs}. Leave them out, or add their partners.",
            parameter="pairs",
            count=counted(int(lonely.sum()), "stands", "stand"),
            pairs=name_some(names[lonely]),
        )
    if "groups" not in coded:
        return pair
    group = coded["groups"][0]
    _require_inside(pair, group, names, what="pair", of="group", parameter="pairs")
    return group


def _strata(coded: Coded, in_y: Labels) -> Rows:
    """Return the stratum of each row; some stratum has rows of both samples."""
    if "strata" not in coded:
        return np.zeros(len(in_y), dtype=np.intp)
    stratum, names = coded["strata"]
    if len(names) > MOST_STRATA:
        raise InputError(
            "Strata must be few enough to have many rows each, at most {most}. Got {count}; if they name units that rows belong "
            "to, pass them as {groups}, if one row of each sample as {pairs}, or make fewer of them.",
            parameter="strata",
            most=MOST_STRATA,
            count=len(names),
            groups=Setting("groups"),
            pairs=Setting("pairs"),
        )
    if _in_one(stratum, in_y).all():
        raise InputError(
            "A stratum must have rows of both samples. None of the {count} has, such as {names}; labels cannot move.",
            parameter="strata",
            count=len(names),
            names=name_some(names[:3]),
        )
    return stratum


def _in_both(coded: Coded, stratum: Rows, in_y: Labels) -> tuple[Labels, list[str]]:
    """Return which rows have a stratum of both samples, and a note on the others; groups in both have made theirs by now."""
    kept = ~_in_one(stratum, in_y)[stratum]
    if kept.all():
        return kept, []
    alone = np.unique(stratum[~kept])
    left = int(np.count_nonzero(~kept & ~in_y)), int(np.count_nonzero(~kept & in_y))
    apart = "" if np.array_equal(stratum, coded["strata"][0]) else ", but for groups in both,"
    names = name_some(coded["strata"][1][alone])
    note = f"{counted(len(alone), 'stratum', 'strata')} of one sample only{apart} left out: {names}"
    return kept, [f"{note} ({counted(left[0], 'row')} of the first sample, {left[1]} of the second)"]


def _groups_in_strata(coded: Coded, stratum: Rows, in_y: Labels) -> tuple[Rows, list[str]]:
    """Return the strata of groups: a group that stands in both samples is a stratum of its own, where strata allow that."""
    group, names = coded["groups"]
    if "strata" in coded:
        _require_inside(group, stratum, names, what="group", of="stratum", parameter="groups")
    both = ~_in_one(group, in_y)
    if not both.any():
        return stratum, []
    if "strata" not in coded:
        raise InputError(
            "A group must stand in one sample, for it changes sides whole. {count} in both: {groups}. If the same groups "
            "were seen twice, pass {pairs} instead; if labels should move inside them, {strata}.",
            parameter="groups",
            count=counted(int(both.sum()), "stands", "stand"),
            groups=name_some(names[both]),
            pairs=Setting("pairs"),
            strata=Setting("strata"),
        )
    own = stratum.max() + 1 + group
    note = f"{counted(int(both.sum()), 'group stands', 'groups stand')} in both samples: their two parts change places"
    return np.where(both[group], own, stratum), [note]


def _blocks(stratum: Rows, in_y: Labels, length: int) -> Rows:
    """Return the block of each row: consecutive rows of one sample and stratum, cut as evenly as ``length`` allows."""
    block, last = np.empty(len(stratum), dtype=np.intp), 0
    of = stratum * 2 + in_y
    order = np.argsort(of, kind="stable")
    for rows in np.split(order, np.flatnonzero(np.diff(of[order])) + 1):
        count = max(1, len(rows) // length)
        block[rows] = last + np.arange(len(rows)) * count // len(rows)
        last += count
    return block


def _in_one(code: Rows, in_y: Labels) -> Labels:
    """Return for each number whether it stands in one sample only."""
    count = int(code.max(initial=-1)) + 1
    return np.asarray((np.bincount(code[~in_y], minlength=count) == 0) | (np.bincount(code[in_y], minlength=count) == 0))


def _require_inside(inner: Rows, outer: Rows, names: Objects, *, what: str, of: str, parameter: str) -> None:
    """Refuse an inner unit that stands in several outer ones."""
    both = np.unique(np.column_stack([inner, outer]), axis=0)[:, 0]
    torn = np.flatnonzero(np.bincount(both, minlength=len(names)) > 1)
    if len(torn):
        raise InputError(
            "A {what} must stand in one {of}. {count} in several: {names}.",
            parameter=parameter,
            what=what,
            of=of,
            count=counted(len(torn), "stands", "stand"),
            names=name_some(names[torn]),
        )
