"""How files are to be read, and the formats that there are."""

from __future__ import annotations

import codecs
import re
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any

from cpmmd.core import validation
from cpmmd.data.files.frames import polars
from cpmmd.data.files.source import FileLimit, file_limit
from cpmmd.errors import InputError, Setting, unknown_name

# Dates in text: ISO ones always, others only once it is said which number is the day.


ISO = r"^\d{4}[-/]\d{1,2}[-/]\d{1,2}(\D|$)"
DAY_FIRST = r"^\d{1,2}[/.-]\d{1,2}[/.-]\d{4}(\D|$)"
TIME = r"(?:(?P<gap>[T ])\d{1,2}:\d{2}(?P<seconds>:\d{2}(?:\.\d+)?)?(?P<zone>Z|[+-]\d{2}(?::?\d{2})?)?)?$"
PARTS = {
    ISO: r"^\d{4}(?P<mark>[-/])\d{1,2}(?P=mark)\d{1,2}" + TIME,
    DAY_FIRST: r"^\d{1,2}(?P<mark>[/.-])\d{1,2}(?P=mark)\d{4}" + TIME,
}
MOST_FORMS = 8  # of one column: with and without time, seconds, parts of them
EARLIEST = 100  # a year before is one of two digits, misread
EXAMPLE = datetime(2024, 12, 31, 10, 30, 15)


@dataclass(frozen=True)
class DateStyle:
    """How dates are written besides 2024-12-31."""

    dayfirst: bool = False  # read 1/2/2024, 1.2.2024 and 1-2-2024 as the first of February
    format: str | None = None  # the form of dates, in the codes of ``strptime``, such as ``%m/%d/%Y``

    def __post_init__(self) -> None:
        if self.format is not None:
            _check(self.format, self.dayfirst)

    def read(self, values: Any) -> Any | None:
        """Return a text column as dates, missing where a value is none; None where most of them are none."""
        present = len(values) - values.null_count()
        read = None if self.format is None else _by_format(values, self.format)
        if read is not None and 2 * (len(read) - read.null_count()) > present:
            return read
        for look in (ISO, DAY_FIRST) if self.dayfirst or read is not None else (ISO,):
            alike = values.str.contains(look)
            if 2 * alike.sum() > present:
                return read if read is not None and look == DAY_FIRST else _by_looks(values.set(~alike, None), PARTS[look])
        return None


def _by_looks(values: Any, parts: str) -> Any:
    """Return the dates of one look: the forms are those of the first value, of the first that this form leaves, and so on."""
    pl = polars()
    read = None
    timed, zones = False, set()
    for _ in range(MOST_FORMS):
        left = values if read is None else values.set(read.is_not_null(), None)
        if left.null_count() == len(left) or (form := _form(left.drop_nulls()[0], parts)) is None:
            break
        zones.add(form.endswith("z"))
        if len(zones) > 1:  # with and without a zone in one column: nobody knows which moments the latter are
            break
        timed = timed or "%H" in form
        found = _parse(left, form).cast(pl.Datetime("us", "UTC" if form.endswith("z") else None))
        if found.null_count() == len(found):
            break
        read = found if read is None else read.zip_with(read.is_not_null(), found)
    if read is None:
        return pl.Series(values.name, [None] * len(values), dtype=pl.Date)
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


def _parse(values: Any, form: str) -> Any:
    pl = polars()
    return values.str.strptime(pl.Datetime("us") if _has_time(form) else pl.Date, form, strict=False)


def _by_format(values: Any, form: str) -> Any:
    read = _parse(values, form)
    return read.zip_with(read.dt.year() >= EARLIEST, read.clear(len(read)))  # polars 1.27 sets no dates to nothing


def _has_time(form: str) -> bool:
    """Whether a form says the hour."""
    return "%H" in form or EXAMPLE.strftime(form) != EXAMPLE.replace(hour=22, minute=1, second=2).strftime(form)


def _check(form: str, dayfirst: bool) -> None:
    if dayfirst:
        raise InputError(
            "Dates are in one form. Got both {dayfirst} and {format}; leave one out.",
            dayfirst=Setting("dayfirst"),
            format=Setting("date_format"),
        )
    if not _says_the_day(form):
        raise InputError(
            "A date's form must say day, month and year in the codes of strptime, such as %m/%d/%Y, with something between them "
            "(columns of digits are numbers). Got {form!r} instead; change {format}.",
            form=form,
            format=Setting("date_format"),
        )


def _says_the_day(form: str) -> bool:
    """Whether a date written in this form is read as the same day, and not as a number."""
    try:
        written = EXAMPLE.strftime(form)
        read = _parse(polars().Series([written]), form)[0]
    except Exception:  # whatever a code that is none brings about, here or in polars
        return False
    return not written.strip().isdigit() and read is not None and (read.year, read.month, read.day) == (2024, 12, 31)


EXTENSIONS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".npy": "npy",
    ".npz": "npz",
    ".jsonl": "jsonl",
    ".ndjson": "jsonl",
    ".json": "json",
    ".xlsx": "xlsx",
    ".xlsm": "xlsx",
}
TEXT = ("csv", "tsv", "jsonl", "json")
FORMATS = tuple(dict.fromkeys(EXTENSIONS.values()))
UTF8 = "utf-8"


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
        check_encoding(self.encoding)

    @property
    def is_utf8(self) -> bool:
        """Whether text needs no decoding first."""
        return codecs.lookup(self.encoding).name in (UTF8, "ascii", "utf-8-sig")


def check_encoding(name: str) -> None:
    """Refuse what is no encoding of text; Python also knows some of bytes, such as base64."""
    try:
        b"a".decode(name)
        known = True
    except UnicodeError:  # of two bytes each
        known = True
    except (LookupError, ValueError):  # ValueError: a NUL in the name
        known = False
    if not known:
        raise InputError(
            "{parameter} must be the name of a text encoding, such as latin-1, cp1252 or utf-16. Got {got!r} instead.",
            parameter="encoding",
            got=name,
        )
