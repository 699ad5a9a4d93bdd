"""Batches: what a detector says about one, and the seed that its rows give it."""

from __future__ import annotations

import hashlib
import json
from dataclasses import dataclass
from datetime import datetime

import numpy as np

from cpmmd.core.plain import PlainDict, plain_dict
from cpmmd.core.text import counted
from cpmmd.data.scalars import category_text
from cpmmd.data.table import Table
from cpmmd.results import TestResult


@dataclass(frozen=True, eq=False)
class BatchResult:
    """The answer of a detector about one batch.

    Attributes
    ----------
    name : str
        What the batch is called; its key in a :class:`~cpmmd.History`.
    time : datetime
        When it was tested.
    result : TestResult
        The test itself, with ``explain`` and all; X is the reference, Y the batch.
    key : str
        Of the batch's content and the detector: what a history knows it by.
    path : str or None
        The file it came from, where it was one.
    adjusted, effect : float or None
        Filled in by whoever sees the whole series or explains the result: the p-value adjusted for the number of batches, and
        the effect size.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import DriftDetector
    >>> data = np.random.default_rng(0)
    >>> detector = DriftDetector(rng=0).fit(data.normal(size=(100, 2)))
    >>> batch = detector.test(data.normal(1, 1, size=(50, 2)), name="monday")
    >>> batch.name, batch.rows, batch.reject
    ('monday', 50, True)
    """

    name: str
    time: datetime
    result: TestResult
    key: str = ""
    path: str | None = None
    adjusted: float | None = None
    effect: float | None = None

    @property
    def rows(self) -> int:
        """Rows of the batch, without those dropped for missing values."""
        return self.result.sizes[1]

    @property
    def pvalue(self) -> float:
        """P-value of the test, not adjusted."""
        return self.result.pvalue

    @property
    def statistic(self) -> float:
        """The test's statistic."""
        return self.result.statistic

    @property
    def reject(self) -> bool:
        """Whether the batch differs from the reference at the detector's level."""
        return self.result.reject

    @property
    def notes(self) -> tuple[str, ...]:
        """What was done to the batch to make it fit, and the like."""
        return self.result.notes

    def to_dict(self) -> PlainDict:
        """Return the record of the batch in plain JSON types: what a history keeps and a series shows."""
        return plain_dict(
            {
                "key": self.key or self.name,
                "batch": self.name,
                "path": self.path,
                "time": self.time.isoformat(timespec="seconds"),
                "rows": self.rows,
                "pvalue": self.pvalue,
                "adjusted": self.adjusted,
                "statistic": self.statistic,
                "effect": self.effect,
                "reject": self.reject,
                "method": self.result.method,
                "seed": self.result.seed,
            }
        )

    def __str__(self) -> str:
        verdict = "differs" if self.reject else "no difference found"
        sign = "<=" if self.pvalue <= self.result.alpha else ">"
        noted = f"; {counted(len(self.notes), 'note')}" if self.notes else ""
        name = " ".join(self.name.split())
        return f"{name}: {verdict} (p = {self.pvalue:.4g} {sign} {self.result.alpha:g}), {counted(self.rows, 'row')}{noted}"


def content_digest(table: Table) -> str:
    """Return the SHA-256 of a batch's values, the same whatever kind of frame or order of columns they came in."""
    digest = hashlib.sha256(json.dumps([table.numbers.shape, table.number_names, list(table.categories)]).encode())
    numbers = np.asarray(table.numbers)
    canonical = np.where(np.isnan(numbers), np.nan, numbers) + 0.0  # one NaN, and no negative zero
    digest.update(np.ascontiguousarray(canonical, dtype="<f8").tobytes())
    for values in table.categories.values():
        digest.update(json.dumps(values.tolist()).encode())
    for name, values in table.aside.items():
        digest.update(json.dumps([name, [category_text(v) for v in values.tolist()]]).encode())
    return digest.hexdigest()
