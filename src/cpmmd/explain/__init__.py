"""Explanations of a result: every column, pairs of columns, the witness of each row, the AUC, a sentence."""

from cpmmd.explain.differences import ColumnDifference, ColumnEffect, Histogram, PairDifference, SuspiciousColumn
from cpmmd.explain.explanation import explain
from cpmmd.explain.values import AUC, Explanation, NotableRow

__all__ = [
    "AUC",
    "ColumnDifference",
    "ColumnEffect",
    "Explanation",
    "Histogram",
    "NotableRow",
    "PairDifference",
    "SuspiciousColumn",
    "explain",
]
