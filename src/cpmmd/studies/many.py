"""Many tests at once (segments, days, columns): one call, adjusted p-values, any joblib back end."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from typing import Any

from cpmmd import registry
from cpmmd.core import validation
from cpmmd.core.parallel import map_tasks
from cpmmd.core.plain import NoTruthValue, PlainDict, plain_dict
from cpmmd.core.progress import Progress
from cpmmd.core.seeds import RNG, resolve_seed, short_seed
from cpmmd.core.text import pluralize
from cpmmd.data.design import CUT
from cpmmd.errors import CpmmdError, InputError, name_keywords, name_some
from cpmmd.procedures.base import Procedure
from cpmmd.procedures.outcome import TestResult
from cpmmd.questions.options import TestOptions
from cpmmd.questions.two_sample import two_sample_test
from cpmmd.studies.multiplicity import find_correction

Pair = tuple[object, object]
Item = tuple[str, "Pair | Callable[[], Pair]", int, TestOptions]  # name, samples, seed, options
Answers = dict[str, TestResult | Exception]


@dataclass(frozen=True, eq=False, repr=False)
class ManyResults(NoTruthValue):
    """The answers of many tests, by name, in the order they were asked."""

    truth_hint = "`.rejected`"

    results: Mapping[str, TestResult]  #: the tests that gave an answer
    errors: Mapping[str, Exception]  #: what went wrong with each that did not; ``failures`` are the sentences
    #: their p-values adjusted: rejecting those <= alpha keeps the share of false alarms among the rejections at alpha on average
    adjusted: Mapping[str, float]
    alpha: float  #: level at which ``rejected`` differ
    seed: int | None  #: what repeats the answers as ``rng=``
    correction: str = "benjamini-hochberg"  #: how p-values were adjusted

    @property
    def citations(self) -> tuple[str, ...]:
        """Keys in ``citations.bib`` of what to cite for the adjustment."""
        return (find_correction(self.correction).citation,)

    @property
    def failures(self) -> dict[str, str]:
        """A sentence for each test that gave no answer."""
        return {
            name: str(error) if isinstance(error, CpmmdError) else f"{type(error).__name__}: {error}"
            for name, error in self.errors.items()
        }

    @property
    def rejected(self) -> tuple[str, ...]:
        """Names of the tests that differ after adjustment."""
        return tuple(name for name, p in self.adjusted.items() if p <= self.alpha)

    @property
    def notes(self) -> tuple[str, ...]:
        """What to bear in mind: tests with too few rows to be significant alone among so many."""
        enough = _level_alone(self.alpha, max(1, len(self.results)), self.correction)
        few = [name for name, r in self.results.items() if r.exhaustive and 1 / (len(r.null_distribution) + 1) > enough + 1e-12]
        if not few:
            return ()
        which = f"{name_some(few)}: {'it has' if len(few) == 1 else 'they have'} too few rows to be significant after adjustment"
        return (f"{which} among {len(self.results)} tests, which requires p <= {enough:.2g}",)

    def to_dict(self) -> PlainDict:
        """Return all answers in plain JSON types."""
        answers = {name: {**r.to_dict(), "adjusted": self.adjusted[name]} for name, r in self.results.items()}
        own = {name: getattr(self, name) for name in ("alpha", "seed", "correction", "rejected", "failures", "notes")}
        return plain_dict({**own, "tests": answers})

    @property
    def sentence(self) -> str:
        """How many tests reject."""
        return f"{len(self.rejected)} of {len(self.results)} differ (adjusted p <= {self.alpha:g})."

    def __repr__(self) -> str:
        return f"<ManyResults: {self.sentence[:-1]}; {pluralize(len(self.errors), 'error')}>"

    def _repr_html_(self) -> str:
        from cpmmd.report.notebook import table_card

        rows = [
            {"test": name, "differs": name in self.rejected, "p-value": result.pvalue, "adjusted": self.adjusted[name]}
            for name, result in self.results.items()
        ]
        return table_card(self.sentence, [*self.failures.values(), *self.notes], rows, found=bool(self.rejected))

    def __str__(self) -> str:
        lines = [self.sentence]
        for name, result in self.results.items():
            mark = "*" if self.adjusted[name] <= self.alpha else " "
            m, n = result.sizes
            lines.append(f" {mark} {name}: p = {result.pvalue:.4g}, adjusted {self.adjusted[name]:.4g}, {m} v {n} rows")
        lines += [f" ! {name}: {sentence}" for name, sentence in self.failures.items()]
        lines += [f" note {note}" for note in self.notes]
        return "\n".join(lines)


@name_keywords
def run_many(
    tests: Mapping[str, Pair | Callable[[], Pair]],
    *,
    method: str | Procedure = registry.DEFAULT_METHOD,
    alpha: float = 0.05,
    n_permutations: int | None = None,
    rng: RNG = None,
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    scale: str | None = None,
    missing: str = "error",
    progress: Progress | None = None,
    groups: str | None = None,
    strata: str | None = None,
    pairs: str | None = None,
    blocks: int | str | None = None,
    group_sizes: str = CUT,
    preprocess: Any = None,
    correction: str = "benjamini-hochberg",
) -> ManyResults:
    """Run many two-sample tests and adjust their p-values.

    If the number of tests requires more permutations than one test has (61 tests need p <= .05/61), tests with p <= alpha run on
    with as many as needed, so that one clear difference among many is found.

    Parameters
    ----------
    tests : mapping
        A name for each test, with its two samples, or with a function that returns them. The function is called where the test
        runs, so that data can be read there; such results cannot be explained later, because the data stay there.
    method, alpha, n_permutations, memory_limit, scale, missing, blocks, group_sizes, preprocess
        As for :func:`two_sample_test`.
    rng : int, Generator, RandomState or None
        Seed or generator. A test's stream depends on the seed and its name alone: not on the other tests, their order or the back
        end.
    n_jobs : int, optional
        Processes, -1 for all cores. None follows ``joblib.parallel_config`` (Dask, Ray, ...), and runs one test after the other
        if there is none.
    progress : callable, optional
        Called as ``progress("tests", done, total)``.
    groups, strata, pairs : str, optional
        A column of both samples, as for :func:`two_sample_test`.
    correction : str
        ``"benjamini-hochberg"``, proven for independent tests; or ``"benjamini-yekutieli"``, proven under any dependence, such as
        that of tests that share rows, which multiplies p-values by a further 1 + 1/2 + ... + 1/k.

    Returns
    -------
    ManyResults
        A test that fails, for instance because of too few rows, is reported there; the others are not lost.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import run_many
    >>> data = np.random.default_rng(0)
    >>> days = {f"day {i}": (data.normal(size=(60, 2)), data.normal(i, 1, size=(50, 2))) for i in range(3)}
    >>> run_many(days, rng=0).rejected
    ('day 1', 'day 2')
    """
    options = TestOptions(
        method, alpha, n_permutations, None, memory_limit, scale, missing, groups, strata, pairs, blocks, group_sizes, preprocess
    )
    options.plan()
    adjust = find_correction(correction).adjust
    workers = validation.jobs(n_jobs)
    if not isinstance(tests, Mapping) or not tests:
        raise validation.wrong("tests", "must map names to pairs of samples, at least one", type(tests).__name__)
    seed = resolve_seed(rng)
    names = [str(name) for name in tests]
    if len(set(names)) < len(names):
        twice = sorted({name for name in names if names.count(name) > 1})
        raise InputError(f"Names of tests must differ as text. Got {name_some(twice)} more than once; rename them.")
    items = [(name, pair, short_seed(seed, name), options) for name, pair in zip(names, tests.values(), strict=True)]
    answers = _run(items, workers, progress, "tests")
    answers |= _run(_unresolved(items, answers, alpha, correction), workers, progress, "small p-values")
    results = {name: answer for name in names if isinstance(answer := answers[name], TestResult)}
    errors = {name: answer for name in names if isinstance(answer := answers[name], Exception)}
    adjusted = adjust([result.pvalue for result in results.values()]).tolist()
    return ManyResults(results, errors, dict(zip(results, adjusted, strict=True)), alpha, seed, correction)


def _level_alone(alpha: float, tests: int, correction: str) -> float:
    """Return the p-value at which one test among so many is rejected on its own."""
    return alpha / (tests * find_correction(correction).factor(tests))


def _run(items: list[Item], workers: int | None, progress: Progress | None, stage: str) -> Answers:
    answers: Answers = {}
    for name, answer in map_tasks(_one, items, n_jobs=workers):
        answers[name] = answer
        if progress is not None:
            progress(stage, len(answers), len(items))
    return answers


def _one(item: Item) -> tuple[str, TestResult | Exception]:
    name, pair, seed, options = item
    try:
        x, y = _two(pair() if callable(pair) else pair)
        result = two_sample_test(x, y, rng=seed, **vars(options))
        return name, replace(result, evidence=None) if callable(pair) else result
    except Exception as error:  # one broken test must not lose the others
        return name, error


def _two(samples: Pair) -> Pair:
    """Return the two samples of a test; anything else is refused."""
    try:
        x, y = samples
    except (TypeError, ValueError) as error:
        raise InputError("A test must have two samples, (x, y). Got {got} instead.", got=_describe(samples)) from error
    return x, y


def _describe(samples: object) -> str:
    return str(len(samples)) if isinstance(samples, tuple | list) else type(samples).__name__


def _unresolved(items: list[Item], answers: Answers, alpha: float, correction: str) -> list[Item]:
    """Return the tests that may be rejected but have too few permutations to show it among so many, with more of them."""
    # A p-value above alpha is never rejected, so it may stay as it is. One at or below it is replaced by that of the longer run,
    # which begins with the same permutations. What comes out is a valid p-value: below the first run's largest p <= alpha only
    # the longer run speaks, and from there on at most the first run's chance of reaching it is passed on.
    needed = validation.permutations_among(_level_alone(alpha, len(items), correction), 1)
    return [
        (name, pair, seed, replace(options, n_permutations=needed))
        for name, pair, seed, options in items
        if isinstance(answer := answers[name], TestResult)
        and answer.pvalue <= alpha
        and not answer.exhaustive
        and answer.n_permutations < needed
    ]
