"""Reports of a series of batches."""

import pytest

from cpmmd.errors import InputError
from cpmmd.report.series import series_content, write_series
from helpers import HOSTILE_NAMES, Page

SUFFIXES = [".html", ".md", ".json"]
MEGABYTE = 1_000_000


def records(count, flagged=()):
    return [
        {
            "batch": f"day {i}",
            "time": f"2024-06-01T00:00:{i % 60:02d}",
            "rows": 100,
            "pvalue": 0.001 if i in flagged else 0.5,
            "adjusted": 0.01 if i in flagged else 0.9,
            "statistic": 0.1,
            "effect": 0.5,
            "reject": i in flagged,
            "method": "cp-full",
            "seed": 1,
        }
        for i in range(count)
    ]


@pytest.mark.parametrize(
    ("flagged", "headline"),
    [
        ((), "No batch of 5 differs from the reference"),
        ((2,), "1 of 5 batches differs from the reference"),
        ((2, 4), "2 of 5 batches differ from the reference"),
    ],
)
def test_a_series_says_how_many_batches_differ(flagged, headline, tmp_path):
    for suffix in SUFFIXES:
        assert headline in write_series(records(5, flagged), tmp_path / f"series{suffix}", alpha=0.05)


def test_a_series_with_the_bare_minimum():
    text = write_series([{"batch": "only", "pvalue": 0.2, "reject": False}])
    assert "No batch of 1 differs" in text


def test_a_long_series_keeps_its_flagged_batches_and_its_end():
    many = records(10_000, flagged=range(0, 9000, 1000))
    table = next(part for part in series_content(many)["sections"][0]["parts"] if part["kind"] == "table")
    names = [row[0] for row in table["rows"]]
    assert {f"day {i}" for i in range(0, 9000, 1000)} <= set(names)
    assert names[-1] == "day 9999"
    assert [names[i] for i in table["flagged"]] == [f"day {i}" for i in range(0, 9000, 1000)]
    assert len(write_series(many).encode()) < MEGABYTE


def test_hostile_batch_names_leave_the_page_as_it_was():
    names = list(HOSTILE_NAMES.values())
    plain = records(len(names), (1,))
    batches = [{**record, "batch": name, "method": name, "time": name} for record, name in zip(plain, names, strict=True)]
    shapes = [{str(shape) for shape in Page(write_series(r, title=r[0]["batch"])).shape} for r in (batches, plain)]
    assert shapes[0] == shapes[1]


@pytest.mark.parametrize("broken", [[], [{"batch": "a", "pvalue": 0.1}]])
def test_a_series_that_lacks_something_says_what(broken):
    with pytest.raises(InputError, match="batch"):
        write_series(broken)


FAILED = {"batch": "2024-03-02.csv", "error": "The batch must have the reference's columns. " + "It lacks some. " * 20}


def test_batches_that_could_not_be_tested_are_shown_with_the_reason():
    page = series_content([*records(2, (1,)), FAILED])
    assert page["verdict"]["headline"].startswith("1 of 2 batches")
    assert page["verdict"]["sentences"][-1] == "1 could not be tested: 2024-03-02.csv."
    table, notes = (next(part for part in page["sections"][0]["parts"] if part["kind"] == kind) for kind in ("table", "notes"))
    assert table["rows"][2][:2] == ["2024-03-02.csv", "not tested"]
    assert table["failed"] == [2]
    assert notes["items"] == [f"2024-03-02.csv could not be tested: {FAILED['error'].strip()}"]
    assert 'class="failed"' in write_series([*records(2), FAILED])
    assert "No batch could be tested" in write_series([FAILED])


def test_batches_stand_at_the_dates_in_their_names():
    dated = [{**record, "batch": f"sales_2024030{9 - i}.csv"} for i, record in enumerate(records(4, (0,)))]
    page = series_content([*dated, FAILED])
    table = next(part for part in page["sections"][0]["parts"] if part["kind"] == "table")
    days = [row[[c["label"] for c in table["columns"]].index("Date")] for row in table["rows"]]
    assert days == ["2024-03-02", "2024-03-06", "2024-03-07", "2024-03-08", "2024-03-09"]
    assert "The latest batch, sales_20240309.csv, differs" in page["verdict"]["sentences"][0]
    assert page["verdict"]["numbers"][0]["note"] == "2024-03-06 to 2024-03-09"


def test_how_different_batches_are_is_drawn_beside_p():
    figures = [part["id"] for part in series_content(records(3))["sections"][0]["parts"] if part["kind"] == "figure"]
    assert figures == ["batch-series", "batch-effects"]
    bare = [{"batch": "only", "pvalue": 0.2, "reject": False}]
    assert [part["id"] for part in series_content(bare)["sections"][0]["parts"] if part["kind"] == "figure"] == ["batch-series"]
