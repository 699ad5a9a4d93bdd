"""The names of a table's columns, and what is no part of its values: an index without a name, blank rows."""

from __future__ import annotations

from typing import Any

from cpmmd.core.text import counted
from cpmmd.data.files.frames import column, polars
from cpmmd.errors import InputError, name_some

NAMELESS = ""


def column_names(header: list[str], decimal: str = ".") -> tuple[list[str], bool]:
    """Return the names that a first line gives, or positions where it is numbers; and whether it gave them."""
    plain = [name.replace(decimal, ".") for name in header]
    return (header, True) if not _is_data(plain) else ([str(i) for i in range(len(header))], False)


def _is_data(header: list[str]) -> bool:
    """Whether a first line is numbers; 0, 1, 2, ... are the names that pandas gives to columns without any."""
    names = header[1:] if header[:1] == [NAMELESS] else header  # beside an index without a name
    if names == [str(i) for i in range(len(names))]:
        return False
    try:
        return all(float(name) is not None for name in header)
    except ValueError:
        return False


def check_names(names: list[str], label: str) -> None:
    """Refuse names given twice, and columns without one, but for the first."""
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if name and names.count(name) > 1})
        if twice:
            raise InputError(
                f"Column names must be unique. {label} has {name_some(twice)} more than once; rename or remove columns."
            )
    if NAMELESS in names[1:] or names == [NAMELESS]:
        number = names.index(NAMELESS, 1 if len(names) > 1 else 0) + 1
        raise InputError(f"Every column must have a name. Number {number} of {label} has none; name it, or remove it.")


def without_index(frame: Any, label: str, notes: list[str]) -> Any:
    """Leave out a nameless first column that numbers or names the rows, as pandas and R write it.

    Whole numbers are an index even where they repeat (tables put together keep theirs); anything else must name each row.
    """
    if frame.columns[0] != NAMELESS:
        return frame
    first = frame[NAMELESS]
    if not first.dtype.is_integer() and first.n_unique() < len(first):
        raise InputError(
            f"Every column must have a name. The first of {label} has none, and repeats values, so that it is not taken for an "
            "index; name it, or remove it."
        )
    counts = first.dtype.is_integer() and first.eq_missing(polars().int_range(len(frame), eager=True)).all()
    is_index = "counts the rows" if counts else "is taken for an index"
    notes.append(f"the nameless first column of {label} {is_index}: left out")
    return frame.drop(NAMELESS)


def without_blank_rows(frame: Any, label: str, notes: list[str]) -> Any:
    """Leave out rows without any value; in a single column such a row is a missing value."""
    if frame.width < 2:
        return frame
    empty = column(frame, frame.columns[0]).is_null()
    for name in frame.columns[1:]:
        if not empty.any():
            return frame
        empty &= column(frame, name).is_null()
    if 0 < (blank := empty.sum()) < len(frame):
        notes.append(f"{counted(blank, 'blank line')} of {label} {'is' if blank == 1 else 'are'} left out")
        return frame.filter(~empty)
    return frame
