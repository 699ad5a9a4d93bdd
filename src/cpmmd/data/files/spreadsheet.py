"""Excel workbooks: one sheet, its first row the names, cells as they are."""

from __future__ import annotations

import warnings
import zipfile
from collections.abc import Iterator
from datetime import date, datetime, timedelta
from itertools import chain
from typing import Any

from cpmmd.core.installation import missing_extra
from cpmmd.data.files.frames import polars, reading
from cpmmd.data.files.options import ReadOptions
from cpmmd.data.files.sample import FileSample, infer_types
from cpmmd.data.files.source import Source
from cpmmd.data.files.text import check_names, column_names, without_blank_rows, without_index
from cpmmd.errors import InputError, name_some, unknown_name

WHAT = "an Excel workbook"
LARGEST = 2**63  # whole numbers beyond it are kept as fractions
Cells = tuple[Any, ...]


def read_xlsx(source: Source, options: ReadOptions) -> FileSample:
    """Read a sheet: the one that is named (``file.xlsx:sheet``), or the only one that holds anything."""
    openpyxl = _openpyxl()
    with reading(source.label, WHAT), source.open() as file, warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of styles and validations, which are no part of the values
        options.limit.check(sum(member.file_size for member in zipfile.ZipFile(file).infolist()), source.label)
        book = openpyxl.load_workbook(file, read_only=True, data_only=True)
        name, rows = _sheet(book, source)
        label = source.label if source.member is None else f"{source.label}:{name}"
        return _sample(rows, label, options)


def _sheet(book: Any, source: Source) -> tuple[str, Iterator[Cells]]:
    names = [sheet.title for sheet in book.worksheets]
    if source.member is not None:
        if source.member not in names:
            raise unknown_name(f"sheet of {source.label}:", source.member, names)
        names = [source.member]
    full = [name for name in names if next(_rows(book[name]), None) is not None]
    if not full:
        raise InputError(f"{source.label} holds no values. Check how it was written.")
    if len(full) > 1:
        raise InputError(
            f"{source.label} holds {len(full)} sheets: {name_some(full)}. Say which one holds the sample, as in "
            f"{source.label}:{full[0]}"
        )
    return full[0], _rows(book[full[0]])


def _rows(sheet: Any) -> Iterator[Cells]:
    """Yield the rows from the first one with a value on."""
    rows: Iterator[Cells] = sheet.iter_rows(values_only=True)
    first = next((row for row in rows if any(cell is not None for cell in row)), None)
    return iter(()) if first is None else chain([first], rows)


def _sample(rows: Iterator[Cells], label: str, options: ReadOptions) -> FileSample:
    table = [list(row) for row in rows]
    width = max(_filled(row) for row in table)
    table = [[*row, *[None] * width][:width] for row in table]
    names, named = column_names(["" if cell is None else str(cell).strip() for cell in table[0]])
    check_names(names, label)
    body = table[1:] if named else table
    if not body:
        raise InputError(f"{label} has a header and no rows. Check how it was written.")
    columns = {name: _column(list(values)) for name, values in zip(names, zip(*body, strict=True), strict=True)}
    notes = [] if named else [f"the first row of {label} is numbers: read as data, columns are called 0, 1, ..."]
    frame = without_blank_rows(polars().DataFrame(columns), label, notes)
    return infer_types(without_index(frame, label, notes), label, options, notes)


def _filled(row: list[Any]) -> int:
    """Return how many cells there are up to the last one with a value."""
    return max((i for i, cell in enumerate(row, start=1) if cell is not None), default=0)


def _column(cells: list[Any]) -> Any:
    """Return a nameless column of one type; of several it is text, which is looked at as the text of any file."""
    pl = polars()
    cells = [cell.total_seconds() / 86_400 if isinstance(cell, timedelta) else cell for cell in cells]
    kinds = {_kind(cell) for cell in cells if cell is not None}
    if kinds <= {int, float} and kinds:
        whole = kinds == {int} and all(cell is None or abs(cell) < LARGEST for cell in cells)
        numbers = cells if whole else [None if cell is None else float(cell) for cell in cells]
        return pl.Series("", numbers, dtype=pl.Int64 if whole else pl.Float64)
    if kinds == {bool}:
        return pl.Series("", cells, dtype=pl.Boolean)
    if kinds == {datetime}:
        days = all(cell is None or not isinstance(cell, datetime) or cell == _midnight(cell) for cell in cells)
        return pl.Series("", [_moment(cell) for cell in cells], dtype=pl.Datetime("us")).cast(pl.Date if days else pl.Datetime)
    return pl.Series("", [None if cell is None else str(cell) for cell in cells], dtype=pl.String)


def _kind(cell: Any) -> type:
    return next((kind for kind in (bool, int, float) if isinstance(cell, kind)), datetime if isinstance(cell, date) else str)


def _midnight(moment: datetime) -> datetime:
    return moment.replace(hour=0, minute=0, second=0, microsecond=0)


def _moment(cell: Any) -> datetime | None:
    return cell if cell is None or isinstance(cell, datetime) else datetime(cell.year, cell.month, cell.day)


def _openpyxl() -> Any:
    try:
        import openpyxl
    except ImportError as error:
        raise missing_extra("Reading Excel files", "openpyxl", "files") from error
    return openpyxl
