"""Shared by the tests: data generators, binomial bounds, brute-force oracles, golden values."""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

HERE = Path(__file__).parent
GOLDEN = HERE / "golden"
HOSTILE_NAMES = {
    "script": "<script>document.title='owned'</script>",
    "attribute": '"><img src=x onerror="document.title=\'owned\'">',
    "svg": "</text></svg><script>document.title='owned'</script>",
    "quotes": 'it\'s "quoted" `code` \\back\\',
    "markdown": "a|b [link](javascript:alert(1)) ![i](http://x.invalid/i.png) **bold** <http://x.invalid>",
    "template": "{{ 7 * 7 }}{% raw %}${7*7}",
    "maths": "$\\frac{1}{0}$ $ \\ $",
    "newlines": "one\ntwo\r\nthree\u2028four\x00\x1b[31m",
    "long": "n" * 10_000,
    "right-to-left": "\u202eتجربة\u2066 שלום",
    "emoji": "👩\u200d👩\u200d👧 🚀 🏴\u200d☠️",
    "empty": "",
}


def written(folder: Path, name: str, content: str | bytes) -> str:
    """Write a file and return its path."""
    path = folder / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return str(path)


def shared_data(name: str) -> Path:
    """Path of a real data set, or skip the test with the reason."""
    folder = Path(os.environ.get("CPMMD_DATA", HERE.parent.parent / "shared" / "data"))
    if not (folder / name).exists():
        pytest.skip(f"{name} is not in {folder}; set CPMMD_DATA to the folder that holds it")
    return folder / name


def sample_named(
    names: list[str], seed: int, shift: float, rows: int = 40, texts: list[str] | None = None
) -> dict[str, np.ndarray]:
    """Columns of numbers with these names, the first shifted, and one of text with these values or others."""
    data = np.random.default_rng(seed)
    columns = {name: data.normal(shift if i == 0 else 0.0, 1, rows) for i, name in enumerate(names)}
    return {**columns, "text": np.array(names if texts is None else texts, dtype=object)[data.integers(0, len(names), rows)]}


class Page(HTMLParser):
    """The tags of a page with their attributes, and its text."""

    def __init__(self, text):
        super().__init__(convert_charrefs=True)
        self.tags, self.texts = [], []
        self.feed(text)

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_data(self, data):
        self.texts.append(data)

    def all(self, tag):
        return [attributes for name, attributes in self.tags if name == tag]

    @property
    def shape(self):
        """Which tags with which attributes, in order; neither what they say nor a class matters."""
        return [(tag, sorted(set(attributes) - {"class"})) for tag, attributes in self.tags]


def golden_pairs() -> dict[str, tuple[np.ndarray, np.ndarray, dict[str, Any]]]:
    answers = json.loads((GOLDEN / "peers.json").read_text())
    with np.load(GOLDEN / "peers.npz", allow_pickle=False) as data:
        return {name: (data[f"{name}_X"], data[f"{name}_Y"], answer) for name, answer in answers.items()}


def brute_force_mmd2(k: Callable[[np.ndarray, np.ndarray], float], x: np.ndarray, y: np.ndarray) -> float:
    """The unbiased estimate by double sums, straight from its definition."""
    m, n = len(x), len(y)
    xx = sum(k(x[i], x[j]) for i in range(m) for j in range(m) if i != j) / (m * (m - 1))
    yy = sum(k(y[i], y[j]) for i in range(n) for j in range(n) if i != j) / (n * (n - 1))
    xy = sum(k(a, b) for a in x for b in y) / (m * n)
    return xx + yy - 2 * xy


def most_rejections(repetitions: int, alpha: float, errors: float = 3.0) -> float:
    """Alpha plus ``errors`` binomial standard errors, as a count."""
    return repetitions * alpha + errors * np.sqrt(repetitions * alpha * (1 - alpha))


def two_scale_mixture(rng: np.random.Generator, n: int, shift: float, n_y: int | None = None):
    """The paper's linear panel: two tight 2-D modes, both moved by ``shift``."""

    def sample(rows: int, moved: float) -> np.ndarray:
        modes = 3.0 * rng.integers(0, 2, rows)
        return 0.1 * rng.normal(size=(rows, 2)) + np.column_stack([modes + moved, np.zeros(rows)])

    return sample(n, 0.0), sample(n_y or n, shift)


