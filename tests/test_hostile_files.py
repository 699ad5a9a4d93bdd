"""No file takes more than twice the limit for files, in any reader."""

import pytest

import hostile

QUICK = (
    "far cell.xlsx",
    "one long string.xlsx",
    "long categories.parquet",
    "many rows.csv.gz",
    "short lines.csv.gz",
    "many names.jsonl",
    "states too much.npz",
)
LONG = [pytest.param(name, marks=pytest.mark.statistical) for name in hostile.FILES if name not in QUICK]


@pytest.mark.parametrize("name", [*QUICK, *LONG])
def test_reading_takes_at_most_twice_the_limit(tmp_path, name):
    path = tmp_path / name
    path.write_bytes(hostile.FILES[name]())
    found = hostile.measure(path)
    assert found.here <= 2 * hostile.BYTES, found
    assert found.first <= 2 * hostile.BYTES, found
    read = "within the limit" in name or name == "long texts.npz"
    assert found.answer.startswith("read: " if read else str(path) if name != "nested.parquet" else "Columns must hold"), found
