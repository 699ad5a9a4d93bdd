"""The same table gives the same columns from every format; codes, amounts and times are read as what they are, with a note."""

import io
import re

import numpy as np
import openpyxl
import pandas as pd
import polars as pl
import pytest

from cpmmd import DriftDetector, DriftMonitor, two_sample_test
from cpmmd.data.files.options import ReadOptions
from cpmmd.data.files.reading import read_file
from cpmmd.data.files.sample import select_columns
from cpmmd.data.table import read_table
from cpmmd.errors import InputError
from helpers import written

TABLE = pl.DataFrame(
    {
        "number": [1.5, 2.25, -3.0, 4.0],
        "whole": [1, 2, 3, 40],
        "flag": [True, False, True, False],
        "zeros": ["007", "012", "100", "007"],
        "exponents": ["1e5", "2e3", "12", "1e5"],
        "padded": [" red", "red ", "blue", " blue "],
        "price": ["€1,234.50", "€5", "€0.25", "-€12"],
        "share": ["12%", "2.5 %", "0%", "100%"],
        "country": ["NA", "FR", "DE", "FR"],
    }
)
COLUMNS = {
    **{name: TABLE[name].to_list() for name in ("number", "whole", "flag", "zeros", "exponents")},
    "padded": ["red", "red", "blue", "blue"],
    "price": [1234.5, 5.0, 0.25, -12.0],
    "share": [12.0, 2.5, 0.0, 100.0],
    "country": [None, "FR", "DE", "FR"],
}


def workbook(frame):
    book, stream = openpyxl.Workbook(), io.BytesIO()
    for row in (frame.columns, *frame.rows()):
        book.active.append(list(row))
    book.save(stream)
    return stream.getvalue()


def as_bytes(write, **options):
    stream = io.BytesIO()
    write(stream, **options)
    return stream.getvalue()


FORMATS = {
    "a.csv": lambda frame: frame.write_csv().encode(),
    "a.tsv": lambda frame: frame.write_csv(separator="\t").encode(),
    "pandas.csv": lambda frame: pd.DataFrame(frame.to_dict(as_series=False)).to_csv(index=False).encode(),
    "a.jsonl": lambda frame: frame.write_ndjson().encode(),
    "a.json": lambda frame: frame.write_json().encode(),
    "a.xlsx": workbook,
    "a.parquet": lambda frame: as_bytes(frame.write_parquet),
    "a.arrow": lambda frame: as_bytes(frame.write_ipc),
    "a.ipc": lambda frame: as_bytes(frame.write_ipc_stream),
}


def read(folder, name, content, **options):
    return select_columns(read_file(written(folder, name, content), ReadOptions(**options)))


@pytest.mark.parametrize("name", FORMATS)
def test_the_same_table_gives_the_same_columns(tmp_path, name):
    sample = read(tmp_path, name, FORMATS[name](TABLE))
    assert sample.data.to_dict(as_series=False) == COLUMNS
    assert sample.columns == tuple(TABLE.columns)
    table = read_table(sample.data, "x")
    assert set(table.categories) == {"zeros", "exponents", "padded", "country"}
    assert table.kinds == {"whole": "integer", "flag": "boolean"}


@pytest.mark.parametrize("name", FORMATS)
def test_text_stays_as_it_is_written_once_asked(tmp_path, name):
    names = ("zeros", "exponents", "price", "share", "country")
    sample = read(tmp_path, name, FORMATS[name](TABLE), text=names)
    assert all(sample.data[column].to_list() == TABLE[column].to_list() for column in names)


@pytest.mark.parametrize("name", FORMATS)
def test_codes_give_the_same_from_a_frame_as_from_a_file(tmp_path, name):
    codes = TABLE.select("number", "zeros", "exponents")
    table, frame = read_table(read(tmp_path, name, FORMATS[name](codes)).data, "x"), read_table(codes, "x")
    assert {c: v.tolist() for c, v in table.categories.items()} == {c: v.tolist() for c, v in frame.categories.items()}
    assert table.number_names == frame.number_names == ("number",)


FRAMES = {
    "polars": lambda frame: frame,
    "pandas": lambda frame: pd.DataFrame(frame.to_dict(as_series=False)),
    "pyarrow": lambda frame: frame.to_arrow(),
}


