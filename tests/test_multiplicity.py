"""Adjusted p-values agree with scipy's and leave out what was not tested."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import false_discovery_control

from cpmmd.errors import InputError
from cpmmd.studies.multiplicity import benjamini_hochberg

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


@pytest.mark.parametrize("bad", [[1.2], [-0.1, 0.3], [[0.1], [0.2]]])
def test_what_is_no_pvalue_is_refused(bad):
    with pytest.raises(InputError, match="P-values must"):
        benjamini_hochberg(bad)
