"""Panels of practice: changes that tables have in use, each with its version without a change.

The rows of both samples come from one sampler, then those of the second are changed. Without the change both have one law.
Panels for choosing may be looked at while a method is made; the others report.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, partial
from typing import Any

import numpy as np
import pandas as pd
from scipy import special

from experiments.data import draw_rows, load
from experiments.panels import perturbed_uniform

Table = Any  # a matrix or a pandas frame
Sample = Callable[[np.random.Generator, int], Table]
Change = Callable[[np.random.Generator, Table], Table]


@dataclass(frozen=True)
class Panel:
    """A sampler of rows, what happens to those of the second sample, and how many rows the samples have."""

    sample: Sample
    change: Change
    m: int
    n: int

    def __call__(self, rng: np.random.Generator) -> tuple[Table, Table]:
        """Return both samples, the second changed."""
        x, y = self.null(rng)
        return x, self.change(rng, y)

    def null(self, rng: np.random.Generator) -> tuple[Table, Table]:
        """Return two samples of one law."""
        rows = self.sample(rng, self.m + self.n)
        return rows[: self.m], rows[self.m :]


# Tables


def normal(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Independent normal columns."""
    return rng.normal(size=(n, d))


def plant(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Normal columns of mean 1 and deviation 1 that follow a factor, the first most closely."""
    loading = np.linspace(0.95, 0.3, d)
    return 1 + loading * rng.normal(size=(n, 1)) + np.sqrt(1 - loading**2) * rng.normal(size=(n, d))


def mixed(rng: np.random.Generator, n: int) -> pd.DataFrame:
    """Seven numbers, two booleans and three categories; a common factor in a few of them."""
    common = rng.normal(size=n)
    member = rng.random(n) < special.ndtr(-0.5 + 0.5 * common)
    return pd.DataFrame(
        {
            "age": np.clip(np.rint(42 + 8 * common + 12 * rng.normal(size=n)), 18, 95),
            "income": np.exp(10 + 0.3 * common + 0.5 * rng.normal(size=n)),
            "balance": 1500 + 400 * rng.normal(size=n),
            "visits": rng.poisson(4, n).astype(float),
            "day": np.floor(rng.uniform(0, 365, n)),
            "duration": rng.gamma(2.0, 3.0, n),
            "score": rng.standard_t(4, n),
            "member": member,
            "mobile": rng.random(n) < 0.5,
            "region": rng.choice(["north", "south", "east", "west", "centre"], n, p=[0.3, 0.25, 0.2, 0.15, 0.1]),
            "plan": np.where(rng.random(n) < 0.2, "family", np.where(member, "plus", "basic")),
            "device": rng.choice([f"d{i}" for i in range(12)], n, p=np.arange(12, 0, -1) / 78),
        }
    )


def gaps(rng: np.random.Generator, n: int, column: str, share: float) -> pd.DataFrame:
    """The mixed table, some values of a column missing."""
    return lose_values(rng, mixed(rng, n), column, share)


def seasons(rng: np.random.Generator, n: int, winter: float = 0.0) -> np.ndarray:
    """Temperature, light, demand and price through a year: day density 1 + winter cos, to first order."""
    day = 2 * np.pi * rng.random(n)
    day -= winter * np.sin(day)
    waves = np.column_stack([-np.cos(day), -np.cos(day - 0.4), np.cos(2 * day), np.sin(day)])
    return waves + np.array([0.5, 0.4, 0.6, 1.0]) * rng.normal(size=(n, 4))


def decay(rng: np.random.Generator, n: int, third: float = 0.0, width: float = 0.03, angular: float = 1.0) -> np.ndarray:
    """Two squared masses of a decay into three particles: bands of two resonances, perhaps of a third, over a flat part."""
    plane = rng.random((n, 2))
    kind = rng.choice(4, n, p=[0.4 - third, 0.3, 0.3, third])
    for which, column, centre, spread in ((1, 0, 0.3, width), (2, 1, 0.65, 0.04), (3, 0, 0.75, 0.015)):
        here = np.flatnonzero(kind == which)
        plane[here, column] = np.clip(centre + spread * np.tan(np.pi * 0.45 * (2 * rng.random(len(here)) - 1)), 0, 1)
        if which == 1:  # a spin: density 1 + angular (3 u^2 - 1) / 2 along the band, u in (-1, 1)
            u = 2 * rng.random((len(here), 16)) - 1
            kept = rng.random(u.shape) * (1 + abs(angular)) < 1 + angular * (3 * u**2 - 1) / 2
            plane[here, 1] = (1 + u[np.arange(len(here)), np.argmax(kept, axis=1)]) / 2
    return plane


def copula(rng: np.random.Generator, n: int, family: str, tau: float = 0.3, d: int = 5) -> np.ndarray:
    """Uniform columns, every two of which have Kendall's tau (0.3 for Frank's copula)."""
    if family in ("normal", "t"):
        rho = np.sin(np.pi * tau / 2)
        z = np.sqrt(rho) * rng.normal(size=(n, 1)) + np.sqrt(1 - rho) * rng.normal(size=(n, d))
        return special.ndtr(z) if family == "normal" else special.stdtr(3, z / np.sqrt(rng.chisquare(3, (n, 1)) / 3))
    exponentials = rng.exponential(size=(n, d))
    if family == "clayton":
        theta = 2 * tau / (1 - tau)
        return (1 + exponentials / rng.gamma(1 / theta, size=(n, 1))) ** (-1 / theta)
    if family == "gumbel":
        a = 1 - tau  # a positive stable variable of index a (Kanter)
        angle, e = np.pi * rng.random((n, 1)), rng.exponential(size=(n, 1))
        stable = np.sin(a * angle) / np.sin(angle) ** (1 / a) * (np.sin((1 - a) * angle) / e) ** ((1 - a) / a)
        return np.exp(-((exponentials / stable) ** a))
    theta = 2.9174  # Frank's at tau = .3: a logarithmic variable
    v = rng.logseries(-np.expm1(-theta), size=(n, 1))
    return -np.log1p(np.exp(-exponentials / v) * np.expm1(-theta)) / theta


@cache
def labelled(name: str) -> tuple[np.ndarray, np.ndarray]:
    """Return the rows and labels of a real table; those of ``tep`` are its normal operation, without labels."""
    if name == "tep":
        rows = load("tep")["normal_test"]
        return rows, np.zeros(len(rows))
    if name in ("higgs", "mnist_7x7"):
        return load(name)["X"], load(name)["y"]
    from sklearn import datasets

    data = {"wine": datasets.load_wine, "cancer": datasets.load_breast_cancer, "digits": datasets.load_digits}[name]()
    return data.data, data.target


def real(rng: np.random.Generator, n: int, name: str, without: int | None = None) -> np.ndarray:
    """Rows of a real table, none twice, perhaps without a class."""
    rows, labels = labelled(name)
    return draw_rows(rng, rows if without is None else rows[labels != without], n)


# Changes


def redraw(rng: np.random.Generator, rows: Table, sample: Sample) -> Table:
    """Other rows, of another sampler."""
    return sample(rng, len(rows))


def some(rng: np.random.Generator, rows: Table, share: float) -> np.ndarray:
    """Which rows change: the same number in every draw."""
    return rng.permutation(len(rows)) < round(share * len(rows))


def new_group(rng: np.random.Generator, rows: np.ndarray, share: float, spread: float = 0.15) -> np.ndarray:
    """Some rows become a tight group near one of them."""
    here = some(rng, rows, share)
    centre = rows[rng.integers(len(rows))]
    group = centre + spread * rows.std(axis=0) * rng.normal(size=rows.shape)
    return np.where(here[:, None], group, rows)


def outliers(rng: np.random.Generator, rows: np.ndarray, share: float, factor: float, columns: int | None = None) -> np.ndarray:
    """Some rows move away from the mean by a factor, in some columns."""
    moved = rows.copy()
    here = some(rng, rows, share)
    mean = rows.mean(axis=0)
    moved[here, :columns] = (mean + factor * (rows - mean))[here, :columns]
    return moved


def add(rng: np.random.Generator, rows: Table, column: Any, by: float) -> Table:  # noqa: ARG001
    """A column's mean moves by some of its standard deviations."""
    return _set(rows, column, _get(rows, column) + by * _get(rows, column).std())


