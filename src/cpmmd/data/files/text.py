"""Tables in text: CSV and TSV, refused where lines or names do not fit; JSON, one object a line or a list of them.

Text is UTF-8 unless another encoding is named.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING

from cpmmd.core.text import pluralize
from cpmmd.data.files.input_file import BYTES_A_COLUMN, FileLimit, InputFile, column, in_chunks, polars, reading
from cpmmd.data.files.options import ReadOptions
from cpmmd.data.files.sample import RawFrame
from cpmmd.errors import InputError, ParameterReference, name_some

if TYPE_CHECKING:
    from polars import DataFrame

NAMELESS = ""
SEPARATORS = (",", ";", "\t", "|")
SPACE = b"\xef\xbb\xbf \t\r\n"
BOMS = (b"\xff\xfe", b"\xfe\xff")
TABLE = "a table of separated values"
NAME = re.compile(rb'"((?:[^"\\]|\\.)*)"\s*:')
BETWEEN = re.compile(r"[ \t\r\n]*")
LONGEST_LINE = 1 << 24  # bytes of JSON that are looked at together
BYTES_A_TEXT = 16  # of any value, which begins as text
BYTES_A_CONVERSION = 80  # of each row while the text of a column becomes numbers
BYTES_AN_OBJECT = 100  # of Python's, while a list is read
RECORDS = 'Write each row as {"a": 1, "b": 2}, in a list or on lines of their own (pandas: orient="records")'
NOT_DECODED = "{file} cannot be read as {encoding} ({reason}). Check {setting}."
NOT_UTF8 = (
    "Text must be UTF-8, or have a named encoding. {file} has the byte 0x{byte:02x}, which UTF-8 does not allow there; if it was "
    "written by an old program or Excel, try {latin} or {windows}."
)


def decoded(file: InputFile, options: ReadOptions) -> InputFile:
    """Return a file of text in UTF-8."""
    if options.is_utf8:
        return file
    options.limit.check(file.size, file.label)
    try:
        text = file.read().decode(options.encoding)
    except (UnicodeError, ValueError) as error:
        encoding, why = options.encoding, str(error)[:200]
        raise InputError(
            NOT_DECODED, file=file.label, encoding=encoding, reason=why, setting=ParameterReference("encoding")
        ) from error
    return InputFile(file.label, content=text.encode(errors="replace"))


def _check_text(file: InputFile, limit: FileLimit) -> bytes:
    """Return the beginning of a text file, refused where it is not text or too large."""
    head, label = file.head(), file.label
    if head.startswith(BOMS):
        utf16 = "Text must be UTF-8, or have a named encoding. {file} is UTF-16; set {setting}."
        raise InputError(utf16, file=label, setting=ParameterReference("encoding", "utf-16"))
    if b"\x00" in head:
        nul = "{file} is not text: it holds NUL bytes. Check the file, or set its {setting}."
        raise InputError(nul, file=label, setting=ParameterReference("format"))
    if b"\r" in head and b"\n" not in head:
        raise InputError(f"{label} has line endings of old Macs. Convert them with: tr '\\r' '\\n'")
    marks = sum(head.count(mark) for mark in (b",", b"\t", b";", b"\n"))  # about one a value
    limit.check_numbers(file.size * max(marks, 1) / max(len(head), 1), label, besides=file.size)
    return head


@contextmanager
def _in_utf8(label: str) -> Iterator[None]:
    """Turn bytes that are not UTF-8 into a sentence."""
    try:
        yield
    except UnicodeDecodeError as error:
        latin, windows = ParameterReference("encoding", "latin-1"), ParameterReference("encoding", "cp1252")
        raise InputError(NOT_UTF8, file=label, byte=error.object[error.start], latin=latin, windows=windows) from error


def column_names(header: list[str], label: str, decimal: str = ".") -> tuple[list[str], bool]:
    """Return the names in a first line, or positions where it holds numbers; and whether it held names."""
    named = not _is_data([name.replace(decimal, ".") for name in header])
    names = header if named else [str(i) for i in range(len(header))]
    if twice := sorted(name for name, count in Counter(names).items() if name and count > 1):
        raise InputError(f"Column names must be unique. {label} has {name_some(twice)} more than once; rename or remove columns.")
    if NAMELESS in names[1:] or names == [NAMELESS]:
        number = names.index(NAMELESS, 1 if len(names) > 1 else 0) + 1
        raise InputError(f"Every column must have a name. Column number {number} of {label} has no name; name it, or remove it.")
    return names, named


def _is_data(header: list[str]) -> bool:
    """Whether a first line is data; 0, 1, 2, ... are the names that pandas gives to columns without names."""
    names = header[1:] if header[:1] == [NAMELESS] else header  # beside an index without a name
    if names == [str(i) for i in range(len(names))]:
        return False
    try:
        return all(float(name) is not None for name in header)
    except ValueError:
        return False


def without_filling(frame: DataFrame, label: str, notes: list[str]) -> DataFrame:
    """Leave out blank rows, and a nameless first column that numbers or names the rows, as pandas and R write it.

    In a single column a blank row is a missing value. Whole numbers are an index even where they repeat, as in concatenated
    tables; other values must differ in each row.
    """
    empty = column(frame, frame.columns[0]).is_null()
    for name in frame.columns[1:]:
        if not empty.any():
            break
        empty &= column(frame, name).is_null()
    if frame.width > 1 and 0 < (blank := int(empty.sum())) < len(frame):
        notes.append(f"{pluralize(blank, 'blank line')} of {label} {'is' if blank == 1 else 'are'} left out")
        frame = frame.filter(~empty)
    if frame.columns[0] != NAMELESS:
        return frame
    pl, first = polars(), frame[NAMELESS]
    if first.dtype == pl.String:
        whole = first.str.strip_chars().cast(pl.Int64, strict=False)
        first = whole if whole.null_count() == first.null_count() else first
    if not first.dtype.is_integer() and first.n_unique() < len(first):
        index = "has no name, and is not an index, because its values repeat; name it, or remove it."
        raise InputError(f"Every column must have a name. The first of {label} {index}")
    counts = first.dtype.is_integer() and first.eq_missing(pl.int_range(len(frame), eager=True)).all()
    is_index = "numbers the rows" if counts else "is an index"
    notes.append(f"the nameless first column of {label} {is_index}, and is left out")
    return frame.drop(NAMELESS)


def read_delimited(file: InputFile, separator: str, options: ReadOptions) -> RawFrame:
    """Read a table of separated values; its first line names the columns unless it is all numbers."""
    label = file.label
    _check_text(file, options.limit)
    header, separator = _header(file, separator, options.decimal)
    names, named = column_names(header, label, options.decimal)
    _check_size(file, separator, len(names), options.limit)
    frame = _parse(file, separator, len(names), named)
    frame.columns = names
    notes = [] if named else [f"the first line of {label} holds numbers: it is read as data, and columns are called 0, 1, ..."]
    if len(frame) == 0:
        raise InputError(f"{label} has a header and no rows. Check how it was written.")
    if frame[names[-1]].null_count():  # the reader fills lines that are too short
        _check_even(file, separator, len(names))
    return RawFrame(without_filling(frame, label, notes), label, tuple(notes))


def _records(file: InputFile, separator: str) -> Iterator[list[str]]:
    """Return the fields of each line, as Python's own reader sees them."""
    with file.open() as stream, io.TextIOWrapper(stream, encoding="utf-8-sig", newline="") as text:
        yield from csv.reader(text, delimiter=separator)


