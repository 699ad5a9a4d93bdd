"""Null streams of the drift monitor: are p-values uniform and independent, and how often is there ever a false alarm?

``python -m benchmarks.monitoring_streams`` writes ``results/monitoring_streams.md``. These are millions of tests: the monitor's
algorithm is written out here for many streams at once, in arrays, with the largest difference of column means and 39 relabelings
(one row: the rank of its mean kernel value). ``--itself N`` runs N streams of each case through ``DriftMonitor``, slower by far.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from scipy import stats

from benchmarks import RESULTS
from cpmmd import DriftMonitor
from cpmmd.data.table import read_table
from cpmmd.draws.labels import Relabelings
from cpmmd.evidence import Ranking
from cpmmd.monitoring.bets import (
    BETS,
    EXPONENTS,
    LEAST_PATIENCE,
    PATIENCE,
    PowerBet,
    boost,
    first_shares,
    lattice_payoffs,
    move,
)
from cpmmd.monitoring.past import COMPARED, LEAST_COMPARED
from cpmmd.procedures.base import Procedure

BATCHES, PERMUTATIONS, ALPHA = 200, 39, 0.05
LOOKS = (1, 4, 8)
CHUNK = 50  # streams at once
Draw = Callable[[np.random.Generator, Any], np.ndarray]


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


def gaussian(rng: np.random.Generator, rows: Any) -> np.ndarray:
    """Two columns of numbers without ties."""
    return rng.normal(size=(*np.atleast_1d(rows), 2))


def discrete(rng: np.random.Generator, rows: Any) -> np.ndarray:
    """Two columns of three values each."""
    return rng.integers(0, 3, size=(*np.atleast_1d(rows), 2)).astype(float)


@dataclass(frozen=True)
class Case:
    """One kind of stream."""

    draw: Draw
    rows: int
    reference: int
    past_rows: int
    streams: int
    fixed: bool = False


CASES = {
    "1 row, discrete, 40 kept": Case(discrete, 1, 30, 40, 2000),
    "5 rows, discrete, 60 kept": Case(discrete, 5, 50, 60, 2000),
    "50 rows, 60 kept": Case(gaussian, 50, 50, 60, 2000),
    **{
        f"20 rows, reference of {rows}{', fixed (the detector)' * fixed}": Case(gaussian, 20, rows, 2 * rows, 500, fixed)
        for rows in (50, 100, 1000)
        for fixed in (False, True)
    },
}


def break_ties(values: np.ndarray, rng: np.random.Generator, *, against: bool = False) -> np.ndarray:
    """Return the rank of the first of each row's values, largest first: one of its ties' at random, or the worst."""
    first, close = values[:, :1], 1e-9
    worst = (values >= first - close).sum(axis=1)
    return worst if against else worst - (rng.random(len(values)) * (worst - (values > first + close).sum(axis=1))).astype(int)


def differences(before: np.ndarray, block: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Return the statistic of every stream under the observed labels and others: streams by relabelings."""
    rows = np.concatenate([before, block], axis=1)
    streams, size, m = *rows.shape[:2], before.shape[1]
    keys = rng.random((streams, PERMUTATIONS + 1, size), dtype=np.float32)
    keys[:, 0] = np.arange(size) / size
    chosen = (keys <= np.partition(keys, m - 1, axis=2)[:, :, m - 1, None]).astype(float)
    sums, counts = chosen @ rows, chosen.sum(axis=2)[:, :, None]
    return np.abs(sums / counts - (rows.sum(axis=1)[:, None] - sums) / (size - counts)).max(axis=2)


def oddities(before: np.ndarray, row: np.ndarray) -> np.ndarray:
    """Return minus the mean kernel value of each row of every stream, the last one first."""
    rows = np.concatenate([row, before], axis=1)
    rows = rows / np.maximum(rows.std(axis=1, keepdims=True), 1e-12)
    squares = ((rows[:, :, None] - rows[:, None]) ** 2).sum(axis=3)
    pairs = squares[:, *np.triu_indices(rows.shape[1], 1)]
    return -np.exp(-squares / (2 * np.maximum(np.median(pairs, axis=1), 1e-12)[:, None, None])).mean(axis=2)


