"""A sample from a file: what the text of its columns means, choosing columns, splitting it into groups."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import numpy as np

from cpmmd.core.arrays import Labels, Objects
from cpmmd.core.text import pluralize
from cpmmd.data.files.input_file import column, polars
from cpmmd.data.files.options import ReadOptions
from cpmmd.data.numbers import Values
from cpmmd.data.texts import EXPONENT, FRACTION, LIKE_AN_AMOUNT, NULLS, ZEROS, amount_pattern
from cpmmd.errors import Field, InputError, Note, ParameterReference, name_some, unknown_name

if TYPE_CHECKING:
    from polars import DataFrame, Series

Data: TypeAlias = "DataFrame | Values"

MANY_LEVELS = 0.5  # share of different values above which a text column looks like an identifier
MOST_GROUPS = 100
UNITS_A_DAY = {"d": 1, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
FIRST_DAY, END_DAY = -719_162, 2_932_897  # of the years 1 to 9999, counted from 1970-01-01

FEW_ROWS, PLAIN = 100, re.compile(r"-?(?:0|[1-9][0-9]{0,14})(?:\.[0-9]+)?")
PADDED = r"^\s{2,}|\s$"  # one space after a separator is a style of writing tables
BOOLEANS = (("true", "false"), ("True", "False"), ("TRUE", "FALSE"))  # of polars, pandas and R
YEAR_2000, YEAR_2040 = 946_684_800, 2_208_988_800  # seconds since 1970
# A number with a decimal comma.
WITH_COMMA = r"^[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity)$"
NO_NUMBERS = {
    r"^\d{4}[-/]\d{1,2}[-/]\d{1,2}\b": "dates among other values; correct the others (an empty field is a missing value)",
    r"^\d{1,2}[/.-]\d{1,2}[/.-](\d{2}|\d{4})\b": "dates; write 2024-12-31, or set {dayfirst} or {date_format}",
    r"(?i)^(\d{1,2}[ .-]+)?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ .,-]+(\d{1,2}[ .,-]+)?\d{4}$": (
        "dates; write 2024-12-31, or set {date_format}, with %b for a month's name"
    ),
    r"^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$": "times of day; write hours as a number, 10.5 for 10:30",
    LIKE_AN_AMOUNT: ("amounts whose decimal separator is not clear; set {decimal} for 1.234,50, or write 1234.5"),
}
# What most of a column's odd values look like -> what it seems to hold, and what to write instead; by the decimal separator.
STYLES = {
    ".": {
        r"^[+-]?\d{1,3}([,' \u{a0}\u{202f}]\d{3})+(\.\d+)?$|^[+-]?\d+([. ]\d{3})*,\d+$": (
            "numbers with a decimal comma or thousands separators; set {decimal} for 1,5, and write 1234.5 for 1,234.5"
        ),
        **NO_NUMBERS,
    },
    ",": {
        r"^[+-]?\d{1,3}([. ']\d{3})+(,\d+)?$": "numbers with thousands separators; write 1234,5 for 1.234,5",
        r"^[+-]?\d+\.\d+([eE][+-]?\d+)?$": "numbers with a decimal point, beside {decimal}",
        **NO_NUMBERS,
    },
}
NOT_PLAIN = (
    "Values must be plain numbers, ISO dates or text. Column {short} of {file} seems to hold STYLE. Or take it as text with "
    "{text}, or leave it out with {drop}."
)
NO_DATE = (
    "All dates of a column must be valid and have one format. Column {short} of {file} has dates among other values, the first "
    "{first} in row {row}. Correct it (an empty field is a missing value), take the column as text with {text}, or leave it out "
    "with {drop}."
)
MIXTURE = (
    "A column must hold numbers or text, not both. Column {short} of {file} has {numeric} and {others}, the first {first} in row "
    "{row}. Correct them (an empty field is a missing value), take the column as text with {text}, or leave it out with {drop}."
)
UNITS = (
    "Amounts of a column must have one unit. Column {short} of {file} holds amounts in {unit} and others, the first {first} in "
    "row {row}. Convert them to one unit, take the column as text with {text}, or leave it out with {drop}."
)
AS_WRITTEN = "column {column} of {file}: {remark}; {text} takes it as it is written"
ALL_DIFFERENT = "column {column} of {file} has {texts}: leave it out if it is an identifier"
EPOCH = "column {column} of {file} looks like times in {unit} since 1970, and is compared as numbers; write dates as 2024-12-31"
EMPTY = (
    "Columns must hold values. {file} has only missing values in {columns}; leave them out with {drop}, or check how the file "
    "was written."
)
FAR = (
    "Dates must be of the years 1 to 9999. {file} has others in {columns}; check their unit, or leave the columns out with "
    "{drop}."
)
SETTINGS: dict[str, Field] = {
    "dayfirst": ParameterReference("dayfirst"),
    "decimal": ParameterReference("decimal", ","),
    "date_format": ParameterReference("date_format", "%m/%d/%Y"),
    "text": ParameterReference("text"),
    "drop": ParameterReference("drop"),
}


@dataclass(frozen=True, eq=False)
class FileSample:
    """Rows of a file, and notes on how they were read."""

    data: Data  # a polars frame, or an array where the file held one
    label: str  # what messages call it: the file's name
    notes: tuple[str, ...] = ()
    # errors for columns that cannot be used as they are; they count only where these are kept
    suspects: tuple[InputError, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.data)

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names; positions for arrays."""
        if isinstance(self.data, np.ndarray):
            return tuple(str(i) for i in range(self.data.shape[1] if self.data.ndim > 1 else 1))
        return tuple(self.data.columns)

    def check_column(self, name: str) -> None:
        """Refuse a name that no column has."""
        if name not in self.columns:
            raise unknown_name(f"column of {self.label}:", name, self.columns)


