"""What pairs say where rows cannot be told apart one by one: in how many of them the leading column is higher."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cpmmd.core.text import harmless
from cpmmd.explain.column_table import Tables
from cpmmd.explain.columns import DataColumn, number_values
from cpmmd.explain.effects import stratum_means
from cpmmd.explain.explained_rows import ExplainedRows
from cpmmd.explain.strata import Strata
from cpmmd.explain.words import LONGEST, quote_name

SIGNS = {"higher": 1, "lower": -1, "later": 1, "earlier": -1}  # words of a difference that a single pair has or has not


def say_in_pairs(explained: ExplainedRows, tables: Tables, columns: Sequence[DataColumn], names: tuple[str, str]) -> str:
    """Say in how many pairs the leading column differs the way its words say; nothing where no such column differs."""
    strata = Strata.of(explained.pool.design, explained.tested)
    suspicious = {one.name for one in tables.suspicious}
    leading = next((one for one in tables.columns if one.words in SIGNS and one.name not in suspicious), None)
    if strata is None or not strata.paired or leading is None:
        return ""
    column = next(one for one in columns if one.name == leading.name)
    values = number_values(explained.pool, explained.tested, column)
    there = ~np.isnan(values)
    of = [there & side for side in (strata.labels, ~strata.labels)]
    both = np.intersect1d(strata.of_row[of[0]], strata.of_row[of[1]])
    x, y = (stratum_means(values[side], strata.of_row[side])[both] for side in of)
    count = np.count_nonzero(SIGNS[leading.words] * (y - x) > 0)
    other, sample = (harmless(name, LONGEST) for name in names)
    said = f"{quote_name(column.name, column.label)} is {leading.words} in {sample} than in {other}"
    return f"{said} in {count} of {len(both)} pairs."