def move(rng: np.random.Generator, rows: np.ndarray, by: float) -> np.ndarray:  # noqa: ARG001
    """All columns move."""
    return rows + by


def stretch(rng: np.random.Generator, rows: Table, column: Any, factor: float) -> Table:  # noqa: ARG001
    """A column's spread around its median grows."""
    values = _get(rows, column)
    return _set(rows, column, np.median(values) + factor * (values - np.median(values)))


def unit(rng: np.random.Generator, rows: Table, column: Any, share: float, factor: float) -> Table:
    """Some values of a column are in another unit."""
    values = _get(rows, column)
    return _set(rows, column, np.where(some(rng, rows, share), factor * values, values))


def rounded(rng: np.random.Generator, rows: Table, column: Any, to: float, share: float = 1.0) -> Table:
    """Values of a column are rounded to multiples of a part of its standard deviation."""
    values = _get(rows, column)
    step = to * values.std()
    return _set(rows, column, np.where(some(rng, rows, share), step * np.rint(values / step), values))


def clipped(rng: np.random.Generator, rows: Table, column: Any, at: float) -> Table:  # noqa: ARG001
    """A sensor that shows no more than a quantile of what it showed."""
    values = _get(rows, column)
    return _set(rows, column, np.minimum(values, np.quantile(values, at)))


