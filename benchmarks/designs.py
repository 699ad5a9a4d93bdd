"""What designs are worth: level on data that are not exchangeable row by row, today's test beside it, power, and cost."""

from __future__ import annotations

import argparse
import time
from functools import partial

import numpy as np

from benchmarks import RESULTS
from benchmarks.timing import best_times
from cpmmd import Study, two_sample_test
from experiments.data import load

PERMUTATIONS = {"median": 199, "cp-full": 99}


def groups(rng: np.random.Generator, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray, dict]:
    """Random effects, intraclass correlation .5: 10 v 10 groups of 20 rows, three columns."""

    def sample() -> np.ndarray:
        return np.sqrt(0.5) * (np.repeat(rng.normal(size=(10, 3)), 20, axis=0) + rng.normal(size=(200, 3)))

    return sample(), sample() + shift, {"groups": (np.repeat(np.arange(10), 20), np.repeat(np.arange(10, 20), 20))}


def strata(rng: np.random.Generator, shift: float = 0.0, even: bool = False) -> tuple[np.ndarray, np.ndarray, dict]:
    """Four strata three standard deviations apart, in opposite mixes: 100 v 100 rows, two columns."""

    def sample(mix: tuple[float, ...]) -> tuple[np.ndarray, np.ndarray]:
        of = rng.choice(4, 100, p=mix)
        return 3.0 * of[:, None] + rng.normal(size=(100, 2)), of

    (x, of_x), (y, of_y) = (
        sample((0.25,) * 4 if even else (0.4, 0.3, 0.2, 0.1)),
        sample((0.25,) * 4 if even else (0.1, 0.2, 0.3, 0.4)),
    )
    return x, y + shift, {"strata": (of_x, of_y)}


def blocks(rng: np.random.Generator, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray, dict]:
    """AR(1) rows of coefficient .8, 600 v 600, two columns, in blocks of 50."""

    def sample() -> np.ndarray:
        rows, noise = np.empty((600, 2)), rng.normal(size=(600, 2))
        rows[0] = noise[0]
        for t in range(1, 600):
            rows[t] = 0.8 * rows[t - 1] + 0.6 * noise[t]
        return rows

    return sample(), sample() + shift, {"blocks": 50}


def pairs(rng: np.random.Generator, shift: float = 0.0) -> tuple[np.ndarray, np.ndarray, dict]:
    """80 pairs, correlation .8 between before and after, two columns."""
    common = np.sqrt(0.8) * rng.normal(size=(80, 2))
    x, y = (common + np.sqrt(0.2) * rng.normal(size=(80, 2)) for _ in range(2))
    return x, y + shift, {"pairs": (np.arange(80), np.arange(80))}


PANELS = {"groups": groups, "strata": strata, "blocks": blocks, "pairs": pairs}
SHIFTS = {"groups": 0.6, "strata": 0.4, "blocks": 0.6, "pairs": 0.2}


