"""What a user sees when something goes wrong: one sentence and exit code 2, never a traceback."""

from __future__ import annotations

import errno
import os
import re
import sys
import warnings
from typing import Any

import typer
from typer.core import TyperGroup

from cpmmd.cli import ERROR, INTERRUPTED
from cpmmd.errors import CpmmdError

BROKEN_PIPE = 141  # as the shell says it: 128 + SIGPIPE
LONGEST = 2000  # characters of a message
# Parameters of the library and what they are called here.
OPTIONS = {"n_permutations": "permutations", "rng": "seed", "n_jobs": "jobs", "repetitions": "repetitions", "sizes": "sizes"}


def debugging() -> bool:
    """Whether tracebacks were asked for."""
    return os.environ.get("CPMMD_DEBUG", "") not in ("", "0")


class Commands(TyperGroup):
    """The group of commands, which ends every failure of a command in a sentence."""

    def invoke(self, ctx: Any) -> Any:
        """Run a command."""
        for stream in (sys.stdout, sys.stderr):
            if hasattr(stream, "reconfigure"):
                stream.reconfigure(errors="backslashreplace")  # a terminal that knows no emoji must not end in an error
        with warnings.catch_warnings():
            _quiet_warnings()
            try:
                answer = super().invoke(ctx)
                sys.stdout.flush()
                return answer
            except KeyboardInterrupt:
                raise typer.Exit(INTERRUPTED) from None
            except Exception as error:
                if isinstance(error, typer.Abort) or hasattr(error, "exit_code"):  # typer's own: usage errors and exits
                    raise
                raise typer.Exit(_explained(error)) from None


def _explained(error: Exception) -> int:
    """Tell the user what happened; give the exit code."""
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        # Whoever read us has gone: let the interpreter's last flush go nowhere rather than complain.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return BROKEN_PIPE
    if debugging():
        raise error
    if isinstance(error, (CpmmdError, MemoryError, OSError)):
        fail(str(error) or f"{type(error).__name__} without a message")
    else:
        fail(
            f"something unexpected happened ({type(error).__name__}: {error}). This is a fault of cpmmd, not yours; "
            "set CPMMD_DEBUG=1 to see the traceback, and please report it"
        )
    return ERROR


def fail(message: str) -> None:
    """Print an error, in the words of the command line."""
    typer.echo(f"cpmmd: {one_line(in_options(message), LONGEST)}", err=True)


def in_options(message: str) -> str:
    """Give a message of the library with options in place of parameters.

    Examples
    --------
    >>> in_options("Pass missing='drop' or use n_permutations=19. The 'alpha' parameter must be small.")
    "Pass --missing drop or use --permutations 19. The '--alpha' option must be small."
    """

    def option(name: str) -> str:
        return "--" + OPTIONS.get(name, name).replace("_", "-")

    message = re.sub(r"\b(missing|method|scale)='([\w-]+)'", lambda m: f"{option(m[1])} {m[2]}", message)
    message = re.sub(r"\b(n_permutations|alpha|n_jobs)=([\d.]+\d|\d)", lambda m: f"{option(m[1])} {m[2]}", message)
    return re.sub(r"'(\w+)' parameter", lambda m: f"'{option(m[1])}' option", message)


def one_line(text: str, limit: int) -> str:
    """Give text from the data or the system as one harmless line."""
    from cpmmd.text import shown

    return shown(text, limit)


def _quiet_warnings() -> None:
    """Say our own warnings as notes; those of libraries are nothing a user can act on."""
    if debugging():
        return

    def say(message: Warning | str, *_: Any, **__: Any) -> None:
        typer.echo(f"Note: {one_line(str(message), LONGEST)}", err=True)

    from cpmmd.errors import CpmmdWarning

    warnings.simplefilter("ignore")
    warnings.simplefilter("always", CpmmdWarning)
    warnings.showwarning = say