def flipped(rng: np.random.Generator, rows: np.ndarray, column: int, share: float) -> np.ndarray:
    """The sign of a column is wrong in some rows."""
    return unit(rng, rows, column, share, -1.0)


def swapped(rng: np.random.Generator, rows: np.ndarray, a: int, b: int, share: float) -> np.ndarray:
    """Two columns are exchanged in some rows."""
    moved, here = rows.copy(), some(rng, rows, share)
    moved[here, a], moved[here, b] = rows[here, b], rows[here, a]
    return moved


def relevel(rng: np.random.Generator, rows: pd.DataFrame, column: str, share: float, level: Any) -> pd.DataFrame:
    """A level takes over some of the rows."""
    return rows.assign(**{column: np.where(some(rng, rows, share), level, rows[column])})


def lose_values(rng: np.random.Generator, rows: pd.DataFrame, column: str, share: float) -> pd.DataFrame:
    """Some values of a column are missing."""
    return rows.assign(**{column: rows[column].mask(some(rng, rows, share))})


def shape(rng: np.random.Generator, rows: np.ndarray, column: int) -> np.ndarray:
    """A normal column has two modes, its mean and deviation as before."""
    values = rng.choice([-0.8, 0.8], len(rows)) + 0.6 * rng.normal(size=len(rows))
    return _set(rows, column, values)


def heavier(rng: np.random.Generator, rows: np.ndarray, df: float, columns: int) -> np.ndarray:
    """Normal columns become Student's t of the same deviation."""
    moved = rows.copy()
    moved[:, :columns] = rng.standard_t(df, (len(rows), columns)) * np.sqrt((df - 2) / df)
    return moved


def correlated(rng: np.random.Generator, rows: np.ndarray, columns: int, rho: float) -> np.ndarray:
    """Independent normal columns share a factor."""
    moved = rows.copy()
    moved[:, :columns] = np.sqrt(rho) * rng.normal(size=(len(rows), 1)) + np.sqrt(1 - rho) * rows[:, :columns]
    return moved


def driven(rng: np.random.Generator, rows: pd.DataFrame, strength: float) -> pd.DataFrame:  # noqa: ARG001
    """The product of two columns drives a third, whose values stay the same."""
    a, b, c = (_normal_scores(rows[name].to_numpy()) for name in ("balance", "score", "duration"))
    order = np.argsort(np.argsort(strength * a * b + np.sqrt(1 - strength**2) * c))
    return rows.assign(duration=np.sort(rows["duration"].to_numpy())[order])


def mirrored(rng: np.random.Generator, rows: np.ndarray, share: float, side: int) -> np.ndarray:
    """Some images are mirrored."""
    turned = rows.reshape(-1, side, side)[:, :, ::-1].reshape(len(rows), -1)
    return np.where(some(rng, rows, share)[:, None], turned, rows)


