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


def four_modes(rng: np.random.Generator, n: int, deviation: float) -> Pair:
    """Four Gaussians at (+-20, +-20); in Y the fourth has another deviation (MMD-FUSE's mixture)."""
    centres = np.array([[20.0, 20.0], [20.0, -20.0], [-20.0, 20.0], [-20.0, -20.0]])

    def sample(last: float) -> np.ndarray:
        modes = rng.integers(0, 4, n)
        return centres[modes] + np.where(modes == 3, last, 1.0)[:, None] * rng.normal(size=(n, 2))

    return sample(1.0), sample(deviation)


def perturbed_uniform(rng: np.random.Generator, n: int, d: int, amplitude: float, bumps: int = 2) -> Pair:
    """Uniform on the unit cube against one with bumps of random sign (MMDAgg's and MMD-FUSE's)."""
    signs = rng.choice([-1.0, 1.0], size=(bumps,) * d)

    def density(x: np.ndarray) -> np.ndarray:
        heights = np.array([_bump(bumps * x - j) for j in range(1, bumps + 1)])  # bump, row, column
        total = np.zeros(len(x))
        for place in np.ndindex(signs.shape):
            total += signs[place] * np.prod([heights[j, :, column] for column, j in enumerate(place)], axis=0)
        return 1 + amplitude * np.e**d * total

    kept: list[np.ndarray] = []
    while sum(map(len, kept)) < n:
        x = rng.random((4 * n, d))
        kept.append(x[2 * rng.random(4 * n) < density(x)])
    return rng.random((n, d)), np.concatenate(kept)[:n]


def _bump(u: np.ndarray) -> np.ndarray:
    """exp(-1/(1-(4u+3)^2)) on (-1, -1/2), minus exp(-1/(1-(4u+1)^2)) on (-1/2, 0), else 0."""
    out = np.zeros_like(u)
    for sign, shift, inside in ((1.0, 3.0, (u > -1) & (u < -0.5)), (-1.0, 1.0, (u > -0.5) & (u < 0))):
        out[inside] = sign * np.exp(-1 / (1 - (4 * u[inside] + shift) ** 2))
    return out


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

# As published: panel -> generator, and what the peers' papers print for it.
PUBLISHED = {
    **{f"four modes {s:g} n=500": partial(four_modes, n=500, deviation=s) for s in (0.5, 0.6, 0.7, 0.8, 1.4, 1.6, 1.8)},
    **{f"uniform d=1 a={a:g} n=500": partial(perturbed_uniform, n=500, d=1, amplitude=a) for a in (0.3, 0.4, 0.5)},
    **{f"uniform d=2 a={a:g} n=500": partial(perturbed_uniform, n=500, d=2, amplitude=a) for a in (0.6, 0.8)},
    **{
        f"uniform d=1 {p} bumps n=500": partial(perturbed_uniform, n=500, d=1, amplitude=2.7 / (p * np.e), bumps=p)
        for p in (2, 3, 4)
    },
    **{f"mnist Q{q} n=500": partial(pairs.mnist_subset, n=500, q=q) for q in (1, 2, 3, 4, 5)},
}
FUSE_PAPER = [name for name in PUBLISHED if name.startswith("four") or " a=" in name]
AGG_PAPER = [name for name in PUBLISHED if name not in FUSE_PAPER]
PRINTED = {
    "MMD-FUSE": dict(
        zip(FUSE_PAPER, (0.995, 0.945, 0.51, 0.135, 0.235, 0.635, 0.84, 0.505, 0.825, 0.975, 0.485, 0.885), strict=True)
    ),
    "MMDAgg": {
        **dict(zip(FUSE_PAPER, (0.995, 0.915, 0.46, 0.12, 0.25, 0.675, 0.91, 0.605, 0.88, 0.985, 0.395, 0.83), strict=True)),
        **dict(zip(AGG_PAPER, (0.988, 0.602, 0.228, 1.0, 1.0, 0.996, 0.89, 0.248), strict=True)),
    },
    "ACTT": dict(
        zip(FUSE_PAPER, (0.975, 0.835, 0.30, 0.095, 0.165, 0.415, 0.615, 0.415, 0.725, 0.94, 0.305, 0.725), strict=True)
    ),
    "AutoML": dict(zip(AGG_PAPER, (0.794, 0.344, 0.154, 1.0, 1.0, 0.992, 0.934, 0.312), strict=True)),
}
