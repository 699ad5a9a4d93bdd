"""Side-by-side timing: contenders take turns, the best of several rounds counts."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping


def best_times(
    contenders: Mapping[str, Callable[[], object]], rounds: int = 5, clock: Callable[[], float] = time.perf_counter
) -> dict[str, float]:
    """Return the shortest time of each contender over interleaved rounds (shared machines only ever add time)."""
    for run in contenders.values():
        run()
    best = dict.fromkeys(contenders, float("inf"))
    for _ in range(rounds):
        for name, run in contenders.items():
            start = clock()
            run()
            best[name] = min(best[name], clock() - start)
    return best


def report(title: str, ours: float, reference: float, what: str, wanted: str) -> float:
    """Print one ratio and give it."""
    ratio = ours / reference
    print(f"{title}: {ours * 1e3:.1f} ms, {what} {reference * 1e3:.1f} ms, ratio {ratio:.2f} (wanted {wanted})")
    return ratio
