"""Sample-size planning: the law against theory and simulation, draws that never repeat a row, answers in words."""

import json
import math
import re

import numpy as np
import pytest
from scipy import stats

from cpmmd import CpmmdError, MedianTest, Plain, SplitTest, power_from_pilot, two_sample_test
from cpmmd.procedures.base import Procedure
from cpmmd.questions.options import TestOptions
from cpmmd.studies.planning import fewest_that_reject
from cpmmd.studies.power_table import Draws, PowerRow, PowerTable, Range, fit_law

QUICK = {"method": "median", "n_permutations": 99, "repetitions": 30}


def samples(rng, rows, shift, width=2):
    y = rng.normal(size=(rows, width))
    y[:, 0] += shift
    return rng.normal(size=(rows, width)), y


def test_the_law_is_that_of_a_quadratic_form_in_normals():
    # sum_i l_i [2 (Z_i^2 - 1) + 2 sqrt(2 n) t_i Z_i + n t_i^2] over its null deviation: mean a n, variance 1 + b n.
    rng = np.random.default_rng(0)
    eigenvalues, effects, n = np.array([1.0, 0.7, 0.5, 0.2]), np.array([0.1, 0.0, 0.2, 0.05]), 50
    z = rng.normal(size=(400_000, 4))
    scale = np.sqrt(8 * np.sum(eigenvalues**2))
    values = (2 * (z**2 - 1) + 2 * np.sqrt(2 * n) * effects * z + n * effects**2) @ eigenvalues / scale
    a = np.sum(eigenvalues * effects**2) / scale
    b = np.sum(eigenvalues**2 * effects**2) / np.sum(eigenvalues**2)
    assert values.mean() == pytest.approx(a * n, abs=4 * values.std() / 632)
    assert values.var() == pytest.approx(1 + b * n, rel=0.02)
    assert b <= np.sqrt(8) * a


def test_a_law_is_found_again_from_its_own_draws():
    a, c, z = 0.02, 0.8, stats.norm.isf(0.05)
    draws = [Draws(n, round(1e4 * stats.norm.cdf((a * n - z) / np.sqrt(1 + c * a * n))), 10_000) for n in (20, 40, 80, 160, 320)]
    law = fit_law(draws, pilot=10**6, alpha=0.05)  # a pilot so large that draws are independent
    for n in (30, 100, 250, 1000):
        expected = stats.norm.cdf((a * n - z) / np.sqrt(1 + c * a * n))
        assert law.power(n).estimate == pytest.approx(expected, abs=0.02)
    needed = law.rows_for(0.9)
    assert law.power(needed.estimate).estimate == pytest.approx(0.9, abs=0.005)
    assert needed.low <= needed.estimate <= needed.high


def test_power_starts_at_alpha_and_grows():
    law = fit_law([Draws(20, 5, 50), Draws(40, 15, 50)], pilot=80, alpha=0.05)
    powers = [law.power(n).estimate for n in (0, 10, 20, 40, 80, 1000)]
    assert powers[0] == pytest.approx(0.05)
    assert powers == sorted(powers)


def test_draws_that_all_reject_or_none_do_are_no_trouble():
    sure = fit_law([Draws(8, 50, 50), Draws(100, 50, 50)], pilot=200, alpha=0.05)
    assert sure.power(200).low > 0.99
    assert sure.rows_for(0.8).high <= 8
    nothing = fit_law([Draws(25, 1, 50), Draws(100, 0, 50)], pilot=200, alpha=0.05)
    assert nothing.rows_for(0.8).high > 20 * 200


def test_extrapolation_holds_on_fresh_samples():
    # Pilots of 40 rows say what samples of 80 and 160 would do. An interval of 0.9 misses the truth in 2 of 20 pilots on average;
    # 6 misses or more have probability 0.011. The truth itself is known to 0.03, its standard error over 250 samples.
    rng = np.random.default_rng(1)
    truth = {}
    for rows in (80, 160):
        tests = [two_sample_test(*samples(rng, rows, 0.5), method="median", n_permutations=99, rng=rng) for _ in range(250)]
        truth[rows] = np.mean([test.reject for test in tests])
    assert 0.5 < truth[80] < 0.97  # neither hopeless nor certain
    missed = dict.fromkeys(truth, 0)
    for pilot in range(20):
        table = power_from_pilot(*samples(np.random.default_rng([2, pilot]), 40, 0.5), truth, rng=pilot, **QUICK)
        for row in table.rows:
            assert row.extrapolated
            assert row.observed is None
            missed[row.size] += not row.low - 0.03 <= truth[row.size] <= row.high + 0.03
    assert max(missed.values()) <= 5


