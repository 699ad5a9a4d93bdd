"""Many tests at once (segments, days, columns): one call, adjusted p-values, any joblib back end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from cpmmd import validation
from cpmmd.api import DEFAULT_METHOD, resolve_method, two_sample_test
from cpmmd.errors import CpmmdError, InputError
from cpmmd.multiplicity import benjamini_hochberg
from cpmmd.parallel import map_tasks
from cpmmd.procedures.base import Procedure
from cpmmd.progress import Progress
from cpmmd.results import TestResult, json_clean
from cpmmd.seeds import short_seed

Pair = tuple[Any, Any]


@dataclass(frozen=True, eq=False)
class ManyResults:
    """The answers of many tests, by name, in the order they were asked.

    Attributes
    ----------
    results
        The tests that gave an answer.
    failures
        A sentence for each that did not.
    adjusted
        Benjamini-Hochberg p-values of ``results``: rejecting those <= alpha keeps the share of false alarms among the
        rejections at alpha on average.
    """

    results: Mapping[str, TestResult]
    failures: Mapping[str, str]
    adjusted: Mapping[str, float]
    alpha: float
    seed: int | None

    @property
    def rejected(self) -> tuple[str, ...]:
        """Names of the tests that differ after adjustment."""
        return tuple(name for name, p in self.adjusted.items() if p <= self.alpha)

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON types."""
        answers = {name: {**r.to_dict(), "adjusted": self.adjusted[name]} for name, r in self.results.items()}
        clean: dict[str, Any] = json_clean(
            {"alpha": self.alpha, "seed": self.seed, "rejected": self.rejected, "tests": answers, "failures": dict(self.failures)}
        )
        return clean

    def __str__(self) -> str:
        lines = [f"{len(self.rejected)} of {len(self.results)} differ (adjusted p <= {self.alpha:g})."]
        for name, result in self.results.items():
            mark = "*" if self.adjusted[name] <= self.alpha else " "
            m, n = result.sizes
            lines.append(f" {mark} {name}: p = {result.pvalue:.4g}, adjusted {self.adjusted[name]:.4g}, {m} v {n} rows")
        lines += [f" ! {name}: {sentence}" for name, sentence in self.failures.items()]
        return "\n".join(lines)


def run_many(
    tests: Mapping[str, Pair | Callable[[], Pair]],
    *,
    method: str | Procedure = DEFAULT_METHOD,
    alpha: float = 0.05,
    rng: int | None = None,
    n_jobs: int | None = None,
    progress: Progress | None = None,
    **options: Any,
) -> ManyResults:
    """Run many two-sample tests and adjust their p-values.

    Parameters
    ----------
    tests
        A name for each test, with its two samples, or with a function that gives them (called where the test runs, so that
        data can be read there; such results cannot be explained later, for the data stay where they were read).
    rng
        Seed. A test's stream depends on the seed and its name alone: not on the other tests, their order or the back end.
    n_jobs
        Processes. None follows ``joblib.parallel_config`` (Dask, Ray, ...), else runs one test after the other.
    progress
        Called as ``progress("tests", done, total)``.
    **options
        Passed on to :func:`cpmmd.two_sample_test`.

    Returns
    -------
    ManyResults
        A test that fails (too few rows, say) is reported there; the others are not lost.

    Examples
    --------
    >>> import numpy as np
    >>> data = np.random.default_rng(0)
    >>> days = {f"day {i}": (data.normal(size=(60, 2)), data.normal(i, 1, size=(50, 2))) for i in range(3)}
    >>> run_many(days, rng=0).rejected
    ('day 1', 'day 2')
    """
    validation.open_unit("alpha", alpha)
    resolve_method(method)
    if not isinstance(tests, Mapping) or not tests:
        raise InputError(f"The 'tests' parameter must map names to pairs of samples, at least one. Got {type(tests).__name__}.")
    if rng is not None:
        validation.whole("rng", rng, at_least=0)
    seed = int(np.random.SeedSequence().generate_state(1)[0]) if rng is None else rng
    settings = {**options, "method": method, "alpha": alpha}
    items = [(str(name), pair, short_seed(seed, str(name)), settings) for name, pair in tests.items()]
    answers: dict[str, TestResult | str] = {}
    for name, answer in map_tasks(_one, items, n_jobs=n_jobs):
        answers[name] = answer
        if progress is not None:
            progress("tests", len(answers), len(items))
    return _collect([name for name, *_ in items], answers, alpha, seed)


def _one(item: tuple[str, Pair | Callable[[], Pair], int, dict[str, Any]]) -> tuple[str, TestResult | str]:
    name, pair, seed, settings = item
    try:
        x, y = pair() if callable(pair) else pair
        result = two_sample_test(x, y, rng=seed, **settings)
        return name, replace(result, evidence=None) if callable(pair) else result
    except CpmmdError as error:
        return name, str(error)
    except Exception as error:  # one broken test must not lose the others
        return name, f"{type(error).__name__}: {error}"


def _collect(names: list[str], answers: Mapping[str, TestResult | str], alpha: float, seed: int) -> ManyResults:
    results = {name: answer for name in names if isinstance(answer := answers[name], TestResult)}
    failures = {name: answer for name in names if isinstance(answer := answers[name], str)}
    adjusted = benjamini_hochberg([r.pvalue for r in results.values()])
    return ManyResults(results, failures, dict(zip(results, adjusted.tolist(), strict=True)), alpha, seed)
