"""Studies: a task over cells and repetitions, resumable, the same table whatever the jobs or interruptions."""

from __future__ import annotations

import csv
import io
import json
import os
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path

import numpy as np

from cpmmd.core import parallel, validation
from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict, to_plain
from cpmmd.core.progress import Progress
from cpmmd.core.seeds import RNG, keyed_rng, resolve_seed
from cpmmd.core.text import pluralize
from cpmmd.data.design import CUT
from cpmmd.errors import InputError
from cpmmd.procedures.base import Procedure
from cpmmd.questions.options import TestOptions
from cpmmd.questions.two_sample import two_sample_test

Cell = PlainDict  # the parameters of a cell
Task = Callable[[Cell, np.random.Generator, np.random.Generator], Mapping[str, object]]
Generate = Callable[[np.random.Generator, int], tuple[object, object]]
SYNC_SECONDS = 1.0  # at most this much finished work is lost to a power cut; a killed process loses none


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
        Number of repetitions of each cell.
    rng : int, Generator, RandomState or None
        Seed or generator.
    data_keys : tuple of str, optional
        The parameters that decide the data: cells that agree in them get the same ``data_rng``. None: all parameters.
    settings : mapping
        What else the answers depend on, plain JSON values; a file of repetitions made under other settings is refused.

    Attributes
    ----------
    seed : int
        The seed that ``rng`` gives.

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
    settings: Mapping[str, object] = field(default_factory=dict)
    seed: int = field(init=False, repr=False)

    def __post_init__(self) -> None:
        validation.whole("repetitions", self.repetitions, at_least=1)
        object.__setattr__(self, "seed", resolve_seed(self.rng))
        object.__setattr__(self, "cells", tuple(dict(cell) for cell in self.cells))
        if len({_key(cell) for cell in self.cells}) < len(self.cells):
            raise InputError("The cells of a study must differ from each other. Two are equal; remove one.")

    def run(self, path: str | Path | None = None, *, n_jobs: int | None = 1, progress: Progress | None = None) -> StudyTable:
        """Run what is not in ``path`` yet, one repetition of every cell after the other, and return the table.

        Parameters
        ----------
        path : str or Path, optional
            Finished repetitions are appended to this file, a JSON line each, and not run again; failed ones are run again. None
            keeps them in memory only.
        n_jobs : int, optional
            Processes, one thread each, -1 for all cores; None follows ``joblib.parallel_config``.
        progress : callable, optional
            Called as ``progress(name, done, total)``.

        Returns
        -------
        StudyTable
            Of all finished repetitions, those of earlier runs among them.
        """
        journal = None if path is None else self._journal(path)
        done = [] if journal is None else journal.read()
        finished = {repetition.key for repetition in done if repetition.error is None}
        wanted = [(cell, repetition) for repetition in range(self.repetitions) for cell in self.cells]
        left = [item for item in wanted if _key(*item) not in finished]
        work = partial(_run_one, self.task, (self.name, self.seed), self.data_keys)
        with nullcontext() if journal is None else journal.open() as append:
            news = parallel.map_tasks(work, left, n_jobs=validation.jobs(n_jobs))
            for count, repetition in enumerate(news, start=len(wanted) - len(left) + 1):
                done.append(repetition)
                if append is not None:
                    append(repetition.line())
                if progress is not None:
                    progress(self.name, count, len(wanted))
        return self._table(done)

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
        return self._table(self._journal(path).read())

    def _journal(self, path: str | Path) -> _Journal:
        header = {"study": self.name, "seed": self.seed, "settings": dict(self.settings)}
        return _Journal(Path(path), json.loads(json.dumps(header)))

    def _table(self, done: list[Repetition]) -> StudyTable:
        """Put the repetitions that belong to this study in order; the last word on each counts."""
        place = {_key(cell): position for position, cell in enumerate(self.cells)}
        last = {
            repetition.key: repetition
            for repetition in done
            if repetition.repetition < self.repetitions and _key(repetition.cell) in place
        }
        found = sorted(last.values(), key=lambda repetition: (place[_key(repetition.cell)], repetition.repetition))
        finished, failed = (
            tuple(repetition for repetition in found if (repetition.error is None) == good) for good in (True, False)
        )
        return StudyTable(self.name, tuple(self.cells), finished, failed)


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


