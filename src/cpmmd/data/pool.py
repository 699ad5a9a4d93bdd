"""Two samples with the same columns, checked, and pooled."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Rows
from cpmmd.core.text import counted
from cpmmd.data.design import AUTO, BLOCKS_NOTE, Coded, Design, DesignOptions, all_codes, codes, make_design
from cpmmd.data.gaps import IMPUTE, check_present, drop_missing, find_gaps
from cpmmd.data.notices import block_length, notices, telling_columns
from cpmmd.data.numbers import Chosen, Numbers, Stacked
from cpmmd.data.table import Objects, Table, read_table
from cpmmd.errors import InputError, Said, SampleName, Setting, Words, name_some

# Columns of two samples, matched by name where both have them.


def only_in(columns: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the columns that others do not have, in their order."""
    known = set(others)
    return [column for column in columns if column not in known]


def match_columns(a: Table, b: Table) -> Table:
    """Return ``b`` with the columns in the order of ``a``; names decide where both samples have them."""
    if len(a.names) != len(b.names):
        raise InputError(
            "Both samples must have the same columns. Got {m} in {x} and {n} in {y}{difference}; drop or add columns so that "
            "they match.",
            m=len(a.names),
            n=len(b.names),
            difference=Said(_name_difference, a, b),
            x=SampleName("x"),
            y=SampleName("y"),
        )
    if not (a.named and b.named):
        return _match_positions(a, b)
    if set(a.names) != set(b.names):
        raise InputError(
            "Both samples must have the same column names{difference}; rename or drop columns.",
            difference=Said(_name_difference, a, b),
        )
    _check_kinds(a, b)
    order = [b.number_names.index(name) for name in a.number_names]
    return replace(b, numbers=Chosen(b.numbers, columns=np.array(order, dtype=int)), number_names=a.number_names)


def _match_positions(a: Table, b: Table) -> Table:
    if a.categories or b.categories:
        raise InputError("Text columns are matched by name: pass both samples as data frames. Got one array and one frame.")
    if a.row_shape != b.row_shape:
        raise InputError(
            "Both samples must have rows of one shape. Got {of_x} in {x} and {of_y} in {y}.",
            of_x=a.row_shape,
            of_y=b.row_shape,
            x=SampleName("x"),
            y=SampleName("y"),
        )
    return replace(b, number_names=a.number_names, dates=a.dates)


def _check_kinds(a: Table, b: Table) -> None:
    clash = sorted(set(a.number_names) & set(b.categories) | set(b.number_names) & set(a.categories) | (a.dates ^ b.dates))
    if clash:
        raise InputError(
            f"A column must be of one kind in both samples. {name_some(clash)} are numbers, dates or text in one and "
            "something else in the other; convert them."
        )


def _name_difference(words: Words, a: Table, b: Table) -> str:
    """Say which columns only one of two named tables has, in brackets."""
    if not (a.named and b.named):
        return ""
    only = {"x": sorted(only_in(a.names, b.names)), "y": sorted(only_in(b.names, a.names))}
    parts = [f"only in {words.sample(name)}: {name_some(columns)}" for name, columns in only.items() if columns]
    return f" ({'; '.join(parts)})" if parts else ""


