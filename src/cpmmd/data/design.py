"""Designs: which permutations are allowed, because what they exchange is exchangeable under the null hypothesis.

:class:`DesignOptions` holds what was passed (groups, strata, pairs, blocks), :func:`make_design` has the rules, and
:class:`Design` is the value that they make. Rows are in units that are permuted as a whole, units are in strata, and labels move
only inside a stratum. Groups are units; pairs are strata of one unit of each sample; blocks are units of consecutive rows. A
design never looks at the values that are compared.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from typing import Any

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Labels, Objects, Rows
from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.core.text import pluralize
from cpmmd.data.numbers import Chosen, Values, category_text, is_missing
from cpmmd.data.table import Table
from cpmmd.errors import InputError, Note, ParameterReference, name_some, unknown_name

ROW, GROUP, PAIR, BLOCK = "row", "group", "pair", "block"
AUTO = "auto"
NAMED = ("groups", "strata", "pairs")
# What does not go together, and why.
AT_ODDS = {
    ("groups", "blocks"): "blocks are groups of consecutive rows",
    ("pairs", "strata"): "each pair is a stratum already",
    ("pairs", "blocks"): "each pair is permuted by itself",
}
BLOCKS_NOTE = "the level is approximate: blocks are exchangeable only if dependence fades within their length"
MOST_STRATA = 1000  # more of them are groups, pairs or names of rows
CUT, KEEP = "cut", "keep"  # what is done about groups whose sizes differ
GROUPS, STRATA, PAIRS = ParameterReference("groups"), ParameterReference("strata"), ParameterReference("pairs")
NO_NAMES = (
    "{parameter} names a column, {column!r}, but {sample} is an array, whose columns have no names. Pass an array for each "
    "sample instead."
)
WITHOUT_VALUE = (
    "{parameter} must have a value in every row. It is missing in {count} of {sample}, first in row {row} (counted from 0). Fill "
    "in the missing values, or leave those rows out."
)
MANY_STRATA = (
    "There must be at most {most} strata, so that each has many rows. Got {count}. If a value stands for rows that belong "
    "together, pass it as {groups}; if for one row of each sample, as {pairs}; otherwise make the strata coarser."
)
LONELY_STRATA = (
    "A stratum must have rows of {both} samples, because labels move only inside it. All {count} strata have rows of one sample "
    "only, such as {names}. Use coarser strata, or check their names."
)
LONELY_PAIR = "Each pair must have rows in {both} samples. {count} in {only} only: {of}. Leave them out, or add their partners."
TORN_GROUP = (
    "Each group must belong to one sample, because groups are permuted as a whole. {count} in {both}: {groups}. If the same "
    "groups were observed twice, pass {pairs} instead; if labels should move inside them, {strata}."
)

Coded = Mapping[str, tuple[Rows, Objects]]  # by argument: a number for each row of the pool, and what numbers stand for


class GivenArray(str):
    """Text that stands for a variable in a call that is typed again."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


@dataclass(frozen=True, eq=False)
class DesignOptions:
    """The design as it was passed."""

    # groups, strata, pairs: the name of a column of all samples, or an array for each; None where there are none
    groups: object = None
    strata: object = None
    pairs: object = None
    blocks: Any = None  # rows of a block, or ``"auto"``
    group_sizes: str = CUT  # what is done about groups whose sizes differ

    def __post_init__(self) -> None:
        for (first, second), why in AT_ODDS.items():
            if first in self.given and second in self.given:
                rule = "{first} and {second} cannot be given together: " + why + ". Leave one of them out."
                raise InputError(rule, first=ParameterReference(first), second=ParameterReference(second))
        validation.one_of("group_sizes", self.group_sizes, (CUT, KEEP))
        if isinstance(self.blocks, str):
            if self.blocks != AUTO:
                raise validation.wrong("blocks", "must be a number of rows or 'auto'", self.blocks)
        elif self.blocks is not None:
            validation.whole("blocks", self.blocks, at_least=1)

    @property
    def given(self) -> dict[str, object]:
        """What was passed."""
        options = {"groups": self.groups, "strata": self.strata, "pairs": self.pairs, "blocks": self.blocks}
        return {name: value for name, value in options.items() if value is not None}

    @property
    def columns(self) -> tuple[str, ...]:
        """Columns that were named."""
        return tuple(dict.fromkeys(v for name, v in self.given.items() if name in NAMED and isinstance(v, str)))

    @property
    def described(self) -> dict[str, str]:
        """The arguments with the columns they named, the number of rows of blocks, or nothing for arrays."""
        return {name: str(v) if isinstance(v, (str, int, np.integer)) else "" for name, v in self.given.items()}

    @property
    def call(self) -> dict[str, object]:
        """The arguments as they can be typed again; an array is the name of its argument."""
        given: dict[str, object] = {
            name: v if isinstance(v, (str, int, np.integer)) else GivenArray(name) for name, v in self.given.items()
        }
        return given if self.group_sizes == CUT else {**given, "group_sizes": self.group_sizes}

    def split_design_columns(self, table: Table, sample: str, samples: Sequence[str] = ("x", "y")) -> Table:
        """Return one of the samples without the columns that were named; ``design_values`` has their values, and the arrays."""
        design_values = {
            name: design_column(table, value, sample, name)
            if isinstance(value, str)
            else _array(value, table, sample, samples, name)
            for name, value in self.given.items()
            if name in NAMED
        }
        for name, values in design_values.items():
            _require_values(values, sample, name)
        return replace(without_columns(table, self.columns, sample), design_values=design_values) if design_values else table


