"""What binned permutations cost in power at N = 2000, and what a bounded training half changes in the choice of a bandwidth."""

from __future__ import annotations

import argparse

import numpy as np

from benchmarks import RESULTS
from cpmmd import Bandwidth, ComplexityPenalized, MedianTest, Plain, Polynomial, SplitTest, Study, two_sample_test

MATRIX = {"dense": None, "binned": "20MB"}  # a limit below the 32 MB of the matrix leaves the binned engine


def shift(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A small shift of all of ten coordinates."""
    return rng.normal(size=(1000, 10)), rng.normal(0.05, 1, size=(1000, 10))


def scale(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """A small change of scale, and unequal sizes."""
    return rng.normal(size=(800, 5)), rng.normal(0, 1.07, size=(1200, 5))


PANELS = {"shift": shift, "scale": scale}


def power_task(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    x, y = PANELS[cell["panel"]](data_rng)
    limit = MATRIX[cell["engine"]]
    result = two_sample_test(x, y, method=MedianTest(), n_permutations=299, rng=test_rng, memory_limit=limit)
    assert result.engine.name == cell["engine"]
    return {"reject": int(result.reject)}


def choice_task(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    """The bandwidth chosen on 2048 rows beside the one chosen on all 6000 of the training half."""
    family = {"linear": Bandwidth(), "polynomial": Polynomial(degree=2)}[cell["family"]]
    criterion = {"cp": ComplexityPenalized(), "plain": Plain()}[cell["criterion"]]
    x, y = data_rng.normal(size=(6000, 5)), data_rng.normal(0.1, 1.05, size=(6000, 5))
    seed = int(test_rng.integers(2**31))
    chosen, power = [], []
    for rows in (2048, 6000):
        test = SplitTest(family, criterion, max_train_rows=rows)
        result = two_sample_test(x, y, method=test, n_permutations=99, rng=seed)
        chosen.append(result.kernel.bandwidth)
        power.append(result.statistic)
    return {"ratio": chosen[0] / chosen[1], "statistic_ratio": power[0] / power[1]}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=400)
    arguments.add_argument("--choices", type=int, default=2)
    arguments.add_argument("--jobs", type=int, default=2)
    options = arguments.parse_args()
    cells = [{"panel": panel, "engine": engine} for panel in PANELS for engine in MATRIX]
    power = Study("binned power", power_task, cells, options.repetitions, data_keys=("panel",))
    table = power.run(RESULTS / "binned_power.jsonl", n_jobs=options.jobs)
    (RESULTS / "binned_power.csv").write_text(table.to_csv())
    print(table.to_markdown())
    cells = [{"family": f, "criterion": c} for f in ("linear", "polynomial") for c in ("cp", "plain")]
    choice = Study("selection size", choice_task, cells, options.choices)
    table = choice.run(RESULTS / "selection_size.jsonl", n_jobs=options.jobs)
    (RESULTS / "selection_size.csv").write_text(table.to_csv())
    print(table.to_markdown())


if __name__ == "__main__":
    main()
