"""Power of the deep tests at shift 0.5 (the paper's deep table), for each initialisation."""

from __future__ import annotations

import argparse
from functools import partial

from benchmarks.draws import decisions, draw_study, finish, markdown
from cpmmd import ComplexityPenalized, Deep, Plain, Ratio, SplitTest
from experiments.panels import mean_shift

CELLS = [(2, 200), (20, 200), (50, 100), (100, 100), (20, 50)]
SHIFT = 0.5
CRITERIA = {"cp-deep": ComplexityPenalized, "liu": Ratio, "plain-deep": Plain}


def make(init: str, criterion: type, width: int = 200) -> SplitTest:
    """Return the paper's deep test with one initialisation and criterion."""
    return SplitTest(Deep(init=init, width=width), criterion())


def main() -> None:
    """Run (or continue) and print the table."""
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=50)
    arguments.add_argument("--inits", nargs="+", default=["torch", "kaiming"])
    chosen = arguments.parse_args()
    panels = {f"d={d} n={n}": partial(mean_shift, n=n, d=d, shift=SHIFT) for d, n in CELLS}
    methods = {f"{name} ({init})": make(init, criterion) for init in chosen.inits for name, criterion in CRITERIA.items()}
    study = draw_study("deep power", panels, methods, chosen.repetitions, {"n_permutations": 200})
    print(markdown(decisions(finish(study, "deep_power.jsonl")), panels, methods))


if __name__ == "__main__":
    main()
