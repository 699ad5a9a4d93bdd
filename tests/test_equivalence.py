"""Equivalence: differences are what they are said to be, the level holds at the margin, few rows and many read differently."""

import json
import math
import pickle

import numpy as np
import polars as pl
import pytest
from scipy import stats
from scipy.integrate import quad

from benchmarks.equivalence import samples, scale_at, share_at
from cpmmd import CpmmdError, cite, equivalence_test, two_sample_test
from cpmmd.data.pool import read_pool
from cpmmd.statistics.equivalence import Coordinates, Noise, Yardstick, auc_of_shift, column_differences, joint_difference

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 2)), RNG.normal(size=(70, 2)) * [1.0, 1.5] + [0.3, 0.0]


def gaussian(a, b, bandwidth):
    return math.exp(-sum((u - v) ** 2 for u, v in zip(a, b, strict=True)) / (2 * bandwidth**2))


def within(x, y):
    return math.sqrt((x.var(ddof=1) * (len(x) - 1) + y.var(ddof=1) * (len(y) - 1)) / (len(x) + len(y) - 2))


def test_the_statistic_is_the_squared_mmd_in_standard_deviations_by_hand():
    scales = np.array([within(X[:, j], Y[:, j]) for j in range(2)])
    x, y = X / scales, Y / scales
    expected = sum(
        sign * np.mean([gaussian(a, b, math.sqrt(2)) for a in one for b in other])
        for sign, one, other in ((1, x, x), (1, y, y), (-2, x, y))
    )
    result = equivalence_test(X, Y, margin=0.5, rng=0)
    assert result.statistic == pytest.approx(expected, rel=1e-10)
    assert result.joint.bandwidth == math.sqrt(2)


@pytest.mark.parametrize("shift", [0.1, 0.7, 2.0])
def test_the_yardstick_is_the_mmd_of_normal_densities(shift):
    # In one dimension: E k(X, Y) for X - Y ~ N(shift, 2), by integration.
    def mean(apart):
        return quad(lambda u: math.exp(-(u**2) / 2) * stats.norm.pdf(u, apart, math.sqrt(2)), -12, 12)[0]

    assert Yardstick(1).mmd(shift) == pytest.approx(math.sqrt(2 * mean(0) - 2 * mean(shift)), rel=1e-6)
    for d in (1, 4, 300):
        assert Yardstick(d).shift(Yardstick(d).mmd(shift)) == pytest.approx(shift, rel=1e-9)
    assert Yardstick(1).shift(1.5) == math.inf


def test_the_auc_of_a_shift_is_that_of_the_best_rule():
    draws = np.random.default_rng(1).normal(size=(2, 400_000))
    assert auc_of_shift(0.8) == pytest.approx(np.mean(draws[0] + 0.8 > draws[1]), abs=0.003)


def test_column_intervals_are_those_of_a_bootstrap():
    rng = np.random.default_rng(2)
    x, y = rng.standard_exponential(400), 1.5 * rng.standard_exponential(300)
    column = equivalence_test(x, y, margin=0.5, rng=0).columns[0]
    again = []
    for _ in range(4000):
        a, b = rng.choice(x, len(x)), rng.choice(y, len(y))
        again.append((b.mean() - a.mean()) / within(a, b))
    assert column.difference == pytest.approx((y.mean() - x.mean()) / within(x, y))
    error = (column.high - column.low) / (2 * 1.65)
    assert error == pytest.approx(np.std(again), rel=0.06)


def test_noise_is_that_of_repeated_samples():
    # |mean embedding error|^2 of samples of one distribution, by repetition, against the draws from one of them.
    rng = np.random.default_rng(3)

    def difference(x, y):
        return joint_difference(Coordinates.of(read_pool(x, y)), 0.5, 0.05, rng)

    repeated = np.array([difference(rng.normal(size=(80, 2)), rng.normal(size=(120, 2)))[1] for _ in range(200)])
    drawn = []
    for _ in range(20):
        coordinates = Coordinates.of(read_pool(rng.normal(size=(80, 2)), rng.normal(size=(120, 2))))
        statistics = joint_difference(coordinates, 1e-9, 0.05, rng)[2]
        drawn.append(np.quantile(statistics, [0.05, 0.5, 0.95]))
    # 200 repetitions: the quantiles are known to about a tenth of themselves.
    np.testing.assert_allclose(np.mean(drawn, axis=0), np.quantile(repeated, [0.05, 0.5, 0.95]), rtol=0.15)


def test_small_statistics_are_likeliest_along_the_widest_direction():
    eigenvalues = np.array([0.5, 0.2, 0.1])
    rng = np.random.default_rng(4)
    noise = Noise.draw(eigenvalues, rng)
    errors = rng.normal(size=(200_000, 3)) * np.sqrt(eigenvalues)
    for level in (0.2, 0.5, 1.0):
        shares = [np.mean(np.square(errors + 0.9 * np.eye(3)[j]).sum(axis=1) <= level) for j in range(3)]
        assert shares[0] == max(shares)
        assert noise.below(level, 0.9) == pytest.approx(shares[0], abs=0.02)


