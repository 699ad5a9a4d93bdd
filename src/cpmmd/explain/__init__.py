"""Explanations of a result: every column, pairs of columns, the witness of each row, an effect size, a sentence."""

from cpmmd.explain.differences import ColumnDifference, ColumnEffect, Histogram, PairDifference, SuspiciousColumn
from cpmmd.explain.explanation import explain
from cpmmd.explain.values import Effect, Explanation, RowEvidence

__all__ = [
    "ColumnDifference",
    "ColumnEffect",
    "Effect",
    "Explanation",
    "Histogram",
    "PairDifference",
    "RowEvidence",
    "SuspiciousColumn",
    "explain",
]
