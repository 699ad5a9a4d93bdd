"""Files: every format is read, every bad file gets a sentence that says what to do."""

import datetime as dt
import gzip
import io
import os
import struct
import zipfile
from functools import cache

import numpy as np
import openpyxl
import polars as pl
import pytest
import zstandard
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cpmmd.data.files.input_file import file_limit
from cpmmd.data.files.reading import ReadOptions, read_file
from cpmmd.data.files.sample import by_groups, select_columns
from cpmmd.errors import CpmmdError, InputError
from helpers import written

FRAME = pl.DataFrame({"size": [1.5, 2.5, -3.0], "count": [1, 2, 3], "colour": ["red", "blue", "red"], "on": [True, False, True]})


def read(folder, name, content, **options):
    return select_columns(read_file(written(folder, name, content), ReadOptions(**options)))


def as_bytes(write, **options):
    stream = io.BytesIO()
    write(stream, **options)
    return stream.getvalue()


def as_workbook(frame, sheets=("data",)):
    book = openpyxl.Workbook()
    book.remove(book.active)
    for name in sheets:
        sheet = book.create_sheet(name)
        for row in [] if frame is None else [frame.columns, *frame.rows()]:
            sheet.append(list(row))
    return as_bytes(book.save)


TABLES = {
    "a.csv": lambda: FRAME.write_csv().encode(),
    "a.tsv": lambda: FRAME.write_csv(separator="\t").encode(),
    "semicolons.csv": lambda: FRAME.write_csv(separator=";").encode(),
    "a.csv.gz": lambda: gzip.compress(FRAME.write_csv().encode()),
    "a.tsv.gz": lambda: gzip.compress(FRAME.write_csv(separator="\t").encode()),
    "a.jsonl": lambda: FRAME.write_ndjson().encode(),
    "a.ndjson": lambda: FRAME.write_ndjson().encode(),
    "a.jsonl.gz": lambda: gzip.compress(FRAME.write_ndjson().encode()),
    "a.json": lambda: FRAME.write_json().encode(),
    "lines.json": lambda: FRAME.write_ndjson().encode(),
    "list.jsonl": lambda: FRAME.write_json().encode(),
    "a.csv.zst": lambda: zstandard.compress(FRAME.write_csv().encode()),
    "two frames.csv.zst": lambda: b"".join(map(zstandard.compress, FRAME.write_csv().encode().partition(b"2"))),
    "a.json.zstd": lambda: zstandard.compress(FRAME.write_json().encode()),
    "a.xlsx": lambda: as_workbook(FRAME),
    "a.parquet": lambda: as_bytes(FRAME.write_parquet),
    "a.arrow": lambda: as_bytes(FRAME.write_ipc),
    "a.feather": lambda: as_bytes(FRAME.write_ipc, compression="lz4"),
    "stream.arrow": lambda: as_bytes(FRAME.write_ipc_stream),
    "A.CSV": lambda: FRAME.write_csv().encode(),
}


@pytest.mark.parametrize("name", TABLES)
def test_every_table_format_gives_the_same_frame(tmp_path, name):
    assert read(tmp_path, name, TABLES[name]()).data.equals(FRAME)


@pytest.mark.parametrize("name", TABLES)
def test_names_that_look_like_patterns_are_names(tmp_path, name):
    written(tmp_path, "wei.d.csv", "other\n1\n")
    assert read(tmp_path, f"we[i]?d*{{a,b}}\n{name}", TABLES[name]()).data.equals(FRAME)


PATTERNS = pl.DataFrame(
    {
        "^a$": [1.5, 2.5, None],
        "a": [10, 20, 30],
        "*": ["x", "y", None],
        "^(b$": ["2020-01-01", None, "2020-01-03"],
        "^.*$": [7.0, 8.0, 9.0],
    }
)


