"""Changes that a monitor should find, what a batch costs, how slow a drift must be to be absorbed.

``python -m benchmarks.monitoring --cost`` prints the time of early and late batches, ``--kept`` the share of it that kernel
values of kept rows take, ``--slow`` writes ``results/monitoring_slow.md``. ``--like-alibi`` prints delays to put beside those of
``monitoring_alibi.py``, on the streams that ``--write-streams`` writes for it. Other delays: :mod:`benchmarks.monitoring_delay`.
"""

from __future__ import annotations

import argparse
import cProfile
import pstats
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks import RESULTS
from cpmmd import DriftMonitor
from cpmmd.monitoring.past import LEAST_COMPARED

REFERENCE, ROWS, BEFORE, AFTER, HORIZON, ALPHA = 100, 20, 8, 15, 200, 0.05
TEST: dict[str, Any] = {"method": "median", "scale": "standard", "n_permutations": 999}


def usual(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Three numbers and the indicators of a category of two levels, of which a third may come."""
    levels = rng.integers(0, 2, rows)
    return np.column_stack([rng.normal(size=(rows, 3)), np.eye(3)[levels]])


def mean_shift(rng: np.random.Generator, rows: int) -> np.ndarray:
    """One column moves by 1.2 deviations."""
    return usual(rng, rows) + 1.2 * np.eye(6)[0]


def scale(rng: np.random.Generator, rows: int) -> np.ndarray:
    """The numbers have twice their deviation."""
    return usual(rng, rows) * np.where(np.arange(6) < 3, 2.0, 1.0)


def correlation(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Three columns that were independent correlate by .9."""
    data = usual(rng, rows)
    data[:, :3] = np.sqrt(0.9) * data[:, [0]] + np.sqrt(0.1) * rng.normal(size=(rows, 3))
    return data


def new_category(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Two of five rows have a level that was not there."""
    data = usual(rng, rows)
    data[rng.random(rows) < 0.4, 3:] = np.eye(3)[2]
    return data


def rare_cluster(rng: np.random.Generator, rows: int) -> np.ndarray:
    """A sixth of the rows are far away."""
    data = usual(rng, rows)
    data[rng.random(rows) < 1 / 6, :3] += 4
    return data


CHANGES: dict[str, Callable[[np.random.Generator, int], np.ndarray]] = {
    "mean shift": mean_shift,
    "scale": scale,
    "correlation": correlation,
    "new category": new_category,
    "rare cluster": rare_cluster,
}


def stream(change: str, number: int) -> tuple[np.ndarray, list[np.ndarray]]:
    """Return the reference and the batches of one stream."""
    rng = np.random.default_rng([33, number])
    reference, before = usual(rng, REFERENCE), [usual(rng, rows_of(change)) for _ in range(BEFORE)]
    return reference, before + [CHANGES[change](rng, rows_of(change)) for _ in range(AFTER)]


def rows_of(change: str) -> int:
    """Return the rows of a batch: the median heuristic needs more of them to see a correlation at all."""
    return 3 * ROWS if change == "correlation" else ROWS


def delay(number: int | None) -> float | None:
    """Return a delay in batches; None for an alarm before the change."""
    if number is None:
        return AFTER + 1
    return None if number <= BEFORE else number - BEFORE


def summary(delays: list[float | None]) -> str:
    """Return mean delay, its standard error and the share of alarms before the change."""
    found = np.array([one for one in delays if one is not None])
    early = sum(one is None for one in delays)
    return f"{found.mean():.1f} +- {found.std() / np.sqrt(len(found)):.1f}{f' ({early} early)' * (early > 0)}"


def cost(batches: int = 1000, repetitions: int = 60) -> str:
    """Return the CPU time of the batch after the 10th and of the one after the last, side by side."""
    rng, states = np.random.default_rng(0), {}
    monitor = DriftMonitor("median", n_permutations=99, rng=0, past_rows=300).fit(usual(rng, 300))
    for number in range(1, batches + 1):
        monitor.update(usual(rng, ROWS), f"{number}")
        if number in (10, batches - 8 + 2 - batches % 8):  # as far into a block of 8 as the 10th
            states[number] = monitor._state
    seconds: dict[int, list[float]] = {number: [] for number in states}
    for _ in range(repetitions):
        batch = usual(rng, ROWS)
        for number, state in states.items():
            monitor._assume(state)
            start = time.process_time()
            monitor.update(batch, "next")
            seconds[number].append(time.process_time() - start)
    early, late = (float(np.median(one)) for one in seconds.values())
    return f"after 10 batches {1e3 * early:.2f} ms, after about {batches} {1e3 * late:.2f} ms: ratio {late / early:.2f}"


def kept(past: int = 600, rows: int = 50) -> str:
    """Return what share of an update's time goes into kernel values of pairs of kept rows: what a cache could save at most."""
    rng, lines = np.random.default_rng(0), []
    for method in ("cp-full", "median"):
        monitor = DriftMonitor(method, n_jobs=1, rng=0, looks=(1,)).fit(usual(rng, past))
        monitor.update(usual(rng, rows), "first")
        profile = cProfile.Profile()
        profile.runcall(monitor.update, usual(rng, rows), "second")
        functions = pstats.Stats(profile).stats  # type: ignore[attr-defined]
        total = sum(own for _, _, own, _, _ in functions.values())
        kernels = sum(
            seconds
            for (file, _, _), (*_, callers) in functions.items()
            if "/cpmmd/kernels/" in file
            for (caller, _, _), (*_, seconds) in callers.items()
            if "/cpmmd/kernels/" not in caller
        )
        pairs = (LEAST_COMPARED / (LEAST_COMPARED + rows)) ** 2
        lines.append(
            f"{method}: kernels {kernels / total:.1%} of {total:.2f} s, of pairs of kept rows {kernels * pairs / total:.1%}"
        )
    return "\n".join(lines)


def slow(repetitions: int = 10) -> str:
    """Return how often a linear drift of one deviation over so many batches is found while it lasts."""
    lines = ["| one deviation over | found while it lasts | batches until then |", "| --- | --- | --- |"]
    for length in (10, 30, 100, 300):
        found = []
        for number in range(repetitions):
            rng = np.random.default_rng([5, number])
            monitor = DriftMonitor(**{**TEST, "n_permutations": 199}, rng=number, past_rows=300).fit(usual(rng, 200))
            alarm = None
            for batch in range(1, length + 1):
                if monitor.update(usual(rng, ROWS) + batch / length * np.eye(6)[0]).alarm:
                    alarm = batch
                    break
            found.append(alarm)
        times = [one for one in found if one is not None]
        lines.append(f"| {length} batches | {len(times)} of {repetitions} | {np.median(times) if times else '-'} |")
        print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def like_alibi(repetitions: int) -> None:
    """Print delays on columns as they come, one reference for all streams.

    At alibi-detect's probability of a false alarm in 200 batches; at its probability in the 8 before the change, .04 (300 null
    streams); and at .05.
    """
    settings = {**TEST, "scale": None, "n_permutations": 199}
    for alpha in (1 - np.exp(-1), 0.5, ALPHA):
        for change in CHANGES:
            delays = []
            for number in range(repetitions):
                monitor = DriftMonitor(**settings, alpha=float(alpha), rng=number).fit(stream("scale", 0)[0])
                batches = enumerate(stream(change, number)[1], 1)
                delays.append(delay(next((i for i, batch in batches if monitor.update(batch).alarm), None)))
            print(f"| {change}, alpha {alpha:.2f} | {summary(delays)} |", flush=True)


def write_streams(path: str, repetitions: int) -> None:
    """Write the streams for who measures elsewhere."""
    batches = {change: np.array([stream(change, number)[1] for number in range(repetitions)]) for change in CHANGES}
    plain = {change: np.asarray(values, dtype=np.float32) for change, values in batches.items()}
    np.savez(path, reference=stream("scale", 0)[0].astype(np.float32), before=BEFORE, **plain)


def main() -> None:
    """Measure what is asked for."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--repetitions", type=int, default=30)
    parser.add_argument("--write-streams", metavar="FILE")
    parser.add_argument("--like-alibi", action="store_true", help="delays to put beside those of monitoring_alibi.py")
    parser.add_argument("--cost", action="store_true")
    parser.add_argument("--kept", action="store_true")
    parser.add_argument("--slow", action="store_true")
    options = parser.parse_args()
    if options.like_alibi:
        like_alibi(options.repetitions)
    elif options.write_streams:
        write_streams(options.write_streams, options.repetitions)
    elif options.cost:
        print(cost())
    elif options.kept:
        print(kept())
    elif options.slow:
        (RESULTS / "monitoring_slow.md").write_text(slow())
    else:
        parser.error("say what to measure")


if __name__ == "__main__":
    main()
