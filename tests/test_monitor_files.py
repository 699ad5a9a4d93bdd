"""A monitor in a file goes on where it stopped; kills and other processes lose and double nothing."""

import json
import multiprocessing
import random
import sqlite3
import time
from contextlib import closing

import numpy as np
import pytest

from benchmarks.monitoring_streams import MeanDifference
from cpmmd import DriftMonitor, History, MonitorFile
from cpmmd.errors import InputError
from cpmmd.monitoring.states import pack_monitor
from cpmmd.storage.container import read_file, write_file
from helpers import mixed_frame

CHEAP = {"method": "median", "n_permutations": 39, "rng": 3}


def stream(batches, rows=12, change=5):
    data = np.random.default_rng(8)
    return data.normal(size=(30, 2)), [data.normal(0 if i < change else 1.5, 1, size=(rows, 2)) for i in range(batches)]


def saved(folder, batches=12):
    """Write a monitor to a file; return the path and the batches to come."""
    reference, to_come = stream(batches)
    DriftMonitor(**CHEAP, past_rows=60).fit(reference).save(folder / "monitor")
    return folder / "monitor", to_come


def outlines(records):
    return [(one["batch"], one["number"], one["wealth"], one["alarm"], one["since"], one["looks"]) for one in records]


def send_all(path, history, batches, order=None):
    for i in order or range(len(batches)):
        MonitorFile(path, history).update(batches[i], f"day {i}")


def quiet_run(folder, batches=12):
    (folder / "quiet").mkdir()
    path, to_come = saved(folder / "quiet", batches)
    send_all(path, folder / "quiet" / "history", to_come)
    return MonitorFile(path, folder / "quiet" / "history").records()


@pytest.mark.parametrize("bet", ["average", "adaptive", "power"])
def test_saved_after_every_batch_the_answers_are_those_of_one_that_stays_in_memory(tmp_path, bet):
    data = np.random.default_rng(0)
    monitor = DriftMonitor(**CHEAP, bet=bet, looks=(1, 2), missing="impute", past_rows=50).fit(mixed_frame(data, 40))
    for i in range(6):
        monitor.save(tmp_path / "monitor")
        again = DriftMonitor.load(tmp_path / "monitor")
        batch = mixed_frame(data, 10 if i != 3 else 1, colours=("red", "violet"))
        ours, theirs = monitor.update(batch, f"day {i}"), again.update(batch, f"day {i}")
        assert {**ours.to_dict(), "time": ""} == {**theirs.to_dict(), "time": ""}
        monitor = again
    assert monitor.acknowledge(mixed_frame(data, 40)).save(tmp_path / "monitor") is None
    assert DriftMonitor.load(tmp_path / "monitor").wealth_ == monitor.wealth_ == pytest.approx(2 / 3)


def test_a_batch_sent_twice_counts_once_and_the_same_rows_under_another_name_count_again(tmp_path):
    path, (first, *_) = saved(tmp_path)
    for history in (None, tmp_path / "history"):
        file = MonitorFile(path, history)
        a, b = file.update(first, "a"), file.update(first, "a")
        assert (b.known, b.wealth, b.pvalue, b.number) == (True, a.wealth, a.pvalue, a.number)
        assert not file.update(first, f"under another name, {history}").known
    assert file.read().number_ == 3


@pytest.mark.parametrize("history", [None, "history"])
def test_a_batch_sent_again_gets_the_record_that_it_got_first(tmp_path, history):
    path, batches = saved(tmp_path)
    file = MonitorFile(path, history and tmp_path / history)
    first = [file.update(batch, f"day {i}", path=f"day{i}.csv", explain=True) for i, batch in enumerate(batches)]
    assert any(answer.alarm and answer.columns for answer in first)
    assert None not in {answer.to_dict()[name] for answer in first for name in ("auc", "statistic", "seed", "path")}
    for i, (batch, answer) in enumerate(zip(batches, first, strict=True)):
        again = file.update(batch, f"day {i}")
        assert again.known
        assert again.to_dict() == answer.to_dict()


def test_a_new_history_gets_what_the_file_knows(tmp_path):
    path, batches = saved(tmp_path, 4)
    send_all(path, None, batches)
    assert outlines(MonitorFile(path, tmp_path / "late").records()) == outlines(MonitorFile(path).records())


def test_damaged_foreign_and_forged_files_are_refused_with_a_sentence(tmp_path):
    path, batches = saved(tmp_path)
    send_all(path, None, batches[:2])
    whole = path.read_bytes()
    path.write_bytes(whole[:-9] + bytes(9))
    with pytest.raises(InputError, match="checksum"):
        DriftMonitor.load(path)
    path.write_bytes(whole)
    description, tensors = read_file(path, lambda *parts: parts, kind="monitor")
    forged = [
        {**description, "number": -1},
        {**description, "recent": [{"key": "a"}]},
        {**description, "params": {**description["params"], "looks": [2]}},
        {**description, "raised": "yes"},
        {**description, "recent": [{**description["recent"][0], "result": {"pvalue": 0.0}}]},  # a test is never in a file
        {**description, "recent": [{**description["recent"][0], "looks": []}]},
        {**description, "identity": "no digest"},
    ]
    for one in forged:
        write_file(path, tensors, one, kind="monitor")
        with pytest.raises(InputError):
            DriftMonitor.load(path)
    write_file(path, {**tensors, "bet.1": tensors["bet.1"] * np.nan}, description, kind="monitor")
    with pytest.raises(InputError, match="bets"):
        DriftMonitor.load(path)