def kurtosis(rng: np.random.Generator, n: int, df: float, d: int = 10):
    """The paper's polynomial panel: Gaussian against a Student t of the same covariance."""
    t = rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(df, size=(n, 1)) / df)
    return rng.normal(size=(n, d)), t * np.sqrt((df - 2) / df)


def autoregressive(rng: np.random.Generator, rows: int, columns: int, coefficient: float) -> np.ndarray:
    """Stationary AR(1) columns of unit variance."""
    values, noise = np.empty((rows, columns)), rng.normal(size=(rows, columns))
    values[0] = noise[0]
    for t in range(1, rows):
        values[t] = coefficient * values[t - 1] + np.sqrt(1 - coefficient**2) * noise[t]
    return values


def mixed_frame(rng: np.random.Generator, rows: int, *, colours=("red", "green", "blue")):
    """Columns of every kind a detector knows."""
    import polars as pl

    return pl.DataFrame(
        {
            "size": rng.normal(size=rows),
            "colour": rng.choice(colours, rows),
            "count": rng.poisson(3, rows),
            "on": rng.random(rows) < 0.5,
            "day": np.datetime64("2025-01-01") + rng.integers(0, 30, rows),
        }
    )


def null_gaussian(rng):
    return rng.normal(size=(24, 3)), rng.normal(size=(24, 3))


def null_heavy(rng):
    return rng.standard_cauchy(size=(24, 2)), rng.standard_cauchy(size=(24, 2))


def null_discrete(rng):
    return rng.integers(0, 3, size=(24, 2)), rng.integers(0, 3, size=(24, 2))


def null_unequal(rng):
    return rng.exponential(size=(14, 2)), rng.exponential(size=(40, 2))


def null_wide(rng):
    return rng.normal(size=(12, 60)), rng.normal(size=(12, 60))


def null_mixed(rng):
    import polars as pl

    def frame(rows):
        return pl.DataFrame(
            {
                "size": rng.normal(size=rows),
                "colour": rng.choice(["red", "green", "blue"], rows),
                "on": rng.random(rows) < 0.5,
                "count": rng.poisson(2, rows),
            }
        )

    return frame(24), frame(24)


NULLS = {
    "gaussian": null_gaussian,
    "heavy": null_heavy,
    "discrete": null_discrete,
    "unequal": null_unequal,
    "wide": null_wide,
    "mixed": null_mixed,
}


def light(method: str) -> Any:
    """A method that trains, as a small network trained for a few steps; any other as it is."""
    if not method.endswith(("-deep", "-mixture", "-map")) and method != "liu":
        return method
    from cpmmd import Ascent, ComplexityPenalized, Deep, LinearMap, Mixture, Plain, Ratio, SplitTest

    criteria = {"cp": ComplexityPenalized(n_calibration=3), "liu": Ratio(), "plain": Plain()}
    network = Deep(width=8, out=3)
    kernel = LinearMap() if method.endswith("map") else Mixture(network) if method.endswith("mixture") else network
    return SplitTest(kernel, criteria[method.split("-")[0]], ascent=Ascent(steps=4, learning_rate=0.05))


def null_pvalues(method: Any, null: Callable, repetitions: int, *, seed: int, n_permutations: int = 99, **options) -> np.ndarray:
    """p-values of a method over seeded repetitions of a null."""
    from cpmmd import two_sample_test

    pvalues = []
    for repetition in range(repetitions):
        data, test = np.random.default_rng([seed, repetition]).spawn(2)
        x, y = null(data)
        pvalues.append(two_sample_test(x, y, method=method, rng=test, n_permutations=n_permutations, **options).pvalue)
    return np.array(pvalues)


def assert_level(pvalues: np.ndarray, alphas: tuple[float, ...] = (0.05, 0.1, 0.25, 0.5)) -> None:
    """Rejections at each alpha stay within 3 binomial standard errors above it."""
    for alpha in alphas:
        count = int(np.count_nonzero(pvalues <= alpha))
        assert count <= most_rejections(len(pvalues), alpha), f"{count} of {len(pvalues)} rejected at {alpha}"