def test_a_large_pilot_answers_what_smaller_samples_show():
    rng = np.random.default_rng(3)
    table = power_from_pilot(*samples(rng, 600, 0.6), [20, 40, 80], rng=0, **{**QUICK, "repetitions": 100})
    for row in table.rows:
        fresh = np.mean(
            [
                two_sample_test(*samples(rng, row.size, 0.6), method="median", n_permutations=99, rng=rng).reject
                for _ in range(100)
            ]
        )
        assert abs(row.power - fresh) < 0.2  # 3 standard errors of each of two shares of 100, and what a pilot of 600 leaves open
        assert row.low <= row.power <= row.high
        assert row.repetitions == 100


class Witness(Procedure):
    """Notes the rows that it is given, and never rejects."""

    def __init__(self):
        self.seen = []

    def run(self, samples, options, rng):  # noqa: ARG002
        self.seen.append(samples)

        class Result:
            reject = False

        return Result


def test_no_row_is_drawn_twice_and_columns_stay_together():
    witness = Witness()
    ids = np.arange(50.0)
    power_from_pilot(np.column_stack([ids, ids + 1000]), np.column_stack([-ids - 1, 999 - ids]), [10, 50], method=witness, rng=0)
    for pool in witness.seen:
        drawn = pool.numbers[:, 0]
        assert len(set(drawn)) == len(drawn) == 2 * pool.m
        assert (drawn[: pool.m] >= 0).all()
        assert (drawn[pool.m :] < 0).all()
        np.testing.assert_array_equal(pool.numbers[:, 1], drawn + 1000)
    assert sum(pool.m == 50 for pool in witness.seen) == 1  # all rows can be drawn in one way only


def test_the_same_seed_gives_the_same_table_whatever_the_jobs():
    x, y = samples(np.random.default_rng(4), 30, 0.7)
    options = {**QUICK, "repetitions": 6, "rng": 3}
    one = power_from_pilot(x, y, [10, 100], **options)
    assert power_from_pilot(x, y, [100, 10], n_jobs=2, **options) == one
    assert power_from_pilot(x, y, [10, 100], **{**options, "rng": 4}) != one


def test_tables_print_and_turn_into_json():
    polars = pytest.importorskip("polars")
    rng = np.random.default_rng(5)
    frames = [polars.DataFrame({"v": rng.normal(shift, 1, 40), "g": rng.choice(["a", "b"], 40)}) for shift in (0, 1)]
    table = power_from_pilot(*frames, [20, 200], rng=0, **QUICK)
    back = json.loads(json.dumps(table.to_dict(), allow_nan=False))
    assert back["rows"][1]["extrapolated"]
    assert back["sentence"] == table.sentence
    assert str(table).startswith(table.sentence)
    assert "(extrapolated)" in str(table)


