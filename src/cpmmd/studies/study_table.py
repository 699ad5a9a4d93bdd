"""What a study found: repetitions, and the table of their means and errors."""

from __future__ import annotations

import csv
import io
import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from cpmmd.core.arrays import Array
from cpmmd.core.plain import PlainDict

Cell = dict[str, Any]


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
        """What tells it from all others."""
        return repetition_key(self.cell, self.repetition)

    def line(self) -> PlainDict:
        """Return it as a line of the journal."""
        told = {"values": self.values} if self.error is None else {"error": self.error}
        return {"cell": self.cell, "repetition": self.repetition, **told, "seconds": round(self.seconds, 3)}


@dataclass(frozen=True)
class StudyTable:
    """What a study found."""

    name: str  #: the study's name
    cells: tuple[Cell, ...]  #: the parameters of each cell
    repetitions: tuple[Repetition, ...]  #: every finished repetition, by cell, then number
    failures: tuple[Repetition, ...] = ()  #: those whose task raised, with the error's text

    def values(self, name: str, **where: Any) -> Array:
        """Return one number of every repetition whose cell has the parameters ``where``."""
        return np.array([one.values[name] for one in self.where(**where) if one.values.get(name) is not None], dtype=np.float64)

    def where(self, **where: Any) -> list[Repetition]:
        """Return the repetitions whose cell has these parameters."""
        return [one for one in self.repetitions if all(one.cell.get(k) == v for k, v in where.items())]

    @property
    def seconds(self) -> float:
        """Processor time of all finished repetitions."""
        return sum(one.seconds for one in self.repetitions)

    @property
    def rows(self) -> list[PlainDict]:
        """One row a cell: parameters, repetitions, and each number's mean and standard error (binomial where it is 0 or 1)."""
        return [self._row(cell) for cell in self.cells]

    def _row(self, cell: Cell) -> PlainDict:
        here = [one.values for one in self.repetitions if one.cell == cell]
        row: dict[str, Any] = {**cell, "repetitions": len(here)}
        for name in dict.fromkeys(n for values in here for n, v in values.items() if not isinstance(v, list)):
            numbers = np.array([v[name] for v in here if v.get(name) is not None], dtype=np.float64)
            row[name] = float(numbers.mean()) if len(numbers) else float("nan")
            # With the 1/n variance this is sqrt(p (1 - p) / n) for numbers that are 0 or 1.
            row[f"{name}_error"] = float(numbers.std() / np.sqrt(len(numbers))) if len(numbers) else float("nan")
        return row

    @property
    def records(self) -> list[PlainDict]:
        """One row a finished repetition: parameters, its number, and what its task gave."""
        return [{**one.cell, "repetition": one.repetition, **one.values} for one in self.repetitions]

    @property
    def columns(self) -> list[str]:
        """Names over all rows, in order of appearance."""
        return list(dict.fromkeys(name for row in self.rows for name in row))

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


def repetition_key(cell: Cell, *more: Any) -> str:
    """Return what tells a cell, or one repetition of it, from all others."""
    return json.dumps([cell, *more], sort_keys=True)


def _short(value: Any) -> Any:
    return f"{value:.6g}" if isinstance(value, float) else value
