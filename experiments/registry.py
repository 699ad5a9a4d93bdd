"""All experiments by id, in the paper's order."""

from __future__ import annotations

from importlib import import_module

from cpmmd.errors import unknown_name
from experiments.base import Experiment

MODULES = {
    "richness": "richness",
    "linear": "linear",
    "polynomial": "polynomial",
    "deep": "deep",
    "higgs": "higgs",
    "cost": "cost",
    "collapse": "collapse",
    "c1-ablation": "c1_ablation",
    "c1-width": "c1_width",
    "c1-shift": "c1_shift",
    "c1-ncal": "c1_ncal",
    "factorial": "factorial",
    "tep": "tep",
    "cifar": "cifar",
    "rates": "rates",
    "false-selection": "false_selection",
    "c1-target": "c1_target",
    "c1-target-deep": "c1_target_deep",
    "complexity": "complexity",
    "polynomial-rows": "polynomial_rows",
    "polynomial-halves": "polynomial_halves",
    "higgs-rows": "higgs_rows",
    "collapse-variance": "collapse_variance",
    "deep-start": "deep_start",
    "mixture-start": "mixture_start",
    "higgs-start": "higgs_start",
}


def find(name: str) -> Experiment:
    """Return one experiment."""
    if name not in MODULES:
        raise unknown_name("experiment", name, MODULES)
    found: Experiment = import_module(f"experiments.artefacts.{MODULES[name]}").EXPERIMENT
    return found
