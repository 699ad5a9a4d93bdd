"""The one door to polars: imported when a file is read, its failures turned into sentences."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cpmmd.core.installation import missing_extra
from cpmmd.errors import CpmmdError, InputError, Setting


def polars() -> Any:
    """Return the polars module, or say how to install it."""
    try:
        import polars
    except ImportError as error:
        raise missing_extra("Reading files", "polars", "cli") from error
    return polars


def column(frame: Any, name: str) -> Any:
    """Return a column to look at, without its name: in most of what polars does with a column called ^a$, that is a pattern."""
    return frame[name].alias("")


@contextmanager
def reading(label: str, what: str) -> Iterator[None]:
    """Turn whatever a reader raises into a sentence about the file."""
    try:
        yield
    except (CpmmdError, KeyboardInterrupt):
        raise
    except MemoryError as error:
        raise InputError(f"{label} does not fit into memory. Draw some rows at random first.") from error
    except BaseException as error:  # a panic of polars is not an Exception
        if not isinstance(error, Exception) and type(error).__name__ != "PanicException":
            raise
        raise refusal(label, what, first_line(error)) from error


def first_line(error: BaseException) -> str:
    """Return what an error says, in a line."""
    return (str(error).splitlines() or [type(error).__name__])[0][:200]


def refusal(label: str, what: str, reason: str) -> InputError:
    """Return the error for a file that is not what it seems to be."""
    return InputError(
        "{label} cannot be read as {what} ({reason}). Write or copy it again, or check {setting}.",
        file=label,
        label=label,
        what=what,
        reason=reason,
        setting=Setting("format"),
    )
