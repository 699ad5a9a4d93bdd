"""The options that every entry point takes, checked in one place."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cpmmd import registry
from cpmmd.core import validation
from cpmmd.data.design import CUT, DesignOptions
from cpmmd.data.pool import Pool, read_pool
from cpmmd.data.preprocessing import Transformer, check_transformer
from cpmmd.data.streamed import stream
from cpmmd.engines.memory import DEFAULT_LIMIT
from cpmmd.procedures.base import Procedure, RunOptions


@dataclass(frozen=True)
class TestOptions:
    """What a caller may decide about a test, as it was passed; :meth:`plan` checks it."""

    __test__ = False  # not a test class, whatever pytest thinks of its name

    method: str | Procedure = registry.DEFAULT_METHOD
    alpha: float = 0.05
    n_permutations: int | None = None
    n_jobs: int | None = None
    memory_limit: int | str | None = None
    scale: str | None = None
    missing: str = "error"
    groups: Any = None
    strata: Any = None
    pairs: Any = None
    blocks: int | str | None = None
    group_sizes: str = CUT
    preprocess: Any = None

    def plan(self, *, decides: bool = True) -> TestPlan:
        """Return the procedure and what it is run with, all of it checked.

        A test that ``decides`` must be able to reach ``alpha`` by itself; one of a series whose evidence accumulates need not.
        """
        alpha = validation.open_unit("alpha", self.alpha)
        name, summary, procedure = registry.find_method(self.method)
        if self.scale is not None:
            validation.scale(self.scale)
            procedure = procedure.with_scale(self.scale)
        count = procedure.default_permutations if self.n_permutations is None else self.n_permutations
        limit = DEFAULT_LIMIT if self.memory_limit is None else validation.byte_count("memory_limit", self.memory_limit)
        relabelings = validation.permutation_count(count, alpha if decides else None)
        options = RunOptions(alpha, relabelings, name, summary, limit, decides)
        design = DesignOptions(self.groups, self.strata, self.pairs, self.blocks, self.group_sizes)
        return TestPlan(
            procedure,
            options,
            validation.missing(self.missing),
            validation.jobs(self.n_jobs),
            design,
            check_transformer(self.preprocess),
        )


@dataclass(frozen=True)
class TestPlan:
    """A test that is ready to run."""

    __test__ = False

    procedure: Procedure
    options: RunOptions
    missing: str
    n_jobs: int | None
    design: DesignOptions
    preprocess: Transformer | None = None

    def read(self, x: object, y: object) -> Pool:
        """Return the pool of two samples: in memory, or read batch by batch where that is enough and they are large."""
        if not self.design.given and self.preprocess is None and (rows := self.procedure.batch_rows) is not None:
            streamed = stream(x, y, self.missing, rows)
            if streamed is not None:
                return streamed
        return read_pool(x, y, missing=self.missing, design=self.design, preprocess=self.preprocess)
