"""From a path, or standard input, to a sample: which format, does it fit, read it."""

from __future__ import annotations

import difflib
import gzip
import stat
import sys
import zlib
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from cpmmd.core.text import bytes_in_words
from cpmmd.data.files.binary import read_arrow, read_npy, read_npz, read_parquet
from cpmmd.data.files.dates import DateStyle
from cpmmd.data.files.delimited import read_delimited, read_json_lines
from cpmmd.data.files.limit import FileLimit, file_limit
from cpmmd.data.files.sample import FileSample
from cpmmd.data.files.source import Source
from cpmmd.errors import InputError, Setting, unknown_name

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
}
TEXT = ("csv", "tsv", "jsonl")
FORMATS = tuple(dict.fromkeys(EXTENSIONS.values()))
STDIN = "-"
CHUNK = 1 << 20
GZIP = b"\x1f\x8b"


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
    """

    format: str | None = None
    limit: FileLimit = field(default_factory=file_limit)
    text: tuple[str, ...] = ()
    dates: DateStyle = field(default_factory=DateStyle)

    def __post_init__(self) -> None:
        if self.format is not None and self.format not in FORMATS:
            raise unknown_name("format", self.format, FORMATS)


READERS: dict[str, Callable[[Source, ReadOptions], FileSample]] = {
    "csv": lambda source, options: read_delimited(source, ",", options.limit, options.text, options.dates),
    "tsv": lambda source, options: read_delimited(source, "\t", options.limit, options.text, options.dates),
    "jsonl": lambda source, options: read_json_lines(source, options.limit, options.text, options.dates),
    "parquet": lambda source, options: read_parquet(source, options.limit),
    "arrow": lambda source, options: read_arrow(source, options.limit),
    "npy": lambda source, options: read_npy(source, options.limit),
    "npz": lambda source, options: read_npz(source, options.limit),
}


def read_file(name: str, options: ReadOptions | None = None) -> FileSample:
    """Read a sample from a file, ``-`` for standard input, or ``file.npz:array``.

    Examples
    --------
    >>> import pathlib, tempfile
    >>> file = pathlib.Path(tempfile.mkdtemp()) / "sizes.csv"
    >>> _ = file.write_text("size,colour\\n1.5,red\\n2.5,blue\\n")
    >>> read_file(str(file)).columns
    ('size', 'colour')
    """
    options = options or ReadOptions()
    return read_source(find_source(name, options.limit), options)


def read_source(source: Source, options: ReadOptions) -> FileSample:
    """Read a sample from an opened source."""
    head = source.head()
    if not head:
        raise InputError(f"{source.label} is empty. Check how it was written.")
    kind = options.format or _format_of(source, head)
    if head.startswith(GZIP):
        if kind not in TEXT:
            raise InputError(f"{source.label} is compressed: {kind} files must be plain. Run gunzip on it first.")
        source = Source(source.label, content=_decompress(source, options.limit))
        if not source.head():
            raise InputError(f"{source.label} is empty. Check how it was written.")
    return READERS[kind](source, options)


def find_source(name: str, limit: FileLimit) -> Source:
    """Return where the bytes come from, refused when there is nothing to read."""
    if name == STDIN:
        return Source("standard input", content=_drain(sys.stdin.buffer.read, "standard input", limit))
    path, member = Path(name), None
    if ":" in name and ".npz" in name and not path.exists():
        before, _, member = name.rpartition(":")
        path = Path(before)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise InputError(f"There is no file {str(path)!r}.{_near(path)}") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{str(path)!r} cannot be opened ({_reason(error)}). Check the name and its permissions.") from error
    if stat.S_ISDIR(mode):
        raise InputError(f"{str(path)!r} is a directory. Name the file in it that holds the sample.")
    try:
        with path.open("rb") as file:
            if not stat.S_ISREG(mode):  # a pipe, as in `cpmmd test <(zcat a.csv.gz) b.csv`: can be read once only
                return Source(str(path), content=_drain(file.read, str(path), limit))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be opened ({_reason(error)}). Check its permissions.") from error
    return Source(str(path), path=path, member=member)


def _drain(read: Callable[[int], bytes], label: str, limit: FileLimit) -> bytes:
    chunks: list[bytes] = []
    size = 0
    while chunk := read(CHUNK):
        chunks.append(chunk)
        size += len(chunk)
        if size > limit.bytes:
            raise InputError(
                "{label} holds more than the limit for a file, {limit}. Draw some rows at random first, or raise the limit with "
                "{setting}.",
                file=label,
                label=label,
                limit=bytes_in_words(limit.bytes),
                setting=Setting("file_limit"),
            )
    return b"".join(chunks)


def _decompress(source: Source, limit: FileLimit) -> bytes:
    try:
        with source.open() as file, gzip.GzipFile(fileobj=file) as unpacked:
            return _drain(unpacked.read, f"{source.label}, unpacked,", limit)
    except (EOFError, zlib.error, OSError) as error:
        raise InputError(f"{source.label} is not a whole gzip file ({_reason(error)}). Copy or download it again.") from error


def _format_of(source: Source, head: bytes) -> str:
    if source.path is None:
        return _sniff(head, source)
    suffixes = [s.lower() for s in source.path.suffixes]
    suffix = suffixes[-2] if suffixes[-1:] == [".gz"] and len(suffixes) > 1 else (suffixes or [""])[-1]
    if suffix in EXTENSIONS:
        return EXTENSIONS[suffix]
    what = f"the extension {suffix!r}" if suffix else "no extension"
    raise InputError(
        "{label} has {what}, which says nothing about its format. Known: {extensions} (text ones also with .gz); or say it with "
        "{setting} ({formats}).",
        file=source.label,
        label=source.label,
        what=what,
        extensions=", ".join(EXTENSIONS),
        setting=Setting("format"),
        formats=", ".join(FORMATS),
    )


MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow", b"\x93NUMPY": "npy", b"PK\x03\x04": "npz"}


def _sniff(head: bytes, source: Source) -> str:
    """Tell a stream's format by its first bytes."""
    if head.startswith(GZIP):
        with source.open() as file:
            try:
                head = gzip.GzipFile(fileobj=file).read(4096)
            except (EOFError, zlib.error, OSError):
                head = b""
    for magic, kind in MAGIC.items():
        if head.startswith(magic):
            return kind
    if head.lstrip(b"\xef\xbb\xbf \t\r\n").startswith(b"{"):
        return "jsonl"
    first = head.split(b"\n", 1)[0]
    return "tsv" if first.count(b"\t") > first.count(b",") else "csv"


def _near(path: Path) -> str:
    try:
        names = [p.name for p in path.parent.iterdir()]
    except OSError:
        return f" There is no folder {str(path.parent)!r} either; check the path."
    near = difflib.get_close_matches(path.name, names, n=1)
    return f" Did you mean {str(path.parent / near[0])!r}?" if near else " Check the path."


def _reason(error: Exception) -> str:
    return (getattr(error, "strerror", None) or str(error)).lower()
