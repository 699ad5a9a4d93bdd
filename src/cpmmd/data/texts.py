"""Text in a data frame: amounts of one unit are numbers; all else is a category as it is written.

A frame has types, so that its text stays text, ``"12"`` included. Files have none, so that their text is read as what it says; a
note names each column that a file would give otherwise.
"""

from __future__ import annotations

import re
from collections.abc import Collection
from datetime import date
from itertools import islice

import numpy as np

from cpmmd.core.arrays import Array, Objects
from cpmmd.errors import InputError, Note, name_some

NULLS = ("", "NA", "N/A", "n/a", "NaN", "nan", "NAN", "null", "NULL", "None", "NaT", "#N/A", "<NA>")  # missing values of files
# What looks like a number and is a code: leading zeros, or an exponent without a point or a sign, as no program writes one.
ZEROS, EXPONENT, FRACTION = r"^0\d+$", r"^\d+[eE]\d+$", r"[.]|[eE][+-]"
UNIT = r"[$€£¥₹₩₽₺%]|US\$|USD|EUR|GBP|CHF|JPY|CNY|INR|AUD|CAD|SEK|NOK|DKK|kr|zł"
LIKE_AN_AMOUNT = rf"^[+-]?(?:(?:{UNIT})\s?[+-]?[0-9][0-9.,' ]*|[0-9][0-9.,' ]*\s?(?:{UNIT}))$"
LOOKED_AT = 1000  # different texts that tell whether a column is worth a look at all
AS_TEXT = "to compare its texts, convert the column to a categorical type"

READ_AS_NUMBERS = "amounts in {unit} of column {column} are read as numbers; " + AS_TEXT
UNITS = (
    "Amounts of a column must have one unit. Column {column} of {sample} holds amounts in {unit} and others, such as {other}. "
    "Convert them to numbers of one unit; " + AS_TEXT + "."
)
UNCLEAR = (
    "Amounts of a column must be written as 1,234.50. Column {column} of {sample} has others, such as {other}, whose decimal "
    "separator is not clear. Convert the column to numbers; " + AS_TEXT + "."
)
HOLDS = "column {column} is text that holds {kind}, and is compared as text; convert it to {kind} to compare those"
MARK = "{mark} in column {column} is compared as a text of its own; replace it by None if it stands for a missing value"
PADDED = "column {column} has texts that begin or end with spaces, and differ from those without; strip them if they do not count"


def amount_pattern(decimal: str = ".") -> str:
    """Return the pattern of an amount: its unit is the first group or the second."""
    group = "," if decimal == "." else "."
    number = rf"(?:[0-9]+|[0-9]{{1,3}}(?:[{group}' \u00a0\u202f][0-9]{{3}})+)(?:[{decimal}][0-9]+)?"
    return rf"^[+-]?(?:({UNIT})\s?[+-]?{number}|{number}\s?({UNIT}))$"


AMOUNT, LIKE = re.compile(amount_pattern()), re.compile(LIKE_AN_AMOUNT)


def read_amounts(values: Objects, column: str, sample: str) -> tuple[Array, Note] | None:
    """Return a text column that holds amounts of one unit as numbers, with a note; None where most of it is something else."""
    stripped = {text: text.strip() for text in dict.fromkeys(values) if text is not None}
    present = {text: short for text, short in stripped.items() if short not in NULLS}
    if not _most(LIKE, list(islice(present.values(), LOOKED_AT))) or not _most(LIKE, present.values()):
        return None
    found = {text: AMOUNT.match(short) for text, short in present.items()}
    if not _most(AMOUNT, present.values()):
        odd = next(text for text, match in found.items() if match is None)
        raise InputError(UNCLEAR, column=_cut(column), sample=sample, other=_cut(odd))
    units = {text: "" if match is None else match[1] or match[2] for text, match in found.items()}
    unit = next(filter(None, units.values()))
    for text, own in units.items():
        if own != unit:
            raise InputError(UNITS, column=_cut(column), sample=sample, unit=unit, other=_cut(text))
    numbers = {text: float(re.sub(r"[^0-9.+-]", "", short)) for text, short in present.items()}
    read = np.array([np.nan if text is None else numbers.get(text, np.nan) for text in values], dtype=np.float64)
    return read, Note(READ_AS_NUMBERS, unit=unit, column=_cut(column))


def text_notes(values: Objects, column: str) -> list[Note]:
    """Return notes on what a file would give otherwise than a frame's text."""
    different = [text for text in dict.fromkeys(values) if text is not None]
    notes = []
    present = [text.strip() for text in different if text.strip() not in NULLS]
    kind = _kind(present)
    if kind:
        notes.append(Note(HOLDS, column=_cut(column), kind=kind))
    if len(present) < len(different):
        mark = next(text for text in different if text.strip() in NULLS)
        notes.append(Note(MARK, mark=_cut(mark), column=_cut(column)))
    if not kind and any(text != text.strip() for text in different if text.strip()):
        notes.append(Note(PADDED, column=_cut(column)))
    return notes


def _kind(texts: list[str]) -> str:
    """Return what all texts hold, if a file's would be read as numbers or dates; empty otherwise."""
    if not texts or not all(map(_is_number, islice(texts, LOOKED_AT))):
        return "dates" if texts and all(map(_is_date, texts)) else ""
    if not all(map(_is_number, texts)) or any(re.match(ZEROS, text) for text in texts):
        return ""
    exponents = any(re.match(EXPONENT, text) for text in texts) and not any(re.search(FRACTION, text) for text in texts)
    return "" if exponents else "numbers"


def _is_number(text: str) -> bool:
    try:
        return float(text) is not None and "_" not in text
    except ValueError:
        return False


def _is_date(text: str) -> bool:
    try:
        return bool(date.fromisoformat(text[:10])) and "-" in text
    except ValueError:
        return False


def _most(pattern: re.Pattern[str], texts: Collection[str]) -> bool:
    """Whether more than half of some texts are of a pattern."""
    return 2 * sum(pattern.match(text) is not None for text in texts) > len(texts)


def _cut(text: str) -> str:
    return name_some([text])
