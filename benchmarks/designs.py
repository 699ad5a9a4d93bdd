"""What designs are worth: level on data that are not exchangeable row by row, today's test beside it, power, and cost."""

from __future__ import annotations

import argparse
import contextlib
import time
from functools import partial

import numpy as np

from benchmarks import RESULTS
from benchmarks.timing import best_times
from cpmmd import MedianTest, Study, TestResult, two_sample_test
from cpmmd.errors import InputError
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


def autoregressive(rng: np.random.Generator, rows: int, coefficients: np.ndarray) -> np.ndarray:
    """Stationary AR(1) columns of unit variance."""
    values, noise = np.empty((rows, len(coefficients))), rng.normal(size=(rows, len(coefficients)))
    values[0] = noise[0]
    for t in range(1, rows):
        values[t] = coefficients * values[t - 1] + np.sqrt(1 - coefficients**2) * noise[t]
    return values


def moving_average(rng: np.random.Generator, rows: int, window: int) -> np.ndarray:
    """Three columns of moving averages."""
    noise = np.cumsum(rng.normal(size=(rows + window, 3)), axis=0)
    return np.asarray((noise[window:] - noise[:-window]) / np.sqrt(window))


PROCESSES = {
    "independent, 10 columns": lambda rng, n: rng.normal(size=(n, 10)),
    "AR(1) .5, 10 columns": lambda rng, n: autoregressive(rng, n, np.full(10, 0.5)),
    "AR(1) .8, 2 columns": lambda rng, n: autoregressive(rng, n, np.full(2, 0.8)),
    "AR(1) .9, 10 columns": lambda rng, n: autoregressive(rng, n, np.full(10, 0.9)),
    "AR(1) .95, 10 columns": lambda rng, n: autoregressive(rng, n, np.full(10, 0.95)),
    "3 columns of AR(1) .97, 20 independent": lambda rng, n: autoregressive(rng, n, np.r_[np.full(3, 0.97), np.zeros(20)]),
    "moving averages over 20 rows": lambda rng, n: moving_average(rng, n, 20),
}


