"""Printing: the verdict first, names from the data sanitized, one JSON document when asked for."""

from __future__ import annotations

import io
import json
import os
import sys
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING

import typer

from cpmmd.cli.failures import in_command_words
from cpmmd.core.progress import Meter
from cpmmd.core.text import sanitize

if TYPE_CHECKING:
    from cpmmd.core.plain import PlainDict

NAME, LINE, COMMAND = 40, 400, 4000  # characters of a name in a table, of a line, of a command with its paths


def say(line: str = "", *, limit: int = LINE) -> None:
    """Print a line for a person."""
    indent = line[: len(line) - len(line.lstrip(" "))]
    typer.echo(indent + sanitize(line, limit) if line.strip() else "")


def say_verdict(line: str, *, differs: bool) -> None:
    """Print the answer, so that it is seen first."""
    plain = not sys.stdout.isatty() or "NO_COLOR" in os.environ
    text = sanitize(line, LINE)
    typer.echo(text if plain else typer.style(text, bold=True, fg="red" if differs else "green"))


def say_end(again: str | None, what: str = "", file: str | None = None) -> None:
    """Print the command that gives the same answer again, and where a file is that was asked for."""
    if again is not None:
        say()
        say("Repeat with")
        say(f"  {again}", limit=COMMAND)
    if file is not None:
        say()
        say(f"{what}: {file}", limit=COMMAND)


def note(lines: Iterable[str]) -> None:
    """Print notes apart from the answer."""
    for line in lines:
        typer.echo(f"Note: {sanitize(in_command_words(line), LINE)}", err=True)


def say_table(header: Sequence[str], rows: Iterable[Sequence[str]], *, right: Sequence[int] = ()) -> None:
    """Print aligned columns; those in ``right`` are numbers."""
    from rich.cells import cell_len

    table = [[sanitize(cell, NAME) if cell else "" for cell in row] for row in ([*header], *map(list, rows))]
    widths = [max(cell_len(row[j]) for row in table) for j in range(len(header))]
    for row in table:
        cells = []
        for j, (cell, width) in enumerate(zip(row, widths, strict=True)):
            space = " " * (width - cell_len(cell))
            cells.append(space + cell if j in right else cell + space)
        typer.echo(("  " + "  ".join(cells)).rstrip())


def say_json(document: PlainDict) -> None:
    """Print one JSON document: ASCII only, so that no name can control the terminal."""
    from cpmmd import __version__
    from cpmmd.core.plain import to_plain

    head = {"schema": SCHEMA, "cpmmd": __version__}
    typer.echo(json.dumps(to_plain({**head, **document}), indent=2, ensure_ascii=True, allow_nan=False))


SCHEMA = "cpmmd-result-3"


def probability(value: float) -> str:
    """Return a p-value with four digits."""
    return f"{value:.4g}"


# Progress of a long step, on standard error: one changing line on a terminal, a line every few seconds in a log.


PATIENCE = 0.5  # seconds before the first line: short commands print none
INTERVAL = 0.1  # between two: short enough to look alive, long enough to cost nothing
QUIET = 10.0  # the same two for a log, which keeps what is written to it
CLEAR = "\r\x1b[2K"


@contextmanager
def progress(step: str) -> Iterator[Meter]:
    """Return a callback for ``progress=``; a terminal's line is wiped at the end, a log gets lines of long steps."""
    shown = _Line() if sys.stderr.isatty() else _Log(step)
    try:
        yield Meter(shown, interval=INTERVAL)
    finally:
        shown.wipe()


class _Line(io.StringIO):
    """Shows the last line written to it."""

    def __init__(self) -> None:
        super().__init__()
        self._from, self._shown = time.monotonic() + PATIENCE, False

    def write(self, text: str) -> int:
        """Show a line in place of the one before."""
        if time.monotonic() >= self._from:
            sys.stderr.write(CLEAR + text.rstrip("\n"))
            sys.stderr.flush()
            self._shown = True
        return len(text)

    def wipe(self) -> None:
        """Leave no line behind."""
        if self._shown:
            sys.stderr.write(CLEAR)
            sys.stderr.flush()


class _Log(io.StringIO):
    """Writes its latest line every QUIET seconds, also while a step has nothing to report."""

    def __init__(self, step: str, clock: Callable[[], float] = time.monotonic) -> None:
        super().__init__()
        self._latest, self._clock, self._started, self._over = step, clock, clock(), threading.Event()
        self._thread = threading.Thread(target=self.speak, args=(self._over.wait,), daemon=True)
        self._thread.start()

    def write(self, text: str) -> int:
        """Keep a line until it is time for one."""
        self._latest = text.rstrip("\n")
        return len(text)

    def speak(self, pause: Callable[[float], bool]) -> None:
        """Write a line after each pause, until the step is over."""
        while not pause(QUIET):
            with suppress(OSError, ValueError):  # the stream is closed
                sys.stderr.write(f"Progress: {self._latest}, {self._clock() - self._started:.0f} s so far\n")
                sys.stderr.flush()

    def wipe(self) -> None:
        """Stop writing."""
        self._over.set()
        self._thread.join(1.0)
