"""Small files that would take much memory, and what reading each takes: ``python -m tests.hostile [NAME ...]`` prints the table.

Each is read by a process of its own under a limit of 200 MB. What the process held before it reads is not counted.
"""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import subprocess
import sys
import tempfile
import zipfile
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import NamedTuple

import numpy as np
import polars as pl
import zstandard

LIMIT = "200M"
BYTES = 200_000_000
LONG = "x" * 1_000_000
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
RELATIONS = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
PACKAGE = "http://schemas.openxmlformats.org/package/2006"
SHEET_TYPE = "application/vnd.openxmlformats-officedocument.spreadsheetml"


def _bytes(write: Callable[..., object], *arguments: object, **options: object) -> bytes:
    stream = io.BytesIO()
    write(stream, *arguments, **options)
    return stream.getvalue()


def _gzip(pieces: Iterable[bytes]) -> bytes:
    stream = io.BytesIO()
    with gzip.GzipFile(fileobj=stream, mode="wb", mtime=0) as packed:
        for piece in pieces:
            packed.write(piece)
    return stream.getvalue()


def _workbook(rows: Iterable[str], *, strings: Iterable[str] = (), styles: Iterable[str] = ()) -> bytes:
    """Return a workbook of one sheet whose rows, shared strings and formats are the given XML."""
    stream = io.BytesIO()
    parts = {
        "[Content_Types].xml": [
            f'<Types xmlns="{PACKAGE}/content-types"><Default Extension="rels" ContentType="{PACKAGE}/relationships+xml"/>'
            f'<Override PartName="/xl/workbook.xml" ContentType="{SHEET_TYPE}.sheet.main+xml"/>'
            f'<Override PartName="/xl/worksheets/sheet1.xml" ContentType="{SHEET_TYPE}.worksheet+xml"/>'
            f'<Override PartName="/xl/styles.xml" ContentType="{SHEET_TYPE}.styles+xml"/>'
            f'<Override PartName="/xl/sharedStrings.xml" ContentType="{SHEET_TYPE}.sharedStrings+xml"/></Types>'
        ],
        "_rels/.rels": [
            f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" Type="{RELATIONS}/officeDocument" '
            'Target="xl/workbook.xml"/></Relationships>'
        ],
        "xl/workbook.xml": [
            f'<workbook xmlns="{MAIN}" xmlns:r="{RELATIONS}"><sheets><sheet name="s" sheetId="1" r:id="r1"/></sheets></workbook>'
        ],
        "xl/_rels/workbook.xml.rels": [
            f'<Relationships xmlns="{PACKAGE}/relationships"><Relationship Id="r1" Type="{RELATIONS}/worksheet" '
            f'Target="worksheets/sheet1.xml"/><Relationship Id="r2" Type="{RELATIONS}/sharedStrings" Target="sharedStrings.xml"/>'
            f'<Relationship Id="r3" Type="{RELATIONS}/styles" Target="styles.xml"/></Relationships>'
        ],
        "xl/styles.xml": [f'<styleSheet xmlns="{MAIN}"><cellXfs>', *styles, "</cellXfs></styleSheet>"],
        "xl/sharedStrings.xml": [f'<sst xmlns="{MAIN}">', *strings, "</sst>"],
        "xl/worksheets/sheet1.xml": [f'<worksheet xmlns="{MAIN}"><sheetData>', *rows, "</sheetData></worksheet>"],
    }
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, pieces in parts.items():
            with archive.open(name, "w") as part:
                for piece in pieces:
                    part.write(piece.encode())
    return stream.getvalue()


