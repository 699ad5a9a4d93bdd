"""What the text of a column means: numbers, dates or categories, and which columns are none of them."""

from __future__ import annotations

from typing import Any

from cpmmd.core.text import counted
from cpmmd.data.files.frames import column, polars
from cpmmd.data.files.options import ReadOptions
from cpmmd.data.files.sample import FileSample
from cpmmd.errors import InputError, Setting

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
