"""Samples with the same columns, checked, and pooled: two of them, one, or several."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from cpmmd.core import validation
from cpmmd.core.arrays import Objects, Rows
from cpmmd.core.text import pluralize
from cpmmd.data.design import AUTO, BLOCKS_NOTE, GROUPS, STRATA, Coded, Design, DesignOptions, all_codes, both, codes, make_design
from cpmmd.data.missing import IMPUTE, check_present, drop_missing, find_missing
from cpmmd.data.notices import block_length, notices, telling_columns
from cpmmd.data.numbers import Chosen, Matrix, Numbers, StackedNumbers
from cpmmd.data.preparation import pooled_levels
from cpmmd.data.preprocessing import Transformer
from cpmmd.data.table import Table, read_table
from cpmmd.errors import DeferredText, Field, InputError, SampleName, Words, name_some

OTHER_COLUMNS = (
    "{Both} samples must have the same columns. Got {m} in {x} and {n} in {y}{difference}; drop or add columns so that they "
    "match."
)
OTHER_KIND = "A column must be of one kind in {both} samples, numbers, dates or text. {clash}. Convert it in one of them."
BY_POSITION = "columns are matched by position: only some of the samples have column names"
LONG_BLOCKS = (
    "There must be enough rows for blocks that are as long as the dependence between rows. Rows depend on each other over about "
    "{length} rows ({trait}), and the {smaller} sample has {rows}. Take several times {length} rows of each sample, name "
    "separate runs with {groups}, or pass the part of the day or week with {strata}."
)


MOST_NAMED = 3  # columns of another kind
BLOCK_ROWS = 2**17  # of a pool that are read at once


@dataclass(frozen=True, eq=False)
class Pool:
    """The rows of all samples before any encoding is fitted, those of the first sample first."""

    numbers: Numbers
    number_names: tuple[str, ...]
    dates: frozenset[str]
    categories: Mapping[str, Objects]
    sizes: tuple[int, ...]  # rows of each sample
    row_shape: tuple[int, ...]
    notes: tuple[str, ...] = ()
    kinds: Mapping[str, str] = field(default_factory=dict)  # which columns are ``"integer"`` or ``"boolean"``
    kept: Rows | None = None  # the rows' numbers in their own sample as it came; None when no row was left out
    open_ended: bool = False  # other rows will be encoded later: categories keep a level for what they may bring
    preprocess: Transformer | None = None  # what makes numbers of the rows before they are compared; not fitted
    design: Design | None = None  # which permutations are allowed; None allows all

    @property
    def m(self) -> int:
        """Rows of X, of two samples."""
        m, _ = self.sizes
        return m

    @property
    def n(self) -> int:
        """Rows of Y, of two samples."""
        _, n = self.sizes
        return n

    @property
    def streamed(self) -> bool:
        """Whether its rows are read anew each time, and never held."""
        return False

    def blocks(self) -> Iterator[tuple[Pool, Rows, Rows]]:
        """Yield pools and some of their rows, all rows once, with their positions here."""
        for start in range(0, sum(self.sizes), BLOCK_ROWS):
            rows = np.arange(start, min(start + BLOCK_ROWS, sum(self.sizes)))
            yield self, rows, rows

    def take(self, rows: Rows) -> Pool:
        """Return some rows, those of each sample together."""
        return take_rows(self, rows)

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names as the data had them."""
        return (*self.number_names, *self.categories)


def read_pool(
    x: object,
    y: object,
    *,
    missing: str = "error",
    design: DesignOptions | None = None,
    preprocess: Transformer | None = None,
) -> Pool:
    """Read two samples, match their columns, deal with missing values, and make the design."""
    return replace(read_samples({"x": x, "y": y}, missing=missing, design=design), preprocess=preprocess)


def read_samples(samples: Mapping[str, object], *, missing: str = "error", design: DesignOptions | None = None) -> Pool:
    """Read samples, match their columns, deal with missing values, and make the design; keys are what messages call them."""
    validation.missing(missing)
    asked = DesignOptions() if design is None else design
    read = {name: asked.split_design_columns(read_table(data, name), name, tuple(samples)) for name, data in samples.items()}
    tables, notes = check_tables(match_columns(read), missing=missing)
    tables, left = _in_whole_pairs(tables, range(len(tables)))
    of_reading = dict.fromkeys(note for table in read.values() for note in table.notes)
    pool = apply_design(tables, asked, (*of_reading, *notes, *left))
    by_position = (BY_POSITION,) if len({table.named for table in read.values()}) > 1 else ()
    pool = replace(pool, notes=(*pool.notes, *by_position, *pooled_levels(pool)))
    return pool if asked.given else replace(pool, notes=(*pool.notes, *notices(pool)))


def only_in(columns: Sequence[str], others: Sequence[str]) -> list[str]:
    """Return the columns that others do not have, in their order."""
    known = set(others)
    return [column for column in columns if column not in known]


def match_columns(tables: Mapping[str, Table]) -> dict[str, Table]:
    """Return the tables with the columns in the order of the first; names decide where both have them."""
    first, *others = tables
    return {first: tables[first]} | {name: _match(tables, (first, name)) for name in others}


