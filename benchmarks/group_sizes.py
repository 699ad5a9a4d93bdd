"""Level and power where groups of the two samples differ in their numbers of rows: random effects, eight cells.

``python -m benchmarks.group_sizes level --method median`` appends to a file of ``results`` and goes on where it stopped;
``table`` writes ``results/group_sizes.md`` from what is there.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd

from benchmarks import RESULTS
from cpmmd import DriftMonitor, Study, two_sample_test

PERMUTATIONS = 99  # enough for a level of .05
COLUMNS = 3
SHIFT = 0.5
BATCHES = 6  # of a monitor's stream
# Name, groups and rows of a group in each sample (a range of rows where they differ), correlation within groups.
CELLS = (
    ("20 x 10 v 10 x 3", (20, 10, 10), (10, 3, 3), 0.1),
    ("20 x 10 v 10 x 3", (20, 10, 10), (10, 3, 3), 0.5),
    ("20 x 10 v 10 x 3", (20, 10, 10), (10, 3, 3), 0.9),
    ("24 x 20 v 6 x 1", (24, 20, 20), (6, 1, 1), 0.1),
    ("24 x 20 v 6 x 1", (24, 20, 20), (6, 1, 1), 0.5),
    ("6 x 20 v 24 x 1", (6, 20, 20), (24, 1, 1), 0.1),
    ("6 x 20 v 24 x 1", (6, 20, 20), (24, 1, 1), 0.9),
    ("20 x 5 to 15 v 12 x 2 to 8", (20, 5, 15), (12, 2, 8), 0.5),
)
Sample = tuple[np.ndarray, np.ndarray]


def sample(rng: np.random.Generator, shape: tuple[int, int, int], correlation: float, first: int, shift: float = 0.0) -> Sample:
    """Return rows of a sample of random effects, and the group of each."""
    groups, low, high = shape
    counts = rng.integers(low, high + 1, groups)
    effects = np.repeat(rng.normal(size=(groups, COLUMNS)), counts, axis=0)
    rows = np.sqrt(correlation) * effects + np.sqrt(1 - correlation) * rng.normal(size=effects.shape) + shift
    return rows, first + np.repeat(np.arange(groups), counts)


def shapes(cell: dict) -> tuple[tuple[int, int, int], tuple[int, int, int], float]:
    """Return the shapes of a cell's samples, or those of equal sizes with as many groups and about as many rows in all."""
    _, x, y, correlation = next(c for c in CELLS if (c[0], c[3]) == (cell["groups"], cell["correlation"]))
    if cell["sizes"] == "equal":
        size = round(sum(groups * (low + high) / 2 for groups, low, high in (x, y)) / (x[0] + y[0]))
        return (x[0], size, size), (y[0], size, size), correlation
    return x, y, correlation


def decide(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    """Return whether one test rejects."""
    shape_x, shape_y, correlation = shapes(cell)
    x, of_x = sample(data_rng, shape_x, correlation, 0)
    y, of_y = sample(data_rng, shape_y, correlation, shape_x[0], cell["shift"])
    method, _, way = cell["method"].partition(", ")
    if method == "monitor":
        return stream(x, of_x, shape_y, correlation, data_rng, test_rng)
    given = {"groups": (of_x, of_y), "n_permutations": PERMUTATIONS, "rng": test_rng}
    if way == "all rows":
        given["group_sizes"] = "keep"
    result = two_sample_test(x, y, method="median" if method == "columns" else method, **given)
    if method == "columns":
        return {"reject": int(min(column.pvalue for column in result.explain().columns) <= result.alpha)}
    return {"reject": int(result.reject)}


def stream(
    x: np.ndarray,
    of_x: np.ndarray,
    shape: tuple[int, int, int],
    correlation: float,
    data_rng: np.random.Generator,
    test_rng: np.random.Generator,
) -> dict[str, float]:
    """Return how often a monitor's p-values are at most .05, how often two in a row, and whether it raises an alarm."""
    monitor = DriftMonitor(
        method="median", n_permutations=PERMUTATIONS, rng=int(test_rng.integers(2**32)), groups="g", looks=(1,)
    )
    names = [f"c{j}" for j in range(COLUMNS)]
    monitor.fit(pd.DataFrame(x, columns=names).assign(g=of_x))
    pvalues = []
    for batch in range(BATCHES):
        rows, of = sample(data_rng, shape, correlation, 1000 * (batch + 1))
        pvalues.append(monitor.update(pd.DataFrame(rows, columns=names).assign(g=of)).pvalue)
    small = np.array(pvalues) <= 0.05
    both = small[1:] & small[:-1]
    return {"reject": float(small.mean()), "alarm": int(monitor.alarm_), "two in a row": float(both.mean())}


def study(what: str, method: str, repetitions: int) -> Study:
    """Return the study of one method."""
    sizes = ("as they are", "equal") if what == "power" else ("as they are",)
    shift = SHIFT if what == "power" else 0.0
    cells = [
        {"groups": name, "correlation": correlation, "method": method, "sizes": way, "shift": shift}
        for name, _, _, correlation in CELLS
        for way in sizes
    ]
    keys = ("groups", "correlation", "sizes", "shift")
    return Study(f"group sizes {what}", decide, cells, repetitions, data_keys=keys)


def file_of(what: str, method: str) -> str:
    """Return the name of a study's file."""
    return f"group_sizes_{what}_{method.replace(', ', '_').replace(' ', '_')}"


METHODS = (
    "median",
    "group-means",
    "columns",
    "cp-full",
    "mmdagg",
    "mmdfuse",
    "cp-polynomial",
    "monitor",
    "median, all rows",
    "cp-full, all rows",
)


def table() -> str:
    """Return what is there as two tables: a row a cell, a column a method with its repetitions."""
    lines = []
    for what, heading in (("level", "rejections where nothing differs"), ("power", f"shift {SHIFT}: as they are, equal")):
        files = {method: RESULTS / f"{file_of(what, method)}.csv" for method in METHODS}
        found = {method: pd.read_csv(path) for method, path in files.items() if path.exists()}
        if not found:
            continue
        columns = [f"{method} ({frame['repetitions'].min()})" for method, frame in found.items()]
        lines += ["", f"| {heading} | {' | '.join(columns)} |", "| --- " * (len(columns) + 1) + "|"]
        for name, _, _, correlation in CELLS:
            own = [frame[(frame["groups"] == name) & (frame["correlation"] == correlation)] for frame in found.values()]
            rates = [", ".join(f"{rate:.3f}".lstrip("0") for rate in frame["reject"]) for frame in own]
            lines.append(f"| {name}, {correlation:g} | {' | '.join(rates)} |")
    return "\n".join(lines[1:]) + "\n"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("what", choices=("level", "power", "table"))
    arguments.add_argument("--method", choices=METHODS, default="median")
    arguments.add_argument("--repetitions", type=int, default=2000)
    options = arguments.parse_args()
    if options.what != "table":
        path = RESULTS / file_of(options.what, options.method)
        found = study(options.what, options.method, options.repetitions).run(path.with_suffix(".jsonl"))
        path.with_suffix(".csv").write_text(found.to_csv())
    (RESULTS / "group_sizes.md").write_text(table())
    print(table())


if __name__ == "__main__":
    main()
