"""Power of ``cp-full`` by the number of landmarks, same draws: what rows that are no landmarks cost.

All 1,000 rows of a pool as landmarks beside the usual 200; of a pool of 4,000 a thousand, and all of them by another way to the
same statistic (:mod:`benchmarks.all_rows`); of one of 16,000, 512 beside the usual 252 (chosen on draws 800 to 809 of four such
panels).
``python -m benchmarks.landmark_power [DRAWS]`` writes ``results/landmark_power.csv``; resumable.
"""

from __future__ import annotations

import csv
import sys

import numpy as np

from benchmarks import RESULTS
from benchmarks.all_rows import AllRows
from benchmarks.draws import Generate, decisions, draw_study, finish
from cpmmd import FullSampleTest
from cpmmd.engines.landmarks import landmark_count
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
    16000: {
        "correlation d=6, rho=.05": lambda rng: correlation(rng, 8000, 6, 0.05),
        "mixture .005": lambda rng: mixture(rng, 8000, 0.005),
        "mean shift d=10, .02": lambda rng: mean_shift(rng, 8000, 10, 0.02),
    },
}
# Beside the usual: the journal's name of the method, the landmarks it has, the test.
MORE = {
    1000: {"many": (1000, FullSampleTest(landmarks=1000))},
    4000: {"many": (1000, FullSampleTest(landmarks=1000)), "all rows": (4000, AllRows())},
    16000: {"many": (512, FullSampleTest(landmarks=512))},
}


def main() -> None:
    """Run (or continue), write the table."""
    draws = range(DRAWS.start, DRAWS.start + int(sys.argv[1])) if len(sys.argv) > 1 else DRAWS
    lines = [["rows in all", "panel", "usual landmarks", "power", "more landmarks", "their power", "draws", "decided otherwise"]]
    for rows, panels in PANELS.items():
        methods = {"usual": FullSampleTest(), **{name: test for name, (_, test) in MORE[rows].items()}}
        study = draw_study(f"landmarks {rows}", panels, methods, draws, SETTINGS)
        found = decisions(finish(study, f"landmark_power_{rows}.jsonl", jobs=1))
        for panel in panels:
            usual = np.array(found[panel, "usual"])
            for name, (count, _) in MORE[rows].items():
                many = np.array(found[panel, name])
                powers = landmark_count(rows), f"{usual.mean():.2f}", count, f"{many.mean():.2f}"
                lines.append([rows, panel, *powers, len(usual), int((usual != many).sum())])
    with (RESULTS / "landmark_power.csv").open("w", newline="") as file:
        csv.writer(file).writerows(lines)


if __name__ == "__main__":
    main()
