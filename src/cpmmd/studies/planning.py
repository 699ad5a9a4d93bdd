"""How many rows would I need? Power over sample sizes from pilot data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpmmd import registry
from cpmmd.core import validation
from cpmmd.core.parallel import map_tasks
from cpmmd.core.progress import Progress, report, reporting_to
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.data.design import CUT, PAIR, Design
from cpmmd.data.pool import Pool, read_pool, take_rows
from cpmmd.draws.group_sizes import cut_groups
from cpmmd.draws.layout import units_needed
from cpmmd.errors import InputError, ParameterReference, TooFewUnitsError, name_keywords
from cpmmd.procedures.base import Procedure, RunOptions
from cpmmd.questions.options import TestOptions
from cpmmd.studies.power_table import Draws, PowerLaw, PowerRow, PowerTable, Range, fit_law

FEWEST = 8  # rows of each sample in a draw: enough for a split in halves
FEWEST_UNITS = 6  # units of each: 2^6 permutations of pairs, 924 of groups
ALL_ROWS = Design(np.arange(2), np.zeros(2, dtype=np.intp), (1, 1))  # no design: each row a unit of its own
STEPS = (0.25, 0.5, 1, 2, 4)  # of the pilot, where no sizes are given
NO_SIZES = "With a design, sizes count groups, pairs, blocks or rows of strata. Got none; pass {sizes}, such as 10, 20 and 40."
NEARLY_ALWAYS = 0.9  # share of rejections above which smaller draws are made as well


@dataclass(frozen=True, eq=False)
class _Plan:
    """Everything that draws need, wherever they run."""

    pool: Pool
    procedure: Procedure
    options: RunOptions
    pilot: int  # rows of the smaller sample, or units of a design
    repetitions: int

    def draw(self, task: tuple[int, np.random.Generator]) -> tuple[int, bool | TooFewUnitsError]:
        """Test ``size`` rows of each sample, drawn without replacement; return the size and the decision, or why none."""
        size, rng = task
        row_stream, test_stream = rng.spawn(2)
        try:
            some = _some_rows(self.pool, size, row_stream)
            with reporting_to(None):  # what counts is how many draws are done
                return size, self.procedure.run(some, self.options, test_stream).reject
        except TooFewUnitsError as error:
            if self.pool.design is None:
                raise
            return size, error


def _some_rows(pool: Pool, size: int, rng: np.random.Generator) -> Pool:
    """Return the rows of ``size`` units of each sample, or of as many pairs; strata that lose a sample are lost."""
    design = pool.design
    if design is None:
        drawn = np.concatenate([rng.permutation(pool.m)[:size], pool.m + rng.permutation(pool.n)[:size]])
        return replace(take_rows(pool, drawn), kept=None)
    if design.kind == PAIR:
        units = np.isin(design.strata, rng.permutation(design.first)[:size])
    else:
        first, second = design.units
        units = np.zeros(design.size, dtype=bool)
        units[rng.permutation(first)[:size]] = True
        units[first + rng.permutation(second)[:size]] = True
    strata, of_x = design.strata, np.arange(design.size) < design.first
    both = np.intersect1d(strata[units & of_x], strata[units & ~of_x])
    rows = np.flatnonzero((units & np.isin(strata, both))[design.unit])
    if not len(rows):
        raise TooFewUnitsError(f"{size} units of each sample share no stratum. Plan with more units, or with fewer strata.")
    some = take_rows(pool, rows)
    return replace(some, design=design.take(rows, some.m), kept=None)


@name_keywords
def power_from_pilot(
    x: object,
    y: object,
    sizes: Iterable[int] | None = None,
    *,
    target: float = 0.8,
    repetitions: int = 100,
    method: str | Procedure = registry.DEFAULT_METHOD,
    alpha: float = 0.05,
    n_permutations: int | None = None,
    rng: RNG = None,
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    scale: str | None = None,
    missing: str = "error",
    progress: Progress | None = None,
    groups: object = None,
    strata: object = None,
    pairs: object = None,
    blocks: int | str | None = None,
    group_sizes: str = CUT,
    preprocess: Any = None,
) -> PowerTable:
    """Estimate from pilot samples how often a test would find their difference at other sample sizes.

    Parameters
    ----------
    x, y : array or data frame
        The pilot samples, as for :func:`two_sample_test`.
    sizes : iterable of int, optional
        Rows of each sample to look at, or groups, pairs or blocks where a design has those; sizes beyond the pilot are
        extrapolated. None is a quarter of the pilot's rows to four times as many.
    target : float
        The power to find the number of rows for.
    repetitions : int
        Draws of each size.
    method, alpha, n_permutations, rng, memory_limit, scale, missing, progress, groups, strata, pairs, blocks, group_sizes, \