@dataclass(frozen=True, eq=False)
class RawFrame:
    """Columns as a file has them, before what they mean is inferred."""

    frame: DataFrame
    label: str
    notes: tuple[str, ...] = ()
    typed: bool = False  # whether the file has types; otherwise text may be numbers and dates
    suspects: tuple[InputError, ...] = ()

    def inferred(self, options: ReadOptions) -> FileSample:
        """Return the sample with its columns' types."""
        notes, suspects = list(self.notes), self.suspects
        return infer_types(self.frame, self.label, options, notes, typed=self.typed, suspects=suspects)


def suspect(sentence: str, name: str, label: str, **fields: Field) -> InputError:
    """Return the error for a column that cannot be used as it is."""
    return InputError(sentence, column=name, file=label, short=_cut(name), **SETTINGS, **fields)


def infer_types(
    frame: DataFrame,
    label: str,
    options: ReadOptions,
    notes: list[str],
    *,
    typed: bool = False,
    suspects: Sequence[InputError] = (),
) -> FileSample:
    """Return the sample with text columns that hold numbers or dates turned into these, and suspects marked.

    Where a file has types (``typed``), text may be anything: it becomes numbers or dates only where all of it is such, with a
    note.
    """
    wrong, text = list(suspects), polars().String
    columns: list[Series] = []
    for name in frame.columns:
        series = column(frame, name)
        if name in options.text:
            series = series.cast(text).str.strip_chars()
            columns.append(series.set(series == "", None).cast(polars().Categorical).alias(name))  # as it is written, for good
            continue
        if series.dtype == text:
            series = _read_text(series, name, label, options, notes, wrong, typed=typed)
        if series.dtype.is_integer() and (unit := _epoch_unit(series)) is not None:
            notes.append(Note(EPOCH, column=_cut(name), file=label, unit=unit))
        columns.append(series.alias(name))
    return FileSample(polars().DataFrame(columns), label, tuple(notes), tuple(wrong))


