"""A sample that came from a file: choosing its columns, splitting it into groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpmmd.core.text import counted
from cpmmd.data.files.frames import column, polars
from cpmmd.data.files.options import ReadOptions
from cpmmd.errors import InputError, Setting, name_some, unknown_name

MOST_GROUPS = 100
UNITS_A_DAY = {"d": 1, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
FIRST_DAY, END_DAY = -719_162, 2_932_897  # of the years 1 to 9999, counted from 1970-01-01


@dataclass(frozen=True, eq=False)
class FileSample:
    """Rows of a file and what was noticed while reading them."""

    data: Any  # A polars frame, or an array where the file held one
    label: str  # what messages call it: the file's name
    notes: tuple[str, ...] = ()
    # what is wrong with columns that cannot be used as they are; harmless once those are left out
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


def select_columns(
    sample: FileSample, *, columns: Sequence[str] = (), drop: Sequence[str] = (), empty: bool = False
) -> FileSample:
    """Return the sample with some columns only, checked for what would make a test meaningless.

    With ``empty``, columns may hold missing values only, as those of a batch whose reference knows their kinds.
    """
    for name in (*columns, *drop):
        if name not in sample.columns:
            raise unknown_name(f"column of {sample.label}:", name, sample.columns)
    kept = [name for name in dict.fromkeys(columns or sample.columns) if name not in set(drop)]  # a column named twice is one
    if not kept:
        raise InputError(f"At least one column of {sample.label} must be left. All {len(sample.columns)} are dropped.")
    if tuple(kept) != sample.columns:
        sample = replace(sample, data=_take_columns(sample.data, kept))
    for suspect in sample.suspects:
        if suspect.column in kept:
            raise suspect
    _check_values(sample, may_be_empty=empty)
    return sample


def drop_anywhere(samples: Sequence[FileSample], drop: Sequence[str]) -> list[tuple[str, ...]]:
    """Return for each sample the columns to drop that it has; a column that none of them has is refused."""
    everywhere = list(dict.fromkeys(name for sample in samples for name in sample.columns))
    for name in drop:
        if name not in everywhere:
            labels = " and ".join(dict.fromkeys(sample.label for sample in samples))
            raise unknown_name(f"column of {labels}:", name, everywhere)
    return [tuple(name for name in drop if name in sample.columns) for sample in samples]


def _take_columns(data: Any, kept: list[str]) -> Any:
    if isinstance(data, np.ndarray):
        if data.ndim > 2:
            raise InputError("Columns can be chosen from tables only. Got an array of more than two dimensions instead.")
        return data.reshape(len(data), -1)[:, [int(name) for name in kept]]
    return data[kept]  # select takes a name like ^a$ for a pattern, and another column than it


def _check_values(sample: FileSample, *, may_be_empty: bool) -> None:
    if sample.rows == 0:
        raise InputError(f"A sample must have rows. {sample.label} has none; check how it was written.")
    empty = [] if may_be_empty else [name for name in sample.columns if _is_empty(sample.data, name)]
    if empty:
        raise InputError(
            "Columns must hold values. {label} has only missing ones in {empty}; leave them out with {setting}, or check how the "
            "file was written.",
            file=sample.label,
            label=sample.label,
            empty=name_some(empty),
            setting=Setting("drop"),
        )
    if far := [name for name in sample.columns if _is_far(sample.data, name)]:
        raise InputError(
            "Dates must be of the years 1 to 9999. {label} has others in {far}; check their unit, or leave the columns out with "
            "{setting}.",
            file=sample.label,
            label=sample.label,
            far=name_some(far),
            setting=Setting("drop"),
        )


def _is_far(data: Any, name: str) -> bool:
    """Whether a column has dates that no calendar shows: of a damaged file, or milliseconds taken for microseconds."""
    dtype = None if isinstance(data, np.ndarray) else column(data, name).dtype
    if dtype is None or str(dtype).split("(")[0] not in ("Date", "Datetime"):
        return False
    a_day = UNITS_A_DAY[getattr(dtype, "time_unit", "d")]
    days = column(data, name).to_physical().drop_nulls()
    return len(days) > 0 and not FIRST_DAY * a_day <= days.min() <= days.max() < END_DAY * a_day


def _is_empty(data: Any, name: str) -> bool:
    if isinstance(data, np.ndarray):
        if data.ndim > 2 or data.dtype.kind != "f":
            return False
        return bool(np.isnan(data.reshape(len(data), -1)[:, int(name)]).all())
    series = column(data, name)
    if series.null_count() == len(series):
        return True
    return bool(series.dtype.is_float() and series.drop_nulls().is_nan().all())


@dataclass(frozen=True, eq=False)
class Groups:
    """The rows of a sample, by the values of one of its columns, which is left out."""

    sample: FileSample
    column: str
    values: Any

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

    def _take(self, rows: Any, label: str) -> FileSample:
        return replace(self.sample, data=_rows(self.sample.data, rows), label=label)


def by_groups(sample: FileSample, column: str) -> Groups:
    """Return the groups that a column makes; rows without a value of it are left out."""
    if column not in sample.columns:
        raise unknown_name(f"column of {sample.label}:", column, sample.columns)
    values = _group_values(sample.data, column)
    present = np.array([v is not None for v in values], dtype=bool)
    lost = int(np.count_nonzero(~present))
    left_out = f"{counted(lost, 'row')} without a value of {column!r} {'is' if lost == 1 else 'are'} left out"
    notes = (*sample.notes, *((left_out,) if lost else ()))
    rest = [name for name in sample.columns if name != column]
    if not rest:
        raise InputError(f"There must be a column to compare. {sample.label} has none but {column!r}.")
    data = _rows(_take_columns(sample.data, rest), present)
    groups = Groups(replace(sample, data=data, notes=notes), column, np.array(values, dtype=object)[present])
    if not 2 <= len(groups.names) <= MOST_GROUPS:
        raise InputError(
            f"The column that splits must hold 2 to {MOST_GROUPS} different values. {column!r} of {sample.label} has "
            f"{len(groups.names)}; choose another, or bin it first."
        )
    return groups


def _rows(data: Any, mask: Any) -> Any:
    return data[mask] if isinstance(data, np.ndarray) else data.filter(mask)


def _group_values(data: Any, column: str) -> list[str | None]:
    values = data.reshape(len(data), -1)[:, int(column)].tolist() if isinstance(data, np.ndarray) else data[column].to_list()
    return [None if v is None or v != v else str(v) for v in values]


def _natural(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)


# What the text of a column means: numbers, dates or categories, and which columns are none of them.


NULLS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "NaT", "#N/A", "<NA>")
# What most of a column's odd values look like -> what it seems to be, and what to write instead.
STYLES = {
    r"^[+-]?\d{1,3}([,' \u{a0}\u{202f}]\d{3})+(\.\d+)?$|^[+-]?\d+([. ]\d{3})*,\d+$": (
        "numbers with a decimal comma or thousands separators; say {decimal} for 1,5, and write 1234.5 for 1,234.5"
    ),
    r"^[+-]?\d+([.,]\d+)?\s?%$": "percentages; write 12.5 for 12.5%",
    r"^\d{4}[-/]\d{1,2}[-/]\d{1,2}\b": "dates among other values; correct those (an empty field is a missing value)",
    r"^\d{1,2}[/.-]\d{1,2}[/.-](\d{2}|\d{4})\b": "dates; write 2024-12-31, or say {dayfirst} or a {date_format}",
    r"(?i)^(\d{1,2}[ .-]+)?(jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*[ .,-]+(\d{1,2}[ .,-]+)?\d{4}$": (
        "dates; write 2024-12-31, or say their {date_format}, with %b for a month's name"
    ),
    r"^\d{1,2}:\d{2}(:\d{2}(\.\d+)?)?$": "times of day; write hours as a number, 10.5 for 10:30",
}
# A number whose fraction a comma begins.
WITH_COMMA = r"^[+-]?(\d+(,\d*)?|,\d+)([eE][+-]?\d+)?$|^[+-]?(?i:inf|infinity)$"
COMMA_STYLES = {
    r"^[+-]?\d{1,3}([. ']\d{3})+(,\d+)?$": "numbers with thousands separators; write 1234,5 for 1.234,5",
    r"^[+-]?\d+\.\d+([eE][+-]?\d+)?$": "numbers with a decimal point, while {decimal} was said",
    **{pattern: style for pattern, style in STYLES.items() if "decimal comma" not in style},
}
MANY_LEVELS = 0.5  # share of different values above which a text column looks like an identifier


def infer_types(frame: Any, label: str, options: ReadOptions, notes: list[str]) -> FileSample:
    """Return the sample with text columns that hold numbers or dates turned into these, and suspects marked."""
    suspects: list[InputError] = []
    for name in frame.columns:
        series = column(frame, name)
        if name in options.text:
            frame = frame.with_columns(series.cast(polars().String).alias(name))
        elif series.dtype == polars().String:
            meant, wrong = _meaning(series, name, label, options)
            frame = frame.with_columns(meant.alias(name))
            if wrong is not None:
                suspects.append(wrong)
            elif meant.dtype == polars().String:
                notes += _identifier_note(meant, name, label)
    return FileSample(frame, label, tuple(notes), tuple(suspects))


def _meaning(series: Any, name: str, label: str, options: ReadOptions) -> tuple[Any, InputError | None]:
    """Return a text column as numbers or dates where it holds nothing else; and what is wrong with it, if anything."""
    stripped = series.str.strip_chars()
    present = stripped.set(stripped.is_in(list(NULLS)), None)
    numbers = _numbers(present, options.decimal)
    count = len(present) - present.null_count()
    numeric = count - (numbers.null_count() - present.null_count())
    if numeric == count:
        return numbers, None
    if not numeric and options.decimal == "," and (truth := _booleans(present)) is not None:
        return truth, None
    if not numeric and (read := options.dates.read(present)) is not None:
        wrong = read.is_null() & present.is_not_null()
        return read, _date_error(name, label, present, wrong) if wrong.any() else None
    others = present.filter(numbers.is_null() & present.is_not_null())
    for pattern, style in (STYLES if options.decimal == "." else COMMA_STYLES).items():
        if 2 * others.str.contains(pattern).sum() > len(others):
            return present, _style_error(name, label, style)
    if numeric:
        row = int((numbers.is_null() & present.is_not_null()).arg_max() or 0) + 1
        return present, _mixture_error(name, label, numeric, len(others), others[0], row)
    return present, None


def _numbers(values: Any, decimal: str) -> Any:
    """Return text as numbers, missing where it is none; whole ones stay whole where polars did not look at them before."""
    pl = polars()
    if decimal == ".":
        return values.cast(pl.Float64, strict=False)
    plain = values.set(~values.str.contains(WITH_COMMA), None).str.replace(",", ".", literal=True)
    whole = plain.cast(pl.Int64, strict=False)
    return whole if whole.null_count() == values.null_count() else plain.cast(pl.Float64, strict=False)


def _booleans(values: Any) -> Any | None:
    """Return text that is true and false as booleans, as polars reads it; None for any other."""
    return values == "true" if values.drop_nulls().is_in(["true", "false"]).all() else None


def _date_error(name: str, label: str, values: Any, wrong: Any) -> InputError:
    row = int(wrong.arg_max() or 0)
    return InputError(
        "A date must exist, and be written as said or as the others are. Column {short} of {label} has dates among other values, "
        "the first {first} in row {row}. Correct it (an empty field is a missing value), take the column as text with {text}, or "
        "leave it out with {drop}.",
        column=name,
        file=label,
        row=row + 1,
        short=_cut(name),
        label=label,
        first=_cut(values[row]),
        text=Setting("text"),
        drop=Setting("drop"),
    )


def _style_error(name: str, label: str, style: str) -> InputError:
    return InputError(
        "Values must be plain. Column {short} of {label} seems to hold "
        + style
        + ". Or take it as text with {text}, or leave it "
        "out with {drop}.",
        column=name,
        file=label,
        short=_cut(name),
        label=label,
        dayfirst=Setting("dayfirst"),
        decimal=Setting("decimal", ","),
        date_format=Setting("date_format", "%m/%d/%Y"),
        text=Setting("text"),
        drop=Setting("drop"),
    )


def _mixture_error(name: str, label: str, numeric: int, others: int, first: str, row: int) -> InputError:
    return InputError(
        "A column must hold numbers or text, not both. Column {short} of {label} has {numeric} number{s} and {others} other "
        "value{es}, the first {first} in row {row}. Correct them (an empty field is a missing value), take the column as text "
        "with {text}, or leave it out with {drop}.",
        column=name,
        file=label,
        row=row,
        short=_cut(name),
        label=label,
        numeric=numeric,
        s="s" * (numeric > 1),
        others=others,
        es="s" * (others != 1),
        first=_cut(first),
        text=Setting("text"),
        drop=Setting("drop"),
    )


def _cut(name: str) -> str:
    return repr(name if len(name) <= 40 else name[:37] + "...")


def _identifier_note(series: Any, name: str, label: str) -> list[str]:
    different = series.n_unique()
    if different > 20 and different > MANY_LEVELS * len(series):
        return [
            f"column {_cut(name)} of {label} has {different} different texts in {counted(len(series), 'row')}: leave it "
            "out if it is an identifier"
        ]
    return []
