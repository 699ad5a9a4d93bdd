"""Standard streams that are closed or full: what a command answers, by its exit code, does not depend on them."""

from __future__ import annotations

import io
import os
import sys
from typing import Any


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
