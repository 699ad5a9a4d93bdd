"""Two tables whose rows belong together: read, matched row by row, missing values dealt with, and which rows may be re-paired.

Under the null hypothesis of independence any row of the second table could have come with any row of the first. A design says
less: units of rows (groups, blocks) keep their rows together, and partners change inside a stratum only.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Objects, Rows
from cpmmd.core.text import pluralize
from cpmmd.data.design import (
    AUTO,
    BLOCK,
    BLOCKS_NOTE,
    CUT,
    GROUP,
    GROUPS,
    MANY_STRATA,
    MOST_STRATA,
    PAIRS,
    ROW,
    WITHOUT_VALUE,
    DesignOptions,
    codes,
    design_column,
    design_values_of,
    rows_by_number,
    without_columns,
)
from cpmmd.data.missing import check_present, find_missing
from cpmmd.data.notices import block_length
from cpmmd.data.numbers import Values, is_missing
from cpmmd.data.pool import Pool, pool_of_one
from cpmmd.data.preparation import pooled_levels
from cpmmd.data.table import Table, read_table
from cpmmd.errors import InputError, Note, ParameterReference, TooFewUnitsError, name_some, unknown_name

SIDES = ("x", "y")
OTHER_ROWS = (
    "Both tables must have one row for each observation, in the same order. Got {m} rows in {x} and {n} in {y}. Leave out rows "
    "without a partner, or join the tables by their key first."
)
CONSTANT = "Each table must have a column that varies. Every column of {sample} is constant; choose other columns."
ALONE = "Each unit must have another one to exchange partners with. Every {kind} is alone{where}. Use {instead}."
MANY = 10**100  # re-pairings, more than enough for any level


@dataclass(frozen=True, eq=False)
class PairedTables:
    """Two tables of equally many rows, and what is exchangeable."""

    x: Pool
    y: Pool
    # rows that may exchange partners: an array for each stratum and size, a unit a line; every row is in one of them
    parts: tuple[Rows, ...]
    strata: Rows | None = None  # stratum of each row; None where there is one
    kind: str = ROW  # what a unit is: ``"row"``, ``"group"`` or ``"block"``
    exact: bool = True  # whether units are exchangeable by the design alone
    notes: tuple[str, ...] = ()

    @property
    def rows(self) -> int:
        """Rows that are tested."""
        return sum(self.x.sizes)

    @property
    def units(self) -> int:
        """Units that exchange partners."""
        return sum(map(len, self.parts))

    def __str__(self) -> str:
        """What is exchanged, in words."""
        text = pluralize(self.rows, "row") if self.kind == ROW else f"{pluralize(self.units, self.kind)}, {self.rows} rows"
        count = 1 if self.strata is None else int(self.strata.max()) + 1
        return text if count == 1 else f"{text}, in {pluralize(count, 'stratum', 'strata')}"


def read_paired(
    x: object, y: object, *, missing: str, design: DesignOptions, alpha: float, rng: np.random.Generator
) -> PairedTables:
    """Read two tables row by row, and make the design; ``alpha`` is what the re-pairings must be able to reach."""
    validation.missing(missing)
    read = {name: read_table(data, name) for name, data in zip(SIDES, (x, y), strict=True)}
    first, second = read.values()
    if first.rows != second.rows:
        raise InputError(OTHER_ROWS, m=first.rows, n=second.rows, x="x", y="y")
    if first.rows < 2:
        raise InputError("Both tables must have at least 2 rows. Got {rows}.", rows=pluralize(first.rows, "row"))
    values = _design_values(read, design)
    notes = [note for table in read.values() for note in table.notes]
    tables = [without_columns(table, design.columns, name) for name, table in read.items()]
    absent = {name: find_missing(table, name) for name, table in zip(SIDES, tables, strict=True)}
    if missing == "error":
        check_present(absent)
    kept = np.arange(first.rows)
    if missing == "drop":
        kept = np.flatnonzero(~(absent["x"].rows | absent["y"].rows))
        if len(kept) < first.rows:
            dropped = "{dropped} of {rows} rows dropped for missing values"
            notes.append(Note(dropped, dropped=first.rows - len(kept), rows=first.rows))
        if len(kept) < 2:
            rule = "Both tables must have at least 2 rows without missing values. {rows} left; try {impute}."
            left = pluralize(len(kept), "row is", "rows are")
            raise InputError(rule, rows=left, impute=ParameterReference("missing", "impute"))
    tables, values = [table.take(kept) for table in tables], {name: some[kept] for name, some in values.items()}
    parts, strata, kind, about = _exchangeable(tables, values, design, rng)
    rows = np.concatenate([part.ravel() for part in parts])
    starts = np.cumsum([0, *(part.size for part in parts)])
    parts = tuple(np.arange(start, start + part.size).reshape(part.shape) for start, part in zip(starts[:-1], parts, strict=True))
    pools = [pool_of_one(table.take(rows)) for table in tables]
    notes += about + [note for pool in pools for note in pooled_levels(pool)]
    for name, pool in zip(SIDES, pools, strict=True):
        still = constant_columns(pool)
        if len(still) == len(pool.columns):
            raise InputError(CONSTANT, sample=name)
        if still:
            verb = "is" if len(still) == 1 else "are"
            notes.append(f"{name_some(still)} of {name} {verb} constant, and depends on nothing")
    found = PairedTables(pools[0], pools[1], parts, None if strata is None else strata[rows], kind, kind != BLOCK, tuple(notes))
    _require_pairings(found, alpha)
    return found


def constant_columns(pool: Pool) -> tuple[str, ...]:
    """Return the columns that have one value only."""
    low, high = np.full((2, len(pool.number_names)), np.nan)
    missing = np.zeros(len(low), dtype=bool)
    for block in pool.numbers.blocks():
        low, high = np.fmin(low, np.fmin.reduce(block, axis=0)), np.fmax(high, np.fmax.reduce(block, axis=0))
        missing |= np.isnan(block).any(axis=0)
    still = ((low == high) & ~missing) | np.isnan(low)
    text = [column for column, values in pool.categories.items() if len(set(values.tolist())) == 1]
    return (*(name for name, is_still in zip(pool.number_names, still, strict=True) if is_still), *text)


def _design_values(tables: Mapping[str, Table], design: DesignOptions) -> dict[str, Values]:
    """Return what says which rows belong together, one value a row, from a column of either table or an array."""
    found: dict[str, Values] = {}
    for name, given in design.given.items():
        if name == "blocks":
            continue
        if isinstance(given, str):
            having = [(side, table) for side, table in tables.items() if table.named and given in table.names]
            if not having:
                known = [column for table in tables.values() if table.named for column in table.names]
                raise unknown_name("column", given, known, parameter=name)
            side, table = having[0]
            values = design_column(table, given, side, name)
        else:
            values = design_values_of(given)
            rows = tables["x"].rows
            if values.ndim != 1 or len(values) != rows:
                got = "x".join(map(str, values.shape)) or type(given).__name__
                rule = f"must be the name of a column, or an array with a value for each of the {rows} rows"
                raise validation.wrong(name, rule, f"{got} values" if values.ndim else got)
        empty = np.array([is_missing(v) for v in values], dtype=bool) if values.dtype.kind == "O" else values != values
        if empty.any():
            count = pluralize(int(empty.sum()), "row")
            raise InputError(WITHOUT_VALUE, parameter=name, sample="x", row=int(empty.argmax()), count=count)
        found[name] = values
    return found


def _exchangeable(
    tables: list[Table], values: Mapping[str, Values], design: DesignOptions, rng: np.random.Generator
) -> tuple[tuple[Rows, ...], Rows | None, str, list[str]]:
    """Return the rows that may exchange partners, the stratum of each row, what a unit is, and notes."""
    total, strata, notes = tables[0].rows, None, list[str]()
    names: Objects = np.array([""], dtype=object)
    if "strata" in values:
        strata, names = codes([values["strata"]], "strata")
        if len(names) > MOST_STRATA:
            count = len(names)
            raise InputError(MANY_STRATA, parameter="strata", most=MOST_STRATA, count=count, groups=GROUPS, pairs=PAIRS)
    by_stratum = rows_by_number(np.zeros(total, dtype=np.intp) if strata is None else strata)
    kind, parts = ROW, [rows[:, None] for rows in by_stratum]
    if "groups" in values:
        kind = GROUP
        parts, notes = _group_parts(values["groups"], by_stratum, design.group_sizes, rng)
    elif design.blocks is not None:
        kind = BLOCK
        length, notes = _block_rows(tables, design)
        parts = [rows[: len(rows) // length * length].reshape(-1, length) for rows in by_stratum]
        left = total - sum(part.size for part in parts)
        if left:
            notes.append(f"{pluralize(left, 'row')} at the end left out: they do not fill a block of {length}")
    alone = [part for part in parts if len(part) < 2]
    if len(alone) == len(parts) and (strata is not None or kind != ROW):
        instead = {ROW: "coarser strata", GROUP: "coarser strata, or more groups", BLOCK: "shorter blocks, or more rows"}[kind]
        if kind == GROUP and design.group_sizes != CUT:
            instead = "coarser strata, or cut groups to one size with group_sizes='cut'"
        where = "" if strata is None else " in its stratum"
        raise TooFewUnitsError(ALONE, kind=kind, where=where, instead=instead)
    if alone:
        lost = sum(part.size for part in alone)
        called = sorted({str(names[strata[part.flat[0]]]) for part in alone if part.size}) if strata is not None else []
        of = f" ({name_some(called)})" if called else ""
        what = pluralize(len(alone), "stratum", "strata") if kind == ROW else f"{pluralize(len(alone), kind)} alone"
        notes.append(f"{what}{of} with nothing to exchange partners with left out: {pluralize(lost, 'row')}")
    return tuple(part for part in parts if len(part) > 1), strata, kind, notes


def _group_parts(groups: Values, by_stratum: list[Rows], sizes: str, rng: np.random.Generator) -> tuple[list[Rows], list[str]]:
    """Return the groups of each stratum, cut to one size at random, or apart by size where all their rows are kept."""
    number, names = codes([groups], "groups")
    stratum = np.empty(len(number), dtype=np.intp)
    for s, rows in enumerate(by_stratum):
        stratum[rows] = s
    inside = np.unique(np.column_stack([number, stratum]), axis=0)[:, 0]
    torn = np.flatnonzero(np.bincount(inside, minlength=len(names)) > 1)
    if len(torn):
        rule = "Each group must belong to one stratum. {count} in more than one: {names}. Rename it in all but one."
        raise InputError(rule, parameter="groups", count=pluralize(len(torn), "is", "are"), names=name_some(names[torn]))
    parts, notes, before = list[Rows](), list[str](), len(number)
    for rows in by_stratum:
        units = [rows[some] for some in rows_by_number(number[rows])]
        counts = sorted({len(unit) for unit in units})
        if sizes == CUT:
            cut = [np.sort(rng.permutation(unit)[: counts[0]]) if len(unit) > counts[0] else unit for unit in units]
            parts.append(np.array(cut))
        else:
            parts += [np.array([unit for unit in units if len(unit) == size]) for size in counts]
    left = before - sum(part.size for part in parts)
    if left:
        notes.append(f"groups of different sizes were cut to the smallest in their stratum: {pluralize(left, 'row')} left out")
    return parts, notes


def _block_rows(tables: list[Table], design: DesignOptions) -> tuple[int, list[str]]:
    """Return the rows of a block, and what that rests on."""
    if design.blocks != AUTO:
        return int(design.blocks), [BLOCKS_NOTE]
    found = max((block_length(pool_of_one(table)) for table in tables), key=lambda length: length.rows)
    length = f"{found.rows} rows for {found.trait}" if found.trait else "one row, because no dependence was seen"
    return found.rows, [f"{BLOCKS_NOTE}; their length is {length}"]


def _require_pairings(tables: PairedTables, alpha: float) -> None:
    """Refuse units too few for a p-value of alpha."""
    total = 1
    for part in tables.parts:
        total = min(MANY, total * math.factorial(min(len(part), 100)))
    if 1 / total > alpha + 1e-12:
        needed = next(n for n in range(2, 100) if 1 / math.factorial(n) <= alpha + 1e-12)
        raise TooFewUnitsError(
            "The test can never reject: {what} {have} {total} re-pairings, so that every p-value is at least {least}, above "
            "{level}. At least {needed} {kind}s are needed{where}.",
            what=pluralize(tables.units, tables.kind),
            have="has" if tables.units == 1 else "have",
            total=total,
            least=f"{1 / total:.3g}",
            level=ParameterReference("alpha", alpha),
            needed=needed,
            kind=tables.kind,
            where=" if they are in one stratum, more if in several" if len(tables.parts) > 1 else "",
        )


def only_pool(pool: Pool) -> Pool:
    """Return a pool of one table whose categories are those that it has: no other rows will be encoded."""
    return replace(pool, open_ended=False)
