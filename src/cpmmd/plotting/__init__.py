"""Pictures of results and explanations.

Each function draws on the Axes it is given, or on new ones, and returns them. Line styles, markers and hatching differ, so that
no picture needs its colours; text takes the colours of the matplotlib style in force, which suits light and dark pages.
"""

from cpmmd.plotting.batches import batch_effects, batch_series, batch_wealth, moved_columns
from cpmmd.plotting.explanations import column_differences, column_distributions, pool_map, witness_densities
from cpmmd.plotting.pairs import column_pairs
from cpmmd.plotting.samples import sample_pairs
from cpmmd.plotting.selection import criterion_path, null_distribution, power_curves, training_history

__all__ = [
    "batch_effects",
    "batch_series",
    "batch_wealth",
    "column_differences",
    "column_distributions",
    "column_pairs",
    "criterion_path",
    "moved_columns",
    "null_distribution",
    "pool_map",
    "power_curves",
    "sample_pairs",
    "training_history",
    "witness_densities",
]
