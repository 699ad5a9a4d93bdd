"""An append-only file of finished work, one JSON line each, that survives being killed."""

from __future__ import annotations

import json
import os
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from cpmmd.core.plain import PlainDict
from cpmmd.errors import InputError

SYNC_SECONDS = 1.0  # at most this much finished work is lost to a power cut; a killed process loses none


class Journal:
    """Lines of JSON under a header that says whose they are.

    Each line goes out in one write to a file opened for appending, so a process that is killed leaves whole lines. A torn last
    line (full disk, power cut) is dropped when the file is opened again.
    """

    def __init__(self, path: str | Path, header: Mapping[str, Any]) -> None:
        self.path = Path(path)
        self.header: dict[str, Any] = json.loads(json.dumps(header))

    def read(self) -> list[PlainDict]:
        """Return the finished lines, without the header; none where there is no file yet."""
        if not self.path.exists():
            return []
        lines = _whole_lines(self.path.read_bytes()).splitlines()
        if not lines:
            return []
        found = self._parse(1, lines[0])
        if found != self.header:
            raise InputError(
                f"{self.path} holds the repetitions of another study ({json.dumps(found)}), not of this one "
                f"({json.dumps(self.header)}). Name another file, or remove this one to start again."
            )
        return [self._parse(number, line) for number, line in enumerate(lines[1:], 2)]

    @contextmanager
    def open(self) -> Iterator[Writer]:
        """Open for appending: a torn last line is cut off, the header written if there is none."""
        self.path.parent.mkdir(parents=True, exist_ok=True)
        if self.path.exists():
            whole = len(_whole_lines(self.path.read_bytes()))
            if whole < self.path.stat().st_size:
                os.truncate(self.path, whole)
        descriptor = os.open(self.path, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o644)
        try:
            writer = Writer(descriptor)
            if os.fstat(descriptor).st_size == 0:
                writer.append(self.header)
            yield writer
            os.fsync(descriptor)
        finally:
            os.close(descriptor)

    def _parse(self, number: int, line: bytes) -> PlainDict:
        try:
            parsed = json.loads(line)
        except ValueError:
            parsed = None
        if not isinstance(parsed, dict):
            raise InputError(f"Line {number} of {self.path} is no JSON object. Remove that line, or the file to start again.")
        return parsed


class Writer:
    """Appends lines to an open journal."""

    def __init__(self, descriptor: int) -> None:
        self.descriptor = descriptor
        self.synced = time.monotonic()

    def append(self, line: Mapping[str, Any]) -> None:
        """Write one line whole; now and then make sure that it is on the disk."""
        data = (json.dumps(line, separators=(",", ":")) + "\n").encode()
        if os.write(self.descriptor, data) != len(data):
            raise OSError("the disk is full: the last line is not whole and will be dropped at the next run")
        if time.monotonic() - self.synced > SYNC_SECONDS:
            os.fsync(self.descriptor)
            self.synced = time.monotonic()


def _whole_lines(data: bytes) -> bytes:
    return data[: data.rfind(b"\n") + 1]
