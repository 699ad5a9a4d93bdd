"""Many tests at once: adjustment, keyed seeds, failures that lose nothing."""

import joblib
import numpy as np
import pytest

from cpmmd import CpmmdError, run_many, two_sample_test
from cpmmd.core.seeds import short_seed
from cpmmd.core.validation import permutations_among


def read_one():
    rng = np.random.default_rng(5)
    return rng.normal(size=(40, 2)), rng.normal(2, 1, size=(40, 2))


@pytest.fixture
def days():
    rng = np.random.default_rng(0)
    return {f"day {i}": (rng.normal(size=(40, 2)), rng.normal(0.8 * i, 1, size=(30, 2))) for i in range(4)}


def test_each_test_is_the_single_call_with_its_keyed_seed(days):
    many = run_many(days, method="median", rng=7, n_permutations=99)
    for name, (x, y) in days.items():
        count = many.results[name].n_permutations  # more than asked for where p <= alpha must be shown among four
        assert count == 99 or count == permutations_among(0.05, len(days))
        alone = two_sample_test(x, y, method="median", rng=short_seed(7, name), n_permutations=count)
        assert many.results[name].pvalue == alone.pvalue
    assert many.rejected == ("day 1", "day 2", "day 3")
    assert all(many.adjusted[name] >= many.results[name].pvalue for name in days)


def test_the_answer_does_not_depend_on_order_or_back_end(days):
    options = {"rng": 7, "method": "median", "n_permutations": 99}
    one = run_many(days, **options)
    several = run_many(dict(reversed(days.items())), n_jobs=2, **options)
    with joblib.parallel_config(backend="threading", n_jobs=2):
        threaded = run_many(days, **options)
    for other in (several, threaded):
        assert dict(other.adjusted) == dict(one.adjusted)
    assert list(several.results) == list(reversed(days))


def test_one_failure_does_not_lose_the_others(days):
    def broken():
        raise RuntimeError("the file is gone")

    tests = {**days, "short": (np.zeros((1, 2)), np.ones((5, 2))), "gone": broken, "read there": read_one}
    seen = []
    many = run_many(tests, rng=0, n_permutations=99, method="median", progress=lambda *step: seen.append(step))
    assert set(many.failures) == {"short", "gone"}
    assert "at least 2 rows" in many.failures["short"]
    assert many.failures["gone"] == "RuntimeError: the file is gone"
    assert len(many.results) == 5
    assert ("tests", 7, 7) in seen
    assert many.to_dict()["tests"]["read there"]["reject"]
    assert "! gone: RuntimeError" in str(many)


@pytest.mark.parametrize("tests", [{}, [], None])
def test_tests_must_be_named(tests):
    with pytest.raises(CpmmdError, match="map names to pairs"):
        run_many(tests)
