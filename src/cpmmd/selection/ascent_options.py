"""Options of gradient ascent, apart from torch so that they can be named without it."""

from __future__ import annotations

from dataclasses import dataclass

from cpmmd.core import validation


@dataclass(frozen=True)
class Ascent:
    """How trained kernels are trained: Adam, the best iterate of t = 0..T by the criterion itself.

    Parameters
    ----------
    steps : int
        T; the paper's by default, as the next two.
    learning_rate : float
        Adam's step size.
    clip : float
        The largest gradient norm.
    batch_rows : int
        Training halves larger than this are trained on random batches of this many rows, and judged on one fixed batch.
    device : str
        ``"cpu"`` or a torch device such as ``"cuda"``.
    dtype : str
        ``"float32"`` or ``"float64"``.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import Ascent, Deep, SplitTest, two_sample_test
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(40, 2)), data.normal(4, 1, size=(40, 2))
    >>> method = SplitTest(Deep(width=8), ascent=Ascent(steps=2, dtype="float64"))
    >>> len(two_sample_test(x, y, method=method, rng=0).selection.path.steps)
    3
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
