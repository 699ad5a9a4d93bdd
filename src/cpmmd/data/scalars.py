"""What a single value of a column means: missing, a number, or the text of a category; the same whatever object it came in."""

from __future__ import annotations

from typing import Any

import numpy as np

EXACT = 2**53  # whole numbers beyond it have no double of their own


def is_missing(value: Any) -> bool:
    """Whether a value stands for none: None, NaN, NaT, or a mark that refuses to be compared (pandas.NA).

    Examples
    --------
    >>> is_missing(float("nan")), is_missing(0), is_missing(np.datetime64("NaT"))
    (True, False, True)
    """
    if value is None:
        return True
    try:
        return bool(value != value)
    except (TypeError, ValueError):  # pandas.NA is neither equal nor unequal; an array is no value
        return not isinstance(value, np.ndarray)


def category_text(value: Any) -> str | None:
    """Return the name of a category, None where it is missing; 1 and 1.0 are one category.

    A column of whole numbers becomes one of floats as soon as one value is missing: that must not look like new categories.

    Examples
    --------
    >>> category_text(1), category_text(1.0), category_text(1.5), category_text(True), category_text(float("nan"))
    ('1', '1', '1.5', 'True', None)
    """
    if is_missing(value):
        return None
    if isinstance(value, (float, np.floating)) and float(value).is_integer():
        return str(int(value))
    return str(value)


def is_plain(value: Any) -> bool:
    """Whether a value is a boolean, a number or text."""
    return isinstance(value, (str, bool, int, float, np.bool_, np.integer, np.floating))


def is_number(value: Any) -> bool:
    """Whether a value is a boolean or a number."""
    return is_plain(value) and not isinstance(value, str)


def beyond_exact(values: Any) -> bool:
    """Whether whole numbers (an integer array, or Python's own) reach beyond what doubles hold exactly."""
    if isinstance(values, np.ndarray):
        return bool(values.size) and (int(values.max()) > EXACT or int(values.min()) < -EXACT)
    return any(isinstance(v, int) and abs(v) > EXACT for v in values)
