"""Studies: a task over cells and repetitions, resumable, the same table whatever the jobs or interruptions."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cpmmd.core import parallel, validation
from cpmmd.core.plain import PlainDict, to_plain
from cpmmd.core.progress import Progress
from cpmmd.core.seeds import RNG, keyed_rng, resolve_seed
from cpmmd.errors import InputError
from cpmmd.studies.study_table import Cell, Repetition, StudyTable, repetition_key

# An append-only file of finished work, one JSON line each, that survives being killed.


SYNC_SECONDS = 1.0  # at most this much finished work is lost to a power cut; a killed process loses none


class Journal:
    """Lines of JSON under a header that says whose they are.

    Each line goes out in one write to a file opened for appending, so a process that is killed leaves whole lines. A torn last
    line (full disk, power cut) is dropped when the file is opened again.
    """

    def __init__(self, path: str | Path, header: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = json.loads(json.dumps(header))

    def read(self) -> list[PlainDict]:
        """Return the finished lines, without the header; none where there is no file yet."""
        if not self.path.exists():
            return []
        lines = _whole_lines(self.path.read_bytes()).splitlines()
        if not lines:
            return []
        found = self._parse(1, lines[0])
        if found != self.header:
            raise InputError(
                f"{self.path} holds the repetitions of another study ({json.dumps(found)}), not of this one "
                f"({json.dumps(self.header)}). Name another file, or remove this one to start again."
            )
        return [self._parse(number, line) for number, line in enumerate(lines[1:], 2)]

    @contextmanager
    def open(self) -> Iterator[Writer]:
        """Open for appending: a torn last line is cut off, the header written if there is none."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            whole = len(_whole_lines(self.path.read_bytes()))
            if whole < self.path.stat().st_size:
                os.truncate(self.path, whole)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            writer = Writer(descriptor)
            if os.fstat(descriptor).st_size == 0:
                writer.append(self.header)
            yield writer
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _parse(self, number: int, line: bytes) -> PlainDict:
        try:
            parsed = json.loads(line)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise InputError(f"Line {number} of {self.path} is no JSON object. Remove that line, or the file to start again.")
        return parsed


class Writer:
    """Appends lines to an open journal."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.synced = time.monotonic()

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one line whole; now and then make sure that it is on the disk."""
        data = (json.dumps(line, separators=(",", ":")) + "\n").encode()
        if os.write(self.descriptor, data) != len(data):
            raise OSError("the disk is full: the last line is not whole and will be dropped at the next run")
        if time.monotonic() - self.synced > SYNC_SECONDS:
            os.fsync(self.descriptor)
            self.synced = time.monotonic()


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]


Task = Callable[[Cell, np.random.Generator, np.random.Generator], Mapping[str, Any]]


