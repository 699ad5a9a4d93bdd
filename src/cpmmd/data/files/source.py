"""Where bytes come from: a file on disk, or what a pipe held."""

from __future__ import annotations

import glob
import io
from dataclasses import dataclass
from pathlib import Path
from typing import BinaryIO

HEAD = 1 << 16  # enough to tell a format and to estimate how many values a text holds


@dataclass(frozen=True)
class Source:
    """A file that exists, or bytes in memory; ``member`` is the array asked for in an archive."""

    label: str
    path: Path | None = None
    content: bytes | None = None
    member: str | None = None

    def open(self) -> BinaryIO:
        """Return the bytes from their beginning."""
        if self.path is not None:
            return self.path.open("rb")
        return io.BytesIO(self.content or b"")

    def head(self) -> bytes:
        """Return the first bytes."""
        with self.open() as file:
            return file.read(HEAD)

    @property
    def size(self) -> int:
        """Number of bytes."""
        return self.path.stat().st_size if self.path is not None else len(self.content or b"")

    @property
    def native(self) -> str | io.BytesIO:
        """What polars takes: the path, so that it can be mapped, escaped since polars sees patterns in it; or the bytes."""
        return glob.escape(str(self.path)) if self.path is not None else io.BytesIO(self.content or b"")