def _require_values(values: Values, sample: str, parameter: str) -> None:
    # NaN and NaT differ from themselves; other marks of missing values are checked one at a time.
    empty = np.array([is_missing(v) for v in values], dtype=bool) if values.dtype.kind == "O" else values != values
    if empty.any():
        count = pluralize(int(empty.sum()), "row")
        raise InputError(WITHOUT_VALUE, parameter=parameter, sample=sample, row=int(empty.argmax()), count=count)


def split_table(table: Table, column: str, sample: str, parameter: str) -> dict[str, Table]:
    """Return the rows of a table for each value of a column, which is left out, in the order of the values."""
    values = design_column(table, column, sample, parameter)
    _require_values(values, sample, parameter)
    rest = without_columns(table, (column,), sample)
    return {str(name): rest.take(values == value) for value in np.unique(values) for name in as_texts(np.array([value]))}


def design_column(table: Table, column: str, sample: str, parameter: str) -> Values:
    if not table.named:
        raise InputError(NO_NAMES, parameter=parameter, sample=sample, column=column)
    if column in table.categories:
        return table.categories[column]
    if column not in table.number_names:
        raise unknown_name("column", column, table.names, parameter=parameter)
    return table.numbers[:, table.number_names.index(column)]


def _array(value: object, table: Table, sample: str, samples: Sequence[str], parameter: str) -> Values:
    """Return the array of one sample among those of all."""
    try:
        parts = [design_values_of(part) for part in value] if isinstance(value, Iterable) else []
    except (TypeError, ValueError):
        parts = []
    if len(parts) != len(samples) or sample not in samples or any(part.ndim != 1 for part in parts):
        rule = "both samples, or a pair of" if len(samples) == 2 else f"all samples, or {len(samples)}"
        raise validation.wrong(parameter, f"must be the name of a column of {rule} arrays, one for each", type(value).__name__)
    own = parts[samples.index(sample)]
    if len(own) != table.rows:
        rule = "{parameter} must have a value for each row. Got {got} for the {rows} of {sample}."
        raise InputError(rule, parameter=parameter, sample=sample, got=len(own), rows=pluralize(table.rows, "row"))
    return own


def design_values_of(values: object) -> Values:
    """Return values as an array that keeps missing values: numpy makes text of NaN beside text."""
    if isinstance(values, np.ma.MaskedArray):
        return np.array(values.tolist(), dtype=object)  # None where it is masked
    if isinstance(values, (list, tuple)) and any(is_missing(v) for v in values):
        return np.array(values, dtype=object)
    return np.asarray(values)


