"""``cpmmd check --history`` killed at random moments: nothing lost, nothing twice, and in the end the history of a quiet run."""

import os
import shutil
import sqlite3
import subprocess
import sys
import time

import numpy as np
import polars as pl
import pytest

from cpmmd import DriftDetector
from cpmmd.monitoring.history import History

DECISION = ("batch", "rows", "pvalue", "adjusted", "statistic", "reject")


def check(folder, history):
    batches = sorted(str(path) for path in folder.glob("batch*.csv"))
    command = [
        sys.executable,
        "-m",
        "cpmmd",
        "check",
        str(folder / "detector"),
        *batches,
        "--no-explain",
        "--history",
        str(history),
    ]
    return subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, env={**os.environ, "OMP_NUM_THREADS": "1"}
    )


def decisions(history):
    with History(history) as kept:
        return [tuple(record[name] for name in DECISION) for record in kept.records()]


def test_a_batch_tested_by_a_stopped_check_keeps_its_permutations(tmp_path):
    """A record without a decision is what a kill before the end leaves; the next call decides on it with no fewer relabelings."""
    rng = np.random.default_rng(0)
    for i in range(12):
        pl.DataFrame({"u": rng.normal(0.2 * i, 1, 60), "v": rng.normal(size=60)}).write_csv(tmp_path / f"batch{i:02}.csv")
    reference = pl.DataFrame({"u": rng.normal(size=150), "v": rng.normal(size=150)})
    DriftDetector("median", n_permutations=499, rng=0).fit(reference).save(tmp_path / "detector")
    assert check(tmp_path, tmp_path / "quiet.sqlite").wait(timeout=120) == 1
    shutil.copy(tmp_path / "quiet.sqlite", tmp_path / "stopped.sqlite")
    with sqlite3.connect(tmp_path / "stopped.sqlite") as file:
        file.execute("UPDATE batches SET adjusted = NULL, auc = NULL")
    assert check(tmp_path, tmp_path / "stopped.sqlite").wait(timeout=120) == 1
    assert decisions(tmp_path / "stopped.sqlite") == decisions(tmp_path / "quiet.sqlite")


@pytest.mark.parametrize("kills", [5, pytest.param(50, marks=pytest.mark.statistical)])
def test_killed_checks_lose_and_double_nothing(tmp_path, kills):
    rng = np.random.default_rng(kills)
    for i in range(12):
        pl.DataFrame({"u": rng.normal(0.2 * i, 1, 60), "v": rng.normal(size=60)}).write_csv(tmp_path / f"batch{i:02}.csv")
    reference = pl.DataFrame({"u": rng.normal(size=150), "v": rng.normal(size=150)})
    DriftDetector("median", n_permutations=499, rng=0).fit(reference).save(tmp_path / "detector")
    start = time.monotonic()
    assert check(tmp_path, tmp_path / "quiet.sqlite").wait(timeout=120) == 1
    whole = time.monotonic() - start
    before = 0
    for _ in range(kills):
        run = check(tmp_path, tmp_path / "killed.sqlite")
        time.sleep(float(rng.uniform(0.3, 1.0)) * whole)
        run.kill()
        run.wait()
        if (tmp_path / "killed.sqlite").exists():
            with sqlite3.connect(tmp_path / "killed.sqlite") as file:
                assert file.execute("PRAGMA integrity_check").fetchone() == ("ok",)
            names = [row[0] for row in decisions(tmp_path / "killed.sqlite")]
            assert len(names) == len(set(names)) >= before
            before = len(names)
    assert check(tmp_path, tmp_path / "killed.sqlite").wait(timeout=120) in (0, 1)
    assert sorted(decisions(tmp_path / "killed.sqlite")) == sorted(decisions(tmp_path / "quiet.sqlite"))
