"""The panels every method is compared on: name -> generator of two samples."""

from __future__ import annotations

from functools import partial

import numpy as np

from experiments.data import pairs

Pair = tuple[np.ndarray, np.ndarray]
JET_PHI = [7, 11, 15, 19]


def mixture(rng: np.random.Generator, n: int, shift: float, n_y: int | None = None) -> Pair:
    """Two tight 2-D modes at distance 3, both moved by ``shift`` (the paper's linear panel)."""

    def sample(rows: int, moved: float) -> np.ndarray:
        modes = 3.0 * rng.integers(0, 2, rows)
        return 0.1 * rng.normal(size=(rows, 2)) + np.column_stack([modes + moved, np.zeros(rows)])

    return sample(n, 0.0), sample(n_y or n, shift)


def kurtosis(rng: np.random.Generator, n: int, df: float, d: int = 10) -> Pair:
    """Gaussian against a Student t of the same covariance (the paper's polynomial panel)."""
    t = rng.normal(size=(n, d)) / np.sqrt(rng.chisquare(df, size=(n, 1)) / df)
    return rng.normal(size=(n, d)), t * np.sqrt((df - 2) / df)


def mean_shift(rng: np.random.Generator, n: int, d: int, shift: float, n_y: int | None = None) -> Pair:
    """N(0, I) against N(shift 1, I): all coordinates moved (the paper's HDGM)."""
    return rng.normal(size=(n, d)), rng.normal(shift, 1, size=(n_y or n, d))


def scale_change(rng: np.random.Generator, n: int, d: int, factor: float, n_y: int | None = None) -> Pair:
    """All standard deviations multiplied."""
    return rng.normal(size=(n, d)), factor * rng.normal(size=(n_y or n, d))


def one_coordinate(rng: np.random.Generator, n: int, d: int, shift: float) -> Pair:
    """One coordinate of many moved."""
    x, y = rng.normal(size=(2, n, d))
    y[:, 0] += shift
    return x, y


def correlation(rng: np.random.Generator, n: int, d: int, rho: float) -> Pair:
    """Pairs of coordinates correlated, marginals equal."""
    x, y = rng.normal(size=(2, n, d))
    half = d // 2
    y[:, half:] = rho * y[:, :half] + np.sqrt(1 - rho**2) * y[:, half:]
    return x, y


def marginals(rng: np.random.Generator, n: int, d: int) -> Pair:
    """Gaussian against uniform marginals of the same variance."""
    return rng.normal(size=(n, d)), rng.uniform(-np.sqrt(3), np.sqrt(3), size=(n, d))


def blobs(rng: np.random.Generator, n: int, ratio: float = 6.0) -> Pair:
    """A 3 x 3 grid of blobs; in Q each is stretched along the diagonal."""

    def sample(stretch: float) -> np.ndarray:
        noise = rng.normal(size=(n, 2)) * np.sqrt([stretch, 1.0])
        turned = noise @ (np.array([[1.0, 1.0], [-1.0, 1.0]]) / np.sqrt(2))
        return 10.0 * rng.integers(0, 3, size=(n, 2)) + turned

    return sample(1.0), sample(ratio)


PANELS = {
    "mixture .05 n=200": partial(mixture, n=200, shift=0.05),
    "mixture .10 n=200": partial(mixture, n=200, shift=0.10),
    "kurtosis df=20 n=500": partial(kurtosis, n=500, df=20),
    "kurtosis df=12 n=500": partial(kurtosis, n=500, df=12),
    "higgs n=100": partial(pairs.higgs, n=100),
    "higgs n=200": partial(pairs.higgs, n=200),
    "higgs jet phi n=1000": partial(pairs.higgs, n=1000, columns=JET_PHI),
    "mean d=2 n=100": partial(mean_shift, n=100, d=2, shift=0.25),
    "mean d=20 n=75": partial(mean_shift, n=75, d=20, shift=0.13),
    "mean d=50 n=50": partial(mean_shift, n=50, d=50, shift=0.13),
    "scale d=10 n=100": partial(scale_change, n=100, d=10, factor=1.13),
    "one of 50 n=100": partial(one_coordinate, n=100, d=50, shift=0.9),
    "correlation d=6 n=200": partial(correlation, n=200, d=6, rho=0.45),
    "marginals d=5 n=200": partial(marginals, n=200, d=5),
    "mnist Q1 n=60": partial(pairs.mnist_subset, n=60, q=1),
    "mnist Q2 n=80": partial(pairs.mnist_subset, n=80, q=2),
    "mnist Q3 n=100": partial(pairs.mnist_subset, n=100, q=3),
    "mnist Q4 n=150": partial(pairs.mnist_subset, n=150, q=4),
    "mnist Q5 n=300": partial(pairs.mnist_subset, n=300, q=5),
    "tep fault 3 n=200": partial(pairs.tep, n=200, fault=3),
    "tep fault 9 n=200": partial(pairs.tep, n=200, fault=9),
    "tep fault 15 n=200": partial(pairs.tep, n=200, fault=15),
    "blobs n=200": partial(blobs, n=200),
    "mixture .05 200 v 600": partial(mixture, n=200, shift=0.05, n_y=600),
    "higgs 100 v 400": partial(pairs.higgs, n=100, n_y=400),
    "scale d=10 60 v 300": partial(scale_change, n=60, d=10, factor=1.13, n_y=300),
}
