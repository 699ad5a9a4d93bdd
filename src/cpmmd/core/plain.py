"""Plain JSON types: what results, reports and files are made of when they leave Python."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

PlainDict = dict[str, Any]  # values are None, booleans, numbers, text, lists and dictionaries of them


def to_plain(value: Any) -> Any:
    """Turn numpy values into plain ones, and what JSON cannot hold (nan, inf) into None.

    Examples
    --------
    >>> to_plain({"p": np.float64(0.5), "rows": np.arange(2), "none": float("nan")})
    {'p': 0.5, 'rows': [0, 1], 'none': None}
    """
    if isinstance(value, Mapping):
        return {str(k): to_plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    if isinstance(value, np.ndarray):
        return to_plain(value.tolist())
    if isinstance(value, np.generic):
        return to_plain(value.item())
    if isinstance(value, float) and not np.isfinite(value):
        return None
    if value is None or isinstance(value, (str, bool, int, float)):
        return value
    return str(value)


def plain_dict(value: Mapping[str, Any]) -> PlainDict:
    """Return a mapping in plain JSON types."""
    return {str(k): to_plain(v) for k, v in value.items()}
