"""Assertions for tests and pipelines: when they fail, what they say, and the reference that the fixture keeps."""

import numpy as np
import pandas as pd
import pytest
from scipy.stats import binom

from cpmmd.testing import assert_equivalent, assert_same_distribution, assert_same_responses

pytest_plugins = ["pytester"]


def table(seed, rows=120, shift=0.0):
    data = np.random.default_rng(seed)
    return pd.DataFrame(
        {"price": data.normal(10 + shift, 2, rows), "items": data.integers(1, 5, rows), "shop": data.choice(["a", "b"], rows)}
    )


def test_data_of_one_distribution_pass():
    assert assert_same_distribution(table(1), table(2)) is None


def test_a_failure_says_the_p_value_where_how_often_it_is_false_and_how_to_repeat_it():
    with pytest.raises(AssertionError) as failure:
        assert_same_distribution(table(1, shift=3.0), table(2), names=("january", "february"))
    verdict, where, *_, chance, repeat = str(failure.value).splitlines()
    assert verdict == "The samples differ (p = 0.001 <= 0.01)."
    assert "'price'" in where
    assert "february" in where
    assert chance == "If nothing changed, this assertion fails with probability 0.01."
    assert repeat.startswith("Repeat with x = reference, y = new: two_sample_test(x, y, ")
    assert repeat.endswith("alpha=0.01, n_permutations=999, rng=0)")


def test_the_default_seed_repeats_the_outcome():
    x, y = table(3, 30, shift=1.5), table(4, 30)
    messages = set()
    for _ in range(3):
        with pytest.raises(AssertionError) as failure:
            assert_same_distribution(x, y, alpha=0.2)
        messages.add(str(failure.value))
    assert len(messages) == 1


def test_options_are_those_of_the_test():
    x, y = table(5), table(6)
    x["shop"] = "a"  # another mix, which strata allow
    with pytest.raises(AssertionError):
        assert_same_distribution(x, y)
    assert_same_distribution(x, y, strata="shop", method="median")


def test_false_failures_are_as_rare_as_alpha():
    """400 nulls at .05: more than 32 failures have probability below 1e-3 if the level is .05."""
    failures = 0
    for seed in range(400):
        data = np.random.default_rng([7, seed])
        try:
            assert_same_distribution(
                data.normal(size=(20, 2)), data.normal(size=(25, 2)), alpha=0.05, method="median", n_permutations=99
            )
        except AssertionError:
            failures += 1
    assert failures <= binom.ppf(0.999, 400, 0.05)


def test_equivalence_passes_where_the_margin_is_excluded_and_says_what_is_not():
    data = np.random.default_rng(0)
    assert_equivalent(data.normal(size=(900, 2)), data.normal(size=(900, 2)), margin=0.3)
    with pytest.raises(AssertionError, match="not excluded"):
        assert_equivalent(data.normal(size=(60, 2)), data.normal(size=(60, 2)), margin=0.1)


TEST = """
    import numpy as np
    import pandas as pd

    def frame(seed, shift):
        data = np.random.default_rng(seed)
        return pd.DataFrame({"price": data.normal(shift, 1, 90), "shop": data.choice(["a", "b"], 90),
                             "day": pd.date_range("2026-01-01", periods=90)})

    def test_prices(same_as_reference):
        same_as_reference(frame(%d, %f))
        same_as_reference(np.random.default_rng(%d).normal(size=(80, 3)), "embedding", method="median")
"""


def test_the_fixture_writes_a_reference_and_compares_with_it(pytester):
    run = ("-p", "no:cacheprovider", "-q")
    pytester.makepyfile(test_shop=TEST % (0, 0.0, 0))
    missing = pytester.runpytest_subprocess(*run)
    missing.stdout.fnmatch_lines(
        ["*There is no reference for test_prices. Write it with: pytest --update-references *test_prices*"]
    )
    assert pytester.runpytest_subprocess(*run, "--update-references").ret == 0
    assert sorted(path.name for path in (pytester.path / "references").iterdir()) == [
        "test_prices-embedding.npy",
        "test_prices.parquet",
    ]
    pytester.makepyfile(test_shop=TEST % (1, 0.0, 1))
    assert pytester.runpytest_subprocess(*run).ret == 0
    pytester.makepyfile(test_shop=TEST % (1, 2.0, 1))
    changed = pytester.runpytest_subprocess(*run)
    assert changed.ret == 1
    changed.stdout.fnmatch_lines(["*AssertionError: The samples differ (p = 0.001 <= 0.01).*", "*'price'*"])


def test_answers_that_differ_name_their_prompts():
    reference = {"A colour?": ["red", "blue"] * 10, "A city?": ["Rome", "Paris"] * 10}
    assert_same_responses(reference, reference)
    with pytest.raises(AssertionError) as failure:
        assert_same_responses({**reference, "A colour?": ["teal", "blue"] * 10}, reference)
    message = str(failure.value)
    assert message.startswith("The answers differ (p = ")
    assert "Answers to 1 of 2 prompts differ: 'A colour?'." in message
    assert "teal" in message
    assert message.splitlines()[-1].startswith("Repeat with responses_test(reference, new, alpha=0.01, ")
