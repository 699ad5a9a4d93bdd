"""From what people have (arrays, frames, tensors) to matrices: reading, then preparation fitted by the level rules."""

from cpmmd.inputs.conform import conform
from cpmmd.inputs.preparation import Preparation
from cpmmd.inputs.samples import Samples, alone, checked_tables, pooled, read_samples
from cpmmd.inputs.tables import Table, read_table

__all__ = ["Preparation", "Samples", "Table", "alone", "checked_tables", "conform", "pooled", "read_samples", "read_table"]
