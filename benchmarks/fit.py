"""Power and level of ``goodness_of_fit_test``, beside KSDAgg's stored powers and tests of multivariate normality.

    python -m benchmarks.fit gamma --repetitions 400
    python -m benchmarks.fit rbm --repetitions 200
    python -m benchmarks.fit normality --repetitions 300
    python -m benchmarks.fit level --repetitions 2000

Each part is resumable: a cell that stands in its file of results is not measured again. Data sets of one model are simulated once
for all repetitions of a cell (``SimulatedNull``), as the authors of KSDAgg do; ``level`` simulates anew in each repetition.
"""

from __future__ import annotations

import argparse
import csv
from collections.abc import Callable, Iterator
from math import sqrt

import numpy as np
from scipy import stats
from scipy.special import expit
from sklearn.mixture import GaussianMixture

from benchmarks import RESULTS
from cpmmd import Density, goodness_of_fit_test
from cpmmd.models.model import read_model
from cpmmd.procedures.goodness_of_fit import SimulatedNull
from cpmmd.statistics.moments import mardia, whiten

SEED = 2  # prototypes chose classes on others
FIELDS = ("part", "model", "data", "rows", "columns", "test", "rejected", "repetitions", "published")
DATA_SETS = 499
LEVEL = 0.05

# Gamma(5 + s, scale 5) against Gamma(5, scale 5), 500 rows.

KSDAGG_GAMMA = {0.0: None, 0.1: 0.175, 0.2: 0.495, 0.3: 0.82, 0.4: 0.945}


def gamma(repetitions: int, done: set[tuple[str, str]]) -> Iterator[dict[str, object]]:
    null = None
    for shift, published in KSDAGG_GAMMA.items():
        if ("gamma", f"shape {5 + shift:g}") in done:
            continue
        null = null or SimulatedNull.of(read_model(stats.gamma(5, scale=5)), 500, 1, DATA_SETS, np.random.default_rng([SEED, 0]))
        data = np.random.default_rng([SEED, 1, int(10 * shift)])
        rejected = sum(
            null.fit(data.gamma(5 + shift, 5, size=(500, 1)), ["0"]).ranking.pvalue <= LEVEL for _ in range(repetitions)
        )
        yield cell("gamma", "gamma(5, scale=5)", f"shape {5 + shift:g}", 500, 1, "cp-stein", rejected, repetitions, published)


# The Gaussian-Bernoulli restricted Boltzmann machine of KSDAgg's repository: 50 visible and 40 hidden units, entries of B
# disturbed by normal noise of standard deviation noise / 100. Gibbs chains start at N(0, I) and stay in the modes that they
# reach: of 2000 steps (the authors') the first BURN_IN change hidden units of one state in a thousand or more.

KSDAGG_RBM = {0: None, 1: 0.345, 2: 0.995}
BURN_IN, MACHINE_DATA_SETS = 100, 99  # the authors took 500 data sets


class Machine:
    """The density of the visible units, and rows of it."""

    def __init__(self, noise: float) -> None:
        state = np.random.RandomState(0)
        B, self.b, self.c = state.randint(0, 2, (50, 40)) * 2 - 1.0, state.randn(50), state.randn(40)
        self.B = B + noise / 100 * state.randn(50, 40)

    def score(self, rows: np.ndarray) -> np.ndarray:
        return self.b - rows + np.tanh(rows @ self.B / 2 + self.c) @ self.B.T / 2

    def sample(self, count: int, rng: np.random.Generator) -> np.ndarray:
        B, b, c = (values.astype(np.float32) for values in (self.B, self.b, 2 * self.c))
        x = rng.standard_normal((count, 50), dtype=np.float32)
        for _ in range(BURN_IN):
            h = np.where(rng.random((count, 40), dtype=np.float32) < expit(x @ B + c), np.float32(0.5), np.float32(-0.5))
            x = h @ B.T + b + rng.standard_normal((count, 50), dtype=np.float32)
        return x.astype(np.float64)


def rbm(repetitions: int, done: set[tuple[str, str]]) -> Iterator[dict[str, object]]:
    machine, null = Machine(0), None
    for noise, published in KSDAGG_RBM.items():
        if ("rbm", f"noise {noise}") in done:
            continue
        model = read_model(Density(machine.score, sample=machine.sample))
        null = null or SimulatedNull.of(model, 1000, 50, MACHINE_DATA_SETS, np.random.default_rng([SEED, 2]))
        data, other = np.random.default_rng([SEED, 3, noise]), Machine(noise)
        names = [str(j) for j in range(50)]
        rejected = sum(null.fit(other.sample(1000, data), names).ranking.pvalue <= LEVEL for _ in range(repetitions))
        yield cell("rbm", "machine", f"noise {noise}", 1000, 50, "cp-stein, simulated", rejected, repetitions, published)


