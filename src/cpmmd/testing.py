"""Assertions about data for tests and pipelines, in the manner of ``numpy.testing``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import narwhals as nw
import numpy as np

from cpmmd.core.seeds import RNG
from cpmmd.errors import CpmmdError
from cpmmd.procedures.outcome import TestResult
from cpmmd.questions.equivalence import equivalence_test
from cpmmd.questions.responses import responses_test
from cpmmd.questions.two_sample import two_sample_test

__all__ = ["assert_equivalent", "assert_same_distribution", "assert_same_responses"]
NAMES = ("the reference", "the new data")


def assert_same_distribution(
    new: Any,
    reference: Any,
    *,
    alpha: float = 0.01,
    rng: RNG = 0,
    names: tuple[str, str] = NAMES,
    **options: Any,
) -> None:
    """Raise an AssertionError if new data differ from a reference in distribution.

    Parameters
    ----------
    new, reference : array or data frame
        The samples, as for :func:`cpmmd.two_sample_test`.
    alpha : float
        Significance level: the probability that the assertion fails although nothing changed.
    rng : int, Generator, RandomState or None
        Seed or generator. The default seed makes the outcome repeatable: the same data always pass, or always fail.
    names : tuple of str
        What the message calls the reference and the new data.
    **options
        More options of :func:`cpmmd.two_sample_test`, such as ``method``, ``groups``, ``missing`` or ``n_permutations``.

    Raises
    ------
    AssertionError
        With the p-value, where the samples differ, and how to repeat the test.

    See Also
    --------
    assert_equivalent : passes only if every difference is below a margin.
    assert_same_responses : answers to prompts, or other sequences.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd.testing import assert_same_distribution
    >>> data = np.random.default_rng(0)
    >>> assert_same_distribution(data.normal(size=(100, 3)), data.normal(size=(200, 3)))
    """
    __tracebackhide__ = True
    result = two_sample_test(reference, new, alpha=alpha, rng=rng, **options)
    if result.reject:
        chance = f"If nothing changed, this assertion fails with probability {alpha:g}."
        raise AssertionError(
            "\n".join([result.verdict, _where(result, names), *_noted(result.notes), chance, _repeat(result.call)])
        )


def assert_equivalent(
    new: Any,
    reference: Any,
    *,
    margin: float,
    alpha: float = 0.05,
    rng: RNG = 0,
    missing: str = "error",
) -> None:
    """Raise an AssertionError unless the data show that every difference is below a margin.

    Parameters
    ----------
    new, reference : array or data frame
        The samples, as for :func:`cpmmd.equivalence_test`.
    margin : float
        The smallest difference that matters, in standard deviations.
    alpha : float
        Significance level: the probability, at most, that the assertion passes although a difference reaches the margin.
    rng : int, Generator, RandomState or None
        Seed or generator. The default seed makes the outcome repeatable.
    missing : str
        As for :func:`cpmmd.equivalence_test`.

    Raises
    ------
    AssertionError
        With the largest differences that the data do not exclude.

    See Also
    --------
    assert_same_distribution : passes unless a difference is found.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd.testing import assert_equivalent
    >>> data = np.random.default_rng(0)
    >>> assert_equivalent(data.normal(size=(900, 2)), data.normal(size=(900, 2)), margin=0.3)
    """
    __tracebackhide__ = True
    result = equivalence_test(reference, new, margin=margin, alpha=alpha, rng=rng, missing=missing)
    if not result.reject:
        raise AssertionError("\n".join([result.verdict, result.explain().sentence, *_noted(result.notes), _repeat(result.call)]))


def assert_same_responses(new: Any, reference: Any, *, alpha: float = 0.01, rng: RNG = 0, **options: Any) -> None:
    """Raise an AssertionError if answers to the same prompts differ in distribution from those of a reference.

    Parameters
    ----------
    new, reference : mapping, data frame, records or path
        Answers by prompt, as for :func:`cpmmd.responses_test`.
    alpha : float
        Significance level: the probability that the assertion fails although nothing changed.
    rng : int, Generator, RandomState or None
        Seed or generator. The default seed makes the outcome repeatable.
    **options
        More options of :func:`cpmmd.responses_test`, such as ``kernel`` or ``n_permutations``.

    Raises
    ------
    AssertionError
        With the p-value, the prompts whose answers differ, typical answers, and how to repeat the test.

    See Also
    --------
    assert_same_distribution : the same for rows of numbers and categories.

    Examples
    --------
    >>> from cpmmd.testing import assert_same_responses
    >>> answers = {"A colour?": ["red", "blue", "green"] * 5}
    >>> assert_same_responses(answers, answers)
    """
    __tracebackhide__ = True
    result = responses_test(reference, new, alpha=alpha, rng=rng, **options)
    if result.reject:
        chance = f"If nothing changed, this assertion fails with probability {alpha:g}."
        raise AssertionError(
            "\n".join([result.verdict, str(result.explain()), *_noted(result.notes), chance, f"Repeat with {result.call}"])
        )


def _where(result: TestResult, names: tuple[str, str]) -> str:
    """Return where the samples differ; a verdict without it is worth more than no verdict."""
    try:
        return result.explain(names=names).sentence
    except CpmmdError as error:
        return f"Where they differ is not known: {error}"


def _noted(notes: tuple[str, ...]) -> list[str]:
    return [f"Note: {note}" for note in notes]


def _repeat(call: str) -> str:
    return f"Repeat with x = reference, y = new: {call}"


# References that the pytest fixture keeps: a data frame as Parquet, anything else as a numpy array.


def write_reference(data: Any, path: Path) -> None:
    """Keep data as the reference of a test; ``path`` has no extension yet."""
    frame = nw.from_native(data, eager_only=True, pass_through=True)
    path.parent.mkdir(exist_ok=True)
    for stale in (path.with_name(f"{path.name}.parquet"), path.with_name(f"{path.name}.npy")):
        stale.unlink(missing_ok=True)
    if isinstance(frame, nw.DataFrame):
        frame.write_parquet(path.with_name(f"{path.name}.parquet"))
    else:
        np.save(path.with_name(f"{path.name}.npy"), np.asarray(data), allow_pickle=False)


def read_reference(path: Path) -> Any:
    """Return what :func:`write_reference` kept; None where there is nothing."""
    table, array = path.with_name(f"{path.name}.parquet"), path.with_name(f"{path.name}.npy")
    if table.exists():
        from cpmmd.data.files.reading import read_file

        return read_file(str(table)).data
    return np.load(array, allow_pickle=False) if array.exists() else None
