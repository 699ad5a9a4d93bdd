"""Hints for names that people type first: attributes and keyword arguments that are called something else here."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import wraps
from inspect import signature
from typing import TYPE_CHECKING, Any, ClassVar, ParamSpec, TypeVar

from cpmmd.errors import nearest

P = ParamSpec("P")
R = TypeVar("R")
ATTRIBUTES = {
    **dict.fromkeys(("p", "p_value", "pval", "p_val"), "pvalue"),
    **dict.fromkeys(("stat", "test_statistic", "mmd"), "statistic"),
    **dict.fromkeys(("significant", "rejected", "is_drift", "decision"), "reject"),
}
KEYWORDS = {
    **dict.fromkeys(("seed", "random_state", "random_seed"), "rng"),
    **dict.fromkeys(("n_resamples", "permutations", "num_permutations", "n_perm"), "n_permutations"),
    **dict.fromkeys(("level", "significance_level"), "alpha"),
    **dict.fromkeys(("n_threads", "num_threads", "workers"), "n_jobs"),
    **dict.fromkeys(("kernel", "test"), "method"),
    **dict.fromkeys(("clusters", "cluster"), "groups"),
    **dict.fromkeys(("stratify", "stratum"), "strata"),
    **dict.fromkeys(("paired", "pair"), "pairs"),
}


class NearNames:
    """An answer that says which attribute is meant by a name that it does not have."""

    near_names: ClassVar[Mapping[str, str]] = ATTRIBUTES  # an attribute by each name that people try instead

    if not TYPE_CHECKING:  # a type checker should still find unknown names

        def __getattr__(self, name):
            meant = self.near_names.get(name)
            hint = "" if meant is None else f" Use .{meant} instead."
            raise AttributeError(f"{type(self).__name__} has no attribute {name!r}.{hint}")


def hint_keywords(function: Callable[P, R]) -> Callable[P, R]:
    """Let an unknown keyword argument name the one that is meant."""
    known = signature(function).parameters

    @wraps(function)
    def call(*args: P.args, **options: P.kwargs) -> R:
        for name in options:
            if name not in known:
                raise unknown_keyword(function.__name__, name, known)
        return function(*args, **options)

    return call


def unknown_keyword(function: str, name: str, known: Mapping[str, Any]) -> TypeError:
    """Return the error for a keyword argument that a function does not have."""
    meant = KEYWORDS.get(name)
    meant = meant if meant in known else nearest(name, known)
    hint = "" if meant is None else f" Use {meant}= instead."
    return TypeError(f"{function}() got an unexpected keyword argument {name!r}.{hint}")
