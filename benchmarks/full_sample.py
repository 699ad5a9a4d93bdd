"""The full-sample test: its cost beside MMDAgg's and its own with four classes, and what binned permutations cost in power."""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks.draws import decisions, draw_study, finish, markdown
from benchmarks.full_sample_study import CHOOSE
from benchmarks.power_panels import FOUR_CLASSES
from benchmarks.timing import best_times, report
from cpmmd import FullSampleTest, two_sample_test
from cpmmd.core.parallel import threads

BINNED = (
    "mixture .05 n=200",
    "higgs n=200",
    "correlation d=6 n=200",
    "kurtosis df=20 n=500",
    "four modes 0.7 n=500",
    "bumps d=2 a=0.7 n=500",
)
FIRST = 5000  # draws of their own: the number of bins is chosen on them and reported on none of them


def cost() -> None:
    """999 permutations, d = 28, one thread, same data."""
    rng = np.random.default_rng(0)
    with threads(1):
        for n, wanted in ((200, "<= 1"), (1000, "<= 0.5")):
            x, y = rng.normal(size=(n, 28)), rng.normal(size=(n, 28))
            methods = {"cp-full": "cp-full", "mmdagg": "mmdagg", "four classes": FOUR_CLASSES}
            times = best_times({k: lambda m=m, x=x, y=y: two_sample_test(x, y, method=m, rng=0) for k, m in methods.items()})
            report(f"cp-full, {n} v {n}", times["cp-full"], times["mmdagg"], "mmdagg", wanted)
            report(f"cp-full, {n} v {n}", times["cp-full"], times["four classes"], "what it was with four classes", "<= 1")


def bins(count: int) -> None:
    """Power with about 100, 200 and 400 bins, and with rows permuted one by one."""
    panels = {name: CHOOSE[name] for name in BINNED}
    methods = {
        "100 bins": FullSampleTest(bins=100),
        "200 bins": FullSampleTest(bins=200),
        "400 bins": FullSampleTest(bins=400),
        "rows": FullSampleTest(bins=10**9),
    }
    study = draw_study("full-sample bins", panels, methods, range(FIRST, FIRST + count))
    print(markdown(decisions(finish(study, "full_sample_bins.jsonl")), panels, methods))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=60)
    cost()
    bins(arguments.parse_args().repetitions)