def without_columns(table: Table, columns: tuple[str, ...], sample: str) -> Table:
    """Return a table without some columns."""
    if not columns:
        return table
    named = [name_some([column]) for column in columns]
    kept = [j for j, name in enumerate(table.number_names) if name not in columns]
    left = {name: values for name, values in table.categories.items() if name not in columns}
    if not kept and not left:
        rule = "There must be a column to compare. {Sample} has no column but {named}."
        raise InputError(rule, sample=sample, named=", ".join(columns))
    return replace(
        table,
        numbers=Chosen(table.numbers, columns=np.array(kept, dtype=np.intp)),
        number_names=tuple(table.number_names[j] for j in kept),
        dates=table.dates - set(columns),
        categories=left,
        kinds={name: kind for name, kind in table.kinds.items() if name not in columns},
        columns=tuple(name for name in table.columns or table.names if name not in columns),
        row_shape=(len(kept) + len(left),),
        notes=tuple(note for note in table.notes if not isinstance(note, Note) or note.fields.get("column") not in named),
    )


def as_texts(values: Values) -> Objects:
    """Return values as the text of categories."""
    texts = np.empty(len(values), dtype=object)
    texts[:] = [category_text(v) for v in (values.astype(str) if values.dtype.kind in "mM" else values).tolist()]
    return texts


def codes(parts: Sequence[Values], parameter: str) -> tuple[Rows, Objects]:
    """Return a number for each value of all samples, and what each number stands for, as text."""
    kinds = {part.dtype.kind for part in parts}
    if len(kinds) > 1 and kinds & set("mM"):
        types = " and ".join(str(part.dtype) for part in parts)
        rule = "{parameter} must have the same type in {both} samples. Got {types}; convert one of them."
        raise InputError(rule, parameter=parameter, both=both(len(parts)), types=types)
    if "O" in kinds or (kinds & set("US") and kinds - set("US")):
        parts = [as_texts(part).astype(str) for part in parts]
    levels, numbers = np.unique(np.concatenate(parts), return_inverse=True)
    return np.asarray(numbers).ravel(), as_texts(levels)


def all_codes(*all_design_values: Mapping[str, Values]) -> Coded:
    """Return the codes of all design values of the samples."""
    return {name: codes([design_values[name] for design_values in all_design_values], name) for name in all_design_values[0]}


def make_design(
    coded: Coded, sizes: tuple[int, ...], block_rows: int | None, given: dict[str, str]
) -> tuple[Design, Rows, list[str]]:
    """Return the design, the rows of the pool that it is of, and notes on what was left out."""
    sample = np.repeat(np.arange(len(sizes)), sizes)
    kept: Labels = np.ones(len(sample), dtype=bool)
    notes: list[str] = []
    if "pairs" in coded:
        unit = stratum = _pairs(coded, sample)
        kind = PAIR
    else:
        stratum, unit, kind = _strata(coded, sample), np.arange(len(sample)), ROW
        if "groups" in coded:
            unit, kind = coded["groups"][0], GROUP
            stratum, notes = _groups_in_strata(coded, stratum, sample)
        kept, left_out = _in_several(coded, stratum, sample)
        notes = left_out + notes
    rows = np.flatnonzero(kept)
    unit, stratum, sample = unit[rows], stratum[rows], sample[rows]
    if block_rows is not None:
        unit, kind = _blocks(stratum, sample, len(sizes), block_rows), BLOCK
    left = tuple(np.bincount(sample, minlength=len(sizes)).tolist())
    return Design.of(unit, stratum, left, kind=kind, block_rows=block_rows, given=given), rows, notes


def _pairs(coded: Coded, sample: Rows) -> Rows:
    """Return the pair of each row; where groups are given, too, all pairs of a group are one."""
    pair, names = coded["pairs"]
    found = _is_in(pair, sample)
    lonely = ~found.all(axis=1)
    if lonely.any():
        count, named = pluralize(int(lonely.sum()), "is", "are"), name_some(names[lonely])
        all_of, only = ("both", "one") if found.shape[1] == 2 else ("all", "some")
        raise InputError(LONELY_PAIR, parameter="pairs", both=all_of, only=only, count=count, of=named)
    if "groups" not in coded:
        return pair
    _require_inside(pair, coded["groups"][0], names, "pair", "group")
    return coded["groups"][0]


def _strata(coded: Coded, sample: Rows) -> Rows:
    """Return the stratum of each row; some stratum has rows of several samples."""
    if "strata" not in coded:
        return np.zeros(len(sample), dtype=np.intp)
    stratum, names = coded["strata"]
    if len(names) > MOST_STRATA:
        raise InputError(MANY_STRATA, parameter="strata", most=MOST_STRATA, count=len(names), groups=GROUPS, pairs=PAIRS)
    found = _is_in(stratum, sample)
    if (found.sum(axis=1) < 2).all():
        several = both(found.shape[1], "several")
        raise InputError(LONELY_STRATA, parameter="strata", both=several, count=len(names), names=name_some(names[:3]))
    return stratum


