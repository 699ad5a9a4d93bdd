"""How often each method rejects: a study of generators x sizes x methods."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from cpmmd.core.seeds import RNG
from cpmmd.procedures.base import Procedure
from cpmmd.questions.options import TestOptions
from cpmmd.questions.two_sample import two_sample_test
from cpmmd.studies.study import Study
from cpmmd.studies.study_table import Cell

Generate = Callable[[np.random.Generator, int], tuple[Any, Any]]


def power_study(
    name: str,
    *,
    generators: Mapping[str, Generate],
    methods: Mapping[str, str | Procedure],
    sizes: Sequence[int],
    repetitions: int = 100,
    alpha: float = 0.05,
    n_permutations: int | None = None,
    rng: RNG = 0,
    memory_limit: int | str | None = None,
    scale: str | None = None,
    missing: str = "error",
    groups: str | None = None,
    strata: str | None = None,
    pairs: str | None = None,
    blocks: int | str | None = None,
) -> Study:
    """Return the study of how often each method rejects (``power``) on each generator at each size.

    Parameters
    ----------
    name : str
        Part of every seed.
    generators : mapping
        Name to ``(rng, size) -> (x, y)``. Every method sees the same samples.
    methods : mapping
        Name to a method name or a procedure.
    sizes : sequence of int
        Handed to the generators.
    repetitions, rng
        As for :class:`Study`.
    alpha, n_permutations, memory_limit, scale, missing
        As for :func:`two_sample_test`.
    groups, strata, pairs : str, optional
        A column of the frames that generators return, as for :func:`two_sample_test`.
    blocks : int or "auto", optional
        As for :func:`two_sample_test`.

    Returns
    -------
    Study
        Call its ``run``, with a file to be safe against a kill.

    Examples
    --------
    >>> from cpmmd import power_study
    >>> def shifted(rng, size):
    ...     return rng.normal(size=(size, 2)), rng.normal(1.5, 1, size=(size, 2))
    >>> study = power_study("demo", generators={"shift": shifted}, methods={"median": "median"}, sizes=[30], repetitions=5)
    >>> study.run().rows[0]["power"]
    1.0
    """
    for method in methods.values():
        TestOptions(method, alpha, n_permutations, None, memory_limit, scale, missing, groups, strata, pairs, blocks).plan()
    cells = [{"generator": g, "size": int(s), "method": m} for g in generators for s in sizes for m in methods]
    given = {"memory_limit": memory_limit, "scale": scale, "missing": None if missing == "error" else missing}
    given |= {"groups": groups, "strata": strata, "pairs": pairs, "blocks": blocks}
    settings = {"alpha": alpha, "n_permutations": n_permutations, **{k: v for k, v in given.items() if v is not None}}
    task = partial(_test_once, dict(generators), dict(methods), settings)
    return Study(name, task, cells, repetitions, rng, data_keys=("generator", "size"), settings=settings)


def _test_once(
    generators: Mapping[str, Generate],
    methods: Mapping[str, str | Procedure],
    settings: Mapping[str, Any],
    cell: Cell,
    data_rng: np.random.Generator,
    test_rng: np.random.Generator,
) -> dict[str, float]:
    x, y = generators[cell["generator"]](data_rng, cell["size"])
    result = two_sample_test(x, y, method=methods[cell["method"]], rng=test_rng, **settings)
    return {"power": int(result.reject), "pvalue": result.pvalue}
