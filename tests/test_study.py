"""Studies: the same table whatever the jobs, kills and torn lines; failures told, not fatal."""

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest

from cpmmd.errors import InputError
from cpmmd.studies.study import Study, power_study

CELLS = [{"mean": mean, "method": method} for mean in (0.0, 1.0) for method in ("first", "second")]


def draw(cell, data_rng, test_rng):
    return {"data": data_rng.normal(cell["mean"]), "test": test_rng.normal(), "above": data_rng.normal(cell["mean"]) > 0}


def make(repetitions=12, **options):
    return Study("draws", draw, CELLS, repetitions, data_keys=("mean",), **options)


def fails_at_three(cell, data_rng, test_rng):  # noqa: ARG001
    value = data_rng.integers(0, 4)
    if cell["mean"] == 1.0 and value == 3:
        raise ValueError("three came")
    return {"value": value}


def shifted(rng, size):
    return rng.normal(size=(size, 2)), rng.normal(0.5, 1, size=(size, 2))


def test_jobs_do_not_change_the_table(tmp_path):
    one = make().run(tmp_path / "one.jsonl", n_jobs=1)
    two = make().run(tmp_path / "two.jsonl", n_jobs=2)
    assert one == two
    assert one == make().run()
    assert one.to_csv() == two.to_csv()


def test_methods_see_the_same_data_and_their_own_test_stream():
    table = make().run()
    assert np.array_equal(table.values("data", mean=1.0, method="first"), table.values("data", mean=1.0, method="second"))
    assert not np.array_equal(table.values("test", mean=1.0, method="first"), table.values("test", mean=1.0, method="second"))
    assert not np.array_equal(table.values("test", mean=0.0, method="first"), table.values("test", mean=1.0, method="first"))
    assert len(set(table.values("data", mean=0.0, method="first"))) == 12


def test_seed_and_name_change_the_draws():
    assert make().run() != make(rng=1).run()
    assert make().run().rows != Study("others", draw, CELLS, 12, data_keys=("mean",)).run().rows


def test_rates_have_binomial_errors():
    row = make(repetitions=50).run().rows[2]
    p = row["above"]
    assert row["repetitions"] == 50
    assert 0.5 < p <= 1
    assert row["above_error"] == pytest.approx(np.sqrt(p * (1 - p) / 50))


def test_finished_repetitions_are_not_run_again(tmp_path):
    path = tmp_path / "raw.jsonl"
    make(repetitions=3).run(path)
    seen = []
    table = make(repetitions=5).run(path, progress=lambda name, done, total: seen.append((name, done, total)))
    assert seen == [("draws", done, 20) for done in range(13, 21)]
    assert table == make(repetitions=5).run()
    assert make(repetitions=3).read(path) == make(repetitions=3).run()


def test_a_torn_last_line_is_dropped(tmp_path):
    path = tmp_path / "raw.jsonl"
    make().run(path)
    whole = path.read_bytes()
    path.write_bytes(whole[:-9])
    assert len(make().read(path).repetitions) == len(make().run().repetitions) - 1
    assert make().run(path) == make().run()
    assert path.read_bytes().count(b"\n") == whole.count(b"\n")


def test_a_broken_line_in_the_middle_is_named(tmp_path):
    path = tmp_path / "raw.jsonl"
    make().run(path)
    lines = path.read_text().splitlines()
    lines[4] = lines[4][:10]
    path.write_text("\n".join(lines) + "\n")
    with pytest.raises(InputError, match=r"Line 5 of .*raw\.jsonl"):
        make().run(path)


@pytest.mark.parametrize("other", [{"rng": 1}, {"settings": {"steps": 7}}])
def test_another_studys_file_is_refused(tmp_path, other):
    path = tmp_path / "raw.jsonl"
    make().run(path)
    with pytest.raises(InputError, match="another study"):
        make(**other).run(path)


def test_a_failure_is_told_and_costs_nothing_else(tmp_path):
    study = Study("failing", fails_at_three, CELLS, 12, data_keys=("mean",))
    table = study.run(tmp_path / "raw.jsonl", n_jobs=2)
    assert table.failures
    assert {one.error for one in table.failures} == {"ValueError: three came"}
    assert all(one.cell["mean"] == 1.0 for one in table.failures)
    assert len(table.repetitions) + len(table.failures) == 48
    assert study.run(tmp_path / "raw.jsonl") == table  # tried again, failed again


def test_cells_must_differ():
    with pytest.raises(InputError, match="differ"):
        Study("twice", draw, [CELLS[0], CELLS[0]])


def test_power_study_gives_rates_for_every_combination(tmp_path):
    study = power_study(
        "power",
        generators={"shift": shifted},
        methods={"median": "median", "split": "plain-linear"},
        sizes=[20, 60],
        repetitions=20,
        n_permutations=99,
    )
    table = study.run(tmp_path / "raw.jsonl", n_jobs=2)
    power = {(row["size"], row["method"]): row["power"] for row in table.rows}
    assert power[60, "median"] > power[20, "median"]
    assert power[60, "median"] >= power[60, "split"]
    assert table.to_markdown().count("\n") == 5


SCRIPT = """
import time, sys
from cpmmd import Study

def slow(cell, data_rng, test_rng):
    time.sleep(0.02)
    return {"value": data_rng.normal(), "other": test_rng.normal()}

study = Study("killed", slow, [{"cell": c} for c in range(4)], 25)
if __name__ == "__main__":
    table = study.run(sys.argv[1], n_jobs=int(sys.argv[2]))
    open(sys.argv[1] + ".csv", "w").write(table.to_csv())
"""


def run_script(folder: Path, name: str, jobs: int) -> subprocess.Popen:
    command = [sys.executable, str(folder / "script.py"), str(folder / name), str(jobs)]
    return subprocess.Popen(command, start_new_session=True, stderr=subprocess.DEVNULL)


def wait_for_lines(path: Path, count: int) -> None:
    deadline = time.monotonic() + 60
    while not path.exists() or path.read_bytes().count(b"\n") < count:
        assert time.monotonic() < deadline, "the study does not come forward"
        time.sleep(0.01)


@pytest.mark.parametrize("jobs", [1, 2])
def test_a_killed_study_goes_on_and_ends_in_the_same_table(tmp_path, jobs):
    (tmp_path / "script.py").write_text(SCRIPT)
    for kill_at in (10, 40):
        process = run_script(tmp_path, "killed.jsonl", jobs)
        wait_for_lines(tmp_path / "killed.jsonl", kill_at)
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
        done = (tmp_path / "killed.jsonl").read_bytes().count(b"\n")
        assert kill_at <= done < 101
    assert run_script(tmp_path, "killed.jsonl", jobs).wait() == 0
    assert run_script(tmp_path, "whole.jsonl", 1).wait() == 0
    assert (tmp_path / "killed.jsonl.csv").read_text() == (tmp_path / "whole.jsonl.csv").read_text()
    keys = [json.dumps(json.loads(line).get("cell")) for line in (tmp_path / "killed.jsonl").read_text().splitlines()]
    assert len(keys) == 101  # a header and every repetition once
