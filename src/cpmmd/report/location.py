"""Where the samples differ: suspicious columns, every column with its picture, pairs of columns, and the rows that speak most."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from cpmmd.core.plain import PlainDict
from cpmmd.core.text import harmless
from cpmmd.data.preparation import MISSING
from cpmmd.explain.differences import ColumnDifference, Histogram, PairDifference, in_header
from cpmmd.explain.values import Explanation, typical
from cpmmd.report import elements
from cpmmd.report.elements import Block

FEW = 5  # rows: a level that has fewer says something about them
RARE = "(rare values)"
HEADER = 24  # characters of a column's name above a column of values
MOST_VALUES = 8  # columns of the table of rows: the leading ones
MOST_PAIRS = 15  # rows of the table of pairs
DRAWN, LISTED = 150, 1000  # columns with a picture, and columns at all: a page stays below a megabyte


def location(explanation: Explanation | None, *, rows: bool) -> Block:
    """Return the section; it says so when nothing is known."""
    if explanation is None:
        return elements.section("where", "Where", [elements.text("This result carries no rows, so it cannot say where.")])
    return elements.section("where", "Where", where_blocks(explanation, rows=rows))


def where_blocks(explanation: Explanation, *, rows: bool, prefix: str = "") -> list[Block | None]:
    """Return what is known of columns, pairs and rows; ``prefix`` keeps apart what two comparisons of one page call the same."""
    return [
        column_list(explanation, prefix),
        _pairs(explanation, prefix),
        None if prefix else _witness(explanation, rows=rows),
    ]


def column_list(explanation: Explanation, prefix: str = "") -> Block:
    """List every column, smallest p-value first, with its picture."""
    suspicious = {one.name: one.why for one in explanation.suspicious}
    ordered = sorted(explanation.columns, key=lambda column: column.name not in suspicious)
    found = len(explanation.differing)
    said = f"{elements.count(found)} of {elements.count(len(ordered))}" if found else f"None of {elements.count(len(ordered))}"
    return elements.columns(
        f"{prefix}columns",
        f"{said} column{'s' * (len(ordered) != 1)} differ{'s' * (found <= 1)}",
        [in_header(name) for name in explanation.names],
        [_item(column, why=suspicious.get(column.name, ""), drawn=i < DRAWN) for i, column in enumerate(ordered[:LISTED])],
        note=f"{_left_out(len(ordered))}p is adjusted for all columns, from the test's own relabelings and all rows that it "
        "saw; intervals hold 95%, each for its own column. Beside an arrow: means, or shares."
        f"{f' Here {explanation.compared}.' * bool(explanation.compared)}",
    )


def _left_out(count: int) -> str:
    drawn = f"The first {DRAWN} columns have pictures. " if count > DRAWN else ""
    return f"Listed are the first {LISTED} of {elements.count(count)} columns. {drawn}" if count > LISTED else drawn


def _item(column: ColumnDifference, *, why: str, drawn: bool) -> Block:
    x, y = typical(column, nothing=elements.NOTHING)
    effect = column.effect
    return {
        "label": harmless(column.label),
        "kind": column.kind,
        "words": harmless(column.words, 80) if column.significant else "",
        "differs": column.significant,
        "suspicious": harmless(why, 160) if why else "",
        "pvalue": column.pvalue,
        "x": x,
        "y": y,
        "effect": None if effect is None else effect.short,
        "interval": None if effect is None else effect.interval,
        "histogram": _harmless_histogram(column.histogram) if column.histogram is not None and drawn else None,
    }


def _harmless_histogram(histogram: Histogram) -> PlainDict:
    return {**histogram.to_dict(), "labels": [harmless(label) for label in histogram.labels]}


def _pairs(explanation: Explanation, prefix: str) -> Block | None:
    """Table the pairs whose dependence changed; None where none did."""
    found = explanation.differing_pairs
    if not found:
        return None
    names = [in_header(name) for name in explanation.names]
    columns = [
        ("Pair", "text"),
        ("They", "words"),
        *((f"Correlation in {name}", "number") for name in names),
        ("p-value", "pvalue"),
    ]
    rows = [[_pair_name(p), p.words, p.correlation_x, p.correlation_y, p.pvalue] for p in found[:MOST_PAIRS]]
    note = (
        "How two columns go together, their own differences taken out; p is adjusted for all pairs, and doubled as a second look."
    )
    if len(found) > MOST_PAIRS:
        note = f"The first {MOST_PAIRS} of {elements.count(len(found))} pairs. {note}"
    return elements.table(f"{prefix}pairs", "Pairs of columns that go together differently", columns, rows, note=note)


def _pair_name(pair: PairDifference) -> str:
    parts = [f"{label} = {level}" if level else label for label, level in zip(pair.labels, pair.levels, strict=True)]
    return " and ".join(harmless(part, 34) for part in parts)


def _witness(explanation: Explanation, *, rows: bool) -> Block:
    """Return what single rows say, for who wants to see it."""
    return elements.details(
        "rows",
        "Row by row",
        [
            elements.figure("witness-densities", "Witness values of both samples", effect_sentence(explanation)),
            elements.figure("pool-map", "Map of the rows", "Rows in two dimensions, coloured by their witness value."),
            *(_rows(explanation) if rows else ()),
        ],
    )


def effect_sentence(explanation: Explanation) -> str:
    """Say how well the witness tells the samples apart, or why that is not said."""
    effect, names = explanation.effect, explanation.names
    if effect is None:
        return (
            "How well the witness tells rows apart takes two rows, groups or blocks of each sample, and rows that are not "
            "compared in pairs."
        )
    return (
        f"The witness ranks a row of {names[0]} above a row of {names[1]} with probability {effect.probability:.2f} "
        f"(95% interval {effect.low:.2f} to {effect.high:.2f}); 0.5 would be indistinguishable."
    )


def without_rare_levels(explanation: Explanation, sizes: tuple[int, int]) -> Explanation:
    """Return the explanation with the levels that fewer than FEW rows have under one name: they would say who those rows are."""

    def rename(column: ColumnDifference) -> ColumnDifference:
        levels = column.levels
        shown = column.histogram
        if shown is not None and shown.labels:
            merged = _merge(dict(zip(shown.labels, zip(shown.x, shown.y, strict=True), strict=True)), sizes, column.rare)
            shown = Histogram((), tuple(merged), tuple(x for x, _ in merged.values()), tuple(y for _, y in merged.values()))
        return replace(column, levels=levels and _merge(levels, sizes, column.rare), histogram=shown)

    return replace(explanation, columns=tuple(rename(column) for column in explanation.columns))


def _merge(levels: Any, sizes: tuple[int, int], rare: frozenset[str]) -> dict[str, tuple[float, float]]:
    merged: dict[str, tuple[float, float]] = {}
    for level, (x, y) in levels.items():
        many = level not in rare and x * sizes[0] + y * sizes[1] >= FEW
        name = level if level == MISSING or many else RARE
        x_so_far, y_so_far = merged.get(name, (0.0, 0.0))
        merged[name] = (x_so_far + x, y_so_far + y)
    return merged


def _rows(explanation: Explanation) -> list[Block]:
    """Table the rows that speak most for either side, by the leading columns."""
    leading = [f.name for f in explanation.columns[:MOST_VALUES]]
    tables = []
    for key, sample, evidence in zip("xy", explanation.names, (explanation.top_x, explanation.top_y), strict=True):
        chosen = [name for name in leading if any(name in row.values for row in evidence)]
        rows = [[row.row, row.witness, *(row.values.get(name) for name in chosen)] for row in evidence]
        kinds = [_kind([row.values.get(name) for row in evidence]) for name in chosen]
        labels = [harmless(f.label, HEADER) for f in explanation.columns if f.name in chosen]
        columns = [("Row", "count"), ("Witness", "number"), *zip(labels, kinds, strict=True)]
        every = len(explanation.columns)
        note = f"The {len(chosen)} leading columns of {elements.count(every)}." if every > len(chosen) else ""
        tables.append(elements.table(f"rows-{key}", f"Rows that speak most for {harmless(sample)}", columns, rows, note=note))
    return tables


def _kind(values: Sequence[Any]) -> str:
    kinds = {"flag" if isinstance(v, bool) else "number" if isinstance(v, Real) else "text" for v in values if v is not None}
    return kinds.pop() if len(kinds) == 1 else "text"
