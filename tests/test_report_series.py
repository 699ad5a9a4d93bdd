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
    table = next(b for b in series_content(many)["sections"][0]["blocks"] if b["kind"] == "table")
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
