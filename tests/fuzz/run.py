"""Every kind of case by its name."""

from __future__ import annotations

from importlib import import_module

from .cases import Found, faults_of

KINDS = ("frames", "files", "lines")


def faults(kind: str, first: int, end: int) -> list[Found]:
    """Return the faults among the cases from ``first`` up to ``end``."""
    module = import_module(f"fuzz.{kind}")
    if hasattr(module, "faults"):
        return list(module.faults(first, end))
    return faults_of(kind, module.check, range(first, end))
