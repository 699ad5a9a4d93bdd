"""Excel workbooks: one sheet, its first row the names, cells as they are."""

from __future__ import annotations

import re
import warnings
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from itertools import chain, dropwhile
from typing import TYPE_CHECKING, Any, BinaryIO

from cpmmd.data.files.input_file import BYTES_A_COLUMN, FileLimit, InputFile, package, polars, reading
from cpmmd.data.files.options import ReadOptions
from cpmmd.data.files.sample import FileSample, infer_types
from cpmmd.data.files.text import column_names, without_filling
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from polars import Series

WHAT = "an Excel workbook"
LARGEST = 2**63  # whole numbers beyond it are kept as fractions
SHEETS, STRINGS = "xl/worksheets/", "xl/sharedStrings.xml"
ROW = re.compile(rb"<(?:\w+:)?row[\s/>]")
END_OF_ROW = re.compile(rb"</(?:\w+:)?row\s*>")
# Bytes that openpyxl takes for each tag and attribute: of a row while it is read; between rows, where tags stay; of the strings;
# of all other parts, whose tags become objects.
IN_A_ROW, BETWEEN_ROWS, OF_STRINGS, OF_PARTS = 500, 150, 60, 1000
ROW_BYTES, CELL_BYTES, TEXT_BYTES = 64, 48, 50  # of Python's objects
Cell = Any  # None, a boolean, a number, text, a date, a moment or a duration


def read_xlsx(file: InputFile, options: ReadOptions) -> FileSample:
    """Read a sheet: the one that is named (``file.xlsx:sheet``), or the only one that holds anything."""
    openpyxl = package("openpyxl", "Reading Excel files", "files")
    with reading(file.label, WHAT), file.open() as stream, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and validations, which are no part of the values
        _check_parts(stream, file.label, options.limit)
        book = openpyxl.load_workbook(stream, read_only=True, data_only=True, keep_links=False)
        titles = [sheet.title for sheet in book.worksheets]
        asked = titles if file.member is None else [file.choose(titles, "sheet", "sheets")]
        name = file.choose([title for title in asked if next(_rows(book[title]), None) is not None], "sheet", "values")
        label = file.label if file.member is None else f"{file.label}:{name}"
        return _sample(_kept(_rows(book[name]), label, options.limit), label, options)


def _check_parts(stream: BinaryIO, label: str, limit: FileLimit) -> None:
    """Refuse a workbook whose parts would take more than the limit once openpyxl has read them."""
    archive = zipfile.ZipFile(stream)
    needed = 0.0
    limit.check(sum(member.file_size for member in archive.infolist()), label)
    for member in archive.infolist():
        content = archive.read(member)
        if member.filename.startswith(SHEETS):
            needed += _sheet_bytes(content, limit.bytes)
        elif member.filename == STRINGS:
            needed += OF_STRINGS * _marks(content)
        elif content[:3].strip(b"\xef\xbb\xbf\xff\xfe\x00 \t\r\n").startswith(b"<"):  # XML, not a picture
            needed += OF_PARTS * _marks(content)
        limit.check(needed, label)


def _sheet_bytes(content: bytes, most: float) -> int:
    """Return the bytes of a sheet's tags while it is read: of the longest row, and of all that stand between rows.

    Counting stops once they are more than ``most``.
    """
    start, longest, between = 0, 0, 0
    for row in chain(ROW.finditer(content), [None]):
        end = len(content) if row is None else row.start()
        close = END_OF_ROW.search(content, start, end)
        split = start if close is None else close.start()
        longest = max(longest, _marks(content, start, split))
        between += _marks(content, split, end)
        needed = IN_A_ROW * longest + BETWEEN_ROWS * between
        if needed > most:
            break
        start = end
    return needed


def _marks(content: bytes, start: int = 0, end: int | None = None) -> int:
    """Return the number of tags and attributes, or a little more."""
    return content.count(b"<", start, end) + content.count(b"=", start, end)


def _rows(sheet: Any) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows from the first one with a value on."""
    sheet.reset_dimensions()  # those that a file states cut off what is outside of them
    rows: Iterator[tuple[Cell, ...]] = sheet.iter_rows(values_only=True)
    return dropwhile(lambda row: all(cell is None for cell in row), rows)


def _kept(rows: Iterator[tuple[Cell, ...]], label: str, limit: FileLimit) -> list[tuple[Cell, ...]]:
    """Return the rows up to their last value, refused as soon as they take more than the limit."""
    kept, width, needed = list[tuple[Cell, ...]](), 0, 0
    for row in rows:
        filled = next((i for i in range(len(row), 0, -1) if row[i - 1] is not None), 0)
        kept.append(row[:filled])
        width = max(width, filled)
        needed += ROW_BYTES + CELL_BYTES * filled + sum(TEXT_BYTES + 2 * len(cell) for cell in kept[-1] if isinstance(cell, str))
        limit.check_numbers(len(kept) * width, label, besides=needed)
    return kept


def _sample(table: list[tuple[Cell, ...]], label: str, options: ReadOptions) -> FileSample:
    width = max(map(len, table))
    options.limit.check(width * BYTES_A_COLUMN, label)
    header = [*table[0], *[None] * (width - len(table[0]))]
    names, named = column_names(["" if cell is None else str(cell).strip() for cell in header], label)
    body = table[1:] if named else table
    if not body:
        raise InputError(f"{label} has a header and no rows. Check how it was written.")
    columns = {name: _column([row[j] if j < len(row) else None for row in body]) for j, name in enumerate(names)}
    notes = [] if named else [f"the first row of {label} holds numbers: it is read as data, and columns are called 0, 1, ..."]
    return infer_types(without_filling(polars().DataFrame(columns), label, notes), label, options, notes)


def _column(values: list[Cell]) -> Series:
    """Return a nameless column of one type; values of several types become text, which is read like the text of any file."""
    pl = polars()
    convert: Callable[[Cell], object]
    cells: list[Cell] = [cell.total_seconds() / 86_400 if isinstance(cell, timedelta) else cell for cell in values]
    kinds = {_kind(cell) for cell in cells if cell is not None}
    if kinds == {int} and all(cell is None or abs(cell) < LARGEST for cell in cells):
        dtype, convert = pl.Int64, int
    elif kinds and kinds <= {int, float}:
        dtype, convert = pl.Float64, float
    elif kinds == {bool}:
        dtype, convert = pl.Boolean, bool
    elif kinds == {datetime}:
        days = all(not isinstance(cell, datetime) or cell.time() == time() for cell in cells)
        dtype, convert = (pl.Date, _day) if days else (pl.Datetime("us"), _moment)
    else:
        dtype, convert = pl.String, str
    return pl.Series("", [None if cell is None else convert(cell) for cell in cells], dtype=dtype)  # type: ignore[no-any-return]


def _kind(cell: Cell) -> type:
    return next((kind for kind in (bool, int, float) if isinstance(cell, kind)), datetime if isinstance(cell, date) else str)


def _moment(cell: date) -> datetime:
    return cell if isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)


def _day(cell: date) -> date:
    return cell.date() if isinstance(cell, datetime) else cell