def level_task(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    x, y, design = PANELS[cell["panel"]](data_rng)
    given = design if cell["rows are"] == "as designed" else {}
    count = PERMUTATIONS[cell["method"]]
    result = two_sample_test(x, y, method=cell["method"], n_permutations=count, rng=test_rng, **given)
    return {"reject": int(result.reject)}


def power_task(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    panel = cell["panel"]
    more = {"even": True} if panel == "strata" else {}
    x, y, design = PANELS[panel](data_rng, SHIFTS[panel], **more)
    given = design if cell["rows are"] == "as designed" else {}
    if cell["rows are"] == "group means":
        x, y = (
            np.array([rows[of == g].mean(axis=0) for g in np.unique(of)])
            for rows, of in zip((x, y), design["groups"], strict=True)
        )
    count = PERMUTATIONS[cell["method"]]
    return {"reject": int(two_sample_test(x, y, method=cell["method"], n_permutations=count, rng=test_rng, **given).reject)}


def cost() -> None:
    """Print the time of a designed test over that of the plain one of the same size."""
    rng = np.random.default_rng(0)
    for n, method in ((500, "cp-full"), (1000, "median"), (5000, "cp-full"), (500, "mmdfuse")):
        x, y = rng.normal(size=(n, 5)), rng.normal(size=(n, 5))
        of = rng.integers(0, 5, n), rng.integers(0, 5, n)
        sizes = np.sort(rng.integers(0, n // 10, n))
        designs = {
            "plain": {},
            "groups": {"groups": (sizes, n + sizes)},
            "strata": {"strata": of},
            "pairs": {"pairs": (np.arange(n), np.arange(n))},
            "blocks": {"blocks": 10},
        }
        runs = {k: partial(two_sample_test, x, y, method=method, rng=0, n_jobs=1, **given) for k, given in designs.items()}
        times = best_times(
            runs, rounds=3 if n < 5000 else 2, clock=time.process_time
        )  # one thread: what others take is not counted
        ratios = ", ".join(f"{name} {times[name] / times['plain']:.2f}" for name in designs if name != "plain")
        print(f"{method}, {n} v {n} rows: plain {times['plain']:.2f} s; ratios: {ratios} (wanted at most 1.3)", flush=True)


FAULTS = (4, 5, 7, 11, 14)
BLOCK_ROWS = 40


def tep(pairs_of_runs: int = 40) -> None:
    """Print how often runs of the Tennessee Eastman process are told apart: normal ones from each other, faults from normal."""
    arrays = load("tep")
    before = {f: arrays[f"fault{f:02d}_test"][:160].astype(np.float64) for f in range(1, 22)}  # the fault begins at row 160
    runs = [rows for f, rows in before.items() if not any(np.array_equal(rows, before[g]) for g in range(1, f))]
    every = [(i, j) for i in range(len(runs)) for j in range(i)]
    chosen = np.random.default_rng(0).permutation(len(every))[:pairs_of_runs]
    normal = [(runs[i], runs[j]) for i, j in (every[k] for k in chosen)]
    steady = arrays["normal_test"].astype(np.float64)
    normal += [(steady[:480], steady[480:]), (arrays["normal_train"].astype(np.float64), steady[:480])]
    print(f"{len(runs)} different normal runs of 160 rows, {len(normal)} pairs", flush=True)
    for method in ("median", "cp-full"):
        given = {"method": method, "rng": 0, "n_permutations": 199, **({"scale": "standard"} if method == "median" else {})}
        for name, design in (
            ("rows one by one", {}),
            (f"blocks of {BLOCK_ROWS}", {"blocks": BLOCK_ROWS}),
            ("auto", {"blocks": "auto"}),
        ):
            rate = np.mean([two_sample_test(x, y, **given, **design).reject for x, y in normal])
            print(f"{method}, normal v normal, {name}: {rate:.3f}", flush=True)
        for fault in FAULTS:
            rows = arrays[f"fault{fault:02d}_test"][160:].astype(np.float64)
            p = two_sample_test(steady, rows, blocks=BLOCK_ROWS, **given).pvalue
            print(f"{method}, normal v fault {fault}, blocks of {BLOCK_ROWS}: p = {p:.3f}", flush=True)


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("what", choices=("level", "power", "cost", "tep"))
    arguments.add_argument("--method", choices=tuple(PERMUTATIONS), default="median")
    arguments.add_argument("--repetitions", type=int, default=2000)
    arguments.add_argument("--jobs", type=int, default=1)
    options = arguments.parse_args()
    if options.what in ("cost", "tep"):
        {"cost": cost, "tep": tep}[options.what]()
        return
    ways = {panel: ["as designed", "exchangeable"] for panel in PANELS}
    if options.what == "power":
        ways["groups"].append("group means")
    cells = [{"panel": p, "rows are": way, "method": options.method} for p, some in ways.items() for way in some]
    task = level_task if options.what == "level" else power_task
    study = Study(f"designs {options.what}", task, cells, options.repetitions, data_keys=("panel",))
    name = f"designs_{options.what}_{options.method}"
    table = study.run(RESULTS / f"{name}.jsonl", n_jobs=options.jobs)
    (RESULTS / f"{name}.csv").write_text(table.to_csv())
    print(table.to_markdown())


if __name__ == "__main__":
    main()
