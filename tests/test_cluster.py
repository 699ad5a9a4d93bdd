"""A real Dask cluster, scheduler and workers over TCP on loopback: the same answers, and a killed worker loses nothing."""

import os
import signal
import subprocess
import sys
import time

import joblib
import numpy as np
import pytest

import cpmmd.data.pool
from cpmmd import run_many, two_sample_test

distributed = pytest.importorskip("distributed")


def start(command, *arguments):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(
        [sys.executable, "-m", "dask", command, *arguments],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=environment,
    )


@pytest.fixture(scope="module")
def cluster(tmp_path_factory):
    """A client, and the two worker processes."""
    folder = tmp_path_factory.mktemp("cluster")
    address = ["--scheduler-file", str(folder / "scheduler.json")]
    scheduler = start("scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", *address)
    options = ["--nthreads", "1", "--no-nanny", "--no-dashboard", "--host", "127.0.0.1", "--local-directory", str(folder)]
    workers = [start("worker", *address, *options) for _ in range(2)]
    client = distributed.Client(scheduler_file=str(folder / "scheduler.json"), timeout=60)
    try:
        client.wait_for_workers(2, timeout=60)
        yield client, workers
    finally:
        client.close()
        for process in (*workers, scheduler):
            process.kill()
            process.wait()


@pytest.fixture(scope="module")
def samples():
    rng = np.random.default_rng(0)
    return rng.normal(size=(3000, 6)), rng.normal(0.03, 1, size=(2800, 6))


@pytest.mark.parametrize("method", ["median", "cp-full"])
@pytest.mark.usefixtures("cluster")
def test_tiles_on_a_cluster_give_the_same_digits(samples, method):
    here = two_sample_test(*samples, method=method, rng=1, n_permutations=199)
    with joblib.parallel_config(backend="dask"):
        there = two_sample_test(*samples, method=method, rng=1, n_permutations=199)
    assert (there.pvalue, there.statistic) == (here.pvalue, here.statistic)
    np.testing.assert_array_equal(there.null_distribution, here.null_distribution)


def test_one_pass_loses_nothing_with_a_worker(cluster, samples, monkeypatch):
    client, _ = cluster
    here = two_sample_test(*samples, rng=1, n_permutations=199)
    third = start("worker", client.scheduler.address, "--nthreads", "1", "--no-nanny", "--no-dashboard")
    try:
        client.wait_for_workers(3, timeout=60)
        monkeypatch.setattr(cpmmd.data.pool, "BLOCK_ROWS", 250)  # 24 blocks

        def progress(stage, done, _):
            if stage == "rows" and done >= 500 and third.poll() is None:
                os.kill(third.pid, signal.SIGKILL)

        with joblib.parallel_config(backend="dask"):
            there = two_sample_test(*samples, rng=1, n_permutations=199, progress=progress)
        assert third.wait(timeout=30) == -signal.SIGKILL
    finally:
        third.kill()
    assert (there.pvalue, there.statistic) == (here.pvalue, here.statistic)
    np.testing.assert_array_equal(there.null_distribution, here.null_distribution)


def wait_a_little():
    time.sleep(0.2)
    rng = np.random.default_rng(3)
    return rng.normal(size=(30, 2)), rng.normal(size=(30, 2))


def test_a_killed_worker_loses_nothing(cluster):
    client, workers = cluster
    tests = {f"task {i}": wait_a_little for i in range(30)}
    here = run_many(tests, method="median", rng=0, n_permutations=99)

    def progress(_, done, __):
        if done == 3 and workers[0].poll() is None:
            os.kill(workers[0].pid, signal.SIGKILL)

    with joblib.parallel_config(backend="dask"):
        there = run_many(tests, method="median", rng=0, n_permutations=99, progress=progress)
    assert workers[0].wait(timeout=30) == -signal.SIGKILL
    assert len(client.scheduler_info()["workers"]) == 1
    assert not there.failures
    assert dict(there.adjusted) == dict(here.adjusted)
