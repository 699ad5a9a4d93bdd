"""Checks of scalar parameters, shared by the whole package."""

from __future__ import annotations

import math
import numbers
import re
from collections.abc import Sequence

from cpmmd.core.parallel import available_cores
from cpmmd.core.text import pluralize
from cpmmd.errors import InputError, ParameterReference, unknown_name


def wrong(name: str, rule: str, got: object) -> InputError:
    """Return the error for a parameter that breaks a rule."""
    return InputError("{parameter} {rule}. Got {got!r} instead.", parameter=name, rule=rule, got=got)


def open_unit(name: str, value: object) -> float:
    """Return ``value`` as a float strictly between 0 and 1."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < 1:
        return float(value)
    raise wrong(name, "must be a number strictly between 0 and 1", value)


def whole(name: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """Return ``value`` as an int within bounds."""
    if isinstance(value, numbers.Integral) and not isinstance(value, bool):
        number = int(value)
        if number >= at_least and (at_most is None or number <= at_most):
            return number
    bound = f"at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
    raise wrong(name, f"must be a whole number, {bound}", value)


def positive(name: str, value: object, *, or_zero: bool = False) -> float:
    """Return ``value`` as a finite float above zero, or not below it."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and (number > 0 or (or_zero and number == 0)):
            return number
    raise wrong(name, f"must be a finite number {'>=' if or_zero else '>'} 0", value)


def gammas(values: object) -> tuple[float, ...]:
    """Check spectral parameters: none, one or several positive numbers."""
    listed = values if isinstance(values, Sequence) else (values,)
    return tuple(positive("gammas", value) for value in listed)


def one_of(name: str, value: object, known: tuple[str, ...]) -> str:
    """Return ``value`` when it is one of the known option names."""
    if isinstance(value, str) and value in known:
        return value
    raise unknown_name("value", value, known, parameter=name)


def two_names(name: str, value: object) -> tuple[str, str]:
    """Return ``value`` as two different texts."""
    match value:
        case [str(first), str(second)] if first != second:
            return first, second
    raise wrong(name, "must be two different strings", value)


def scale(value: object) -> None:
    """Refuse anything but None and the known ways of scaling columns."""
    if value is not None:
        one_of("scale", value, ("standard",))


def permutations_needed(alpha: float) -> int:
    """Smallest number of permutations with which p <= alpha can happen at all."""
    return math.ceil(1 / alpha - 1e-9) - 1


def permutations_among(alpha: float, tests: int) -> int:
    """Return twice the permutations that p <= alpha / tests takes: one small p-value is found even if one permutation ties."""
    return 2 * (permutations_needed(alpha / tests) + 1) - 1


def permutation_count(n_permutations: object, alpha: float | None) -> int:
    """Return the number of permutations, refused when it could never reject at ``alpha``; None where no single test decides."""
    count = whole("n_permutations", n_permutations, at_least=1)
    if alpha is not None and count < (needed := permutations_needed(alpha)):
        raise InputError(
            "The test can never reject: the smallest p-value of {count} is 1/{total}, above {level}. Use {more} "
            "or more (999 is the default).",
            count=pluralize(count, "permutation"),
            total=count + 1,
            level=ParameterReference("alpha", alpha),
            more=ParameterReference("n_permutations", needed),
        )
    return count


UNITS = {
    **{"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12},
    **{"b": 1, "kb": 10**3, "mb": 10**6, "gb": 10**9, "tb": 10**12},
    **{"kib": 2**10, "mib": 2**20, "gib": 2**30, "tib": 2**40},
}


def byte_count(name: str, value: object) -> int:
    """Return a number of bytes from a number or from text such as "2GB"."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", value)
        if found and found[2].lower() in UNITS and float(found[1]) > 0:
            return int(float(found[1]) * UNITS[found[2].lower()])
    elif isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) > 0:
        return int(value)
    raise wrong(name, "must be a number of bytes above 0, or text such as '500MB' or '2GB'", value)


def jobs(n_jobs: object) -> int | None:
    """Return the number of workers: a whole number from 1 on, or -1 for all cores, -2 for all but one, and so on; None stays."""
    if n_jobs is None:
        return None
    if not isinstance(n_jobs, numbers.Integral) or isinstance(n_jobs, bool) or n_jobs == 0:
        raise wrong("n_jobs", "must be a whole number, 1 or more, -1 for all cores, or None", n_jobs)
    count = int(n_jobs)
    return count if count > 0 else max(1, available_cores() + 1 + count)


MISSING = ("error", "drop", "impute")


def missing(value: object) -> str:
    """Return the way of dealing with missing values when it is a known one."""
    return one_of("missing", value, MISSING)
