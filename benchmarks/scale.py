"""Size: the streamed engine beside its bare arithmetic, one thread beside two, memory, the cost curve, and packages from PyPI.

``python -m benchmarks.scale`` runs every part and writes ``results/scale.md`` and ``results/scale.png``; parts can be named.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import time
from collections.abc import Callable

import numpy as np

from benchmarks import RESULTS
from benchmarks.timing import best_times
from cpmmd import Bandwidth, MedianTest, two_sample_test
from cpmmd.core.parallel import map_threads, threads
from cpmmd.draws.layout import Layout
from cpmmd.engines.fixed_kernel import kernel_test
from cpmmd.kernels.scaled import ScaledKernel

WIDTH = 28
TILE = 1024
KERNEL = ScaledKernel(Bandwidth(), 7.0)  # about the median distance of standard normal rows


def samples(rows: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(rows)
    return rng.normal(size=(rows, WIDTH)), rng.normal(size=(rows, WIDTH))


def fixed(pool: np.ndarray, m: int) -> None:
    """The test of one fixed Gaussian kernel."""
    kernel_test(KERNEL, pool.__getitem__, np.arange(len(pool)), m, n_permutations=999, rng=np.random.default_rng(0))


def bare(left: np.ndarray, right: np.ndarray) -> None:
    """Only the products and exponentials of the tiles i <= j."""

    def row(start: int) -> None:
        out = np.empty((TILE, TILE), np.float32)
        for other in range(start, len(left), TILE):
            a, b = left[start : start + TILE], right[:, other : other + TILE]
            np.exp(np.matmul(a, b, out=out), out=out)

    with threads_of_blas():
        map_threads(row, range(0, len(left), TILE))


def threads_of_blas():
    from threadpoolctl import threadpool_limits

    return threadpool_limits(1, user_api="blas")


def engine() -> list[str]:
    """20,480 v 20,480: beside the bare arithmetic, and on one and two threads."""
    x, y = samples(20_480)
    pool = np.vstack([x, y])
    left = (0.1 * np.hstack([pool, pool[:, :2]])).astype(np.float32)
    left[:, -2:] = -1.0
    right = np.ascontiguousarray(left.T)
    lines, best = [], {}
    for count in (1, 2):
        with threads(count):
            times = best_times({"engine": lambda: fixed(pool, len(x)), "bare": lambda: bare(left, right)}, rounds=4)
        best[count] = times["engine"]
        ratio = times["engine"] / times["bare"]
        lines.append(
            f"| fixed Gaussian, {count} thread{'s' * (count > 1)} v its bare products and exponentials | {ratio:.2f} | <= 2 |"
        )
        lines.append(f"| (seconds: engine, bare) | {times['engine']:.2f}, {times['bare']:.2f} | |")
    return [*lines, f"| one thread v two | {best[1] / best[2]:.2f} | >= 1.7 |"]


PEAK = """
import re, sys
import numpy as np
from benchmarks.scale import fixed, samples
def high_water():  # not getrusage: its peak is inherited from the process that started this one
    return int(re.search(r"VmHWM:\\s+(\\d+)", open("/proc/self/status").read())[1])
