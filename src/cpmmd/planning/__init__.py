"""How many rows would I need? Power over sample sizes from pilot data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any

import numpy as np

from cpmmd import validation
from cpmmd.api import DEFAULT_METHOD, resolve_method
from cpmmd.errors import InputError
from cpmmd.inputs import Samples, read_samples
from cpmmd.inputs.numbers import Matrix
from cpmmd.parallel import map_tasks
from cpmmd.planning.law import Draws, PowerLaw, Range, fit_law
from cpmmd.planning.table import PowerRow, PowerTable
from cpmmd.procedures.base import Procedure, RunOptions
from cpmmd.progress import Progress, report, reporting_to

__all__ = ["Draws", "PowerLaw", "PowerRow", "PowerTable", "Range", "fit_law", "power_from_pilot"]

FEWEST = 8  # rows of each sample in a draw: enough for a split in halves
NEARLY_ALWAYS = 0.9  # share of rejections above which smaller draws are made as well


@dataclass(frozen=True, eq=False)
class _Plan:
    """Everything a draw needs, wherever it runs."""

    samples: Samples
    procedure: Procedure
    options: RunOptions

    def draw(self, task: tuple[int, np.random.Generator]) -> tuple[int, bool]:
        """Test ``size`` rows of each sample, drawn without replacement; give the size and the decision."""
        size, rng = task
        row_stream, test_stream = rng.spawn(2)
        m, n = self.samples.m, self.samples.n
        rows = np.concatenate([row_stream.permutation(m)[:size], m + row_stream.permutation(n)[:size]])
        some = replace(
            self.samples,
            numbers=Matrix(self.samples.numbers[rows]),
            categories={name: values[rows] for name, values in self.samples.categories.items()},
            m=size,
            n=size,
            kept=None,
        )
        with reporting_to(None):  # what counts is how many draws are done
            return size, self.procedure.run(some, self.options, test_stream).reject


def power_from_pilot(
    x: Any,
    y: Any,
    sizes: Iterable[int],
    *,
    method: str | Procedure = DEFAULT_METHOD,
    alpha: float = 0.05,
    target: float = 0.8,
    repetitions: int = 100,
    n_permutations: int | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    missing: str = "error",
    progress: Progress | None = None,
) -> PowerTable:
    """Estimate from pilot samples how often a test would find their difference at other sample sizes.

    Parameters
    ----------
    x, y
        The pilot samples, as for :func:`two_sample_test`.
    sizes
        Rows of each sample to look at; those beyond the pilot are extrapolated.
    method, alpha, n_permutations, missing
        As for :func:`two_sample_test`.
    target
        The power to find the number of rows for.
    repetitions
        Draws of each size.
    rng
        Seed, Generator or None. The same seed gives the same answer, whatever the number of jobs.
    n_jobs
        Number of processes; None follows ``joblib.parallel_config``.
    progress
        Called as ``progress(stage, done, total)``.

    Returns
    -------
    PowerTable
        With ``rows``, ``needed`` and ``sentence``; print it for a summary.

    Notes
    -----
    Rows are drawn without replacement: with replacement, equal rows on one side alone would look like a difference. The
    draws also go down to an eighth of the pilot, since power there is what the law (:mod:`cpmmd.planning.law`) is fitted to.

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
    alpha, target = validation.open_unit("alpha", alpha), validation.open_unit("target", target)
    wanted = _sizes(sizes)
    validation.whole("repetitions", repetitions, at_least=2)
    name, procedure = resolve_method(method)
    count = procedure.default_permutations if n_permutations is None else n_permutations
    options = RunOptions(alpha, validation.permutation_count(count, alpha), name)
    seed, generator = validation.generator(rng)
    samples = read_samples(x, y, missing=missing)
    pilot = min(samples.m, samples.n)
    if pilot < FEWEST:
        raise InputError(f"Each pilot sample must have at least {FEWEST} rows. Got {samples.m} and {samples.n}.")
    plan = _Plan(samples, procedure, options)
    with reporting_to(progress):
        draws = _all_draws(plan, wanted, pilot, repetitions, generator, n_jobs)
    law = fit_law(list(draws.values()), pilot=pilot, alpha=alpha)
    return PowerTable(
        rows=tuple(_row(size, law, draws.get(size), pilot) for size in wanted),
        needed=law.rows_for(target),
        target=target,
        method=name,
        alpha=alpha,
        pilot=(samples.m, samples.n),
        n_permutations=options.n_permutations,
        seed=seed,
        notes=samples.notes,
    )


def _sizes(sizes: Iterable[int]) -> list[int]:
    wanted = sorted({validation.whole("sizes", size, at_least=FEWEST) for size in sizes})
    if not wanted:
        raise InputError("At least one sample size is needed. Got none; try sizes=[50, 100, 200].")
    return wanted


def _all_draws(
    plan: _Plan, wanted: Sequence[int], pilot: int, repetitions: int, rng: np.random.Generator, n_jobs: int | None
) -> dict[int, Draws]:
    """Draw at the sizes asked for and down a ladder, further down while nearly every draw rejects."""
    ladder = {max(pilot // step, FEWEST) for step in (2, 4, 8)}
    draws: dict[int, Draws] = {}
    todo = sorted({size for size in wanted if size <= pilot} | ladder)
    while todo:
        draws |= _draw(plan, todo, pilot, repetitions, rng, n_jobs)
        lowest = draws[min(draws)]
        again = lowest.rejections > NEARLY_ALWAYS * lowest.repetitions and lowest.size > FEWEST
        todo = [max(lowest.size // 2, FEWEST)] if again else []
    return draws


def _draw(
    plan: _Plan, sizes: Sequence[int], pilot: int, repetitions: int, rng: np.random.Generator, n_jobs: int | None
) -> dict[int, Draws]:
    streams = rng.spawn(len(sizes))
    # All rows of the pilot can be drawn in one way only.
    counts = {size: 1 if size == pilot else repetitions for size in sizes}
    tasks = [(size, stream) for size, own in zip(sizes, streams, strict=True) for stream in own.spawn(counts[size])]
    rejections = dict.fromkeys(sizes, 0)
    for done, (size, reject) in enumerate(map_tasks(partial(_run, plan), tasks, n_jobs=n_jobs), start=1):
        rejections[size] += reject
        report("draws", done, len(tasks))
    return {size: Draws(size, rejections[size], counts[size]) for size in sizes}


def _run(plan: _Plan, task: tuple[int, np.random.Generator]) -> tuple[int, bool]:
    return plan.draw(task)


def _row(size: int, law: PowerLaw, draws: Draws | None, pilot: int) -> PowerRow:
    power = law.power(size)
    observed = None if draws is None else draws.rejections / draws.repetitions
    return PowerRow(
        size,
        power.estimate,
        power.low,
        power.high,
        observed,
        0 if draws is None else draws.repetitions,
        extrapolated=size > pilot,
    )
