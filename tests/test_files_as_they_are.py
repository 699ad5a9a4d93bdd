"""Files as people have them: an index without a name, decimal commas, other encodings, sheets, near and far names."""

import datetime
import io

import openpyxl
import polars as pl
import pytest
import zstandard

from cpmmd.data.files.input_file import file_limit
from cpmmd.data.files.options import ReadOptions
from cpmmd.data.files.reading import read_file
from cpmmd.data.files.sample import drop_anywhere, select_columns
from cpmmd.errors import CpmmdError, InputError, nearest
from helpers import written

DAY = datetime.datetime(2024, 12, 31)


def read(folder, name, content, **options):
    return select_columns(read_file(written(folder, name, content), ReadOptions(**options)))


def workbook(**sheets):
    book, stream = openpyxl.Workbook(), io.BytesIO()
    book.remove(book.active)
    for name, rows in sheets.items():
        sheet = book.create_sheet(name)
        for row in rows:
            sheet.append(row)
    book.save(stream)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("index", "said"),
    [
        ("0 1 2", "numbers the rows"),
        ("5 9 2", "is an index"),
        ("0 1 0", "is an index"),  # tables put together keep their numbers
        ("ann bob eve", "is an index"),
        ("2024-01-01 2024-01-02 2024-01-03", "is an index"),
    ],
)
def test_a_nameless_first_column_is_an_index(tmp_path, index, said):
    lines = "".join(f"{label},{value}\n" for label, value in zip(index.split(), "789", strict=True))
    sample = read(tmp_path, "a.csv", ",v\n" + lines)
    assert sample.data.to_dict(as_series=False) == {"v": [7, 8, 9]}
    assert said in sample.notes[0]


def test_what_pandas_writes_is_read_without_its_index(tmp_path):
    pandas = pytest.importorskip("pandas")
    table = pandas.DataFrame({"u": [1.5, 2.5, 4.0], "v": list("abc")}, index=[7, 3, 3])
    table.to_csv(tmp_path / "a.csv")
    pandas.DataFrame(table.to_numpy()[:, :1].astype(float)).to_csv(tmp_path / "numbers.csv")
    assert select_columns(read_file(str(tmp_path / "a.csv"))).columns == ("u", "v")
    assert select_columns(read_file(str(tmp_path / "numbers.csv"))).columns == ("0",)  # names, not data


def test_decimal_commas(tmp_path):
    content = "a;b;c;d;e\n1,5;2;x;true;2024-01-01\n-,25;3;y;false;2024-01-02\n2,5e3;;x;true;\n"
    data = read(tmp_path, "a.csv", content, decimal=",").data
    assert data["a"].to_list() == [1.5, -0.25, 2500.0]
    assert data["b"].to_list() == [2, 3, None]
    assert data["b"].dtype == pl.Int64
    assert data["d"].to_list() == [True, False, True]
    assert data["e"].to_list() == [datetime.date(2024, 1, 1), datetime.date(2024, 1, 2), None]


@pytest.mark.parametrize("separator", [";", "\t", "|"])
def test_decimal_commas_in_the_first_line_separate_nothing(tmp_path, separator):
    lines = separator.join(["1,5", "2,5", "3,5"]) + "\n"
    assert read(tmp_path, "a.csv", lines * 2, decimal=",").data.rows() == [(1.5, 2.5, 3.5)] * 2
    names = separator.join(["price, EUR", "n"]) + "\n" + separator.join(["1,5", "2"]) + "\n"
    assert read(tmp_path, "b.csv", names, decimal=",").columns == ("price, EUR", "n")
    assert read(tmp_path, "one.csv", "v\n1,5\n2,5\n", decimal=",").data["v"].to_list() == [1.5, 2.5]


def test_decimal_commas_between_commas_are_quoted(tmp_path):
    assert read(tmp_path, "a.csv", 'a,b\n"1,5",2\n"2,5",3\n', decimal=",").data["a"].to_list() == [1.5, 2.5]


@pytest.mark.parametrize(
    ("value", "message"), [("1.234,5", "thousands separators"), ("1.234", "thousands separators"), ("1.25", "decimal point")]
)
def test_a_decimal_point_among_commas_is_refused_rather_than_guessed_at(tmp_path, value, message):
    with pytest.raises(InputError, match=message):
        read(tmp_path, "a.csv", f"a;b\n{value};2\n{value};3\n", decimal=",")


def test_a_decimal_comma_that_was_not_said_names_the_setting(tmp_path):
    with pytest.raises(InputError, match="decimal=','"):
        read(tmp_path, "a.csv", "a;b\n1,5;2\n2,5;3\n")
    with pytest.raises(CpmmdError, match="decimal"):
        ReadOptions(decimal=";")


