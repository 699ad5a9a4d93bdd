"""Plain JSON types: how values leave Python, and how what a file says is checked on its way back.

msgspec checks what comes back against the fields of a dataclass: one sentence names the field that is wrong, and a field of a
newer version is ignored. cattrs would need a hook for every nested type.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from datetime import datetime
from enum import Enum
from typing import TYPE_CHECKING, Annotated, Any, ClassVar, NoReturn, TypeAlias, TypeVar

import msgspec
import numpy as np

PlainDict = dict[str, Any]  # values are None, booleans, numbers, text, lists and dictionaries of them
Count = Annotated[int, msgspec.Meta(ge=0)]
T = TypeVar("T")

if TYPE_CHECKING:
    InMemory: TypeAlias = T | None
else:

    class InMemory:
        """The type of a field that no document holds, such as a test: read back it is None, and anything else is refused."""

        def __class_getitem__(cls, _):
            return None


class PlainValue:
    """A dataclass whose JSON document is its fields, or the fields and properties that it names."""

    document: ClassVar[tuple[str, ...] | None] = None  # names in the document; None: every field

    def to_dict(self) -> PlainDict:
        """Return it in plain JSON types."""
        names = self.document or tuple(field.name for field in fields(self))  # type: ignore[arg-type]
        return {name: to_plain(getattr(self, name)) for name in names}


class NoTruthValue:
    """An answer that is neither true nor false: ``if answer:`` raises and names what to ask instead, as NumPy's arrays do."""

    truth_hint: ClassVar[str] = "`.reject`"  # what to ask instead

    def __bool__(self) -> NoReturn:
        raise TypeError(f"The truth value of {type(self).__name__} is ambiguous. Use {self.truth_hint}.")


def to_plain(value: Any) -> Any:
    """Turn values into plain ones, and what JSON cannot hold (nan, inf) into None."""
    if value is None or isinstance(value, (bool, int)) or type(value) is str:
        return value
    if isinstance(value, float):
        return float(value) if np.isfinite(value) else None
    if isinstance(value, Enum):
        return value.value
    if hasattr(value, "to_dict"):
        return value.to_dict()
    if is_dataclass(value):
        return {field.name: to_plain(getattr(value, field.name)) for field in fields(value)}
    if isinstance(value, Mapping):
        return plain_dict(value)
    if isinstance(value, (list, tuple)):
        return [to_plain(v) for v in value]
    if isinstance(value, (np.ndarray, np.generic)):
        return to_plain(value.tolist())
    if isinstance(value, datetime):
        return value.isoformat(timespec="seconds")
    return str(value)


def plain_dict(value: Mapping[str, Any]) -> PlainDict:
    """Return a mapping in plain JSON types."""
    return {str(k): to_plain(v) for k, v in value.items()}


def from_plain(kind: type[T], value: object, *, strict: bool = True) -> T:
    """Return plain JSON types as a value of a dataclass; raises ValueError with the field that does not fit."""
    try:
        return msgspec.convert(value, kind, strict=strict)
    except msgspec.ValidationError as error:
        raise ValueError(str(error)) from error
