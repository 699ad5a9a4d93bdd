"""How failures end: one sentence and exit code 2, never a traceback."""

from __future__ import annotations

import errno
import os
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from cpmmd.cli.main import ERROR, INTERRUPTED, forget_output
from cpmmd.core.text import sanitize
from cpmmd.errors import CpmmdError, CpmmdWarning, ParameterReference, PythonWords, Sentence

BROKEN_PIPE = 141  # as in the shell: 128 + SIGPIPE
LONGEST = 2000  # characters of a message
OPTIONS = {  # parameters of the library that have another name here
    **{"n_permutations": "permutations", "rng": "seed", "n_jobs": "jobs"},
    **{"groups": "group_by", "strata": "stratify_by", "pairs": "pair_by"},
}


def debugging() -> bool:
    """Whether tracebacks were asked for."""
    return os.environ.get("CPMMD_DEBUG", "") not in ("", "0")


class Commands(TyperGroup):
    """The group of commands, which ends every failure of a command in a sentence."""

    def make_context(self, *arguments: Any, **extra: Any) -> Any:
        """Read the arguments before the command's name."""
        try:
            return super().make_context(*arguments, **extra)
        except OSError as error:  # --version and --help print, and what they print to may be full
            raise typer.Exit(_explain(error)) from None
        except Exception as error:
            raise _sanitized(error) from None

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
                    raise _sanitized(error) from None
                raise typer.Exit(_explain(error)) from None


def _sanitized(error: Exception) -> Exception:
    """Return a usage error whose message, which quotes what was typed, is safe to show."""
    message = getattr(error, "message", None)
    if isinstance(message, str) and message and type(error).__name__ != "NoArgsIsHelpError":  # which is our help
        error.message = sanitize(message, LONGEST)  # type: ignore[attr-defined]
    return error


def _explain(error: Exception) -> int:
    """Print what happened; return the exit code."""
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        forget_output()  # whoever read us has gone
        return BROKEN_PIPE
    if debugging():
        raise error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        forget_output()
    if isinstance(error, (CpmmdError, MemoryError, OSError)):
        message = in_command_words(error) or f"{type(error).__name__} without a message"
    else:
        message = (
            f"an unexpected error happened ({type(error).__name__}: {error}). This is a bug in cpmmd. Set CPMMD_DEBUG=1 to see "
            "the traceback, and please report it"
        )
    typer.echo(f"cpmmd: {sanitize(message, LONGEST)}", err=True)
    return ERROR


class CommandWords:
    """Parameters are flags, samples are files."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels

    def setting(self, setting: ParameterReference) -> str:
        """``--missing drop``, or ``--missing``."""
        flag = "--" + OPTIONS.get(setting.name, setting.name).replace("_", "-")
        return flag if setting.value is None else f"{flag} {setting.value}"

    def parameter(self, name: str) -> str:
        """``The '--alpha' option``."""
        return f"The '{self.setting(ParameterReference(name))}' option"

    def sample(self, name: str, *, begins: bool = False) -> str:
        """The file's name, where a sample is one."""
        return self._labels.get(name) or PythonWords().sample(name, begins=begins)


def in_command_words(text: object, labels: Mapping[str, str] | None = None) -> str:
    """Return an error, a warning or a note in the words of the command line; ``labels`` names the samples."""
    if not isinstance(text, Sentence):
        return str(text)
    known = text.labels if isinstance(text, CpmmdError) else {}
    return text.render(CommandWords(labels or known))


@contextmanager
def calling_samples(**labels: str) -> Iterator[None]:
    """Name the files of the samples in errors that come from inside."""
    try:
        yield
    except CpmmdError as error:
        error.labels = labels
        raise


def _quiet_warnings() -> None:
    """Print our own warnings as notes; those of libraries are nothing a user can act on."""
    if debugging():
        return

    def say(message: Warning | str, *_: object, **__: object) -> None:
        typer.echo(f"Note: {sanitize(in_command_words(message), LONGEST)}", err=True)

    warnings.simplefilter("ignore")
    warnings.simplefilter("always", CpmmdWarning)
    warnings.showwarning = say
