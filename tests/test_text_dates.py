"""Dates in text files: ISO ones are read, those that two countries read differently only once it is said how."""

import datetime

import numpy as np
import polars as pl
import pytest

from commands import document, refused, run
from cpmmd.data.files.options import DateStyle
from cpmmd.data.files.reading import ReadOptions, read_file
from cpmmd.data.files.sample import select_columns
from cpmmd.errors import InputError
from helpers import written

NEW_YEARS_EVE = datetime.datetime(2024, 12, 31)


def read(folder, values, *, name="a.csv", **style):
    lines = "".join(f"{value}\n" for value in ("when", *values))
    return select_columns(read_file(written(folder, name, lines), ReadOptions(dates=DateStyle(**style)))).data["when"]


@pytest.mark.parametrize(
    ("text", "hours"),
    [
        ("2024-12-31", None),
        ("2024/12/31", None),
        ("2024-12-31T10:00:00", 10),
        ("2024-12-31 10:00:00", 10),
        ("2024-12-31T10:00", 10),
        ("2024-12-31 10:00:00.000", 10),
        ("2024-12-31T10:00:00.000000000", 10),
        ("2024-12-31T10:00:00Z", 10),
        ("2024-12-31 10:00:00+02:00", 8),
        ("2024-12-31T10:00:00.5+0200", 8 + 0.5 / 3600),
    ],
)
def test_iso_dates_are_read(tmp_path, text, hours):
    found = read(tmp_path, [text, "", text])
    assert (str(found.dtype) == "Date") == (hours is None)
    moments = found.cast(pl.Datetime("us")).dt.replace_time_zone(None).to_list()
    expected = NEW_YEARS_EVE + datetime.timedelta(hours=hours or 0)
    assert moments == [expected, None, expected]


def test_dates_of_several_iso_forms_are_one_column(tmp_path):
    found = read(tmp_path, ["2024-12-31", "2024-12-31T00:00:00", "2024-12-31 00:00:00.000"])
    assert found.to_list() == [NEW_YEARS_EVE] * 3


def test_dates_in_json_lines_are_read(tmp_path):
    path = written(tmp_path, "a.jsonl", '{"when": "2024-12-31"}\n{"when": null}\n')
    assert select_columns(read_file(path)).data["when"].to_list() == [NEW_YEARS_EVE.date(), None]


@pytest.mark.parametrize("text", ["01/02/2024", "31.12.2024", "12-31-2024", "1/2/24", "01/02/2024 10:00"])
def test_dates_that_could_mean_another_day_are_refused(tmp_path, text):
    with pytest.raises(InputError, match=r"'when' of .* seems to hold dates; write 2024-12-31, or set dayfirst.*date_format="):
        read(tmp_path, [text, text])


@pytest.mark.parametrize("text", ["3 Jan 2024", "Jan 3 2024", "3-jan-2024"])
def test_months_by_name_are_refused_until_their_form_is_said(tmp_path, text):
    with pytest.raises(InputError, match="date_format="):
        read(tmp_path, [text, text])


def test_times_of_day_are_refused(tmp_path):
    with pytest.raises(InputError, match=r"times of day.*10\.5 for 10:30"):
        read(tmp_path, ["10:30", "11:45"])


@pytest.mark.parametrize(("text", "style"), [("01/02/2024", {"dayfirst": True}), ("02/01/2024", {"format": "%m/%d/%Y"})])
def test_other_dates_are_read_as_said(tmp_path, text, style):
    assert read(tmp_path, [text, text], **style).to_list() == [datetime.date(2024, 2, 1)] * 2


@pytest.mark.parametrize("text", ["1.2.2024", "1-2-2024", "01/02/2024 00:00", "2024-02-01"])
def test_day_first_takes_every_mark_and_iso_dates(tmp_path, text):
    assert str(read(tmp_path, [text, text], dayfirst=True)[0]).startswith("2024-02-01")


@pytest.mark.parametrize(
    ("values", "style", "row"),
    [
        (["28/02/2024", "31/02/2024"], {"dayfirst": True}, 2),
        (["12/11/2024", "11/11/2024", "12/31/2024"], {"dayfirst": True}, 3),
        (["28/02/2024", "27/02/2024", "27/02/24"], {"dayfirst": True}, 3),
        (["02/28/2024", "02/31/2024", "02/01/2024"], {"format": "%m/%d/%Y"}, 2),
        (["02/28/2024", "02/01/2024", "02/03/24"], {"format": "%m/%d/%Y"}, 3),
        (["2024-02-28", "2024-02-30"], {}, 2),
        (["2024-02-28", "2024-02-27", "later"], {}, 3),
        (["2024-02-28T10:00:00Z", "2024-02-28T10:00:00"], {}, 2),
    ],
)
def test_a_date_that_does_not_exist_is_refused_with_its_row(tmp_path, values, style, row):
    with pytest.raises(InputError, match=f"(?s)valid.*dates among other values, the first '{values[row - 1]}' in row {row}"):
        read(tmp_path, values, **style)


@pytest.mark.parametrize("form", ["%Y", "%m/%d", "%Y%m%d", "%Q", "", "noon", "%d/%m/%Y %"])
def test_a_form_must_say_the_day(form):
    with pytest.raises(InputError, match=r"day, month and year in strptime codes.*date_format="):
        DateStyle(format=form)


def test_columns_of_other_things_are_left_alone(tmp_path):
    assert read(tmp_path, ["red", "blue"], dayfirst=True).to_list() == ["red", "blue"]
    assert read(tmp_path, ["1.5", "2"], format="%d.%m.%y").to_list() == [1.5, 2.0]


@pytest.fixture
def dated(tmp_path):
    rng = np.random.default_rng(0)
    rows = ["when,v", *(f"{rng.integers(13, 29)}/{rng.integers(1, 13)}/2024,{rng.normal():.3f}" for _ in range(30))]
    return written(tmp_path, "a.csv", "\n".join(rows)), written(tmp_path, "b.csv", "\n".join(rows[:25]))


def test_every_command_that_reads_takes_the_style_of_dates(tmp_path, dated):
    quick = ["--method", "median", "--permutations", 19, "--seed", 1]
    refused(run("test", *dated, *quick), "--dayfirst", "--date-format %m/%d/%Y")
    repeat = document(run("test", *dated, *quick, "--dayfirst", "--json"))["repeat"]
    assert " --dayfirst" in repeat
    assert document(run(*repeat.split()[1:], "--json"))["repeat"] == repeat
    detector = tmp_path / "d.cpmmd"
    form = ["--date-format", "%d/%m/%Y"]
    assert "--date-format %d/%m/%Y" in document(run("fit", dated[0], "-o", detector, *quick, *form, "--json"))["repeat"]
    assert "BATCH... --date-format %d/%m/%Y" in run("fit", dated[0], "-o", detector, *quick, *form).stdout
    assert document(run("check", detector, dated[1], *form, "--json"))["batches"][0]["status"] == "tested"
    assert run("power", *dated, "--sizes", 10, "--repetitions", 5, *quick, "--dayfirst").exit_code == 0
    refused(run("test", *dated, *quick, "--date-format", "%m/%d/%Y"), "in row")
    refused(run("test", *dated, *quick, "--dayfirst", *form), "one date format", "--dayfirst", "--date-format")