def test_the_interval_is_where_the_test_changes_its_mind():
    largest = equivalence_test(X, Y, margin=0.5, rng=0).largest
    assert equivalence_test(X, Y, margin=largest * 1.001, rng=0).reject
    assert not equivalence_test(X, Y, margin=largest * 0.999, rng=0).reject


def test_the_samples_can_change_places_and_units():
    there, back = equivalence_test(X, Y, margin=0.5, rng=0), equivalence_test(Y, X, margin=0.5, rng=0)
    assert there.statistic == pytest.approx(back.statistic)
    assert [-c.high for c in there.columns] == pytest.approx([c.low for c in back.columns])
    scaled = equivalence_test(X * [1e-6, 5] + 1e3, Y * [1e-6, 5] + 1e3, margin=0.5, rng=0)
    assert scaled.statistic == pytest.approx(there.statistic, rel=1e-6)
    assert scaled.largest == pytest.approx(there.largest, rel=1e-6)


def test_few_rows_and_many_read_differently():
    rng = np.random.default_rng(5)
    few, many = (equivalence_test(*rng.normal(size=(2, n, 3)), margin=0.2, rng=0) for n in (30, 3000))
    assert (few.reject, many.reject) == (False, True)
    assert few.auc_bound > 0.6
    assert many.auc_bound < 0.55
    assert "not excluded" in few.explain().sentence
    assert not two_sample_test(*rng.normal(size=(2, 30, 3)), rng=0).reject


# 200 repetitions: a level of .05 gives more than 21 (.105) less than once in 1500 times.
@pytest.mark.parametrize("kind", ["mean", "scale", "skewed mean", "share"])
def test_level_at_the_margin_in_short(kind):
    rng = np.random.default_rng(6)
    rejected = sum(equivalence_test(*samples(kind, 1, 50, 0.5, rng), margin=0.5, rng=rng).reject for _ in range(200))
    assert rejected <= 21


# 1000 repetitions: .05 and 3 standard errors are 71.
@pytest.mark.statistical
@pytest.mark.parametrize("rows", [50, 200, 1000])
@pytest.mark.parametrize("columns", [1, 5])
@pytest.mark.parametrize("kind", ["mean", "scale"])
def test_level_at_the_margin(kind, columns, rows):
    rng, margin = np.random.default_rng(rows), 0.5 if rows == 50 else 0.2
    results = (equivalence_test(*samples(kind, columns, rows, margin, rng), margin=margin, rng=rng) for _ in range(1000))
    assert sum(result.reject for result in results) <= 71


