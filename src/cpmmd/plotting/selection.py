"""How the kernel was chosen: the criterion over bandwidths, and the course of training."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from cpmmd.errors import InputError
from cpmmd.plotting.style import BLUE, CURVES, GREY, ORANGE, PURPLE, axes, legend, text
from cpmmd.results import TestResult
from cpmmd.samples import Array

if TYPE_CHECKING:
    from matplotlib.axes import Axes

SAME_SCALE = 5.0  # a criterion that is more times larger than the squared MMD gets the other axis


def criterion_path(result: TestResult, *, ax: Axes | None = None) -> Axes:
    """Draw the criterion over bandwidths with its penalty: the split tests' J, or the full-sample test's scores.

    Examples
    --------
    >>> import numpy as np
    >>> from matplotlib.figure import Figure
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> result = two_sample_test(data.normal(size=(40, 2)), data.normal(1, 1, size=(50, 2)), method="cp-linear", rng=0)
    >>> criterion_path(result, ax=Figure().subplots()).get_xscale()
    'log'
    """
    if result.selection is not None and "sigma" in result.selection.path:
        return _split_path(result, axes(ax))
    if any(entry.get("sigma") for entry in result.details.get("path", ())):
        return _class_paths(result.details["path"], result.details["selected"]["class"], axes(ax))
    raise InputError(
        f"A criterion path needs a test that searches bandwidths: cp-full, or a split test of Bandwidth or Polynomial. Got "
        f"{text(result.method)}; trained kernels have a training_history, others choose nothing."
    )


def _split_path(result: TestResult, ax: Axes) -> Axes:
    assert result.selection is not None
    path = {name: values[np.argsort(result.selection.path["sigma"])] for name, values in result.selection.path.items()}
    sigma, penalty = path["sigma"], _penalty(path)
    ax.plot(sigma, path["criterion"], color=BLUE, marker="o", markersize=3, label="criterion")
    if not np.allclose(path["criterion"], path["mmd2"]):
        ax.plot(sigma, path["mmd2"], color=ORANGE, linestyle="--", label="squared MMD")
    if penalty is not None:
        ax.plot(sigma, penalty, color=PURPLE, linestyle=":", linewidth=2, label="complexity penalty")
        _cut_below(ax, path)
    best = int(np.argmax(path["criterion"]))
    ax.plot(sigma[best], path["criterion"][best], color=BLUE, marker="*", markersize=14, linestyle="none", label="chosen")
    ax.axhline(0, color=GREY, linewidth=0.8)
    ax.set_xscale("log")
    ax.set_xlabel("bandwidth")
    ax.set_ylabel("value on the training half")
    legend(ax)
    return ax


def _penalty(path: Mapping[str, Array]) -> Array | None:
    """Give C1 G where the criterion is MMD2 - C1 G, None where it is something else."""
    penalty, complexity = path["mmd2"] - path["criterion"], path["complexity"]
    c1 = float(penalty @ complexity / max(float(complexity @ complexity), np.finfo(float).tiny))
    scale = float(np.abs(path["mmd2"]).max())
    return penalty if c1 > 0 and np.allclose(penalty, c1 * complexity, rtol=1e-3, atol=1e-6 * scale) else None


def _cut_below(ax: Axes, path: Mapping[str, Array]) -> None:
    """Keep to what competes: at the narrowest bandwidths the penalty is many times anything else."""
    top = max(float(path["mmd2"].max()), float(path["criterion"].max()), np.finfo(float).tiny)
    ax.set_ylim(-1.2 * top, 1.5 * top)


def _class_paths(paths: Sequence[Mapping[str, Any]], chosen: str, ax: Axes) -> Axes:
    for entry, (colour, line, marker) in zip(paths, CURVES, strict=False):
        sigma, score = np.array(entry["sigma"]), np.array(entry["score"])
        if not len(sigma):  # a fixed kernel: a level, no path
            ax.axhline(score[0], color=colour, linestyle=line, label=_class_name(entry["class"]))
            continue
        ax.plot(sigma, score, color=colour, linestyle=line, marker=marker, markersize=4, label=_class_name(entry["class"]))
        ends, level = [sigma.min(), sigma.max()], [entry["penalty"]] * 2
        ax.plot(ends, level, color=colour, linestyle=":", linewidth=2, marker=marker, markersize=4)
        if entry["class"] == chosen:
            best = int(np.argmax(score))
            ax.plot(sigma[best], score[best], color=colour, marker="*", markersize=14, linestyle="none", label="chosen")
    ax.plot([], [], color=GREY, linestyle=":", linewidth=2, label="complexity of the class")
    ax.set_xscale("log")
    ax.set_xlabel("bandwidth (each class in its own units)")
    ax.set_ylabel("evidence, -log p")
    legend(ax)
    return ax


def _class_name(described: str) -> str:
    """Give a class in few words: "Bandwidth(base='gaussian') on raw coordinates" is "gaussian on raw"."""
    found = re.match(r"(\w+)\((?:degree=(\d+), )?(?:base='(\w+)')?\) on (\w+) coordinates$", described)
    if found is None:
        return text(described)
    family, degree, base, scale = found.groups()
    kernel = base if family == "Bandwidth" else family.lower() + (f" of degree {degree}" if degree else "")
    return f"{kernel} on {scale}"


def training_history(result: TestResult, *, ax: Axes | None = None) -> Axes:
    """Draw criterion, squared MMD and spectral product over the steps of training; the product has the axis on the right."""
    if result.selection is None or "step" not in result.selection.path:
        raise InputError(
            f"A training history needs a trained kernel, as cp-deep or liu have. Got {text(result.method)}; see criterion_path."
        )
    ax, path = axes(ax), result.selection.path
    right, step = ax.twinx(), path["step"]
    right.patch.set_alpha(0.0)
    comparable = np.nanmax(np.abs(path["criterion"])) <= SAME_SCALE * np.nanmax(np.abs(path["mmd2"]))
    lines = (ax if comparable else right).plot(step, path["criterion"], color=BLUE, label="criterion")
    lines += ax.plot(step, path["mmd2"], color=ORANGE, linestyle="--", label="squared MMD")
    lines += right.plot(step, path["spectral_product"], color=PURPLE, linestyle="-.", label="spectral product (right)")
    best = int(np.nanargmax(path["criterion"]))
    lines.append(ax.axvline(step[best], color=GREY, linestyle=":", label="chosen step"))
    if not comparable:
        lines[0].set_label("criterion (right)")
    ax.set_xlabel("step of training")
    ax.set_ylabel("value on the training half" if comparable else "squared MMD")
    right.set_ylabel("spectral product" if comparable else "criterion, spectral product")
    legend(ax, handles=lines)
    return ax
