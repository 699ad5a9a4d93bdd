"""Files that lie elsewhere: every address that fsspec knows (s3://, gs://, https://, ...), with the user's own credentials."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from cpmmd.data.files.input_file import FileLimit, drain, first_line, in_chunks, package
from cpmmd.errors import CpmmdError, InputError

ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]+(::[A-Za-z0-9+.:-]+)?://")
UNREACHABLE = "{name!r} cannot be reached ({reason}). Check the address and your credentials, or copy it to this computer."


def is_remote(name: str) -> bool:
    """Whether a name is an address."""
    return ADDRESS.match(name) is not None


@contextmanager
def _reaching(name: str) -> Iterator[Any]:
    """Yield the file system of an address and the path in it; any error is a sentence about the address."""
    fsspec = package("fsspec", f"Reading {name!r}", "remote")
    try:
        yield fsspec.core.url_to_fs(name)
    except CpmmdError:
        raise
    except Exception as error:  # each file system has its own
        missing = isinstance(error, FileNotFoundError)
        reason = "there is no such file" if missing else first_line(error) or type(error).__name__
        raise InputError(UNREACHABLE, name=name, reason=reason) from error


def read_remote(name: str, limit: FileLimit) -> bytes:
    """Return the contents of a remote file, refused as soon as they exceed the limit."""
    with _reaching(name) as (system, path), system.open(path, "rb") as file:
        return drain(in_chunks(file.read), name, limit)


def list_remote(name: str, *, pattern: bool) -> list[str] | None:
    """Return the addresses of the files in a remote folder, or that a pattern finds; None where the address is of one file."""
    with _reaching(name) as (system, path):
        if pattern:
            return [system.unstrip_protocol(found) for found in system.glob(path) if not system.isdir(found)]
        return [system.unstrip_protocol(found) for found in system.find(path)] if system.isdir(path) else None