@dataclass(frozen=True, eq=False)
class Pool:
    """The pool of both samples before any encoding is fitted: rows of X first.

    ``kinds`` names the integer and boolean columns; ``kept`` are the rows' numbers in their own sample as it came, None when
    no row was left out. ``open_ended`` says that other rows will be encoded later: categories then keep a level for what they
    may bring. ``design`` says which relabelings are allowed; None allows all.
    """

    numbers: Numbers
    number_names: tuple[str, ...]
    dates: frozenset[str]
    categories: Mapping[str, Objects]
    m: int
    n: int
    row_shape: tuple[int, ...]
    notes: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)
    kept: Rows | None = None
    open_ended: bool = False
    design: Design | None = None

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names as the data had them."""
        return (*self.number_names, *self.categories)


def read_pool(x: Any, y: Any, *, missing: str = "error", design: DesignOptions | None = None) -> Pool:
    """Read both samples, match their columns, deal with missing values, and make the design."""
    validation.missing(missing)
    asked = DesignOptions() if design is None else design
    a, b = asked.set_aside(read_table(x, "x"), "x"), asked.set_aside(read_table(y, "y"), "y")
    (a, b), notes = check_tables({"x": a, "y": match_columns(a, b)}, missing=missing)
    whole, left = _in_whole_pairs(b, a)
    b = b.take(whole) if left else b
    pool = lay_out(pool_tables(a, b, (*notes, *left)), a, b, asked)
    return pool if asked.given else replace(pool, notes=(*pool.notes, *notices(pool)))


def lay_out(pool: Pool, a: Table, b: Table, asked: DesignOptions) -> Pool:
    """Return the pool of two tables with the design that was asked for; rows of strata without a partner are left out.

    So are rows of ``a`` whose partners in ``b`` were dropped for missing values. A reference that is kept in a file does not know
    what it lost, so that it is up to the caller to leave out rows of ``b`` in turn.
    """
    if not asked.given:
        return pool
    whole, left = _in_whole_pairs(a, b)
    if left:
        pool, a = take_rows(pool, np.concatenate([whole, np.arange(pool.m, pool.m + pool.n)])), a.take(whole)
        pool = replace(pool, notes=(*pool.notes, *left))
    coded = all_codes(a.aside, b.aside)
    block_rows, said = _block_rows(pool, asked, coded)
    design, rows, notes = make_design(coded, (pool.m, pool.n), block_rows, asked.described)
    notes += said
    if len(rows) < pool.m + pool.n:
        pool = take_rows(pool, rows)
    return replace(pool, design=design, notes=(*pool.notes, *notes))


def _in_whole_pairs(table: Table, other: Table) -> tuple[Rows, list[str]]:
    """Return the rows whose partners were not all dropped from the other table for missing values, and a note on the rest."""
    if "pairs" not in other.lost:
        return np.arange(table.rows), []
    beside = np.concatenate([other.aside["pairs"], other.lost["pairs"]])
    pair = codes(table.aside["pairs"], beside, "pairs")[0]
    own, there, gone = np.split(pair, [table.rows, table.rows + other.rows])
    torn = np.isin(own, np.setdiff1d(gone, there))
    if not torn.any():
        return np.arange(table.rows), []
    if torn.all():
        raise InputError(
            "Pairs must have rows without missing values in both samples. None has; try {impute}.",
            parameter="pairs",
            impute=IMPUTE,
        )
    left = counted(len(np.unique(own[torn])), "pair left out whole: its other row", "pairs left out whole: their other rows")
    return np.flatnonzero(~torn), [f"{left} had missing values"]


def _block_rows(pool: Pool, asked: DesignOptions, coded: Coded) -> tuple[int | None, list[str]]:
    """Return the rows of a block, and notes on what that rests on."""
    if asked.blocks is None:
        return None, []
    if asked.blocks != AUTO:
        return int(asked.blocks), [BLOCKS_NOTE]
    telling = telling_columns(pool)
    found = block_length(pool, leave=tuple(telling), strata=coded["strata"][0] if "strata" in coded else None)
    if found.rows > min(pool.m, pool.n):
        raise InputError(
            "Rows of both samples must be enough for blocks that are as long as rows depend on each other. They do so over about "
            "{length} rows ({trait}), and the smaller sample has {rows}. Take several times {length} rows of each sample, name "
            "separate runs with {groups}, or the part of the day or week that a row is of with {strata}.",
            parameter="blocks",
            length=found.rows,
            trait=found.trait,
            rows=min(pool.m, pool.n),
            groups=Setting("groups"),
            strata=Setting("strata"),
        )
    length = f"{found.rows} rows for {found.trait}" if found.trait else "one row, for no dependence was seen"
    return found.rows, [f"{BLOCKS_NOTE}; their length is {length}", *telling.values()]


def take_rows(pool: Pool, rows: Rows) -> Pool:
    """Return some rows of a pool, ascending."""
    m = int(np.count_nonzero(rows < pool.m))
    kept = np.concatenate([np.arange(pool.m), np.arange(pool.n)]) if pool.kept is None else pool.kept
    return replace(
        pool,
        numbers=Chosen(pool.numbers, rows=rows),
        categories={column: values[rows] for column, values in pool.categories.items()},
        m=m,
        n=len(rows) - m,
        kept=kept[rows],
    )


def check_tables(tables: Mapping[str, Table], *, missing: str) -> tuple[list[Table], tuple[str, ...]]:
    """Return tables with enough rows, finite values and missing ones dealt with, and notes; keys are what messages call them."""
    for name, table in tables.items():
        _check_rows(table, name)
    gaps = {name: find_gaps(table, name) for name, table in tables.items()}
    notes: list[str] = []
    if missing == "error":
        check_present(gaps)
    elif missing == "drop":
        return [drop_missing(table, name, gaps[name], notes) for name, table in tables.items()], tuple(notes)
    return list(tables.values()), ()


def pool_tables(a: Table, b: Table, notes: tuple[str, ...] = (), *, open_ended: bool = False) -> Pool:
    """Return the pool of two tables with the same columns in the same order."""
    return Pool(
        numbers=Stacked(a.numbers, b.numbers),
        number_names=a.number_names,
        dates=a.dates,
        categories={c: np.concatenate([a.categories[c], b.categories[c]]) for c in a.categories},
        m=a.rows,
        n=b.rows,
        row_shape=a.row_shape,
        notes=notes,
        kinds=dict(a.kinds.items() & b.kinds.items()),
        kept=_kept(a, b),
        open_ended=open_ended,
    )


def _kept(a: Table, b: Table) -> Rows | None:
    if a.kept is None and b.kept is None:
        return None
    return np.concatenate([np.arange(t.rows) if t.kept is None else t.kept for t in (a, b)])


def pool_of_one(table: Table) -> Pool:
    """Return one table as a pool without a second sample yet, to fit an encoding on or to encode."""
    return pool_tables(table, table.take(np.arange(0)), open_ended=True)


def _check_rows(table: Table, name: str) -> None:
    if table.rows < 2:
        raise InputError("Each sample must have at least 2 rows. {Sample} has {rows}.", sample=name, rows=table.rows)