@pytest.mark.parametrize("write", ["csv", "ndjson", "parquet", "ipc"])
def test_columns_whose_names_polars_takes_for_patterns_are_columns(tmp_path, write):
    path = tmp_path / ("a." + write.replace("ipc", "arrow"))
    getattr(PATTERNS, f"write_{write}")(path)
    sample = read_file(str(path))
    assert select_columns(sample, columns=["^a$"]).data.rows() == [(1.5,), (2.5,), (None,)]
    assert select_columns(sample, drop=["^a$"]).columns == ("a", "*", "^(b$", "^.*$")
    assert [str(v) for v in select_columns(sample, columns=["*", "^(b$"]).data.row(0)] == ["x", "2020-01-01"]
    if write == "csv":
        assert read_file(str(path), ReadOptions(text=("^a$", "*"))).data["^a$"].to_list() == ["1.5", "2.5", None]


def test_columns_of_a_workbook_may_be_called_like_patterns(tmp_path):
    moments = [dt.datetime(2020, 1, 1), dt.datetime(2020, 1, 2, 12), None]
    sheet = pl.DataFrame({"a": moments, "b": [1.0, 2.0, 3.0], "c": ["x", "y", "z"]}).rename({"a": "^a$", "b": "^(b$"})
    assert read(tmp_path, "a.xlsx", as_workbook(sheet)).data.rows() == sheet.rows()


@pytest.mark.parametrize("missing", [2, 3, 5, 1 << 60])
def test_an_arrow_file_that_miscounts_its_missing_values_is_read_right_or_refused(tmp_path, missing):
    frame = pl.DataFrame({"a": [1.0, None, 3.0]})
    pluralize = as_bytes(frame.write_ipc).replace(struct.pack("<qq", 3, 1), struct.pack("<qq", 3, missing))
    said = ""
    try:  # polars counts again from version 2 on; before, it ends the process, panics, or believes what it is told
        found = read(tmp_path, "a.arrow", pluralize).data
    except InputError as error:
        said = str(error)
    assert "cannot be read as an Arrow file" in said or found.equals(frame)


@pytest.mark.parametrize("name", [n for n in TABLES if not n[0].isupper() and n != "semicolons.csv"])
def test_standard_input_is_told_by_its_first_bytes(monkeypatch, name):
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(TABLES[name]())))
    assert read_file("-").data.equals(FRAME)


def test_a_pipe_is_read_like_standard_input():
    reading, writing = os.pipe()  # as the shell's <(...) makes one
    try:
        os.write(writing, TABLES["a.csv"]())
        os.close(writing)
        assert read_file(f"/dev/fd/{reading}").data.equals(FRAME)
    finally:
        os.close(reading)


def test_arrays(tmp_path):
    array = np.arange(12.0).reshape(6, 2)
    np.save(tmp_path / "a.npy", array)
    np.savez(tmp_path / "one.npz", only=array)
    np.savez_compressed(tmp_path / "two.npz", before=array, after=array + 1)
    np.testing.assert_array_equal(read_file(str(tmp_path / "a.npy")).data, array)
    assert isinstance(read_file(str(tmp_path / "a.npy")).data, np.memmap)
    np.testing.assert_array_equal(read_file(str(tmp_path / "one.npz")).data, array)
    np.testing.assert_array_equal(read_file(f"{tmp_path}/two.npz:after").data, array + 1)
    with pytest.raises(InputError, match=r"2 arrays: 'before', 'after'.*two.npz:before"):
        read_file(str(tmp_path / "two.npz"))
    with pytest.raises(CpmmdError, match="Did you mean 'after'"):
        read_file(f"{tmp_path}/two.npz:aftr")