def _in_several(coded: Coded, stratum: Rows, sample: Rows) -> tuple[Labels, list[str]]:
    """Return which rows have a stratum of several samples, and a note on the others."""
    found = _is_in(stratum, sample)
    kept = (found.sum(axis=1) > 1)[stratum]
    if kept.all():
        return kept, []
    alone = np.unique(stratum[~kept])
    left = np.bincount(sample[~kept], minlength=found.shape[1]).tolist()
    apart = "" if np.array_equal(stratum, coded["strata"][0]) else f" (except for groups in {both(len(left), 'several')})"
    names = name_some(coded["strata"][1][alone])
    lost = f"{pluralize(left[0], 'row')} of the first sample, {left[1]} of the second"
    lost = lost if len(left) == 2 else f"rows of each sample: {', '.join(map(str, left))}"
    return kept, [f"{pluralize(len(alone), 'stratum', 'strata')} with rows of one sample only{apart} left out: {names} ({lost})"]


def _groups_in_strata(coded: Coded, stratum: Rows, sample: Rows) -> tuple[Rows, list[str]]:
    """Return the strata of groups; with strata, a group that is in several samples is a stratum of its own."""
    group, names = coded["groups"]
    if "strata" in coded:
        _require_inside(group, stratum, names, "group", "stratum")
    found = _is_in(group, sample)
    several, where = found.sum(axis=1) > 1, both(found.shape[1], "several")
    if not several.any():
        return stratum, []
    if "strata" not in coded:
        count, named = pluralize(int(several.sum()), "is", "are"), name_some(names[several])
        raise InputError(TORN_GROUP, parameter="groups", both=where, count=count, groups=named, pairs=PAIRS, strata=STRATA)
    own = stratum.max() + 1 + group
    parts = "two parts" if found.shape[1] == 2 else "parts"
    note = f"{pluralize(int(several.sum()), 'group is', 'groups are')} in {where} samples: labels move between their {parts}"
    return np.where(several[group], own, stratum), [note]


def _blocks(stratum: Rows, sample: Rows, samples: int, length: int) -> Rows:
    """Return the block of each row: consecutive rows of one sample and stratum, cut as evenly as ``length`` allows."""
    block, last = np.empty(len(stratum), dtype=np.intp), 0
    for rows in rows_by_number(stratum * samples + sample):
        count = max(1, len(rows) // length)
        block[rows] = last + np.arange(len(rows)) * count // len(rows)
        last += count
    return block


def rows_by_number(numbers: Rows) -> list[Rows]:
    """Return the positions of each number, in their order."""
    order = np.argsort(numbers, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(numbers[order])) + 1)


def _is_in(code: Rows, sample: Rows) -> Labels:
    """Return for each number (rows) whether it is in each sample (columns)."""
    found = np.zeros((int(code.max(initial=-1)) + 1, int(sample.max(initial=1)) + 1), dtype=bool)
    found[code, sample] = True
    return found


def both(samples: int, otherwise: str = "all") -> str:
    """Return "both" for two samples, and another word for several."""
    return "both" if samples == 2 else otherwise


def _require_inside(inner: Rows, outer: Rows, names: Objects, what: str, of: str) -> None:
    """Refuse an inner unit that is in several outer ones."""
    inside = np.unique(np.column_stack([inner, outer]), axis=0)[:, 0]
    torn = np.flatnonzero(np.bincount(inside, minlength=len(names)) > 1)
    if len(torn):
        count, named = pluralize(len(torn), "is", "are"), name_some(names[torn])
        rule = "Each {what} must belong to one {of}. {count} in more than one {of}: {names}. Rename it in all but one."
        raise InputError(rule, parameter=f"{what}s", what=what, of=of, count=count, names=named)


