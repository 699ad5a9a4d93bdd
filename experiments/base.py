"""An experiment: cells, a task, a summary and a figure; and where its results lie."""

from __future__ import annotations

import csv
import itertools
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cpmmd import Study, StudyTable
from cpmmd.errors import InputError
from experiments.arithmetic import FIXED, fixed

HERE = Path(__file__).parent
RESULTS = HERE / "results"
PAPER = HERE / "paper"
MANY = 10**9  # repetitions: all there are
ALL_CELLS = ("*",)  # train a network
Cell = dict[str, Any]
Task = Callable[[Cell, np.random.Generator, np.random.Generator], Mapping[str, Any]]  # (cell, data_rng, test_rng)
Rows = list[dict[str, Any]]
Progress = Callable[[str, int, int], None]  # (name, done, total)


@dataclass(frozen=True)
class Experiment:
    """One table or figure of the paper.

    Attributes
    ----------
    id, artefact, title
        Its short name, where it stands in the paper, what it shows.
    task, cells, repetitions, data_keys, settings
        The study, see :class:`cpmmd.Study`; the paper's number of repetitions.
    summarise
        Turns the table into the rows of ``summary.csv``; by default the table's own.
    draw
        Turns (table, summary rows) into a matplotlib figure in the paper's form.
    timed
        Whether it measures times: it has one process, and no run gives them again.
    needs
        Names of the data sets it draws from.
    networks
        Names of the methods that train a network, or ``ALL_CELLS``: they need the one arithmetic of ``experiments.arithmetic``.
    note
        What a reader must know beside the numbers.
    """

    id: str
    artefact: str
    title: str
    task: Task
    cells: Sequence[Cell]
    repetitions: int
    data_keys: tuple[str, ...] | None = None
    settings: Mapping[str, Any] = field(default_factory=dict)
    summarise: Callable[[StudyTable], Rows] = lambda table: table.rows
    draw: Callable[[StudyTable, Rows], Any] | None = None
    timed: bool = False
    needs: tuple[str, ...] = ()
    networks: tuple[str, ...] = ()
    note: str = ""

    def study(self, repetitions: int | None = None) -> Study:
        """Return the study, with the paper's repetitions unless told."""
        count = self.repetitions if repetitions is None else repetitions
        settings = {**self.settings, "arithmetic": FIXED} if self.one_arithmetic else self.settings
        return Study(self.id, self.task, self.cells, count, data_keys=self.data_keys, settings=settings)

    def run(
        self, results: Path, *, repetitions: int | None, jobs: int, progress: Progress | None, resume: bool = True
    ) -> StudyTable:
        """Run what is missing, or everything anew, and write the tables and the figure."""
        if self.one_arithmetic and not fixed():
            raise InputError(
                f"{self.id} trains networks, whose last digits depend on the instructions that libraries choose when they are "
                f"loaded. Run it as 'python -m experiments run {self.id}', which sets {', '.join(FIXED)} first."
            )
        if not resume:
            keep_former(self.journal(results))
        table = self.study(repetitions).run(self.journal(results), n_jobs=1 if self.timed else jobs, progress=progress)
        self.publish(table, results)
        return table

    @property
    def one_arithmetic(self) -> bool:
        """Whether its answers are the same elsewhere under the one arithmetic only."""
        return not self.timed and any(map(self.trains, self.cells))

    def trains(self, cell: Cell) -> bool:
        """Whether a cell trains a network."""
        return self.networks == ALL_CELLS or cell.get("method") in self.networks

    def journal(self, results: Path) -> Path:
        """Where finished repetitions are written, each as it ends."""
        return results / self.id / "raw.jsonl"

    def publish(self, table: StudyTable, results: Path) -> None:
        """Write ``repetitions.csv``, ``summary.csv`` and ``figure.svg`` from a table."""
        rows = self.summarise(table)
        write_csv(results / self.id / "repetitions.csv", table.records)
        write_csv(results / self.id / "summary.csv", rows)
        if self.draw is not None and table.repetitions:
            from experiments.figures import save

            save(self.draw(table, rows), results / self.id / "figure.svg")

    def read(self, results: Path) -> StudyTable | None:
        """Return what is finished, or None."""
        path = self.journal(results)
        return self.study(MANY).read(path) if path.exists() else None


def printed(name: str, quantity: str, axis: str, **cell: str) -> dict[float, float]:
    """Return the numbers that the paper prints for a quantity, by one parameter of the cells that agree with ``cell``."""
    found = {}
    for claim in read_csv(PAPER / f"{name}.csv"):
        here = cell_of(claim)
        if (
            claim["quantity"] == quantity
            and claim["source"] not in ("ours", "words")
            and axis in here
            and here.items() >= cell.items()
        ):
            found[float(here[axis])] = float(claim["value"])
    return found


def cell_of(claim: dict[str, Any]) -> dict[str, str]:
    """Return the cell that a number of the paper belongs to."""
    return dict(part.split("=", 1) for part in claim["cell"].split(";"))


def keep_former(path: Path) -> None:
    """Rename a file, so that nothing is lost when its work is done again."""
    if path.exists():
        names = (path.with_name(f"{path.name}.{number}") for number in itertools.count(1))
        path.rename(next(name for name in names if not name.exists()))


def write_csv(path: Path, rows: Rows) -> None:
    """Write rows that may differ in their columns."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as file:
        writer = csv.DictWriter(file, _columns(rows), lineterminator="\n")
        writer.writeheader()
        writer.writerows(as_text(rows))


def as_text(rows: Rows) -> Rows:
    """Return rows as they stand in a CSV file: every column in every row, numbers with six digits, a list as JSON."""
    return [{name: _text(row.get(name, "")) for name in _columns(rows)} for row in rows]


def _columns(rows: Rows) -> list[str]:
    return list(dict.fromkeys(name for row in rows for name in row))


def _text(value: Any) -> str:
    if isinstance(value, list):
        return json.dumps(value)
    return f"{value:.6g}" if isinstance(value, float) else "" if value is None else str(value)


def read_csv(path: Path) -> Rows:
    """Return the rows of a CSV file as text."""
    if not path.exists():
        return []
    with path.open(newline="") as file:
        return [dict(row) for row in csv.DictReader(file)]
