"""Reports on disk: the suffix says the format, and a file is whole or not there."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

from cpmmd.errors import InputError

FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json"}


def format_of(path: str | os.PathLike[str]) -> str:
    """Give the format that a path's suffix asks for."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"A report's path must end in .html, .md or .json. Got {str(path)!r}; rename it.")
    return FORMATS[suffix]


def write_whole(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file so that a reader, or a kill at any moment, finds the old file or the new one, never a part."""
    target = Path(path).resolve()  # a symbolic link stays one
    draft = target.with_name(f".cpmmd-{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("x", encoding="utf-8", newline="\n") as file:
            file.write(text)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        draft.unlink(missing_ok=True)
        raise InputError(f"The report could not be written to {str(path)!r} ({error.strerror}). Check the folder.") from error
    except BaseException:
        draft.unlink(missing_ok=True)
        raise