def test_records_become_columns(tmp_path):
    np.save(tmp_path / "r.npy", np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")]))
    assert read_file(str(tmp_path / "r.npy")).data.rows() == [(1, 2.5), (3, 4.5)]


def test_pickles_are_never_loaded(tmp_path):
    np.save(tmp_path / "o.npy", np.array([{"a": 1}], dtype=object))
    np.savez(tmp_path / "o.npz", o=np.array([{"a": 1}], dtype=object))
    for name in ("o.npy", "o.npz"):
        with pytest.raises(InputError, match="could run code"):
            read_file(str(tmp_path / name))


BAD = {
    "empty": ("a.csv", b"", "is empty"),
    "empty gz": ("a.csv.gz", gzip.compress(b""), "is empty"),
    "empty parquet": ("a.parquet", b"", "is empty"),
    "header only": ("a.csv", "a,b\n", "header and no rows"),
    "too few fields": ("a.csv", "a,b\n1,2\n3\n4,5\n", "Line 3 of .* has 1, the first has 2"),
    "too many fields": ("a.csv", "a,b\n1,2\n3,4,5\n", "Line 3 of .* has 3, the first has 2"),
    "open quote": ("a.csv", 'a,b\n1,2\n"3', "Line 3"),
    "latin-1": ("a.csv", "name,b\ncafé,2\n".encode("latin-1"), "must be UTF-8.*0xe9.*encoding='latin-1'"),
    "latin-1 header": ("a.csv", "café,b\n1,2\n".encode("latin-1"), "must be UTF-8"),
    "utf-16": ("a.csv", "a,b\n1,2\n".encode("utf-16"), "UTF-16.*encoding='utf-16'"),
    "binary": ("a.csv", b"\x00\x01\x02", "NUL bytes"),
    "old mac": ("a.csv", "a,b\r1,2\r3,4\r", "line endings"),
    "mixed": (
        "a.csv",
        "a,b\n1,2\nabc,3\n4,5\n",
        "Column 'a' .* has 2 numbers and 1 other value, the first 'abc' in row 2.*text=",
    ),
    "mixed json": ("a.jsonl", '{"a": 1}\n{"a": "x"}\n', "numbers or text, not both"),
    "duplicate names": ("a.csv", "a,b,a\n1,2,3\n", "unique.*'a' more than once"),
    "nothing in a column": ("a.csv", "a,b\n1,\n2,NaN\n", "only missing values in 'b'.*drop="),
    "decimal comma": ("a.csv", "a;b\n1,5;2\n2,5;3\n", "decimal comma"),
    "thousands": ("a.csv", 'a,b\n"1,234",2\n"12,345",3\n', "thousands separators"),
    "two units": (
        "a.csv",
        "a\n$1\n$2\n€2.5\n",
        r"must have one unit. Column 'a' .* amounts in \$ and others, the first '€2.5' in row 3",
    ),
    "amounts and a number": ("a.csv", "a\n1%\n2%\n2.5\n", "amounts in % and others, the first '2.5' in row 3"),
    "dates and text": ("a.csv", "a\n2024-01-01\n2024-01-02\nlater\n", "dates among other values"),
    "nameless column": ("a.csv", "a,\n5,6\n", "Column number 2 of .* has no name"),
    "json list of numbers": ("a.json", '[{"a": 1}, 2]', "Item 1 of .* is int. .*records"),
    "json list without items": ("a.json", "[]", "an empty list"),
    "json by columns": ("a.json", '{"a": {"0": 1, "1": 2}}', "holds columns, not rows.*records"),
    "pretty json": ("a.json", '{\n"a": 1\n}', "cannot be read as JSON lines"),
    "cut json": ("a.json", '[{"a": 1},', "cannot be read as JSON"),
    "cut zst": ("a.csv.zst", zstandard.compress(b"a,b\n1,2\n" * 9999)[:-9], "not a complete zstandard file"),
    "flipped zst": ("a.csv.zst", zstandard.compress(b"a,b\n1,2\n")[:4] + b"xxxxxx", "not a complete zstandard file"),
    "cut xlsx": ("a.xlsx", as_workbook(FRAME)[:-60], "cannot be read as an Excel workbook"),
    "empty xlsx": ("a.xlsx", as_workbook(None, ["one", "two"]), "holds no values"),
    "xlsx of two sheets": ("a.xlsx", as_workbook(FRAME, ["one", "two"]), "2 sheets: 'one', 'two'.*a.xlsx:one"),
    "xlsx header only": ("a.xlsx", as_workbook(FRAME.clear()), "header and no rows"),
    "mixed xlsx": (
        "a.xlsx",
        as_workbook(pl.DataFrame({"a": [1, "x"]}, strict=False, schema={"a": pl.Object})),
        "numbers or text",
    ),
    "index that repeats": ("a.csv", ",v\na,1\na,2\n", "The first of .* has no name, and is not an index"),
    "broken json": ("a.jsonl", '{"a": 1}\n{"a":\n', "cannot be read as JSON lines"),
    "cut parquet": ("a.parquet", TABLES["a.parquet"]()[:-5], "cannot be read as a Parquet file"),
    "cut arrow": ("a.arrow", TABLES["a.arrow"]()[:-5], "cannot be read as an Arrow file"),
    "cut gz": ("a.csv.gz", gzip.compress(b"a,b\n1,2\n" * 99)[:-9], "not a complete gzip file"),
    "cut npy": ("a.npy", b"\x93NUMPY\x01\x00v\x00{'descr'", "cannot be read as a numpy file"),
    "cut npz": ("a.npz", b"PK\x03\x04", "cannot be read as a numpy file"),
    "zipped parquet": ("a.parquet", gzip.compress(b"x"), "unpack it first"),
    "unknown extension": ("a.xls", b"PK\x03\x04", "extension '.xls'.*format="),
    "no extension": ("a", "a,b\n1,2\n", "no extension.*format="),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_files_get_a_sentence(tmp_path, case):
    name, content, message = BAD[case]
    with pytest.raises(InputError, match=f"(?s){message}"):
        read(tmp_path, name, content)


def test_a_missing_path_names_a_near_one(tmp_path):
    written(tmp_path, "reference.csv", "a\n1\n")
    with pytest.raises(InputError, match=r"There is no file.*Did you mean .*reference.csv"):
        read_file(str(tmp_path / "referense.csv"))
    with pytest.raises(InputError, match="no folder"):
        read_file(str(tmp_path / "nowhere" / "a.csv"))


def test_a_directory_without_files_is_refused(tmp_path):
    with pytest.raises(InputError, match="A folder must hold files of a sample"):
        read_file(str(tmp_path))


@pytest.mark.parametrize("name", ["a\x00b.csv", "x" * 5000 + ".csv"])
def test_impossible_names(name):
    with pytest.raises(InputError):
        read_file(name)


@pytest.mark.parametrize("kind", ["csv", "jsonl", "npy"])
def test_two_gigabytes_of_one_column_are_refused_unread(tmp_path, kind):
    path = tmp_path / f"big.{kind}"
    if kind == "npy":
        with path.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": (250_000_000, 1)})
    else:
        path.write_text("a\n" + "0.12345678901234567\n" * 5_000 if kind == "csv" else '{"a": 1}\n' * 10_000)
    os.truncate(path, 2_000_000_128)  # sparse: takes no room
    with pytest.raises(InputError, match=r"of memory, and the limit for a file is .*rows at random.*file_limit="):
        read_file(str(path))


def test_the_file_limit_is_a_size():
    assert file_limit("500M").bytes == 500_000_000
    assert file_limit("2 GiB").bytes == 2**31
    with pytest.raises(InputError, match="such as '500MB'"):
        file_limit("lots")


def test_unpacking_stops_at_the_limit(tmp_path):
    bomb = written(tmp_path, "bomb.csv.gz", gzip.compress(b"a\n" + b"1\n" * 5_000_000))
    with pytest.raises(InputError, match="limit for a file"):
        read_file(bomb, ReadOptions(limit=file_limit("1M")))


def test_a_parquet_file_of_too_many_values_is_refused(tmp_path):
    pl.DataFrame({"a": np.zeros(100_000)}).write_parquet(tmp_path / "a.parquet")  # 1 kB on disk
    with pytest.raises(InputError, match=r"about 2.4 MB of memory"):
        read_file(str(tmp_path / "a.parquet"), ReadOptions(limit=file_limit("1M")))


def test_a_line_of_numbers_is_no_header(tmp_path):
    sample = read(tmp_path, "a.csv", "1.5,2\n2,3\n4,5\n")
    assert sample.data.rows() == [(1.5, 2), (2.0, 3), (4.0, 5)]
    assert "first line" in sample.notes[0]
    assert read(tmp_path, "b.csv", "0,1\n2,3\n4,5\n").data.rows() == [(2, 3), (4, 5)]  # pandas names columns so


def test_row_numbers_written_by_pandas_are_left_out(tmp_path):
    sample = read(tmp_path, "a.csv", ",a\n0,5\n1,7\n")
    assert sample.data.rows() == [(5,), (7,)]
    assert "left out" in sample.notes[0]


def test_blank_lines_spaces_and_marks_of_missing_values(tmp_path):
    sample = read(tmp_path, "a.csv", "\ufeffa, b \n1, 2\n\n3, NA\n\n")
    assert sample.columns == ("a", "b")
    assert sample.data.rows() == [(1, 2.0), (3, None)]
    assert "2 blank lines" in sample.notes[0]


def test_dates_are_dates(tmp_path):
    assert [str(t) for t in read(tmp_path, "a.csv", "a,b\n2024-01-01,2024-01-01T10:00:00\n2024-01-02,NA\n").data.dtypes] == [
        "Date",
        "Datetime(time_unit='us', time_zone=None)",
    ]


def test_columns_can_be_taken_as_text_or_left_out(tmp_path):
    content = "a,b\n1,2\nabc,3\n"
    assert read(tmp_path, "a.csv", content, text=("a",)).data["a"].to_list() == ["1", "abc"]
    sample = read_file(written(tmp_path, "b.csv", content))
    assert select_columns(sample, drop=["a"]).columns == ("b",)
    assert select_columns(sample, columns=["b"]).columns == ("b",)
    with pytest.raises(CpmmdError, match="Unknown column"):
        select_columns(sample, columns=["c"])
    with pytest.raises(InputError, match="At least one column"):
        select_columns(sample, drop=["a", "b"])


def test_identifiers_are_pointed_out(tmp_path):
    sample = read(tmp_path, "a.csv", "id,v\n" + "".join(f"u{i},{i}\n" for i in range(50)))
    assert "identifier" in sample.notes[0]


def test_groups(tmp_path):
    sample = read(tmp_path, "a.csv", "g,v\n10,1\n9,2\n10,3\n,4\n")
    groups = by_groups(sample, "g")
    assert groups.names == ["9", "10"]
    assert groups.group("10").data.rows() == [(1,), (3,)]
    assert groups.rest("10").data.rows() == [(2,)]
    assert "1 row without" in groups.sample.notes[0]
    array = by_groups(select_columns(read_file(_saved(tmp_path, np.array([[0.0, 5], [1, 6], [0, 7]])))), "0")
    np.testing.assert_array_equal(array.group("0.0").data, [[5.0], [7.0]])
    with pytest.raises(InputError, match="2 to 100 different values"):
        by_groups(read(tmp_path, "b.csv", "g,v\n1,1\n1,2\n"), "g")


ARRAYS = {
    "a.npy": lambda: as_bytes(np.save, arr=np.arange(6.0).reshape(3, 2)),
    "records.npy": lambda: as_bytes(np.save, arr=np.array([(1, 2.5), (3, 4.5)], dtype=[("a", "i4"), ("b", "f8")])),
    "a.npz": lambda: as_bytes(np.savez, only=np.arange(6.0).reshape(3, 2)),
    "packed.npz": lambda: as_bytes(np.savez_compressed, only=np.arange(6.0).reshape(3, 2)),
}


def assert_sentence_or_frame(folder, name, content):
    try:
        said = None
        read(folder, name, content)
    except CpmmdError as error:
        said = str(error)
    assert said is None or len(said) > 20


def _saved(folder, array):
    np.save(folder / "saved.npy", array)
    return str(folder / "saved.npy")


@cache
def whole(name):
    """Return a file, made once: a workbook has the time in it, and with that its length changes."""
    return {**TABLES, **ARRAYS}[name]()


@settings(max_examples=250, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_damaged_files_end_in_a_sentence_or_a_frame(tmp_path, data):
    name = data.draw(st.sampled_from(sorted({**TABLES, **ARRAYS})))
    content = bytearray(whole(name))
    for _ in range(data.draw(st.integers(0, 4))):
        content[data.draw(st.integers(0, len(content) - 1))] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(0, len(content)))
    assert_sentence_or_frame(tmp_path, name, bytes(content[:cut]))


@settings(max_examples=150, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(content=st.binary(max_size=200) | st.text(alphabet='abc019.,;"\n\r\t|-{}[]: \u202e', max_size=200).map(str.encode))
def test_anything_called_csv_or_jsonl_ends_in_a_sentence_or_a_frame(tmp_path, content):
    for name in ("a.csv", "a.jsonl", "a.tsv"):
        assert_sentence_or_frame(tmp_path, name, content)


def test_text_columns_keep_what_is_written(tmp_path):
    content = "a, b ,c\nNone,1.50,x\nNA,007,y\n,NaN,z\n null ,7,w\n"
    sample = read(tmp_path, "a.csv", content, text=("a", "b"))
    assert sample.data["a"].to_list() == ["None", "NA", None, "null"]
    assert sample.data["b"].to_list() == ["1.50", "007", "NaN", "7"]
    assert read_file(written(tmp_path, "b.csv", content)).data["a"].null_count() == 4
    packed = read(tmp_path, "a.tsv.gz", gzip.compress(b"a\tb\nNA\t1\nno\t2\n"), text=("a",))
    assert packed.data["a"].to_list() == ["NA", "no"]


def archive(**members):
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w") as file:
        for name, content in members.items():
            file.writestr(name.replace("__", "/").replace("_npy", ".npy"), content)
    return stream.getvalue()


ARRAY = as_bytes(np.save, arr=np.ones((3, 2)))
OBJECTS = as_bytes(np.save, arr=np.array([{}, 1], dtype=object))
STRANGE = {
    "text": (archive(readme=b"hello"), "", "holds no arrays"),
    "folder": (archive(folder__=b""), "", "holds no arrays"),
    "text called npy": (archive(a_npy=b"hello"), "", "holds no arrays"),
    "nothing called npy": (archive(a_npy=b""), "", "holds no arrays"),
    "text by name": (archive(readme=b"hello", a_npy=ARRAY), ":readme", "Unknown array of .* 'readme'"),
    "objects": (archive(a_npy=OBJECTS), "", "could run code"),
    "objects by name": (archive(a_npy=ARRAY, o_npy=OBJECTS), ":o", "could run code"),
    "cut": (archive(a_npy=ARRAY[:-3]), "", "cannot be read as a numpy file"),
}


@pytest.mark.parametrize("case", STRANGE)
def test_archives_with_a_stranger_get_a_sentence(tmp_path, case):
    content, member, message = STRANGE[case]
    with pytest.raises(CpmmdError, match=message):
        read_file(written(tmp_path, "a.npz", content) + member)


def test_strangers_beside_an_array_are_left_alone(tmp_path):
    content = archive(readme=b"hello", folder__=b"", a_npy=ARRAY)
    np.testing.assert_array_equal(read_file(written(tmp_path, "a.npz", content)).data, np.ones((3, 2)))


def test_numpy_files_of_another_kind_get_a_sentence(tmp_path):
    with pytest.raises(InputError, match="first bytes are not those of one"):
        read_file(written(tmp_path, "a.npy", b"hello"))
    with pytest.raises(InputError, match=r"is an \.npz archive"):
        read_file(written(tmp_path, "b.npy", archive(a_npy=ARRAY)))


@pytest.mark.parametrize("unit", ["ms", "us", "d"])
def test_dates_of_no_calendar_are_refused(tmp_path, unit):
    kind, a_day = (pl.Date, 1) if unit == "d" else (pl.Datetime(unit), 86_400_000 * (1 if unit == "ms" else 1000))
    for days, good in ((2_932_896, True), (2_932_897, False), (-719_162, True), (-719_163, False)):
        frame = pl.DataFrame(
            {"t": pl.Series([0, days * a_day], dtype=pl.Int64).cast(pl.Int32 if unit == "d" else pl.Int64).cast(kind)}
        )
        sample = read_file(written(tmp_path, "a.parquet", as_bytes(frame.write_parquet)))
        if good:
            assert select_columns(sample).data["t"].to_list()[0].year == 1970
            continue
        with pytest.raises(InputError, match=r"years 1 to 9999.*'t'"):
            select_columns(sample)