def _match(tables: Mapping[str, Table], names: tuple[str, str]) -> Table:
    """Return the second of two tables in the form of the first."""
    (a, b), which = (tables[name] for name in names), both(len(tables))
    only = zip(names, (only_in(a.names, b.names), only_in(b.names, a.names)), strict=True) if a.named and b.named else ()
    fields: dict[str, Field] = {"x": SampleName(names[0]), "y": SampleName(names[1]), "Both": which.capitalize()}
    fields["difference"] = DeferredText(_say_difference, tuple(only))
    if len(a.names) != len(b.names):
        raise InputError(OTHER_COLUMNS, **fields, m=len(a.names), n=len(b.names))
    if not (a.named and b.named):
        if a.categories or b.categories or a.dates or b.dates:
            rule = (
                "Text and dates are matched by column name. Got an array beside a data frame; pass {both} samples as data frames."
            )
            raise InputError(rule, both=which)
        if a.row_shape != b.row_shape:
            shapes = "{Both} samples must have rows of one shape. Got {of_x} in {x} and {of_y} in {y}."
            raise InputError(shapes, **fields, of_x=a.row_shape, of_y=b.row_shape)
        return replace(b, number_names=a.number_names, dates=a.dates)
    if set(a.names) != set(b.names):
        raise InputError("{Both} samples must have the same column names{difference}; rename or drop columns.", **fields)
    clash = sorted(set(a.number_names) & set(b.categories) | set(b.number_names) & set(a.categories) | (a.dates ^ b.dates))
    if clash:
        kinds = [(column, a.kind(column), b.kind(column)) for column in clash]
        raise InputError(OTHER_KIND, column=clash[0], both=which, clash=DeferredText(_say_kinds, names, kinds))
    place = {name: j for j, name in enumerate(b.number_names)}
    order = np.array([place[name] for name in a.number_names], dtype=int)
    return replace(b, numbers=Chosen(b.numbers, columns=order), number_names=a.number_names)


def _say_difference(words: Words, only: tuple[tuple[str, list[str]], ...]) -> str:
    """Say which columns only one of two samples has, in brackets."""
    parts = [f"only in {words.sample(name)}: {name_some(sorted(columns))}" for name, columns in only if columns]
    return f" ({'; '.join(parts)})" if parts else ""


def _say_kinds(words: Words, names: tuple[str, str], kinds: list[tuple[str, str, str]]) -> str:
    """Say of which kind columns are in each of two samples."""
    x, y = map(words.sample, names)
    parts = [f"column {column!r} holds {of_x} in {x} and {of_y} in {y}" for column, of_x, of_y in kinds[:MOST_NAMED]]
    more = f", and {len(kinds) - MOST_NAMED} more differ" if len(kinds) > MOST_NAMED else ""
    return ("; ".join(parts) + more).replace("column", "Column", 1)


def check_tables(tables: Mapping[str, Table], *, missing: str) -> tuple[list[Table], tuple[str, ...]]:
    """Return tables with enough rows, finite values and missing ones dealt with, and notes; keys are what messages call them."""
    for name, table in tables.items():
        if table.rows < 2:
            raise InputError("Each sample must have at least 2 rows. {Sample} has {rows}.", sample=name, rows=table.rows)
    absent = {name: find_missing(table, name) for name, table in tables.items()}
    notes: list[str] = []
    if missing == "error":
        check_present(absent)
    elif missing == "drop":
        return [drop_missing(table, name, absent[name], notes) for name, table in tables.items()], tuple(notes)
    return list(tables.values()), ()


def pool_tables(*tables: Table, notes: tuple[str, ...] = (), open_ended: bool = False) -> Pool:
    """Return the pool of tables with the same columns in the same order."""
    first, whole = tables[0], all(table.kept is None for table in tables)
    return Pool(
        numbers=StackedNumbers(tuple(table.numbers for table in tables)),
        number_names=first.number_names,
        dates=first.dates,
        categories={c: np.concatenate([table.categories[c] for table in tables]) for c in first.categories},
        sizes=tuple(table.rows for table in tables),
        row_shape=first.row_shape,
        notes=notes,
        kinds={c: kind for c, kind in first.kinds.items() if all(table.kinds.get(c) == kind for table in tables)},
        kept=None if whole else np.concatenate([np.arange(t.rows) if t.kept is None else t.kept for t in tables]),
        open_ended=open_ended,
    )


def pool_of_one(table: Table) -> Pool:
    """Return one table as a pool, to fit an encoding on or to encode."""
    return pool_tables(table, open_ended=True)


def take_rows(pool: Pool, rows: Rows) -> Pool:
    """Return some rows of a pool, those of each sample together."""
    kept = np.concatenate([np.arange(size) for size in pool.sizes]) if pool.kept is None else pool.kept
    sample = np.searchsorted(np.cumsum(pool.sizes), rows, side="right")
    return replace(
        pool,
        numbers=Chosen(pool.numbers, rows=rows),
        categories={column: values[rows] for column, values in pool.categories.items()},
        sizes=tuple(np.bincount(sample, minlength=len(pool.sizes)).tolist()),
        kept=kept[rows],
    )


