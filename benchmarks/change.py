"""What kind of change: the level of the test of y given x under shifts of x, and the three verdicts on five kinds of change.

``python -m benchmarks.change level`` and ``verdicts`` append to ``results/change.json`` and go on where they stopped, a few
repetitions of every cell at a time; ``regressions`` compares errors with gradient boosting's; ``table`` writes a table.
The classes of statistics and the regressions were chosen with other seeds.
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable

import numpy as np
from sklearn.ensemble import HistGradientBoostingClassifier, HistGradientBoostingRegressor

from benchmarks import RESULTS
from cpmmd import change_test
from cpmmd.core.parallel import threads
from cpmmd.data.targets import read_parts
from cpmmd.questions.change import closed_pvalues
from cpmmd.questions.relation import find_relation
from cpmmd.statistics.cross_fitting import Ridge, draw_folds, fitted_means, fitted_probabilities

FILE = RESULTS / "change.json"
ALPHA = 0.05
SIGNS = 199
CHUNK = 20
ROWS = 500
Sample = tuple[np.ndarray, np.ndarray, np.ndarray]  # label, x, y


def linear(rng: np.random.Generator, n: int, change: float = 0.0) -> Sample:
    """Ten columns, four of them shifted by .7, and a linear relation."""
    label = np.repeat([0, 1], n)
    x = rng.normal(size=(2 * n, 10))
    x[:, :4] += 0.7 * label[:, None] * [1, 1, -1, -1]
    return label, x, x[:, :5] @ [1, 0.5, 1, -0.5, 0.7] + change * label + rng.normal(size=2 * n)


def heavy_tails(rng: np.random.Generator, n: int, change: float = 0.0) -> Sample:
    """The same with the noise of a t distribution with two degrees of freedom."""
    label, x, y = linear(rng, n, change)
    return label, x, y + rng.standard_t(2, size=2 * n)


def nonlinear(rng: np.random.Generator, n: int, change: float = 0.0) -> Sample:
    """A sine and a product of columns, three of them shifted by .6."""
    label = np.repeat([0, 1], n)
    x = rng.normal(size=(2 * n, 5))
    x[:, :3] += 0.6 * label[:, None]
    return label, x, np.sin(2 * x[:, 0]) + x[:, 1] * x[:, 2] + change * label + 0.7 * rng.normal(size=2 * n)


def heteroscedastic(rng: np.random.Generator, n: int, change: float = 0.0) -> Sample:
    """Noise that grows with a shifted column."""
    label = np.repeat([0, 1], n)
    x = rng.normal(size=(2 * n, 5))
    x[:, :3] += 0.6 * label[:, None]
    return label, x, x[:, 0] + x[:, 1] + change * label + (0.3 + np.abs(x[:, 1])) * rng.normal(size=2 * n)


def many_columns(rng: np.random.Generator, n: int, change: float = 0.0) -> Sample:
    """Fifty columns, ten of them shifted by .3."""
    label = np.repeat([0, 1], n)
    x = rng.normal(size=(2 * n, 50))
    x[:, :10] += 0.3 * label[:, None]
    return label, x, 0.5 * x[:, :6].sum(axis=1) + np.sin(2 * x[:, 0]) + change * label + rng.normal(size=2 * n)


def weak_overlap(rng: np.random.Generator, n: int, change: float = 0.0) -> Sample:
    """A column shifted by two standard deviations, and a quadratic relation to it."""
    label = np.repeat([0, 1], n)
    x = rng.normal(size=(2 * n, 5))
    x[:, 0] += 2 * label
    return label, x, x[:, 0] + 0.3 * x[:, 0] ** 2 + change * label + rng.normal(size=2 * n)


def steps(rng: np.random.Generator, n: int, change: float = 0.0) -> Sample:
    """A relation with jumps."""
    label = np.repeat([0, 1], n)
    x = rng.uniform(size=(2 * n, 4))
    x[:, 0] **= 1 + label
    jumps = 2.0 * (x[:, 0] > 0.5) + 1.5 * ((x[:, 1] > 0.3) & (x[:, 0] > 0.25))
    return label, x, jumps + change * label + 0.5 * rng.normal(size=2 * n)


def wider(rng: np.random.Generator, n: int, change: float = 0.0) -> Sample:
    """Columns of another scale."""
    label = np.repeat([0, 1], n)
    x = rng.normal(size=(2 * n, 4)) * np.where(label, 1.6, 1.0)[:, None]
    return label, x, x[:, 0] ** 2 - x[:, 1] + change * label + rng.normal(size=2 * n)


def three_levels(rng: np.random.Generator, n: int, change: float = 0.0) -> Sample:
    """A target of three levels."""
    label = np.repeat([0, 1], n)
    x = rng.normal(size=(2 * n, 5))
    x[:, :3] += 0.6 * label[:, None]
    odds = np.stack([x[:, 0] + change * label, x[:, 1] - 0.5 * x[:, 2], np.zeros(2 * n)], axis=1)
    return label, x, np.array(["a", "b", "c"])[(odds + rng.gumbel(size=odds.shape)).argmax(axis=1)]


def discrete(rng: np.random.Generator, n: int, change: float = 0.0) -> Sample:
    """Two discrete columns of another mix: twelve different rows."""
    label = np.repeat([0, 1], n)
    x = np.stack([rng.binomial(3, 0.4 + 0.2 * label), rng.binomial(2, 0.5 - 0.2 * label)], axis=1).astype(float)
    return label, x, x[:, 0] * x[:, 1] + change * label + (1 + x[:, 0]) * rng.normal(size=2 * n)


NULLS: dict[str, Callable[..., Sample]] = {
    of.__name__.replace("_", " "): of
    for of in (linear, heavy_tails, nonlinear, heteroscedastic, many_columns, weak_overlap, steps, wider, three_levels, discrete)
}
# Unchanged inputs and an unchanged relation imply an unchanged target: there is no change of y only.
KINDS = ("none", "x", "x and y", "y given x", "y and y given x", "all")
SIZES = {200: 40, 500: 20}  # repetitions of the table of verdicts


def changed(kind: str, n: int, rng: np.random.Generator) -> Sample:
    """Return samples of five columns in which something changes: the fifth column has nothing to do with y."""
    label = np.repeat([0, 1], n)
    x = rng.normal(size=(2 * n, 5))
    x[:, {"x": 4}.get(kind, 0)] += (0.4 if kind in ("x", "x and y", "all") else 0.0) * label
    turn = (0.4 if kind == "y given x" else 0.0) * label  # y leans on another column, and its own distribution stays
    more = (0.3 if kind in ("y and y given x", "all") else 0.0) * label
    signal = np.cos(turn) * x[:, 0] + np.sin(turn) * x[:, 2] + np.sin(2 * x[:, 1])
    return label, x, signal + more + 0.7 * rng.normal(size=2 * n)


def split(sample: Sample) -> tuple[np.ndarray, np.ndarray, tuple[np.ndarray, np.ndarray]]:
    """Return inputs of the reference, of the new sample, and the target of both."""
    label, x, y = sample
    return x[label == 0], x[label == 1], (y[label == 0], y[label == 1])


def relation(sample: Sample, rng: np.random.Generator, signs: int = SIGNS) -> float:
    """Return the p-value of y given x alone."""
    reference, new, target = split(sample)
    with threads(1):
        data = read_parts(reference, new, target, None, None, "error")
        tested = {"method": "cp-full", "alpha": ALPHA, "missing": "error", "n_permutations": signs}
        return find_relation(data, tested, None, None, rng).pvalue


def cells(what: str, repetitions: int) -> dict[str, tuple[Callable[[np.random.Generator], object], int]]:
    """Return what is done in every cell of a study, and how often."""
    if what == "level":
        return {f"level {name}": (lambda rng, of=of: relation(of(rng, ROWS), rng), repetitions) for name, of in NULLS.items()}
    if what == "regressions":
        return {f"regressions {name}": (lambda rng, of=of: errors(of(rng, ROWS)), 2) for name, of in NULLS.items()}
    return {
        f"verdict {kind} {n}": (lambda rng, kind=kind, n=n: verdict(kind, n, rng), times)
        for n, times in SIZES.items()
        for kind in KINDS
    }


def errors(sample: Sample) -> list[float]:
    """Return the errors of gradient boosting relative to those of the default: mean square of y, log loss of the label."""
    label, x, y = sample
    outcome = (y == "a").astype(float) if y.dtype.kind == "U" else np.clip((y - np.median(y)) / y.std(), -6, 6)
    folds = draw_folds(label, np.random.default_rng(0))
    ridge = Ridge.of((x - x.mean(axis=0)) / x.std(axis=0), folds, np.random.default_rng(0))
    means = ridge.means(outcome[:, None])[:, 0], fitted_means(HistGradientBoostingRegressor(), x, outcome[:, None], folds)[:, 0]
    of_label = ridge.probabilities(label).values, fitted_probabilities(HistGradientBoostingClassifier(), x, label, folds).values
    squares = [np.mean((outcome - mean) ** 2) for mean in means]
    losses = [-np.mean(np.log(np.where(label > 0, p, 1 - p))) for p in of_label]
    return [squares[1] / squares[0], losses[1] / losses[0]]


def verdict(kind: str, n: int, rng: np.random.Generator) -> list[float]:
    """Return the three p-values before they are adjusted."""
    reference, new, target = split(changed(kind, n, rng))
    found = change_test(reference, new, target=target, rng=rng, n_jobs=1)
    return [part.pvalue for part in found.parts_of_change]


def run(what: str, repetitions: int, seconds: float) -> None:
    """Go on with a study for some seconds of processor time."""
    found = json.loads(FILE.read_text()) if FILE.exists() else {}
    begin = time.process_time()
    wanted = cells(what, repetitions)
    while any(len(found.get(name, [])) < times for name, (_, times) in wanted.items()):
        for number, (name, (work, times)) in enumerate(wanted.items()):
            own = found.setdefault(name, [])
            for i in range(len(own), min(len(own) + CHUNK, times)):
                own.append(np.round(work(np.random.default_rng([20261119, number, i])), 4).tolist())
            FILE.write_text(json.dumps(found))
            if time.process_time() - begin > seconds:
                return


def rate(rejections: int, of: int) -> str:
    """Return a share of rejections with two digits after the point that matter."""
    return f"{rejections / of:.3f}".lstrip("0") if of else ""


def table() -> str:
    """Return what is there as tables."""
    found = json.loads(FILE.read_text())
    lines = [f"| null, n = {ROWS} | rejected at .05 | repetitions |", "| --- | --- | --- |"]
    for name, values in found.items():
        if name.startswith("level"):
            lines.append(
                f"| {name.removeprefix('level ')} | {rate(int(np.sum(np.array(values) <= ALPHA)), len(values))} | {len(values)} |"
            )
    lines += ["", "| changed | n | x | y | y given x | repetitions |", "| --- | --- | --- | --- | --- | --- |"]
    for n in SIZES:
        for kind in KINDS:
            values = found.get(f"verdict {kind} {n}", [])
            if values:
                adjusted = np.array([closed_pvalues(*three) for three in values])
                rates = [rate(int(count), len(values)) for count in (adjusted <= ALPHA).sum(axis=0)]
                lines.append(f"| {kind} | {n} | {' | '.join(rates)} | {len(values)} |")
    lines += ["", "| error of gradient boosting over the default's | of y | of the label |", "| --- | --- | --- |"]
    for name, values in found.items():
        if name.startswith("regressions"):
            of_y, of_label = np.mean(values, axis=0)
            lines.append(f"| {name.removeprefix('regressions ')} | {of_y:.2f} | {of_label:.2f} |")
    return "\n".join(lines) + "\n"


def main() -> None:
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("what", choices=("level", "verdicts", "regressions", "table"))
    arguments.add_argument("--repetitions", type=int, default=500)
    arguments.add_argument("--seconds", type=float, default=3600.0)
    options = arguments.parse_args()
    if options.what != "table":
        run(options.what, options.repetitions, options.seconds)
    (RESULTS / "change.md").write_text(table())
    print(table())


if __name__ == "__main__":
    main()
