"""A history knows a batch by its rows and the detector, not by what its file is called."""

import sqlite3
from contextlib import closing

import numpy as np
import pytest

from commands import document, run
from cpmmd import DriftDetector, History
from helpers import written


def csv(shift, seed=0):
    rows = np.random.default_rng(seed).normal(shift, 1, size=(60, 2))
    return "a,b\n" + "\n".join(",".join(map(repr, map(float, row))) for row in rows) + "\n"


@pytest.fixture
def detector(tmp_path):
    reference = written(tmp_path, "ref.csv", csv(0.0, seed=99))
    for seed in (0, 1):
        run("fit", reference, "-o", tmp_path / f"d{seed}.cpmmd", "--method", "median", "--seed", seed)
    return tmp_path / "d0.cpmmd"


def check(detector, *batches, stdin=None):
    return run("check", detector, *batches, "--history", detector.parent / "h.sqlite", "--json", stdin=stdin)


def test_todays_file_of_yesterdays_name_is_read(detector, tmp_path):
    today = written(tmp_path, "today.csv", csv(0.0))
    assert check(detector, today).exit_code == 0
    written(tmp_path, "today.csv", csv(3.0))
    found = check(detector, today)
    assert found.exit_code == 1
    assert document(found)["batches"][0]["status"] == "tested"


def test_files_of_one_name_in_two_folders_and_standard_input_are_told_apart(detector, tmp_path):
    for day, shift in (("mon", 0.0), ("tue", 3.0)):
        (tmp_path / day).mkdir()
        written(tmp_path / day, "batch.csv", csv(shift, seed=1))
    assert check(detector, tmp_path / "mon" / "batch.csv").exit_code == 0
    assert check(detector, tmp_path / "tue" / "batch.csv").exit_code == 1
    assert check(detector, "-", stdin=csv(0.0, seed=2)).exit_code == 0
    assert check(detector, "-", stdin=csv(3.0, seed=3)).exit_code == 1
    with History(tmp_path / "h.sqlite") as history:
        assert [record["path"] for record in history.records()] == [
            str(tmp_path / "mon" / "batch.csv"), str(tmp_path / "tue" / "batch.csv"), None, None,
        ]  # fmt: skip


def test_the_same_rows_under_another_name_are_known_and_another_detector_is_not(detector, tmp_path):
    first, second = (written(tmp_path, name, csv(3.0)) for name in ("a.csv", "b.csv"))
    assert check(detector, first).exit_code == 1
    again = document(check(detector, second))["batches"][0]
    assert (again["batch"], again["path"], again["status"], again["reject"]) == ("b.csv", str(first), "known", True)
    assert " as a.csv)" in run("check", detector, second, "--history", tmp_path / "h.sqlite").stdout
    other = run("check", tmp_path / "d1.cpmmd", first, "--history", tmp_path / "h.sqlite", "--json")
    assert document(other)["batches"][0]["status"] == "tested"


def test_what_is_known_is_judged_at_the_level_asked_for(detector, tmp_path):
    batch, history = written(tmp_path, "a.csv", csv(0.32)), ("--history", tmp_path / "h.sqlite")
    first = run("check", detector, batch, *history, "--alpha", 0.01, "--json")
    assert 0.01 < document(first)["batches"][0]["adjusted"] <= 0.05
    codes = [run("check", detector, batch, *history, "--alpha", alpha, "--json").exit_code for alpha in (0.05, 0.01, 0.05)]
    assert (first.exit_code, codes) == (0, [1, 0, 1])
    run("check", detector, *history, "--alpha", 0.05, "--report", tmp_path / "series.json")
    assert "1 of 1 batch" in (tmp_path / "series.json").read_text()


def test_a_key_is_of_rows_and_detector():
    data = np.random.default_rng(0)
    reference, batch = data.normal(size=(50, 2)), data.normal(size=(20, 2))
    one, same, other = (DriftDetector("median", rng=seed).fit(reference) for seed in (0, 0, 1))
    assert one.key(batch) == same.key(batch.copy()) == one.test(batch, name="x").key
    assert len({one.key(batch), one.key(batch + 1), other.key(batch)}) == 3


def test_a_history_of_the_first_version_is_brought_up_to_date(tmp_path):
    path = tmp_path / "old.sqlite"
    columns = (
        "batch TEXT NOT NULL UNIQUE, time TEXT NOT NULL, rows INTEGER NOT NULL, pvalue REAL, adjusted REAL, statistic REAL, "
    )
    columns += "effect REAL, reject INTEGER NOT NULL, method TEXT NOT NULL, seed INTEGER"
    with closing(sqlite3.connect(path)) as old:
        old.execute(f"CREATE TABLE batches (id INTEGER PRIMARY KEY, {columns})")
        old.execute("INSERT INTO batches VALUES (1, 'monday', '2025-01-06', 9, 0.5, 0.5, 0.1, 0.75, 0, 'median', 3)")
        old.execute("PRAGMA application_id = 1668312420")
        old.execute("PRAGMA user_version = 1")
        old.commit()
    with History(path) as history:
        (record,) = history.records()
    assert (record["batch"], record["key"], record["pvalue"], record["path"]) == ("monday", "named monday", 0.5, None)
    assert record["auc"] == 0.75
    with History(path) as again:
        assert again.records() == [record]


def test_missing_values_may_be_dealt_with_batch_by_batch(detector, tmp_path):
    """A batch with missing values is another answer when they are dropped and when they are filled in; a whole one is not."""
    holes = written(tmp_path, "holes.csv", csv(0.0).replace("\n", "\n,1.0\n", 1))
    whole = written(tmp_path, "whole.csv", csv(0.0, seed=1))
    assert "must not be missing" in document(check(detector, holes, whole))["batches"][0]["error"]
    found = document(check(detector, holes, whole, "--missing", "drop"))
    assert "--missing drop" in found["repeat"]
    assert [(b["status"], b["rows"]) for b in found["batches"]] == [("tested", 60), ("known", 60)]
    assert "1 of 61 rows" in found["batches"][0]["notes"][0]
    found = document(check(detector, holes, whole, "--missing", "impute"))["batches"]
    assert [(b["status"], b["rows"]) for b in found] == [("tested", 61), ("known", 60)]
    assert document(check(detector, holes, "--missing", "drop"))["batches"][0]["status"] == "known"
    assert "Unknown value of --missing: 'mend'" in check(detector, whole, "--missing", "mend").stderr
