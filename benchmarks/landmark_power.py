"""Power of ``cp-full`` by the number of landmarks, same draws: what rows that are no landmarks cost.

All 1,000 rows of a pool as landmarks beside the usual 200; of a pool of 4,000, a thousand beside 200 (all take a minute and a
half a test). ``python -m benchmarks.landmark_power`` writes ``results/landmark_power.csv``; resumable.
"""

from __future__ import annotations

import csv

import numpy as np

from benchmarks import RESULTS
from benchmarks.draws import Generate, decisions, draw_study, finish
from cpmmd import FullSampleTest
from experiments.panels import correlation, four_modes, mean_shift, mixture

DRAWS = range(900, 1000)  # no other benchmark has these
SETTINGS = {"n_permutations": 199, "memory_limit": "4GB"}
PANELS: dict[int, dict[str, Generate]] = {
    1000: {
        "correlation d=6, rho=.27": lambda rng: correlation(rng, 500, 6, 0.27),
        "four modes .7": lambda rng: four_modes(rng, 500, 0.7),
        "mean shift d=10, .08": lambda rng: mean_shift(rng, 500, 10, 0.08),
    },
    4000: {
        "correlation d=6, rho=.12": lambda rng: correlation(rng, 2000, 6, 0.12),
        "mixture .012": lambda rng: mixture(rng, 2000, 0.012),
        "mean shift d=10, .04": lambda rng: mean_shift(rng, 2000, 10, 0.04),
    },
}
MANY = {1000: 1000, 4000: 1000}


def main() -> None:
    """Run (or continue), write the table."""
    with (RESULTS / "landmark_power.csv").open("w", newline="") as file:
        out = csv.writer(file)
        out.writerow(["rows in all", "panel", "power, 200 landmarks", "more landmarks", "power", "draws", "decided otherwise"])
        for rows, panels in PANELS.items():
            methods = {"usual": FullSampleTest(landmarks=200), "many": FullSampleTest(landmarks=MANY[rows])}
            study = draw_study(f"landmarks {rows}", panels, methods, DRAWS, SETTINGS)
            found = decisions(finish(study, f"landmark_power_{rows}.jsonl", jobs=1))
            for panel in panels:
                usual, many = (np.array(found[panel, name]) for name in methods)
                out.writerow(
                    [rows, panel, f"{usual.mean():.2f}", MANY[rows], f"{many.mean():.2f}", len(usual), int((usual != many).sum())]
                )


if __name__ == "__main__":
    main()
