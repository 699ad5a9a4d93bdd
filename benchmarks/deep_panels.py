"""Deep tests across widths, on Higgs events and on digit images; and variance collapse under the null."""

from __future__ import annotations

import argparse
import csv
from functools import partial

import numpy as np
import torch
from joblib import Parallel, delayed
from sklearn.datasets import load_digits
from torch import nn

from benchmarks import RESULTS
from benchmarks.deep_power import CRITERIA, SHIFT, make
from benchmarks.draws import decisions, draw_study, finish, markdown
from cpmmd import Ascent, ComplexityPenalized, Deep, Plain, Ratio, SplitTest, two_sample_test
from cpmmd.data.preparation import PreparedPool
from cpmmd.selection.ascent import AscentSelector
from experiments.data import pairs
from experiments.panels import mean_shift

WIDTHS = (50, 100, 200, 500, 1000)


def widths(count: int) -> None:
    """D = 50, n = 100, shift 0.5: cp-deep at each width, C1 from width 200 from 500 on."""
    panels = {"d=50 n=100": partial(mean_shift, n=100, d=50, shift=SHIFT)}
    methods = {f"width {w}": make("torch", ComplexityPenalized, w) for w in WIDTHS}
    study = draw_study("deep widths", panels, methods, count, {"n_permutations": 200})
    print(markdown(decisions(finish(study, "deep_widths.jsonl")), panels, methods))


def higgs(count: int) -> None:
    """Background against signal, 500 events each, standardised by training statistics."""
    panels = {"higgs n=500": partial(pairs.higgs, n=500)}
    methods = {name: make("torch", criterion) for name, criterion in CRITERIA.items()}
    study = draw_study("deep higgs", panels, methods, count, {"n_permutations": 200, "scale": "standard"})
    print(markdown(decisions(finish(study, "deep_higgs.jsonl")), panels, methods))


def digits(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray]:
    """Digits {3, 8} against {3, 8, 9} as 1 x 8 x 8 images, each rolled to a random place of its frame."""
    images, labels = load_digits(return_X_y=True)
    shaped = (images / 16).reshape(-1, 1, 8, 8)
    first, second = np.flatnonzero(np.isin(labels, [3, 8])), np.flatnonzero(np.isin(labels, [3, 8, 9]))
    x = rng.choice(first, n, replace=False)
    y = rng.choice(np.setdiff1d(second, x), n, replace=False)
    rolls = rng.integers(0, 8, size=(2 * n, 2))
    moved = np.array([np.roll(shaped[row], roll, axis=(1, 2)) for row, roll in zip(np.r_[x, y], rolls, strict=True)])
    return moved[:n], moved[n:]


def convolution(c1: float | None) -> SplitTest:
    """A small convolutional network that pools over the frame, trained by CP-MMD."""
    torch.manual_seed(0)
    net = nn.Sequential(
        nn.Conv2d(1, 16, 3, padding=1), nn.LeakyReLU(), nn.Conv2d(16, 32, 3, padding=1), nn.LeakyReLU(),
        nn.AdaptiveMaxPool2d(1), nn.Flatten(), nn.Linear(32, 10),
    )  # fmt: skip
    return SplitTest(Deep(module=net), ComplexityPenalized(c1=c1))


def images(count: int) -> None:
    """A convolutional module against a raw bandwidth at the same n."""
    panels = {"rolled digits n=160": partial(digits, n=160)}
    methods = {
        "cp-deep (convolution, C1 = 0.03)": convolution(0.03),
        "cp-deep (convolution, C1 calibrated)": convolution(None),
        "cp-linear": "cp-linear",
        "plain-linear": "plain-linear",
    }
    study = draw_study("deep images", panels, methods, count, {"n_permutations": 200})
    print(markdown(decisions(finish(study, "deep_images.jsonl")), panels, methods))


