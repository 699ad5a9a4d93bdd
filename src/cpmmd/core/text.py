"""Text from the data made fit to be shown: one line, bounded length, nothing that controls a screen or a reading direction."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Sequence
from dataclasses import MISSING, Field, fields, is_dataclass

SAMPLES = ("the first sample", "the second sample")  # what two samples are called where nobody named them
NAME = 80  # characters of a name that are shown: two lines of a table cell, with both ends of the name
LINE = 600  # of a sentence that may quote names
DIGITS = 4  # significant ones of the largest of some numbers that are shown together
NEWLINES = "\n\v\f\r\x85\u2028\u2029"
ZERO_WIDTH_JOINERS = "\u200c\u200d"  # hold emoji and Indic or Persian letters together
REPLACEMENT = "\ufffd"


def sanitize(value: object, limit: int = NAME) -> str:
    """Return one line of safe text: newlines visible, control and direction characters gone, the middle left out if long.

    Escaping for HTML, Markdown or JSON is the renderer's work, since only it knows the context.
    """
    # Cutting first keeps a name of megabytes cheap; the factor leaves room for characters that vanish.
    text = _shorten(str(value), 16 * limit).replace("\r\n", "\n")
    text = "".join(_visible(character) for character in text).strip()
    return _shorten(text, limit) or "(empty)"


def pluralize(number: int, thing: str, things: str | None = None) -> str:
    """Return a number of things, such as ``1 row`` and ``2 rows``."""
    return f"{number} {thing if number == 1 else things or thing + 's'}"


def bytes_in_words(count: float) -> str:
    """Return a number of bytes with three digits and its unit."""
    for unit, size in (("TB", 10**12), ("GB", 10**9), ("MB", 10**6), ("kB", 10**3)):
        if count >= size:
            return f"{count / size:.3g} {unit}"
    return f"{count:.0f} bytes"


def number_format(values: Sequence[float]) -> str:
    """Return one format for all: DIGITS significant digits of the largest, no decimals where all are whole."""
    largest = max((abs(float(v)) for v in values), default=0.0)
    if all(float(v).is_integer() for v in values) and largest < 1e9:
        return ".0f"
    if not 1e-4 <= largest < 1e7:
        return f".{DIGITS - 1}e"
    return f".{max(DIGITS - 1 - math.floor(math.log10(largest)), 0)}f"


def has_right_to_left(text: str) -> bool:
    """Whether some character reads from right to left."""
    return any(unicodedata.bidirectional(character) in ("R", "AL") for character in text)


def _visible(character: str) -> str:
    if character in NEWLINES:
        return "␤"
    if character == "\t":
        return " "
    if character < " " or character == "\x7f":
        return "␡" if character == "\x7f" else chr(0x2400 + ord(character))  # Unicode's pictures of control characters
    category = unicodedata.category(character)
    if category == "Cs" or (ord(character) & 0xFFFE) == 0xFFFE:  # lone surrogates and non-characters: not encodable
        return REPLACEMENT
    if category == "Cc" or (category == "Cf" and character not in ZERO_WIDTH_JOINERS):
        return ""
    return character


def _shorten(text: str, limit: int) -> str:
    if len(text) <= limit:
        return text
    tail = (limit - 1) // 3
    return f"{text[: limit - 1 - tail]}…{text[-tail:]}" if tail else text[:limit]


# The text of a procedure: the call that makes it, without its defaults.


def call_text(value: object) -> str:
    """Return the call that makes a value, on one line.

    Fields of a dataclass that have their default are left out, and so is the inside of values that take several lines, such as
    networks.
    """
    if is_dataclass(value) and not isinstance(value, type):
        given = (f"{field.name}={call_text(getattr(value, field.name))}" for field in fields(value) if _is_shown(field, value))
        return f"{type(value).__name__}({', '.join(given)})"
    if isinstance(value, tuple):
        return f"({', '.join(map(call_text, value))}{',' if len(value) == 1 else ''})"
    text = repr(value)
    return f"{type(value).__name__}(...)" if "\n" in text else text


def _is_shown(field: Field[object], value: object) -> bool:
    usual = field.default_factory() if field.default_factory is not MISSING else field.default
    given = getattr(value, field.name)
    return field.init and field.repr and (type(given) is not type(usual) or repr(given) != repr(usual))