def new_class(rng: np.random.Generator, rows: np.ndarray, name: str, label: int, share: float) -> np.ndarray:
    """Some rows are of the class that was left out."""
    moved, here, (all_rows, labels) = rows.copy(), some(rng, rows, share), labelled(name)
    moved[here] = draw_rows(rng, all_rows[labels == label], int(here.sum()))
    return moved


def bumps(rng: np.random.Generator, rows: np.ndarray, amplitude: float) -> np.ndarray:
    """A uniform plane with bumps of random sign."""
    return perturbed_uniform(rng, len(rows), rows.shape[1], amplitude)[1]


def _get(rows: Table, column: Any) -> np.ndarray:
    return np.asarray(rows[column] if isinstance(rows, pd.DataFrame) else rows[:, column], dtype=float)


def _set(rows: Table, column: Any, values: np.ndarray) -> Table:
    if isinstance(rows, pd.DataFrame):
        return rows.assign(**{column: values})
    moved = rows.copy()
    moved[:, column] = values
    return moved


def _normal_scores(values: np.ndarray) -> np.ndarray:
    return special.ndtri((np.argsort(np.argsort(values)) + 0.5) / len(values))


def uniform(rng: np.random.Generator, n: int, d: int) -> np.ndarray:
    """Uniform columns."""
    return rng.random((n, d))


def _panel(sample: Sample, change: Callable[..., Table], m: int, n: int | None = None, /, **settings: Any) -> Panel:
    return Panel(sample, partial(change, **settings), m, n or m)


def _instead(function: Callable[..., Table], **settings: Any) -> Callable[..., Table]:
    """The change to other rows, of a function with other settings."""
    return partial(redraw, sample=partial(function, **settings))


EIGHT, TWELVE, FORTY = (partial(normal, d=d) for d in (8, 12, 40))
PLANT = partial(plant, d=6)
GAPS = partial(gaps, column="income", share=0.05)

