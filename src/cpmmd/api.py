"""One call: ``two_sample_test``; and the table of methods behind its names."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, fields, replace
from typing import Any

import numpy as np

from cpmmd import validation
from cpmmd.criteria import ComplexityPenalized, Criterion, Plain, Ratio
from cpmmd.errors import InputError, unknown_name
from cpmmd.inputs import read_samples
from cpmmd.kernels.bandwidth import Bandwidth
from cpmmd.kernels.polynomial import Polynomial
from cpmmd.parallel import threads
from cpmmd.permutation.memory import DEFAULT_LIMIT
from cpmmd.procedures.base import Procedure, RunOptions
from cpmmd.procedures.full_sample import FullSampleTest
from cpmmd.procedures.median import MedianTest
from cpmmd.procedures.mmdagg import MMDAgg
from cpmmd.procedures.mmdfuse import MMDFuse
from cpmmd.procedures.split import SplitTest
from cpmmd.progress import Progress, reporting_to
from cpmmd.results import TestResult


def _deep(family: str, criterion: Criterion) -> Procedure:
    from cpmmd import extras

    return SplitTest(extras.load(family)(), criterion)


@dataclass(frozen=True)
class Method:
    """A named procedure and its one line."""

    make: Callable[[], Procedure]
    summary: str


METHODS: dict[str, Method] = {
    "cp-full": Method(FullSampleTest, "CP-MMD on all rows: class and bandwidth chosen under every relabeling (the default)"),
    "cp-linear": Method(
        lambda: SplitTest(Bandwidth(), ComplexityPenalized()),
        "CP-MMD over Gaussian bandwidths, split in halves (the paper's H_linear)",
    ),
    "cp-polynomial": Method(
        lambda: SplitTest(Polynomial(degree=4), ComplexityPenalized()),
        "CP-MMD over bandwidths of a degree-4 lift, split in halves (the paper's H_polynomial)",
    ),
    "plain-linear": Method(
        lambda: SplitTest(Bandwidth(), Plain()),
        "largest MMD over Gaussian bandwidths, no penalty, split in halves",
    ),
    "plain-polynomial": Method(
        lambda: SplitTest(Polynomial(degree=4), Plain()),
        "largest MMD over a degree-4 lift, no penalty, split in halves",
    ),
    "cp-deep": Method(lambda: _deep("Deep", ComplexityPenalized()), "CP-MMD over the weights of a network, split in halves"),
    "cp-mixture": Method(lambda: _deep("Mixture", ComplexityPenalized()), "CP-MMD heuristic on Liu's mixture, split in halves"),
    "liu": Method(lambda: _deep("Deep", Ratio()), "ratio criterion over the weights of a network, split in halves"),
    "liu-mixture": Method(lambda: _deep("Mixture", Ratio()), "ratio criterion on Liu's mixture (published), split in halves"),
    "plain-deep": Method(lambda: _deep("Deep", Plain()), "largest MMD over a network's weights, no penalty, split in halves"),
    "plain-mixture": Method(lambda: _deep("Mixture", Plain()), "largest MMD on Liu's mixture, no penalty, split in halves"),
    "median": Method(MedianTest, "Gaussian kernel at the median distance of the pool, no split"),
    "mmdagg": Method(MMDAgg, "MMDAgg: 20 Laplace and Gaussian kernels, aggregated with corrected levels, no split"),
    "mmdfuse": Method(MMDFuse, "MMD-FUSE: 20 Laplace and Gaussian kernels, a soft maximum, no split"),
}
DEFAULT_METHOD = "cp-full"


def methods() -> dict[str, str]:
    """Give the method names with one line each.

    Examples
    --------
    >>> "median" in methods()
    True
    """
    return {name: method.summary for name, method in METHODS.items()}


def resolve_method(method: str | Procedure) -> tuple[str, Procedure]:
    """Give a method's display name and its procedure."""
    if isinstance(method, Procedure):
        return repr(method), method
    if not isinstance(method, str):
        raise InputError(f"The 'method' parameter must be a name or a procedure such as SplitTest(). Got {method!r} instead.")
    if method not in METHODS:
        raise unknown_name("method", method, METHODS)
    return method, METHODS[method].make()