def auto_task(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    x, y = (PROCESSES[cell["process"]](data_rng, cell["rows"]) for _ in range(2))
    count = PERMUTATIONS[cell["method"]]
    try:
        result = two_sample_test(x, y, method=cell["method"], n_permutations=count, rng=test_rng, blocks="auto")
    except InputError:  # too short for the dependence that is seen
        return {"answered": 0, "reject": 0, "block rows": 0}
    return {"answered": 1, "reject": int(result.reject), "block rows": result.design.block_rows}


def auto(method: str, repetitions: int, jobs: int) -> None:
    """Write how often ``blocks="auto"`` answers where nothing differs, and how often it then rejects."""
    cells = [{"process": p, "rows": n, "method": method} for n in (160, 500, 1500) for p in PROCESSES]
    study = Study("designs auto", auto_task, cells, repetitions)
    table = study.run(RESULTS / f"designs_auto_{method}.jsonl", n_jobs=jobs)
    lines = ["| process | rows of each | answered | rejected of these | median block |", "| --- | --- | --- | --- | --- |"]
    for cell in cells:
        found = [one.values for one in table.repetitions if one.cell == cell]
        answered = [one for one in found if one["answered"]]
        rate = f"{np.mean([one['reject'] for one in answered]):.3f}" if len(answered) >= FEWEST_ANSWERS else "-"
        length = f"{np.median([one['block rows'] for one in answered]):.0f}" if answered else "-"
        lines.append(f"| {cell['process']} | {cell['rows']} | {len(answered)} of {len(found)} | {rate} | {length} |")
    (RESULTS / f"designs_auto_{method}.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


FEWEST_ANSWERS = 40  # for a rate
FAULTS = (4, 5, 7, 11, 14)
HIDDEN = (3, 9, 15)  # known not to show
RUN_ROWS = 160  # of the runs in which a fault begins at row 160
LENGTHS = (5, 8, 10, 16, 20, 32, 40)  # of blocks of such a run: four blocks at least


def normal_runs(arrays: dict[str, np.ndarray]) -> list[np.ndarray]:
    """Return the different runs of normal operation before a fault."""
    before = {f: arrays[f"fault{f:02d}_test"][:RUN_ROWS].astype(np.float64) for f in range(1, 22)}
    return [rows for f, rows in before.items() if not any(np.array_equal(rows, before[g]) for g in range(1, f))]


def rate_of(pairs: list[tuple], **given: object) -> tuple[str, float]:
    """Return how many pairs were answered, and the share of them that was rejected."""
    found = []
    for x, y in pairs:
        with contextlib.suppress(InputError):
            found.append(two_sample_test(x, y, rng=0, n_permutations=199, **given).reject)
    share = float(np.mean(found)) if found else np.nan
    return f"{len(found)} of {len(pairs)} answered" + (f", rejected {share:.3f}" if found else ""), share


def chosen_length(long_runs: list[np.ndarray], method: object) -> int:
    """Return the shortest blocks that tell at most one in twenty pairs of stretches of the long normal runs apart."""
    stretches = [run[k : k + RUN_ROWS] for run in long_runs for k in range(0, len(run) - RUN_ROWS + 1, RUN_ROWS)]
    pairs = [(stretches[i], stretches[j]) for i in range(len(stretches)) for j in range(i)]
    rates = {k: rate_of(pairs, method=method, blocks=k)[1] for k in LENGTHS}
    print(f"{len(pairs)} pairs of stretches of the long runs: {', '.join(f'{k} {r:.3f}' for k, r in rates.items())}", flush=True)
    return min((k for k in LENGTHS if rates[k] <= 0.05), default=LENGTHS[-1])


def run_groups(x: list[np.ndarray], y: list[np.ndarray], **given: object) -> TestResult:
    """Test runs against runs, each a group."""
    of = np.repeat(np.arange(len(x)), [len(r) for r in x]), len(x) + np.repeat(np.arange(len(y)), [len(r) for r in y])
    return two_sample_test(np.vstack(x), np.vstack(y), groups=of, rng=0, **given)


def tep(count: int = 40) -> None:
    """Print how often runs of the Tennessee Eastman process are told apart: normal ones from each other, faults from normal."""
    arrays = load("tep")
    runs, rng = normal_runs(arrays), np.random.default_rng(0)
    every = [(i, j) for i in range(len(runs)) for j in range(i)]
    pairs = [(runs[i], runs[j]) for i, j in (every[k] for k in rng.permutation(len(every))[:count])]
    train, has_equal_counts = (arrays[name].astype(np.float64) for name in ("normal_train", "normal_test"))
    drawn = [[runs[i] for i in np.random.default_rng(100 + k).permutation(len(runs))[:10]] for k in range(count)]
    print(f"{len(runs)} different normal runs of {RUN_ROWS} rows, {count} pairs", flush=True)
    methods = ("cp-full", MedianTest(scale="standard"))
    length = max(
        chosen_length([train, has_equal_counts], method) for method in methods
    )  # one for both: it is the rows that are dependent
    for method in methods:
        print(f"\n{method}", flush=True)
        for name, design in (("rows one by one", {}), *((f"blocks={k}", {"blocks": k}) for k in (20, length, "auto"))):
            print(f"run v run, {name}: {rate_of(pairs, method=method, **design)[0]}", flush=True)
        rejected = [run_groups(ten[:5], ten[5:], method=method).reject for ten in drawn]
        print(f"5 v 5 runs as groups, {count} draws: rejected {np.mean(rejected):.3f}", flush=True)
        whole = two_sample_test(train, has_equal_counts, method=method, blocks="auto", rng=0)
        print(f"the two long normal runs, {whole.design}: p = {whole.pvalue:.3f}", flush=True)
        for fault in (*FAULTS, *HIDDEN):
            after, faulty = arrays[f"fault{fault:02d}_test"][RUN_ROWS:], arrays[f"fault{fault:02d}_train"]
            blocks = two_sample_test(has_equal_counts, after.astype(np.float64), method=method, blocks="auto", rng=0)
            short = two_sample_test(has_equal_counts, after.astype(np.float64), method=method, blocks=length, rng=0)
            groups = run_groups(runs, [after[:RUN_ROWS].astype(np.float64), faulty[:RUN_ROWS].astype(np.float64)], method=method)
            print(
                f"normal v fault {fault}: {blocks.design}: p = {blocks.pvalue:.3f}; {short.design}: p = {short.pvalue:.3f}; "
                f"{groups.design}: p = {groups.pvalue:.3f}",
                flush=True,
            )


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("what", choices=("level", "power", "cost", "auto", "tep"))
    arguments.add_argument("--method", choices=tuple(PERMUTATIONS), default="median")
    arguments.add_argument("--repetitions", type=int, default=2000)
    arguments.add_argument("--jobs", type=int, default=1)
    options = arguments.parse_args()
    if options.what in ("cost", "tep"):
        {"cost": cost, "tep": tep}[options.what]()
        return
    if options.what == "auto":
        auto(options.method, options.repetitions, options.jobs)
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
