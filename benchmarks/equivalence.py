"""How often ``equivalence_test`` calls samples equivalent that are exactly the margin apart (level), and equal ones (power).

    python -m benchmarks.equivalence --repetitions 1000

Differences at the margin: of one mean (normal or exponential columns), of all scales (so that the MMD to the test's kernel is
that of the margin), of one share (a boolean column that is seldom true). ``joint`` is the kernel's part alone.

``--alternatives`` measures other ways to judge the same statistic: a normal law of its first-order variance, or of its whole
variance, and the triangle inequality with the 95% quantile of the noise.
"""

from __future__ import annotations

import argparse
import math

import numpy as np
from scipy.optimize import brentq

from benchmarks import RESULTS
from cpmmd import Study, equivalence_test
from cpmmd.data.pool import read_pool
from cpmmd.kernels.families import Bandwidth
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.statistics.equivalence import Coordinates, Noise, Yardstick, noise_spectrum
from cpmmd.statistics.mmd import unbiased_mmd2

SELDOM = 0.05


def scale_at(margin: float, d: int) -> float:
    """Return the ratio of standard deviations at which normal samples are the margin apart to the kernel."""

    def mmd2(ratio: float) -> float:
        unit = (1 + ratio**2) / 2  # variance within the samples, as the test standardises them
        own, other, both = 2 / unit, 2 * ratio**2 / unit, (1 + ratio**2) / unit
        return sum(sign * (d / (d + v)) ** (d / 2) for sign, v in ((1, own), (1, other), (-2, both)))

    return float(brentq(lambda ratio: mmd2(ratio) - Yardstick(d).mmd(margin) ** 2, 1 + 1e-6, 50))


def share_at(margin: float) -> float:
    """Return the share that is the margin above the seldom one."""

    def apart(share: float) -> float:
        within = (SELDOM * (1 - SELDOM) + share * (1 - share)) / 2
        return (share - SELDOM) / math.sqrt(within)

    return float(brentq(lambda share: apart(share) - margin, SELDOM, 0.9))


def samples(kind: str, d: int, n: int, margin: float, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Return two samples of one kind."""
    draw = rng.standard_exponential if kind == "skewed mean" else rng.standard_normal
    x, y = draw(size=(n, d)), draw(size=(n, d))
    if kind in ("mean", "skewed mean"):
        y[:, 0] += margin
    elif kind == "scale":
        y *= scale_at(margin, d)
    elif kind == "share":
        x[:, 0], y[:, 0] = rng.random(n) < SELDOM, rng.random(n) < share_at(margin)
    return x, y


def task(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    x, y = samples(cell["kind"], cell["columns"], cell["rows"], cell["margin"], data_rng)
    result = equivalence_test(x, y, margin=cell["margin"], rng=test_rng)
    return {"equivalent": int(result.reject), "joint": int(result.joint.pvalue <= result.alpha), "largest": result.largest}


def alternatives(cell: dict, data_rng: np.random.Generator, test_rng: np.random.Generator) -> dict[str, float]:
    x, y = samples(cell["kind"], cell["columns"], cell["rows"], cell["margin"], data_rng)
    matrix, d = Coordinates.of(read_pool(x, y)).standardised()
    kernel, m, mmd = ScaledKernel(Bandwidth(), math.sqrt(d)), len(x), Yardstick(d).mmd(cell["margin"])
    K, sides = kernel.gram(matrix), [matrix[: len(x)], matrix[len(x) :]]
    witness = K[:, :m].mean(axis=1) - K[:, m:].mean(axis=1)
    first_order = sum(4 * part.var() / len(part) for part in (witness[:m], witness[m:]))
    spectrum = noise_spectrum(kernel, sides, test_rng)
    noise = math.sqrt(np.quantile(Noise.draw(spectrum, test_rng).squared, 0.95))
    unbiased, biased = unbiased_mmd2(K[:m, :m], K[m:, m:], K[:m, m:]), max(witness[:m].mean() - witness[m:].mean(), 0.0)
    bound = unbiased - mmd**2
    return {
        "first-order normal": int(bound <= -1.645 * math.sqrt(first_order)),
        "whole-variance normal": int(bound <= -1.645 * math.sqrt(first_order + 2 * np.square(spectrum).sum())),
        "triangle": int(math.sqrt(biased) + noise <= mmd),
    }


def cells() -> list[dict]:
    """Return what is measured; at 1000 rows the wide margin is left out, where nothing is open."""
    kinds = ("mean", "scale", "equal")
    sizes = [(50, 0.5), (200, 0.2), (200, 0.5), (1000, 0.2)]
    plain = [{"kind": k, "columns": d, "rows": n, "margin": g} for n, g in sizes for k in kinds for d in (1, 5)]
    odd = [{"kind": k, "columns": 1, "rows": n, "margin": 0.5} for n in (50, 200) for k in ("skewed mean", "share")]
    return [*plain[:18], *odd, *plain[18:]]


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("--repetitions", type=int, default=1000)
    arguments.add_argument("--jobs", type=int, default=1)
    arguments.add_argument("--alternatives", action="store_true")
    options = arguments.parse_args()
    name, measured, some = ("equivalence", task, cells())
    if options.alternatives:
        name, measured, some = "equivalence_alternatives", alternatives, [c for c in cells() if c["rows"] < 1000]
    table = Study(name, measured, some, options.repetitions).run(RESULTS / f"{name}.jsonl", n_jobs=options.jobs)
    (RESULTS / f"{name}.csv").write_text(table.to_csv())
    print(table.to_markdown())


if __name__ == "__main__":
    main()
