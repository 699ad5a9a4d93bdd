"""Mistakes of a first week: names that are called something else here, and answers taken for true or false."""

import copy
import pickle

import numpy as np
import pytest

from cpmmd import equivalence_test, kernel_matrix_test, power_from_pilot, run_many, two_sample_test
from cpmmd.core.near_names import KEYWORDS, hint_keywords

DATA = np.random.default_rng(0)
X, Y = DATA.normal(size=(30, 2)), DATA.normal(1, 1, size=(30, 2))


@pytest.fixture(scope="module")
def result():
    return two_sample_test(X, Y, method="median", n_permutations=99, rng=0)


@pytest.mark.parametrize(("name", "meant"), [("p_value", "pvalue"), ("p", "pvalue"), ("pval", "pvalue"), ("stat", "statistic")])
def test_an_attribute_by_another_name_is_named(result, name, meant):
    with pytest.raises(AttributeError, match=rf"TestResult has no attribute '{name}'\. Use \.{meant} instead\."):
        getattr(result, name)
    assert hasattr(result, meant)


def test_an_unknown_attribute_is_an_error_without_a_hint(result):
    with pytest.raises(AttributeError, match=r"TestResult has no attribute 'colour'\.$"):
        result.colour  # noqa: B018
    assert not hasattr(result, "colour")
    again = pickle.loads(pickle.dumps(copy.copy(result)))
    assert again.pvalue == result.pvalue


def test_a_result_is_neither_true_nor_false(result):
    with pytest.raises(TypeError, match=r"truth value of TestResult is ambiguous\. Use `\.reject`"):
        bool(result)
    with pytest.raises(TypeError, match="reject"):
        assert not result


def compare(x, y, *, method="cp-full", rng=None, n_permutations=None):
    """Compare two samples."""
    return x, y, method, rng, n_permutations


@pytest.mark.parametrize(
    ("name", "meant"),
    [("seed", "rng"), ("random_state", "rng"), ("n_resamples", "n_permutations"), ("n_permutation", "n_permutations")],
)
def test_a_keyword_argument_by_another_name_is_named(name, meant):
    with pytest.raises(TypeError, match=rf"compare\(\) got an unexpected keyword argument '{name}'\. Use {meant}= instead\."):
        hint_keywords(compare)(1, 2, **{name: 1})


def test_a_hint_names_only_what_the_function_has():
    with pytest.raises(TypeError, match=r"unexpected keyword argument 'workers'\.$"):
        hint_keywords(compare)(1, 2, workers=2)
    assert hint_keywords(compare)(1, 2, rng=3, method="median") == (1, 2, "median", 3, None)
    assert hint_keywords(compare).__doc__ == compare.__doc__
    assert not set(KEYWORDS) & set(KEYWORDS.values())


@pytest.mark.parametrize("function", [two_sample_test, equivalence_test, run_many, kernel_matrix_test, power_from_pilot])
@pytest.mark.parametrize("name", ["seed", "random_state"])
def test_every_question_names_rng(function, name):
    with pytest.raises(
        TypeError, match=rf"{function.__name__}\(\) got an unexpected keyword argument '{name}'\. Use rng= instead"
    ):
        function(X, Y, **{name: 1})
