"""Where the samples differ: features, rows and the witness that tells them apart."""

from __future__ import annotations

from collections.abc import Sequence
from numbers import Real
from typing import Any

from cpmmd.report import blocks, cells
from cpmmd.report.blocks import Block
from cpmmd.results import TestResult

MOST_FEATURES = 25  # rows of the table of features
MOST_VALUES = 8  # columns of the table of rows: the leading features


def location(result: TestResult, explanation: Any, *, rows: bool) -> Block:
    """Give the section; it says so when nothing is known."""
    if explanation is None:
        return blocks.section("where", "Where", [blocks.text("This result carries no rows, so it cannot say where.")])
    caution = None if result.reject else blocks.text(
        "No difference was found. What follows shows where these samples look least alike; chance alone gives such a ranking."
    )
    return blocks.section(
        "where",
        "Where",
        [
            caution,
            blocks.figure("feature-contributions", "Features that carry the difference", leaders(explanation.features)),
            blocks.figure("witness-densities", "Witness values of both samples", effect_sentence(explanation.effect)),
            _features(explanation.features),
            blocks.figure(
                "feature-distributions",
                "The leading features in both samples",
                f"Distributions in X and in Y. {leaders(explanation.features)}",
                wide=True,
            ),
            blocks.figure("pool-map", "Map of the rows", "All rows in two dimensions, coloured by their witness value.", wide=True),
            *(_rows(explanation) if rows else ()),
        ],
    )


def leaders(features: Sequence[Any]) -> str:
    """Name the leading features with their shares."""
    named = ", ".join(f"{blocks.shown(f.name)} {cells.cell_text(f.contribution, 'share')}" for f in features[:3])
    return f"Share of the squared MMD lost when a feature is shuffled across both samples: {named}." if named else ""


def effect_sentence(effect: Any) -> str:
    """Say how well the witness tells the samples apart."""
    return (
        f"The witness ranks a row of X above a row of Y with probability {effect.probability:.2f} "
        f"(95% interval {effect.low:.2f} to {effect.high:.2f}); 0.5 would be indistinguishable."
    )
