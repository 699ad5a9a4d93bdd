"""Two trees of the package side by side: ratios of processor time for everyday calls.

``python -m benchmarks.versions OLD NEW`` takes two checkouts. Each has one process, and cases take turns in them, so that
whatever else the machine does falls on both alike; the smallest of several turns counts.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

TURNS = 5
LEAST_SECONDS = 0.5  # of a turn: short calls are repeated
ONE_THREAD = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def cases():
    """Return what is timed, by name; data are made once."""
    import numpy as np
    import polars as pl

    import cpmmd

    rng = np.random.default_rng(0)
    small = rng.normal(size=(200, 28)), rng.normal(size=(200, 28))
    units = tuple(10 ** np.linspace(-1, 1, 28) * rows for rows in small)
    large = rng.normal(size=(50_000, 10)), rng.normal(size=(50_000, 10))
    strata = np.arange(200) % 4, np.arange(200) % 4
    frames = [
        pl.DataFrame({f"c{i}": rng.normal(size=2000) for i in range(6)} | {"k": rng.choice(list("abcd"), 2000)}) for _ in "xy"
    ]
    result = cpmmd.two_sample_test(*frames, method="median", rng=0)
    monitor = cpmmd.DriftMonitor(method="median", n_permutations=999, rng=0).fit(small[0])
    folder = Path(tempfile.mkdtemp())
    for name, frame in zip("xy", frames, strict=True):
        frame.write_csv(folder / f"{name}.csv")
    command = [sys.executable, "-m", "cpmmd", "test", *(str(folder / f"{name}.csv") for name in "xy"), "--method", "median"]
    return {
        "cp-full, 200 v 200 x 28": lambda: cpmmd.two_sample_test(*small, rng=0),
        "cp-full, 200 v 200 x 28, in units": lambda: cpmmd.two_sample_test(*units, rng=0),
        "cp-full in strata, 200 v 200 x 28": lambda: cpmmd.two_sample_test(*small, strata=strata, rng=0),
        "cp-full, 50,000 v 50,000 x 10": lambda: cpmmd.two_sample_test(*large, rng=0),
        "mmdagg, 200 v 200 x 28": lambda: cpmmd.two_sample_test(*small, method="mmdagg", rng=0),
        "mmdfuse, 200 v 200 x 28": lambda: cpmmd.two_sample_test(*small, method="mmdfuse", rng=0),
        "median, 200 v 200 x 28": lambda: cpmmd.two_sample_test(*small, method="median", rng=0),
        "cp-linear, 200 v 200 x 28": lambda: cpmmd.two_sample_test(*small, method="cp-linear", rng=0),
        "explain, 2000 v 2000 x 7": lambda: result.explain(rng=np.random.default_rng(0)),
        "report, 2000 v 2000 x 7": lambda: result.report(),
        "monitor update, 50 rows": lambda: monitor.update(rng.normal(size=(50, 28))),
        "equivalence, 200 v 200 x 28": lambda: cpmmd.equivalence_test(*small, margin=0.3, rng=0),
        "command line, 2000 v 2000 x 7": lambda: subprocess.run(command, check=False, capture_output=True),
    }


def serve():
    """Run the cases that standard input names, and answer with the processor time of each, children included."""
    known = cases()
    print(json.dumps(list(known)), flush=True)
    for line in sys.stdin:
        before, calls = processor_time(), 0
        while calls == 0 or processor_time() - before < LEAST_SECONDS:
            known[line.strip()]()
            calls += 1
        print(json.dumps((processor_time() - before) / calls), flush=True)


def processor_time():
    """Return the seconds of processor time of this process and of those that it waited for."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


def main():
    """Print a line for each case: seconds of both trees, and new over old."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("trees", nargs=2, metavar="TREE", help="a checkout: the old one, then the new one")
    parser.add_argument("--only", default="", metavar="TEXT", help="cases whose name has this text")
    chosen = parser.parse_args()
    processes = [
        subprocess.Popen(
            [sys.executable, __file__, "--serve"],
            env={**os.environ, **ONE_THREAD, "PYTHONPATH": str(Path(tree).resolve() / "src")},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        for tree in chosen.trees
    ]
    names, _ = (json.loads(process.stdout.readline()) for process in processes)
    seconds = {name: ([], []) for name in names if chosen.only in name}
    for _ in range(TURNS):
        for name, both in seconds.items():
            for process, found in zip(processes, both, strict=True):
                print(name, file=process.stdin, flush=True)
                found.append(json.loads(process.stdout.readline()))
    for name, (old, new) in seconds.items():
        print(f"{name:36} {min(old):8.3f} s {min(new):8.3f} s   new / old {min(new) / min(old):5.2f}")
    for process in processes:
        process.stdin.close()
        process.wait()


if __name__ == "__main__":
    serve() if "--serve" in sys.argv else main()