def many_rows(rng, prices=1.0):
    """Rows of one of each: numbers, codes, padded text, amounts, shares and a country whose name is a missing value of files."""
    rows = 60
    return pl.DataFrame(
        {
            "number": rng.normal(size=rows),
            "flag": rng.random(rows) < 0.5,
            "zeros": rng.choice(["007", "012", "100"], rows),
            "exponents": rng.choice(["1e5", "2e3", "12"], rows),
            "padded": rng.choice([" red", "red ", "blue"], rows),
            "price": [f"€{value:,.2f}" for value in prices * rng.lognormal(7, 0.3, rows)],
            "share": [f"{value:.0f} %" for value in rng.uniform(0, 100, rows)],
            "country": rng.choice(["NA", "FR", "DE"], rows),
        }
    )


@pytest.mark.parametrize("prices", [1.0, 1.3])
def test_the_same_table_has_one_answer_from_files_and_frames(tmp_path, prices):
    rng = np.random.default_rng(3)
    x, y = many_rows(rng), many_rows(rng, prices)
    options = {"missing": "impute", "n_permutations": 99, "rng": 0}
    answers = {}
    for name, written_as in FORMATS.items():
        paths = [written(tmp_path, f"{sample}-{name}", written_as(frame)) for sample, frame in (("x", x), ("y", y))]
        answers[name] = two_sample_test(*paths, **options)
    for name, made in FRAMES.items():
        noted = two_sample_test(made(x), made(y), **options)
        notes = " ".join(noted.notes)
        assert "amounts in € of column 'price' are read as numbers" in notes
        assert "'NA' in column 'country' is compared as a text of its own; replace it by None" in notes
        assert "column 'padded' has texts that begin or end with spaces, and differ from those without; strip them" in notes
        as_noted = [
            frame.with_columns(
                pl.col("padded").str.strip_chars(), pl.when(pl.col("country") != "NA").then("country").alias("country")
            )
            for frame in (x, y)
        ]
        answers[name] = two_sample_test(*map(made, as_noted), **options)
        assert not any("compared as" in note or "spaces" in note for note in answers[name].notes)
    assert {result.pvalue for result in answers.values()} == {answers["polars"].pvalue}
    assert answers["polars"].reject == (prices > 1)


@pytest.mark.parametrize("make", FRAMES)
def test_a_frame_keeps_its_text_and_a_note_names_what_a_file_would_give(make):
    frame = pl.DataFrame({"n": ["1", "2", "3.5"], "day": ["2024-01-05", "2024-01-06", "2024-02-01"], "code": ["007", "1", "2"]})
    table = read_table(FRAMES[make](frame), "x")
    assert set(table.categories) == {"n", "day", "code"}
    assert [str(note) for note in table.notes] == [
        "column 'n' is text that holds numbers, and is compared as text; convert it to numbers to compare those",
        "column 'day' is text that holds dates, and is compared as text; convert it to dates to compare those",
    ]


def test_a_categorical_column_of_a_frame_is_text_without_a_note():
    frame = pd.DataFrame({"price": pd.Categorical(["€5", "€6"]), "n": pd.Categorical(["1", "2"])})
    table = read_table(frame, "x")
    assert set(table.categories) == {"price", "n"}
    assert not table.notes


@pytest.mark.parametrize(
    ("values", "sentence"),
    [
        (
            ["€5", "$3", "€7"],
            r"Amounts of a column must have one unit. Column 'price' of sample x holds amounts in € and .*'\$3'",
        ),
        (["€5", "€6", "cheap"], "one unit.*such as 'cheap'"),
        (["€1.234,50", "€5,5", "€3"], "must be written as 1,234.50. Column 'price' of sample x has others, such as '€1.234,50'"),
    ],
)
def test_amounts_of_a_frame_that_are_not_clear_are_refused(values, sentence):
    with pytest.raises(InputError, match=sentence):
        read_table(pl.DataFrame({"price": values}), "x")


def test_amounts_that_are_not_clear_are_refused_in_a_file_with_types_as_well(tmp_path):
    for values, sentence in ((["€5", "$3", "€7"], "one unit"), (["€1.234,50", "€5,5"], "decimal separator is not clear")):
        path = written(tmp_path, "a.parquet", as_bytes(pl.DataFrame({"price": values, "v": range(len(values))}).write_parquet))
        with pytest.raises(InputError, match=sentence):
            select_columns(read_file(path))


def test_missing_marks_in_a_column_of_amounts_are_missing_values():
    table = read_table(pl.DataFrame({"price": ["$5", "NA", None, "$1,250.5"]}), "x")
    np.testing.assert_array_equal(np.asarray(table.numbers)[:, 0], [5, np.nan, np.nan, 1250.5])