def two_sample_test(
    x: Any,
    y: Any,
    *,
    method: str | Procedure = DEFAULT_METHOD,
    alpha: float = 0.05,
    n_permutations: int | None = None,
    rng: int | np.random.Generator | None = None,
    n_jobs: int | None = None,
    memory_limit: int | str | None = None,
    scale: str | None = None,
    missing: str = "error",
    progress: Progress | None = None,
) -> TestResult:
    """Test whether two samples come from the same distribution.

    Parameters
    ----------
    x, y
        The samples, a row for each observation: arrays, lists, torch tensors, or pandas, polars and pyarrow frames, whose
        columns are matched by name. 1-D data is one column. The samples may differ in size.
    method
        A name from :func:`methods`, or a procedure such as ``SplitTest(kernel=Polynomial(degree=3))``.
    alpha
        Level of the test.
    n_permutations
        Number of relabelings; None is the method's own (999).
    rng
        Seed, Generator or None. The same seed gives the same answer, whatever the threads.
    n_jobs
        Number of threads; None leaves the setting of the process. Inside ``joblib.parallel_config(backend="dask")`` or another
        back end, large tests run there instead.
    memory_limit
        Bytes that kernel matrices, tiles and prepared rows may take, as a number or such as ``"2GB"``; None is 1 GiB. The samples
        themselves are not counted: arrays, memory-mapped files and Arrow tables stay where they are.
    scale
        ``"standard"`` standardises columns first, by the rows that the method may look at; None is the method's own.
    missing
        ``"error"``, ``"drop"`` rows with missing values, or ``"impute"`` medians and mark where.
    progress
        Called as ``progress(stage, done, total)`` by methods that take their time.

    Returns
    -------
    TestResult
        With ``pvalue``, ``reject``, ``statistic``, ``kernel``, ...; print it for a summary.

    Examples
    --------
    >>> import numpy as np
    >>> from cpmmd import two_sample_test
    >>> data = np.random.default_rng(0)
    >>> result = two_sample_test(data.normal(size=(80, 3)), data.normal(1, 1, size=(90, 3)), rng=0)
    >>> result.reject, result.pvalue
    (True, 0.001)
    """
    procedure, options = plan_test(method, alpha=alpha, n_permutations=n_permutations, scale=scale, memory_limit=memory_limit)
    seed, generator = validation.generator(rng)
    samples = read_samples(x, y, missing=missing)
    if n_jobs is not None:
        n_jobs = validation.whole("n_jobs", n_jobs, at_least=1)
    with threads(n_jobs), reporting_to(progress):
        result = procedure.run(samples, options, generator)
    repeat = {"alpha": options.alpha, "n_permutations": options.n_permutations, "scale": scale, "missing": missing}
    return replace(result, seed=seed, call=_call(method, seed, repeat))


def _call(method: str | Procedure, seed: int | None, options: dict[str, Any]) -> str:
    """Give the call as a person would type it: options at their default are left out."""
    given = [f"{key}={value!r}" for key, value in options.items() if value not in (None, "error")]
    source = "rng" if seed is None else seed  # a Generator cannot be typed again
    return f"two_sample_test(x, y, {', '.join([f'method={method!r}', *given, f'rng={source}'])})"


def plan_test(
    method: str | Procedure,
    *,
    alpha: float,
    n_permutations: int | None,
    scale: str | None,
    memory_limit: int | str | None = None,
) -> tuple[Procedure, RunOptions]:
    """Give the procedure and the options that a call asks for, checked."""
    alpha = validation.open_unit("alpha", alpha)
    name, procedure = resolve_method(method)
    if scale is not None:
        procedure = _with_scale(procedure, scale)
    count = procedure.default_permutations if n_permutations is None else n_permutations
    limit = DEFAULT_LIMIT if memory_limit is None else validation.byte_count("memory_limit", memory_limit)
    return procedure, RunOptions(alpha, validation.permutation_count(count, alpha), name, limit)


def _with_scale(procedure: Procedure, scale: str) -> Procedure:
    if "scale" not in {f.name for f in fields(procedure)}:  # type: ignore[arg-type]
        raise InputError(
            f"{type(procedure).__name__} has no 'scale' option (the full-sample test searches raw and standardised coordinates "
            "itself); leave it out."
        )
    scaled: Procedure = replace(procedure, scale=scale)  # type: ignore[type-var]
    return scaled