@pytest.mark.parametrize("encoding", ["latin-1", "cp1252", "utf-16", "utf-8-sig", "shift_jis"])
def test_encodings(tmp_path, encoding):
    word = "テスト" if encoding == "shift_jis" else "café"
    content = f"{word},b\n{word},2\n{word},3\n".encode(encoding)
    assert read(tmp_path, "a.csv", content, encoding=encoding).data.rows() == [(word, 2), (word, 3)]


def test_encodings_that_do_not_fit(tmp_path):
    with pytest.raises(InputError, match=r"cannot be read as utf-16 .* Check encoding="):
        read(tmp_path, "a.csv", b"a,b\n1,2\n3", encoding="utf-16")
    for name in ("nonsense", "base64", "", "a\x00b"):
        with pytest.raises(InputError, match="text encoding, such as latin-1"):
            ReadOptions(encoding=name)


def test_cells_of_a_workbook(tmp_path):
    rows = [
        ["day", "moment", "whole", "mixed", "on", "word", None],
        [DAY, DAY.replace(hour=5), 1, 1, True, "x"],
        [],
        [None, DAY, 2, 2.5, False, "y"],
    ]
    sample = read(tmp_path, "a.xlsx", workbook(data=rows))
    assert sample.data.rows() == [(DAY.date(), DAY.replace(hour=5), 1, 1.0, True, "x"), (None, DAY, 2, 2.5, False, "y")]
    assert sample.notes == (f"1 blank line of {tmp_path}/a.xlsx is left out",)
    assert sample.data["whole"].dtype == pl.Int64


def test_sheets(tmp_path):
    content = workbook(notes=[], first=[["v"], [1], [2]], second=[["v"], [3], [4]])
    path = written(tmp_path, "a.xlsx", content)
    assert read_file(f"{path}:second").data["v"].to_list() == [3, 4]
    assert read_file(f"{path}:second").label.endswith("a.xlsx:second")
    with pytest.raises(CpmmdError, match="Did you mean 'second'"):
        read_file(f"{path}:secnod")
    with pytest.raises(InputError, match="2 sheets: 'first', 'second'"):
        read_file(path)
    assert read(tmp_path, "b.xlsx", workbook(notes=[], only=[["v"], [5]])).data["v"].to_list() == [5]


def test_a_workbook_has_an_index_and_a_header_like_any_table(tmp_path):
    assert read(tmp_path, "a.xlsx", workbook(s=[[None, "v"], [4, 1], [9, 2]])).columns == ("v",)
    assert read(tmp_path, "b.xlsx", workbook(s=[[0.5, 1], [4, 1], [9, 2]])).rows == 3


def test_packed_and_swollen_files_are_refused(tmp_path):
    bomb = zstandard.compress(b"a\n" + b"1\n" * 2_000_000)
    with pytest.raises(InputError, match="limit for a file"):
        read_file(written(tmp_path, "a.csv.zst", bomb), ReadOptions(limit=file_limit("1M")))
    with pytest.raises(InputError, match="limit for a file"):
        read_file(
            written(tmp_path, "a.xlsx", workbook(s=[["v"], *([i] for i in range(2000))])), ReadOptions(limit=file_limit("10k"))
        )


def test_a_column_to_drop_may_be_in_one_file_only(tmp_path):
    a, b = read(tmp_path, "a.csv", "id,v\n1,2\n"), read(tmp_path, "b.csv", "v,w\n3,4\n")
    assert drop_anywhere([a, b], ["id", "w", "v"]) == [("id", "v"), ("w", "v")]
    with pytest.raises(CpmmdError, match=r"Unknown column of .*a.csv and .*b.csv: 'ix'. Known: id, v, w"):
        drop_anywhere([a, b], ["ix"])


@pytest.mark.parametrize(
    ("got", "meant"),
    [("medain", "median"), ("Median", "median"), ("x", None), ("abc", None), ("cp-ful", "cp-full"), ("day3", None), ("", None)],
)
def test_only_near_names_are_suggested(got, meant):
    assert nearest(got, ["median", "cp-full", "y", "xyz", "day1", "day2"]) == meant


def test_only_near_files_are_suggested(tmp_path):
    written(tmp_path, "monday.csv", "v\n1\n")
    for name, hint in (("mnday.csv", True), ("monday.parquet", True), ("b.csv", False), ("sunday1.csv", False)):
        with pytest.raises(InputError, match="There is no file") as caught:
            read_file(str(tmp_path / name))
        assert ("Did you mean" in str(caught.value)) == hint


def test_many_names_are_compared_quickly():
    names = [f"sensor {'abcdefghij'[i % 10] * 3}{i}" for i in range(20_000)]
    assert nearest("sensro aaa10", names) == "sensor aaa10"
