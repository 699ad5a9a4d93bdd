"""Public names that need an optional package: imported when asked for, with an error that says what to install."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from cpmmd.errors import missing_extra

# name -> (module, package it needs, extra that installs the package)
LAZY = {
    "Deep": ("cpmmd.kernels.deep", "torch", "deep"),
    "Mixture": ("cpmmd.kernels.mixture", "torch", "deep"),
}


def load(name: str) -> Any:
    """Give the object behind a lazy public name."""
    module, package, extra = LAZY[name]
    try:
        return getattr(import_module(module), name)
    except ImportError as error:
        if getattr(error, "name", None) == package:
            raise missing_extra(name, package, extra) from error
        raise
