"""Samples that are read batch by batch, as often as a test asks for them, and never held.

A sample is a sequence of tables in a defined order. One pass counts rows and missing values; a row is then known by its position,
as in memory. A test that needs its rows once, in any order, reads them here.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from importlib import import_module
from os import PathLike, fsdecode
from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd.core.arrays import Array, Rows
from cpmmd.core.progress import report
from cpmmd.data.files.input_file import first_line
from cpmmd.data.missing import MissingValues, check_present, drop_missing, find_missing
from cpmmd.data.notices import notices
from cpmmd.data.numbers import Matrix, Numbers
from cpmmd.data.pool import BLOCK_ROWS, Pool, match_columns, pool_tables
from cpmmd.data.sources import FAILED
from cpmmd.data.table import Table, read_table
from cpmmd.errors import CpmmdError, InputError, Note, SampleName

if TYPE_CHECKING:
    from cpmmd.data.files.batches import TypedFiles

HELD_VALUES = 2**25  # of a sample that lies elsewhere: 256 MB; with more it is read in batches
Batches = Callable[[], Iterator[object]]  # the frames of a sample, in order, anew at every call


@dataclass(frozen=True, eq=False)
class StreamedSample:
    """A sample as frames in order."""

    name: str  # what messages call it
    batches: Batches
    rows: int
    notes: tuple[str, ...] = ()
    columns: int = 0  # of data that lie elsewhere

    @property
    def values(self) -> int:
        """How many values would have to be held."""
        return self.rows * self.columns

    def tables(self) -> Iterator[Table]:
        """Yield its frames as tables."""
        try:
            for frame in self.batches():
                table = read_table(frame, self.name)
                if table.rows:
                    yield table
        except CpmmdError:
            raise
        except Exception as error:  # every engine has its own
            raise InputError(FAILED, sample=self.name, engine="its engine", reason=first_line(error).rstrip(".")) from error


class Elsewhere(Numbers):
    """Numbers that are not here: their rows are read by :meth:`StreamedPool.blocks`."""

    def __init__(self, rows: int, columns: int) -> None:
        self._shape = rows, columns

    @property
    def shape(self) -> tuple[int, int]:
        return self._shape

    def take(self, rows: Rows, columns: Rows | None = None) -> Array:  # noqa: ARG002
        raise InputError("Rows that are read once are not kept. Test a sample of them, or a frame in memory.")


@dataclass(frozen=True, eq=False)
class StreamedPool(Pool):
    """Two samples that are not in memory."""

    samples: tuple[StreamedSample, ...] = ()
    like: Mapping[str, Table] = field(default_factory=dict)  # a first table of each sample, whose columns are matched
    dropping: bool = False  # whether rows with missing values are left out

    @property
    def streamed(self) -> bool:
        return True

    def _tables(self) -> Iterator[tuple[Table, int]]:
        """Yield the tables of all samples with matched columns, and the position of their first row in the pool."""
        first, start = next(iter(self.like.values())), 0
        for sample in self.samples:
            for table in sample.tables():
                matched = _matched(first, table, sample.name)
                if self.dropping:
                    matched = drop_missing(matched, sample.name, find_missing(matched, sample.name), [], least=0)
                if matched.rows:
                    yield matched, start
                start += matched.rows

    def blocks(self) -> Iterator[tuple[Pool, Rows, Rows]]:
        """Yield pools of rows in order, all of them, and their positions in the whole."""
        for table, start in self._tables():
            rows = np.arange(table.rows)
            yield pool_tables(table, open_ended=True), rows, start + rows

    def take(self, rows: Rows) -> Pool:
        """Return the pool of some rows, which ascend; a pass over all."""
        of_x = int(np.searchsorted(rows, self.m))
        parts: tuple[list[Table], list[Table]] = ([], [])
        done, total = 0, sum(self.sizes)
        for table, start in self._tables():
            lo, hi = np.searchsorted(rows, (start, start + table.rows))
            if lo < hi:
                parts[start >= self.m].append(_held(table.take(rows[lo:hi] - start)))
            done += table.rows
            report("rows drawn", done, total)
        none = np.arange(0)  # of a sample that is a tiny share of both
        tables = [_joined(some or [like.take(none)]) for some, like in zip(parts, self.like.values(), strict=True)]
        pool = pool_tables(*tables, notes=self.notes)
        return replace(pool, kept=np.concatenate([rows[:of_x], rows[of_x:] - self.m]), kinds=self.kinds)


def _matched(first: Table, table: Table, name: str) -> Table:
    """Return a table in the form of the first one of the other sample."""
    return match_columns({"x": first, name if name != "x" else "y": table})[name if name != "x" else "y"]


def _held(table: Table) -> Table:
    """Return a table whose numbers are its own, not a view of many more."""
    return replace(table, numbers=Matrix(np.asarray(table.numbers)), kept=None)


def _joined(tables: list[Table]) -> Table:
    """Return the rows of several tables with the same columns."""
    pool = pool_tables(*tables)
    return replace(tables[0], numbers=pool.numbers, categories=pool.categories, kept=None)


def stream_pool(samples: tuple[StreamedSample, StreamedSample], missing: str) -> StreamedPool:
    """Return the pool of two samples after a pass over both that counts rows and missing values."""
    first: dict[str, Table] = {}
    absent: dict[str, MissingValues] = {}
    sizes, notes, whole = [], [note for sample in samples for note in sample.notes], []
    about = sum(sample.rows for sample in samples)
    done = 0
    for sample in samples:
        found, rows, kinds = _Absent(), 0, dict[str, str]()
        for table in sample.tables():
            if sample.name not in first:
                first[sample.name] = _held(table)
                kinds = dict(table.kinds)
            matched = _matched(next(iter(first.values())), table, sample.name)
            kinds = {column: kind for column, kind in kinds.items() if matched.kinds.get(column) == kind}
            found.add(find_missing(matched, sample.name), rows)
            rows += table.rows
            done += table.rows
            report("rows counted", done, max(about, done))
        if rows < 2:
            raise InputError("Each sample must have at least 2 rows. {Sample} has {rows}.", sample=sample.name, rows=rows)
        absent[sample.name] = found.all()
        whole.append(kinds)
        if missing == "drop" and found.incomplete:
            dropped = "{dropped} of {rows} rows of {sample} dropped for missing values"
            notes.append(Note(dropped, dropped=found.incomplete, rows=rows, sample=SampleName(sample.name)))
        sizes.append(rows - (found.incomplete if missing == "drop" else 0))
    if missing == "error":
        check_present(absent)
    like = match_columns(first)
    a, b = like.values()
    pool = pool_tables(a, b)
    return StreamedPool(
        numbers=Elsewhere(sum(sizes), len(pool.number_names)),
        number_names=pool.number_names,
        dates=pool.dates,
        categories={column: np.empty(0, dtype=object) for column in pool.categories},
        sizes=(sizes[0], sizes[1]),
        row_shape=pool.row_shape,
        notes=(*dict.fromkeys(notes), *notices(pool)),
        kinds={column: kind for column, kind in whole[0].items() if whole[1].get(column) == kind},
        open_ended=True,
        samples=samples,
        like=like,
        dropping=missing == "drop",
    )


class _Absent:
    """Missing values of a sample, counted batch by batch."""

    def __init__(self) -> None:
        self.counts: dict[str, int] = {}
        self.first: dict[str, int] = {}
        self.incomplete = 0

    def add(self, found: MissingValues, start: int) -> None:
        for column, count in found.counts.items():
            self.counts[column] = self.counts.get(column, 0) + count
            self.first.setdefault(column, start + found.first[column])
        self.incomplete += int(np.count_nonzero(found.rows))

    def all(self) -> MissingValues:
        return MissingValues(self.counts, self.first, np.zeros(0, dtype=bool))


def stream(x: object, y: object, missing: str, rows: int) -> Pool | None:
    """Return the pool of two samples that lie elsewhere and are large; None where memory can hold them.

    A pool of at most ``rows`` rows is one in memory.
    """
    sources = [_source(data, name) for name, data in (("x", x), ("y", y))]
    if not any(source is not None and source.values > HELD_VALUES for source in sources):
        return None
    samples = [source or _held_sample(data, name) for source, (name, data) in zip(sources, (("x", x), ("y", y)), strict=True)]
    pool = stream_pool((samples[0], samples[1]), missing)
    return pool if sum(pool.sizes) > rows else pool.take(np.arange(sum(pool.sizes)))


def _source(data: object, name: str) -> StreamedSample | None:
    """Return data that lie elsewhere as batches."""
    if isinstance(data, str | PathLike):
        from cpmmd.data.files.batches import find_typed_files

        files = find_typed_files(fsdecode(data))
        return None if files is None else _of_files(files, name)
    found = BATCHES.get((type(data).__module__.split(".")[0], type(data).__name__))
    try:
        return None if found is None else found(data, name)
    except Exception:  # every engine has its own; reading the whole says what is wrong
        return None


def _held_sample(data: object, name: str) -> StreamedSample:
    """Return a sample that is in memory as batches."""
    table = read_table(data, name)

    def batches() -> Iterator[object]:
        for start in range(0, table.rows, BLOCK_ROWS):
            yield table.take(np.arange(start, min(start + BLOCK_ROWS, table.rows)))

    return StreamedSample(name, batches, table.rows, table.notes)


def _of_files(files: TypedFiles, name: str) -> StreamedSample:
    return StreamedSample(name, partial(files.batches, BLOCK_ROWS), len(files), files.notes, len(files.columns))


def _of_lazy_frame(frame: Any, name: str) -> StreamedSample:
    polars = import_module("polars")
    batches = partial(frame.collect_batches, chunk_size=BLOCK_ROWS, maintain_order=True)
    rows = int(frame.select(polars.len()).collect().item())
    return StreamedSample(name, batches, rows, (), len(frame.collect_schema()))


def _of_relation(relation: Any, name: str) -> StreamedSample:
    rows = int(relation.aggregate("count(*)").fetchall()[0][0])

    def read(size: int) -> Iterable[Any]:
        fresh = relation.project("*")  # before 1.4, a relation whose rows were read once has none left
        found: Iterable[Any] = (getattr(fresh, "to_arrow_reader", None) or fresh.fetch_arrow_reader)(size)
        return found

    return StreamedSample(name, partial(_tables, read, BLOCK_ROWS), rows, (), len(relation.columns))


def _of_data_set(data: Any, name: str) -> StreamedSample:
    batches = partial(_tables, partial(data.to_batches, batch_size=BLOCK_ROWS))
    return StreamedSample(name, batches, data.count_rows(), (), len(data.schema))


def _tables(read: Callable[..., Iterable[Any]], *options: int) -> Iterator[object]:
    """Yield Arrow batches as tables."""
    table = import_module("pyarrow").Table
    for batch in read(*options):
        yield table.from_batches([batch])


BATCHES: dict[tuple[str, str], Callable[[Any, str], StreamedSample]] = {
    ("cpmmd", "TypedFiles"): _of_files,
    ("polars", "LazyFrame"): _of_lazy_frame,
    ("_duckdb", "DuckDBPyRelation"): _of_relation,
    ("duckdb", "DuckDBPyRelation"): _of_relation,
    **{("pyarrow", kind): _of_data_set for kind in ("FileSystemDataset", "InMemoryDataset", "UnionDataset")},
}