def test_notes_on_reading_do_not_speak_of_a_column_of_the_design():
    rng = np.random.default_rng(0)
    frames = [pl.DataFrame({"v": rng.normal(size=20), "site": rng.choice(["1", "2"], 20)}) for _ in range(2)]
    assert not any("site" in note for note in two_sample_test(*frames, strata="site", method="median", rng=0).notes)


def test_a_detector_and_a_monitor_keep_the_notes_on_how_their_reference_was_read():
    frame = pl.DataFrame({"price": [f"€{i}" for i in range(30)]})
    for kind in (DriftDetector, DriftMonitor):
        assert any("amounts in €" in note for note in kind("median", n_permutations=19, rng=0).fit(frame).notes_)


@pytest.mark.parametrize(
    ("values", "note"),
    [
        (["007", "12"], "codes such as '007' are kept as text, not read as numbers; text=... takes it as it is written"),
        (["1e5", "12"], "codes such as '1e5' are kept as text"),
        (["$1,250", "$3"], r"amounts in \$ are read as numbers, '\$1,250' as 1250"),
        (["12%", "3%"], "amounts in % are read as numbers, '12%' as 12"),
        (["7  ", "12 "], "values padded with spaces are read as numbers"),
    ],
)
def test_a_note_tells_how_text_was_read(tmp_path, values, note):
    lines = "".join(f'"{value}",1\n' for value in values)
    sample = read(tmp_path, "a.csv", "a,b\n" + lines)
    assert len(sample.notes) == 1
    assert re.search(f"column 'a' of .*: {note}", str(sample.notes[0]))


@pytest.mark.parametrize("values", ["1e5 2.5", "1e+05 2e+05", "0.5 00.5", "-0 7", "1.5e3 2e3"])
def test_numbers_that_programs_write_stay_numbers(tmp_path, values):
    sample = read(tmp_path, "a.csv", "a,b\n" + "".join(f"{value},1\n" for value in values.split()))
    assert sample.data["a"].to_list() == [float(value) for value in values.split()]
    assert not sample.notes


def test_spaces_after_separators_need_no_note(tmp_path):
    assert not read(tmp_path, "a.csv", "a, b\n1, 2\n3, 4\n").notes


def test_types_of_a_file_are_kept_and_its_text_is_read_with_a_note(tmp_path):
    frame = pl.DataFrame({"size": ["S", "10", "M"], "n": ["1", "2", "3.5"], "c": ["NA", "x", "y"]})
    sample = read(tmp_path, "a.parquet", as_bytes(frame.write_parquet))
    assert sample.data.to_dict(as_series=False) == {"size": ["S", "10", "M"], "n": [1, 2, 3.5], "c": [None, "x", "y"]}
    assert [str(note).partition(": ")[2].partition(";")[0] for note in sample.notes] == [
        "its text is read as numbers",
        "'NA' is read as a missing value",
    ]


def test_decimal_commas_in_amounts(tmp_path):
    sample = read(tmp_path, "a.csv", "a;b\n1.234,50 €;1\n5 €;2\n", decimal=",")
    assert sample.data["a"].to_list() == [1234.5, 5.0]
    with pytest.raises(InputError, match="amounts whose decimal separator is not clear; set decimal=','"):
        read(tmp_path, "b.csv", "a;b\n€1.234,50;1\n€5,5;2\n")


@pytest.mark.parametrize(("unit", "parts"), [("seconds", 1), ("milliseconds", 1000), ("microseconds", 10**6)])
@pytest.mark.parametrize("name", ["a.jsonl", "a.csv", "a.parquet"])
def test_times_since_1970_are_pointed_out(tmp_path, name, unit, parts):
    frame = pl.DataFrame({"when": [(1_700_000_000 + 86_400 * i) * parts for i in range(3)], "v": [1, 2, 3]})
    sample = read(tmp_path, name, FORMATS[name](frame))
    assert sample.data["when"].to_list() == frame["when"].to_list()
    assert [f"looks like times in {unit} since 1970" in str(note) for note in sample.notes] == [True]


def test_a_nested_column_is_refused_unless_it_is_left_out(tmp_path):
    path = written(tmp_path, "a.parquet", as_bytes(pl.DataFrame({"l": [[1], [2, 3]], "v": [1.0, 2.0]}).write_parquet))
    with pytest.raises(InputError, match=r"Column 'l' of .* has type List; leave it out with drop="):
        select_columns(read_file(path))
    assert select_columns(read_file(path), drop=["l"]).data["v"].to_list() == [1.0, 2.0]
