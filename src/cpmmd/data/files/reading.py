"""From a path, a folder, a pattern or standard input to a sample: which format, does it fit, read it."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from pathlib import Path

from cpmmd.data.files.binary import ARROW, PARQUET, read_frame, read_npy, read_npz
from cpmmd.data.files.folder import FileList, find_files, join_files
from cpmmd.data.files.options import EXTENSIONS, FORMATS, TEXT, ReadOptions
from cpmmd.data.files.remote import is_remote, read_remote
from cpmmd.data.files.sample import FileSample, RawFrame
from cpmmd.data.files.source import PACKED, FileLimit, Source, drain, in_chunks, is_packed, reason, unpack, unpacked_head
from cpmmd.data.files.spreadsheet import read_xlsx
from cpmmd.data.files.text import SPACE, decoded, read_delimited, read_json
from cpmmd.errors import Field, InputError, ParameterReference, nearest

STDIN = "-"
WITH_MEMBERS = (".npz:", ".xlsx:", ".xlsm:")
ZIP = b"PK\x03\x04"
MAGIC = {b"PAR1": "parquet", b"ARROW1": "arrow", b"\xff\xff\xff\xff": "arrow", b"\x93NUMPY": "npy", ZIP: "npz"}
NO_FORMAT = (
    "The extension of a file must name its format. {file} has {what}. Known: {extensions} (text also with .gz or .zst); or set "
    "{setting} ({formats})."
)

TABLES: dict[str, Callable[[Source, ReadOptions], RawFrame]] = {
    "csv": lambda source, options: read_delimited(decoded(source, options), ",", options),
    "tsv": lambda source, options: read_delimited(decoded(source, options), "\t", options),
    "jsonl": lambda source, options: read_json(decoded(source, options), options),
    "json": lambda source, options: read_json(decoded(source, options), options),
    "parquet": lambda source, options: read_frame(source, options, PARQUET),
    "arrow": lambda source, options: read_frame(source, options, ARROW),
}
OTHERS: dict[str, Callable[[Source, ReadOptions], FileSample]] = {
    "npy": lambda source, options: read_npy(source, options.limit),
    "npz": lambda source, options: read_npz(source, options.limit),
    "xlsx": read_xlsx,
}


def read_file(name: str, options: ReadOptions | None = None) -> FileSample:
    """Read a sample from a file, ``-`` for standard input, ``file.npz:array``, ``file.xlsx:sheet``, a folder or a pattern."""
    options = options or ReadOptions()
    files = find_files(name, options.format)
    return read_source(find_source(name, options.limit), options) if files is None else _read_files(files, options)


def _read_files(files: FileList, options: ReadOptions) -> FileSample:
    """Read the files of a folder or a pattern as one sample."""
    frames, numbers, size = list[RawFrame](), 0, 0
    for name in files.names:
        source = find_source(name, options.limit)
        kind, source = _unpacked(source, options)
        if kind not in TABLES:
            rule = "Several files of a sample must be tables of text, Parquet or Arrow. {file} is {kind}; name it alone."
            raise InputError(rule, file=source.label, kind=kind)
        frames.append(TABLES[kind](source, options))
        numbers, size = numbers + frames[-1].frame.height * frames[-1].frame.width, size + source.size
        options.limit.check_numbers(numbers, files.label)
    return join_files(frames, files, size, options)


def read_source(source: Source, options: ReadOptions) -> FileSample:
    """Read a sample from an opened source."""
    kind, source = _unpacked(source, options)
    return TABLES[kind](source, options).inferred(options) if kind in TABLES else OTHERS[kind](source, options)


def _unpacked(source: Source, options: ReadOptions) -> tuple[str, Source]:
    """Return the format of a source that is not empty, and the source without its compression."""
    head = source.head()
    if not head:
        raise InputError(f"{source.label} is empty. Check how it was written.")
    kind = options.format or _format_of(source, head)
    if is_packed(head):
        if kind not in TEXT:
            raise InputError(
                f"Only text may be compressed. {source.label} is a compressed {kind} file; unpack it first (gunzip, unzstd)."
            )
        source = Source(source.label, content=unpack(source, options.limit))
        if not source.head():
            raise InputError(f"{source.label} is empty. Check how it was written.")
    return kind, source


def find_source(name: str, limit: FileLimit) -> Source:
    """Return where the bytes come from, refused where there is nothing to read."""
    if name == STDIN:
        return Source("standard input", content=drain(in_chunks(sys.stdin.buffer.read), "standard input", limit))
    path, member = Path(name), None
    if is_remote(name):
        return Source(name, content=read_remote(name, limit))
    if any(mark in name.lower() for mark in WITH_MEMBERS) and not path.exists():
        before, _, member = name.rpartition(":")
        path = Path(before)
    try:
        mode = path.stat().st_mode
    except FileNotFoundError as error:
        raise InputError(f"There is no file {str(path)!r}.{_near(path)}") from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{str(path)!r} cannot be opened ({reason(error)}). Check the name and its permissions.") from error
    try:
        with path.open("rb") as file:
            if not stat.S_ISREG(mode):  # a pipe, as in `cpmmd test <(zcat a.csv.gz) b.csv`: can be read once only
                return Source(str(path), content=drain(in_chunks(file.read), str(path), limit))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be opened ({reason(error)}). Check its permissions.") from error
    return Source(str(path), path=path, member=member)


def _format_of(source: Source, head: bytes) -> str:
    if source.path is None and not is_remote(source.label):
        return _sniff(head, source)
    suffixes = [s.lower() for s in Path(source.label if source.path is None else source.path).suffixes]
    suffix = suffixes[-2] if suffixes and suffixes[-1] in PACKED and len(suffixes) > 1 else (suffixes or [""])[-1]
    if suffix in EXTENSIONS:
        return EXTENSIONS[suffix]
    known: dict[str, Field] = {
        "extensions": ", ".join(EXTENSIONS),
        "formats": ", ".join(FORMATS),
        "setting": ParameterReference("format"),
    }
    raise InputError(NO_FORMAT, file=source.label, what=f"the extension {suffix!r}" if suffix else "no extension", **known)


def _sniff(head: bytes, source: Source) -> str:
    """Return a stream's format, judged by its first bytes."""
    if is_packed(head):
        head = unpacked_head(source)
    if head.startswith(ZIP) and (b"[Content_Types].xml" in head or b"xl/" in head):
        return "xlsx"
    for magic, kind in MAGIC.items():
        if head.startswith(magic):
            return kind
    if head.lstrip(SPACE).startswith((b"{", b"[")):
        return "json"
    first = head.split(b"\n", 1)[0]
    return "tsv" if first.count(b"\t") > first.count(b",") else "csv"


def _near(path: Path) -> str:
    try:
        files = sorted(Path(p.name) for p in path.parent.iterdir())
    except OSError:
        return f" There is no folder {str(path.parent)!r} either; check the path."
    near = nearest(path.stem, [name.stem for name in files])
    found = next((name for name in files if name.stem == near), None)
    return f" Did you mean {str(path.parent / found)!r}?" if found else " Check the path."
