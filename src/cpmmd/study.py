"""Power studies: generators x sizes x methods x repetitions, resumable, the same table whatever the jobs or interruptions."""

from __future__ import annotations

import csv
import io
import json
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from cpmmd import parallel, validation
from cpmmd.api import two_sample_test
from cpmmd.errors import InputError
from cpmmd.journal import Journal
from cpmmd.procedures.base import Procedure
from cpmmd.progress import Progress
from cpmmd.results import json_clean
from cpmmd.samples import Array
from cpmmd.seeds import keyed_rng

Cell = dict[str, Any]
Task = Callable[[Cell, np.random.Generator, np.random.Generator], Mapping[str, Any]]
Generate = Callable[[np.random.Generator, int], tuple[Any, Any]]


@dataclass(frozen=True)
class Repetition:
    """One finished repetition of one cell: what its task gave, or why it failed; and the processor time it took."""

    cell: Cell
    repetition: int
    values: dict[str, Any] = field(default_factory=dict)
    error: str | None = None
    seconds: float = field(default=0.0, compare=False)

    @property
    def key(self) -> str:
        """What tells it from all others."""
        return _key(self.cell, self.repetition)

    def line(self) -> dict[str, Any]:
        """Give it as a line of the journal."""
        told = {"values": self.values} if self.error is None else {"error": self.error}
        return {"cell": self.cell, "repetition": self.repetition, **told, "seconds": round(self.seconds, 3)}


