"""Where a command begins and ends: standard streams, exit codes, missing packages, garbage. Nothing of typer here."""

from __future__ import annotations

import gc
import io
import os
import sys
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer as Buffer

ERROR, INTERRUPTED = 2, 130  # 0 and 1 are answers


def main() -> None:
    """Run the command of this process's arguments and exit with its code."""
    gc.disable()
    open_streams()
    try:
        try:
            from cpmmd.cli.app import app
        except ModuleNotFoundError as error:
            if error.name is None or error.name.split(".")[0] not in ("typer", "click", "rich"):
                raise
            from cpmmd.core.installation import missing_extra

            print(f"cpmmd: {missing_extra('The command line', error.name, 'cli')}", file=sys.stderr)
            sys.exit(ERROR)
        app(prog_name="cpmmd")
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    finally:
        gc.freeze()


def collect_garbage_from_now_on() -> None:
    """Look for garbage from now on, but not among what imports have made: all of it stays.

    Searching that while importing, and once more at the end, took a fifth of a short command's time.
    """
    gc.freeze()
    gc.enable()


# Standard streams that are closed or full: what a command answers, by its exit code, does not depend on them.


def open_streams() -> None:
    """Stand in for streams that are closed, and let no message fail because nobody takes it."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:  # closed: the next file to be opened would get its number, and what is printed
            number = os.open(os.devnull, os.O_RDWR)
            os.set_inheritable(number, True)
            setattr(sys, name, os.fdopen(number, mode, encoding="utf-8", closefd=False))
    sys.stderr = io.TextIOWrapper(
        _UnfailingFile(sys.stderr.fileno(), "w", closefd=False),
        encoding=sys.stderr.encoding,
        errors="backslashreplace",
        line_buffering=True,
        write_through=True,
    )


def forget_output() -> None:
    """Let what is left to print go nowhere: the interpreter's last flush would complain, and change the exit code."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


class _UnfailingFile(io.FileIO):
    """A file that takes everything, whether it can keep it or not."""

    def write(self, content: Buffer, /) -> int:
        """Write what can be written."""
        rest = memoryview(content).cast("B")
        whole = len(rest)
        try:
            while rest:
                rest = rest[super().write(rest) or len(rest) :]
        except OSError:  # a full disk, a reader that left: the exit code still says how it went
            pass
        return whole