def _read_text(
    series: Series, name: str, label: str, options: ReadOptions, notes: list[str], wrong: list[InputError], *, typed: bool
) -> Series:
    """Return what a text column holds, with what is to be noted of it or is wrong with it."""
    if len(series) <= FEW_ROWS and options.decimal == "." and not typed and (numbers := _plain_numbers(series)) is not None:
        return numbers
    stripped = series.str.strip_chars()
    present = stripped.set(stripped.is_in(list(NULLS)), None)
    column = _meaning(present, name, label, options)
    if column.wrong is not None and (not typed or column.amounts):
        wrong.append(column.wrong)
        return column.values
    values, remarks = (present, []) if column.wrong is not None else (column.values, [column.remark] if column.remark else [])
    marks = stripped.drop_nulls().filter(stripped.drop_nulls().is_in([mark for mark in NULLS if mark]))
    if typed and len(marks):
        remarks.append(f"{name_some([marks[0]])} is read as a missing value")
    if values.dtype != polars().String:
        kind = "dates" if values.dtype.is_temporal() else "booleans" if values.dtype == polars().Boolean else "numbers"
        if typed and not column.remark:
            remarks.append(f"its text is read as {kind}")
        elif not column.remark and series.drop_nulls().str.contains(PADDED).any():
            remarks.append(f"values padded with spaces are read as {kind}")
    elif column.wrong is None:
        different = values.n_unique()
        if different > 20 and different > MANY_LEVELS * len(values):
            texts = f"{different} different texts in {pluralize(len(values), 'row')}"
            notes.append(Note(ALL_DIFFERENT, column=_cut(name), file=label, texts=texts))
    if remarks:
        notes.append(Note(AS_WRITTEN, column=_cut(name), file=label, remark="; ".join(remarks), text=SETTINGS["text"]))
    return values


def _plain_numbers(series: Series) -> Series | None:
    """Return a short column of plain numbers, None for any other: operations of polars take longer than a few values do."""
    values = series.to_list()
    if not all(value is not None and PLAIN.fullmatch(value) for value in values):
        return None
    whole = not any("." in value for value in values)
    return polars().Series([int(value) for value in values] if whole else [float(value) for value in values])  # type: ignore[no-any-return]


class Meaning(NamedTuple):
    """What a text column holds."""

    values: Series
    wrong: InputError | None = None
    remark: str = ""
    amounts: bool = False  # whether it holds amounts, which are numbers also where a file has types


def _meaning(present: Series, name: str, label: str, options: ReadOptions) -> Meaning:
    """Return a text column as numbers or dates where it holds nothing else; and what is wrong with it, if anything."""
    numbers = _numbers(present, options.decimal)
    count = len(present) - present.null_count()
    numeric = count - (numbers.null_count() - present.null_count())
    if count and numeric == count:
        code = _first_code(present)
        return (
            Meaning(numbers)
            if code is None
            else Meaning(present, remark=f"codes such as {name_some([code])} are kept as text, not read as numbers")
        )
    if not count:
        return Meaning(numbers)
    if not numeric and (yes := next((yes for yes, no in BOOLEANS if present.drop_nulls().is_in([yes, no]).all()), None)):
        return Meaning(present == yes)
    if not numeric and (read := options.dates.read(present)) is not None:
        odd = read.is_null() & present.is_not_null()
        row = int(odd.arg_max() or 0)
        return Meaning(read, suspect(NO_DATE, name, label, row=row + 1, first=_cut(present[row])) if odd.any() else None)
    if (amounts := _amounts(present, name, label, options.decimal)) is not None:
        return amounts
    odd = numbers.is_null() & present.is_not_null()
    others = present.filter(odd)
    for pattern, style in STYLES[options.decimal].items():
        if 2 * others.str.contains(pattern).sum() > len(others):
            return Meaning(present, suspect(NOT_PLAIN.replace("STYLE", style), name, label), amounts=pattern == LIKE_AN_AMOUNT)
    if not numeric:
        return Meaning(present)
    counts = {"numeric": pluralize(numeric, "number"), "others": pluralize(len(others), "other value")}
    return Meaning(present, suspect(MIXTURE, name, label, row=int(odd.arg_max() or 0) + 1, first=_cut(others[0]), **counts))


