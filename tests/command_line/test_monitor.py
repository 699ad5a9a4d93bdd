"""``cpmmd fit --monitor``, ``check``, ``acknowledge`` and ``dismiss``."""

import numpy as np
import polars as pl
import pytest

from commands import QUICK, document, refused, run
from cpmmd import DriftMonitor, History
from helpers import Page


@pytest.fixture
def watched(tmp_path):
    """A monitor's file, four quiet batches and three shifted ones."""
    rng = np.random.default_rng(2)

    def write(name, rows, shift=0.0):
        pl.DataFrame({"u": rng.normal(size=rows), "v": rng.normal(shift, 1, rows)}).write_csv(tmp_path / f"{name}.csv")
        return tmp_path / f"{name}.csv"

    found = document(run("fit", write("reference", 150), "-o", tmp_path / "monitor", "--monitor", *QUICK, "--json"))
    assert found["monitor"].endswith("monitor")
    assert "--monitor" in found["repeat"]
    return tmp_path / "monitor", [write(f"day{i}", 40, 0.0 if i < 4 else 1.5) for i in range(7)]


def test_quiet_is_0_alarm_is_1_and_asking_again_gives_the_same(watched, tmp_path):
    monitor, files = watched
    for _ in range(2):
        quiet = run("check", monitor, *files[:4])
        assert quiet.exit_code == 0, quiet.output
        assert quiet.stdout.startswith("No alarm in 4 batches (evidence ")
    for _ in range(2):
        alarm = run("check", monitor, *files, "--report", tmp_path / "series.html")
        assert alarm.exit_code == 1
        assert alarm.stdout.startswith(
            "ALARM: the data changed, most likely with day4.csv. The probability of ever raising a false alarm is at most 0.05."
        )
        assert "cpmmd acknowledge" in alarm.stdout
    assert run("check", monitor).exit_code == 1
    assert run("check", monitor, "--exit-zero").exit_code == 0
    assert DriftMonitor.load(monitor).number_ == 7
    page = Page((tmp_path / "series.html").read_text())
    said = "".join(page.texts)
    assert "Evidence over time" in said
    assert "Columns that changed" in said
    assert len(page.all("svg")) >= 2
    assert "most likely with day4.csv" in said


def test_the_document_fits_its_schema_and_history_and_metrics_are_written(watched, tmp_path):
    monitor, files = watched
    history, metrics = tmp_path / "history.sqlite", tmp_path / "cpmmd.prom"
    result = run("check", monitor, *files, "--history", history, "--metrics", metrics, "--json")
    found = document(result)
    assert (result.exit_code, found["alarm"], found["since"], found["number"]) == (1, True, "day4.csv", 7)
    assert found["wealth"] == found["batches"][-1]["wealth"] >= 20
    assert "v" in found["batches"][-1]["columns"]
    with History(history) as kept:
        assert [record["wealth"] for record in kept.records()] == [batch["wealth"] for batch in found["batches"]]
    lines = dict(line.rsplit(" ", 1) for line in metrics.read_text().splitlines() if not line.startswith("#"))
    assert lines[f'cpmmd_alarm{{monitor="{monitor}"}}'] == "1"
    assert float(lines[f'cpmmd_wealth{{monitor="{monitor}"}}']) == found["wealth"]
    assert lines[f'cpmmd_since_batch{{monitor="{monitor}"}}'] == "5"
    again = document(run("check", monitor, *files, "--history", history, "--metrics", metrics, "--json"))
    assert {batch["status"] for batch in again["batches"]} == {"known"}


def test_an_alarm_is_acknowledged_or_dismissed(watched, tmp_path):
    monitor, files = watched
    refused(run("acknowledge", monitor), "no alarm", "pass its rows as --reference")
    refused(run("dismiss", monitor), "no alarm")
    assert run("check", monitor, *files).exit_code == 1
    assert run("dismiss", monitor).exit_code == 0
    assert run("check", monitor, *files).exit_code == 0
    rng = np.random.default_rng(5)
    for name in ("a", "b"):
        pl.DataFrame({"u": rng.normal(size=80), "v": rng.normal(1.5, 1, 80)}).write_csv(tmp_path / f"{name}.csv")
    assert run("acknowledge", monitor, "--reference", tmp_path / "a.csv").exit_code == 0
    assert run("check", monitor, tmp_path / "b.csv").exit_code == 0
    assert DriftMonitor.load(monitor).episode_ == 2


