"""Where the samples differ: features, rows and the witness that tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from numbers import Real
from typing import Any

from cpmmd.core.text import harmless
from cpmmd.explain.typical import typical
from cpmmd.explain.values import ColumnContribution, Effect, Explanation
from cpmmd.procedures.outcome import TestOutcome
from cpmmd.report import blocks, cells
from cpmmd.report.blocks import Block

MOST_FEATURES = 15  # rows of the table of features
FEW = 5  # rows: a level that has fewer says something about them
RARE = "(rare values)"
HEADER = 24  # characters of a feature's name above a column of values
MOST_VALUES = 8  # columns of the table of rows: the leading features


def location(result: TestOutcome, explanation: Explanation | None, *, rows: bool) -> Block:
    """Return the section; it says so when nothing is known."""
    if explanation is None:
        return blocks.section("where", "Where", [blocks.text("This result carries no rows, so it cannot say where.")])
    caution = (
        "No difference was found: what follows is where these samples look least alike, as some samples must by chance alone."
    )
    return blocks.section(
        "where",
        "Where",
        [
            None if result.reject else blocks.text(caution),
            blocks.figure("column-contributions", "Columns that carry the difference", leaders(explanation.columns)),
            blocks.figure("witness-densities", "Witness values of both samples", effect_sentence(explanation.effect)),
            _features(explanation.columns),
            blocks.figure(
                "column-distributions",
                "The leading columns in both samples",
                f"Distributions in x and in y. {leaders(explanation.columns)}",
            ),
            blocks.figure("pool-map", "Map of the rows", "Rows in two dimensions, coloured by their witness value."),
            *(_rows(explanation) if rows else ()),
        ],
    )


def leaders(features: Sequence[ColumnContribution]) -> str:
    """Name the leading features with their shares."""
    named = ", ".join(f"{harmless(f.label)} {cells.cell_text(f.contribution, 'share')}" for f in features[:3])
    return f"Share of the squared MMD lost when a column is shuffled across both samples: {named}." if named else ""


def effect_sentence(effect: Effect) -> str:
    """Say how well the witness tells the samples apart."""
    return (
        f"The witness ranks a row of x above a row of y with probability {effect.probability:.2f} "
        f"(95% interval {effect.low:.2f} to {effect.high:.2f}); 0.5 would be indistinguishable."
    )


def without_rare_levels(explanation: Explanation, sizes: tuple[int, int]) -> Explanation:
    """Return the explanation with the levels that fewer than FEW rows have under one name: they would say who those rows are."""

    def rename_rare(feature: ColumnContribution) -> ColumnContribution:
        levels: dict[str, tuple[float, float]] = {}
        for level, (x, y) in (feature.levels or {}).items():
            name = level if x * sizes[0] + y * sizes[1] >= FEW else RARE
            x_so_far, y_so_far = levels.get(name, (0.0, 0.0))
            levels[name] = (x_so_far + x, y_so_far + y)
        return replace(feature, levels=levels) if levels else feature

    return replace(explanation, columns=tuple(rename_rare(column) for column in explanation.columns))


def _features(features: Sequence[ColumnContribution]) -> Block:
    """Table the features, largest contribution first."""
    chosen = features[:MOST_FEATURES]
    columns = [("Column", "text"), ("Share of MMD²", "share"), ("± s.e.", "share"), ("In x", "measure"), ("In y", "measure")]
    rows: list[list[Any]] = [[f.label, f.contribution, f.standard_error, *typical(f, nothing=cells.NOTHING)] for f in chosen]
    if any(f.difference for f in chosen):
        columns.append(("y is", "words"))
        rows = [[*row, harmless(f.difference or cells.NOTHING, 80)] for row, f in zip(rows, chosen, strict=True)]
    note = "Share of the squared MMD lost when the column is shuffled across both samples; in x and y, means or shares."
    if len(features) > MOST_FEATURES:
        note = f"The first {MOST_FEATURES} of {cells.count(len(features))} columns. {note}"
    return blocks.table("columns", "Columns by their contribution", columns, rows, note=note)


def _rows(explanation: Explanation) -> list[Block]:
    """Table the rows that speak most for either side, by the leading features."""
    leading = [f.name for f in explanation.columns[:MOST_VALUES]]
    tables = []
    for sample, evidence in (("x", explanation.top_x), ("y", explanation.top_y)):
        chosen = [name for name in leading if any(name in row.values for row in evidence)]
        rows = [[row.row, row.witness, *(row.values.get(name) for name in chosen)] for row in evidence]
        kinds = [_kind([row.values.get(name) for row in evidence]) for name in chosen]
        labels = [harmless(f.label, HEADER) for f in explanation.columns if f.name in chosen]
        columns = [("Row", "count"), ("Witness", "number"), *zip(labels, kinds, strict=True)]
        every = len(explanation.columns)
        note = f"The {len(chosen)} leading columns of {cells.count(every)}." if every > len(chosen) else ""
        caption = f"Rows that speak most for {sample}"
        tables.append(blocks.table(f"rows-{sample}", caption, columns, rows, note=note))
    return tables


def _kind(values: Sequence[Any]) -> str:
    kinds = {"flag" if isinstance(v, bool) else "number" if isinstance(v, Real) else "text" for v in values if v is not None}
    return kinds.pop() if len(kinds) == 1 else "text"
