"""Adjusted p-values agree with scipy's, leave out what was not tested, and hold their rate where tests share rows."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from cpmmd import CpmmdError, benjamini_hochberg, benjamini_yekutieli, run_many, two_sample_test
from cpmmd.citation import citation_keys
from cpmmd.errors import InputError
from helpers import most_rejections

PVALUES = st.lists(st.floats(0, 1), max_size=40)


@given(PVALUES)
def test_adjusted_pvalues_are_those_of_scipy(pvalues):
    expected = false_discovery_control(pvalues) if pvalues else []
    np.testing.assert_allclose(benjamini_hochberg(pvalues), expected, rtol=1e-12)


@given(PVALUES, st.randoms(use_true_random=False))
def test_tests_not_made_stay_nan_and_do_not_count(pvalues, random):
    mixed = [(p, False) for p in pvalues] + [(np.nan, True)] * 5
    random.shuffle(mixed)
    values, absent = np.array([p for p, _ in mixed]), np.array([a for _, a in mixed])
    adjusted = benjamini_hochberg(values)
    assert np.isnan(adjusted[absent]).all()
    np.testing.assert_array_equal(adjusted[~absent], benjamini_hochberg(values[~absent]))


def test_tied_pvalues_are_adjusted_alike():
    assert benjamini_hochberg([0.02, 0.5, 0.02]).tolist() == pytest.approx([0.03, 0.5, 0.03])


@pytest.mark.parametrize("bad", [[1.2], [-0.1, 0.3], [[0.1], [0.2]], ["a"], "a", {"a": 0.1}, {0.1}, [[0.1], [0.2, 0.3]]])
def test_what_is_no_pvalue_is_refused(bad):
    with pytest.raises(InputError, match="P-values must"):
        benjamini_hochberg(bad)
    with pytest.raises(InputError, match="P-values must"):
        benjamini_yekutieli(bad)


@given(PVALUES)
def test_pvalues_for_any_dependence_are_those_of_scipy(pvalues):
    expected = false_discovery_control(pvalues, method="by") if pvalues else []
    np.testing.assert_allclose(benjamini_yekutieli(pvalues), expected, rtol=1e-12, atol=1e-300)


def test_only_tests_that_were_made_count_for_any_dependence():
    values = np.array([0.01, np.nan, 0.2, 0.03, np.nan])
    made = ~np.isnan(values)
    np.testing.assert_allclose(benjamini_yekutieli(values)[made], false_discovery_control(values[made], method="by"))
    assert np.isnan(benjamini_yekutieli(values)[~made]).all()


def test_many_tests_are_adjusted_as_asked():
    rng = np.random.default_rng(0)
    days = {f"day {i}": (rng.normal(size=(30, 2)), rng.normal(i / 2, 1, size=(30, 2))) for i in range(4)}
    options = {"method": "median", "n_permutations": 199, "rng": 0}
    plain, any_dependence = run_many(days, **options), run_many(days, correction="benjamini-yekutieli", **options)
    for answers, method in ((plain, "bh"), (any_dependence, "by")):
        pvalues = [result.pvalue for result in answers.results.values()]
        np.testing.assert_allclose(list(answers.adjusted.values()), false_discovery_control(pvalues, method=method))
    assert any_dependence.to_dict()["correction"] == "benjamini-yekutieli"
    assert citation_keys(any_dependence) == ("benjamini2001control",)
    assert citation_keys(plain) == ("benjamini1995controlling",)


def test_small_pvalues_run_on_until_they_can_be_found_whatever_the_dependence():
    # Among 40 tests one alone is found at p <= .05 / (40 * 4.28): 3423 relabelings at least, where 199 are asked for.
    rng = np.random.default_rng(1)
    tests = {str(i): (rng.normal(size=(20, 1)), rng.normal(4 * (i == 7), 1, size=(20, 1))) for i in range(40)}
    found = run_many(tests, method="median", n_permutations=199, rng=0, correction="benjamini-yekutieli")
    assert found.rejected == ("7",)
    assert found.results["7"].n_permutations > 3423


@pytest.mark.parametrize("unknown", ["bonferoni", ["benjamini-hochberg"], None, {}])
def test_an_unknown_correction_is_refused(unknown):
    with pytest.raises(CpmmdError, match="Known: benjamini-hochberg"):
        run_many({"a": ([1, 2, 3, 4], [1, 2, 3, 4])}, correction=unknown)


@pytest.mark.statistical
def test_false_discoveries_against_one_reference():
    # Nothing is proven for Benjamini-Hochberg here, so it is measured: 6 batches, none of which differs, against one reference as
    # small as they are. 1000 repetitions; any rejection is a false discovery rate of 1. At .05 the bound is 50 + 3 * 6.89 = 70.
    wrong = {"benjamini-hochberg": 0, "benjamini-yekutieli": 0}
    for repetition in range(1000):
        rng = np.random.default_rng([71, repetition])
        reference = rng.normal(size=(20, 2))
        pvalues = [
            two_sample_test(reference, rng.normal(size=(20, 2)), method="median", n_permutations=199, rng=rng).pvalue
            for _ in range(6)
        ]
        wrong["benjamini-hochberg"] += benjamini_hochberg(pvalues).min() <= 0.05
        wrong["benjamini-yekutieli"] += benjamini_yekutieli(pvalues).min() <= 0.05
    assert max(wrong.values()) <= most_rejections(1000, 0.05)