CHOOSING = {
    "new group 1.5% 800": _panel(EIGHT, new_group, 800, share=0.015),
    "new group 5% 150": _panel(EIGHT, new_group, 150, share=0.05),
    "outliers in a column 300": _panel(EIGHT, outliers, 300, share=0.05, factor=4, columns=1),
    "new level 2% 400": _panel(mixed, relevel, 400, column="plan", share=0.02, level="trial"),
    "level mix of plan 700": _panel(mixed, relevel, 700, column="plan", share=0.07, level="family"),
    "share of mobile 700": _panel(mixed, relevel, 700, column="mobile", share=0.15, level=True),
    "mean of score 700": _panel(mixed, add, 700, column="score", by=0.17),
    "spread of duration 700": _panel(mixed, stretch, 700, column="duration", factor=1.25),
    "missing 5% to 10% 500": _panel(GAPS, lose_values, 500, column="income", share=0.05),
    "rounding of a column 500": _panel(EIGHT, rounded, 500, column=0, to=1.0, share=0.4),
    "clipped sensor 300": _panel(EIGHT, clipped, 300, column=0, at=0.9),
    "sign flipped in 15% 200": _panel(PLANT, flipped, 200, column=0, share=0.15),
    "swapped in 25% 300": _panel(PLANT, swapped, 300, a=0, b=4, share=0.25),
    "one column of 5 200": _panel(partial(normal, d=5), add, 200, column=0, by=0.3),
    "one column of 40 200": _panel(FORTY, add, 200, column=0, by=0.4),
    "interaction 1000": _panel(mixed, driven, 1000, strength=0.5),
    "correlation in 4 of 40 200": _panel(FORTY, correlated, 200, columns=4, rho=0.6),
    "t(5) in 5 columns 300": _panel(partial(normal, d=5), heavier, 300, df=5, columns=5),
    "winter 300": _panel(seasons, _instead(seasons, winter=0.25), 300),
    "bumps in the plane .7 500": _panel(partial(uniform, d=2), bumps, 500, amplitude=0.7),
    "third resonance 500": _panel(decay, _instead(decay, third=0.08), 500),
    "copula t for normal 300": _panel(partial(copula, family="normal"), _instead(copula, family="t"), 300),
    "wine, mean of a column 89": _panel(partial(real, name="wine"), add, 89, column=6, by=0.3),
    "digits, 7% eights 300": _panel(partial(real, name="digits", without=8), new_class, 300, name="digits", label=8, share=0.07),
    "tep, swapped in 10% 200": _panel(partial(real, name="tep"), swapped, 200, a=6, b=12, share=0.1),
    "higgs, half signal 200": _panel(partial(real, name="higgs", without=1), new_class, 200, name="higgs", label=1, share=0.5),
    "few: mean of all 10 4000 v 50": _panel(partial(normal, d=10), move, 4000, 50, by=0.15),
}
REPORTING = {
    "new group 3% 400": _panel(EIGHT, new_group, 400, share=0.03),
    "outliers in all columns 300": _panel(EIGHT, outliers, 300, share=0.04, factor=2),
    "new level 1.5% 700": _panel(mixed, relevel, 700, column="region", share=0.015, level="abroad"),
    "level mix of region 700": _panel(mixed, relevel, 700, column="region", share=0.1, level="east"),
    "share of member 700": _panel(mixed, relevel, 700, column="member", share=0.1, level=True),
    "mean of income 700": _panel(mixed, add, 700, column="income", by=0.08),
    "spread of balance 700": _panel(mixed, stretch, 700, column="balance", factor=1.22),
    "missing 0% to 1.5% 500": _panel(mixed, lose_values, 500, column="duration", share=0.015),
    "unit of 4% 400": _panel(mixed, unit, 400, column="income", share=0.04, factor=12.0),
    "heaped values 40% 500": _panel(mixed, rounded, 500, column="balance", to=1.0, share=0.4),
    "clipped at 80% of 12 200": _panel(TWELVE, clipped, 200, column=0, at=0.8),
    "sign flipped in 10% 500": _panel(PLANT, flipped, 500, column=2, share=0.1),
    "swapped in 40% 200": _panel(PLANT, swapped, 200, a=1, b=5, share=0.4),
    "one column of 12 200": _panel(TWELVE, add, 200, column=3, by=0.35),
    "two modes in one of 40 300": _panel(FORTY, shape, 300, column=5),
    "interaction 2500": _panel(mixed, driven, 2500, strength=0.35),
    "correlation in 40 columns 200": _panel(FORTY, correlated, 200, columns=40, rho=0.07),
    "t(3) in one of 8 400": _panel(EIGHT, heavier, 400, df=3, columns=1),
    "summer 200": _panel(seasons, _instead(seasons, winter=-0.35), 200),
    "wider resonance 500": _panel(decay, _instead(decay, width=0.06), 500),
    "spin of a resonance 500": _panel(decay, _instead(decay, angular=0.0), 500),
    "copula Clayton for Frank 200": _panel(partial(copula, family="frank"), _instead(copula, family="clayton"), 200),
    "copula Gumbel for normal 200": _panel(partial(copula, family="normal"), _instead(copula, family="gumbel"), 200),
    "higgs 50": _panel(partial(real, name="higgs", without=1), new_class, 50, name="higgs", label=1, share=1.0),
    "higgs 100": _panel(partial(real, name="higgs", without=1), new_class, 100, name="higgs", label=1, share=1.0),
    "wine, new class 15% 50": _panel(partial(real, name="wine", without=1), new_class, 50, name="wine", label=1, share=0.15),
    "cancer, clipped sensor 250": _panel(partial(real, name="cancer"), clipped, 250, column=4, at=0.85),
    "mnist, mirrored 20% 200": _panel(partial(real, name="mnist_7x7"), mirrored, 200, share=0.2, side=7),
    "tep, mean of a column 200": _panel(partial(real, name="tep"), add, 200, column=10, by=0.4),
    "few: new group 4000 v 100": _panel(EIGHT, new_group, 4000, 100, share=0.1),
    "few: mean of 12 mixed 4000 v 100": _panel(mixed, add, 4000, 100, column="score", by=0.25),
    "few: higgs 4000 v 50": _panel(partial(real, name="higgs", without=1), new_class, 4000, 50, name="higgs", label=1, share=1.0),
}
PRACTICE = {**CHOOSING, **REPORTING}
