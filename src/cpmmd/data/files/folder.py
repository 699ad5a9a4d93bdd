"""Several files as one sample: those of a folder, or those that a pattern finds, in the order of their names."""

from __future__ import annotations

import glob
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING

import numpy as np

from cpmmd.core.arrays import Rows
from cpmmd.core.text import bytes_in_words, pluralize
from cpmmd.data.files.input_file import PACKED, column, polars, reading, reason
from cpmmd.data.files.options import EXTENSIONS, ReadOptions
from cpmmd.data.files.remote import is_remote, list_remote
from cpmmd.data.files.sample import SETTINGS, FileSample, RawFrame, suspect
from cpmmd.errors import InputError, Note, name_some

if TYPE_CHECKING:
    from polars import DataFrame, DataType

MARKS = "*?["  # of a pattern
HIDDEN = (".", "_")  # names that begin so are marks and logs of whoever wrote the folder
IN_FOLDERS = ("csv", "tsv", "jsonl", "parquet", "arrow")  # a pattern finds JSON, too; beside data it is about them
MOST_NOTES = 3  # of single files
MOST_NAMED = 3
NOTHING_HERE = "A folder must hold files of a sample ({kinds}). {file} has {others}. Check its name."
NOTHING_FOUND = "A pattern must find a file of a sample. {file} finds {others}. Check it; quotes keep the shell from reading it."
OTHER_COLUMNS = "All files of a sample must have the same columns. {other} {difference}. Drop or add columns in it."
OTHER_KIND = (
    "A column must be of one kind in all files. Column {short} of {whole} holds {kinds}. Convert it, take it as text with "
    "{text}, or leave it out with {drop}."
)


@dataclass(frozen=True)
class FileList:
    """Files that are one sample, in the order of their names."""

    label: str  # the folder or the pattern
    names: tuple[str, ...]
    left_out: tuple[str, ...] = ()  # other files beside them


def find_files(name: str, form: str | None = None) -> FileList | None:
    """Return the files of a folder or a pattern; None where the name is that of one file, or of nothing."""
    pattern = any(mark in name for mark in MARKS)
    found: list[str] | None
    try:
        if is_remote(name):
            found = list_remote(name, pattern=pattern)
        elif Path(name).is_dir():
            pattern, found = False, _files_below(name)
        elif pattern and not Path(name).exists():
            found = [path for path in glob.glob(name, recursive=True) if not Path(path).is_dir()]
        else:
            found = None
    except InputError:
        raise
    except (OSError, ValueError) as error:  # ValueError: a NUL in the name
        raise InputError(f"{name!r} cannot be opened ({reason(error)}). Check the name and its permissions.") from error
    if found is None:
        return None
    seen = sorted((path for path in found if pattern or not _is_hidden(path, name)), key=lambda path: PurePosixPath(path).parts)
    kinds = set(EXTENSIONS.values()) if pattern else set(IN_FOLDERS)
    chosen = [path for path in seen if form is not None or _kind(path) in kinds]
    others = [path for path in seen if path not in set(chosen)]
    if not chosen:
        known = ", ".join(suffix for suffix, kind in EXTENSIONS.items() if kind in kinds)
        beside = f"only {_named(others)}" if others else "no file"
        raise InputError(NOTHING_FOUND if pattern else NOTHING_HERE, file=repr(name), others=beside, kinds=known)
    return FileList(name, tuple(chosen), tuple(others))


def _files_below(folder: str) -> list[str]:
    found = list[str]()
    for top, folders, files in os.walk(folder, onerror=_refuse):
        folders[:] = [name for name in folders if not name.startswith(HIDDEN)]
        found += [str(Path(top) / name) for name in files]
    return found


def _refuse(error: OSError) -> None:
    raise error


def _is_hidden(path: str, folder: str) -> bool:
    return any(part.startswith(HIDDEN) for part in PurePosixPath(path).parts[len(PurePosixPath(folder).parts) :])


def _kind(path: str) -> str | None:
    suffixes = [suffix.lower() for suffix in PurePosixPath(path).suffixes]
    if len(suffixes) > 1 and suffixes[-1] in PACKED:
        suffixes.pop()
    return EXTENSIONS.get(suffixes[-1]) if suffixes else None


def _named(paths: Sequence[str]) -> str:
    return f"{pluralize(len(paths), 'other')} ({name_some([PurePosixPath(path).name for path in paths], MOST_NAMED)})"


