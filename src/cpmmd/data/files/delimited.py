"""CSV and TSV: strict about what a careless reader would paper over."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from cpmmd.core.text import counted
from cpmmd.data.files.encodings import check_text, not_utf8
from cpmmd.data.files.frames import column, polars, reading
from cpmmd.data.files.headers import check_names, column_names, without_blank_rows, without_index
from cpmmd.data.files.options import ReadOptions
from cpmmd.data.files.sample import FileSample
from cpmmd.data.files.source import Source
from cpmmd.data.files.typing import NULLS, infer_types
from cpmmd.errors import InputError

SEPARATORS = (",", ";", "\t", "|")


def read_delimited(source: Source, separator: str, options: ReadOptions) -> FileSample:
    """Read a table of separated values; its first line names the columns unless it is all numbers."""
    check_text(source, options.limit)
    header, separator = _header(source, separator, options.decimal)
    names, named = column_names(header, options.decimal)
    check_names(names, source.label)
    frame = _parse(source, separator, len(names), named, typed=options.decimal == ".")
    frame.columns = names
    frame = _with_text(frame, source, separator, named, [name for name in names if name in options.text])
    notes = [] if named else [f"the first line of {source.label} is numbers: read as data, columns are called 0, 1, ..."]
    if len(frame) == 0:
        raise InputError(f"{source.label} has a header and no rows. Check how it was written.")
    if frame[names[-1]].null_count():  # the reader fills lines that are too short
        _check_even(source, separator, len(names))
        frame = without_blank_rows(frame, source.label, notes)
    return infer_types(without_index(frame, source.label, notes), source.label, options, notes)


def _records(source: Source, separator: str) -> Iterator[list[str]]:
    """Return the fields of each line, as Python's own reader sees them."""
    with source.open() as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        yield from csv.reader(text, delimiter=separator)


def _header(source: Source, separator: str, decimal: str) -> tuple[list[str], str]:
    """Return the first line and the separator: the usual one, or another where that leaves a single column.

    What begins fractions separates columns only where nothing else does.
    """
    try:
        first = [] if separator == decimal else next(_records(source, separator), [])
        if len(first) <= 1:
            others = {s: next(_records(source, s), []) for s in SEPARATORS}
            usual, fields = separator, {s: len(line) for s, line in others.items()}
            separator = max(others, key=lambda s: (fields[s] > 1 and s != decimal, fields[s], s != decimal, s == usual))
            first = others[separator]
    except UnicodeDecodeError as error:
        raise not_utf8(source, error) from error
    except csv.Error as error:
        raise InputError(
            f"The first line of {source.label} cannot be read ({error}). It must name the columns, each in fewer than 131072 "
            "characters."
        ) from error
    if not first:
        raise InputError(f"{source.label} begins with an empty line. The first line must name the columns.")
    return [name.strip() for name in first], separator


def _parse(source: Source, separator: str, width: int, named: bool, *, typed: bool) -> Any:
    """Return the columns as polars reads them; not typed, all of them are text, for others to say what it means."""
    pl = polars()
    try:
        frame = pl.read_csv(
            source.native,
            separator=separator,
            has_header=named,
            infer_schema=typed,
            infer_schema_length=None,
            null_values=list(NULLS),
            try_parse_dates=False,  # it would take 01/02/2024 for the first of February without asking
        )
    except pl.exceptions.NoDataError:
        return pl.DataFrame({str(i): [] for i in range(width)})
    except (pl.exceptions.PolarsError, OSError) as error:
        _check_even(source, separator, width)
        with reading(source.label, "a table of separated values"):
            raise error
    if frame.width != width:
        _check_even(source, separator, width)
        raise InputError(
            f"{source.label} has a first line of {counted(width, 'name')} over {counted(frame.width, 'column')}. "
            "Check its quotes."
        )
    return frame


def _with_text(frame: Any, source: Source, separator: str, named: bool, text: list[str]) -> Any:
    """Return the frame with the columns that were called text as they are written: only an empty field is missing there."""
    if not text:
        return frame
    pl = polars()
    places = [frame.columns.index(name) for name in text]
    with reading(source.label, "a table of separated values"):
        raw = pl.read_csv(source.native, separator=separator, has_header=named, columns=places, infer_schema=False)
    columns = [column(raw, name).str.strip_chars() for name in raw.columns]
    return frame.with_columns(s.set(s == "", None).alias(name) for s, name in zip(columns, text, strict=True))


def _check_even(source: Source, separator: str, width: int) -> None:
    """Name the first line that does not have as many fields as the first."""
    try:
        for number, record in enumerate(_records(source, separator), start=1):
            if record and len(record) != width:
                raise InputError(
                    f"Every line must have as many fields as the first. Line {number} of {source.label} has {len(record)}, the "
                    f"first has {width}; check that line for a missing or unquoted {separator!r}."
                )
    except UnicodeDecodeError as error:
        raise not_utf8(source, error) from error
    except csv.Error as error:
        raise InputError(f"{source.label} cannot be read as a table ({error}). Check its quotes.") from error
