"""What kind of change is it: of the inputs, of the target, or of the target given the inputs? One call: ``change_test``."""

from __future__ import annotations

from typing import Any

import numpy as np

from cpmmd import registry
from cpmmd.core import validation
from cpmmd.core.parallel import threads
from cpmmd.core.seeds import RNG, resolve_rng
from cpmmd.data.design import GivenArray
from cpmmd.data.targets import LOSSES, read_parts
from cpmmd.errors import name_keywords
from cpmmd.procedures.base import Procedure
from cpmmd.questions.kinds_of_change import ChangePart, ChangeResult
from cpmmd.questions.options import TestOptions
from cpmmd.questions.relation import find_relation
from cpmmd.questions.two_sample import two_sample_test

OWN_CITATIONS = ("martineztaboada2023doubly", "shah2020hardness", "scheidegger2022weighted", "shaffer1986modified")
PARTS = 3  # tests that share the level: the smallest p-value of one must be below a third of it
CITED_ERRORS = ("cai2025diagnosing",)


@threads(None)
@name_keywords
def change_test(
    reference: Any,
    new: Any,
    *,
    target: Any,
    alpha: float = 0.05,
    predictions: Any = None,
    loss: str | None = None,
    method: str | Procedure = registry.DEFAULT_METHOD,
    n_permutations: int | None = None,
    regressor: Any = None,
    classifier: Any = None,
    rng: RNG = None,
    missing: str = "error",
    n_jobs: int | None = None,
) -> ChangeResult:
    """Test what changed: the inputs, the target, or the target given the inputs.

    Parameters
    ----------
    reference, new : array, data frame, path or source
        The samples, as for :func:`two_sample_test`. All columns but target and predictions are inputs.
    target : str, sequence of str, or pair of arrays
        The column or columns that are to be explained by the inputs: names, or an array for each sample.
    alpha : float
        Significance level: the probability, at most, of naming any change that did not happen (approximate for the third).
    predictions : str or pair of arrays, optional
        A model's predictions of the target. The change of the model's error is then divided into what the inputs explain and
        what the relation of the target to them does.
    loss : str, optional
        How an error is counted: ``"squared"`` (numbers, the default), ``"absolute"``, or ``"zero-one"`` (categories).
    method : str or Procedure
        How inputs and target are tested, and the target within equal inputs where these are discrete, as for
        :func:`two_sample_test`.
    n_permutations : int, optional
        Number of permutations, and of signs for the target given the inputs; None is the method's default (999).
    regressor, classifier : scikit-learn estimators, optional
        What predicts the target, and the sample, from the encoded inputs, such as ``HistGradientBoostingRegressor()``. None is
        ridge and logistic regression on features that are chosen by cross-validation.
    rng : int, Generator, RandomState or None
        Seed or generator.
    missing : str
        ``"error"``, ``"drop"`` or ``"impute"``, as for :func:`two_sample_test`.
    n_jobs : int, optional
        Number of threads; the answer does not depend on it.

    Returns
    -------
    ChangeResult
        With ``inputs``, ``target``, ``relation`` (each with ``pvalue``, ``adjusted`` and ``reject``), ``error_change``, ...;
        print it for a summary.

    Notes
    -----
    Inputs and target are compared by permutations, which is exact. The target given the inputs is tested by the products of two
    residuals, of the sample's label and of features of the target, both given the inputs and both cross-fitted. Their mean is
    zero where the relation is the same, up to the product of the errors of both regressions; random signs give its null
    distribution. Where inputs are discrete, the target is permuted within equal inputs instead, which is exact.

    The three p-values are adjusted by the closed test that uses what they imply: where inputs and relation are unchanged,
    so is the target.

    Examples
    --------
    >>> import numpy as np
    >>> import pandas as pd
    >>> from cpmmd import change_test
    >>> data = np.random.default_rng(0)
    >>> def flats(rows, larger):
    ...     area = data.normal(70 + larger, 15, size=rows)
    ...     return pd.DataFrame({"area": area, "price": 3 * area + data.normal(0, 20, size=rows)})
    >>> result = change_test(flats(300, 0), flats(300, 15), target="price", rng=0)
    >>> result.inputs.reject, result.relation.reject
    (True, False)
    """
    plan = TestOptions(method, alpha, n_permutations, n_jobs, missing=missing).plan()
    if loss is not None:
        validation.one_of("loss", loss, LOSSES)
    check_model("regressor", regressor, "predict")
    check_model("classifier", classifier, "predict_proba")
    validation.permutation_count(plan.options.n_permutations, plan.options.alpha / PARTS)
    seed, generator = resolve_rng(rng)
    input_stream, target_stream, relation_stream = generator.spawn(3)
    with threads(plan.n_jobs):
        data = read_parts(reference, new, target, predictions, loss, missing)
        tested: dict[str, Any] = {"method": method, "alpha": plan.options.alpha, "missing": missing}
        tested["n_permutations"] = plan.options.n_permutations
        of_inputs = two_sample_test(*data.inputs, **tested, rng=input_stream)
        of_target = two_sample_test(*data.target, **tested, rng=target_stream)
        relation = find_relation(data, tested, regressor, classifier, relation_stream)
    raw = (of_inputs.pvalue, of_target.pvalue, relation.pvalue)
    adjusted = closed_pvalues(*raw)
    tests = [
        ("inputs", of_inputs.exact, of_inputs.method, ""),
        ("target", of_target.exact, of_target.method, ""),
        ("relation", relation.exact, relation.method, relation.why),
    ]
    parts = [
        ChangePart(name, p, adjusted_p, not why and adjusted_p <= plan.options.alpha, exact, of_method, why)
        for (name, exact, of_method, why), p, adjusted_p in zip(tests, raw, adjusted, strict=True)
    ]
    again = {
        "alpha": alpha,
        "predictions": _typed("predictions", predictions),
        "loss": loss,
        "n_permutations": n_permutations,
        "regressor": regressor,
        "classifier": classifier,
        "missing": None if missing == "error" else missing,
        "rng": GivenArray("rng") if seed is None else seed,
    }
    given = ", ".join(f"{name}={value!r}" for name, value in again.items() if value is not None)
    return ChangeResult(
        statistic=min(raw),
        pvalue=min(adjusted),
        alpha=plan.options.alpha,
        null_distribution=np.empty(0),
        method=of_inputs.method,
        exact=all(part.exact for part in parts),
        seed=seed,
        notes=tuple(dict.fromkeys((*data.notes, *of_inputs.notes, *of_target.notes, *relation.notes))),
        call=f"change_test(reference, new, target={_typed('target', target)!r}, method={method!r}, {given})",
        citations=tuple(
            dict.fromkeys((*OWN_CITATIONS, *of_inputs.citations, *(CITED_ERRORS if data.losses is not None else ())))
        ),
        inputs=parts[0],
        target=parts[1],
        relation=parts[2],
        target_names=data.names,
        sizes=data.sizes,
        n_inputs=len(data.inputs[0].names),
        n_resamples=plan.options.n_permutations,
        overlap=relation.overlap,
        ways=relation.ways,
        differences=relation.differences,
        error_change=relation.error_change,
        input_test=of_inputs,
        target_test=of_target,
    )