def _repeat(text: str, times: int, step: int = 10_000) -> Iterable[str]:
    """Yield a text so many times, many at once."""
    return (text * step for _ in range(times // step))


def _packed(text: str, times: int, first: str = "") -> bytes:
    return _gzip(piece.encode() for piece in (first, *_repeat(text, times)))


def _parquet(arrays: dict[str, object], **options: object) -> bytes:
    import pyarrow as pa
    import pyarrow.parquet as pq

    stream = io.BytesIO()
    pq.write_table(pa.table(arrays), stream, compression="zstd", **options)
    return stream.getvalue()


def _one_string(rows: int, *, categories: bool) -> dict[str, object]:
    import pyarrow as pa

    kind = pa.dictionary(pa.int32(), pa.string())
    column = pa.DictionaryArray.from_arrays(pa.array(np.zeros(rows, np.int32)), pa.array([LONG]))
    return {"a": column.cast(kind) if categories else column.cast(pa.string()), "v": pa.array(np.ones(rows))}


def _nested(rows: int) -> dict[str, object]:
    import pyarrow as pa

    return {"a": pa.ListArray.from_arrays(pa.array([0, rows], pa.int32()), pa.array(np.zeros(rows))), "v": pa.array([1.0])}


def _views(rows: int) -> bytes:
    """An Arrow file of string views: each row points to the same megabyte."""
    frame = pl.DataFrame({"a": pl.repeat(LONG, rows, eager=True), "v": np.ones(rows)})
    return _bytes(frame.write_ipc, compression="zstd")


def _archive(array_header: dict[str, object], content: Iterable[bytes]) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("a.npy", "w", force_zip64=True) as member:
        np.lib.format.write_array_header_1_0(member, array_header)
        for piece in content:
            member.write(piece)
    return stream.getvalue()


def _cells(rows: int, columns: int) -> Iterable[str]:
    return (f"<row>{'<c><v>1</v></c>' * columns}</row>" for _ in range(rows))


MILLION = 1_000_000
FILES: dict[str, Callable[[], bytes]] = {
    "far cell.xlsx": lambda: _workbook(
        ['<row r="1"><c r="A1"><v>1</v></c></row>', '<row r="1048576"><c r="XFD1048576"><v>1</v></c></row>']
    ),
    "many far cells.xlsx": lambda: _workbook(
        f'<row r="{i}"><c r="A{i}"><v>1</v></c><c r="XFD{i}"><v>1</v></c></row>' for i in range(1, 20_000)
    ),
    "cells within the limit.xlsx": lambda: _workbook(_cells(10_000, 90)),
    "empty rows.xlsx": lambda: _workbook(["<row><c><v>1</v></c></row>", *_repeat("<row/>", 30 * MILLION)]),
    "one long row.xlsx": lambda: _workbook(["<row>", *_repeat("<c/>", 40 * MILLION), "</row>"]),
    "empty cells.xlsx": lambda: _workbook(
        ["<row><c><v>1</v></c></row>", *(f"<row>{'<c/>' * 1000}</row>" for _ in range(40_000))]
    ),
    "one long string.xlsx": lambda: _workbook(
        ("<row><c t='s'><v>0</v></c><c><v>1</v></c></row>" for _ in range(20_000)), strings=[f"<si><t>{LONG}</t></si>"]
    ),
    "many strings.xlsx": lambda: _workbook(_cells(3, 1), strings=_repeat("<si><t/></si>", 12 * MILLION)),
    "many styles.xlsx": lambda: _workbook(_cells(3, 1), styles=_repeat("<xf/>", 30 * MILLION)),
    "long categories.parquet": lambda: _parquet(_one_string(20_000, categories=True)),
    "long texts.parquet": lambda: _parquet(_one_string(2_000, categories=False)),
    "constant.parquet": lambda: _parquet({"a": np.zeros(100 * MILLION)}),
    "constant texts.parquet": lambda: _parquet({"a": ["twelve bytes and more"] * 8 * MILLION}),
    "nested.parquet": lambda: _parquet(_nested(200 * MILLION)),
    "wide.parquet": lambda: _parquet({str(i): [1.0] for i in range(50_000)}),
    "long categories.arrow": lambda: _bytes(
        pl.DataFrame({"a": pl.Series([LONG], dtype=pl.Categorical).new_from_index(0, 20_000), "v": np.ones(20_000)}).write_ipc,
        compression="zstd",
    ),
    "long texts.arrow": lambda: _views(20_000),
    "constant.arrow": lambda: _bytes(pl.DataFrame({"a": np.zeros(60 * MILLION)}).write_ipc, compression="zstd"),
    "constant.ipc": lambda: _bytes(pl.DataFrame({"a": np.zeros(60 * MILLION)}).write_ipc_stream, compression="zstd"),
    "many rows.csv.gz": lambda: _packed("1\n", 90 * MILLION, "a\n"),
    "rows within the limit.csv.gz": lambda: _packed("1\n", 2 * MILLION, "a\n"),
    "texts within the limit.csv.gz": lambda: _packed("x\n", 2 * MILLION, "a\n"),
    "columns within the limit.csv.gz": lambda: _packed("x,1,2.5,y\n", 1_600_000, "a,b,c,d\n"),
    "empty lines.csv.gz": lambda: _packed("\n", 150 * MILLION, "a\n1\n"),
    "rows behind a long name.csv.gz": lambda: _packed("1\n", 50 * MILLION, f"{'a' * 100_000}\n"),
    "wide.csv.gz": lambda: _packed("1,", 20 * MILLION) + _packed("1\n1\n", 10_000),
    "short lines.csv.gz": lambda: _packed("1\n", 2 * MILLION, ",".join(f"n{i}" for i in range(5_000)) + "\n"),
    "bomb.csv.zst": lambda: zstandard.compress(b"a\n" + b"1\n" * (200 * MILLION)),
    "many names.jsonl": lambda: b"".join(b'{"%d":1}\n' % i for i in range(60_000)),
    "objects.json.gz": lambda: _packed(",{}", 60 * MILLION, '[{"a":1}'),
    "rows within the limit.jsonl.gz": lambda: _packed('{"a":1}\n', 6 * MILLION),
    "rows.jsonl.gz": lambda: _packed('{"a":1}\n', 9 * MILLION),
    "list in an object.json.gz": lambda: _packed(",[]", 60 * MILLION, '[{"a":[1'),
    "deep.jsonl": lambda: b'{"a":' + b"[" * 200_000 + b"]" * 200_000 + b"}\n",
    "bomb.npz": lambda: _archive(
        {"descr": "|u1", "fortran_order": False, "shape": (10_000 * MILLION // 100,)}, (bytes(MILLION) for _ in range(100))
    ),
    "states too much.npz": lambda: _archive({"descr": "<f8", "fortran_order": False, "shape": (10**12,)}, [bytes(64)]),
    "long texts.npz": lambda: _archive({"descr": "<U1000000", "fortran_order": False, "shape": (40,)}, [bytes(4 * MILLION)] * 40),
}

CHILD = """
import json, resource, sys, time
import polars, openpyxl, zstandard, pandas
from cpmmd.data.files.reading import ReadOptions, read_file
from cpmmd.data.files.sample import select_columns
from cpmmd.data.files.input_file import file_limit
from cpmmd.data.files import binary
from cpmmd.errors import CpmmdError
def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024
before, start = peak(), time.monotonic()
try:
    sample = select_columns(read_file(sys.argv[1], ReadOptions(limit=file_limit(sys.argv[2]))))
    answer = f"read: {sample.rows} x {len(sample.columns)}"
except CpmmdError as error:
    answer = str(error)
took = time.monotonic() - start
own = peak() - before
binary._close()
first = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024
print(json.dumps([own, max(0, first - before), took, answer]))
"""


class Measured(NamedTuple):
    """What reading a file takes."""

    here: int  # bytes, at the peak
    first: int  # bytes of the process that reads first
    seconds: float
    answer: str


def measure(path: Path, limit: str = LIMIT) -> Measured:
    """Return what reading a file takes, in a process of its own."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    ran = subprocess.run(
        [sys.executable, "-c", CHILD, str(path), limit], capture_output=True, text=True, check=False, env=environment
    )
    if ran.returncode:
        return Measured(0, 0, 0.0, f"the process ended with {ran.returncode}: {ran.stderr[-300:]}")
    return Measured(*json.loads(ran.stdout))


def main() -> None:
    """Print the table."""
    names = sys.argv[1:] or list(FILES)
    resource.setrlimit(resource.RLIMIT_AS, (16 * 10**9, 16 * 10**9))
    print(f"{'file':<32} {'on disk':>10} {'peak':>9} {'first':>9} {'s':>5}  answer")
    with tempfile.TemporaryDirectory() as folder:
        for name in names:
            path = Path(folder) / name
            path.write_bytes(FILES[name]())
            found, size = measure(path), path.stat().st_size
            taken = f"{found.here / 1e6:>7.0f}MB {found.first / 1e6:>7.0f}MB {found.seconds:>5.1f}"
            print(f"{name:<32} {size:>10} {taken}  {found.answer.replace(str(path), name)[:150]}", flush=True)
            path.unlink()


if __name__ == "__main__":
    main()