# Multivariate normality. Every test at its own null quantile, over the same data sets.


def bhep(z: np.ndarray, beta: float) -> float:
    """Return the statistic of Baringhaus, Henze, Epps and Pulley; Henze and Zirkler's is that of a beta for n and d."""
    n, d = z.shape
    norms = np.square(z).sum(axis=1)
    apart = norms[:, None] + norms - 2 * z @ z.T
    s = 1 + beta**2
    pairs = np.exp(-(beta**2) / 2 * apart).mean()
    return float(n * (pairs - 2 * s ** (-d / 2) * np.exp(-(beta**2) * norms / (2 * s)).mean() + (2 * s - 1) ** (-d / 2)))


def rivals(rows: np.ndarray) -> np.ndarray:
    z = whiten(rows)
    n, d = z.shape
    henze_zirkler = ((2 * d + 1) * n / 4) ** (1 / (d + 4)) / sqrt(2)
    return np.array([bhep(z, henze_zirkler), bhep(z, 1.0), *mardia(z)])


def ball(r: np.random.Generator, n: int, d: int) -> np.ndarray:
    z = r.normal(size=(n, d))
    return z / np.linalg.norm(z, axis=1, keepdims=True) * r.random((n, 1)) ** (1 / d)


def correlated_part(r: np.random.Generator, n: int, d: int) -> np.ndarray:
    other = r.normal(size=(n, d)) @ np.linalg.cholesky(0.9 + 0.1 * np.eye(d)).T
    return np.where(r.random((n, 1)) < 0.25, other, r.normal(size=(n, d)))


def curved(r: np.random.Generator, n: int, d: int) -> np.ndarray:
    z = r.normal(size=(n, d))
    z[:, 1] += 0.5 * z[:, 0] ** 2
    return z


def one_skewed(r: np.random.Generator, n: int, d: int) -> np.ndarray:
    z = r.normal(size=(n, d))
    z[:, 0] = r.gamma(2, size=n)
    return z


Sampler = Callable[[np.random.Generator, int, int], np.ndarray]
ALTERNATIVES: dict[str, Sampler] = {
    "normal": lambda r, n, d: r.normal(size=(n, d)),
    "t, 7 degrees of freedom": lambda r, n, d: r.normal(size=(n, d)) / np.sqrt(r.chisquare(7, size=(n, 1)) / 7),
    "chi-square columns, 10": lambda r, n, d: r.chisquare(10, size=(n, d)),
    "uniform columns": lambda r, n, d: r.random((n, d)),
    "uniform on a ball": ball,
    "two groups, 3 apart": lambda r, n, d: r.normal(size=(n, d)) + 3 * (r.random((n, 1)) < 0.5) * np.eye(d)[0],
    "a tenth 2.5 times as wide": lambda r, n, d: r.normal(size=(n, d)) * np.where(r.random((n, 1)) < 0.1, 2.5, 1),
    "a quarter correlated": correlated_part,
    "Laplace columns": lambda r, n, d: r.laplace(size=(n, d)),
    "one column curved in another": curved,
    "one skewed column": one_skewed,
}
NORMALITY_SIZES = ((2, 50), (5, 100), (10, 150))
RIVALS = ("Henze-Zirkler", "BHEP, beta 1", "Mardia, skewness or kurtosis")


def normality(repetitions: int, done: set[tuple[str, str]]) -> Iterator[dict[str, object]]:
    for d, n in NORMALITY_SIZES:
        cells = {name: sampler for name, sampler in ALTERNATIVES.items() if ("normality", f"{name}, {n} x {d}") not in done}
        if not cells:
            continue
        null = SimulatedNull.of(read_model("normal"), n, d, DATA_SETS, np.random.default_rng([SEED, 4, d]))
        stream = np.random.default_rng([SEED, 5, d])
        of_null = np.array([rivals(stream.normal(size=(n, d))) for _ in range(DATA_SETS)])
        middle = np.median(of_null[:, 3])
        names = [str(j) for j in range(d)]
        for number, (name, sampler) in enumerate(cells.items()):
            data, rejected = np.random.default_rng([SEED, 6, d, number]), dict.fromkeys(("cp-stein", *RIVALS), 0)
            for _ in range(repetitions):
                rows = sampler(data, n, d)
                found, seen = null.fit(rows, names), rivals(rows)
                above = [(1 + np.count_nonzero(of_null[:, k] >= seen[k])) / (DATA_SETS + 1) for k in range(3)]
                far = np.abs(of_null[:, 3] - middle) >= abs(seen[3] - middle)
                kurtosis = (1 + np.count_nonzero(far)) / (DATA_SETS + 1)
                p = (found.ranking.pvalue, above[0], above[1], 2 * min(above[2], kurtosis))
                for test, value in zip(rejected, p, strict=True):
                    rejected[test] += value <= LEVEL
            for test, count in rejected.items():
                yield cell("normality", "normal", f"{name}, {n} x {d}", n, d, test, count, repetitions, None)


