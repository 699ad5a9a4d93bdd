"""Files that are checked before they are used: safetensors, a JSON description, and a checksum over every byte.

Reading one executes nothing. The checksum finds damage, not forgery: whoever writes a file can also write its checksum, so
readers check everything that a file states.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import NoReturn, TypeVar

import numpy as np
from safetensors.numpy import load, save

from cpmmd.core.atomic import write_whole
from cpmmd.core.plain import from_plain
from cpmmd.errors import InputError, MissingExtraError
from cpmmd.kernels.base import Tensors

T = TypeVar("T")

FORMAT = "cpmmd-{}-1"  # of a kind
LENGTH = 8  # bytes before the header that say how long it is
LARGEST_HEADER = 100 * 2**20  # bytes, as safetensors has it
BLANK = b"0" * 64  # stands where the checksum goes while it is computed
# Inside a JSON string quotes are escaped, so nothing in a description can look like these.
CHECKSUM = re.compile(rb'"sha256":"([0-9a-f]{64})"')
KIND = re.compile(rb'"format":"cpmmd-([a-z]+)-\d+"')


def write_file(path: str | Path, tensors: Tensors, description: object, *, kind: str) -> None:
    """Write arrays and a description (plain JSON types) to a file, whole or not at all."""
    try:
        text = json.dumps(description, allow_nan=False)
    except ValueError as error:
        raise InputError(f"Numbers in a {kind} file must be finite. Some are not; rescale the data and fit again.") from error
    metadata = {"format": FORMAT.format(kind), "description": text, "sha256": BLANK.decode()}
    content = bytearray(save({name: np.ascontiguousarray(value) for name, value in tensors.items()}, metadata))
    start = _checksum_place(content)
    content[start : start + len(BLANK)] = _checksum(content, start)
    write_whole(path, content)


def read_file(path: str | Path, restore: Callable[[object, Tensors], T], *, kind: str) -> T:
    """Return what ``restore(description, tensors)`` makes of a file that :func:`write_file` wrote; any other is refused."""
    path = Path(path)
    if not path.exists():
        raise InputError(f"There is no file {path}. Check the path.")
    if not path.is_file():
        raise InputError(f"{path} is not a file. Give the path of one that was saved.")
    try:
        content = bytearray(path.read_bytes())
    except OSError as error:
        raise InputError(f"{path} cannot be read ({error.strerror}). Check its permissions.") from error

    def refuse(why: object, cause: BaseException | None = None, advice: str = "Save or fetch it again.") -> NoReturn:
        raise InputError(f"{path} cannot be read as a cpmmd {kind} file: {why}. {advice}") from cause

    try:
        start = _checksum_place(content)
    except ValueError as error:
        refuse(error)
    if content[start : start + len(BLANK)] != _checksum(content, start):
        refuse("it is damaged or was changed: its checksum does not match")
    try:
        metadata = _metadata(content)
        if metadata["format"] != FORMAT.format(kind):
            other = re.fullmatch(r"cpmmd-([a-z]+)-\d+", metadata["format"])
            if other and other[1] != kind:
                raise InputError(f"{path} must hold a {kind}. It holds a {other[1]}; name the file of a {kind}.")
            refuse(f"its format is {metadata['format']!r}, not {FORMAT.format(kind)!r}")
        return restore(json.loads(metadata["description"], parse_constant=_no_constant), load(bytes(content)))
    except (InputError, MissingExtraError):
        raise
    except Exception as error:  # a forged description can make anything fail
        refuse(
            f"{type(error).__name__}, {error}"[:200], error, "If another version wrote it, fit and save it again with this one."
        )


def kind_of(path: str | Path) -> str | None:
    """Return the kind of a file that :func:`write_file` wrote, as its header states it; None for any other."""
    try:
        with Path(path).open("rb") as file:
            size = int.from_bytes(file.read(LENGTH), "little")
            found = KIND.search(file.read(min(size, LARGEST_HEADER)))
    except OSError:
        return None
    return None if found is None else found[1].decode()


def _header(content: bytearray) -> bytes:
    size = int.from_bytes(content[:LENGTH], "little")
    if len(content) < LENGTH or size > len(content) - LENGTH:
        raise ValueError("it is cut short, or not a file of cpmmd")
    return bytes(content[LENGTH : LENGTH + size])


def _checksum_place(content: bytearray) -> int:
    """Return where the checksum stands; there must be exactly one."""
    found = list(CHECKSUM.finditer(_header(content)))
    if len(found) != 1:
        raise ValueError("it has no checksum, so it is damaged or not a file of cpmmd")
    return LENGTH + found[0].start(1)


def _checksum(content: bytearray, start: int) -> bytes:
    """Return the SHA-256 of all bytes, with a blank in the place of the checksum itself."""
    digest = hashlib.sha256(memoryview(content)[:start])
    digest.update(BLANK)
    digest.update(memoryview(content)[start + len(BLANK) :])
    return digest.hexdigest().encode()


def _metadata(content: bytearray) -> dict[str, str]:
    metadata = from_plain(dict[str, str], json.loads(_header(content))["__metadata__"])
    if metadata["sha256"].encode() != content[_checksum_place(content) :][: len(BLANK)]:
        raise ValueError("its checksum is in the wrong place")
    return metadata


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not a finite number")
