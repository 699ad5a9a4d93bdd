"""Excel workbooks: one sheet, its first row the names, cells as they are."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Callable, Iterator
from datetime import date, datetime, time, timedelta
from itertools import chain
from typing import TYPE_CHECKING, Any

from cpmmd.data.files.options import ReadOptions
from cpmmd.data.files.sample import FileSample, infer_types
from cpmmd.data.files.source import Source, package, polars, reading
from cpmmd.data.files.text import column_names, without_filling
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from polars import Series

WHAT = "an Excel workbook"
LARGEST = 2**63  # whole numbers beyond it are kept as fractions
Cell = Any  # None, a boolean, a number, text, a date, a moment or a duration


def read_xlsx(source: Source, options: ReadOptions) -> FileSample:
    """Read a sheet: the one that is named (``file.xlsx:sheet``), or the only one that holds anything."""
    openpyxl = package("openpyxl", "Reading Excel files", "files")
    with reading(source.label, WHAT), source.open() as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and validations, which are no part of the values
        options.limit.check(sum(member.file_size for member in zipfile.ZipFile(file).infolist()), source.label)
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        titles = [sheet.title for sheet in book.worksheets]
        asked = titles if source.member is None else [source.choose(titles, "sheet", "sheets")]
        name = source.choose([title for title in asked if next(_rows(book[title]), None) is not None], "sheet", "values")
        label = source.label if source.member is None else f"{source.label}:{name}"
        return _sample(_rows(book[name]), label, options)


def _rows(sheet: Any) -> Iterator[tuple[Cell, ...]]:
    """Yield the rows from the first one with a value on."""
    rows: Iterator[tuple[Cell, ...]] = sheet.iter_rows(values_only=True)
    first = next((row for row in rows if any(cell is not None for cell in row)), None)
    return iter(()) if first is None else chain([first], rows)


def _sample(rows: Iterator[tuple[Cell, ...]], label: str, options: ReadOptions) -> FileSample:
    table = list(rows)
    width = max(i for row in table for i, cell in enumerate(row, start=1) if cell is not None)
    table = [(*row, *[None] * width)[:width] for row in table]
    names, named = column_names(["" if cell is None else str(cell).strip() for cell in table[0]], label)
    body = table[1:] if named else table
    if not body:
        raise InputError(f"{label} has a header and no rows. Check how it was written.")
    columns = {name: _column(values) for name, values in zip(names, zip(*body, strict=True), strict=True)}
    notes = [] if named else [f"the first row of {label} is numbers: read as data, columns are called 0, 1, ..."]
    return infer_types(without_filling(polars().DataFrame(columns), label, notes), label, options, notes)


def _column(values: tuple[Cell, ...]) -> Series:
    """Return a nameless column of one type; of several it is text, which is looked at as the text of any file."""
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
