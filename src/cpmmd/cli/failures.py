"""What a user sees when something goes wrong: one sentence and exit code 2, never a traceback."""

from __future__ import annotations

import errno
import io
import os
import re
import sys
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import typer
from typer.core import TyperGroup

from cpmmd.cli.main import ERROR, INTERRUPTED
from cpmmd.errors import CpmmdError, PythonWords, Setting

# Standard streams that are closed or full: what a command answers, by its exit code, does not depend on them.


def open_streams() -> None:
    """Stand in for streams that are closed, and let no message fail because nobody takes it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed: the next file to be opened would get its number, and what is printed
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    sys.stderr = io.TextIOWrapper(
        _Unfailing(sys.stderr.fileno(), "w", closefd=False),
        encoding=sys.stderr.encoding,
        errors="backslashreplace",
        line_buffering=True,
        write_through=True,
    )


def forget_output() -> None:
    """Let what is left to print go nowhere: the interpreter's last flush would complain, and change the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _Unfailing(io.FileIO):
    """A file that takes everything, whether it can keep it or not."""

    def write(self, content: Any, /) -> int:
        """Write what can be written."""
        rest = memoryview(content).cast("B")
        whole = len(rest)
        try:
            while rest:
                rest = rest[super().write(rest) or len(rest) :]
        except OSError:  # a full disk, a reader that left: the exit code still says how it went
            pass
        return whole


BROKEN_PIPE = 141  # as the shell says it: 128 + SIGPIPE
LONGEST = 2000  # characters of a message
# Parameters of the library that have another name here.
FLAGS = {
    **{"n_permutations": "permutations", "rng": "seed", "n_jobs": "jobs"},
    **{"groups": "group-by", "strata": "stratify-by", "pairs": "pair-by"},
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
            raise _made_harmless(error) from None

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
                    raise _made_harmless(error) from None
                raise typer.Exit(_explain(error)) from None


def _made_harmless(error: Exception) -> Exception:
    """Return a usage error that says what was typed, but not to the terminal."""
    message = getattr(error, "message", None)
    if isinstance(message, str) and message and type(error).__name__ != "NoArgsIsHelpError":  # that one is our help
        error.message = one_line(message, LONGEST)  # type: ignore[attr-defined]
    return error


def _explain(error: Exception) -> int:
    """Tell the user what happened; return the exit code."""
    if isinstance(error, OSError) and error.errno == errno.EPIPE:
        forget_output()  # whoever read us has gone
        return BROKEN_PIPE
    if debugging():
        raise error
    if isinstance(error, OSError) and error.errno == errno.ENOSPC:
        forget_output()
    if isinstance(error, CpmmdError):
        fail(in_command_words(error))
    elif isinstance(error, (MemoryError, OSError)):
        fail(str(error) or f"{type(error).__name__} without a message")
    else:
        fail(
            f"something unexpected happened ({type(error).__name__}: {error}). This is a fault of cpmmd, not yours; "
            "set CPMMD_DEBUG=1 to see the traceback, and please report it"
        )
    return ERROR


def fail(message: str) -> None:
    """Print an error."""
    typer.echo(f"cpmmd: {one_line(message, LONGEST)}", err=True)


class CommandWords:
    """Parameters are flags, samples are files."""

    def __init__(self, labels: Mapping[str, str]) -> None:
        self._labels = labels

    def setting(self, setting: Setting) -> str:
        """``--missing drop``, or ``--missing``."""
        flag = "--" + FLAGS.get(setting.name, setting.name).replace("_", "-")
        return flag if setting.value is None else f"{flag} {setting.value}"

    def parameter(self, name: str) -> str:
        """``The '--alpha' option``."""
        return f"The '{self.setting(Setting(name))}' option"

    def sample(self, name: str, *, begins: bool = False) -> str:
        """The file's name, where a sample is one."""
        return self._labels.get(name) or PythonWords().sample(name, begins=begins)


def in_command_words(error: CpmmdError) -> str:
    """Return an error's sentence in the words of the command line."""
    return error.render(CommandWords(getattr(error, "labels", {})))


def note_in_command_words(text: str) -> str:
    """Return a note of the library with the arguments that it advises as flags."""

    def flag(found: re.Match[str]) -> str:
        return CommandWords({}).setting(Setting(found[1], found[2]))

    return re.sub(r"\b(groups|strata|pairs|blocks)=(?:'([^']*)'|\.\.\.)", flag, text)


@contextmanager
def calling_samples(**labels: str) -> Iterator[None]:
    """Say which files the samples are, to whoever renders an error that comes from inside."""
    try:
        yield
    except CpmmdError as error:
        error.labels = labels
        raise


def one_line(text: str, limit: int) -> str:
    """Return text from the data or the system as one harmless line."""
    from cpmmd.core.text import harmless

    return harmless(text, limit)


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
