"""Plain words for what was found; never more than was found."""

from __future__ import annotations

from collections.abc import Sequence

from cpmmd.core.text import harmless
from cpmmd.explain.values import ColumnContribution, Effect

LONGEST = 40  # characters of a name in a sentence
NAMED = 3  # columns in a sentence
NEAR_THE_TOP = 0.2  # a column is named when it has this share of the first one's contribution


def quote_name(name: str, label: str) -> str:
    """Return a name for a sentence: quoted where it is the data's own."""
    short = harmless(label, LONGEST)
    return f"'{short}'" if name == label else short


def sentence(columns: Sequence[ColumnContribution], effect: Effect, *, reject: bool, pvalue: float, alpha: float) -> str:
    """Say where the samples differ, or that no difference was found."""
    told = f"a random row of y looks more like y than a random row of x does {effect}"
    if not reject:
        return f"No difference was found (p = {pvalue:.3g} at level {alpha:g}): {told}, where 50% is no difference at all."
    named = _name_leaders(columns)
    if not named:
        return f"The samples differ, but no single column stands out; {told}."
    return f"Rows of y are {named}; {told}."


def _name_leaders(columns: Sequence[ColumnContribution]) -> str:
    """Say how the leading columns differ, those that differ in the same way together."""
    clear = [f for f in columns if f.clear]
    ways: dict[str, list[str]] = {}
    for f in clear[:NAMED]:
        if f.contribution >= NEAR_THE_TOP * clear[0].contribution:
            ways.setdefault(f.difference or "different", []).append(quote_name(f.name, f.label))
    several = any(len(names) > 1 for names in ways.values())
    return _join([f"{way} in {_join(names)}" for way, names in ways.items()], ", and " if several else " and ")


def _join(parts: list[str], last: str = " and ") -> str:
    return last.join([", ".join(parts[:-1]), parts[-1]] if len(parts) > 1 else parts)
