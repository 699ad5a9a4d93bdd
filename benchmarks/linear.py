"""The default call from 10,000 to 1,000,000 rows of 10 columns: time, memory, slope, and the quadratic engine beside it.

``python -m benchmarks.linear`` writes ``results/linear.md``. The quadratic engine is the test of one fixed kernel, times the
seven kernels that ``cp-full`` evaluates, its time extrapolated with the square of the rows.
"""

from __future__ import annotations

import subprocess
import sys

import numpy as np

from benchmarks import RESULTS

SIZES = (10_000, 100_000, 1_000_000)
QUADRATIC_ROWS, KERNELS = 40_000, 7
ONE = """
import re, sys, time
import numpy as np
from cpmmd import MedianTest, two_sample_test
def high_water():  # not getrusage: its peak is inherited from the process that started this one
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
method, rows = sys.argv[1], int(sys.argv[2])
rng = np.random.default_rng(0)
two_sample_test(rng.normal(size=(50, 2)), rng.normal(size=(50, 2)), method=method, rng=0)  # imports
x, y = rng.normal(size=(rows // 2, 10)), rng.normal(0.01, 1, size=(rows // 2, 10))
before = high_water()
start, spent = time.perf_counter(), time.process_time()
result = two_sample_test(x, y, method=method, rng=0)
print(time.perf_counter() - start, time.process_time() - spent, (high_water() - before) / 1024, result.pvalue)
"""


def measure(method: str, rows: int) -> tuple[float, float, float, float]:
    """Wall time, processor time, peak memory beside the data in MB, and p, of a process of its own."""
    answer = subprocess.run([sys.executable, "-c", ONE, method, str(rows)], capture_output=True, text=True, check=True)
    wall, processor, memory, pvalue = map(float, answer.stdout.split())
    return wall, processor, memory, pvalue


def main() -> None:
    """Measure, write the table."""
    found = {rows: measure("cp-full", rows) for rows in SIZES}
    _, fixed, *_ = measure("median", QUADRATIC_ROWS)
    quadratic = KERNELS * fixed * (SIZES[-1] / QUADRATIC_ROWS) ** 2
    slope = np.log(found[SIZES[-1]][1] / found[SIZES[-2]][1]) / np.log(SIZES[-1] / SIZES[-2])
    lines = ["| rows in all | seconds | processor seconds | memory beside the data, MB | p |", "| --- | --- | --- | --- | --- |"]
    lines += [f"| {rows:,} | {w:.1f} | {c:.1f} | {m:.0f} | {p:.3g} |" for rows, (w, c, m, p) in found.items()]
    lines += [
        "",
        f"10 columns, all shifted by .01; 999 relabelings, two threads. Slope of log processor time from {SIZES[-2]:,} rows on: "
        f"{slope:.2f}. {KERNELS} kernels of the quadratic engine over {SIZES[-1]:,} rows, extrapolated from {QUADRATIC_ROWS:,}: "
        f"{quadratic:,.0f} processor seconds, {quadratic / found[SIZES[-1]][1]:,.0f} times as many.",
    ]
    (RESULTS / "linear.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    main()
