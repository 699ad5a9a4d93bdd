"""Models by name: the normal family, and scipy's distributions with numbers as parameters. Text is parsed, never evaluated."""

from __future__ import annotations

import ast

from scipy import stats

from cpmmd.errors import InputError, unknown_name
from cpmmd.models.model import Model

NORMAL = "normal"
FORM = (
    "{parameter} must be 'normal' (any mean and covariance) or a distribution of scipy.stats with numbers as parameters, such as "
    "'norm', 'gamma(5)' or 't(df=4, loc=1, scale=2)'. Got {got!r} instead."
)


def named_model(text: str) -> Model:
    """Return the model of a name such as ``normal`` or ``gamma(5, scale=2)``."""
    from cpmmd.models.libraries import of_continuous

    if text.strip() == NORMAL:
        return Model("the normal family", lambda rows: -rows, "analytic", estimated=True)
    name, shapes, keywords = _parsed(text)
    known = {each for each in dir(stats) if isinstance(getattr(stats, each), stats.rv_continuous)}
    if name not in known:
        if isinstance(getattr(stats, name, None), stats.rv_discrete):
            raise InputError("A model must have a density. {got!r} is discrete.", parameter="model", got=name)
        raise unknown_name("model", name, [NORMAL, *known], parameter="model")
    try:
        frozen = getattr(stats, name)(*shapes, **keywords)
    except (TypeError, ValueError) as error:
        rule = "{parameter} must have the parameters of scipy.stats.{name}. Got {got!r} ({reason})."
        raise InputError(rule, parameter="model", name=name, got=text, reason=str(error)) from error
    return of_continuous(frozen)


def _parsed(text: str) -> tuple[str, list[float], dict[str, float]]:
    wrong = InputError(FORM, parameter="model", got=text)
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError) as error:
        raise wrong from error
    if isinstance(tree, ast.Name):
        return tree.id, [], {}
    if not isinstance(tree, ast.Call) or not isinstance(tree.func, ast.Name):
        raise wrong
    if any(keyword.arg is None for keyword in tree.keywords):
        raise wrong
    try:
        shapes = [float(ast.literal_eval(argument)) for argument in tree.args]
        keywords = {str(keyword.arg): float(ast.literal_eval(keyword.value)) for keyword in tree.keywords}
    except (ValueError, TypeError, SyntaxError, MemoryError, RecursionError) as error:
        raise wrong from error
    return tree.func.id, shapes, keywords
