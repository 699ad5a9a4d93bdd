"""Data that are not in memory yet: files and folders, Arrow data sets and batches, and what other engines hold lazily.

Each has rows in a defined order: files by name, partitions by number, batches as they come. In that order they are brought here,
and are then the same as a frame with the same rows.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from importlib import import_module
from itertools import chain
from os import PathLike, fspath
from typing import Any

from cpmmd.data.files.input_file import first_line
from cpmmd.errors import CpmmdError, InputError

ORDER_KEPT = ("Project", "Filter", "SubqueryAlias", "View")  # nodes of a Spark plan that leave rows in their order
BATCHES = (
    "{Sample} must be an array of rows, a data frame or a source of rows. Got an iterator of {got}; pass Arrow record batches."
)
FAILED = "{Sample} could not be read by {engine}: {reason}. Check that it can be computed by itself."
UNORDERED = (
    "A Spark frame must have a defined order, because rows are known by their positions. {Sample} has none; sort it by columns "
    "that name each row once, such as .orderBy('id')."
)


def bring_here(data: object, sample: str) -> tuple[object, tuple[str, ...]]:
    """Return data that lie elsewhere as a frame in memory, with notes on how they were read; any other as they are."""
    if isinstance(data, str | PathLike):
        return _from_files(fspath(data))
    if isinstance(data, Iterator) and not hasattr(data, "__arrow_c_stream__"):
        return _from_batches(data, sample), ()
    engine = type(data).__module__.split(".")[0]
    collect = COLLECT.get((engine, type(data).__name__))
    if collect is None:
        return data, ()
    try:
        return collect(data, sample), ()
    except CpmmdError:
        raise
    except Exception as error:  # every engine has its own
        raise InputError(FAILED, sample=sample, engine=engine, reason=first_line(error).rstrip(".")) from error


def _from_files(name: str | bytes) -> tuple[object, tuple[str, ...]]:
    from cpmmd.data.files.reading import read_file
    from cpmmd.data.files.sample import select_columns

    sample = select_columns(read_file(name if isinstance(name, str) else name.decode(errors="surrogateescape")))
    return sample.data, sample.notes


def _from_batches(batches: Iterator[Any], sample: str) -> object:
    """Return the table of an iterator of Arrow batches."""
    first = next(batches, None)
    if not hasattr(first, "schema") or not hasattr(first, "num_columns"):
        raise InputError(BATCHES, sample=sample, got="nothing" if first is None else type(first).__name__)
    arrow = import_module("pyarrow")
    try:
        return arrow.Table.from_batches(chain([first], batches))
    except arrow.ArrowInvalid as error:
        rule = "Batches of {sample} must have one schema. {reason}. Cast the batches that differ."
        raise InputError(rule, sample=sample, reason=first_line(error).rstrip(".:")) from error


def _from_spark(frame: Any, sample: str) -> object:
    if not _is_sorted(frame):
        raise InputError(UNORDERED, sample=sample)
    return frame.toArrow()


def _is_sorted(frame: Any) -> bool:
    """Whether a Spark frame is sorted as a whole, by its plan."""
    if not hasattr(frame, "_jdf"):  # of a remote session
        return bool(type(frame._plan).__name__ == "Sort")
    node = frame._jdf.queryExecution().analyzed()
    while (kind := node.getClass().getSimpleName()) in ORDER_KEPT:
        node = node.children().head()
    return kind == "Sort" and bool(getattr(node, "global")())


COLLECT: dict[tuple[str, str], Callable[[Any, str], object]] = {
    ("cpmmd", "TypedFiles"): lambda files, _: _from_files(files.label)[0],
    ("polars", "LazyFrame"): lambda frame, _: frame.collect(),
    ("_duckdb", "DuckDBPyRelation"): lambda relation, _: relation.to_arrow_table(),
    ("duckdb", "DuckDBPyRelation"): lambda relation, _: relation.to_arrow_table(),
    ("dask", "DataFrame"): lambda frame, _: frame.compute(),
    ("pyspark", "DataFrame"): _from_spark,
    **{("pyarrow", kind): lambda data, _: data.to_table() for kind in ("FileSystemDataset", "InMemoryDataset", "UnionDataset")},
    ("pyarrow", "Scanner"): lambda scanner, _: scanner.to_table(),
    ("pyarrow", "RecordBatchReader"): lambda reader, _: reader.read_all(),
}
