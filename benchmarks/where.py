"""How long it takes to say where, beside the test itself: ``python -m benchmarks.where``.

The table of columns (with pairs) should cost no more than half of the default test, at 1000 and at 100,000 rows.
"""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.timing import best_times, report
from cpmmd import two_sample_test
from cpmmd.data.preparation import Preparation
from cpmmd.explain.column_table import difference_tables
from cpmmd.statistics.columns import columns_of

COLUMNS = 10


def measure(rows: int, rounds: int) -> float:
    """Print and return the time of the table over that of the test it belongs to, ``rows`` in both samples together."""
    data = np.random.default_rng(0)
    x, y = data.normal(size=(rows // 2, COLUMNS)), data.normal(size=(rows // 2, COLUMNS))
    y[:, 3] += 0.1
    evidence = two_sample_test(x, y, rng=0).evidence
    columns = columns_of(evidence.pool, Preparation.fit(evidence.pool))
    times = best_times(
        {
            "table": lambda: difference_tables(evidence.pool, columns, evidence.units, 0.05, ("first", "second")),
            "test": lambda: two_sample_test(x, y, rng=0),
        },
        rounds=rounds,
    )
    return report(f"table of columns and pairs, {rows} rows", times["table"], times["test"], "cp-full", "at most 0.5")


def main() -> None:
    """Measure small and large."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=3)
    arguments = parser.parse_args()
    for rows in (1000, 100_000):
        measure(rows, arguments.rounds)


if __name__ == "__main__":
    main()