def join_files(frames: Sequence[RawFrame], files: FileList, size: int, options: ReadOptions) -> FileSample:
    """Return several files of ``size`` bytes as one sample.

    What text means is inferred from all text files together, so that rows mean the same however they are cut into files.
    """
    names = frames[0].frame.columns
    frames = [frames[0], *(in_order(other, names, frames[0].label) for other in frames[1:])]
    groups: dict[tuple[bool, bool], list[RawFrame]] = {}
    for raw in frames:
        groups.setdefault((raw.typed, _all_text(raw.frame)), []).append(raw)
    notes = [note for raw in frames for note in raw.notes]
    if len(notes) > MOST_NOTES:
        notes[MOST_NOTES:] = [f"{pluralize(len(notes) - MOST_NOTES, 'more note')} of this kind on other files of {files.label}"]
    wrong = [error for raw in frames for error in raw.suspects]
    parts: dict[str, DataFrame] = {}
    for (typed, _), group in groups.items():
        frame = _stack({raw.label: raw.frame for raw in group}, files.label, wrong)
        sample = RawFrame(frame, files.label, typed=typed).inferred(options)
        starts = np.cumsum([0, *(raw.frame.height for raw in group)])
        notes += sample.notes
        wrong += [_in_its_file(error, starts, group) for error in sample.suspects]
        lengths = zip(group, starts[:-1].tolist(), strict=True)
        parts |= {raw.label: sample.data.slice(start, raw.frame.height) for raw, start in lengths}  # type: ignore[union-attr]
    data = _stack({raw.label: parts[raw.label] for raw in frames}, files.label, wrong)
    described = "{files} of {label}: {rows:,} rows, {size}, in the order of their names"
    counts = {"files": pluralize(len(frames), "file"), "rows": data.height, "size": bytes_in_words(size)}
    notes = [Note(described, label=files.label, **counts), *notes]
    notes += describe_others(files)
    return FileSample(data, files.label, tuple(dict.fromkeys(notes)), tuple({error.column: error for error in wrong}.values()))


def describe_others(files: FileList) -> list[str]:
    """Return a note on what else is there, if anything."""
    if not files.left_out:
        return []
    return [f"{_named(files.left_out)} in {files.label} left out, because their names are not those of tables"]


def in_order(raw: RawFrame, names: list[str], first: str) -> RawFrame:
    """Return a file with its columns in the order of the first file."""
    columns = raw.frame.columns
    if columns == names:
        return raw
    absent, new = [c for c in names if c not in columns], [c for c in columns if c not in names]
    if absent or new:
        parts = [f"has no column {name_some(absent)}"] if absent else []
        parts += [f"has {name_some(new)}"] if new else []
        difference = f"{' and '.join(parts)}, unlike {first}"
        raise InputError(OTHER_COLUMNS, file=raw.label, other=raw.label, difference=difference)
    return replace(raw, frame=raw.frame[names])


def _all_text(frame: DataFrame) -> bool:
    return all(dtype == polars().String for dtype in frame.dtypes)


def kind_of(dtype: DataType) -> str:
    """Return what a type holds, in words."""
    pl = polars()
    if dtype.is_numeric():
        return "numbers"
    if dtype.is_temporal():
        return "dates"
    if dtype in (pl.String, pl.Categorical, pl.Enum):
        return "text"
    return "booleans" if dtype == pl.Boolean else str(dtype)


def _stack(frames: dict[str, DataFrame], label: str, wrong: list[InputError]) -> DataFrame:
    """Return the rows of several frames; a column of two kinds is text, and wrong."""
    pl, (first, *_) = polars(), frames.values()
    if len(frames) == 1:
        return first
    columns = []
    for name in first.columns:
        parts = {file: column(frame, name) for file, frame in frames.items()}
        known = {file: part for file, part in parts.items() if part.null_count() < len(part)}
        kinds: dict[str, list[str]] = {}
        for file, part in known.items():
            kinds.setdefault(kind_of(part.dtype), []).append(file)
        if len(kinds) > 1:
            wrong.append(of_two_kinds(name, kinds, label))
        text = len(kinds) > 1 or "text" in kinds
        dtype = pl.String if text else next(iter(known.values()), parts[next(iter(parts))]).dtype
        pieces = [
            (part.cast(pl.String) if text else part) if file in known else part.clear(len(part)).cast(dtype)
            for file, part in parts.items()
        ]
        with reading(label, "one table"):
            columns.append(pl.concat([piece.alias(name).to_frame() for piece in pieces], how="vertical_relaxed").to_series())
    return pl.DataFrame(columns)  # type: ignore[no-any-return]


def of_two_kinds(name: str, kinds: Mapping[str, Sequence[str]], label: str) -> InputError:
    """Return the error for a column that is not of one kind, given the files of each kind."""
    held = " and ".join(f"{kind} in {_where(of)}" for kind, of in kinds.items())
    return suspect(OTHER_KIND, name, min(kinds.values(), key=len)[0], whole=label, kinds=held)


def _where(files: Sequence[str]) -> str:
    return files[0] if len(files) == 1 else f"{files[0]} and {len(files) - 1} more"


def _in_its_file(error: InputError, starts: Rows, group: Sequence[RawFrame]) -> InputError:
    """Return an error about a row of all files with the file that the row is in."""
    if error.row is None or len(group) == 1:
        return error
    place = int(np.searchsorted(starts, error.row - 1, side="right")) - 1
    file, row = group[place].label, error.row - int(starts[place])
    found = InputError(error.template, column=error.column, row=row, file=file, short=error.fields["short"], **SETTINGS)
    found.fields = {**error.fields, "row": f"{row} of {file}"}
    return found