def _header(file: InputFile, separator: str, decimal: str) -> tuple[list[str], str]:
    """Return the first line and the separator: the usual one, or another where that leaves a single column.

    The decimal separator separates columns only where nothing else does.
    """
    try:
        with _in_utf8(file.label):
            first = [] if separator == decimal else next(_records(file, separator), [])
            if len(first) <= 1:
                others = {s: next(_records(file, s), []) for s in SEPARATORS}
                usual, fields = separator, {s: len(line) for s, line in others.items()}
                separator = max(others, key=lambda s: (fields[s] > 1 and s != decimal, fields[s], s != decimal, s == usual))
                first = others[separator]
    except csv.Error as error:
        raise InputError(
            f"The first line of {file.label} cannot be read ({error}). It must name the columns, each in fewer than 131072 "
            "characters."
        ) from error
    if not first:
        raise InputError(f"{file.label} begins with an empty line. The first line must name the columns.")
    return [name.strip() for name in first], separator


def _parse(file: InputFile, separator: str, width: int, named: bool) -> DataFrame:
    """Return all columns as text."""
    pl = polars()
    try:
        frame: DataFrame = pl.read_csv(
            file.native,
            separator=separator,
            has_header=named,
            infer_schema=False,  # polars would take 007 for 7, and 01/02/2024 for the first of February
        )
    except pl.exceptions.NoDataError:
        return pl.DataFrame({str(i): [] for i in range(width)})  # type: ignore[no-any-return]
    except (pl.exceptions.PolarsError, OSError) as error:
        _check_even(file, separator, width)
        with reading(file.label, TABLE):
            raise error
    if frame.width != width:
        _check_even(file, separator, width)
        over = f"a first line of {pluralize(width, 'name')} over {pluralize(frame.width, 'column')}"
        raise InputError(f"{file.label} has {over}. Check its quotes.")
    return frame