def some(pool: np.ndarray, count: int, rng: np.random.Generator) -> np.ndarray:
    """Return so many rows of each stream's pool, at random."""
    if count >= pool.shape[1]:
        return pool
    order = np.argpartition(rng.random(pool.shape[:2]), count, axis=1)[:, :count]
    return np.take_along_axis(pool, order[:, :, None], axis=1)


def block_rank(before: np.ndarray, block: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, int]:
    """Return the rank of a block in every stream, and of how many."""
    compared = some(before, max(LEAST_COMPARED, COMPARED * block.shape[1]), rng)
    values = oddities(compared, block) if block.shape[1] == 1 else differences(compared, block, rng)
    return break_ties(values, rng), values.shape[1]


def chunk_of_streams(case: Case, streams: int, rng: np.random.Generator) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return ranks and totals of each look, streams by blocks."""
    past = case.draw(rng, (streams, case.reference))
    found: dict[int, list[Any]] = {count: [] for count in LOOKS}
    for number in range(1, BATCHES + 1):
        batch = case.draw(rng, (streams, case.rows))
        if case.fixed:
            found[1].append((break_ties(differences(past, batch, rng), rng, against=True), PERMUTATIONS + 1))
            continue
        past = np.concatenate([past, batch], axis=1)
        for count in LOOKS:
            if number % count == 0:
                cut = past.shape[1] - count * case.rows
                found[count].append(block_rank(past[:, :cut], past[:, cut:], rng))
        if number % LOOKS[-1] == 0:
            past = some(past, case.past_rows, rng)
    return {
        count: (np.column_stack([rank for rank, _ in ranks]), np.array([total for _, total in ranks]))
        for count, ranks in found.items()
        if ranks
    }


def itself(case: Case, number: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return the same of one stream by the monitor itself."""
    data = np.random.default_rng([20, number])
    options = {"method": MeanDifference(), "n_permutations": PERMUTATIONS, "rng": number}
    monitor = DriftMonitor(looks=LOOKS, past_rows=case.past_rows, **options).fit(case.draw(data, case.reference))
    found: dict[int, list[Any]] = {count: [] for count in LOOKS}
    state = monitor._state
    for batch in range(BATCHES):
        table = read_table(case.draw(data, case.rows), "batch")
        state, looks = monitor._test(replace(state, number=batch + 1), table)  # half of update(): no records, no names
        for look in looks:
            found[look.batches].append((look.rank, look.total))
    return {count: (np.array(ranks)[None, :, 0], np.array(ranks)[:, 1]) for count, ranks in found.items()}


