"""From a path, a folder, a pattern or standard input to a sample: which format, does it fit, read it."""

from __future__ import annotations

import stat
import sys
from collections.abc import Callable
from pathlib import Path

from cpmmd.data.files.binary import ARROW, PARQUET, read_frame, read_npy, read_npz
from cpmmd.data.files.folder import FileList, find_files, join_files
from cpmmd.data.files.input_file import PACKED, FileLimit, InputFile, drain, in_chunks, is_packed, reason, unpack, unpacked_head
from cpmmd.data.files.options import EXTENSIONS, FORMATS, TEXT, ReadOptions
from cpmmd.data.files.remote import is_remote, read_remote
from cpmmd.data.files.sample import FileSample, RawFrame
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

TABLES: dict[str, Callable[[InputFile, ReadOptions], RawFrame]] = {
    "csv": lambda file, options: read_delimited(decoded(file, options), ",", options),
    "tsv": lambda file, options: read_delimited(decoded(file, options), "\t", options),
    "jsonl": lambda file, options: read_json(decoded(file, options), options),
    "json": lambda file, options: read_json(decoded(file, options), options),
    "parquet": lambda file, options: read_frame(file, options, PARQUET),
    "arrow": lambda file, options: read_frame(file, options, ARROW),
}
OTHERS: dict[str, Callable[[InputFile, ReadOptions], FileSample]] = {
    "npy": lambda file, options: read_npy(file, options.limit),
    "npz": lambda file, options: read_npz(file, options.limit),
    "xlsx": read_xlsx,
}


def read_file(name: str, options: ReadOptions | None = None) -> FileSample:
    """Read a sample from a file, ``-`` for standard input, ``file.npz:array``, ``file.xlsx:sheet``, a folder or a pattern."""
    options = options or ReadOptions()
    files = find_files(name, options.format)
    return read_input(find_input(name, options.limit), options) if files is None else _read_files(files, options)


def _read_files(files: FileList, options: ReadOptions) -> FileSample:
    """Read the files of a folder or a pattern as one sample."""
    frames, numbers, size = list[RawFrame](), 0, 0
    for name in files.names:
        kind, file = _unpacked(find_input(name, options.limit), options)
        if kind not in TABLES:
            rule = "Several files of a sample must be tables of text, Parquet or Arrow. {file} is {kind}; name it alone."
            raise InputError(rule, file=file.label, kind=kind)
        frames.append(TABLES[kind](file, options))
        numbers, size = numbers + frames[-1].frame.height * frames[-1].frame.width, size + file.size
        options.limit.check_numbers(numbers, files.label)
    return join_files(frames, files, size, options)


def read_input(file: InputFile, options: ReadOptions) -> FileSample:
    """Read a sample from an opened file."""
    kind, file = _unpacked(file, options)
    return TABLES[kind](file, options).inferred(options) if kind in TABLES else OTHERS[kind](file, options)


def _unpacked(file: InputFile, options: ReadOptions) -> tuple[str, InputFile]:
    """Return the format of a file that is not empty, and the file without its compression."""
    head = file.head()
    if not head:
        raise InputError(f"{file.label} is empty. Check how it was written.")
    kind = options.format or format_of(file, head)
    if is_packed(head):
        if kind not in TEXT:
            raise InputError(
                f"Only text may be compressed. {file.label} is a compressed {kind} file; unpack it first (gunzip, unzstd)."
            )
        file = InputFile(file.label, content=unpack(file, options.limit))
        if not file.head():
            raise InputError(f"{file.label} is empty. Check how it was written.")
    return kind, file


def find_input(name: str, limit: FileLimit) -> InputFile:
    """Return where the bytes come from, refused where there is nothing to read."""
    if name == STDIN:
        return InputFile("standard input", content=drain(in_chunks(sys.stdin.buffer.read), "standard input", limit))
    path, member = Path(name), None
    if is_remote(name):
        return InputFile(name, content=read_remote(name, limit))
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
        with path.open("rb") as stream:
            if not stat.S_ISREG(mode):  # a pipe, as in `cpmmd test <(zcat a.csv.gz) b.csv`: can be read once only
                return InputFile(str(path), content=drain(in_chunks(stream.read), str(path), limit))
    except OSError as error:
        raise InputError(f"{str(path)!r} cannot be opened ({reason(error)}). Check its permissions.") from error
    return InputFile(str(path), path=path, member=member)


def format_of(file: InputFile, head: bytes) -> str:
    """Return the format of a file by its name, or by its first bytes where it has none."""
    if file.path is None and not is_remote(file.label):
        return _sniff(head, file)
    suffixes = [s.lower() for s in Path(file.label if file.path is None else file.path).suffixes]
    suffix = suffixes[-2] if suffixes and suffixes[-1] in PACKED and len(suffixes) > 1 else (suffixes or [""])[-1]
    if suffix in EXTENSIONS:
        return EXTENSIONS[suffix]
    known: dict[str, Field] = {
        "extensions": ", ".join(EXTENSIONS),
        "formats": ", ".join(FORMATS),
        "setting": ParameterReference("format"),
    }
    raise InputError(NO_FORMAT, file=file.label, what=f"the extension {suffix!r}" if suffix else "no extension", **known)


def _sniff(head: bytes, file: InputFile) -> str:
    """Return a stream's format, judged by its first bytes."""
    if is_packed(head):
        head = unpacked_head(file)
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