def test_rows_of_the_new_state_are_read_with_the_column_of_the_strata(tmp_path):
    rng = np.random.default_rng(3)
    for name in ("old", "new"):
        numbers = {column: rng.normal(size=60) for column in "uv"}
        pl.DataFrame({**numbers, "site": ["a", "b"] * 30, "note": ["x"] * 60}).write_csv(tmp_path / f"{name}.csv")
    written, monitor = ("--columns", "u,v"), tmp_path / "monitor"
    assert run("fit", tmp_path / "old.csv", "-o", monitor, "--monitor", "--stratify-by", "site", *written, *QUICK).exit_code == 0
    result = run("acknowledge", monitor, "--reference", tmp_path / "new.csv", *written)
    assert result.exit_code == 0, result.output
    assert DriftMonitor.load(monitor).episode_ == 1


def test_a_batch_that_cannot_be_read_does_not_stop_the_others(watched, tmp_path):
    monitor, files = watched
    (tmp_path / "bad.csv").write_text("u,w\n1,2\n3,4\n")
    result = run("check", monitor, files[0], tmp_path / "bad.csv", files[1], "--json")
    assert result.exit_code == 2
    assert [batch["status"] for batch in document(result)["batches"]] == ["tested", "error", "tested"]


def test_missing_values_are_refused_with_what_helps_a_monitor(watched, tmp_path):
    monitor, _ = watched
    (tmp_path / "gap.csv").write_text("u,v\n1,2\n,4\n")
    result = run("check", monitor, tmp_path / "gap.csv", "--json")
    assert "fit a new monitor with --missing drop" in document(result)["batches"][0]["error"]
    refused(run("acknowledge", monitor, "--reference", tmp_path / "gap.csv"), "gap.csv", "fit a new monitor with --missing drop")


def test_what_a_monitor_does_not_take_is_refused(watched, tmp_path):
    monitor, files = watched
    for option in (["--alpha", "0.1"], ["--again"], ["--missing", "drop"]):
        assert run("check", monitor, files[0], *option).exit_code == 2
    reference = tmp_path / "reference.csv"
    refused(run("fit", reference, "-o", tmp_path / "m", "--monitor", "--example", files[0]), "example")
    refused(run("fit", reference, "-o", tmp_path / "m", "--monitor", "--method", "mmdagg"), "exact ranking")
    rare = ("-o", tmp_path / "m", *QUICK, "--alpha", "0.00001")
    refused(run("fit", reference, *rare), "can never reject")  # a detector; of a monitor the evidence adds up
    assert run("fit", reference, *rare, "--monitor").exit_code == 0
    detector = tmp_path / "detector"
    assert run("fit", reference, "-o", detector, *QUICK).exit_code == 0
    assert run("check", detector, files[0], "--metrics", tmp_path / "x").exit_code == 2
    refused(run("dismiss", detector), "must hold a monitor. It holds a detector; name the file of a monitor")
    (tmp_path / "mine.prom").write_text("mine")
    refused(run("check", monitor, files[0], "--metrics", tmp_path / "mine.prom"), "holds something else")


def test_groups_of_a_monitor(tmp_path):
    rng = np.random.default_rng(3)

    def write(name, first, count, shift=0.0):
        who = np.repeat(np.arange(first, first + count), 4)
        values = np.repeat(rng.normal(size=count), 4) + 0.3 * rng.normal(size=len(who)) + shift
        pl.DataFrame({"u": values, "other": rng.normal(size=len(who)), "who": [f"w{k}" for k in who]}).write_csv(tmp_path / name)
        return tmp_path / name

    saved = tmp_path / "monitor"
    options = (
        "-o",
        saved,
        "--monitor",
        "--group-by",
        "who",
        "--columns",
        "u",
        "--method",
        "median",
        "--permutations",
        199,
        "--seed",
        1,
    )
    assert run("fit", write("reference.csv", 0, 40), *options).exit_code == 0
    assert DriftMonitor.load(saved).groups == "who"
    assert run("check", saved, write("quiet.csv", 100, 10), "--columns", "u").exit_code == 0
    blocks = run("fit", tmp_path / "reference.csv", "-o", tmp_path / "other", "--monitor", "--blocks", 5)
    refused(blocks, "takes only groups and strata", "--blocks")
