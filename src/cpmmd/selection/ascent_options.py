"""Options of gradient ascent, apart from torch so that they can be named without it."""

from __future__ import annotations

from dataclasses import dataclass

from cpmmd.core import validation


@dataclass(frozen=True)
class Ascent:
    """How trained kernels are trained: Adam, the best iterate of t = 0..T by the criterion itself.

    Parameters
    ----------
    steps, learning_rate, clip
        T, Adam's step size, and the largest gradient norm; the paper's by default.
    batch_rows
        Training halves larger than this are trained on random batches of this many rows, and judged on one fixed batch.
    device
        ``"cpu"`` or a torch device such as ``"cuda"``.
    dtype
        ``"float32"`` or ``"float64"``.
    """

    steps: int = 100
    learning_rate: float = 0.005
    clip: float = 5.0
    batch_rows: int = 4096
    device: str = "cpu"
    dtype: str = "float32"

    def __post_init__(self) -> None:
        validation.whole("steps", self.steps, at_least=0)
        validation.positive("learning_rate", self.learning_rate)
        validation.positive("clip", self.clip)
        validation.whole("batch_rows", self.batch_rows, at_least=16)
        validation.one_of("dtype", self.dtype, ("float32", "float64"))