@dataclass(frozen=True)
class _Journal:
    """An append-only file of finished repetitions that survives being killed: lines of JSON, the first says whose they are.

    Each line goes out in one write to a file opened for appending, so a process that is killed leaves whole lines. A torn last
    line (full disk, power cut) is dropped when the file is opened again.
    """

    path: Path
    header: PlainDict

    def read(self) -> list[Repetition]:
        """Return the finished lines, without the header; none where there is no file yet."""
        lines = self._whole_lines().splitlines()
        if not lines:
            return []
        found = self._parse(1, lines[0])
        if found != self.header:
            raise InputError(
                f"{self.path} holds the repetitions of another study ({json.dumps(found)}), not of this one "
                f"({json.dumps(self.header)}). Name another file, or delete this one to start again."
            )
        return [Repetition(**self._parse(number, line)) for number, line in enumerate(lines[1:], 2)]

    @contextmanager
    def open(self) -> Iterator[Callable[[PlainDict], None]]:
        """Open for appending: a torn last line is cut off, the header written if there is none."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        whole = len(self._whole_lines())
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        synced = time.monotonic()

        def append(line: PlainDict) -> None:
            """Write one line whole; now and then make sure that it is on the disk."""
            nonlocal synced
            data = (json.dumps(line, separators=(",", ":")) + "\n").encode()
            if os.write(descriptor, data) != len(data):
                raise OSError("the disk is full: the last line is incomplete and will be dropped at the next run")
            if time.monotonic() - synced > SYNC_SECONDS:
                os.fsync(descriptor)
                synced = time.monotonic()

        try:
            if whole < os.fstat(descriptor).st_size:
                os.truncate(self.path, whole)
            if whole == 0:
                append(self.header)
            yield append
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _whole_lines(self) -> bytes:
        data = self.path.read_bytes() if self.path.exists() else b""
        return data[: data.rfind(b"\n") + 1]

    def _parse(self, number: int, line: bytes) -> PlainDict:
        try:
            parsed = json.loads(line)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise InputError(f"Line {number} of {self.path} is not a JSON object. Delete that line, or the file to start again.")
        return parsed


@dataclass(frozen=True)
class Repetition:
    """One finished repetition of one cell: what its task returned, or why it failed; and the processor time it took."""

    cell: Cell  #: the parameters of the cell
    repetition: int  #: its number, from 0
    values: PlainDict = field(default_factory=dict)  #: what the task returned; empty where it failed
    error: str | None = None  #: why it failed
    seconds: float = field(default=0.0, compare=False)  #: processor time

    @property
    def key(self) -> str:
        """The name of the cell and the number of the repetition, as text."""
        return _key(self.cell, self.repetition)

    def line(self) -> PlainDict:
        """Return it as a line of the journal."""
        outcome = {"values": self.values} if self.error is None else {"error": self.error}
        return {"cell": self.cell, "repetition": self.repetition, **outcome, "seconds": round(self.seconds, 3)}


@dataclass(frozen=True, repr=False)
class StudyTable:
    """What a study found."""

    name: str  #: the study's name
    cells: tuple[Cell, ...]  #: the parameters of each cell
    repetitions: tuple[Repetition, ...]  #: every finished repetition, by cell, then number
    failures: tuple[Repetition, ...] = ()  #: those whose task raised, with the error's text

    def values(self, name: str, **where: object) -> Array:
        """Return one number of every repetition whose cell has the parameters ``where``."""
        found = [run.values[name] for run in self.where(**where) if run.values.get(name) is not None]
        return np.array(found, dtype=np.float64)

    def where(self, **where: object) -> list[Repetition]:
        """Return the repetitions whose cell has these parameters."""
        return [run for run in self.repetitions if all(run.cell.get(k) == v for k, v in where.items())]

    @property
    def seconds(self) -> float:
        """Processor time of all finished repetitions."""
        return sum(run.seconds for run in self.repetitions)

    @property
    def rows(self) -> list[PlainDict]:
        """One row per cell: parameters, repetitions, and each number's mean and standard error (binomial where it is 0 or 1)."""
        return [self._row(cell) for cell in self.cells]

    def _row(self, cell: Cell) -> PlainDict:
        here = [run.values for run in self.repetitions if run.cell == cell]
        row: PlainDict = {**cell, "repetitions": len(here)}
        for name in dict.fromkeys(n for values in here for n, v in values.items() if not isinstance(v, list)):
            numbers = np.array([v[name] for v in here if v.get(name) is not None], dtype=np.float64)
            row[name] = float(numbers.mean()) if len(numbers) else float("nan")
            # With the 1/n variance this is sqrt(p (1 - p) / n) for numbers that are 0 or 1.
            row[f"{name}_error"] = float(numbers.std() / np.sqrt(len(numbers))) if len(numbers) else float("nan")
        return row

    @property
    def records(self) -> list[PlainDict]:
        """One row per finished repetition: parameters, its number, and what its task returned."""
        return [{**run.cell, "repetition": run.repetition, **run.values} for run in self.repetitions]

    @property
    def columns(self) -> list[str]:
        """Names over all rows, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def __repr__(self) -> str:
        return f"<StudyTable {self.name!r}: {pluralize(len(self.cells), 'cell')}, {len(self.repetitions)} repetitions>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import table_card

        failed = [f"{pluralize(len(self.failures), 'repetition')} failed."] if self.failures else []
        return table_card(self.name, failed, self.rows)

    def to_csv(self, path: str | Path | None = None) -> str:
        """Return the rows as CSV, and write them where a path is named."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows({k: _short(v) for k, v in row.items()} for row in self.rows)
        if path is not None:
            Path(path).write_text(text.getvalue())
        return text.getvalue()

    def to_markdown(self) -> str:
        """Return the rows as a Markdown table."""
        lines = ["| " + " | ".join(self.columns) + " |", "|" + " --- |" * len(self.columns)]
        lines += ["| " + " | ".join(str(_short(row.get(name, ""))) for name in self.columns) + " |" for row in self.rows]
        return "\n".join(lines)


