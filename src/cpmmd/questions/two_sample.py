"""Do two samples come from the same distribution? One call: ``two_sample_test``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

from cpmmd import registry
from cpmmd.core.parallel import threads
from cpmmd.core.progress import Progress, reporting_to
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.data.design import CUT
from cpmmd.draws.group_sizes import cut_groups
from cpmmd.errors import name_keywords
from cpmmd.procedures.base import Procedure
from cpmmd.procedures.outcome import TestResult
from cpmmd.questions.options import TestOptions


def methods() -> dict[str, str]:
    """Return the method names with one line each.

    Returns
    -------
    dict of str to str
        Names for ``method=``, the default first.

    Examples
    --------
    >>> from cpmmd import methods
    >>> "median" in methods()
    True
    """
    return {name: method.summary for name, method in registry.named_methods().items()}


@name_keywords
def two_sample_test(
    x: Any,
    y: Any,
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
    groups: Any = None,
    strata: Any = None,
    pairs: Any = None,
    blocks: int | str | None = None,
    group_sizes: str = CUT,
    preprocess: Any = None,
) -> TestResult:
    """Test whether two samples come from the same distribution.

    Parameters
    ----------
    x, y : array, data frame, path or source
        The samples, a row for each observation: arrays, lists, torch tensors, or pandas, polars and pyarrow frames, whose
        columns are matched by name. 1-D data is one column. The samples may differ in size. The path of a file, a folder, a
        pattern or an address, a lazy frame, a DuckDB relation, a Dask or sorted Spark frame, an Arrow data set or batches are
        the rows that they have, in their order.
    method : str or Procedure
        A name from :func:`methods`, or a procedure such as ``SplitTest(Polynomial(degree=3))``.
    alpha : float
        Significance level.
    n_permutations : int, optional
        Number of permutations; None is the method's default (999).
    rng : int, Generator, RandomState or None
        Seed or generator. The same seed gives the same answer with any number of threads.
    n_jobs : int, optional
        Number of threads, -1 for all cores; None leaves the setting of the process. Inside
        ``joblib.parallel_config(backend="dask")`` or another back end, large tests run there instead.
    memory_limit : int or str, optional
        Bytes that kernel matrices, tiles and prepared rows may take, as a number or such as ``"2GB"``; None is 1 GiB. The samples
        themselves are not counted: arrays, memory-mapped files and Arrow tables stay where they are.
    scale : str, optional
        ``"standard"`` standardises columns first, by the rows that the method may look at; None is the method's default.
    missing : str
        ``"error"``; ``"drop"``, which leaves out rows with missing values; or ``"impute"``, which fills in medians and tests
        indicators of missing values as well.
    progress : callable, optional
        Called as ``progress(stage, done, total)`` by slow methods.
    groups : str or pair of arrays, optional
        The group of each row, such as a patient or a machine: the name of a column of both samples, which is then not compared,
        or one array for each sample. Groups are permuted as a whole.
    strata : str or pair of arrays, optional
        The stratum of each row, such as a site or a weekday, where the mix may differ between samples: labels are permuted only
        inside a stratum.
    pairs : str or pair of arrays, optional
        The subject of each row, where both samples have the same subjects (before and after): labels are permuted inside each
        pair.
    blocks : int or "auto", optional
        For rows in time: this many consecutive rows are permuted as a whole. The level is then approximate, and assumes that
        dependence fades with time. ``"auto"`` chooses the number from the data.
    group_sizes : str
        What to do where groups, or the two sides of a pair, differ in their numbers of rows. ``"cut"`` draws the same number of
        rows from each, which is exact. ``"keep"`` tests all rows; it is exact only where groups were assigned to the samples at
        random, or where sizes have the same distribution in both.
    preprocess : transformer, optional
        A scikit-learn transformer or pipeline, such as ``PCA(10)``, that turns rows into numbers before they are compared. A copy
        is fitted without labels: on both samples, or on the training half where the method splits. Do not transform the data
        yourself with one that was fitted on one of the samples: the test would reject too often. It gets an array, a data frame,
        or a list where the only column is text.

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
    design = (groups, strata, pairs, blocks, group_sizes)
    plan = TestOptions(method, alpha, n_permutations, n_jobs, memory_limit, scale, missing, *design, preprocess=preprocess).plan()
    seed, generator = resolve_rng(rng)
    with reporting_to(progress):
        pool = plan.read(x, y)
    if plan.procedure.cuts_groups:
        pool = cut_groups(pool, plan.design, generator)
    with threads(plan.n_jobs), reporting_to(progress):
        outcome = plan.procedure.run(pool, plan.options, generator)
    repeat = {
        "alpha": alpha,
        "n_permutations": plan.options.n_permutations,
        "scale": scale,
        "missing": missing,
        "preprocess": preprocess,
        **plan.design.call,
    }
    return replace(outcome, seed=seed, call=_call(method, seed, repeat))


def _call(method: str | Procedure, seed: int | None, options: dict[str, Any]) -> str:
    """Return the call as a person would type it: options at their default are left out."""
    given = [f"{key}={value!r}" for key, value in options.items() if value not in (None, "error")]
    source = "rng" if seed is None else seed  # a Generator cannot be typed again
    return f"two_sample_test(x, y, {', '.join([f'method={method!r}', *given, f'rng={source}'])})"
