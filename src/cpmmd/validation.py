"""Checks of scalar parameters, shared by the whole package."""

from __future__ import annotations

import math
import numbers
import re
from typing import Any

import numpy as np

from cpmmd.errors import InputError, unknown_name


def open_unit(name: str, value: object) -> float:
    """Give ``value`` as a float strictly between 0 and 1."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool) and 0 < float(value) < 1:
        return float(value)
    raise InputError(f"The '{name}' parameter must be a number strictly between 0 and 1. Got {value!r} instead.")


def whole(name: str, value: object, *, at_least: int, at_most: int | None = None) -> int:
    """Give ``value`` as an int within bounds."""
    whole_number = isinstance(value, numbers.Integral) and not isinstance(value, bool)
    if whole_number and value >= at_least and (at_most is None or value <= at_most):  # type: ignore[operator]
        return int(value)  # type: ignore[call-overload, no-any-return]
    bound = f"at least {at_least}" if at_most is None else f"from {at_least} to {at_most}"
    raise InputError(f"The '{name}' parameter must be a whole number, {bound}. Got {value!r} instead.")


def non_negative(name: str, value: object) -> float:
    """Give ``value`` as a finite float that is not below zero."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and number >= 0:
            return number
    raise InputError(f"The '{name}' parameter must be a finite number >= 0. Got {value!r} instead.")


def positive(name: str, value: object) -> float:
    """Give ``value`` as a finite float above zero."""
    if isinstance(value, numbers.Real) and not isinstance(value, bool):
        number = float(value)
        if math.isfinite(number) and number > 0:
            return number
    raise InputError(f"The '{name}' parameter must be a finite number > 0. Got {value!r} instead.")


def one_of(name: str, value: object, known: tuple[str, ...]) -> str:
    """Give ``value`` when it is one of the known option names."""
    if isinstance(value, str) and value in known:
        return value
    raise unknown_name(f"value of '{name}':", value, known)


def scale(value: object) -> None:
    """Refuse anything but None and the known ways of scaling columns."""
    if value is not None:
        one_of("scale", value, ("standard",))


def permutations_needed(alpha: float) -> int:
    """Smallest number of permutations with which p <= alpha can happen at all."""
    return math.ceil(1 / alpha - 1e-9) - 1


def permutation_count(n_permutations: object, alpha: float) -> int:
    """Give the number of permutations, refused when it could never reject at ``alpha``."""
    count = whole("n_permutations", n_permutations, at_least=1)
    needed = permutations_needed(alpha)
    if count < needed:
        raise InputError(
            f"The smallest p-value of {count} permutations is 1/{count + 1}, above alpha={alpha:g}: the test could "
            f"never reject. Use n_permutations={needed} or more (999 is the default)."
        )
    return count


UNITS = {
    **{"": 1, "k": 10**3, "m": 10**6, "g": 10**9, "t": 10**12},
    "b": 1,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
    "kib": 2**10,
    "mib": 2**20,
    "gib": 2**30,
    "tib": 2**40,
}


def byte_count(name: str, value: object) -> int:
    """Give a number of bytes from a number or from text such as "2GB"."""
    if isinstance(value, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d+)?)\s*([a-zA-Z]*)\s*", value)
        if found and found[2].lower() in UNITS and float(found[1]) > 0:
            return int(float(found[1]) * UNITS[found[2].lower()])
    elif isinstance(value, numbers.Integral) and not isinstance(value, bool) and int(value) > 0:
        return int(value)
    raise InputError(
        f"The '{name}' parameter must be a number of bytes above 0, or text such as '500MB' or '2GB'. Got {value!r}."
    )


def generator(rng: Any) -> tuple[int | None, np.random.Generator]:
    """Give the seed that repeats the draws (None where there is none) and the generator."""
    if isinstance(rng, np.random.Generator):
        return None, rng
    if rng is None:
        rng = int(np.random.SeedSequence().generate_state(1)[0])  # short enough to type again
    try:
        return (int(rng) if isinstance(rng, (int, np.integer)) else None), np.random.default_rng(rng)
    except (TypeError, ValueError) as error:
        raise InputError(f"The 'rng' parameter must be a seed >= 0, a numpy Generator or None. Got {rng!r} instead.") from error
