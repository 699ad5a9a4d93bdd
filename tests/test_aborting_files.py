"""Damaged files that end their reader, not with an exception but with its process, get a sentence like any other."""

import io
import struct

import numpy as np
import polars as pl
import pytest

from commands import document, run
from cpmmd.data.files import binary
from cpmmd.data.files.reading import EXTENSIONS, read_file
from cpmmd.errors import InputError
from helpers import written

FRAME = pl.DataFrame({"u": np.arange(50.0), "colour": ["red", "blue"] * 25})
ZSTD = b"\x28\xb5\x2f\xfd"


def as_bytes(write, **options):
    stream = io.BytesIO()
    write(stream, **options)
    return stream.getvalue()


GAPS = pl.DataFrame({"u": [None, 1.5] * 25})


def states_petabytes():
    """An Arrow stream whose first packed buffer says that it unpacks to 2^58 bytes; polars 1.27 does not believe it."""
    content = bytearray(as_bytes(GAPS.write_ipc_stream, compression="zstd"))
    struct.pack_into("<q", content, content.index(ZSTD) - 8, 2**58)
    return bytes(content)


def states_less_than_nothing():
    """A Parquet file with a page of -35 values."""
    content = as_bytes(FRAME.write_parquet, use_pyarrow=True, compression="snappy")
    assert b"\x2c\x15\x64\x15" in content
    return content.replace(b"\x2c\x15\x64\x15", b"\x2c\x15\x45\x15")


DEADLY = {"a.arrow": states_petabytes, "a.parquet": states_less_than_nothing}


def reads_rightly(folder, content):
    try:
        return read_file(written(folder, "tried.arrow", content)).data.equals(GAPS)
    except InputError:
        return False


@pytest.mark.parametrize("name", DEADLY)
def test_a_file_that_ends_its_reader_gets_a_sentence(tmp_path, name, monkeypatch):
    content = DEADLY[name]()
    if name == "a.arrow" and reads_rightly(tmp_path, content):
        pytest.skip("this polars reads the file rightly")
    with pytest.raises(InputError, match=r"cannot be read as .* the process that read it ended with code -6"):
        read_file(written(tmp_path, name, content))
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(content)))
    with pytest.raises(InputError, match="ended with code -6"):
        read_file("-")
    assert len(read_file(written(tmp_path, "good.parquet", as_bytes(FRAME.write_parquet))).data) == 50


def test_a_batch_that_ends_its_reader_does_not_stop_the_others(tmp_path):
    good, dead = written(tmp_path, "good.csv", FRAME.write_csv()), written(tmp_path, "dead.parquet", states_less_than_nothing())
    assert run("fit", good, "-o", tmp_path / "d.cpmmd", "--method", "median", "--permutations", 19).exit_code == 0
    result = run("check", tmp_path / "d.cpmmd", dead, good, "--json")
    assert result.exit_code == 2
    assert [batch["status"] for batch in document(result)["batches"]] == ["error", "tested"]


def test_one_process_reads_all_good_and_damaged_files(tmp_path):
    good = written(tmp_path, "good.arrow", as_bytes(FRAME.write_ipc))
    assert read_file(good).data.equals(FRAME)
    (first,) = binary._KEPT
    with pytest.raises(InputError, match="cannot be read as an Arrow file"):
        read_file(written(tmp_path, "cut.arrow", as_bytes(FRAME.write_ipc)[:-5]))
    assert read_file(good).data.equals(FRAME)
    assert [first] == binary._KEPT
    first.close()  # killed by someone else: no fault of the next file
    assert read_file(good).data.equals(FRAME)


def test_nothing_is_imported_from_the_folder_of_the_data(tmp_path, monkeypatch):
    binary._close()
    monkeypatch.chdir(tmp_path)
    for name in ("json", "polars", "cpmmd"):
        (tmp_path / f"{name}.py").write_text("open('imported', 'w').close()")
    with pytest.raises(InputError, match="cannot be read as an Arrow file"):
        read_file(written(tmp_path, "cut.arrow", as_bytes(FRAME.write_ipc)[:-5]))
    assert not (tmp_path / "imported").exists()


def test_without_a_process_files_are_read_here(tmp_path, monkeypatch):
    binary._close()
    monkeypatch.setattr("sys.executable", "")
    assert read_file(written(tmp_path, "good.arrow", as_bytes(FRAME.write_ipc))).data.equals(FRAME)
    monkeypatch.setattr("sys.executable", "/bin/false")
    assert read_file(written(tmp_path, "good.arrow", as_bytes(FRAME.write_ipc))).data.equals(FRAME)
    binary._close()


def test_the_process_is_started_ahead_where_it_will_be_needed():
    assert {suffix for suffix, kind in EXTENSIONS.items() if kind in ("parquet", "arrow")} == set(binary.SUFFIXES)
    binary._close()
    binary.expect(["a.csv", "-"])
    assert not binary._KEPT
    binary.expect(["a.csv", "B.Parquet"])
    assert len(binary._KEPT) == 1
