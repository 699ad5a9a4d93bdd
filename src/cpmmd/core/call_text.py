"""The text of a procedure: the call that makes it, without what is as it would be anyway."""

from __future__ import annotations

from dataclasses import MISSING, Field, fields, is_dataclass
from typing import Any


def call_text(value: Any) -> str:
    """Return the call that makes a value, on one line.

    Fields of a dataclass that have their default are left out, and so is the inside of what takes several lines to show, as
    networks do.

    Examples
    --------
    >>> from cpmmd import Deep, SplitTest
    >>> call_text(SplitTest(Deep(width=50), train_fraction=0.3))
    'SplitTest(family=Deep(width=50), train_fraction=0.3)'
    """
    if is_dataclass(value) and not isinstance(value, type):
        told = (f"{one.name}={call_text(getattr(value, one.name))}" for one in fields(value) if _is_told(one, value))
        return f"{type(value).__name__}({', '.join(told)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(call_text, value))}{',' if len(value) == 1 else ''})"
    text = repr(value)
    return f"{type(value).__name__}(...)" if "\n" in text else text


def _is_told(one: Field[Any], value: Any) -> bool:
    usual = one.default_factory() if one.default_factory is not MISSING else one.default
    given = getattr(value, one.name)
    return one.init and one.repr and (type(given) is not type(usual) or repr(given) != repr(usual))