def _first_code(present: Series) -> str | None:
    """Return the first value that no program writes for a number: 007, or 1e5 where nothing else looks like a fraction."""
    codes = present.filter(present.str.contains(ZEROS))
    if not len(codes) and not present.str.contains(FRACTION).any():
        codes = present.filter(present.str.contains(EXPONENT))
    return str(codes[0]) if len(codes) else None


def _amounts(present: Series, name: str, label: str, decimal: str) -> Meaning | None:
    """Return amounts of one unit as numbers, None where most values are no amounts."""
    pl = polars()
    pattern = amount_pattern(decimal)
    units = present.str.extract(pattern, 1)
    units = units.zip_with(units.is_not_null(), present.str.extract(pattern, 2))
    found = units.drop_nulls().unique(maintain_order=True).to_list()
    odd = units.is_null() & present.is_not_null()
    if 2 * int(odd.sum()) >= len(present) - present.null_count():
        return None
    plain = (
        present.str.replace_all(rf"[^0-9{decimal}+-]", "").str.replace(decimal, ".", literal=True).cast(pl.Float64, strict=False)
    )
    if len(found) == 1 and not odd.any() and plain.null_count() == present.null_count():
        first = present.drop_nulls()[0]
        return Meaning(
            plain, remark=f"amounts in {found[0]} are read as numbers, {name_some([first])} as {plain.drop_nulls()[0]:g}"
        )
    row = int((odd if odd.any() else (units != found[0]).fill_null(value=False)).arg_max() or 0)
    return Meaning(present, suspect(UNITS, name, label, unit=found[0], row=row + 1, first=_cut(present[row])), amounts=True)


def _epoch_unit(series: Series) -> str | None:
    """Return the unit in which whole numbers look like times since 1970, of the years 2000 to 2039."""
    if series.null_count() == len(series):
        return None
    low, high = int(series.min()), int(series.max())  # type: ignore[arg-type]
    if low == high:
        return None
    units = {"seconds": 1, "milliseconds": 10**3, "microseconds": 10**6, "nanoseconds": 10**9}
    return next((unit for unit, parts in units.items() if YEAR_2000 * parts <= low and high < YEAR_2040 * parts), None)


def _numbers(values: Series, decimal: str) -> Series:
    """Return text as numbers, missing where it is not one; whole numbers stay whole."""
    pl = polars()
    plain = values
    if decimal == ",":
        plain = values.set(~values.str.contains(WITH_COMMA), None).str.replace(",", ".", literal=True)
    whole = plain.cast(pl.Int64, strict=False)
    return whole if whole.null_count() == values.null_count() else plain.cast(pl.Float64, strict=False)


def _cut(name: str) -> str:
    return name_some([name])


def select_columns(
    sample: FileSample, *, columns: Sequence[str] = (), drop: Sequence[str] = (), empty: bool = False
) -> FileSample:
    """Return the sample with some columns only, checked for what would make a test meaningless.

    With ``empty``, columns may hold missing values only, as those of a batch whose reference knows their kinds.
    """
    for name in (*columns, *drop):
        sample.check_column(name)
    kept = [name for name in dict.fromkeys(columns or sample.columns) if name not in set(drop)]  # once, even where named twice
    if not kept:
        raise InputError(f"At least one column of {sample.label} must be kept. All {len(sample.columns)} are dropped.")
    if tuple(kept) != sample.columns:
        shown = {None, *map(_cut, kept)}
        notes = (note for note in sample.notes if not isinstance(note, Note) or note.fields.get("column") in shown)
        sample = replace(sample, data=_take_columns(sample.data, kept), notes=tuple(notes))
    for suspect in sample.suspects:
        if suspect.column in kept:
            raise suspect
    if sample.rows == 0:
        raise InputError(f"A sample must have rows. {sample.label} has none; check how it was written.")
    for is_bad, sentence in [(_is_far, FAR)] if empty else [(_is_empty, EMPTY), (_is_far, FAR)]:
        if bad := [name for name in sample.columns if is_bad(sample.data, name)]:
            raise InputError(sentence, file=sample.label, columns=name_some(bad), drop=SETTINGS["drop"])
    return sample


