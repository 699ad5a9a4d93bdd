"""From what people have (arrays, frames, tensors) to matrices: reading, then preparation fitted by the level rules."""

from cpmmd.inputs.preparation import Preparation
from cpmmd.inputs.samples import Samples, read_samples
from cpmmd.inputs.tables import Table, read_table

__all__ = ["Preparation", "Samples", "Table", "read_samples", "read_table"]
