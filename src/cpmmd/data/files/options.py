"""How files are to be read, and the formats that there are."""

from __future__ import annotations

import codecs
from dataclasses import dataclass, field

from cpmmd.core import validation
from cpmmd.data.files.dates import DateStyle
from cpmmd.data.files.limit import FileLimit, file_limit
from cpmmd.errors import InputError, unknown_name

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
    """How files are to be read.

    Attributes
    ----------
    format
        One of ``FORMATS``; None goes by the name, or by the first bytes where there is none.
    text
        Columns that are text even where their values look like numbers.
    dates
        How dates are written besides 2024-12-31.
    decimal
        What stands between a number and its fraction, ``"."`` or ``","``.
    encoding
        Of text files, by a name that Python knows.
    """

    format: str | None = None
    limit: FileLimit = field(default_factory=file_limit)
    text: tuple[str, ...] = ()
    dates: DateStyle = field(default_factory=DateStyle)
    decimal: str = "."
    encoding: str = UTF8

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
