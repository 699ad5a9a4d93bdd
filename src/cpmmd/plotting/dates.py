"""When batches are from: the date in their names, or the day they were tested on."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from datetime import datetime
from typing import Any

# 2024-03-05, 2024_03_05, 20240305, with a time after a T: 20240305T0630.
DATE = re.compile(r"(?<!\d)((?:19|20)\d\d)([-_.]?)(\d\d)\2(\d\d)(?:T(\d\d)[:.-]?(\d\d)(?!\d)|(?!\d))")


def own_date(name: str) -> datetime | None:
    """Return the first date in a batch's name; None where there is none.

    Examples
    --------
    >>> own_date("sales-2024-03-05.csv").isoformat(), own_date("20240305T0630.csv").isoformat(), own_date("v20249999.csv")
    ('2024-03-05T00:00:00', '2024-03-05T06:30:00', None)
    """
    for found in DATE.finditer(name):
        year, _, month, day, hour, minute = found.groups()
        try:
            return datetime(int(year), int(month), int(day), int(hour or 0), int(minute or 0))
        except ValueError:
            continue
    return None


def own_dates(records: Sequence[Mapping[str, Any]]) -> list[datetime] | None:
    """Return the dates in the names of all batches, None unless each has one.

    A batch that could not be tested and has none stands with the one before it: a wrong name takes no other's date away.
    """
    dates: list[datetime] = []
    for record in records:
        date = own_date(str(record["batch"]))
        if date is None and record.get("error") is not None and dates:
            date = dates[-1]
        if date is None:
            return None
        dates.append(date)
    return dates or None


def in_order(records: Sequence[Mapping[str, Any]]) -> list[Mapping[str, Any]]:
    """Return batches by the dates in their names where each has one, else as they came."""
    dates = own_dates(records)
    if dates is None:
        return list(records)
    return [records[i] for i in sorted(range(len(records)), key=lambda i: dates[i])]


def axis_dates(records: Sequence[Mapping[str, Any]]) -> tuple[list[datetime], str] | None:
    """Return where batches stand on an axis of time, and what it shows; None where their order says more.

    Their own dates; without any, the days they were tested on where no two share one (a call tests many within a minute).
    """
    dates = own_dates(records)
    if dates is not None:
        return (dates, "date in the batch's name") if len(set(dates)) > 1 else None
    if any(own_date(str(record["batch"])) for record in records):
        return None
    days = [_day(record.get("time")) for record in records]
    there = sorted({day for day in days if day is not None})
    return (there, "day of the test") if 1 < len(there) == len(days) and days == there else None


def _day(time: Any) -> datetime | None:
    try:
        return datetime.fromisoformat(str(time)[:10])
    except ValueError:
        return None
