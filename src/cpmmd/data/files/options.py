"""How files are to be read: known formats, and dates in text.

ISO dates are always read as such, others only where the options say which number is the day.
"""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import TYPE_CHECKING

from cpmmd.core import validation
from cpmmd.data.files.input_file import FileLimit, file_limit, polars
from cpmmd.errors import InputError, ParameterReference, unknown_name

if TYPE_CHECKING:
    from polars import Series

SUFFIXES = {
    "csv": (".csv",),
    "tsv": (".tsv", ".tab"),
    "parquet": (".parquet", ".pq"),
    "arrow": (".arrow", ".feather", ".ipc"),
    "npy": (".npy",),
    "npz": (".npz",),
    "jsonl": (".jsonl", ".ndjson"),
    "json": (".json",),
    "xlsx": (".xlsx", ".xlsm"),
}
EXTENSIONS = {suffix: kind for kind, suffixes in SUFFIXES.items() for suffix in suffixes}
TEXT = ("csv", "tsv", "jsonl", "json")
FORMATS = tuple(SUFFIXES)
UTF8 = "utf-8"

ISO = r"^\d{4}[-/]\d{1,2}[-/]\d{1,2}(\D|$)"
DAY_FIRST = r"^\d{1,2}[/.-]\d{1,2}[/.-]\d{4}(\D|$)"
TIME = r"(?:(?P<gap>[T ])\d{1,2}:\d{2}(?P<seconds>:\d{2}(?:\.\d+)?)?(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?)?$"
PARTS = {
    ISO: r"^\d{4}(?P<mark>[-/])\d{1,2}(?P=mark)\d{1,2}" + TIME,
    DAY_FIRST: r"^\d{1,2}(?P<mark>[/.-])\d{1,2}(?P=mark)\d{4}" + TIME,
}
MOST_FORMS = 8  # of one column: with and without time, seconds, parts of them
EARLIEST = 100  # earlier years are misread ones of two digits
EXAMPLE = datetime(2024, 12, 31, 10, 30, 15)
NO_DATE = (
    "A date format must have day, month and year in strptime codes, such as %m/%d/%Y, with a separator between them (digits "
    "alone are numbers). Got {form!r} instead; change {format}."
)


@dataclass(frozen=True)
class DateStyle:
    """How dates are written besides 2024-12-31."""

    dayfirst: bool = False  # read 1/2/2024, 1.2.2024 and 1-2-2024 as the first of February
    format: str | None = None  # the form of dates, in the codes of ``strptime``, such as ``%m/%d/%Y``

    def __post_init__(self) -> None:
        if self.format is None:
            return
        setting = ParameterReference("date_format")
        if self.dayfirst:
            twice = "There can be only one date format. Got both {dayfirst} and {format}; set one of them."
            raise InputError(twice, dayfirst=ParameterReference("dayfirst"), format=setting)
        if not _says_the_day(self.format):
            raise InputError(NO_DATE, form=self.format, format=setting)

    def read(self, values: Series) -> Series | None:
        """Return a text column as dates, missing where a value is not a date; None where most values are not."""
        present = len(values) - values.null_count()
        read = None if self.format is None else _parse(values, self.format)
        if read is not None:
            read = read.zip_with(
                read.dt.year() >= EARLIEST, read.clear(len(read))
            )  # not ``set``, which polars 1.27 lacks for dates
            if 2 * (len(read) - read.null_count()) > present:
                return read
        for look in (ISO, DAY_FIRST) if self.dayfirst or read is not None else (ISO,):
            alike = values.str.contains(look)
            if 2 * alike.sum() > present:
                return read if read is not None and look == DAY_FIRST else _by_looks(values.set(~alike, None), PARTS[look])
        return None


def _by_looks(values: Series, parts: str) -> Series:
    """Return the dates of one kind, form by form: that of the first value, then that of the first value of another form."""
    pl = polars()
    read: Series | None = None
    timed, zones = False, set()
    for _ in range(MOST_FORMS):
        left = values if read is None else values.set(read.is_not_null(), None)
        if left.null_count() == len(left) or (form := _form(left.drop_nulls()[0], parts)) is None:
            break
        zones.add(form.endswith("z"))
        if len(zones) > 1:  # with and without a zone in one column: the moments of the latter are unknown
            break
        timed = timed or "%H" in form
        found = _parse(left, form).cast(pl.Datetime("us", "UTC" if form.endswith("z") else None))
        if found.null_count() == len(found):
            break
        read = found if read is None else read.zip_with(read.is_not_null(), found)
    if read is None:
        read = values.clear(len(values)).cast(pl.Date)
    return read if timed else read.cast(pl.Date)


def _form(value: str, parts: str) -> str | None:
    """Return the codes of one value's form, such as ``%Y-%m-%d %H:%M:%S%.f``."""
    found = re.match(parts, value)
    if found is None:
        return None
    codes = found["mark"].join(("%Y", "%m", "%d") if value[:4].isdigit() else ("%d", "%m", "%Y"))
    if found["gap"]:
        codes += f"{found['gap']}%H:%M" + (":%S%.f" if found["seconds"] else "")
    return codes + ("%#z" if found["zone"] else "")


def _parse(values: Series, form: str) -> Series:
    """Return text in one form as dates, or as moments where the form says the hour."""
    pl = polars()
    hour = "%H" in form or EXAMPLE.strftime(form) != EXAMPLE.replace(hour=22, minute=1, second=2).strftime(form)
    return values.str.strptime(pl.Datetime("us") if hour else pl.Date, form, strict=False)


def _says_the_day(form: str) -> bool:
    """Whether a date written in this form is read as the same day, and not as a number."""
    try:
        written = EXAMPLE.strftime(form)
        read = _parse(polars().Series([written]), form)[0]
    except Exception:  # an unknown code can raise anything, here or in polars
        return False
    return not written.strip().isdigit() and read is not None and (read.year, read.month, read.day) == (2024, 12, 31)


@dataclass(frozen=True)
class ReadOptions:
    """How files are to be read."""

    format: str | None = None  # one of ``FORMATS``; None goes by the name, or by the first bytes where there is none
    limit: FileLimit = field(default_factory=file_limit)
    text: tuple[str, ...] = ()  # columns that are text even where their values look like numbers
    dates: DateStyle = field(default_factory=DateStyle)  # how dates are written besides 2024-12-31
    decimal: str = "."  # what stands between a number and its fraction, ``"."`` or ``","``
    encoding: str = UTF8  # of text files, by a name that Python knows

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise unknown_name("format", self.format, FORMATS)
        validation.one_of("decimal", self.decimal, (".", ","))
        if not _is_encoding(self.encoding):
            rule = "must be the name of a text encoding, such as latin-1, cp1252 or utf-16"
            raise validation.wrong("encoding", rule, self.encoding)

    @property
    def is_utf8(self) -> bool:
        """Whether text needs no decoding first."""
        return codecs.lookup(self.encoding).name in (UTF8, "ascii", "utf-8-sig")


def _is_encoding(name: str) -> bool:
    """Whether a name is that of an encoding of text; Python also knows some of bytes, such as base64."""
    try:
        b"a".decode(name)
    except UnicodeError:  # of two bytes each
        return True
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        return False
    return True
