"""Power of the deep tests at shift 0.5 (the paper's deep table), for each initialisation."""

from __future__ import annotations

import argparse
from functools import partial

import numpy as np

from benchmarks import repetitions
from cpmmd import ComplexityPenalized, Deep, Plain, Ratio, SplitTest

CELLS = [(2, 200), (20, 200), (50, 100), (100, 100), (20, 50)]
CRITERIA = {"cp-deep": ComplexityPenalized, "liu": Ratio, "plain-deep": Plain}


def mean_shift(rng: np.random.Generator, d: int, n: int, shift: float = 0.5) -> tuple[np.ndarray, np.ndarray]:
    """N(0, I) against N(shift 1, I)."""
    return rng.normal(size=(n, d)), rng.normal(shift, 1, size=(n, d))


def make(init: str, criterion: type, width: int = 200) -> SplitTest:
    """Return the paper's deep test with one initialisation and criterion."""
    return SplitTest(Deep(init=init, width=width), criterion())


def main() -> None:
    """Run (or continue) and print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=50)
    arguments.add_argument("--inits", nargs="+", default=["torch", "kaiming"])
    chosen = arguments.parse_args()
    panels = {f"d={d} n={n}": partial(mean_shift, d=d, n=n) for d, n in CELLS}
    methods = {
        f"{name} ({init})": partial(make, init, criterion) for init in chosen.inits for name, criterion in CRITERIA.items()
    }
    done = repetitions.run("deep_power.jsonl", panels, methods, chosen.repetitions, n_permutations=200)
    print(repetitions.table(done, panels, methods))


if __name__ == "__main__":
    main()
