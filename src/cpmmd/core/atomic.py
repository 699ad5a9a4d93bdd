"""Files that are whole or not there: a reader, or a kill at any moment, finds the old file or the new one, never a part."""

from __future__ import annotations

import contextlib
import os
import secrets
from pathlib import Path

from cpmmd.errors import InputError


def write_whole(path: str | os.PathLike[str], content: bytes | bytearray) -> None:
    """Write beside the file, through to the disk, then put it in the file's place; a symbolic link stays one."""
    target = Path(path).resolve()
    draft = target.with_name(f".cpmmd-{secrets.token_hex(8)}.tmp")
    try:
        with draft.open("xb") as file:
            file.write(content)
            file.flush()
            os.fsync(file.fileno())
        draft.replace(target)
    except OSError as error:
        raise InputError(
            f"{str(path)!r} cannot be written ({error.strerror}). Check that its folder exists and is writable.", file=str(path)
        ) from error
    finally:
        with contextlib.suppress(OSError):
            draft.unlink(missing_ok=True)