def _key(cell: Cell, *more: object) -> str:
    """Return a text that identifies a cell, or one repetition of it."""
    return json.dumps([cell, *more], sort_keys=True)


def _short(value: object) -> object:
    return f"{value:.6g}" if isinstance(value, float) else value


def power_study(
    name: str,
    *,
    generators: Mapping[str, Generate],
    methods: Mapping[str, str | Procedure],
    sizes: Sequence[int],
    repetitions: int = 100,
    alpha: float = 0.05,
    n_permutations: int | None = None,
    rng: RNG = 0,
    memory_limit: int | str | None = None,
    scale: str | None = None,
    missing: str = "error",
    groups: str | None = None,
    strata: str | None = None,
    pairs: str | None = None,
    blocks: int | str | None = None,
    group_sizes: str = CUT,
) -> Study:
    """Return the study of how often each method rejects (``power``) on each generator at each size.

    Parameters
    ----------
    name : str
        Part of every seed.
    generators : mapping
        Name to ``(rng, size) -> (x, y)``. Every method sees the same samples.
    methods : mapping
        Name to a method name or a procedure.
    sizes : sequence of int
        Handed to the generators.
    repetitions, rng
        As for :class:`Study`.
    alpha, n_permutations, memory_limit, scale, missing, blocks, group_sizes
        As for :func:`two_sample_test`.
    groups, strata, pairs : str, optional
        A column of the frames that generators return, as for :func:`two_sample_test`.

    Returns
    -------
    Study
        Call its ``run``; pass a file so that an interrupted study can go on.

    Examples
    --------
    >>> from cpmmd import power_study
    >>> def shifted(rng, size):
    ...     return rng.normal(size=(size, 2)), rng.normal(1.5, 1, size=(size, 2))
    >>> study = power_study("demo", generators={"shift": shifted}, methods={"median": "median"}, sizes=[30], repetitions=5)
    >>> study.run().rows[0]["power"]
    1.0
    """
    usual = TestOptions()
    options = TestOptions(
        usual.method, alpha, n_permutations, None, memory_limit, scale, missing, groups, strata, pairs, blocks, group_sizes
    )
    for method in methods.values():
        replace(options, method=method).plan()
    given = {option: value for option, value in vars(options).items() if value != getattr(usual, option)}
    settings = {"alpha": alpha, "n_permutations": n_permutations, **given}
    cells = [{"generator": g, "size": int(s), "method": m} for g in generators for s in sizes for m in methods]
    task = partial(_test_once, dict(generators), dict(methods), settings)
    return Study(name, task, cells, repetitions, rng, data_keys=("generator", "size"), settings=settings)


def _test_once(
    generators: Mapping[str, Generate],
    methods: Mapping[str, str | Procedure],
    settings: PlainDict,
    cell: Cell,
    data_rng: np.random.Generator,
    test_rng: np.random.Generator,
) -> dict[str, float]:
    x, y = generators[cell["generator"]](data_rng, cell["size"])
    result = two_sample_test(x, y, method=methods[cell["method"]], rng=test_rng, **settings)
    return {"power": int(result.reject), "pvalue": result.pvalue}
