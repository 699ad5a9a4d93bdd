"""Level and power where a category has many levels: rows moved to new levels, beside a chi-square test.

``python -m benchmarks.categories METHOD [--shares 0] [--repetitions 2000]`` goes on where it stopped.
"""

from __future__ import annotations

import argparse

import numpy as np
import pandas as pd
from scipy.stats import chi2_contingency

from benchmarks import RESULTS
from cpmmd import Study, two_sample_test

LEVELS, SHARES = (10, 60, 500, 5000), (0.0, 0.01, 0.05, 0.1, 0.2)
ROWS, NEW = 400, 20
PERMUTATIONS = 99


def samples(levels: int, share: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return two samples of one category, a share of the second moved to new levels."""
    x, y = (np.array([f"p{i}" for i in rng.integers(0, levels, ROWS)], dtype=object) for _ in range(2))
    moved = rng.random(ROWS) < share
    y[moved] = [f"new{i}" for i in rng.integers(0, NEW, int(moved.sum()))]
    return x, y


def task(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    x, y = samples(cell["levels"], cell["share"], data_rng)
    if cell["method"] == "chi-square":
        _, codes = np.unique(np.concatenate([x, y]).astype(str), return_inverse=True)
        counts = np.array([np.bincount(part, minlength=codes.max() + 1) for part in (codes[:ROWS], codes[ROWS:])])
        return {"reject": int(chi2_contingency(counts).pvalue <= 0.05)}
    frames = (pd.DataFrame({"code": values}) for values in (x, y))
    return {"reject": int(two_sample_test(*frames, method=cell["method"], n_permutations=PERMUTATIONS, rng=test_rng).reject)}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("method")
    parser.add_argument("--shares", type=float, nargs="+", default=list(SHARES[1:]))
    parser.add_argument("--repetitions", type=int, default=100)
    options = parser.parse_args()
    cells = [{"levels": count, "share": share, "method": options.method} for count in LEVELS for share in options.shares]
    what = "power" if any(options.shares) else "level"
    study = Study(f"categories {what}", task, cells, options.repetitions, data_keys=("levels", "share"))
    table = study.run(RESULTS / f"categories_{what}_{options.method}.jsonl", n_jobs=1)
    (RESULTS / f"categories_{what}_{options.method}.csv").write_text(table.to_csv())
    print(table.to_markdown())


if __name__ == "__main__":
    main()