def rows_alone(pool: Pool, rows: Rows) -> Pool:
    """Return some rows of a pool in memory, as one sample."""
    categories = {column: values[rows] for column, values in pool.categories.items()}
    return replace(pool, numbers=Matrix(pool.numbers.take(rows)), categories=categories, sizes=(len(rows),), kept=None, notes=())


def take_samples(pool: Pool, *chosen: int) -> Pool:
    """Return the pool of some samples, in their order, without the strata that only one of them has."""
    sample = np.repeat(np.arange(len(pool.sizes)), pool.sizes)
    rows, design = np.flatnonzero(np.isin(sample, chosen)), pool.design
    if design is not None:
        stratum = design.strata[design.unit[rows]]
        found = [np.isin(stratum, stratum[sample[rows] == own]) for own in chosen]
        rows = rows[np.sum(found, axis=0) > 1]
        sizes = tuple(np.bincount(sample[rows], minlength=len(pool.sizes))[list(chosen)].tolist())
        made = Design.of(design.unit[rows], design.strata[design.unit[rows]], sizes)
        design = replace(design, unit=made.unit, strata=made.strata, rows=sizes)
    taken = take_rows(pool, rows)
    return replace(taken, sizes=tuple(taken.sizes[own] for own in chosen), design=design, notes=())


def apply_design(tables: Sequence[Table], asked: DesignOptions, notes: tuple[str, ...] = ()) -> Pool:
    """Return the pool of tables with the design that was asked for; rows of strata without a partner are left out.

    So are rows of the first table whose partners in others were dropped for missing values. A reference that is kept in a file
    does not know what it lost, so that it is up to the caller to leave out rows of the others in turn.
    """
    tables, left = _in_whole_pairs(tables, (0,))
    pool = pool_tables(*tables, notes=(*notes, *left))
    if not asked.given:
        return pool
    coded = all_codes(*(table.design_values for table in tables))
    block_rows, about_blocks = _block_rows(pool, asked, coded)
    design, rows, left = make_design(coded, pool.sizes, block_rows, asked.described)
    if len(rows) < sum(pool.sizes):
        pool = take_rows(pool, rows)
    return replace(pool, design=design, notes=(*pool.notes, *left, *about_blocks))


def _in_whole_pairs(tables: Sequence[Table], of: Iterable[int]) -> tuple[list[Table], list[str]]:
    """Return the tables, some of them without the rows whose partners another lost for missing values, and a note on those."""
    whole, torn_pairs = list(tables), set[int]()
    if not any("pairs" in table.lost for table in tables):
        return whole, []
    values = [(table.design_values["pairs"], table.lost.get("pairs", table.design_values["pairs"][:0])) for table in tables]
    ends = np.cumsum([len(part) for kept_and_lost in values for part in kept_and_lost])
    numbers = np.split(codes([np.concatenate(kept_and_lost) for kept_and_lost in values], "pairs")[0], ends[:-1])
    kept, gone = numbers[::2], [np.setdiff1d(lost, kept) for kept, lost in zip(numbers[::2], numbers[1::2], strict=True)]
    for i in of:
        own = kept[i]
        torn = np.isin(own, np.concatenate([lost for j, lost in enumerate(gone) if j != i]))
        if len(own) and torn.all():
            rule = "At least one pair must have no missing values in {both} samples. Every pair has some; try {impute}."
            raise InputError(rule, parameter="pairs", both=both(len(tables)), impute=IMPUTE)
        if torn.any():
            torn_pairs |= set(own[torn].tolist())
            whole[i] = whole[i].take(~torn)
    pairs_out = pluralize(
        len(torn_pairs), "pair was left out, because its other row", "pairs were left out, because their other rows"
    )
    return whole, [f"{pairs_out} had missing values"] if torn_pairs else []


def _block_rows(pool: Pool, asked: DesignOptions, coded: Coded) -> tuple[int | None, list[str]]:
    """Return the rows of a block, and notes on what that rests on."""
    if asked.blocks is None:
        return None, []
    if asked.blocks != AUTO:
        return int(asked.blocks), [BLOCKS_NOTE]
    telling = telling_columns(pool)
    found = block_length(pool, leave=tuple(telling), strata=coded["strata"][0] if "strata" in coded else None)
    if found.rows > min(pool.sizes):
        which, smaller = ("both", "smaller") if len(pool.sizes) == 2 else ("all", "smallest")
        seen: dict[str, Field] = {"length": found.rows, "trait": found.trait, "rows": min(pool.sizes)}
        raise InputError(LONG_BLOCKS, parameter="blocks", both=which, smaller=smaller, groups=GROUPS, strata=STRATA, **seen)
    length = f"{found.rows} rows for {found.trait}" if found.trait else "one row, because no dependence was seen"
    return found.rows, [f"{BLOCKS_NOTE}; their length is {length}", *telling.values()]
