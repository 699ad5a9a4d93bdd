"""Name what no text file of the project should have; run by pre-commit on the files of a commit, with the standard library alone.

Usage: ``python tests/packaging/hygiene.py FILE ...``; ends with 1 where something is found.
"""

from __future__ import annotations

import json
import re
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path

LARGEST = 1_000_000  # bytes; data belong to a release or a loader, not to git


def faults(path: Path) -> Iterator[str]:
    """Yield a sentence for each thing that is wrong with a file."""
    content = path.read_bytes()
    if len(content) > LARGEST:
        yield f"{path}: {len(content)} bytes, more than {LARGEST}"
    try:
        text = content.decode("utf-8")
    except UnicodeDecodeError as error:
        yield f"{path}: not UTF-8 at byte {error.start}"
        return
    if "\r" in text:
        yield f"{path}: carriage returns; lines end with a line feed alone"
    if text and (not text.endswith("\n") or text.endswith("\n\n")):
        yield f"{path}: does not end with exactly one line feed"
    for number, line in enumerate(text.split("\n"), start=1):
        if line != line.rstrip(" \t"):
            yield f"{path}:{number}: spaces at the end of the line"
        if re.match(r"(<{7}|>{7}) ", line):
            yield f"{path}:{number}: a merge conflict"
    try:
        if path.suffix == ".toml":
            tomllib.loads(text)
        elif path.suffix == ".json":
            json.loads(text)
    except ValueError as error:
        yield f"{path}: {error}"


if __name__ == "__main__":
    found = [fault for name in sys.argv[1:] for fault in faults(Path(name))]
    print("\n".join(found))
    sys.exit(bool(found))