def run(case: Case, by_itself: int) -> dict[int, tuple[np.ndarray, np.ndarray]]:
    """Return ranks and totals of all streams of a case."""
    if by_itself:
        parts = [itself(case, number) for number in range(by_itself)]
    else:
        streams = np.random.default_rng([7, case.rows, case.reference, case.fixed]).spawn(case.streams // CHUNK)
        parts = [chunk_of_streams(case, CHUNK, stream) for stream in streams]
    return {count: (np.concatenate([part[count][0] for part in parts]), parts[0][count][1]) for count in parts[0]}


def payoff_path(bet: str, ranks: np.ndarray, totals: np.ndarray, patience: float) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield what each rank of a block's lattice would pay in every stream, and the index of the one that came."""
    weights = np.tile(move(np.eye(len(EXPONENTS))[0], patience), (len(ranks), 1))
    shares = np.tile({"power": [1.0, 0.0], "adaptive": [0.0, 1.0], "average": [0.5, 0.5]}[bet], (len(ranks), 1))
    tables = {int(total): (PowerBet().payoffs(int(total)), lattice_payoffs(int(total))) for total in np.unique(totals)}
    for i, total in enumerate(totals):
        power, exponents = tables[int(total)]
        came = ranks[:, i] - 1
        adaptive = weights @ exponents.T
        yield shares[:, :1] * power + shares[:, 1:] * adaptive, came
        paid = np.column_stack([power[came], np.take_along_axis(adaptive, came[:, None], axis=1)[:, 0]])
        weights = move(weights * exponents[came] / paid[:, 1:], patience + i + 1)
        shares = shares * paid / (shares * paid).sum(axis=1, keepdims=True)


def largest_wealth(bet: str, ranks: np.ndarray, totals: np.ndarray, count: int, share: float) -> np.ndarray:
    """Return the largest wealth of one look in every stream, 1 / alpha at most: what a rank would pay beyond is cut."""
    wealth, best = np.full(len(ranks), share), np.full(len(ranks), share)
    for payoffs, came in payoff_path(bet, ranks, totals, max(LEAST_PATIENCE, PATIENCE / count)):
        open_yet = best < 1 / ALPHA
        most = np.where(open_yet, (1 + 1e-9) / ALPHA / wealth, 2.0)
        paid = np.take_along_axis(payoffs, came[:, None], axis=1)[:, 0]
        wealth = wealth * np.where(open_yet, np.minimum(most, boost(payoffs, most) * paid), 1.0)
        best = np.maximum(best, wealth)
    return best


def ever(found: dict[int, tuple[np.ndarray, np.ndarray]], bet: str, looks: tuple[int, ...]) -> float:
    """Return the share of streams whose wealth ever reaches 1 / alpha."""
    best = [largest_wealth(bet, *found[count], count, share) for count, share in first_shares(looks).items()]
    return float((np.max(best, axis=0) >= 1 / ALPHA).mean())


def uniformity(ranks: np.ndarray, totals: np.ndarray) -> dict[str, float]:
    """Return the chi-square p-value of the lattice, the lag-1 correlation, and the spread of false-alarm rates."""
    same = ranks[:, totals == totals[-1]]
    cells = np.histogram(same, bins=np.linspace(0.5, totals[-1] + 0.5, min(20, totals[-1]) + 1))[0]
    whole = np.histogram(np.arange(1, totals[-1] + 1), bins=np.linspace(0.5, totals[-1] + 0.5, len(cells) + 1))[0]
    scores = stats.norm.ppf((ranks - 0.5) / totals)
    products = scores[:, :-1] * scores[:, 1:]
    rates = (ranks / totals <= ALPHA).mean(axis=1)
    level = (np.floor(ALPHA * totals + 1e-9) / totals).mean()
    return {
        "streams": len(ranks),
        "chi-square p": float(stats.chisquare(cells, whole / whole.sum() * cells.sum()).pvalue),
        "lag-1 correlation": float(products.mean()),
        "in standard errors": float(products.mean() * np.sqrt(products.size)),
        "p <= .05": float(rates.mean()),
        "most in one stream": float(rates.max()),
        "spread / binomial": float(rates.std() / np.sqrt(level * (1 - level) / ranks.shape[1])),
    }


def tables(by_itself: int, names: list[str]) -> str:
    """Return both tables."""
    found = {name: run(CASES[name], by_itself) for name in names}
    rows = {name: uniformity(*one[1]) for name, one in found.items()}
    heads = list(next(iter(rows.values())))
    lines = [f"| {BATCHES} null batches | {' | '.join(heads)} |", "| --- " * (len(heads) + 1) + "|"]
    lines += [f"| {name} | {' | '.join(f'{value:.4g}' for value in one.values())} |" for name, one in rows.items()]
    ways = [(bet, looks) for bet in BETS for looks in ((1,), LOOKS)]
    lines += ["", f"| ever a false alarm | limit | {' | '.join(f'{bet}, looks {list(looks)}' for bet, looks in ways)} |"]
    lines += ["| --- " * (len(ways) + 2) + "|"]
    for name, one in found.items():
        if not CASES[name].fixed:
            limit = ALPHA + 3 * np.sqrt(ALPHA * (1 - ALPHA) / len(one[1][0]))
            lines.append(f"| {name} | {limit:.4f} | {' | '.join(f'{ever(one, *way):.4f}' for way in ways)} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Simulate, and write the tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--itself", type=int, default=0, metavar="N", help="streams through the monitor itself")
    options = parser.parse_args()
    names = [name for name in CASES if not (options.itself and CASES[name].fixed)]
    text = tables(options.itself, names)
    (RESULTS / f"monitoring_streams{'_itself' * bool(options.itself)}.md").write_text(text)
    print(text)


if __name__ == "__main__":
    main()