@dataclass(frozen=True)
class CutGroups:
    """How groups of different sizes were cut to one size in each stratum."""

    rows_of_a_group: tuple[int, int]  #: left of the most and the least cut one
    rows: tuple[int, ...]  #: of each sample, before
    units: tuple[int, ...]  #: groups of each sample, before
    sizes_pvalue: float  #: of the exact permutation test whether the sizes themselves differ between the samples

    @property
    def size(self) -> str:
        """Rows that a group has now, in words."""
        low, high = self.rows_of_a_group
        return pluralize(low, "row") if low == high else f"{low} to {high} rows"


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """What is exchangeable under the null hypothesis: rows in units, units in strata."""

    unit: Rows  #: unit of each row of the pool, those of the first sample before those of the next
    strata: Rows  #: stratum of each unit
    rows: tuple[int, ...]  #: rows of each sample
    kind: str = ROW  #: what a unit is: ``"row"``, ``"group"``, ``"block"``, or one half of a ``"pair"``
    block_rows: int | None = None  #: rows of a block
    #: the arguments that made it, with the columns that they named: ``{"groups": "patient"}``
    given: dict[str, str] = field(default_factory=dict)
    cut: CutGroups | None = None  #: how groups of different sizes were cut to one; None where nothing was cut

    @classmethod
    def of(cls, unit: Rows, stratum: Rows, rows: tuple[int, ...], **more: Any) -> Design:
        """Return the design of rows whose unit and stratum have any numbers; a unit of one number in two samples is two."""
        sample = np.repeat(np.arange(len(rows)), rows)
        _, first, numbers = np.unique(unit + (unit.max(initial=0) + 1) * sample, return_index=True, return_inverse=True)
        strata = np.unique(stratum[first], return_inverse=True)[1]
        return cls(numbers.ravel(), strata.ravel(), rows, **more)

    @property
    def size(self) -> int:
        """Number of units."""
        return len(self.strata)

    @property
    def first(self) -> int:
        """Units of the first sample, which come first."""
        return self.units[0]

    @property
    def units(self) -> tuple[int, ...]:
        """Units of each sample; pairs are counted in every one."""
        ends = [0, *(int(self.unit[:stop].max(initial=-1)) + 1 for stop in np.cumsum(self.rows))]
        return tuple(np.diff(ends).tolist())

    @property
    def n_strata(self) -> int:
        """Number of strata; 1 for pairs."""
        return 1 if self.kind == PAIR else int(self.strata.max(initial=0)) + 1

    @property
    def permutation_type(self) -> str:
        """What ``scipy.stats.permutation_test`` calls it: ``"independent"``, or ``"samples"`` for pairs."""
        return "samples" if self.kind == PAIR else "independent"

    def by_stratum(self) -> list[Rows]:
        """Return the units of each stratum, those of the first sample first."""
        return rows_by_number(self.strata)

    @property
    def exact(self) -> bool:
        """Whether units are exchangeable by the design alone; blocks are so only as far as dependence fades within them."""
        return self.kind != BLOCK

    def take(self, rows: Rows, *sizes: int) -> Design:
        """Return the design of some rows of the pool, whole units of it: so many of each sample, the others of the last."""
        made = Design.of(self.unit[rows], self.strata[self.unit[rows]], (*sizes, len(rows) - sum(sizes)))
        return replace(self, unit=made.unit, strata=made.strata, rows=made.rows)

    def to_dict(self) -> PlainDict:
        """Return the design in plain JSON types, without the arrays."""
        names = ("kind", "units", "rows", "strata", "block_rows", "permutation_type", "given")
        cut = {} if self.cut is None else {"cut": asdict(self.cut)}
        return plain_dict({name: getattr(self, name) for name in names} | {"strata": self.n_strata, "sentence": str(self)} | cut)

    def __str__(self) -> str:
        units, rows = (" v ".join(map(str, counts)) for counts in (self.units, self.rows))
        stratified = self.n_strata > 1 or (self.kind == ROW and "strata" in self.given)
        of = f" in {pluralize(self.n_strata, 'stratum', 'strata')}" if stratified else ""
        if self.kind == ROW:
            return f"{rows} rows{of}"
        if self.kind == PAIR:
            return pluralize(self.first, "pair") + ("" if units == rows else f", {rows} rows")
        length = "" if self.block_rows is None else f" of {pluralize(self.block_rows, 'row')}"
        length = length if self.cut is None else f" cut to {self.cut.size}"
        return f"{units} {self.kind}s{length}{of}, {rows} rows"

    def __repr__(self) -> str:
        return f"<Design: {self}>"
