"""CSV, TSV and JSON lines: strict about what a careless reader would paper over."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator
from typing import Any

from cpmmd.data.files.dates import DateStyle
from cpmmd.data.files.frames import polars, reading
from cpmmd.data.files.limit import FileLimit, text_numbers
from cpmmd.data.files.sample import FileSample
from cpmmd.data.files.source import Source
from cpmmd.data.files.typing import NULLS, infer_types
from cpmmd.errors import InputError, Setting, name_some

SEPARATORS = (",", ";", "\t", "|")
BOMS = {b"\xff\xfe": "UTF-16", b"\xfe\xff": "UTF-16"}


def read_delimited(source: Source, separator: str, limit: FileLimit, text: tuple[str, ...], dates: DateStyle) -> FileSample:
    """Read a table of separated values; its first line names the columns unless it is all numbers."""
    _check_text(source, limit)
    header, separator = _header(source, separator)
    named = not _is_data(header)
    names = header if named else [str(i) for i in range(len(header))]
    _check_names(names, source.label)
    frame = _parse(source, separator, len(names), named)
    frame.columns = names
    frame = _with_text(frame, source, separator, named, [name for name in names if name in text])
    notes = [] if named else [f"the first line of {source.label} is numbers: read as data, columns are called 0, 1, ..."]
    if len(frame) == 0:
        raise InputError(f"{source.label} has a header and no rows. Check how it was written.")
    if frame[names[-1]].null_count():  # the reader fills lines that are too short
        _check_even(source, separator, len(names))
        frame = _without_blank_rows(frame, source.label, notes)
    frame = _without_row_numbers(frame, source.label, notes)
    return infer_types(frame, source.label, text, dates, notes)


def read_json_lines(source: Source, limit: FileLimit, text: tuple[str, ...], dates: DateStyle) -> FileSample:
    """Read one JSON object a line."""
    head = _check_text(source, limit)
    if not head.strip():
        raise InputError(f"{source.label} is empty. Check how it was written.")
    if head.lstrip().startswith(b"["):
        raise InputError(
            f"{source.label} must hold one JSON object a line. It holds a list; write its items on lines of their own."
        )
    with reading(source.label, "JSON lines"):
        frame = polars().read_ndjson(source.native, infer_schema_length=None)
    return infer_types(frame, source.label, text, dates, [])


def _check_text(source: Source, limit: FileLimit) -> bytes:
    head = source.head()
    for mark, name in BOMS.items():
        if head.startswith(mark):
            raise InputError(f"{source.label} must be UTF-8 text. It is {name}; save it as UTF-8 (iconv -f {name} -t UTF-8).")
    if b"\x00" in head:
        raise InputError(
            "{label} is not text: it holds NUL bytes. Check the file, or say its format with {setting}.",
            file=source.label,
            label=source.label,
            setting=Setting("format"),
        )
    if b"\r" in head and b"\n" not in head:
        raise InputError(f"{source.label} has line ends of old Macs. Convert them with: tr '\\r' '\\n'")
    limit.check_numbers(text_numbers(source.size, head), source.label, besides=source.size)
    return head


def _not_utf8(source: Source, error: UnicodeDecodeError) -> InputError:
    byte = error.object[error.start]
    return InputError(
        f"{source.label} must be UTF-8 text. It has the byte 0x{byte:02x}, which UTF-8 does not allow there; if it was "
        "written in Latin-1, convert it with: iconv -f LATIN1 -t UTF-8"
    )


def _records(source: Source, separator: str) -> Iterator[list[str]]:
    """Return the fields of each line, as Python's own reader sees them."""
    with source.open() as file, io.TextIOWrapper(file, encoding="utf-8-sig", newline="") as text:
        yield from csv.reader(text, delimiter=separator)


def _header(source: Source, separator: str) -> tuple[list[str], str]:
    """Return the first line and the separator: the usual one, or another where that leaves a single column."""
    try:
        first = next(_records(source, separator), [])
        if len(first) <= 1:
            others = {s: next(_records(source, s), []) for s in SEPARATORS}
            separator = max(others, key=lambda s: (len(others[s]), s == separator))
            first = others[separator]
    except UnicodeDecodeError as error:
        raise _not_utf8(source, error) from error
    except csv.Error as error:
        raise InputError(
            f"The first line of {source.label} cannot be read ({error}). It must name the columns, each in fewer than 131072 "
            "characters."
        ) from error
    if not first:
        raise InputError(f"{source.label} begins with an empty line. The first line must name the columns.")
    return [name.strip() for name in first], separator


def _is_data(header: list[str]) -> bool:
    """Whether a first line is numbers; 0, 1, 2, ... are the names that pandas gives to columns without any."""
    if header == [str(i) for i in range(len(header))]:
        return False
    try:
        return all(float(name) is not None for name in header)
    except ValueError:
        return False


def _check_names(names: list[str], label: str) -> None:
    twice = sorted({name for name in names if names.count(name) > 1}) if len(set(names)) < len(names) else []
    if twice:
        raise InputError(f"Column names must be unique. {label} has {name_some(twice)} more than once; rename or remove columns.")


def _parse(source: Source, separator: str, width: int, named: bool) -> Any:
    pl = polars()
    try:
        frame = pl.read_csv(
            source.native,
            separator=separator,
            has_header=named,
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
        raise InputError(f"{source.label} has a first line of {width} names over {frame.width} columns. Check its quotes.")
    return frame


def _with_text(frame: Any, source: Source, separator: str, named: bool, text: list[str]) -> Any:
    """Return the frame with the columns that were called text as they are written: only an empty field is missing there."""
    if not text:
        return frame
    pl = polars()
    places = [frame.columns.index(name) for name in text]
    with reading(source.label, "a table of separated values"):
        raw = pl.read_csv(source.native, separator=separator, has_header=named, columns=places, infer_schema=False)
    columns = [series.str.strip_chars() for series in raw]
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
        raise _not_utf8(source, error) from error
    except csv.Error as error:
        raise InputError(f"{source.label} cannot be read as a table ({error}). Check its quotes.") from error


def _without_blank_rows(frame: Any, label: str, notes: list[str]) -> Any:
    """Leave out lines without any value; in a single column such a line is a missing value."""
    if frame.width < 2:
        return frame
    kept = frame.filter(~polars().all_horizontal(polars().all().is_null()))
    if 0 < len(kept) < len(frame):
        notes.append(f"{len(frame) - len(kept)} blank lines of {label} are left out")
        return kept
    return frame


def _without_row_numbers(frame: Any, label: str, notes: list[str]) -> Any:
    """Leave out the nameless column of row numbers that pandas writes first."""
    if "" not in frame.columns:
        return frame
    first, counted = frame[frame.columns[0]], polars().int_range(len(frame), eager=True)
    if first.name == "" and frame.width > 1 and first.dtype.is_integer() and first.eq_missing(counted).all():
        notes.append(f"the nameless first column of {label} counts the rows: left out")
        return frame.drop("")
    number = frame.columns.index("") + 1
    raise InputError(f"Every column must have a name. Number {number} of {label} has none; name it, or remove it.")
