"""Monitors whose files, histories and groups are mixed up: nothing is passed over quietly, nothing lost."""

import shutil
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from commands import QUICK, refused, run
from cpmmd import DriftMonitor, MonitorFile
from cpmmd.errors import InputError


def rows(seed, count, shift=0.0):
    return np.random.default_rng([17, seed]).normal(shift, 1, size=(count, 2))


def saved(path, reference):
    DriftMonitor("median", n_permutations=99, rng=0).fit(reference).save(path)
    return path


def test_a_history_of_two_monitors_answers_each_for_itself(tmp_path):
    history, batch = tmp_path / "history.sqlite", rows(3, 40)
    one, other = (MonitorFile(saved(tmp_path / name, rows(k, 100, k)), history) for k, name in enumerate(("one", "other")))
    first, second = one.update(batch, "monday"), other.update(batch, "monday")
    assert not second.known
    assert first.pvalue != second.pvalue
    assert one.update(batch, "monday").known
    assert other.update(batch, "monday").known
    assert [record["pvalue"] for record in one.records()] == [first.pvalue]
    assert [record["pvalue"] for record in other.records()] == [second.pvalue]


def test_a_file_that_was_put_back_is_told_from_its_history(tmp_path):
    file = saved(tmp_path / "monitor", rows(0, 100))
    shutil.copy(file, tmp_path / "copy")
    MonitorFile(file, tmp_path / "history.sqlite").update(rows(1, 40, 2), "monday")
    shutil.copy(tmp_path / "copy", file)
    with pytest.raises(InputError, match="It has 1, the file 0: the file is an older copy"):
        MonitorFile(file, tmp_path / "history.sqlite").update(rows(1, 40, 2), "monday")
    assert not MonitorFile(file, tmp_path / "new.sqlite").update(rows(1, 40, 2), "monday").known


def test_a_file_from_before_monitors_had_an_identity_goes_on(tmp_path):
    monitor = DriftMonitor("median", n_permutations=99, rng=0).fit(rows(0, 100))
    monitor._assume(replace(monitor._state, identity="")).save(tmp_path / "monitor")
    kept = MonitorFile(tmp_path / "monitor", tmp_path / "history.sqlite")
    assert not kept.update(rows(1, 40), "monday").known
    assert kept.update(rows(1, 40), "monday").known
    assert len(kept.records()) == 1


def visits(seed, first, count):
    who = np.repeat(np.arange(first, first + count), 5)
    return pd.DataFrame(rows(seed, len(who)), columns=["u", "v"]).assign(patient=who)


def test_a_group_that_came_before_is_refused_whatever_rows_are_compared_and_nothing_changes():
    monitor = DriftMonitor("median", n_permutations=99, rng=0, groups="patient").fit(visits(0, 0, 300))
    monitor.update(visits(1, 1000, 4), "monday")
    for again in (visits(2, 30, 4), visits(2, 1000, 4)):
        with pytest.raises(InputError, match="The batch repeats 4 groups of earlier ones"):
            monitor.update(again, "tuesday")
    assert monitor.number_ == 1
    for k in range(4):  # blocks of four close
        monitor.update(visits(3 + k, 2000 + 10 * k, 4), f"later {k}")


def test_rows_of_a_stratum_that_is_new_are_left_out_aloud():
    reference = pd.DataFrame(rows(0, 200), columns=["u", "v"]).assign(site=["n", "s"] * 100)
    monitor = DriftMonitor("median", n_permutations=99, rng=0, strata="site").fit(reference)
    batch = pd.DataFrame(rows(1, 60), columns=["u", "v"]).assign(site=["n", "s"] * 20 + ["w"] * 20)
    answer = monitor.update(batch)
    assert answer.rows == 40
    assert any("left out: 'w'" in note for note in answer.notes)


@pytest.mark.parametrize("extra", [1, True, 0.5, "x"])
def test_a_new_reference_with_one_more_column_can_be_read_again(tmp_path, extra):
    reference = pd.DataFrame(rows(0, 100), columns=["u", "v"]).assign(site=["n", "s"] * 50)
    monitor = DriftMonitor("median", n_permutations=99, rng=0, strata="site").fit(reference)
    monitor.acknowledge(reference.assign(zip=extra)).save(tmp_path / "monitor")
    assert DriftMonitor.load(tmp_path / "monitor").episode_ == 1


FIT = ["fit", "reference.csv", "-o", "m.cpmmd", "--monitor", *QUICK]


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """A monitor in a file, and two batches of one name."""
    monkeypatch.chdir(tmp_path)
    for name, seed in (("reference.csv", 0), ("jan/data.csv", 1), ("feb/data.csv", 2)):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        pd.DataFrame(rows(seed, 100 if seed == 0 else 40), columns=["u", "v"]).to_csv(name, index=False)
    assert run(*FIT).exit_code == 0
    return tmp_path


@pytest.mark.usefixtures("folder")
def test_a_file_counts_once_whatever_else_is_on_the_line():
    for files in (["jan/data.csv"], ["jan/data.csv", "feb/data.csv"], ["./jan/data.csv", "feb/data.csv"]):
        assert run("check", "m.cpmmd", *files).exit_code == 0
    assert DriftMonitor.load("m.cpmmd").number_ == 2


def test_metrics_replace_metrics_only(folder):
    check = ["check", "m.cpmmd", "jan/data.csv"]
    shutil.copy("m.cpmmd", "other.cpmmd")
    before = (folder / "other.cpmmd").read_bytes()
    refused(run(*check, "--metrics", "other.cpmmd"), "holds something else")
    assert (folder / "other.cpmmd").read_bytes() == before
    for target in ("--metrics", "--report"):
        refused(run(*check, "--history", "both.md", target, "both.md"), "would be overwritten")
    assert [run(*check, "--metrics", "m.prom").exit_code for _ in range(2)] == [0, 0]


@pytest.mark.usefixtures("folder")
def test_fit_does_not_replace_a_monitor_that_has_batches():
    assert run(*FIT).exit_code == 0  # it had none
    assert run("check", "m.cpmmd", "jan/data.csv").exit_code == 0
    refused(run(*FIT), "a monitor with 1 batch", "--force")
    assert run(*FIT, "--force").exit_code == 0
