"""Power of ``cp-full`` on images by what it sees: pixels, or coordinates fitted on the pool without looking at labels.

``python -m benchmarks.representations [DRAWS]`` writes ``results/representations.md``; resumable. A representation is a symmetric
function of the pooled rows (filters are random by one seed, whitened by all patches), so the level is exact.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial

import numpy as np
from scipy import linalg

from benchmarks import RESULTS
from benchmarks.draws import decisions, draw_study, finish, markdown
from cpmmd import two_sample_test
from experiments.data import draw_rows, load
from experiments.practice import mirrored

Images = np.ndarray
DRAWS = range(100, 200)
FILTERS, SIDE = 64, 5


def mnist(rng: np.random.Generator, n: int, label: int, share: float) -> tuple[Images, Images]:
    """Digits without one, against digits of which some are that one."""
    data = load("mnist")
    others, own = (data["images"][mask] / 255 for mask in (data["labels"] != label, data["labels"] == label))
    rows = draw_rows(rng, others, 2 * n)
    new = round(share * n)
    rows[n : n + new] = draw_rows(rng, own, new)
    return rows[:n, ..., None], rows[n:, ..., None]


def mnist_mirrored(rng: np.random.Generator, n: int, share: float) -> tuple[Images, Images]:
    """Digits, against digits of which some are mirrored."""
    rows = draw_rows(rng, load("mnist")["images"] / 255, 2 * n)
    turned = mirrored(rng, rows[n:].reshape(n, -1), share, rows.shape[1]).reshape(rows[n:].shape)
    return rows[:n, ..., None], turned[..., None]


def cifar(rng: np.random.Generator, n: int, label: int, share: float) -> tuple[Images, Images]:
    """Photographs without one class, against photographs of which some are of that class."""
    data = load("cifar10")
    others, own = (data["images"][mask] / 255 for mask in (data["labels"] != label, data["labels"] == label))
    rows = draw_rows(rng, others, 2 * n)
    new = round(share * n)
    rows[n : n + new] = draw_rows(rng, own, new)
    return rows[:n], rows[n:]


def pixels(images: Images) -> np.ndarray:
    """Every pixel."""
    return images.reshape(len(images), -1)


def components(rows: np.ndarray, count: int) -> np.ndarray:
    """Principal components of the pool."""
    centred = rows - rows.mean(axis=0)
    values, vectors = linalg.eigh(centred @ centred.T, subset_by_index=(len(rows) - count, len(rows) - 1))
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)))


def filtered(images: Images) -> np.ndarray:
    """Whitened patches of the pool as filters, rectified and averaged over the quarters of the image."""
    windows = np.lib.stride_tricks.sliding_window_view(images, (SIDE, SIDE), axis=(1, 2))[:, ::2, ::2]
    patches = windows.reshape(*windows.shape[:3], -1)
    patches = patches - patches.mean(axis=-1, keepdims=True)
    flat = patches.reshape(-1, patches.shape[-1])
    values, vectors = linalg.eigh(flat.T @ flat / len(flat))
    whiten = vectors / np.sqrt(values + 0.1 * values.mean())
    filters = np.random.default_rng(0).normal(size=(whiten.shape[1], FILTERS)) / np.sqrt(whiten.shape[1])
    responses = patches @ (whiten @ filters)
    rectified = np.concatenate([np.maximum(responses - 0.5, 0), np.maximum(-responses - 0.5, 0)], axis=-1)
    half = rectified.shape[1] // 2
    quarters = [
        rectified[:, a, b].mean(axis=(1, 2)) for a in (slice(half), slice(half, None)) for b in (slice(half), slice(half, None))
    ]
    return np.hstack(quarters)


REPRESENTATIONS: dict[str, Callable[[Images], np.ndarray]] = {
    "pixels": pixels,
    "20 components": lambda images: components(pixels(images), 20),
    "random filters": filtered,
    "20 components of filters": lambda images: components(filtered(images), 20),
}
PANELS = {
    "mnist, 15% eights, 150": partial(mnist, n=150, label=8, share=0.15),
    "mnist, 10% ones, 150": partial(mnist, n=150, label=1, share=0.1),
    "mnist, 15% mirrored, 200": partial(mnist_mirrored, n=200, share=0.15),
    "cifar, 30% horses, 200": partial(cifar, n=200, label=7, share=0.3),
    "cifar, 25% ships, 150": partial(cifar, n=150, label=8, share=0.25),
}


def represented(name: str, x: Images, y: Images, rng: np.random.Generator) -> float:
    """Return the p-value of ``cp-full`` on one representation of the pool."""
    rows = REPRESENTATIONS[name](np.concatenate([x, y]))
    return two_sample_test(rows[: len(x)], rows[len(x) :], rng=rng).pvalue


def main() -> None:
    """Run (or continue), write the table."""
    draws = range(DRAWS.start, DRAWS.start + int(sys.argv[1])) if len(sys.argv) > 1 else DRAWS
    methods = {name: partial(represented, name) for name in REPRESENTATIONS}
    found = decisions(finish(draw_study("representations", PANELS, methods, draws), "representations.jsonl", jobs=1))
    text = markdown(found, PANELS, methods)
    (RESULTS / "representations.md").write_text(text + "\n")
    print(text)


if __name__ == "__main__":
    main()
