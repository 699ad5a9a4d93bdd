"""The files that ``cpmmd check`` was given: called by their names, read when their rows are wanted."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cpmmd.cli.failures import in_command_words
from cpmmd.cli.settings import STDIN, Reading
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from cpmmd.monitoring.checking import CheckedBatch, Source


@dataclass(eq=False)
class BatchFile:
    """A file that is read each time its rows are wanted; standard input, which can be read once, keeps them."""

    file: str
    reading: Reading
    aside: tuple[str, ...] = ()
    label: str | None = None  # and what reading said, once it was read
    notes: tuple[str, ...] = ()
    _rows: Any = field(default=None, repr=False)

    def read(self) -> Any:
        """Return the rows."""
        if self._rows is not None:
            return self._rows
        (sample,) = self.reading.read([self.file], keep=self.aside, some_drop=True)
        self.label, self.notes = sample.label, sample.notes
        self._rows = sample.data if self.file == STDIN else None
        return sample.data

    def source(self, name: str) -> Source:
        """Return where the library gets the batch from."""
        from cpmmd.monitoring.checking import Source

        return Source(name, self.read, place_of(self.file))

    def in_words(self, batch: CheckedBatch) -> CheckedBatch:
        """Return what became of the batch with what reading noticed, and an error in the words of the command line."""
        if batch.failure is None:
            return replace(batch, notes=(*self.notes, *batch.notes)) if batch.status == "tested" else batch
        if self.label is not None:  # it could be read: the sample is this file
            batch.failure.labels = {"batch": self.label}
        return replace(batch, error=in_command_words(batch.failure))


def place_of(file: str) -> str | None:
    """Return where a file is; None for standard input."""
    return None if file == STDIN else str(Path(file).resolve())


def own_name(file: str) -> str:
    """Return the name of a file, in whatever folder it is."""
    return file if file == STDIN else Path(file).name


def batch_names(files: Sequence[str]) -> list[str]:
    """Call batches by their file names, by their paths where those are not enough."""
    short = [own_name(file) for file in files]
    if len(set(short)) == len(short):
        return short
    if len(set(files)) < len(files):
        raise InputError("Each batch can be checked once. A file is named more than once; remove it.")
    return list(files)
