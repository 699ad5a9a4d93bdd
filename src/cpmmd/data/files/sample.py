"""A sample that came from a file: choosing its columns, splitting it into groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpmmd.core.text import counted
from cpmmd.data.files.frames import column
from cpmmd.errors import InputError, Setting, name_some, unknown_name

MOST_GROUPS = 100
UNITS_A_DAY = {"d": 1, "ms": 86_400_000, "us": 86_400_000_000, "ns": 86_400_000_000_000}
FIRST_DAY, END_DAY = -719_162, 2_932_897  # of the years 1 to 9999, counted from 1970-01-01


@dataclass(frozen=True, eq=False)
class FileSample:
    """Rows of a file and what was noticed while reading them.

    Attributes
    ----------
    data
        A polars frame, or an array where the file held one.
    label
        What messages call it: the file's name.
    suspects
        What is wrong with columns that cannot be used as they are; harmless once those are left out.
    """

    data: Any
    label: str
    notes: tuple[str, ...] = ()
    suspects: tuple[InputError, ...] = ()

    @property
    def rows(self) -> int:
        """Number of rows."""
        return len(self.data)

    @property
    def columns(self) -> tuple[str, ...]:
        """Column names; positions for arrays."""
        if isinstance(self.data, np.ndarray):
            return tuple(str(i) for i in range(self.data.shape[1] if self.data.ndim > 1 else 1))
        return tuple(self.data.columns)


def select_columns(
    sample: FileSample, *, columns: Sequence[str] = (), drop: Sequence[str] = (), empty: bool = False
) -> FileSample:
    """Return the sample with some columns only, checked for what would make a test meaningless.

    With ``empty``, columns may hold missing values only, as those of a batch whose reference knows their kinds.
    """
    for name in (*columns, *drop):
        if name not in sample.columns:
            raise unknown_name(f"column of {sample.label}:", name, sample.columns)
    kept = [name for name in dict.fromkeys(columns or sample.columns) if name not in set(drop)]  # a column named twice is one
    if not kept:
        raise InputError(f"At least one column of {sample.label} must be left. All {len(sample.columns)} are dropped.")
    if tuple(kept) != sample.columns:
        sample = replace(sample, data=_take_columns(sample.data, kept))
    for suspect in sample.suspects:
        if suspect.column in kept:
            raise suspect
    _check_values(sample, may_be_empty=empty)
    return sample


def drop_anywhere(samples: Sequence[FileSample], drop: Sequence[str]) -> list[tuple[str, ...]]:
    """Return for each sample the columns to drop that it has; a column that none of them has is refused."""
    everywhere = list(dict.fromkeys(name for sample in samples for name in sample.columns))
    for name in drop:
        if name not in everywhere:
            labels = " and ".join(dict.fromkeys(sample.label for sample in samples))
            raise unknown_name(f"column of {labels}:", name, everywhere)
    return [tuple(name for name in drop if name in sample.columns) for sample in samples]


def _take_columns(data: Any, kept: list[str]) -> Any:
    if isinstance(data, np.ndarray):
        if data.ndim > 2:
            raise InputError("Columns can be chosen from tables only. Got an array of more than two dimensions instead.")
        return data.reshape(len(data), -1)[:, [int(name) for name in kept]]
    return data[kept]  # select takes a name like ^a$ for a pattern, and another column than it


def _check_values(sample: FileSample, *, may_be_empty: bool) -> None:
    if sample.rows == 0:
        raise InputError(f"A sample must have rows. {sample.label} has none; check how it was written.")
    empty = [] if may_be_empty else [name for name in sample.columns if _is_empty(sample.data, name)]
    if empty:
        raise InputError(
            "Columns must hold values. {label} has only missing ones in {empty}; leave them out with {setting}, or check how the "
            "file was written.",
            file=sample.label,
            label=sample.label,
            empty=name_some(empty),
            setting=Setting("drop"),
        )
    if far := [name for name in sample.columns if _is_far(sample.data, name)]:
        raise InputError(
            "Dates must be of the years 1 to 9999. {label} has others in {far}; check their unit, or leave the columns out with "
            "{setting}.",
            file=sample.label,
            label=sample.label,
            far=name_some(far),
            setting=Setting("drop"),
        )


def _is_far(data: Any, name: str) -> bool:
    """Whether a column has dates that no calendar shows: of a damaged file, or milliseconds taken for microseconds."""
    dtype = None if isinstance(data, np.ndarray) else column(data, name).dtype
    if dtype is None or str(dtype).split("(")[0] not in ("Date", "Datetime"):
        return False
    a_day = UNITS_A_DAY[getattr(dtype, "time_unit", "d")]
    days = column(data, name).to_physical().drop_nulls()
    return len(days) > 0 and not FIRST_DAY * a_day <= days.min() <= days.max() < END_DAY * a_day


def _is_empty(data: Any, name: str) -> bool:
    if isinstance(data, np.ndarray):
        if data.ndim > 2 or data.dtype.kind != "f":
            return False
        return bool(np.isnan(data.reshape(len(data), -1)[:, int(name)]).all())
    series = column(data, name)
    if series.null_count() == len(series):
        return True
    return bool(series.dtype.is_float() and series.drop_nulls().is_nan().all())


@dataclass(frozen=True, eq=False)
class Groups:
    """The rows of a sample, by the values of one of its columns, which is left out."""

    sample: FileSample
    column: str
    values: Any

    @property
    def names(self) -> list[str]:
        """The different values, numbers in their order."""
        return sorted(set(self.values), key=_natural)

    def group(self, name: str) -> FileSample:
        """Return the rows of one value."""
        return self._take(self.values == name, f"{self.column} = {name}")

    def rest(self, name: str) -> FileSample:
        """Return all other rows."""
        return self._take(self.values != name, f"{self.column} other than {name}")

    def _take(self, rows: Any, label: str) -> FileSample:
        return replace(self.sample, data=_rows(self.sample.data, rows), label=label)


def by_groups(sample: FileSample, column: str) -> Groups:
    """Return the groups that a column makes; rows without a value of it are left out."""
    if column not in sample.columns:
        raise unknown_name(f"column of {sample.label}:", column, sample.columns)
    values = _group_values(sample.data, column)
    present = np.array([v is not None for v in values], dtype=bool)
    lost = int(np.count_nonzero(~present))
    left_out = f"{counted(lost, 'row')} without a value of {column!r} {'is' if lost == 1 else 'are'} left out"
    notes = (*sample.notes, *((left_out,) if lost else ()))
    rest = [name for name in sample.columns if name != column]
    if not rest:
        raise InputError(f"There must be a column to compare. {sample.label} has none but {column!r}.")
    data = _rows(_take_columns(sample.data, rest), present)
    groups = Groups(replace(sample, data=data, notes=notes), column, np.array(values, dtype=object)[present])
    if not 2 <= len(groups.names) <= MOST_GROUPS:
        raise InputError(
            f"The column that splits must hold 2 to {MOST_GROUPS} different values. {column!r} of {sample.label} has "
            f"{len(groups.names)}; choose another, or bin it first."
        )
    return groups


def _rows(data: Any, mask: Any) -> Any:
    return data[mask] if isinstance(data, np.ndarray) else data.filter(mask)


def _group_values(data: Any, column: str) -> list[str | None]:
    values = data.reshape(len(data), -1)[:, int(column)].tolist() if isinstance(data, np.ndarray) else data[column].to_list()
    return [None if v is None or v != v else str(v) for v in values]


def _natural(name: str) -> tuple[int, float, str]:
    try:
        return (0, float(name), name)
    except ValueError:
        return (1, 0.0, name)
