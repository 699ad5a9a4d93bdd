"""The finding in a sentence or two: which columns, or which pair of them, and how well rows are told apart."""

from __future__ import annotations

from collections.abc import Sequence

from cpmmd.core.text import harmless
from cpmmd.explain.column_table import Tables
from cpmmd.explain.differences import ColumnDifference, PairDifference
from cpmmd.explain.values import Effect
from cpmmd.explain.words import LONGEST, NAMED, join, quote_name
from cpmmd.procedures.outcome import TestOutcome


def say_where(outcome: TestOutcome, tables: Tables, names: tuple[str, str], *, inside: bool = False) -> str:
    """Say where the samples differ (``inside`` strata), or that no difference was found."""
    x, y = (harmless(name, LONGEST) for name in names)
    suspicious = {one.name for one in tables.suspicious}
    differ = name_columns([one for one in tables.columns if one.name not in suspicious], y)
    if differ and inside:
        differ = f"Inside strata, {_small(differ)}"
    if not outcome.reject:
        found = f"No difference was found (p = {outcome.pvalue:.3g} at level {outcome.alpha:g})"
        if differ:  # a test of each column: level alpha too, and the reader should know of both
            return f"{found} in all columns together, but one by one (adjusted for all columns) {_small(differ)}."
        return f"{found}. {_suspects(tables)}".strip()
    warning, where = _warn(tables, outcome.alpha), differ or _name_pair(tables.pairs, suspicious, (x, y))
    if not where and not warning:
        where = "The samples differ, but no single column and no pair of columns stands out"
    return f"{warning} {where}{'.' * bool(where)}".strip()


def _small(sentence: str) -> str:
    return f"{sentence[0].lower()}{sentence[1:]}"


def say_told(effect: Effect | None, alone: Effect | None, names: tuple[str, str], *, inside: bool = False) -> str:
    """Say how well single rows are told apart; nothing where that cannot be known."""
    if effect is None or alone is None:
        return ""
    x, y = (harmless(name, LONGEST) for name in names)
    other = f"a random row of {x}{' and the same stratum' * inside}"
    told = f"By the test's kernel a random row of {y} looks more like {y} than {other} does {effect}"
    return f"{told}, by its columns one by one {alone.probability:.0%}; 50% would be chance."


def _warn(tables: Tables, alpha: float) -> str:
    """Name the suspicious columns first, and say what is left without them."""
    if not tables.suspicious:
        return ""
    them = "it" if len(tables.suspicious) == 1 else "them"
    if tables.pvalue_without is None:
        return f"{_suspects(tables)} No other column is left without {them}."
    verdict = "the samples still differ" if tables.pvalue_without <= alpha else "no difference is found"
    return f"{_suspects(tables)} Without {them} {verdict} (p = {tables.pvalue_without:.3g})."


def _suspects(tables: Tables) -> str:
    named = "; ".join(f"{quote_name(one.name, one.label)}: {one.why}" for one in tables.suspicious[:NAMED])
    return f"Suspicious {named}." if named else ""


def name_columns(columns: Sequence[ColumnDifference], y: str) -> str:
    """Say how the leading columns differ, those that differ in the same way together; empty where none does."""
    found = [column for column in columns if column.words]
    ways: dict[str, list[str]] = {}
    for column in found[:NAMED]:
        ways.setdefault(column.words, []).append(quote_name(column.name, column.label))
    several = any(len(named) > 1 for named in ways.values())
    said = join([f"{way} in {join(named)}" for way, named in ways.items()], ", and " if several else " and ")
    more = len(found) - NAMED
    rest = f", and {more} more column{'s differ' if more > 1 else ' differs'}" if more > 0 else ""
    return f"Rows of {y} are {said}{rest}" if said else ""


def _name_pair(pairs: Sequence[PairDifference], suspicious: set[str], samples: tuple[str, str]) -> str:
    """Say which pair of columns changed its dependence most; empty where none did."""
    found = [pair for pair in pairs if pair.words and not suspicious & set(pair.names)]
    if not found:
        return ""
    first = found[0]
    names = [quote_name(name, label) for name, label in zip(first.names, first.labels, strict=True)]
    more = f", and {len(found) - 1} more pair{'s' * (len(found) > 2)}" if len(found) > 1 else ""
    numbers = f"correlation {first.correlation_x:.2f} in {samples[0]}, {first.correlation_y:.2f} in {samples[1]}"
    return f"The columns look alike one by one; what changed is how {join(names)} go together ({numbers}){more}"
