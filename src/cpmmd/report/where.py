"""Where the samples differ: every column with its picture, suspicious ones first, pairs of columns, and single rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from numbers import Real

from cpmmd.core.text import sanitize
from cpmmd.data.preparation import MISSING
from cpmmd.explain.differences import ColumnDifference, Histogram, PairDifference, in_header
from cpmmd.explain.values import Explanation, typical
from cpmmd.report.page import NOTHING, AnyPart, CellType, ColumnItem, Columns, Details, Figure, Table, count, filled, line

FEW = 5  # rows: a level that has fewer says something about them
RARE = "(rare values)"
HEADER = 24  # characters of a column's name above a column of values
MOST_VALUES = 8  # columns of the table of rows: the leading ones
MOST_PAIRS = 15  # rows of the table of pairs
DRAWN, LISTED = 150, 1000  # columns with a picture, and columns at all: a page stays below a megabyte


def where_parts(explanation: Explanation, *, rows: bool, prefix: str = "") -> list[AnyPart | None]:
    """Return the parts on columns, pairs and rows; ``prefix`` keeps ids unique where one page has several comparisons."""
    return [
        column_list(explanation, prefix),
        _pairs(explanation, prefix),
        None if prefix else _witness(explanation, rows=rows),
    ]


def column_list(explanation: Explanation, prefix: str = "") -> Columns:
    """List every column with its picture, suspicious ones first, then by p-value."""
    suspicious = {column.name: column.why for column in explanation.suspicious}
    differing = {column.name for column in explanation.differing}
    ordered = sorted(explanation.columns, key=lambda column: column.name not in suspicious)
    items = []
    for place, column in enumerate(ordered[:LISTED]):
        x, y = typical(column, nothing=NOTHING)
        effect, shown, why = column.effect, column.histogram, suspicious.get(column.name)
        items.append(
            ColumnItem(
                label=sanitize(column.label),
                kind=column.kind,
                words=sanitize(column.words, 80) if column.significant else "",
                differs=column.name in differing,
                suspicious=sanitize(why, 160) if why else "",
                pvalue=column.pvalue,
                x=x,
                y=y,
                effect=None if effect is None else effect.short,
                interval=None if effect is None else effect.interval,
                histogram=None if shown is None or place >= DRAWN else replace(shown, labels=tuple(map(sanitize, shown.labels))),
            )
        )
    total, found = len(ordered), len(differing)
    left_out = f"The first {DRAWN} columns have pictures. " if total > DRAWN else ""
    if total > LISTED:
        left_out = f"The first {LISTED} of {count(total)} columns are listed. {left_out}"
    x_name, y_name = map(in_header, explanation.names)
    return Columns(
        f"{prefix}columns",
        f"{count(found) if found else 'None'} of {count(total)} column{'s' * (total != 1)} differ{'s' * (found <= 1)}",
        (x_name, y_name),
        items,
        f"{left_out}p-values are adjusted for all columns and use the permutations and rows of the test. "
        "Each 95% confidence interval is for its own column. Values beside an arrow are means or shares."
        f"{f' Here {explanation.compared}.' * bool(explanation.compared)}",
    )


def _pairs(explanation: Explanation, prefix: str) -> Table | None:
    """Table the pairs whose dependence changed; None without any."""
    found = explanation.differing_pairs
    if not found:
        return None
    x, y = map(in_header, explanation.names)
    shown = found[:MOST_PAIRS]
    note = (
        "Correlations within each sample, so that differences of single columns do not count. "
        "p-values are adjusted for all pairs, and doubled, because pairs are tested after columns."
    )
    return Table.of(
        f"{prefix}pairs",
        "Pairs of columns whose dependence changed, with the correlation in each sample",
        [
            ("Pair", "text", [_pair_name(pair) for pair in shown]),
            (x, "number", [pair.correlation_x for pair in shown]),
            (y, "number", [pair.correlation_y for pair in shown]),
            ("p-value", "pvalue", [pair.pvalue for pair in shown]),
            (f"Columns in {y}", "words", [pair.words for pair in shown]),
        ],
        note=f"The first {MOST_PAIRS} of {count(len(found))} pairs. {note}" if len(found) > MOST_PAIRS else note,
    )


def _pair_name(pair: PairDifference) -> str:
    parts = [f"{label} = {level}" if level else label for label, level in zip(pair.labels, pair.levels, strict=True)]
    return " and ".join(sanitize(part, 34) for part in parts)


def _witness(explanation: Explanation, *, rows: bool) -> Details:
    """Return the witness of single rows, closed at first."""
    auc, names = explanation.auc, explanation.names
    if auc is None:
        described = "The AUC needs at least two rows (groups, blocks) of each sample, and rows that are not compared in pairs."
    else:
        described = (
            f"The witness ranks a row of {names[0]} above a row of {names[1]} with probability {auc.value:.2f} "
            f"(AUC, 95% confidence interval {auc.low:.2f} to {auc.high:.2f}); 0.5 is chance."
        )
    figures = [
        Figure("witness-densities", "Witness values of both samples", line(described)),
        Figure("pool-map", "Map of the rows", "Rows in two dimensions, coloured by their witness value."),
    ]
    return Details("rows", "Row by row", False, filled([*figures, *(_rows(explanation) if rows else ())]))


def _rows(explanation: Explanation) -> Iterable[Table]:
    """Table the rows that are most typical of either sample, with the leading columns."""
    for key, sample, rows in zip("xy", explanation.names, (explanation.top_x, explanation.top_y), strict=True):
        chosen = [c for c in explanation.columns[:MOST_VALUES] if any(c.name in row.values for row in rows)]
        values = [(sanitize(c.label, HEADER), [row.values.get(c.name) for row in rows]) for c in chosen]
        total = len(explanation.columns)
        yield Table.of(
            f"rows-{key}",
            f"Rows most typical of {sanitize(sample)}",
            [
                ("Row", "count", [row.row for row in rows]),
                ("Witness", "number", [row.witness for row in rows]),
                *((label, _kind(column), column) for label, column in values),
            ],
            note=f"The {len(chosen)} leading columns of {count(total)}." if total > len(chosen) else "",
        )


def _kind(values: Sequence[object]) -> CellType:
    """Return what kind of values a column of single rows has."""
    there = [value for value in values if value is not None]
    if there and all(isinstance(value, bool) for value in there):
        return "flag"
    return "number" if there and all(isinstance(v, Real) and not isinstance(v, bool) for v in there) else "text"


def without_rare_levels(explanation: Explanation, sizes: tuple[int, int]) -> Explanation:
    """Return the explanation with levels of fewer than FEW rows merged: they could identify those rows."""

    def merge(column: ColumnDifference, levels: Mapping[str, tuple[float, float]]) -> dict[str, tuple[float, float]]:
        merged: dict[str, tuple[float, float]] = {}
        for level, (x, y) in levels.items():
            many = level not in column.rare and x * sizes[0] + y * sizes[1] >= FEW
            name = level if level == MISSING or many else RARE
            x_so_far, y_so_far = merged.get(name, (0.0, 0.0))
            merged[name] = (x_so_far + x, y_so_far + y)
        return merged

    def rename(column: ColumnDifference) -> ColumnDifference:
        levels, shown = column.levels, column.histogram
        if shown is not None and shown.labels:
            merged = merge(column, dict(zip(shown.labels, zip(shown.x, shown.y, strict=True), strict=True)))
            shown = Histogram((), tuple(merged), tuple(x for x, _ in merged.values()), tuple(y for _, y in merged.values()))
        return replace(column, levels=levels and merge(column, levels), histogram=shown)

    return replace(explanation, columns=tuple(rename(column) for column in explanation.columns))
