"""The one call: parameters, determinism, degenerate data, results."""

import json
import pickle
import subprocess
import sys

import numpy as np
import pytest

import cpmmd
from cpmmd import Bandwidth, ComplexityPenalized, CpmmdError, MedianTest, Plain, Polynomial, Ratio, SplitTest, two_sample_test

X = np.random.default_rng(0).normal(size=(30, 3))
Y = np.random.default_rng(1).normal(0.8, 1, size=(40, 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"alpha": 0}, "strictly between 0 and 1"),
        ({"alpha": 1.0}, "strictly between 0 and 1"),
        ({"alpha": "0.05"}, "strictly between 0 and 1"),
        ({"n_permutations": 18}, "n_permutations=19 or more"),
        ({"alpha": 0.001, "n_permutations": 500}, "n_permutations=999 or more"),
        ({"n_permutations": 0}, "at least 1"),
        ({"n_permutations": 99.5}, "whole number"),
        ({"method": "cp-liner"}, "Did you mean 'cp-linear'"),
        ({"method": 7}, "name or a procedure"),
        ({"rng": "seed"}, "seed >= 0"),
        ({"rng": -1}, "seed >= 0"),
        ({"n_jobs": 0}, "-1 for all cores"),
        ({"scale": "robust"}, "standard"),
        ({"missing": "ignore"}, "drop"),
    ],
)
def test_bad_parameters_get_a_sentence(options, message):
    with pytest.raises(CpmmdError, match=message):
        two_sample_test(X, Y, **options)


@pytest.mark.parametrize(
    "make",
    [
        lambda: ComplexityPenalized(c1=-0.1),
        lambda: ComplexityPenalized(c1=float("nan")),
        lambda: ComplexityPenalized(n_calibration=0),
        lambda: SplitTest(train_fraction=1.0),
        lambda: SplitTest(family="gaussian"),
        lambda: SplitTest(criterion="cp"),
        lambda: SplitTest(scale="robust"),
        lambda: MedianTest(base="cosine"),
    ],
)
def test_bad_objects_are_refused_when_made(make):
    with pytest.raises(CpmmdError):
        make()


def test_a_split_that_leaves_too_few_rows_says_so():
    with pytest.raises(CpmmdError, match=r"at least 2 training and 2 test rows.*Sample x has 3"):
        two_sample_test(X[:3], Y, method="cp-linear")
    assert two_sample_test(X[:4], Y, method="cp-linear", rng=0).tested_sizes == (2, 20)


def test_default_permutations_and_smallest_p():
    result = two_sample_test(X, Y, rng=0)
    assert result.n_permutations == 999
    assert result.pvalue >= 1 / 1000


def test_the_seed_in_the_result_repeats_it():
    first = two_sample_test(X, Y)
    again = two_sample_test(X, Y, rng=first.seed)
    assert first.pvalue == again.pvalue
    np.testing.assert_array_equal(first.null_distribution, again.null_distribution)
    assert two_sample_test(X, Y, rng=np.random.default_rng(0)).seed is None


def test_the_split_covers_all_rows_once_and_shuffles():
    evidence = two_sample_test(X, Y, method="cp-linear", rng=0).evidence
    both = np.concatenate([evidence.trained, evidence.tested])
    np.testing.assert_array_equal(np.sort(both), np.arange(70))
    assert not np.array_equal(evidence.trained[:15], np.arange(15))


def test_the_test_half_never_reaches_the_kernel():
    # Replace the test half by other numbers: kernel, penalty and range must not move.
    first = two_sample_test(X, Y, method="cp-polynomial", scale="standard", rng=3)
    rows = first.evidence.tested
    x, y = X.copy(), Y.copy()
    x[rows[rows < 30]] = 1e6
    y[rows[rows >= 30] - 30] = -1e6
    other = two_sample_test(x, y, method="cp-polynomial", scale="standard", rng=3)
    assert other.kernel == first.kernel
    assert other.calibration.c1 == first.calibration.c1
    assert other.pvalue != first.pvalue


def test_print_reads_like_an_answer():
    text = str(two_sample_test(X, Y, method="median", rng=0))
    assert text.startswith("The samples differ (p = ")
    assert "30 v 40 rows, 3 columns" in text
    assert "repeat with  rng=0" in text
    assert str(two_sample_test(X, X[::-1], method="median", rng=0)).startswith("No difference found")


@pytest.mark.parametrize("method", cpmmd.methods())
def test_results_are_json_clean(method):
    result = two_sample_test(X, Y, method=method, rng=0)
    text = json.dumps(result.to_dict(null_distribution=True), allow_nan=False)
    back = json.loads(text)
    assert back["pvalue"] == result.pvalue
    assert len(back["null_distribution"]) == back["n_relabelings"] == len(result.null_distribution)
    assert f"n_permutations={result.n_permutations}" in result.call


OBJECTS = [Bandwidth(), Polynomial(degree=2), Plain(), Ratio(), ComplexityPenalized(c1=1.0), SplitTest(), MedianTest()]


@pytest.mark.parametrize("thing", OBJECTS, ids=repr)
def test_objects_are_frozen_comparable_printable_picklable(thing):
    assert pickle.loads(pickle.dumps(thing)) == thing
    assert type(thing).__name__ in repr(thing)
    with pytest.raises(AttributeError):
        thing.anything = 1


def test_results_can_be_pickled():
    result = two_sample_test(X, Y, rng=0)
    assert pickle.loads(pickle.dumps(result)).pvalue == result.pvalue


@pytest.mark.parametrize("criterion", [Plain(), Ratio(), ComplexityPenalized()])
@pytest.mark.parametrize("kernel", [Bandwidth("laplacian"), Polynomial(degree=2)])
def test_every_criterion_works_on_every_family(kernel, criterion):
    result = two_sample_test(X, Y, method=SplitTest(kernel, criterion), rng=0)
    assert 0 < result.pvalue <= 1
    assert "SplitTest" in result.method


def test_import_is_light():
    code = "import sys, cpmmd; print([m for m in ('torch', 'pandas', 'matplotlib', 'polars', 'pyarrow') if m in sys.modules])"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.strip() == "[]"


def test_median_split_variant_tests_the_other_half():
    result = two_sample_test(X, Y, method=MedianTest(split=True), rng=0)
    assert result.tested_sizes == (15, 20)
    other = two_sample_test(X, Y, method=MedianTest(split=True), rng=1)
    assert result.kernel.bandwidth != other.kernel.bandwidth


def test_a_random_state_is_a_source_of_randomness():
    x, y = np.random.default_rng(0).normal(size=(2, 30, 2))
    first, again = (two_sample_test(x, y, method="median", n_permutations=99, rng=np.random.RandomState(7)) for _ in range(2))
    assert first.pvalue == again.pvalue
    np.testing.assert_array_equal(first.null_distribution, again.null_distribution)
