"""Explanations of a result: the witness of each row, the contribution of each column, an effect size, a sentence."""

from cpmmd.explain.explanation import explain
from cpmmd.explain.values import ColumnContribution, Effect, Explanation, RowEvidence

__all__ = ["ColumnContribution", "Effect", "Explanation", "RowEvidence", "explain"]
