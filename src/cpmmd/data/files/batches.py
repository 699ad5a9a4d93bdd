"""Files with types, read a slice of rows at a time: Parquet and Arrow, one or those of a folder, in the order of their names."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from cpmmd.core.text import bytes_in_words, pluralize
from cpmmd.data.files.binary import ARROW, ARROW_FILE, PARQUET
from cpmmd.data.files.folder import FileList, describe_others, find_files, in_order, kind_of, of_two_kinds
from cpmmd.data.files.input_file import InputFile, file_limit, polars, reading
from cpmmd.data.files.reading import find_input, format_of
from cpmmd.data.files.remote import is_remote
from cpmmd.data.files.sample import RawFrame
from cpmmd.errors import Note

if TYPE_CHECKING:
    from polars import LazyFrame

LEAST_BYTES = 2**24  # of files that are looked at: smaller ones are read as a whole
KINDS = {PARQUET: "a Parquet file", ARROW: "an Arrow file"}


@dataclass(frozen=True, eq=False)
class TypedFiles:
    """Files of numbers, booleans and dates that are one sample."""

    label: str
    files: tuple[tuple[InputFile, str, int], ...]  # each with its kind and its rows
    columns: tuple[str, ...]
    notes: tuple[str, ...]

    def __len__(self) -> int:
        return sum(rows for *_, rows in self.files)

    @property
    def values(self) -> int:
        """How many values would have to be held."""
        return len(self) * len(self.columns)

    def batches(self, most: int) -> Iterator[object]:
        """Yield frames of at most so many rows."""
        for file, kind, rows in self.files:
            for start in range(0, rows, most):
                with reading(file.label, KINDS[kind]):
                    yield _scan(file, kind).select(polars().nth(self._places(file, kind))).slice(start, most).collect()

    def _places(self, file: InputFile, kind: str) -> list[int]:
        """Return where the columns are in a file; not their names, some of which polars takes for patterns."""
        own = list(_scan(file, kind).collect_schema())
        return [own.index(name) for name in self.columns]


def find_typed_files(name: str) -> TypedFiles | None:
    """Return files here that can be read a slice at a time; None where they are small, of another format, or have text.

    Only what files state about themselves is read. Files that do not agree are refused.
    """
    if is_remote(name):
        return None
    found = find_files(name) or FileList(name, (name,))
    if not all(Path(path).is_file() for path in found.names):  # a pipe can be read once
        return None
    size = sum(Path(path).stat().st_size for path in found.names)
    if size < LEAST_BYTES:
        return None
    files, frames = list[tuple[InputFile, str, int]](), list[RawFrame]()
    for path in found.names:
        file = find_input(path, file_limit())
        head = file.head()
        if file.path is None or not head or (kind := format_of(file, head)) not in KINDS:
            return None
        if kind == ARROW and not head.startswith(ARROW_FILE):
            return None
        with reading(file.label, KINDS[kind]):
            lazy = _scan(file, kind)
            frames.append(RawFrame(lazy.collect_schema().to_frame(), file.label, typed=True))
            files.append((file, kind, int(lazy.select(polars().len()).collect().item())))
    first = frames[0].frame
    frames = [frames[0], *(in_order(other, first.columns, frames[0].label) for other in frames[1:])]
    if any(dtype.is_nested() or dtype == polars().Binary for raw in frames for dtype in raw.frame.dtypes):
        return None
    for column in first.columns:
        known = {raw.label: raw.frame.schema[column] for raw in frames if raw.frame.schema[column] != polars().Null}
        kinds: dict[str, list[str]] = {}
        for label, dtype in known.items():
            kinds.setdefault(kind_of(dtype), []).append(label)
        if len(kinds) > 1:
            raise of_two_kinds(column, kinds, found.label)
        if not kinds.keys() & {"numbers", "dates", "booleans"}:
            return None
    rows = sum(rows for *_, rows in files)
    template = "{files} of {label}: {rows:,} rows, {size}, in the order of their names"
    counts = {"files": pluralize(len(files), "file"), "rows": rows, "size": bytes_in_words(size)}
    notes = () if len(files) == 1 else (Note(template, label=found.label, **counts), *describe_others(found))
    return TypedFiles(found.label, tuple(files), tuple(first.columns), notes)


def _scan(file: InputFile, kind: str) -> LazyFrame:
    return (polars().scan_parquet if kind == PARQUET else polars().scan_ipc)(file.native)  # type: ignore[no-any-return]
