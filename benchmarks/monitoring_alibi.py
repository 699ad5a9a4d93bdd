"""Delay of alibi-detect's on-line MMD on the streams of :mod:`benchmarks.monitoring`, in an environment of its own.

``python -m benchmarks.monitoring --write-streams FILE`` with this project, then ``python monitoring_alibi.py FILE`` where
alibi-detect and torch are installed (it wants numpy 1). It is configured by an expected run time in rows, here 4000, which is 200
batches: a false alarm within 200 batches then has a probability of about 1 - 1/e. The .05 of the others would take an expected
run time of 78,000 rows, and more simulations than that. One reference serves all streams: its thresholds are simulated for it.
"""

from __future__ import annotations

import sys

import numpy as np
from alibi_detect.cd import MMDDriftOnline

EXPECTED_RUN_TIME, WINDOW, SIMULATIONS = 4000, 20, 10_000


def main() -> None:
    """Print the mean delay of each change, in batches."""
    streams = np.load(sys.argv[1])
    detector = MMDDriftOnline(
        streams["reference"],
        ert=EXPECTED_RUN_TIME,
        window_size=WINDOW,
        backend="pytorch",
        n_bootstraps=SIMULATIONS,
        verbose=False,
    )
    before = int(streams["before"])
    for change in (name for name in streams.files if name not in ("reference", "before")):
        delays, early = [], 0
        for batches in streams[change]:
            detector.reset_state()
            rows = batches.reshape(-1, batches.shape[-1])
            alarm = next((i for i, row in enumerate(rows) if detector.predict(row)["data"]["is_drift"]), len(rows))
            batch = alarm // batches.shape[1] + 1 - before
            early += batch < 1
            delays += [batch] * (batch >= 1)
        error = np.std(delays) / np.sqrt(len(delays))
        rows_a_batch = batches.shape[1]
        print(f"| {change} | {rows_a_batch} | {np.mean(delays):.1f} +- {error:.1f} ({early} early) |", flush=True)


if __name__ == "__main__":
    main()