# Level: everything anew in each repetition. Random signs (approximate), and four models by simulation (exact).


def autoregressive(r: np.random.Generator, n: int) -> np.ndarray:
    from scipy.signal import lfilter

    carry = 0.8
    return lfilter([sqrt(1 - carry**2)], [1, -carry], r.normal(size=(n + 100, 1)), axis=0)[100:]


MIXTURE = np.random.default_rng(0).normal(size=(200, 2)) + 4 * (np.arange(200) % 2)[:, None]


def level_models() -> dict[str, tuple[object, Callable[[np.random.Generator], np.ndarray], dict[str, object]]]:
    mixture = GaussianMixture(2, random_state=0).fit(MIXTURE)
    of_mixture = read_model(mixture)
    student = stats.multivariate_t([0, 1], np.eye(2), df=3)
    few = {"n_permutations": 19}
    signs = {"n_permutations": 199}
    return {
        "signs: normal, 100 x 2": (lambda x: -x, lambda r: r.normal(size=(100, 2)), signs),
        "signs: normal, 200 x 10": (lambda x: -x, lambda r: r.normal(size=(200, 10)), signs),
        "signs: t, 3 degrees, 100": (lambda x: -4 * x / (3 + x * x), lambda r: r.standard_t(3, size=(100, 1)), signs),
        "signs: gamma(5), 100": (lambda x: 4 / x - 1, lambda r: r.gamma(5, size=(100, 1)), signs),
        "blocks of 25, AR(.8), 1000": (lambda x: -x, lambda r: autoregressive(r, 1000), {**signs, "blocks": 25}),
        "blocks auto, AR(.8), 1000": (lambda x: -x, lambda r: autoregressive(r, 1000), {**signs, "blocks": "auto"}),
        "normal family, 30 x 2": ("normal", lambda r: 5 + r.normal(size=(30, 2)) @ np.array([[3, 1], [0, 0.1]]), few),
        "gamma(2), 30": ("gamma(2)", lambda r: r.gamma(2, size=(30, 1)), few),
        "multivariate t, 30 x 2": (student, lambda r: student.rvs(30, r), few),
        "mixture of normals, 30 x 2": (mixture, lambda r: of_mixture.draw(30, 2, r), few),
    }


def level(repetitions: int, done: set[tuple[str, str]], only: str = "") -> Iterator[dict[str, object]]:
    for number, (name, (model, draw, options)) in enumerate(level_models().items()):
        if ("level", name) in done or not name.startswith(only):
            continue
        data = np.random.default_rng([SEED, 7, number])
        found = [goodness_of_fit_test(draw(data), model, rng=data, alpha=LEVEL, **options) for _ in range(repetitions)]
        rejected = sum(result.reject for result in found)
        yield cell("level", name, name, found[0].rows, len(found[0].columns), "cp-stein", rejected, repetitions, None)


def cell(part, model, data, rows, columns, test, rejected, repetitions, published) -> dict[str, object]:
    return dict(zip(FIELDS, (part, model, data, rows, columns, test, int(rejected), repetitions, published), strict=True))


PARTS = {"gamma": gamma, "rbm": rbm, "normality": normality, "level": level}


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("part", choices=PARTS)
    arguments.add_argument("--repetitions", type=int, default=200)
    arguments.add_argument("--only", default="", help="models of the level whose name begins so")
    options = arguments.parse_args()
    path = RESULTS / "fit.csv"
    known = list(csv.DictReader(path.open())) if path.exists() else []
    done = {(row["part"], row["data"]) for row in known}
    with path.open("a", newline="") as file:
        out = csv.DictWriter(file, FIELDS)
        if not known:
            out.writeheader()
        more = {"only": options.only} if options.part == "level" else {}
        for row in PARTS[options.part](options.repetitions, done, **more):
            out.writerow(row)
            file.flush()
            print(row["data"], row["test"], row["rejected"] / row["repetitions"], row["published"], flush=True)


if __name__ == "__main__":
    main()
