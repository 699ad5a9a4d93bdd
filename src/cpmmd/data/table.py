"""One sample as a table: numbers, dates and categories, whatever object it came in."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field, replace
from datetime import UTC, date, datetime, timedelta
from typing import Any, TypeAlias

import narwhals as nw
import numpy as np

from cpmmd.core.arrays import Array, Labels, Rows
from cpmmd.core.arrays import Objects as Objects
from cpmmd.core.text import pluralize
from cpmmd.data.containers import column_arrays, unwrap
from cpmmd.data.numbers import Chosen, Columns, Matrix, Numbers, Values, beyond_exact, category_text, is_missing, is_number
from cpmmd.data.sources import bring_here
from cpmmd.data.texts import read_amounts, text_notes
from cpmmd.errors import InputError, Note, name_some

Frame: TypeAlias = nw.DataFrame[Any]
Series: TypeAlias = nw.Series[Any]
SECONDS_A_DAY = 86_400.0
TENSOR = "{Sample} is a tensor of type {dtype} that cannot be read as numbers ({error}). Convert it to float64 first."
NO_KIND = (
    "Columns must hold numbers, booleans, dates or text. Column {column!r} of {sample} has type {dtype}; convert or drop it."
)
MIXTURE = (
    "A column must hold numbers or text, not both. Column {column!r} of {sample} has {numbers} and text, the first {first} in "
    "row {row} (counted from 0). Correct it, or convert the column with .astype(str) to take its values as categories."
)
TOO_LONG = (
    "Whole numbers must be within 2^53 of zero, or they would be rounded. {where}{sample} has larger ones; if they are "
    "identifiers, leave them out or pass them as text."
)
COMPLEX = "A sample must hold real numbers. Complex data not supported: {sample} has {dtype}; pass two columns for each."
NO_NUMBERS = (
    "Arrays must hold real numbers. {Sample} has dtype {dtype}; for text or mixed columns pass a data frame (pandas, polars or "
    "pyarrow) or columns by name such as {{'text': values}}, whose text columns are treated as categories."
)
RAGGED = (
    "A column of vectors must have one length in all rows. Column {column!r} of {sample} has {lengths}. Cut or pad them, pass "
    "a number of each such as its length, or compare sequences with responses_test."
)
DURATION = "durations in column {column!r} are compared in seconds"


@dataclass(frozen=True, eq=False)
class Table:
    """Rows of one sample."""

    numbers: Numbers  # rows of the numeric, boolean and date columns (dates in days), NaN where missing
    number_names: tuple[str, ...]  # their names; positions as text for arrays
    dates: frozenset[str]  # names of those that are dates
    categories: Mapping[str, Objects]  # the other columns, as text, None where missing
    named: bool  # whether the names came with the data
    row_shape: tuple[int, ...]  # shape of one row before it was flattened, (d,) for tables
    # ``"integer"`` or ``"boolean"`` for the number columns that were, so that a value can be shown as it came
    kinds: Mapping[str, str] = field(default_factory=dict)
    kept: Rows | None = None  # row numbers in the data as it came, when some rows were left out; None for all
    columns: tuple[str, ...] = ()  # all names in the order of the data
    # values that are not compared but say which rows belong together, by the argument that named them
    design_values: Mapping[str, Values] = field(default_factory=dict)
    # the same of rows that were dropped for missing values, whose partners may still be elsewhere
    lost: Mapping[str, Values] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # on how it was read

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.numbers)

    @property
    def names(self) -> tuple[str, ...]:
        """All column names, numeric ones first."""
        return (*self.number_names, *self.categories)

    def kind(self, column: str) -> str:
        """Return what a column holds: numbers, dates or text."""
        return "text" if column in self.categories else "dates" if column in self.dates else "numbers"

    def select(self, columns: Collection[str]) -> Table:
        """Return some columns, in their order."""
        places = [j for j, name in enumerate(self.number_names) if name in columns]
        categories = {name: values for name, values in self.categories.items() if name in columns}
        return replace(
            self,
            numbers=Chosen(self.numbers, columns=np.array(places, dtype=np.intp)),
            number_names=tuple(self.number_names[j] for j in places),
            dates=self.dates & set(columns),
            categories=categories,
            kinds={name: kind for name, kind in self.kinds.items() if name in columns},
            columns=tuple(name for name in self.columns or self.names if name in columns),
            row_shape=(len(places) + len(categories),),
        )

    def rename(self, name: str) -> Table:
        """Return a table of one column under another name."""
        return replace(
            self,
            number_names=(name,) * len(self.number_names),
            dates=frozenset(name for _ in self.dates),
            categories=dict.fromkeys([name], *self.categories.values()) if self.categories else {},
            kinds=dict.fromkeys([name], *self.kinds.values()) if self.kinds else {},
            columns=(name,),
            named=True,
        )

    def take(self, rows: Rows | Labels) -> Table:
        """Return some rows, by number or by mask."""
        chosen: Rows = np.arange(self.rows)[rows]
        return replace(
            self,
            numbers=Chosen(self.numbers, rows=chosen),
            categories={c: v[chosen] for c, v in self.categories.items()},
            kept=chosen if self.kept is None else self.kept[chosen],
            design_values={name: values[chosen] for name, values in self.design_values.items()},
        )


def read_table(data: object, name: str) -> Table:
    """Read one sample; ``name`` is what messages call it."""
    if isinstance(data, Table):
        return data if data.columns else replace(data, columns=data.names)
    data, notes = bring_here(data, name)
    table = _table(data, name)
    return replace(table, notes=(*notes, *table.notes))


def _table(data: object, name: str) -> Table:
    if type(data).__name__ == "RecordBatch":  # older narwhals take it for a frame that they cannot read
        data = unwrap(data, name)
    frame = as_frame(data, name)
    if frame is not None:
        return from_frame(frame, name)
    data = unwrap(data, name)
    if isinstance(data, Mapping):
        return _from_columns(column_arrays(data, name), name)
    frame = as_frame(data, name)  # what was in a container
    if frame is not None:
        return from_frame(frame, name)
    if hasattr(data, "detach") and hasattr(data, "cpu"):  # a torch tensor, known without importing torch
        data = _from_tensor(data, name)
    return _from_array(data, name)


def _from_tensor(data: Any, name: str) -> Values:
    """Return a torch tensor as an array: dense, and in double precision where numpy has no such type (bfloat16, float8)."""
    tensor = data.detach().cpu()
    try:
        if str(tensor.layout) != "torch.strided":
            tensor = tensor.to_dense()
        plain = tensor.double() if tensor.is_floating_point() and tensor.element_size() < 4 else tensor
        return np.asarray(plain.numpy())
    except (TypeError, RuntimeError) as error:
        raise InputError(TENSOR, sample=name, dtype=tensor.dtype, error=str(error).splitlines()[0]) from error


def as_frame(data: object, name: str) -> Frame | None:
    """Return any kind of data frame as a narwhals one, None for anything else."""
    try:
        frame: object = nw.from_native(data, allow_series=True, pass_through=True)
    except Exception as error:  # narwhals raises a different class for each back end
        rule = "{Sample} could not be read as a data frame: {error}. Check its column names."
        raise InputError(rule, sample=name, error=error) from error
    if isinstance(frame, nw.Series):
        return frame.alias(str(frame.name or "0")).to_frame()
    return frame if isinstance(frame, nw.DataFrame) else None


def from_frame(frame: Frame, name: str, only: Collection[str] | None = None) -> Table:
    """Read a data frame, column by column, or only some columns of it."""
    columns = [str(column) for column in frame.columns]
    if len(set(columns)) < len(columns):
        twice = ", ".join(sorted({c for c in columns if columns.count(c) > 1}))
        raise InputError(
            "Column names must be unique. {Sample} has {twice} more than once; rename them.", sample=name, twice=twice
        )
    if not columns:
        raise InputError("{Sample} must have at least one column. Got none.", sample=name)
    native = list(getattr(frame.to_native(), "dtypes", ()))
    if only is None and native and all(isinstance(dtype, np.dtype) and dtype.kind == "f" for dtype in native):
        # pandas floats: one by one, 100,000 columns would take minutes
        return Table(Matrix(frame.to_numpy()), (*columns,), frozenset(), {}, True, (len(columns),), columns=(*columns,))
    # Not frame[c]: pandas columns may be called by numbers, which narwhals takes for rows.
    series = zip(columns, frame.iter_columns(), strict=True)
    read: dict[str, Column] = {}
    for label, values in series:
        if only is None or label in only or f"{label}[0]" in only:
            read |= _read_series(_without_zone(values.alias("")), label, name)  # polars: ^a$ is a pattern
    return _from_read(read, len(frame))


def _from_columns(columns: Mapping[str, Values], name: str) -> Table:
    """Read columns by name."""
    if not columns:
        raise InputError("{Sample} must have at least one column. Got none.", sample=name)
    read: dict[str, Column] = {}
    for label, values in columns.items():
        read |= _read_values(values, label, name)
    return _from_read(read, len(next(iter(columns.values()))))


@dataclass(frozen=True, eq=False)
class Column:
    """A column as it was read: numbers in pieces, or the names of categories."""

    values: list[Values] | Objects
    kind: str  # number, date, duration or category
    was: str | None = None  # "integer" or "boolean"
    notes: tuple[Note, ...] = ()  # on how it was read


def _from_read(read: Mapping[str, Column], rows: int) -> Table:
    numbers = {label: column.values for label, column in read.items() if isinstance(column.values, list)}
    return Table(
        numbers=Columns(tuple(numbers.values()), rows),
        number_names=tuple(numbers),
        dates=frozenset(label for label, column in read.items() if column.kind == "date"),
        categories={label: column.values for label, column in read.items() if not isinstance(column.values, list)},
        named=True,
        row_shape=(len(read),),
        kinds={label: column.was for label, column in read.items() if column.was is not None},
        columns=tuple(read),
        notes=tuple(note for column in read.values() for note in column.notes),
    )


def _read_series(series: Series, label: str, name: str) -> dict[str, Column]:
    """Read a column of a frame: one column, or as many as the vectors in it have values."""
    dtype = series.dtype
    if isinstance(dtype, (nw.List, nw.Array)) or dtype in (nw.List, nw.Array):
        return _read_vectors(np.asarray(series.to_numpy()), label, name)
    if dtype == nw.Duration:
        return {label: _duration(np.asarray(series.to_numpy()), label)}
    if dtype.is_numeric() or dtype == nw.Boolean:
        was = "integer" if dtype.is_integer() else "boolean" if dtype == nw.Boolean else None
        return {label: Column(_as_numbers(series, label, name), "number", was)}
    if dtype in (nw.Datetime, nw.Date):
        return {label: Column([as_days(np.asarray(series.to_numpy()))], "date")}
    if dtype == nw.String:
        return {label: _text(series.to_list(), label, name)}
    if dtype in (nw.Categorical, nw.Enum):
        return {label: Column(_as_categories(series.to_list()), "category")}
    return _read_objects(series.to_list(), label, name, str(dtype), mixed=dtype == nw.Object)


def _read_values(values: Values, label: str, name: str) -> dict[str, Column]:
    """Read the array of a column."""
    kind = values.dtype.kind
    if values.ndim > 1:
        return _read_vectors(values, label, name)
    if kind == "M":
        return {label: Column([as_days(values)], "date")}
    if kind == "m":
        return {label: _duration(values, label)}
    if kind in "iu" and beyond_exact(values):
        raise _too_long(name, column=label)
    if kind in "fiub":
        was = {"i": "integer", "u": "integer", "b": "boolean"}.get(kind)
        return {label: Column([np.asarray(values, dtype=np.float64)], "number", was)}
    return _read_objects(values.tolist(), label, name, str(values.dtype), mixed=True)


def _read_vectors(values: Values, label: str, name: str) -> dict[str, Column]:
    """Read a column of vectors, such as embeddings, as a column for each of their values; a missing one is missing values."""
    if values.dtype.kind == "O":
        given = [isinstance(v, (list, tuple, np.ndarray)) or not is_missing(v) for v in values]  # arrays are slow to compare
        there = [np.asarray(v) for v, is_given in zip(values, given, strict=True) if is_given]
        lengths = sorted({vector.size for vector in there})
        if len(lengths) != 1 or lengths == [0]:
            found = f"{lengths[0]} to {lengths[-1]} values" if len(lengths) > 1 else "no values"
            raise InputError(RAGGED, sample=name, column=label, lengths=found)
        matrix = np.full((len(values), lengths[0]), np.nan)
        try:
            matrix[given] = [vector.ravel() for vector in there]
        except (TypeError, ValueError) as error:
            raise InputError(NO_KIND, sample=name, column=label, dtype="List of other things than numbers") from error
    else:
        matrix = np.asarray(values, dtype=np.float64).reshape(len(values), -1)
    return {f"{label}[{i}]": Column([matrix[:, i]], "number") for i in range(matrix.shape[1])}


def _read_objects(values: list[Any], label: str, name: str, dtype: str, *, mixed: bool) -> dict[str, Column]:
    """Read Python objects: numbers, dates, durations, text or vectors."""
    present = [v for v in values if isinstance(v, np.ndarray) or not is_missing(v)]
    if all(map(is_number, present)):  # a pandas object column of numbers, or nothing at all
        return {label: Column([_numbers_of_objects(values, label, name)], "number")}
    if all(isinstance(v, date) for v in present):  # a pandas object column; moments are dates too
        return {label: Column([as_days(_objects(values))], "date")}
    if all(isinstance(v, (timedelta, np.timedelta64)) for v in present):
        return {label: _duration(_objects(values), label)}
    if all(isinstance(v, (list, tuple, np.ndarray)) for v in present):
        return _read_vectors(_objects(values), label, name)
    if mixed and all(is_number(v) or isinstance(v, str) for v in present):
        _check_unmixed(values, label, name)
        return {label: _text(values, label, name)}
    raise InputError(NO_KIND, sample=name, column=label, dtype=dtype)


def _text(values: list[Any], label: str, name: str) -> Column:
    """Return text as categories, or as numbers where it holds amounts of one unit."""
    texts = _as_categories(values)
    amounts = read_amounts(texts, label, name)
    if amounts is None:
        return Column(texts, "category", notes=tuple(text_notes(texts, label)))
    return Column([amounts[0]], "number", notes=(amounts[1],))


def _duration(values: Values, label: str) -> Column:
    return Column([as_seconds(values)], "duration", notes=(Note(DURATION, column=label),))


def _objects(values: list[Any]) -> Objects:
    objects = np.empty(len(values), dtype=object)
    objects[:] = values
    return objects


def _as_categories(values: list[Any]) -> Objects:
    return _objects([category_text(v) for v in values])


def _without_zone(series: Series) -> Series:
    """Return dates of a time zone as the moments that they are; any other column as it is."""
    if series.dtype == nw.Datetime and getattr(series.dtype, "time_zone", None) is not None:
        return series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
    native = series.to_native()
    zone = getattr(getattr(native, "dtype", None), "tz", None)
    if series.dtype == nw.Unknown and zone is not None:  # pandas zones that narwhals does not know
        return nw.from_native(native.dt.tz_convert("UTC").dt.tz_localize(None), series_only=True)
    return series


def _check_unmixed(values: list[Any], column: str, name: str) -> None:
    """Refuse numbers beside text, as for files; True beside text is a word, as it is there."""
    numbers = sum(is_number(v) and not isinstance(v, (bool, np.bool_)) and not is_missing(v) for v in values)
    if numbers:
        row, first = next((i, v) for i, v in enumerate(values) if isinstance(v, str))
        count = pluralize(numbers, "number")
        raise InputError(MIXTURE, sample=name, column=column, row=row, numbers=count, first=name_some([first]))


def _as_numbers(series: Series, label: str, name: str) -> list[Values]:
    """Return a column in pieces; Arrow floats without missing ones stay where they are, memory-mapped files included."""
    native, dtype = series.to_native(), series.dtype
    if dtype in (nw.Float32, nw.Float64) and hasattr(native, "chunks") and native.null_count == 0:
        return [chunk.to_numpy(zero_copy_only=True) for chunk in native.chunks if len(chunk)]
    far = dtype.is_integer() and len(present := series.drop_nulls()) and beyond_exact([int(present.max()), int(present.min())])
    if far or not dtype.is_numeric():
        return [_numbers_of_objects(series.to_list(), label, name)]
    return [np.asarray(series.cast(nw.Float64).to_numpy(), dtype=np.float64)]


def _numbers_of_objects(values: list[Any], label: str, name: str) -> Values:
    values = [None if is_missing(v) else v for v in values]
    if beyond_exact([v for v in values if v is not None]):
        raise _too_long(name, column=label)
    return np.array([np.nan if v is None else float(v) for v in values], dtype=np.float64)


def as_seconds(durations: Values) -> Array:
    """Return durations in seconds, NaN where missing."""
    if durations.dtype.kind == "O":
        durations = np.array([None if is_missing(v) else v for v in durations], dtype="timedelta64[us]")
    exact = durations.astype("timedelta64[ns]")
    return np.where(np.isnat(exact), np.nan, exact.astype(np.int64) / 1e9)


def as_days(stamps: Values) -> Array:
    """Return dates in days, NaN where missing."""
    if stamps.dtype.kind == "O":  # Arrow's dates in pandas, missing ones marked by something else than a date
        stamps = np.array([None if is_missing(stamp) else _in_utc(stamp) for stamp in stamps], dtype="datetime64[us]")
    moments = stamps.astype("datetime64[us]")
    return np.where(np.isnat(moments), np.nan, moments.astype(np.int64) / (1e6 * SECONDS_A_DAY))


def _in_utc(stamp: date) -> date:
    """Return a moment of a time zone as that of UTC, without its zone."""
    return stamp.astimezone(UTC).replace(tzinfo=None) if isinstance(stamp, datetime) and stamp.tzinfo is not None else stamp


def _too_long(name: str, column: str | None = None) -> InputError:
    return InputError(TOO_LONG, sample=name, column=column, where="" if column is None else f"Column {column!r} of ")


def _from_array(data: object, name: str) -> Table:
    if isinstance(data, np.ma.MaskedArray) and data.dtype.kind in "fiub":  # what is masked is missing
        if data.dtype.kind in "iu" and beyond_exact(data.compressed()):
            raise _too_long(name)
        data = np.where(np.ma.getmaskarray(data), np.nan, data.astype(np.float64).data)
    got = type(data).__name__
    try:
        array: Values = np.asarray(data)
    except ValueError as error:
        raise InputError("{Sample} must be a rectangular table. Got rows of different lengths instead.", sample=name) from error
    if array.ndim == 0:
        raise InputError("{Sample} must be an array of rows or a data frame. Got {got} instead.", sample=name, got=got)
    kind = {"i": "integer", "u": "integer", "b": "boolean"}.get(array.dtype.kind)
    if array.dtype.kind == "M":
        array = as_days(array)
    if array.dtype.kind == "m":
        array = as_seconds(array)
    if array.dtype.kind in "iu" and beyond_exact(array):
        raise _too_long(name)
    if array.dtype.kind == "c":
        raise InputError(COMPLEX, sample=name, dtype=array.dtype)
    if array.dtype.kind not in "fiub":
        array = _object_to_float(array, name)
    matrix = array.reshape(len(array), int(np.prod(array.shape[1:], dtype=int)))
    row_shape = array.shape[1:] if array.ndim > 1 else (1,)
    if matrix.shape[1] == 0:
        raise InputError("{Sample} must have at least one column. Got shape {shape}.", sample=name, shape=array.shape)
    names = tuple(str(i) for i in range(matrix.shape[1]))
    kinds = dict.fromkeys(names, kind) if kind else {}
    return Table(Matrix(matrix), names, frozenset(), {}, False, row_shape, kinds, columns=names)


def _object_to_float(array: Values, name: str) -> Array:
    if array.dtype.kind == "O":
        try:
            cells = [[np.nan if is_missing(v) else v for v in np.atleast_1d(row)] for row in array]
            if any(beyond_exact(row) for row in cells):
                raise _too_long(name)
            return np.array(cells, dtype=np.float64)
        except InputError:
            raise
        except (TypeError, ValueError, OverflowError):
            pass
    raise InputError(NO_NUMBERS, sample=name, dtype=array.dtype)
