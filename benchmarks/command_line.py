"""The command line against the library call it makes: ``python -m benchmarks.command_line``.

Every contender is a fresh process, and they take turns. The library call is timed inside its process, imports and reading left
out; the commands from outside, everything included.
"""

from __future__ import annotations

import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from experiments.data.pairs import higgs

ROWS = 1000
ROUNDS = 7
CALL = """
import sys, time
import polars as pl
from cpmmd import two_sample_test
x, y = (pl.read_csv(name) for name in sys.argv[1:])
start = time.perf_counter()
two_sample_test(x, y, rng=0)
print(time.perf_counter() - start)
"""


def main() -> None:
    """Print the times and their ratios."""
    with tempfile.TemporaryDirectory() as folder:
        same, differ = _write(Path(folder), shifted=False), _write(Path(folder), shifted=True)
        test = [sys.executable, "-m", "cpmmd", "test", "--seed", "0"]
        best = _best(
            {
                "interpreter": lambda: _whole([sys.executable, "-c", "pass"]),
                "help": lambda: _whole([sys.executable, "-m", "cpmmd", "--help"]),
                "call": lambda: float(_run([sys.executable, "-c", CALL, *same])),
                "call, difference": lambda: float(_run([sys.executable, "-c", CALL, *differ])),
                "script": lambda: _whole([sys.executable, "-c", CALL, *same]),
                "no difference": lambda: _whole([*test, *same]),
                "difference, verdict": lambda: _first_line([*test, *differ]),
                "difference, not explained": lambda: _whole([*test, *differ, "--no-explain"]),
                "difference, explained": lambda: _whole([*test, *differ]),
            }
        )
    print(f"cpmmd --help: {best['help'] - best['interpreter']:.2f} s over the bare interpreter (wanted: 0.5)")
    print(
        f"two_sample_test, {ROWS} v {ROWS} Higgs rows: {best['call']:.2f} s, {best['call, difference']:.2f} s where they differ; "
        f"with imports and reading {best['script']:.2f} s"
    )
    for name in ("no difference", "difference, verdict", "difference, not explained", "difference, explained"):
        call = best["call" if name == "no difference" else "call, difference"]
        ratios = best[name] / call, best[name] / best["script"]
        print(f"cpmmd test, {name}: {best[name]:.2f} s, {ratios[0]:.2f} of the call (wanted: 3), {ratios[1]:.2f} of the script")


def _write(folder: Path, *, shifted: bool) -> list[str]:
    x, y = higgs(np.random.default_rng(0), 2 * ROWS)
    pair = (x[:ROWS], y[:ROWS] if shifted else x[ROWS:])
    names = [folder / f"{'differ' if shifted else 'same'}{number}.csv" for number in (1, 2)]
    header = ",".join(f"column{i}" for i in range(x.shape[1]))
    for name, rows in zip(names, pair, strict=True):
        np.savetxt(name, rows, delimiter=",", header=header, comments="", fmt="%.7g")
    return [str(name) for name in names]


def _best(contenders: dict[str, Callable[[], float]]) -> dict[str, float]:
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(ROUNDS):
        for name, measure in contenders.items():
            best[name] = min(best[name], measure())
    return best


def _run(command: list[str]) -> str:
    return subprocess.run(command, capture_output=True, text=True, check=False).stdout


def _whole(command: list[str]) -> float:
    start = time.perf_counter()
    _run(command)
    return time.perf_counter() - start


def _first_line(command: list[str]) -> float:
    """Time until the verdict is there; the process is left to finish."""
    start = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as process:
        assert process.stdout is not None
        process.stdout.readline()
        seconds = time.perf_counter() - start
        process.stdout.read()
    return seconds


if __name__ == "__main__":
    main()