def test_a_file_from_before_looks_kept_their_wealth_goes_on_with_equal_shares(tmp_path):
    monitor = DriftMonitor(**CHEAP, bet="average", looks=(1, 2)).fit(np.random.default_rng(0).normal(size=(40, 2)))
    monitor.update(np.random.default_rng(1).normal(size=(10, 2)), "day 1")
    tensors, description = pack_monitor(monitor._state)
    bet = monitor._state.looks[0].bet
    old = {name: values for name, values in tensors.items() if not name.startswith("wealth.")}
    write_file(tmp_path / "old", old, description, kind="monitor")
    opened = DriftMonitor.load(tmp_path / "old")
    assert [look.wealth for look in opened._state.looks] == pytest.approx([np.exp(bet.log_wealth) / 2, 0.5])
    assert opened.update(np.random.default_rng(2).normal(size=(10, 2)), "day 2").number == 2


def test_a_history_of_the_version_before_opens_and_takes_a_monitor(tmp_path):
    path, batches = saved(tmp_path, 2)
    with History(tmp_path / "history") as history:
        columns = [row[1] for row in history._connection.execute("PRAGMA table_info(batches)")][:13]
    columns = ["effect" if name == "auc" else name for name in columns]  # as it was called then
    with closing(sqlite3.connect(tmp_path / "old")) as old:
        old.execute(f"CREATE TABLE batches (id INTEGER PRIMARY KEY, key TEXT NOT NULL UNIQUE, {', '.join(columns[2:])})")
        old.execute("INSERT INTO batches VALUES (1, 'k', 'before', NULL, '2025-01-01', 5, 0.5, 0.5, 0.1, NULL, 0, 'median', 1)")
        old.execute("PRAGMA application_id = 0x63706d64")
        old.execute("PRAGMA user_version = 2")
        old.commit()
    send_all(path, tmp_path / "old", batches)
    with History(tmp_path / "old") as history:
        assert [record["batch"] for record in history.records()] == ["before", "day 0", "day 1"]
        assert "wealth" not in history.records()[0]
        assert history.records()[0]["auc"] is None


def test_an_auc_that_was_called_effect_is_read_from_a_monitors_file(tmp_path):
    path, batches = saved(tmp_path)
    answer = MonitorFile(path).update(batches[0], "day 0", explain=True)
    description, tensors = read_file(path, lambda *parts: parts, kind="monitor")
    record = description["recent"][0]
    record["effect"] = record.pop("auc")
    write_file(path, tensors, description, kind="monitor")
    assert MonitorFile(path).read().last_.auc == answer.auc is not None
    assert MonitorFile(path, tmp_path / "history").records()[0]["auc"] == answer.auc


@pytest.mark.parametrize("kills", [6, pytest.param(100, marks=pytest.mark.statistical)])
def test_kills_at_random_moments_lose_and_double_nothing(tmp_path, kills):
    batches = 12 if kills < 100 else 40
    wanted = outlines(quiet_run(tmp_path, batches))
    path, to_come = saved(tmp_path, batches)
    context, draw, done = multiprocessing.get_context("fork"), random.Random(kills), 0
    start = time.monotonic()
    for _ in range(kills):
        child = context.Process(target=send_all, args=(path, tmp_path / "history", to_come))
        child.start()
        child.join(draw.uniform(0, 0.15 if done < batches - 2 else 0.02))
        child.kill()
        child.join()
        records = MonitorFile(path, tmp_path / "history").records()
        assert len(records) >= done
        assert outlines(records) == wanted[: len(records)]
        done = len(records)
    assert time.monotonic() > start
    send_all(path, tmp_path / "history", to_come)
    assert outlines(MonitorFile(path, tmp_path / "history").records()) == wanted


def test_eight_processes_on_one_file_count_each_batch_once(tmp_path):
    path, batches = saved(tmp_path, 10)
    context = multiprocessing.get_context("fork")
    orders = [random.Random(i).sample(range(10), 10) for i in range(8)]
    children = [context.Process(target=send_all, args=(path, tmp_path / "history", batches, order)) for order in orders]
    for child in children:
        child.start()
    for child in children:
        child.join()
    assert [child.exitcode for child in children] == [0] * 8
    records = MonitorFile(path, tmp_path / "history").records()
    assert sorted(one["batch"] for one in records) == sorted(f"day {i}" for i in range(10))
    assert [one["number"] for one in records] == list(range(1, 11))
    assert outlines(records) == outlines(MonitorFile(path).records())


def test_a_method_of_ones_own_is_not_kept_in_a_file(tmp_path):
    monitor = DriftMonitor(MeanDifference(), n_permutations=19, rng=0).fit(np.zeros((5, 1)))
    with pytest.raises(InputError):
        monitor.save(tmp_path / "monitor")


def test_what_a_file_says_is_plain_json(tmp_path):
    path, batches = saved(tmp_path)
    send_all(path, None, batches[:2])
    description = read_file(path, lambda description, _: description, kind="monitor")
    assert json.loads(json.dumps(description, allow_nan=False)) == description
