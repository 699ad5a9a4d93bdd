"""JSON: one object a line, or a list of them."""

from __future__ import annotations

import io
import json
from typing import Any

from cpmmd.data.files.encodings import check_text, not_utf8
from cpmmd.data.files.frames import polars, reading
from cpmmd.data.files.options import ReadOptions
from cpmmd.data.files.sample import FileSample
from cpmmd.data.files.source import Source
from cpmmd.data.files.typing import infer_types
from cpmmd.errors import InputError

RECORDS = 'Write each row as {"a": 1, "b": 2}, in a list or on lines of their own (pandas: orient="records")'
SPACE = b"\xef\xbb\xbf \t\r\n"


def read_json(source: Source, options: ReadOptions) -> FileSample:
    """Read objects, a row each; which way they are written, the first character says."""
    start = check_text(source, options.limit).lstrip(SPACE)[:1]
    if not start:
        raise InputError(f"{source.label} is empty. Check how it was written.")
    lines: Any = io.BytesIO(_as_lines(source)) if start == b"[" else source.native
    with reading(source.label, "JSON lines"):
        frame = polars().read_ndjson(lines, infer_schema_length=None)
    if len(frame) == 1 and all(dtype.is_nested() for dtype in frame.dtypes):
        raise InputError(f"{source.label} holds columns, not rows. {RECORDS}.")
    return infer_types(frame, source.label, options, [])


def _as_lines(source: Source) -> bytes:
    """Return the items of a list on lines of their own, which is what the strict reader takes."""
    with source.open() as file:
        content = file.read()
    with reading(source.label, "JSON"):
        try:
            items = json.loads(content.decode("utf-8-sig"), parse_constant=lambda _: None)  # NaN is no JSON: missing
        except UnicodeDecodeError as error:
            raise not_utf8(source, error) from error
    for number, item in enumerate(items):
        if not isinstance(item, dict):
            raise InputError(
                f"A JSON list must hold objects, one for each row. Item {number} of {source.label} (counted from 0) is "
                f"{type(item).__name__}. {RECORDS}."
            )
    if not items:
        raise InputError(f"{source.label} is a list without items. Check how it was written.")
    return "\n".join(map(json.dumps, items)).encode()