def collapse(seeds: int) -> None:
    """Under H0 (d = 10, n = 200): 200 steps of the ratio criterion, and of CP and plain ascent, for four widths."""
    runs = Parallel(n_jobs=2)(
        delayed(_collapse_run)(w, s, i) for i in ("kaiming", "torch") for w in (10, 50, 200, 400) for s in range(seeds)
    )
    with (RESULTS / "collapse.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, runs[0].keys())
        writer.writeheader()
        writer.writerows(runs)
    for init in ("kaiming", "torch"):
        for width in (10, 50, 200, 400):
            here = [r for r in runs if r["width"] == width and r["init"] == init]
            fallen = [r for r in here if r["collapsed"]]
            worst = max((r["j_cp"] for r in fallen), default=float("nan"))
            means = {
                name: np.mean([r[name] for r in here])
                for name in ("ratio", "pi_cp_100", "pi_cp_200", "pi_plain_100", "pi_plain_200")
            }
            print(
                f"{init} width {width}: {len(fallen)}/{len(here)} collapsed, largest J_CP of those {worst:.3g}, mean ratio "
                f"{means['ratio']:.3g}; Pi at steps 100 and 200 under CP {means['pi_cp_100']:.3g} {means['pi_cp_200']:.3g}, "
                f"under plain {means['pi_plain_100']:.3g} {means['pi_plain_200']:.3g}"
            )


def _collapse_run(width: int, seed: int, init: str) -> dict[str, float | bool | str]:
    torch.set_num_threads(1)
    rng = np.random.default_rng([9, width, seed])
    train = PreparedPool(rng.normal(size=(400, 10)), 200)
    selector = AscentSelector(Deep(width=width, init=init), Ascent(steps=200))
    ratio = selector.select(train, Ratio(), np.random.default_rng(seed))
    c1 = 0.01  # of the order the paper reports
    penalised = selector.select(train, ComplexityPenalized(c1=c1), np.random.default_rng(seed))
    plain = selector.select(train, Plain(), np.random.default_rng(seed))
    assert ratio.collapse is not None
    pi_cp, pi_plain = penalised.path.spectral_product, plain.path.spectral_product
    return {
        "init": init,
        "width": width,
        "seed": seed,
        "collapsed": ratio.collapse.flagged,
        "ratio": ratio.collapse.ratio,
        "mmd2": float(ratio.collapse.mmd2),
        "tau": ratio.collapse.tau,
        "j_cp": float(ratio.path.mmd2[-1] - c1 * ratio.path.complexity[-1]),
        "pi_cp_100": float(pi_cp[min(100, len(pi_cp) - 1)]),
        "pi_cp_200": float(pi_cp[-1]),
        "pi_plain_100": float(pi_plain[min(100, len(pi_plain) - 1)]),
        "pi_plain_200": float(pi_plain[-1]),
    }


def calibration(seeds: int) -> None:
    """C1-hat at full width across widths, and plain against self-consistent calibration (d = 50, n = 100, shift 0.5)."""
    cells = [(init, width, "plain") for init in ("torch", "kaiming") for width in WIDTHS]
    cells += [(init, 200, "self-consistent") for init in ("torch", "kaiming")]
    runs = Parallel(n_jobs=2)(delayed(_calibrate)(*cell, seed) for cell in cells for seed in range(seeds))
    for position, (init, width, kind) in enumerate(cells):
        c1 = np.array([value for value, _ in runs[position * seeds : (position + 1) * seeds]])
        rejected = np.mean([hit for _, hit in runs[position * seeds : (position + 1) * seeds]])
        print(f"{init} width {width} {kind}: C1 {c1.mean():.4g} (from {c1.min():.4g} to {c1.max():.4g}), power {rejected:.2f}")


def _calibrate(init: str, width: int, kind: str, seed: int) -> tuple[float, bool]:
    torch.set_num_threads(1)
    x, y = mean_shift(np.random.default_rng([5, seed]), n=100, d=50, shift=SHIFT)
    kernel = Deep(width=width, init=init, surrogate_width=None)
    test = SplitTest(kernel, ComplexityPenalized(calibration=kind))
    result = two_sample_test(x, y, method=test, rng=seed, n_permutations=200)
    assert result.calibration is not None
    return result.calibration.c1, result.reject


PARTS = {"calibration": calibration, "widths": widths, "higgs": higgs, "images": images, "collapse": collapse}

if __name__ == "__main__":
    arguments = argparse.ArgumentParser(description=__doc__)
    arguments.add_argument("part", choices=PARTS)
    arguments.add_argument("--repetitions", type=int, default=30)
    chosen = arguments.parse_args()
    PARTS[chosen.part](chosen.repetitions)
