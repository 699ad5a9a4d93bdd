"""A history keeps every batch once, whatever happens to the process that writes it."""

import multiprocessing
import os
import random
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest

from cpmmd.errors import InputError
from cpmmd.monitoring.history import History


def record(batch="a", **changes):
    return {
        "key": batch,
        "batch": batch,
        "path": None,
        "time": "2025-01-06T07:00:00+00:00",
        "rows": 120,
        "pvalue": 0.25,
        "adjusted": None,
        "statistic": -0.0125,
        "auc": None,
        "reject": False,
        "method": "cp-full",
        "seed": 4294967295,
        **changes,
    }


@pytest.fixture
def path(tmp_path):
    return tmp_path / "history.sqlite"


def test_records_come_back_as_they_were_in_the_order_they_came(path):
    records = [record("b", adjusted=0.5, auc=0.61, reject=True), record("a"), record("ü 日 'quoted'\n", seed=None)]
    with History(path) as history:
        assert [history.append(r) for r in records] == [True, True, True]
        assert history.records() == records
    with History(path) as again:
        assert again.records() == records


def test_a_batch_is_kept_once_and_as_it_came_first(path):
    with History(path) as first, History(path) as second:
        assert first.append(record(pvalue=0.1))
        assert not second.append(record(pvalue=0.9))
        assert [r["pvalue"] for r in second.records()] == [0.1]


def test_numpy_values_are_taken_and_a_test_not_made_has_no_pvalue(path):
    with History(path) as history:
        history.append(record(rows=np.int64(7), pvalue=np.nan, statistic=np.float64(0.5), reject=np.True_))
        kept = history.records()[0]
    assert kept == record(rows=7, pvalue=None, statistic=0.5, reject=True)


@pytest.mark.parametrize(
    ("changes", "word"),
    [
        ({"rows": 1.5}, "rows"),
        ({"rows": None}, "rows"),
        ({"pvalue": "small"}, "pvalue"),
        ({"batch": 3}, "batch"),
        ({"batch": "\ud800"}, "batch"),
        ({"seed": 2**64}, "seed"),
        ({"colour": "red"}, "colour"),
    ],
)
def test_records_of_another_shape_are_refused_by_the_name_of_the_field(path, changes, word):
    with History(path) as history:
        with pytest.raises(InputError, match=word):
            history.append(record(**changes))
        with pytest.raises(InputError, match="method"):
            history.append({"batch": "a"})
        assert history.records() == []


def test_foreign_damaged_and_impossible_files_are_refused_with_a_sentence(tmp_path):
    (tmp_path / "text").write_text("time,pvalue\n1,0.5\n" * 100)
    with closing(sqlite3.connect(tmp_path / "foreign")) as other:
        other.execute("CREATE TABLE batches (id INTEGER)")
    with closing(sqlite3.connect(tmp_path / "newer")) as other:
        other.execute("PRAGMA application_id = 0x63706d64")
        other.execute("PRAGMA user_version = 99")
    for name, sentence in {
        "text": "whole and writable",
        "foreign": "of another program",
        "newer": "version 99",
        "absent/history": "no directory",
        ".": "a directory",
    }.items():
        with pytest.raises(InputError, match=sentence):
            History(tmp_path / name)
    assert "pvalue" in (tmp_path / "text").read_text()


def test_a_damaged_history_is_refused_or_still_whole(path):
    with History(path) as history:
        for i in range(300):
            history.append(record(f"batch {i}"))
        whole = history.records()
    content, refused = path.read_bytes(), 0
    draw = random.Random(0)
    for _ in range(50):
        damaged = bytearray(content[: draw.randrange(1, len(content))] if draw.random() < 0.3 else content)
        for _ in range(200):
            damaged[draw.randrange(len(damaged))] ^= draw.randrange(1, 256)
        path.write_bytes(damaged)
        try:
            with History(path) as history:
                assert len(history.records()) <= len(whole)
        except InputError:
            refused += 1
    assert refused >= 45  # flips inside the text of a record are beyond SQLite's structure


def append_for_ever(path, log):
    """Append batches one after the other, each reported to ``log`` once the history said it is in; begin with known ones."""
    with History(path) as history:
        start = len(history.records())
        for i in range(max(0, start - 3), 10**6):
            added = history.append(record(f"batch {i}", rows=i))
            os.write(log, f"{i} {int(added)}\n".encode())


def new_batches(log):
    return [int(line.split()[0]) for line in log.read_text().splitlines() if line.endswith(" 1")]


def appended_until_killed(context, path, log_path, draw):
    log = os.open(log_path, os.O_WRONLY | os.O_CREAT | os.O_APPEND)
    wanted = len(new_batches(log_path)) + draw.randrange(5)  # where none is waited for it may die while it opens the file
    child = context.Process(target=append_for_ever, args=(path, log))
    child.start()
    while len(new_batches(log_path)) < wanted and child.is_alive():
        time.sleep(0.0005)
    time.sleep(draw.uniform(0, 0.01))
    child.kill()
    child.join()
    os.close(log)


def test_fifty_kills_lose_no_batch_and_double_none(path, tmp_path):
    context, log, draw = multiprocessing.get_context("fork"), tmp_path / "log", random.Random(1)
    for _ in range(50):
        appended_until_killed(context, path, log, draw)
        with closing(sqlite3.connect(path)) as plain:
            assert plain.execute("PRAGMA integrity_check").fetchone() == ("ok",)
    new = new_batches(log)
    with History(path) as history:
        kept = [r["rows"] for r in history.records()]
    assert len(new) >= 50
    assert len(new) == len(set(new))
    assert set(new) <= set(kept)
    assert kept == list(range(len(kept)))  # in order, each once
    assert " 0\n" in log.read_text()  # known batches were offered again, and refused