def drop_anywhere(samples: Sequence[FileSample], drop: Sequence[str]) -> list[tuple[str, ...]]:
    """Return for each sample the columns to drop that it has; a column that none of them has is refused."""
    everywhere = list(dict.fromkeys(name for sample in samples for name in sample.columns))
    for name in drop:
        if name not in everywhere:
            labels = " and ".join(dict.fromkeys(sample.label for sample in samples))
            raise unknown_name(f"column of {labels}:", name, everywhere)
    return [tuple(name for name in drop if name in sample.columns) for sample in samples]


def _take_columns(data: Data, kept: list[str]) -> Data:
    if isinstance(data, np.ndarray):
        if data.ndim > 2:
            raise InputError("Columns can be chosen from tables only. Got an array of more than two dimensions instead.")
        return data.reshape(len(data), -1)[:, [int(name) for name in kept]]
    return data[kept]  # select takes a name like ^a$ for a pattern, and another column than it


def _is_far(data: Data, name: str) -> bool:
    """Whether a column has dates that no calendar shows: of a damaged file, or milliseconds taken for microseconds."""
    if isinstance(data, np.ndarray) or column(data, name).dtype.base_type() not in (polars().Date, polars().Datetime):
        return False
    series = column(data, name)
    a_day = UNITS_A_DAY[getattr(series.dtype, "time_unit", "d")]
    days = series.to_physical().drop_nulls().to_numpy()
    return len(days) > 0 and not FIRST_DAY * a_day <= int(days.min()) <= int(days.max()) < END_DAY * a_day


def _is_empty(data: Data, name: str) -> bool:
    if isinstance(data, np.ndarray):
        if data.ndim > 2 or data.dtype.kind != "f":
            return False
        return bool(np.isnan(data.reshape(len(data), -1)[:, int(name)]).all())
    series = column(data, name)
    return series.null_count() == len(series) or bool(series.dtype.is_float() and np.isnan(series.to_numpy()).all())


@dataclass(frozen=True, eq=False)
class Groups:
    """The rows of a sample, by the values of one of its columns, which is left out."""

    sample: FileSample
    column: str
    values: Objects

    @property
    def names(self) -> list[str]:
        """The different values, numbers in their order."""
        return sorted(set(self.values), key=_natural)

    def group(self, name: str) -> FileSample:
        """Return the rows of one value."""
        return self._take(self.values == name, f"{self.column} = {name}")

    def rest(self, name: str) -> FileSample:
        """Return all other rows."""
        return self._take(self.values != name, f"{self.column} other than {name}")

    def _take(self, rows: Labels, label: str) -> FileSample:
        return replace(self.sample, data=_rows(self.sample.data, rows), label=label)


def by_groups(sample: FileSample, column: str) -> Groups:
    """Return the groups that a column makes; rows without a value of it are left out."""
    sample.check_column(column)
    data = sample.data
    raw = data.reshape(len(data), -1)[:, int(column)].tolist() if isinstance(data, np.ndarray) else data[column].to_list()
    values = np.array([None if v is None or v != v else str(v) for v in raw], dtype=object)
    present = np.array([v is not None for v in values], dtype=bool)
    lost = int(np.count_nonzero(~present))
    left_out = f"{pluralize(lost, 'row')} without a value of {column!r} {'is' if lost == 1 else 'are'} left out"
    rest = [name for name in sample.columns if name != column]
    if not rest:
        raise InputError(f"There must be a column to compare. {sample.label} has no column but {column!r}.")
    kept = replace(sample, data=_rows(_take_columns(data, rest), present), notes=(*sample.notes, *([left_out] if lost else ())))
    groups = Groups(kept, column, values[present])
    if not 2 <= len(groups.names) <= MOST_GROUPS:
        raise InputError(
            f"A column that splits a file must hold 2 to {MOST_GROUPS} different values. {column!r} of {sample.label} has "
            f"{len(groups.names)}; choose another, or bin it first."
        )
    return groups


def _rows(data: Data, mask: Labels) -> Data:
    return data[mask] if isinstance(data, np.ndarray) else data.filter(mask)


def _natural(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)