@pytest.mark.parametrize(
    ("needed", "words"),
    [
        (
            Range(233, 180, 420),
            "About 240 rows of each sample for power 0.80, beyond the pilot (between 180 and 420, given this pilot).",
        ),
        (Range(61, 44, 88), "About 61 rows of each sample for power 0.80 (between 44 and 88, given this pilot)."),
        (Range(130, 24, math.inf), "no clear difference: power 0.80 may need 130 rows"),
        (Range(math.inf, 900, math.inf), "no difference to plan for: power 0.80 needs more than 900 rows"),
    ],
)
def test_the_answer_is_a_sentence(needed, words):
    table = PowerTable((), needed, 0.8, "median", 0.05, (100, 120), 99, 0)
    assert words in table.sentence


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"sizes": []}, "At least one sample size"),
        ({"sizes": [4]}, "at least 8"),
        ({"sizes": [10.5]}, "whole number"),
        ({"target": 1}, "strictly between 0 and 1"),
        ({"repetitions": 1}, "at least 2"),
        ({"method": "mediam"}, "Did you mean 'median'"),
        ({"n_permutations": 5}, "n_permutations=19"),
        ({"x": [[1.0], [2.0]]}, "at least 8 rows"),
    ],
)
def test_mistakes_get_a_sentence(change, message):
    x, y = samples(np.random.default_rng(6), 20, 0)
    with pytest.raises(CpmmdError, match=message):
        power_from_pilot(
            **{
                "x": x if "x" not in change else np.ones((2, 2)),
                "y": y,
                "sizes": [10],
                **QUICK,
                **{k: v for k, v in change.items() if k != "x"},
            }
        )


def test_inside_the_pilot_what_was_observed_comes_first():
    rows = (
        PowerRow(25, 0.42, 0.30, 0.55, 0.31, 100, extrapolated=False),
        PowerRow(100, 0.90, 0.80, 0.95, 1.0, 1, extrapolated=False),  # all rows can be drawn in one way only
        PowerRow(200, 0.97, 0.90, 0.99, None, 0, extrapolated=True),
    )
    assert [row.estimate for row in rows] == [0.31, 0.90, 0.97]
    table = PowerTable(rows, Range(61, 44, 88), 0.8, "median", 0.05, (100, 120), 99, 0)
    inside, alone, beyond = str(table).splitlines()[2:]
    assert re.search(r"25 +0\.31 +\(100 draws\) +0\.42, 0\.30 to 0\.55", inside)
    assert re.search(r"100 +0\.90 +\(fitted curve\) +0\.90", alone)
    assert re.search(r"200 +0\.97 +\(extrapolated\) +0\.97", beyond)
    assert [row["estimate"] for row in table.to_dict()["rows"]] == [0.31, 0.90, 0.97]


@pytest.mark.parametrize(
    ("method", "alpha", "fewest"),
    # 2 / C(2n, n): 0.1 for 3, 0.029 for 4, 0.0079 for 5; a split in halves tests half of the rows, several splits double p.
    [
        ("median", 0.05, 4),
        ("median", 0.01, 5),
        ("plain-linear", 0.05, 8),  # of 7 rows 4 are training rows and 3 are tested
        (SplitTest(criterion=Plain(), n_splits=3), 0.02, 9),  # of 9 rows 4 are training rows
        (MedianTest(split=True), 0.05, 8),
    ],
)
def test_no_fewer_rows_are_advised_than_can_reject(method, alpha, fewest):
    procedure = TestOptions(method, alpha, 999, None, None, None, "error", None, None, None, None).plan().procedure
    assert fewest_that_reject(None, procedure, alpha) == fewest


def test_an_obvious_difference_still_takes_rows_enough_to_reject():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(60, 2)), rng.normal(8, 1, size=(60, 2))
    table = power_from_pilot(x, y, [8], method="median", repetitions=10, rng=0)
    assert table.sentence.startswith("About 4 rows of each sample for power 0.80 (between 4 and ")
    assert two_sample_test(x[:4], y[:4], method="median", rng=0).reject
    assert not two_sample_test(x[:3], y[:3], method="median", rng=0).reject
    pairs = power_from_pilot(x, y, [8], method="median", repetitions=10, rng=0, pairs=(np.arange(60), np.arange(60)))
    assert pairs.needed.low >= 6  # 2 / 2^6


def test_a_plan_in_blocks_says_how_long_they_are():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(400, 1)), rng.normal(1, 1, size=(400, 1))
    table = power_from_pilot(x, y, [8], repetitions=4, method="median", n_permutations=99, rng=0, blocks=20)
    assert table.block_rows == table.to_dict()["block_rows"] == 20
    assert "blocks of 20 rows of each sample for power" in table.sentence
    rows = power_from_pilot(x, y, [8], repetitions=4, method="median", n_permutations=99, rng=0)
    assert rows.block_rows is None
