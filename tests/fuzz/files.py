"""Files of every format, damaged: each ends in a frame or a sentence, and no reader takes the process with it.

Cases run in another process, many to one: should it end, the case that it was at has ended it.
"""

from __future__ import annotations

import csv
import datetime
import faulthandler
import functools
import gzip
import io
import json
import os
import re
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import openpyxl
import polars as pl
import zstandard

from cpmmd.data.texts import NULLS

from .cases import FaultError, Found, faults_of, pick, random_of

LONGEST = 60  # seconds for one case, or it hangs
TEXT = ("a.csv", "a.tsv")
ODD = (
    *(
        "",
        " ",
        "NA",
        "nan",
        "None",
        "null",
        "-",
        "x",
        "True",
        '"',
        '""',
        "'",
        '"7"',
        '"7\n8"',
        "7\n",
        " 7 ",
        "+7",
        "7.",
        ".7",
        "07",
        "7e3",
        "7E400",
    ),
    *(
        "1,5",
        "1.234,5",
        "1 000",
        "1_000",
        "0x10",
        "7%",
        "$7",
        "inf",
        "-Infinity",
        "∞",
        "٣",
        "²",
        "9007199254740993",
        "1" * 400,
        "-0",
    ),
    *(
        "01/02/2024",
        "2024-02-30",
        "2024-13-01",
        "2024-01-01T10:00:00Z",
        "20240101",
        "10:00",
        "0000-01-01",
        "99999-01-01",
        "\x1b[31m",
        "\x00",
    ),
)
DAY = datetime.date(2024, 1, 1)
ROWS = 50