def test_the_panels_are_at_the_margin():
    rng, n = np.random.default_rng(7), 400_000
    x, y = rng.normal(size=n), scale_at(0.5, 1) * rng.normal(size=n)
    unit = within(x, y)
    x, y = (x / unit)[: n // 2], (y / unit)[: n // 2]
    pairs = [np.exp(-((np.roll(a, 1) - b) ** 2) / 2).mean() for a, b in ((x, x), (y, y), (x, y))]
    assert math.sqrt(pairs[0] + pairs[1] - 2 * pairs[2]) == pytest.approx(Yardstick(1).mmd(0.5), rel=0.03)
    a, b = rng.random(n) < 0.05, rng.random(n) < share_at(0.5)
    assert (b.mean() - a.mean()) / within(a, b) == pytest.approx(0.5, abs=0.01)


def test_columns_of_every_kind():
    rng = np.random.default_rng(8)

    def frame(rows, share):
        return pl.DataFrame(
            {
                "size": rng.normal(size=rows),
                "on": rng.random(rows) < 0.5,
                "country": rng.choice(["ES", "FR", "IT"], rows, p=[share, 0.5, 0.5 - share]),
                "gaps": [None if i % 5 == 0 else float(i % 7) for i in range(rows)],
            }
        )

    result = equivalence_test(frame(900, 0.2), frame(800, 0.35), margin=0.3, missing="impute", rng=0)
    assert result.columns[0].name == "country"
    assert result.columns[0].meaning in ("share of 'ES'", "share of 'IT'")
    assert {c.name for c in result.columns} == {"size", "on", "country", "gaps"}
    assert not result.reject
    assert equivalence_test(frame(900, 0.2), frame(800, 0.2), margin=0.3, missing="impute", rng=0).reject


def test_constant_columns():
    same, other = np.ones((20, 1)), np.zeros((20, 1))
    equal, apart = equivalence_test(same, same, margin=0.1, rng=0), equivalence_test(same, other, margin=5, rng=0)
    assert equal.reject
    assert equal.largest == 0.0
    assert not apart.reject
    assert apart.largest == math.inf
    assert "any amount" in str(apart)
    assert apart.to_dict()["largest"] is None


def test_a_unit_set_by_a_few_rows_is_said():
    x, y = RNG.normal(size=(2, 200))
    assert not equivalence_test(x, y, margin=0.3, rng=0).notes
    x[0] = 1e6
    assert "extreme rows dominate the standard deviation of '0'" in equivalence_test(x, y, margin=0.3, rng=0).notes[0]


def test_many_rows_are_drawn_for_the_kernel_and_it_is_said(monkeypatch):
    for module in ("cpmmd.statistics.equivalence", "cpmmd.questions.equivalence"):
        monkeypatch.setattr(f"{module}.MOST_ROWS", 100)
    result = equivalence_test(*RNG.normal(size=(2, 150, 1)), margin=0.3, rng=0)
    assert result.joint.rows == (100, 100)
    assert "100 rows of each sample, drawn at random" in result.notes[0]


def test_results_print_pickle_report_and_repeat(tmp_path):
    result = equivalence_test(X, Y, margin=0.5, rng=3)
    assert eval(result.call, {"equivalence_test": equivalence_test, "x": X, "y": Y}).to_dict() == result.to_dict()
    assert str(pickle.loads(pickle.dumps(result))) == str(result)
    assert repr(result) == (
        f"<EquivalenceResult: Equivalence not shown within 0.5 standard deviations (p = {result.pvalue:.4g} > 0.05); "
        "60 v 70 rows, 2 columns>"
    )
    json.dumps(result.to_dict(null_distribution=True), allow_nan=False)
    assert len(result.null_distribution) == 9999
    assert not result.exact
    result.report(tmp_path / "r.md", title="before v after")
    assert "Equivalence not shown within 0.5 standard deviations" in (tmp_path / "r.md").read_text()
    assert json.loads(result.report(tmp_path / "r.json"))["verdict"]["pvalue"] == result.pvalue
    assert '<header class="found">' in result.report()
    assert '<header class="clear">' in equivalence_test(X, X, margin=0.5, rng=3).report()
    assert "liu2026equivalence" in cite(result)


@pytest.mark.parametrize(
    ("options", "said"), [({"margin": 0}, "margin"), ({"margin": math.nan}, "margin"), ({"alpha": 1}, "alpha")]
)
def test_bad_options_get_a_sentence(options, said):
    with pytest.raises(CpmmdError, match=said):
        equivalence_test(X, Y, **{"margin": 0.5, **options})


def test_the_largest_p_decides():
    result = equivalence_test(X, Y, margin=0.8, rng=0)
    columns = column_differences(Coordinates.of(read_pool(X, Y)), 0.8, 0.05)
    assert result.pvalue == max(result.joint.pvalue, *(c.pvalue for c in columns))


def test_a_margin_and_a_design_are_not_mixed_on_the_command_line(tmp_path):
    from commands import run

    for name in ("a", "b"):
        (tmp_path / f"{name}.csv").write_text("u,site\n" + "\n".join(f"{i * 0.37 % 1:.3f},s{i % 3}" for i in range(40)))
    files = [tmp_path / "a.csv", tmp_path / "b.csv"]
    refused = run("test", *files, "--margin", "0.5", "--group-by", "site")
    assert refused.exit_code == 2
    assert "Leave out --group-by" in refused.stderr
    quiet = run("test", *files, "--method", "median")
    assert quiet.exit_code == 0
    assert "--margin 0.2" in quiet.stdout


def test_an_equivalence_result_is_neither_true_nor_false():
    with pytest.raises(TypeError, match=r"truth value of EquivalenceResult is ambiguous. Use `.reject`"):
        bool(equivalence_test(X, Y, margin=0.5, rng=0))


def test_equivalence_is_not_claimed_over_pooled_levels():
    """A fifth of the rows moved to twenty new codes: pooled with other rare ones, none of them is seen."""
    rng = np.random.default_rng(9)

    def codes(moved):
        found = np.char.add("c", rng.integers(0, 2000, 3000).astype(str))
        new = rng.random(3000) < 0.2 * moved
        found[new] = np.char.add("n", rng.integers(0, 20, int(new.sum())).astype(str))
        return pl.DataFrame({"code": found, "v": rng.normal(size=3000)})

    with pytest.raises(CpmmdError, match=r"Column 'code' has \d+ levels, and the \d+ rarest are pooled"):
        equivalence_test(codes(0), codes(1), margin=0.1, rng=0)
    fewer = [codes(0).with_columns(code=pl.col("code").str.slice(0, 2)) for _ in range(2)]
    assert equivalence_test(*fewer, margin=0.2, rng=0).reject


def test_the_explanation_of_equivalence_has_a_short_repr_and_no_truth_value():
    explanation = equivalence_test(*RNG.normal(size=(2, 60, 12)), margin=0.5, rng=0).explain()
    assert repr(explanation) == f"<EquivalenceExplanation: {explanation.sentence} 12 columns; print it for all>"
    with pytest.raises(TypeError, match="ambiguous"):
        bool(explanation)
