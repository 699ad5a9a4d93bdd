"""Power against time from 1,000 to 64,000 rows: ours, MMDAgg, MMD-FUSE, the median test, goodpoints' CTT and ACTT, hyppo's MMD.

Same data, one thread, level .05, 199 relabelings for all but the aggregated ones (their own numbers) and hyppo (its default at
these sizes, a chi-square approximation). Methods that hold whole matrices stop at 4,000 rows, and the slowest have fewer draws.
Resumable; ``python -m benchmarks.frontier`` writes ``results/frontier.md`` and ``frontier.png``. goodpoints and hyppo are not
among our requirements: install them beside, and their lines appear.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import time
from collections import defaultdict
from collections.abc import Callable
from contextlib import redirect_stdout
from typing import Any

import numpy as np
from scipy.spatial.distance import pdist

from benchmarks import RESULTS
from cpmmd import Study, StudyTable, two_sample_test
from experiments.panels import correlation, mean_shift

ALPHA, PERMUTATIONS = 0.05, 199
SIZES = (1_000, 4_000, 16_000, 64_000)
DENSE_UP_TO = 4_000
PANELS: dict[str, Callable[[np.random.Generator, int], tuple[np.ndarray, np.ndarray]]] = {
    "correlation d=6, rho=.15": lambda rng, n: correlation(rng, n, 6, 0.15),
    "mean shift d=10, .03": lambda rng, n: mean_shift(rng, n, 10, 0.03),
}


def median_of(x: np.ndarray, y: np.ndarray, rng: np.random.Generator) -> float:
    """The median distance of some rows."""
    pool = np.vstack([x, y])
    return float(np.median(pdist(pool[rng.permutation(len(pool))[:500]])))


def compress(x: np.ndarray, y: np.ndarray, seed: int) -> float:
    """Compress Then Test with a Gaussian at the median distance: 1 where it rejects (it reports no p-value of its own)."""
    from goodpoints.ctt import ctt

    width = median_of(x, y, np.random.default_rng(seed))
    found = ctt(x, y, g=4, B=PERMUTATIONS, lam=np.sqrt(2) * width, null_seed=seed, statistic_seed=seed, alpha=ALPHA)
    return float(found.rejects)


def aggregated_compress(x: np.ndarray, y: np.ndarray, seed: int) -> float:
    """Aggregated Compress Then Test over five bandwidths around the median distance."""
    from goodpoints.ctt import actt

    width = median_of(x, y, np.random.default_rng(seed))
    widths = np.sqrt(2) * width * 2.0 ** np.arange(-2, 3)
    options = {"B": 299, "B_2": 200, "B_3": 20, "weights": np.full(5, 0.2), "null_seed": seed, "statistic_seed": seed}
    with redirect_stdout(io.StringIO()):  # it prints every bisection
        return float(actt(x, y, g=4, lam=widths, **options).rejects)


def hyppo_mmd(x: np.ndarray, y: np.ndarray, seed: int) -> float:  # noqa: ARG001
    """Return the decision of hyppo's MMD, called as it is by default."""
    from hyppo.ksample import MMD

    return float(MMD().test(x, y).pvalue <= ALPHA)


def ours(method: str) -> Callable[[np.ndarray, np.ndarray, int], float]:
    """One of this library's methods."""
    options = {} if method in ("mmdagg", "mmdfuse") else {"n_permutations": PERMUTATIONS}
    return lambda x, y, seed: float(two_sample_test(x, y, method=method, rng=seed, n_jobs=1, **options).reject)


METHODS: dict[str, Callable[[np.ndarray, np.ndarray, int], float]] = {
    **{name: ours(name) for name in ("cp-full", "median", "mmdagg", "mmdfuse")},
    **({"CTT": compress, "ACTT": aggregated_compress} if importlib.util.find_spec("goodpoints") else {}),
    **({"hyppo": hyppo_mmd} if importlib.util.find_spec("hyppo") else {}),
}
WHOLE_MATRICES = ("mmdagg", "mmdfuse", "hyppo")
FEW_DRAWS = 5  # of what takes up to ten seconds: whole matrices of 4,000 rows


def task(cell: dict[str, Any], data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:  # noqa: ARG001
    """One test of one draw, and its time."""
    x, y = PANELS[cell["panel"]](np.random.default_rng([31, cell["draw"]]), cell["rows"] // 2)
    start = time.process_time()
    rejected = METHODS[cell["method"]](x, y, cell["draw"])
    return {"reject": rejected, "seconds": time.process_time() - start}


def cells(draws: int) -> list[dict[str, Any]]:
    return [
        {"panel": panel, "rows": rows, "method": method, "draw": draw}
        for draw in range(draws)
        for panel in PANELS
        for rows in SIZES
        for method in METHODS
        if method not in WHOLE_MATRICES or rows < DENSE_UP_TO or (rows == DENSE_UP_TO and draw < FEW_DRAWS)
    ]


def summary(table: StudyTable) -> dict[tuple[str, str, int], tuple[float, float, int]]:
    """Power, median processor time and number of draws, by panel, method and rows."""
    found: dict[tuple[str, str, int], list[tuple[float, float]]] = defaultdict(list)
    for one in table.repetitions:
        key = one.cell["panel"], one.cell["method"], one.cell["rows"]
        found[key].append((one.values["reject"], one.values["seconds"]))
    return {
        key: (float(np.mean([r for r, _ in pairs])), float(np.median([s for _, s in pairs])), len(pairs))
        for key, pairs in found.items()
    }


def write(table: StudyTable) -> None:
    """Write the table and the picture."""
    import matplotlib

    matplotlib.use("Agg")
    import matplotlib.pyplot as plt

    found = summary(table)
    names = list(dict.fromkeys(method for _, method, _ in found))
    lines = ["| panel | method | " + " | ".join(f"{n:,} rows" for n in SIZES) + " |", "|" + " --- |" * (len(SIZES) + 2)]
    figure, axes = plt.subplots(1, len(PANELS), figsize=(10, 4), sharey=True, layout="constrained")
    for panel, ax in zip(PANELS, axes, strict=True):
        for method, marker in zip(names, "o^sDvPX", strict=False):
            here = [(found[panel, method, n], n) for n in SIZES if (panel, method, n) in found]
            shown = {n: f"{power:.2f} ({seconds:.2g} s, {count})" for (power, seconds, count), n in here}
            lines.append(f"| {panel} | {method} | " + " | ".join(shown.get(n, "") for n in SIZES) + " |")
            ax.semilogx([s for (_, s, _), _ in here], [p for (p, _, _), _ in here], f"{marker}-", label=method)
        ax.set(title=panel, xlabel="processor time, s", ylim=(-0.02, 1.02))
        ax.grid(alpha=0.3)
    axes[0].set_ylabel("power at level .05; each line from 1,000 rows on")
    axes[0].legend(fontsize=8)
    figure.savefig(RESULTS / "frontier.png", dpi=110)
    (RESULTS / "frontier.md").write_text("\n".join(lines) + "\n")
    print("\n".join(lines))


if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=40)
    study = Study("frontier", task, cells(arguments.parse_args().repetitions), repetitions=1)
    write(study.run(RESULTS / "frontier.jsonl"))
