"""Null streams of the drift monitor: are p-values uniform and independent, and how often is there ever a false alarm?

``python -m benchmarks.monitoring_streams FOLDER`` continues what is in the folder (a line for each stream; all of them take
hours) and writes ``results/monitoring_streams.md``. The test inside is the largest difference of column means with 39
relabelings, cheap enough for a million of them: what is claimed does not depend on which exact test it is.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import RESULTS
from cpmmd import DriftDetector, DriftMonitor
from cpmmd.data.table import read_table
from cpmmd.monitoring.looks import first_looks, wealth_of
from cpmmd.permutation.labels import Relabelings
from cpmmd.permutation.ranking import Ranking
from cpmmd.procedures.base import Procedure

BATCHES, PERMUTATIONS, ALPHA = 200, 39, 0.05
LOOKS = (1, 8)


@dataclass(frozen=True)
class MeanDifference(Procedure):
    """The largest difference of column means: all relabelings in one product."""

    def run(self, pool: Any, options: Any, rng: np.random.Generator) -> Any:
        """Rank the observed difference."""
        rows = np.asarray(pool.numbers)
        labels = Relabelings.draw(len(rows), pool.m, options.n_permutations, rng)
        chosen = labels.array()
        values = np.abs(chosen @ rows / pool.m - (1 - chosen) @ rows / pool.n).max(axis=1)
        ranking = Ranking.of(values, tolerance=1e-9 * np.abs(rows).max(initial=1.0), exhaustive=labels.exhaustive)
        return self.conclude(pool, options, ranking, tested_sizes=(pool.m, pool.n))


def gaussian(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Two columns of numbers without ties."""
    return rng.normal(size=(rows, 2))


def discrete(rng: np.random.Generator, rows: int) -> np.ndarray:
    """Two columns of three values each."""
    return rng.integers(0, 3, size=(rows, 2))


@dataclass(frozen=True)
class Case:
    """One kind of stream."""

    draw: Callable[[np.random.Generator, int], np.ndarray]
    rows: int
    reference: int
    past_rows: int
    streams: int
    detector: bool = False


CASES = {
    "5 rows, discrete, 60 kept": Case(discrete, 5, 50, 60, 2000),
    "50 rows, 60 kept": Case(gaussian, 50, 50, 60, 2000),
    "1 row, discrete, 40 kept": Case(discrete, 1, 30, 40, 2000),
    **{
        f"reference of {rows}{', fixed (detector)' * fixed}": Case(gaussian, 20, rows, 2 * rows, 500, detector=fixed)
        for rows in (50, 100, 1000)
        for fixed in (False, True)
    },
}


def stream(case: Case, number: int) -> dict[str, Any]:
    """Return the ranks of one stream, and of the blocks of each look."""
    data = np.random.default_rng([20, number])
    options = {"method": MeanDifference(), "n_permutations": PERMUTATIONS, "rng": number}
    reference = case.draw(data, case.reference)
    if case.detector:
        detector = DriftDetector(**options).fit(reference)
        answers = [detector.test(case.draw(data, case.rows)).result for _ in range(BATCHES)]
        found = [(round(one.pvalue * (len(one.null_distribution) + 1)), len(one.null_distribution) + 1) for one in answers]
        return {"stream": number, "1": found}
    monitor = DriftMonitor(looks=LOOKS, past_rows=case.past_rows, **options).fit(reference)
    looks: dict[str, Any] = {str(count): [] for count in LOOKS}
    state = monitor._state
    for batch in range(BATCHES):
        table = read_table(case.draw(data, case.rows), "batch")
        state, found = monitor._test(replace(state, number=batch + 1), table)  # half of update(): no records, no names
        for look in found:
            looks[str(look.batches)].append((look.rank, look.total))
    return {"stream": number, **looks}


def known(file: Path) -> Iterator[dict[str, Any]]:
    """Yield the streams that a file has."""
    if file.exists():
        yield from (json.loads(line) for line in file.read_text().splitlines())


def path_of(folder: Path, name: str) -> Path:
    """Return the file of a case."""
    return folder / f"{name.replace(' ', '-').replace(',', '')}.jsonl"


def run(folder: Path, turns: int) -> None:
    """Add the streams that are missing, some of each case in turn."""
    done = {name: {one["stream"] for one in known(path_of(folder, name))} for name in CASES}
    for number in range(turns):
        for name, case in CASES.items():
            for one in range(number * case.streams // turns, (number + 1) * case.streams // turns):
                if one not in done[name]:
                    with path_of(folder, name).open("a") as lines:
                        lines.write(json.dumps(stream(case, one)) + "\n")


def ever(streams: list[dict[str, Any]], bet: str, looks: tuple[int, ...]) -> int:
    """Count the streams whose wealth ever reaches 1 / alpha."""
    count = 0
    for one in streams:
        state, alarm = first_looks(looks, bet), False
        for batch in range(BATCHES):
            state = tuple(
                look.settle(*one[str(look.batches)][batch // look.batches])[1] if look.closes(batch + 1, 1) else look
                for look in state
            )
            alarm = alarm or wealth_of(state) >= 1 / ALPHA
        count += alarm
    return count


def uniformity(streams: list[dict[str, Any]]) -> dict[str, float]:
    """Return the chi-square p-value of the lattice, lag-1 correlation in standard errors, and the spread of false-alarm rates."""
    ranks, totals = np.moveaxis(np.array([one["1"] for one in streams]), 2, 0)
    same = totals == totals.max()
    cells = np.histogram(ranks[same], bins=np.linspace(0.5, totals.max() + 0.5, 21))[0]
    scores = stats.norm.ppf((ranks - 0.5) / totals)
    products = scores[:, :-1] * scores[:, 1:]
    rates = (ranks / totals <= ALPHA).mean(axis=1)
    return {
        "streams": len(streams),
        "chi-square p": float(stats.chisquare(cells).pvalue),
        "lag-1": float(products.mean()),
        "in standard errors": float(products.mean() * np.sqrt(products.size)),
        "false alarms": float(rates.mean()),
        "largest": float(rates.max()),
        "spread / binomial": float(rates.std() / np.sqrt(ALPHA * (1 - ALPHA) / ranks.shape[1])),
    }


def summary(folder: Path) -> str:
    """Return both tables."""
    found = {name: list(known(path_of(folder, name))) for name in CASES}
    found = {name: streams for name, streams in found.items() if streams}
    tables = {name: uniformity(streams) for name, streams in found.items()}
    heads = list(next(iter(tables.values())))
    lines = [f"| {BATCHES} null batches | {' | '.join(heads)} |", "| --- " * (len(heads) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(f'{value:.3g}' for value in one.values())} |" for name, one in tables.items()]
    ways = [(bet, looks) for bet in ("average", "adaptive", "power") for looks in ((1,), LOOKS)]
    lines += ["", f"| ever a false alarm | streams | limit | {' | '.join(f'{b} {list(k)}' for b, k in ways)} |"]
    lines += ["| --- " * (len(ways) + 3) + "|"]
    for name, streams in found.items():
        if not CASES[name].detector:
            limit = ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / len(streams))
            rates = " | ".join(f"{ever(streams, *way) / len(streams):.4f}" for way in ways)
            lines.append(f"| {name} | {len(streams)} | {limit:.4f} | {rates} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Run what is missing, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--only-summary", action="store_true")
    options = parser.parse_args()
    if not options.only_summary:
        run(options.folder, 500)
    text = summary(options.folder)
    (RESULTS / "monitoring_streams.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
