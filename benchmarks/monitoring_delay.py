"""Delay until a change is found, and how often there is ever a false alarm: the monitor, and a fixed reference, by several rules.

``python -m benchmarks.monitoring_delay FOLDER`` writes ``results/monitoring.md``; ranks are kept in FOLDER, and a run that was
stopped goes on. Same streams and the same test for all (:mod:`benchmarks.monitoring_ranks`): reference of 100 rows, batches of
20 (60 for correlations, which the test hardly sees in 20), a change after 8 to 15 batches. A delay of 1 is the first changed
batch; a change that is not found within 15 counts 16. The fixed reference's p-values are adjusted by Benjamini and Hochberg over
all batches so far. Rules are compared at the same probability of ever a false alarm in 200 batches: BH at the level where that is
the monitor's alpha, and the monitor at the alpha that BH at .05 has, both found on other null streams than those reported.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks import RESULTS
from benchmarks.monitoring import ALPHA, CHANGES, HORIZON, REFERENCE, ROWS, rows_of, usual
from benchmarks.monitoring_ranks import Rank, journal, rank_of, stream_ranks
from cpmmd import benjamini_hochberg
from cpmmd.monitoring.answers import estimate
from cpmmd.monitoring.bets import first_looks, wealth_of

LOOKS = (1, 4, 8)
EARLIEST, SPREAD, AFTER = 8, 8, 15
STREAM_SEED, RELABELING_SEED, NULL_SEED = 202, 203, 204
SMALLEST = (1, 2)  # ranks among 9999 relabelings at which every rule is content
Found = dict[str, Any]
Rule = Callable[[Found], int | None]


def change_ranks(change: str, number: int) -> Found:
    """Return the ranks of one stream with a change, until every rule has raised its alarm."""
    rng, before = np.random.default_rng([STREAM_SEED, number]), EARLIEST + number % SPREAD
    reference, rows = usual(rng, REFERENCE), rows_of(change)
    batches = ((usual if t < before else CHANGES[change])(rng, rows) for t in range(before + AFTER))
    relabeling = np.random.default_rng([RELABELING_SEED, number])
    return {"before": before, **stream_ranks(reference, batches, LOOKS, relabeling, content)}


def content(found: Found) -> bool:
    """Whether two batches have been so odd, in both ways of looking, that no rule waits for more."""
    return all(sum(rank in SMALLEST and total > 9999 for rank, total in found[name]) >= 2 for name in ("1", "fixed"))


def null_ranks(kind: str, number: int) -> Found:
    """Return the ranks of one stream of 200 batches where nothing changes; of the fixed reference only, where that is asked."""
    rng, relabeling = np.random.default_rng([NULL_SEED, number]), np.random.default_rng([NULL_SEED, number, 1])
    reference = usual(rng, REFERENCE)
    batches = (usual(rng, ROWS) for _ in range(HORIZON))
    if kind == "calibration":
        return {"fixed": [rank_of(reference, batch, relabeling) for batch in batches]}
    return stream_ranks(reference, batches, LOOKS, relabeling, lambda _: False)


def monitor(alpha: float) -> Rule:
    """Return the rule of a monitor with the library's bets: its wealth has reached 1 / alpha."""

    def rule(found: Found) -> int | None:
        looks, ranks = first_looks(LOOKS, "adaptive"), {count: iter(found[f"{count}"]) for count in LOOKS}
        for number in range(1, len(found["1"]) + 1):
            looks = tuple(
                look.settle(*next(ranks[look.batches]), 1 / alpha)[1] if look.closes(number, 1) else look for look in looks
            )
            if wealth_of(looks) >= 1 / alpha:
                return number
        return None

    return rule


def bonferroni(found: Found) -> int | None:
    """Return the batch at which one of the monitor's p-values is small among 200."""
    return next((i for i, (rank, total) in enumerate(found["1"], 1) if rank / total <= ALPHA / HORIZON), None)


def adjusted(level: float) -> Rule:
    """Return the rule that the fixed reference's p-values, adjusted over all so far, are at most ``level``."""

    def rule(found: Found) -> int | None:
        pvalues = np.array([rank / total for rank, total in found["fixed"]])
        return next((t for t in range(1, len(pvalues) + 1) if benjamini_hochberg(pvalues[:t]).min() <= level), None)

    return rule


def ever(rule: Rule, streams: list[Found]) -> float:
    """Return the share of streams in which a rule ever raises an alarm."""
    return float(np.mean([rule(found) is not None for found in streams]))