@dataclass(frozen=True)
class Study:
    """A task over a list of cells, repeated.

    Parameters
    ----------
    name : str
        Part of every seed.
    task : callable
        A function at module level ``(cell, data_rng, test_rng) -> dict`` of numbers (0 and 1 for decisions). Lists are kept, not
        averaged.
    cells : sequence of dict
        The parameters of each cell, plain JSON values.
    repetitions : int
        How often.
    rng : int, Generator, RandomState or None
        Where randomness comes from.
    data_keys : tuple of str, optional
        The parameters that decide the data: cells that agree in them get the same ``data_rng``. None: all parameters.
    settings : mapping
        What else the answers depend on, plain JSON values; a file of repetitions made under other settings is refused.

    Attributes
    ----------
    seed : int
        What ``rng`` comes to.

    Examples
    --------
    >>> from cpmmd import Study
    >>> def task(cell, data_rng, test_rng):
    ...     return {"above": float(data_rng.normal(cell["mean"]) > 0)}
    >>> study = Study("signs", task, [{"mean": 0}, {"mean": 9}], repetitions=20)
    >>> [row["above"] for row in study.run().rows]
    [0.6, 1.0]
    """

    name: str
    task: Task
    cells: Sequence[Cell]
    repetitions: int = 100
    rng: RNG = 0
    data_keys: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    seed: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        validation.whole("repetitions", self.repetitions, at_least=1)
        object.__setattr__(self, "seed", resolve_seed(self.rng))
        object.__setattr__(self, "cells", tuple(dict(cell) for cell in self.cells))
        if len({repetition_key(cell) for cell in self.cells}) < len(self.cells):
            raise InputError("The cells of a study must differ from each other. Two are the same; leave one out.")

    def run(self, path: str | Path | None = None, *, n_jobs: int | None = 1, progress: Progress | None = None) -> StudyTable:
        """Run what is not in ``path`` yet, one repetition of every cell after the other, and return the table.

        Parameters
        ----------
        path : str or Path, optional
            Finished repetitions are appended to this file, a JSON line each, and not run again; failed ones are. None keeps
            them in memory only.
        n_jobs : int, optional
            Processes, one thread each, -1 for all cores; None follows ``joblib.parallel_config``.
        progress : callable, optional
            Called as ``progress(name, done, total)``.

        Returns
        -------
        StudyTable
            Of all finished repetitions, those of earlier runs among them.
        """
        if path is None:
            return self._table(self._finish([], lambda _: None, n_jobs, progress))
        journal = Journal(path, {"study": self.name, "seed": self.seed, "settings": dict(self.settings)})
        done = [Repetition(**line) for line in journal.read()]
        with journal.open() as writer:
            return self._table(self._finish(done, lambda one: writer.append(one.line()), n_jobs, progress))

    def read(self, path: str | Path) -> StudyTable:
        """Return the table of what is finished, running nothing.

        Parameters
        ----------
        path : str or Path
            The file that :meth:`run` appended to.

        Returns
        -------
        StudyTable
            Of all finished repetitions; there need not be a file yet.
        """
        journal = Journal(path, {"study": self.name, "seed": self.seed, "settings": dict(self.settings)})
        return self._table([Repetition(**line) for line in journal.read()])

    def _finish(
        self, done: list[Repetition], keep: Callable[[Repetition], None], n_jobs: int | None, progress: Progress | None
    ) -> list[Repetition]:
        finished = {one.key for one in done if one.error is None}
        wanted = [(cell, repetition) for repetition in range(self.repetitions) for cell in self.cells]
        left = [item for item in wanted if repetition_key(*item) not in finished]
        work = partial(_run_one, self.task, (self.name, self.seed), self.data_keys)
        for count, one in enumerate(parallel.map_tasks(work, left, n_jobs=validation.jobs(n_jobs)), len(wanted) - len(left) + 1):
            keep(one)
            done.append(one)
            if progress is not None:
                progress(self.name, count, len(wanted))
        return done

    def _table(self, done: list[Repetition]) -> StudyTable:
        """Put the repetitions that belong to this study in order; the last word on each counts."""
        place = {repetition_key(cell): position for position, cell in enumerate(self.cells)}
        last = {one.key: one for one in done if one.repetition < self.repetitions and repetition_key(one.cell) in place}
        found = sorted(last.values(), key=lambda one: (place[repetition_key(one.cell)], one.repetition))
        return StudyTable(
            self.name,
            tuple(self.cells),
            tuple(one for one in found if one.error is None),
            tuple(one for one in found if one.error is not None),
        )


def _run_one(task: Task, seed: tuple[str, int], data_keys: tuple[str, ...] | None, item: tuple[Cell, int]) -> Repetition:
    cell, repetition = item
    start = time.process_time()
    data_cell = cell if data_keys is None else {k: v for k, v in cell.items() if k in data_keys}
    data_rng, test_rng = keyed_rng(seed, "data", data_cell, repetition), keyed_rng(seed, "test", cell, repetition)
    try:
        with parallel.threads(1):  # the same arithmetic here as in a process of its own
            values = to_plain(dict(task(dict(cell), data_rng, test_rng)))
        return Repetition(cell, repetition, values, seconds=time.process_time() - start)
    except Exception as error:  # one bad repetition must not cost the others
        return Repetition(cell, repetition, error=f"{type(error).__name__}: {error}")