def closed_pvalues(inputs: float, target: float, relation: float) -> tuple[float, float, float]:
    """Return p-values adjusted for all three: a closed test with Bonferroni's bound for each intersection that can be true.

    Unchanged inputs and an unchanged relation imply an unchanged target, so that these two are never the only true ones.

    >>> closed_pvalues(0.001, 0.2, 0.04)
    (0.003, 0.2, 0.08)
    >>> closed_pvalues(0.03, 0.001, 0.03)
    (0.03, 0.003, 0.03)
    """
    all_three = 3 * min(inputs, target, relation)
    with_inputs, with_relation = 2 * min(inputs, target), 2 * min(target, relation)
    adjusted = (
        max(all_three, with_inputs, inputs),
        max(all_three, with_inputs, with_relation, target),
        max(all_three, with_relation, relation),
    )
    x, y, given = (min(p, 1.0) for p in adjusted)
    return x, y, given


def check_model(name: str, model: Any, predict: str) -> None:
    """Refuse what is no scikit-learn estimator."""
    if model is not None and (isinstance(model, type) or not all(hasattr(model, of) for of in ("fit", predict, "get_params"))):
        raise validation.wrong(name, f"must be None or a scikit-learn estimator, an object with fit and {predict}", model)


def _typed(name: str, value: Any) -> Any:
    """Return an argument as it can be typed: names as they are, arrays by the name of the argument."""
    names = (
        value is None or isinstance(value, str) or (isinstance(value, (list, tuple)) and all(isinstance(v, str) for v in value))
    )
    return value if names else GivenArray(name)