def calibrated(streams: list[Found]) -> float:
    """Return the largest level at which adjusted p-values are ever so small in at most alpha of the streams."""
    lowest = []
    for found in streams:
        pvalues = np.array([rank / total for rank, total in found["fixed"]])
        lowest.append(min(benjamini_hochberg(pvalues[:t]).min() for t in range(1, len(pvalues) + 1)))
    return float(np.sort(lowest)[int(ALPHA * len(lowest))]) * (1 - 1e-9)


def since_error(found: Found, alarm: int) -> int:
    """Return by how many batches the estimated beginning of the change is wrong, asked for at the alarm."""
    ranks: list[Rank] = [tuple(rank) for rank in found["1"][:alarm]]
    return abs(estimate([""] * alarm, range(1, alarm + 1), ranks).number - found["before"] - 1)


def delay(found: Found, number: int | None) -> float:
    """Return a delay in batches; not a number for an alarm before the change."""
    if number is None:
        return AFTER + 1.0
    return np.nan if number <= found["before"] else float(number - found["before"])


def summary(delays: np.ndarray) -> str:
    """Return mean delay, its standard error and how many alarms came before the change."""
    on_time = delays[~np.isnan(delays)]
    early = len(delays) - len(on_time)
    return f"{on_time.mean():.2f} +- {on_time.std() / np.sqrt(len(on_time)):.2f}{f' ({early} early)' * (early > 0)}"


def table(changed: list[Found], rules: dict[str, Rule], alarms: dict[str, float], quiet: int) -> str:
    """Return delays of all changes by all rules, the error of since-when, and false alarms of so many null streams."""
    lines = [f"| change | streams | {' | '.join(rules)} | since: median error |", "| --- " * (len(rules) + 3) + "|"]
    for change in CHANGES:
        streams = [found for found in changed if found["kind"] == change]
        numbers = {name: [rule(found) for found in streams] for name, rule in rules.items()}
        delays = {name: np.array([delay(*one) for one in zip(streams, found, strict=True)]) for name, found in numbers.items()}
        ours, alarm = next(iter(delays.values())), next(iter(numbers.values()))
        errors = [since_error(streams[i], alarm[i]) for i in np.flatnonzero(ours <= 5)]
        since = f"{np.median(errors):g} (mean {np.mean(errors):.2f}, {len(errors)} streams)" if errors else "none"
        lines.append(f"| {change} | {len(streams)} | {' | '.join(summary(one) for one in delays.values())} | {since} |")
    shares = " | ".join(f"{alarms[name]:.3f}" for name in rules)
    return "\n".join([*lines, f"| ever a false alarm in {HORIZON} batches | {quiet} | {shares} | |"]) + "\n"


def main() -> None:
    """Compute what is not in the journals yet, and write the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--streams", type=int, default=120, help="of each change; half as many of correlations")
    parser.add_argument("--calibration", type=int, default=200, help="null streams that find the level of the adjusted p-values")
    parser.add_argument("--nothing", type=int, default=122, help="null streams that are reported")
    options = parser.parse_args()

    def wanted() -> Iterator[tuple[str, int]]:
        for number in range(options.streams):
            yield from ((change, number) for change in CHANGES if change != "correlation" or number % 2 == 0)

    changed = journal(options.folder / "changes.jsonl", wanted(), change_ranks)
    null = options.folder / "nothing.jsonl"
    calibration = journal(null, (("calibration", 1000 + i) for i in range(options.calibration)), null_ranks)
    nothing = journal(null, (("nothing", i) for i in range(options.nothing)), null_ranks)
    other = [found for found in calibration if found["kind"] == "calibration"]
    level, loose = calibrated(other), ever(adjusted(ALPHA), other)
    rules = {
        f"monitor, alpha {ALPHA:g}": monitor(ALPHA),
        f"fixed reference, BH at {level:.2g}": adjusted(level),
        f"monitor, alpha {loose:.2g}": monitor(loose),
        f"fixed reference, BH at {ALPHA:g}": adjusted(ALPHA),
        f"Bonferroni over {HORIZON}": bonferroni,
    }
    quiet = [found for found in nothing if found["kind"] == "nothing"]
    text = table(changed, rules, {name: ever(rule, quiet) for name, rule in rules.items()}, len(quiet))
    print(f"{len(quiet)} null streams, {options.calibration} for the level\n{text}")
    (RESULTS / "monitoring.md").write_text(text)


if __name__ == "__main__":
    main()