@functools.cache
def _frame() -> pl.DataFrame:
    rng = np.random.default_rng(0)
    return pl.DataFrame(
        {
            "size": rng.normal(size=ROWS),
            "gaps": [None, 1.5] * (ROWS // 2),
            "count": rng.poisson(3, ROWS),
            "on": (rng.random(ROWS) < 0.5).tolist(),
            "colour": rng.choice(["red", "blue, light", 'a "b"'], ROWS).tolist(),
            "day": [DAY + datetime.timedelta(days=i) for i in range(ROWS)],
            "moment": [datetime.datetime(2024, 1, 1, 5, i) for i in range(ROWS)],
        }
    ).with_columns(pl.col("colour").cast(pl.Categorical).alias("level"))


def _bytes(write, *arguments, **options) -> bytes:
    stream = io.BytesIO()
    write(stream, *arguments, **options)
    return stream.getvalue()


def _workbook(frame: pl.DataFrame) -> bytes:
    book = openpyxl.Workbook()
    for row in (frame.columns, *frame.rows()):
        book.active.append(list(row))
    return _bytes(book.save)


@functools.cache
def _whole() -> dict[str, bytes]:
    """Return good files by their names."""
    frame, plain = _frame(), _frame().drop("level")
    numbers = plain.select("size", "count").to_numpy()
    records = np.array([(1, 2.5), (3, 4.5)] * 5, dtype=[("a", "i4"), ("b", "f8")])
    text = {
        "csv": plain.write_csv().encode(),
        "tsv": plain.write_csv(separator="\t").encode(),
        "jsonl": plain.write_ndjson().encode(),
    }
    return {
        **{f"a.{kind}": content for kind, content in text.items()},
        **{f"a.{kind}.gz": gzip.compress(content, mtime=0) for kind, content in text.items()},
        **{f"a.{kind}.zst": zstandard.compress(content) for kind, content in text.items()},
        "a.json": plain.write_json().encode(),
        "a.xlsx": _workbook(plain),
        **{f"{packed}.parquet": _bytes(frame.write_parquet, compression=packed) for packed in ("zstd", "snappy", "uncompressed")},
        **{f"{packed}.pq": _bytes(frame.write_parquet, compression=packed, use_pyarrow=True) for packed in ("snappy", "gzip")},
        **{f"{packed}.arrow": _bytes(frame.write_ipc, compression=packed) for packed in ("uncompressed", "zstd", "lz4")},
        **{f"{packed}.ipc": _bytes(frame.write_ipc_stream, compression=packed) for packed in ("uncompressed", "zstd", "lz4")},
        "a.npy": _bytes(np.save, numbers),
        "records.npy": _bytes(np.save, records),
        "a.npz": _bytes(np.savez, only=numbers),
        "packed.npz": _bytes(np.savez_compressed, one=numbers, two=records),
    }


def _damage(rng: np.random.Generator, content: bytearray, others: list[bytes]) -> None:
    at = int(rng.integers(len(content) + 1))
    how = pick(rng, ("flip", "flip", "bytes", "cut", "insert", "remove", "double", "splice", "zeros"))
    some = int(rng.integers(1, 40))
    if how == "flip" and at < len(content):
        content[at] ^= 1 << int(rng.integers(8))
    elif how == "bytes":
        for i in rng.integers(0, max(len(content), 1), pick(rng, (1, 2, 5, 20))).tolist():
            content[i : i + 1] = rng.bytes(1)
    elif how == "cut":
        del content[at:]
    elif how == "insert":
        content[at:at] = (
            rng.bytes(some) if rng.random() < 0.5 else pick(rng, (b",", b'"', b"\n", b"\r", b"\x00", b"NaN", b"1e999"))
        )
    elif how == "remove":
        del content[at : at + some]
    elif how == "double":
        content[at:at] = content[at : at + some]
    elif how == "splice":
        content[at:] = pick(rng, others)[at:]
    else:
        content[at : at + some] = bytes(len(content[at : at + some]))


def _odd_field(rng: np.random.Generator, content: bytearray, separator: bytes) -> None:
    """Write something odd into one field of a table."""
    lines = bytes(content).split(b"\n")
    row = int(rng.integers(1, len(lines) - 1))
    fields = lines[row].split(separator)
    fields[int(rng.integers(len(fields)))] = pick(rng, ODD).encode()
    lines[row] = separator.join(fields)
    content[:] = b"\n".join(lines)


def damaged(case: int) -> tuple[str, bytes]:
    """Return a file's name and what it holds."""
    rng, whole = random_of(1, case), _whole()
    name = pick(rng, TEXT if rng.random() < 0.3 else sorted(whole))
    content = bytearray(whole[name])
    if name in TEXT and rng.random() < 0.5:
        _odd_field(rng, content, b"," if name == "a.csv" else b"\t")
    for _ in range(pick(rng, (0, 1, 1, 1, 2, 4))):
        _damage(rng, content, list(whole.values()))
    return name, bytes(content)


def check(case: int, folder: Path) -> None:
    """Read one file and look at every value, as a test would."""
    from cpmmd.data.files.reading import ReadOptions, read_file
    from cpmmd.data.files.sample import select_columns
    from cpmmd.data.table import read_table
    from cpmmd.errors import CpmmdError

    name, content = damaged(case)
    path = folder / f"{case}-{name}"
    path.write_bytes(content)
    rng = random_of(2, case)
    text = ("colour",) if rng.random() < 0.2 else ()
    try:
        sample = select_columns(read_file(f"{path}:one" if name == "packed.npz" else str(path), ReadOptions(text=text)))
        table = read_table(sample.data, "x")
        np.asarray(table.numbers)
    except CpmmdError as error:
        if len(str(error)) < 20:
            raise FaultError(f"an error without a sentence: {error!r}") from error
        if content == _whole()[name] and name != "packed.npz":
            raise FaultError(f"{name} is whole, and refused: {error}") from error
        return
    finally:
        path.unlink()
    if name in ("a.csv", "a.tsv"):
        _compare(content.decode("utf-8-sig"), sample.data, "," if name == "a.csv" else "\t")
    if len(sample.data) == 0 or len(table.names) == 0:
        raise FaultError(f"{name} is read as {len(sample.data)} rows of {len(table.names)} columns")


def _compare(text: str, frame: pl.DataFrame, separator: str) -> None:
    """Python's own reader must see as many rows, and the same numbers."""
    text = re.sub(r"\r(?!\n)", " ", text)  # which alone ends a line for Python, but is one of a field's characters for polars
    header, *rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    if [name.strip() for name in header] != frame.columns or len(header) < 2:
        return  # without names, or with another separator: read in a way of its own
    rows = [row for row in rows if any(cell.strip() for cell in row)]
    if len(rows) != len(frame):
        raise FaultError(f"{len(rows)} rows are read as {len(frame)}")
    for j, name in enumerate(frame.columns):
        if not frame[name].dtype.is_numeric():
            continue
        for i, (row, value) in enumerate(zip(rows, frame[name].to_list(), strict=True)):
            number = None if row[j].strip() in NULLS else float(row[j])
            if number != value and not (number is not None and value is not None and np.isclose(number, value, rtol=1e-15)):
                raise FaultError(f"{row[j]!r} in row {i} of {name} is read as {value}")


def faults(first: int, end: int) -> list[Found]:
    """Return the faults among some cases, each process going on after the case that ended the last one."""
    found: list[Found] = []
    while first < end:
        with tempfile.TemporaryDirectory() as folder:
            paths = os.pathsep.join([str(Path(__file__).parents[1]), *filter(None, sys.path)])
            command = [sys.executable, "-m", "fuzz.files", str(first), str(end), folder]
            ran = subprocess.run(command, capture_output=True, text=True, check=False, env={**os.environ, "PYTHONPATH": paths})
        lines = [json.loads(line) for line in ran.stdout.splitlines() if line.startswith("[")]
        found += [Found("files", case, what) for case, what in lines if what]
        first = lines[-1][0] + 1 if lines else first + 1
        if ran.returncode:
            found.append(Found("files", first, f"the process ended with {ran.returncode}: {ran.stderr[-300:]}"))
            first += 1
    return found


def main() -> None:
    """Run cases, a line for each when it is done; begin with a line that names none."""
    first, end, folder = int(sys.argv[1]), int(sys.argv[2]), Path(sys.argv[3])
    print(json.dumps([first - 1, ""]), flush=True)
    for case in range(first, end):
        faulthandler.dump_traceback_later(LONGEST, exit=True)
        found = faults_of("files", lambda number: check(number, folder), [case])
        print(json.dumps([case, found[0].what if found else ""]), flush=True)
        faulthandler.cancel_dump_traceback_later()


if __name__ == "__main__":
    main()