def _check_size(file: InputFile, separator: str, width: int, limit: FileLimit) -> None:
    """Refuse a table of more values than the limit, counted in all of the text; lines are as long as the first or refused."""
    fields = lines = 0
    with file.open() as stream:
        for chunk in in_chunks(stream.read):
            lines += chunk.count(b"\n")
            fields += chunk.count(separator.encode()) + chunk.count(b"\n")
    besides = file.size + width * BYTES_A_COLUMN
    limit.check_numbers(fields, file.label, besides=besides)
    limit.check(fields * BYTES_A_TEXT + lines * BYTES_A_CONVERSION + besides, file.label)
    if width * lines > 2 * fields:  # quoted line ends, or short lines that the reader would fill
        _check_even(file, separator, width)


def _check_even(file: InputFile, separator: str, width: int) -> None:
    """Name the first line that does not have as many fields as the first."""
    try:
        with _in_utf8(file.label):
            for number, record in enumerate(_records(file, separator), start=1):
                if record and len(record) != width:
                    raise InputError(
                        f"Every line must have as many fields as the first. Line {number} of {file.label} has {len(record)}, "
                        f"the first has {width}; check that line for a missing or unquoted {separator!r}."
                    )
    except csv.Error as error:
        raise InputError(f"{file.label} cannot be read as a table ({error}). Check its quotes.") from error


def read_json(file: InputFile, options: ReadOptions) -> RawFrame:
    """Read objects, a row each; the first character tells whether they are a list."""
    start = _check_text(file, options.limit).lstrip(SPACE)[:1]
    if not start:
        raise InputError(f"{file.label} is empty. Check how it was written.")
    _check_objects(file, options.limit, listed=start == b"[")
    lines = io.BytesIO(_as_lines(file)) if start == b"[" else file.native
    with reading(file.label, "JSON lines"):
        frame: DataFrame = polars().read_ndjson(lines, infer_schema_length=None)
    if len(frame) == 1 and all(dtype.is_nested() for dtype in frame.dtypes):
        raise InputError(f"{file.label} holds columns, not rows. {RECORDS}.")
    return RawFrame(frame, file.label)


def _check_objects(file: InputFile, limit: FileLimit, *, listed: bool) -> None:
    """Refuse objects that make more values than the limit: each name in any of them is a column, with a value in every row."""
    names, rows, nested = set[bytes](), 0, 0
    with file.open() as stream:
        for line in iter(lambda: stream.readline(LONGEST_LINE), b""):
            names.update(NAME.findall(line))
            rows += line.count(b"{")
            nested += line.count(b"[")
            needed = file.size + len(names) * BYTES_A_COLUMN + (rows + nested if listed else nested) * BYTES_AN_OBJECT
            limit.check_numbers(rows * len(names), file.label, besides=needed)


def _as_lines(file: InputFile) -> bytes:
    """Return the items of a list on lines of their own, which is what the strict reader takes."""
    decoder = json.JSONDecoder(parse_constant=lambda _: None)  # NaN is not JSON: missing
    with reading(file.label, "JSON"), _in_utf8(file.label):
        content = file.read().decode("utf-8-sig")
        lines, place = list[bytes](), content.index("[") + 1
        while (place := BETWEEN.match(content, place).end()) < len(content) and (lines or content[place] != "]"):  # type: ignore[union-attr]
            item, place = decoder.raw_decode(content, place)
            if not isinstance(item, dict):
                raise InputError(
                    f"A JSON list must hold objects, one for each row. Item {len(lines)} of {file.label} (counted from 0) is "
                    f"{type(item).__name__}. {RECORDS}."
                )
            lines.append(json.dumps(item).encode())
            place = BETWEEN.match(content, place).end()  # type: ignore[union-attr]
            if content[place : place + 1] == "]":
                break
            if content[place : place + 1] != ",":
                raise json.JSONDecodeError("Expecting ',' delimiter", content, place)
            place += 1
        if content[place + 1 :].strip() or content[place : place + 1] != "]":
            raise json.JSONDecodeError("Extra data" if place < len(content) else "Expecting ']'", content, place)
    if not lines:
        raise InputError(f"{file.label} is an empty list. Check how it was written.")
    return b"\n".join(lines)
