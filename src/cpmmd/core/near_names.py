"""Hints for attributes that people type first and that are called something else here."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, ClassVar

ATTRIBUTES = {
    **dict.fromkeys(("p", "p_value", "pval", "p_val"), "pvalue"),
    **dict.fromkeys(("stat", "test_statistic", "mmd"), "statistic"),
    **dict.fromkeys(("significant", "rejected", "is_drift", "decision"), "reject"),
}


class NearNames:
    """An answer that says which attribute is meant by a name that it does not have."""

    near_names: ClassVar[Mapping[str, str]] = ATTRIBUTES  # an attribute by each name that people try instead

    if not TYPE_CHECKING:  # a type checker should still find unknown names

        def __getattr__(self, name):
            meant = self.near_names.get(name)
            hint = "" if meant is None else f" Use .{meant} instead."
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.{hint}")
