"""The formats of a report, by the suffix of its file."""

from __future__ import annotations

import os
from pathlib import Path

from cpmmd.errors import InputError

FORMATS = {".html": "html", ".htm": "html", ".md": "markdown", ".markdown": "markdown", ".json": "json"}


def format_of(path: str | os.PathLike[str]) -> str:
    """Return the format that a path's suffix asks for."""
    suffix = Path(path).suffix.lower()
    if suffix not in FORMATS:
        raise InputError(f"A report's path must end in .html, .md or .json. Got {str(path)!r}; rename it.")
    return FORMATS[suffix]
