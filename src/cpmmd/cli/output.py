"""Printing: verdict first, names from the data harmless, one JSON document when asked for."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable, Sequence
from typing import Any

import typer

from cpmmd.cli.failures import one_line

NAME, LINE, COMMAND = 40, 400, 4000  # characters of a name in a table, of a line, of a command with its paths


def say(line: str = "", *, limit: int = LINE) -> None:
    """Print a line for a person."""
    indent = line[: len(line) - len(line.lstrip(" "))]
    typer.echo(indent + one_line(line, limit) if line.strip() else "")


def say_verdict(line: str, *, differs: bool) -> None:
    """Print the answer, so that it is seen first."""
    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ
    text = one_line(line, LINE)
    typer.echo(text if plain else typer.style(text, bold=True, fg="red" if differs else "green"))


def say_end(again: str | None, what: str = "", file: str | None = None) -> None:
    """Print how to get the same answer again, and where a file is that was asked for."""
    if again is not None:
        say()
        say("Repeat with")
        say(f"  {again}", limit=COMMAND)
    if file is not None:
        say()
        say(f"{what}: {file}", limit=COMMAND)


def note(lines: Iterable[str]) -> None:
    """Tell what was noticed, apart from the answer."""
    for line in lines:
        typer.echo(f"Note: {one_line(line, LINE)}", err=True)


def say_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Print aligned columns; those in ``right`` are numbers."""
    from rich.cells import cell_len

    table = [[one_line(cell, NAME) if cell else "" for cell in row] for row in ([*header], *map(list, rows))]
    widths = [max(cell_len(row[j]) for row in table) for j in range(len(header))]
    for row in table:
        cells = []
        for j, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if j in right else cell + space)
        typer.echo(("  " + "  ".join(cells)).rstrip())


def say_json(document: dict[str, Any]) -> None:
    """Print one JSON document: ASCII only, so that no name can speak to the terminal."""
    from cpmmd import __version__
    from cpmmd.core.plain import to_plain

    head = {"schema": SCHEMA, "cpmmd": __version__}
    typer.echo(json.dumps(to_plain({**head, **document}), indent=2, ensure_ascii=True, allow_nan=False))


SCHEMA = "cpmmd-result-2"


def probability(value: float) -> str:
    """Return a p-value as people write it."""
    return f"{value:.4g}"