preprocess
        As for :func:`two_sample_test`. The same seed gives the same answer, whatever the number of jobs.
    n_jobs : int, optional
        Number of processes, -1 for all cores; None follows ``joblib.parallel_config``.

    Returns
    -------
    PowerTable
        With ``rows``, ``needed`` and ``sentence``; print it for a summary.

    Notes
    -----
    Rows are drawn without replacement: with replacement, rows that are repeated in one sample only would look like a difference.
    The draws also go down to an eighth of the pilot, since power there is what the law
    (:class:`cpmmd.studies.power_table.PowerLaw`) is fitted to.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import power_from_pilot
    >>> data = np.random.default_rng(0)
    >>> x, y = data.normal(size=(60, 2)), data.normal(1, 1, size=(60, 2))
    >>> table = power_from_pilot(x, y, [10, 20, 200], method="median", repetitions=20, n_permutations=99, rng=0)
    >>> [row.extrapolated for row in table.rows]
    [False, False, True]
    >>> table.needed.estimate < 60
    True
    """
    target = validation.open_unit("target", target)
    validation.whole("repetitions", repetitions, at_least=2)
    design = (groups, strata, pairs, blocks, group_sizes)
    test = TestOptions(method, alpha, n_permutations, n_jobs, memory_limit, scale, missing, *design, preprocess).plan()
    seed, generator = resolve_rng(rng)
    if sizes is None and test.design.given:
        raise InputError(NO_SIZES, parameter="sizes", sizes=ParameterReference("sizes"))
    wanted = [] if sizes is None else _sizes(sizes, FEWEST_UNITS if test.design.given else FEWEST)
    pool = read_pool(x, y, missing=test.missing, design=test.design, preprocess=test.preprocess)
    if test.procedure.cuts_groups:
        pool = cut_groups(pool, test.design, generator)
    sizes_of, unit = ((pool.m, pool.n), "rows") if pool.design is None else (pool.design.units, f"{pool.design.kind}s")
    able = fewest_that_reject(pool.design, test.procedure, test.options.alpha)
    pilot, fewest = min(sizes_of), FEWEST if pool.design is None else max(FEWEST_UNITS, able)
    if pilot < fewest:
        raise InputError(f"Each pilot sample must have at least {fewest} {unit}. Got {sizes_of[0]} and {sizes_of[1]}.")
    wanted = wanted or sorted({max(round(step * pilot), fewest) for step in STEPS})
    plan = _Plan(pool, test.procedure, test.options, pilot, repetitions)
    with reporting_to(progress):
        draws = _all_draws(plan, wanted, fewest, generator, test.n_jobs)
    law = fit_law(list(draws.values()), pilot=pilot, alpha=test.options.alpha)
    needed = law.rows_for(target)
    return PowerTable(
        rows=tuple(_row(size, law, draws.get(size), pilot) for size in wanted),
        # No less than can reject: the law knows of effects, not of how many permutations there are.
        needed=Range(*(max(number, float(able)) for number in (needed.estimate, needed.low, needed.high))),
        target=target,
        method=test.options.method,
        alpha=test.options.alpha,
        pilot=(sizes_of[0], sizes_of[1]),
        n_permutations=test.options.n_permutations,
        seed=seed,
        notes=pool.notes,
        unit=unit,
        block_rows=None if pool.design is None else pool.design.block_rows,
    )


def fewest_that_reject(design: Design | None, procedure: Procedure, alpha: float) -> int:
    """Return the smallest number of rows, groups, pairs or blocks of each sample that can have a p-value of alpha at all."""
    # Where some of them choose the kernel, the others must be enough; several splits must each be that much clearer.
    return units_needed(design or ALL_ROWS, alpha / procedure.combination_factor, train=procedure.train_share())


def _sizes(sizes: Iterable[int], fewest: int) -> list[int]:
    if not isinstance(sizes, Iterable):
        raise validation.wrong("sizes", "must be a list of sample sizes such as [50, 100, 200]", sizes)
    wanted = sorted({validation.whole("sizes", size, at_least=fewest) for size in sizes})
    if not wanted:
        raise InputError(
            "At least one sample size is needed, such as 50, 100 and 200. Got none in {setting}.",
            parameter="sizes",
            setting=ParameterReference("sizes"),
        )
    return wanted


def _all_draws(plan: _Plan, wanted: Sequence[int], fewest: int, rng: np.random.Generator, n_jobs: int | None) -> dict[int, Draws]:
    """Draw at the sizes asked for and down a ladder, further down while nearly every draw rejects."""
    draws: dict[int, Draws] = {}
    todo = sorted({size for size in wanted if size <= plan.pilot} | {max(plan.pilot // step, fewest) for step in (2, 4, 8)})
    while todo:
        found, refused = _draw(plan, todo, rng, n_jobs)
        draws |= found
        # Draws from strata may lose so many of them that they could never reject: the ladder does without such sizes.
        for size, error in refused.items():
            if size in wanted or not draws:
                raise error
        lowest = draws[min(draws)]
        again = not refused and lowest.rejections > NEARLY_ALWAYS * lowest.repetitions and lowest.size > fewest
        todo = [max(lowest.size // 2, fewest)] if again else []
    return draws


def _draw(
    plan: _Plan, sizes: Sequence[int], rng: np.random.Generator, n_jobs: int | None
) -> tuple[dict[int, Draws], dict[int, TooFewUnitsError]]:
    """Return the draws of each size, and why there are none of others."""
    streams = rng.spawn(len(sizes))
    # All rows of the pilot can be drawn in one way only.
    counts = {size: 1 if size == plan.pilot else plan.repetitions for size in sizes}
    tasks = [(size, stream) for size, own in zip(sizes, streams, strict=True) for stream in own.spawn(counts[size])]
    rejections, refused = dict.fromkeys(sizes, 0), {}
    for done, (size, reject) in enumerate(map_tasks(plan.draw, tasks, n_jobs=n_jobs), start=1):
        if isinstance(reject, TooFewUnitsError):
            refused[size] = reject
        else:
            rejections[size] += reject
        report("draws", done, len(tasks))
    return {size: Draws(size, rejections[size], counts[size]) for size in sizes if size not in refused}, refused


def _row(size: int, law: PowerLaw, draws: Draws | None, pilot: int) -> PowerRow:
    power = law.power(size)
    observed, repetitions = (None, 0) if draws is None else (draws.rejections / draws.repetitions, draws.repetitions)
    return PowerRow(size, power.estimate, power.low, power.high, observed, repetitions, extrapolated=size > pilot)