@dataclass(frozen=True)
class Study:
    """A task over a list of cells, repeated.

    Parameters
    ----------
    name
        Part of every seed.
    task
        A function at module level ``(cell, data_rng, test_rng) -> dict`` of numbers (0 and 1 for decisions). Lists are kept, not
        averaged.
    cells
        The parameters of each cell, plain JSON values.
    repetitions, seed
        How often, and from which seed.
    data_keys
        The parameters that decide the data: cells that agree in them get the same ``data_rng``. None: all parameters.
    settings
        What else the answers depend on, plain JSON values; a file of repetitions made under other settings is refused.

    Examples
    --------
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
    seed: int = 0
    data_keys: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        validation.whole("repetitions", self.repetitions, at_least=1)
        validation.whole("seed", self.seed, at_least=0)
        object.__setattr__(self, "cells", tuple(dict(cell) for cell in self.cells))
        if len({_key(cell) for cell in self.cells}) < len(self.cells):
            raise InputError("The cells of a study must differ from each other. Two are the same; leave one out.")

    def run(self, path: str | Path | None = None, *, n_jobs: int | None = 1, progress: Progress | None = None) -> StudyTable:
        """Run what is not in ``path`` yet, one repetition of every cell after the other, and give the table.

        Parameters
        ----------
        path
            Finished repetitions are appended to this file, a JSON line each, and not run again; failed ones are. None keeps
            them in memory only.
        n_jobs
            Processes, one thread each; None follows ``joblib.parallel_config``.
        progress
            Called as ``progress(name, done, total)``.
        """
        if path is None:
            return self._table(self._finish([], lambda _: None, n_jobs, progress))
        journal = Journal(path, {"study": self.name, "seed": self.seed, "settings": dict(self.settings)})
        done = [Repetition(**line) for line in journal.read()]
        with journal.open() as writer:
            return self._table(self._finish(done, lambda one: writer.append(one.line()), n_jobs, progress))

    def read(self, path: str | Path) -> StudyTable:
        """Give the table of what is finished, running nothing."""
        journal = Journal(path, {"study": self.name, "seed": self.seed, "settings": dict(self.settings)})
        return self._table([Repetition(**line) for line in journal.read()])

    def _finish(
        self, done: list[Repetition], keep: Callable[[Repetition], None], n_jobs: int | None, progress: Progress | None
    ) -> list[Repetition]:
        finished = {one.key for one in done if one.error is None}
        wanted = [(cell, repetition) for repetition in range(self.repetitions) for cell in self.cells]
        left = [item for item in wanted if _key(*item) not in finished]
        work = partial(_run_one, self.task, (self.name, self.seed), self.data_keys)
        for count, one in enumerate(parallel.map_tasks(work, left, n_jobs=n_jobs), len(wanted) - len(left) + 1):
            keep(one)
            done.append(one)
            if progress is not None:
                progress(self.name, count, len(wanted))
        return done

    def _table(self, done: list[Repetition]) -> StudyTable:
        """Put the repetitions that belong to this study in order; the last word on each counts."""
        place = {_key(cell): position for position, cell in enumerate(self.cells)}
        last = {one.key: one for one in done if one.repetition < self.repetitions and _key(one.cell) in place}
        found = sorted(last.values(), key=lambda one: (place[_key(one.cell)], one.repetition))
        return StudyTable(
            self.name,
            tuple(self.cells),
            tuple(one for one in found if one.error is None),
            tuple(one for one in found if one.error is not None),
        )


@dataclass(frozen=True)
class StudyTable:
    """What a study found.

    Attributes
    ----------
    cells
        The parameters of each cell.
    repetitions
        Every finished repetition, by cell, then number.
    failures
        Those whose task raised, with the error's text.
    """

    name: str
    cells: tuple[Cell, ...]
    repetitions: tuple[Repetition, ...]
    failures: tuple[Repetition, ...] = ()

    def values(self, name: str, **where: Any) -> Array:
        """Give one number of every repetition whose cell has the parameters ``where``."""
        return np.array([one.values[name] for one in self.where(**where) if one.values.get(name) is not None], dtype=np.float64)

    def where(self, **where: Any) -> list[Repetition]:
        """Give the repetitions whose cell has these parameters."""
        return [one for one in self.repetitions if all(one.cell.get(k) == v for k, v in where.items())]

    @property
    def seconds(self) -> float:
        """Processor time of all finished repetitions."""
        return sum(one.seconds for one in self.repetitions)

    @property
    def rows(self) -> list[dict[str, Any]]:
        """One row a cell: parameters, repetitions, and each number's mean and standard error (binomial where it is 0 or 1)."""
        return [self._row(cell) for cell in self.cells]

    def _row(self, cell: Cell) -> dict[str, Any]:
        here = [one.values for one in self.repetitions if one.cell == cell]
        row: dict[str, Any] = {**cell, "repetitions": len(here)}
        for name in dict.fromkeys(n for values in here for n, v in values.items() if not isinstance(v, list)):
            numbers = np.array([v[name] for v in here if v.get(name) is not None], dtype=np.float64)
            row[name] = float(numbers.mean()) if len(numbers) else float("nan")
            # With the 1/n variance this is sqrt(p (1 - p) / n) for numbers that are 0 or 1.
            row[f"{name}_error"] = float(numbers.std() / np.sqrt(len(numbers))) if len(numbers) else float("nan")
        return row

    @property
    def records(self) -> list[dict[str, Any]]:
        """One row a finished repetition: parameters, its number, and what its task gave."""
        return [{**one.cell, "repetition": one.repetition, **one.values} for one in self.repetitions]

    @property
    def columns(self) -> list[str]:
        """Names over all rows, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

    def to_csv(self, path: str | Path | None = None) -> str:
        """Give the rows as CSV, and write them where a path is named."""
        text = io.StringIO()
        writer = csv.DictWriter(text, self.columns, lineterminator="\n", restval="")
        writer.writeheader()
        writer.writerows({k: _short(v) for k, v in row.items()} for row in self.rows)
        if path is not None:
            Path(path).write_text(text.getvalue())
        return text.getvalue()

    def to_markdown(self) -> str:
        """Give the rows as a Markdown table."""
        lines = ["| " + " | ".join(self.columns) + " |", "|" + " --- |" * len(self.columns)]
        lines += ["| " + " | ".join(str(_short(row.get(name, ""))) for name in self.columns) + " |" for row in self.rows]
        return "\n".join(lines)


def power_study(
    name: str,
    *,
    generators: Mapping[str, Generate],
    methods: Mapping[str, str | Procedure],
    sizes: Sequence[int],
    repetitions: int = 100,
    alpha: float = 0.05,
    seed: int = 0,
    n_permutations: int | None = None,
) -> Study:
    """Give the study of how often each method rejects (``power``) on each generator at each size.

    Parameters
    ----------
    generators
        Name to ``(rng, size) -> (x, y)``. Every method sees the same samples.
    methods
        Name to a method name or a procedure.
    sizes
        Handed to the generators.
    repetitions, alpha, seed, n_permutations
        As in :class:`Study` and :func:`cpmmd.two_sample_test`.

    Examples
    --------
    >>> def shifted(rng, size):
    ...     return rng.normal(size=(size, 2)), rng.normal(1.5, 1, size=(size, 2))
    >>> study = power_study("demo", generators={"shift": shifted}, methods={"median": "median"}, sizes=[30], repetitions=5)
    >>> study.run().rows[0]["power"]
    1.0
    """
    cells = [{"generator": g, "size": int(s), "method": m} for g in generators for s in sizes for m in methods]
    task = partial(_test_once, dict(generators), dict(methods), alpha, n_permutations)
    settings = {"alpha": alpha, "n_permutations": n_permutations}
    return Study(name, task, cells, repetitions, seed, data_keys=("generator", "size"), settings=settings)


def _test_once(
    generators: Mapping[str, Generate],
    methods: Mapping[str, str | Procedure],
    alpha: float,
    n_permutations: int | None,
    cell: Cell,
    data_rng: np.random.Generator,
    test_rng: np.random.Generator,
) -> dict[str, float]:
    x, y = generators[cell["generator"]](data_rng, cell["size"])
    method = methods[cell["method"]]
    result = two_sample_test(x, y, method=method, alpha=alpha, n_permutations=n_permutations, rng=test_rng)
    return {"power": int(result.reject), "pvalue": result.pvalue}


def _run_one(task: Task, seed: tuple[str, int], data_keys: tuple[str, ...] | None, item: tuple[Cell, int]) -> Repetition:
    cell, repetition = item
    start = time.process_time()
    data_cell = cell if data_keys is None else {k: v for k, v in cell.items() if k in data_keys}
    data_rng, test_rng = keyed_rng(seed, "data", data_cell, repetition), keyed_rng(seed, "test", cell, repetition)
    try:
        with parallel.threads(1):  # the same arithmetic here as in a process of its own
            values = json_clean(dict(task(dict(cell), data_rng, test_rng)))
        return Repetition(cell, repetition, values, seconds=time.process_time() - start)
    except Exception as error:  # one bad repetition must not cost the others
        return Repetition(cell, repetition, error=f"{type(error).__name__}: {error}")


def _key(cell: Cell, *more: Any) -> str:
    return json.dumps([cell, *more], sort_keys=True)


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