before = high_water()
x, y = samples(int(sys.argv[1]))
pool = np.vstack([x, y])
fixed(pool, len(x))
print((high_water() - before) / 1024)
"""


def peak(rows: int) -> float:
    """Return the peak memory of a process of its own, in MB above the interpreter with its imports: data included."""
    answer = subprocess.run([sys.executable, "-c", PEAK, str(rows)], capture_output=True, text=True, check=True)
    return float(answer.stdout)


def memory() -> list[str]:
    """Peak memory above the interpreter, the data included."""
    return [f"| peak memory of the fixed kernel, {n:,} v {n:,} | {peak(n):.0f} MB | < 400 MB |" for n in (20_480, 50_000)]


def curve() -> list[str]:
    """Time and memory from 1e3 to 1e5 rows."""
    sizes = [1_000, 2_000, 5_000, 10_000, 20_000, 50_000, 100_000]
    times, peaks = [], []
    for rows in sizes:
        x, y = samples(rows // 2)
        pool = np.vstack([x, y])
        with threads(2):
            times.append(best_times({"fixed": lambda: fixed(pool, len(x))}, rounds=2)["fixed"])  # noqa: B023
        peaks.append(peak(rows // 2))
    logs = np.log(np.array(sizes)), np.log(np.array(times))
    slopes = [np.polyfit(logs[0][k:], logs[1][k:], 1)[0] for k in (3, 5)]
    draw(sizes, times, peaks)
    rows = [f"| {n:,} | {a:.3f} | {c:.0f} |" for n, a, c in zip(sizes, times, peaks, strict=True)]
    head = ["", "| rows in all | fixed kernel, s | peak memory of the fixed kernel, MB |", "| --- | --- | --- |"]
    slope = f"| slope of log time from 10,000 rows on, and from 50,000 on | {slopes[0]:.2f}, {slopes[1]:.2f} | 2 |"
    return [slope, *head, *rows]


def draw(sizes: list[int], times: list[float], peaks: list[float]) -> None:
    """Draw the cost curve of one fixed kernel."""
    import matplotlib.pyplot as plt

    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.loglog(sizes, times, "o-", label="one fixed kernel")
    left.loglog(sizes[3:], [times[3] * (n / sizes[3]) ** 2 for n in sizes[3:]], "k:", label="slope 2")
    left.set(xlabel="rows in all", ylabel="seconds, 2 threads")
    left.legend()
    right.semilogx(sizes, peaks, "o-")
    right.set(xlabel="rows in all", ylabel="peak memory above the interpreter, MB", ylim=(0, max(400, 1.1 * max(peaks))))
    figure.savefig(RESULTS / "scale.png", dpi=120)


def peers() -> list[str]:
    """1000 v 1000, d = 28, 200 permutations, one thread: hyppo's and goodpoints' own permutation tests."""
    x, y = samples(1000)
    run: dict[str, Callable[[], object]] = {
        "median": lambda: two_sample_test(x, y, method=MedianTest(), n_permutations=200, rng=0),
        "hyppo": lambda: hyppo_test(x, y),
        "goodpoints": lambda: goodpoints_test(x, y),
    }
    lines, with_errors = [], {}
    for name in ("hyppo", "goodpoints"):
        try:
            {"hyppo": hyppo_test, "goodpoints": goodpoints_test}[name](x[:64], y[:64])  # compiles
        except Exception as error:  # an absent or broken package is a line of the table
            with_errors[name] = f"{type(error).__name__}: {error}"
            run.pop(name)
    slow = {name: run.pop(name) for name in ("hyppo",) if name in run}  # minutes: one round, after the one that compiled it
    with threads(1):
        times = best_times(run, rounds=3)
        for name, work in slow.items():
            start = time.perf_counter()
            work()
            times[name] = time.perf_counter() - start
    for name in ("hyppo", "goodpoints"):
        if name in with_errors:
            lines.append(f"| {name} | not run: {with_errors[name][:100]} | |")
            continue
        wanted = ">= 20" if name == "hyppo" else ""
        lines.append(f"| {name} MMD v `median`, 1000 v 1000, 200 permutations | {times[name] / times['median']:.2g} | {wanted} |")
    return lines


def hyppo_test(x: np.ndarray, y: np.ndarray) -> object:
    from hyppo.ksample import MMD

    return MMD(compute_kernel="gaussian").test(x, y, reps=200, workers=1, auto=False)


def goodpoints_test(x: np.ndarray, y: np.ndarray) -> object:
    from goodpoints.ctt import ctt

    return ctt(x, y, g=4, B=200, lam=np.sqrt(2) * KERNEL.bandwidth, null_seed=0)


PARTS: dict[str, Callable[[], list[str]]] = {"engine": engine, "memory": memory, "peers": peers, "curve": curve}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("parts", nargs="*", metavar="PART", help=f"of {', '.join(PARTS)}; all when none is named")
    lines = ["| what | measured | wanted |", "| --- | --- | --- |"]
    chosen = arguments.parse_args().parts or list(PARTS)
    for part in chosen:
        for line in PARTS[part]():
            print(line, flush=True)
            lines.append(line)
    if len(chosen) == len(PARTS):
        bins = Layout.cut(20_480, 20_480, None, np.random.default_rng(0))
        note = (
            f"Two cores, ratios of best times side by side in one run; {bins.count} bins of {bins.size} rows at 20,480 v 20,480."
        )
        (RESULTS / "scale.md").write_text("\n".join(["# Cost at scale", "", note, "", *lines]) + "\n")


if __name__ == "__main__":
    main()
