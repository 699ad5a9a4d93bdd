"""What kind of change: the statistic is its formula, discrete inputs are permuted, levels hold, bad input ends in a sentence."""

from itertools import combinations, product

import numpy as np
import pandas as pd
import pytest
from sklearn.linear_model import LinearRegression, LogisticRegression

from benchmarks.change import NULLS, relation, split
from cpmmd import CpmmdError, change_test, cite
from cpmmd.data.table import read_table
from cpmmd.draws.labels import Relabelings
from cpmmd.questions.change import closed_pvalues
from cpmmd.questions.relation import discrete_strata, measured_overlap
from cpmmd.statistics.cross_fitting import FOLDS, PENALTIES, Ridge, _logistic, draw_folds, feature_sets
from cpmmd.statistics.given_inputs import between_samples, given_inputs, interval, signed_statistics

FAST = {"method": "median", "n_permutations": 99, "rng": 0}


def flats(rows, larger=0.0, dearer=0.0, seed=0):
    data = np.random.default_rng(seed)
    area, town = data.normal(70 + larger, 15, size=rows), data.choice(["north", "south"], size=rows)
    price = 3 * area + 20 * (town == "north") + dearer + data.normal(0, 20, size=rows)
    return pd.DataFrame({"area": area, "town": town, "price": price})


# The statistic.


@pytest.mark.parametrize("gamma", [None, 0.1])
def test_the_statistic_is_its_formula_by_sums_over_pairs_of_rows(gamma):
    U, V = np.random.default_rng(0).normal(size=(2, 30, 4)) * [1, 2, 0.5, 1]
    draws = Relabelings.draw_signs(30, 9, np.random.default_rng(1))
    found = signed_statistics(U, V, draws, (gamma,))[0]
    covariance = sum(np.outer(v, v) for v in V) / 30
    metric = np.eye(4) if gamma is None else np.linalg.inv(covariance + gamma * np.linalg.eigvalsh(covariance)[-1] * np.eye(4))
    for b, (signs, value) in enumerate(zip(draws.array(), found, strict=True)):
        rows = U if b == 0 else V
        expected = (
            sum(s * t * u @ metric @ v for s, u in zip(signs, rows, strict=True) for t, v in zip(signs, rows, strict=True)) / 30
        )
        assert value == pytest.approx(expected, rel=1e-10)


def test_regressions_are_ridge_regressions_on_the_other_folds():
    rng = np.random.default_rng(2)
    x = rng.normal(size=(60, 2))
    labels, y = np.repeat([0, 1], 30), (x[:, 0] + 0.5 * rng.normal(size=60))[:, None]
    folds = draw_folds(labels, rng)
    assert all(np.bincount(labels[folds == k]).tolist() == [6, 6] for k in range(FOLDS))
    found = Ridge.of(x, folds, np.random.default_rng(3)).means(y)[:, 0]
    best = (np.inf, None)
    for features in feature_sets(x, np.random.default_rng(3)):
        by_penalty = np.empty((len(PENALTIES), 60))
        for k in range(FOLDS):
            train, test = folds != k, folds == k
            mean, level = features[train].mean(axis=0), y[train].mean()
            F = features[train] - mean
            for j, penalty in enumerate(PENALTIES * np.trace(F.T @ F) / F.shape[1]):
                slopes = np.linalg.solve(F.T @ F + penalty * np.eye(F.shape[1]), F.T @ (y[train, 0] - level))
                by_penalty[j, test] = level + (features[test] - mean) @ slopes
        for predicted in by_penalty:
            best = min(best, (np.square(y[:, 0] - predicted).sum(), predicted), key=lambda pair: pair[0])
    np.testing.assert_allclose(found, best[1], rtol=1e-6, atol=1e-8)


def test_probabilities_are_those_of_a_known_shift():
    rng, n = np.random.default_rng(4), 1500
    labels = np.repeat([0, 1], n)
    x = rng.normal(size=(2 * n, 3))
    x[:, 0] += labels
    found = Ridge.of(x, draw_folds(labels, rng), rng).probabilities(labels)
    true = 1 / (1 + np.exp(0.5 - x[:, 0]))  # N(1, 1) against N(0, 1)
    assert np.sqrt(np.mean((found.values - true) ** 2)) < 0.04


def test_what_a_label_adds_through_the_probabilities_is_what_a_fit_without_it_loses():
    rng, n = np.random.default_rng(11), 150
    labels = np.repeat([0, 1], n)
    x = rng.normal(size=(2 * n, 2)) + 0.5 * labels[:, None]
    column, folds = rng.normal(size=(2 * n, 1)), draw_folds(labels, rng)
    ridge = Ridge.of(x, folds, rng)
    found = ridge.probabilities(labels)
    carried, step = found.carried(column)[:, 0], 0.01
    for row in (0, 7, 250):
        moved = labels.astype(float)
        moved[row] += step  # half a label is none, but the derivative is that of the fit
        ends = [np.empty(2 * n) for _ in range(2)]
        for fold in found.folds:
            for end, of in zip(ends, (labels.astype(float), moved), strict=True):
                end[fold.test] = 1 / (1 + np.exp(-_logistic(fold, of)[:, found.penalty]))
        assert carried[row] == pytest.approx((ends[1] - ends[0]) @ column[:, 0] / step, rel=0.1, abs=0.02)


# The closed test.


def test_adjusted_pvalues_are_those_of_all_intersections_that_can_be_true():
    possible = [set(s) for k in (1, 2, 3) for s in combinations("xyr", k) if set(s) != {"x", "r"}]  # x and r imply y
    for raw in product([0.001, 0.012, 0.02, 0.03, 0.2, 1.0], repeat=3):
        p = dict(zip("xyr", raw, strict=True))
        expected = [min(1.0, max(len(s) * min(p[i] for i in s) for s in possible if part in s)) for part in "xyr"]
        assert closed_pvalues(*raw) == pytest.approx(expected)


# Exact where inputs are discrete.


def test_discrete_inputs_are_tested_by_all_relabelings_within_equal_inputs():
    rng = np.random.default_rng(5)
    x = np.array([["a"] * 20 + ["b"] * 20]).ravel()
    y = rng.normal(size=40)
    assert (
        discrete_strata(tuple(read_table(pd.DataFrame({"x": part}), "x") for part in (x, x))).tolist()
        == [0] * 20 + [1] * 20 + [0] * 20 + [1] * 20
    )
    samples = [pd.DataFrame({"x": x, "y": values}) for values in (y, y + 1.5)]
    result = change_test(*samples, target="y", **FAST)
    assert (result.relation.exact, result.exact, result.relation.reject) == (True, True, True)
    assert result.relation.method == "median, within equal inputs"
    # Of each stratum's means: the difference at equal inputs is 1.5, whatever the mix.
    assert result.differences[0].difference == pytest.approx(1.5)


def test_the_mix_of_discrete_inputs_may_change():
    # 60 repetitions: a level of .05 gives more than 9 less than once in 700 times.
    rejected = 0
    for seed in range(60):
        reference, new, target = split(NULLS["discrete"](np.random.default_rng([6, seed]), 60))
        result = change_test(reference, new, target=target, **FAST)
        rejected += result.relation.pvalue <= 0.05
    assert rejected <= 9


# Level and power in short.


# 60 repetitions: a rate of .05 gives more than 9 less than once in 700 times.
def test_level_of_the_relation_in_short():
    draw = NULLS["nonlinear"]
    found = [relation(draw(np.random.default_rng([7, i]), 100), np.random.default_rng(i), signs=99) for i in range(60)]
    assert sum(p <= 0.05 for p in found) <= 9


# 400 repetitions: .08, the most that is granted, and 3 standard errors are 48.
@pytest.mark.statistical
@pytest.mark.parametrize("name", NULLS)
def test_level_of_the_relation(name):
    found = [relation(NULLS[name](np.random.default_rng([8, i]), 500), np.random.default_rng(i)) for i in range(400)]
    assert sum(p <= 0.05 for p in found) <= 48


def test_a_change_at_equal_inputs_is_found_with_its_size_and_a_shift_of_inputs_is_not_taken_for_one():
    shifted = change_test(flats(300), flats(300, larger=15, seed=1), target="price", **FAST)
    assert [part.reject for part in shifted.parts_of_change] == [True, True, False]
    assert shifted.headline == "The inputs changed; so did 'price'; no change found in 'price' given the inputs"
    dearer = change_test(flats(300), flats(300, dearer=12, seed=1), target="price", **FAST)
    assert (dearer.inputs.reject, dearer.relation.reject) == (False, True)
    (difference,) = dearer.differences
    assert difference.low < 12 < difference.high < 20
    both = change_test(flats(300), flats(300, larger=15, dearer=15, seed=1), target="price", **FAST)
    assert both.headline == "The inputs changed, and so did 'price' given the inputs"
    same = change_test(flats(300), flats(300, seed=1), target="price", **FAST)
    assert same.headline == "No change found in the inputs, in 'price', or in 'price' given the inputs"


def test_a_change_of_slope_of_shape_and_of_a_level_are_seen():
    rng = np.random.default_rng(9)
    x, noise = rng.normal(size=(600, 3)), rng.normal(size=600)
    new = np.arange(600) >= 300
    for y in (
        np.where(new, -1, 1) * x[:, 0] + noise,
        x[:, 0] + np.where(new, 2.0, 1.0) * noise,
        np.where(x[:, 0] + noise + np.where(new, 0.8, 0) > 0, "yes", "no"),
        np.stack([x[:, 0] + noise, np.where(new, -1, 1) * noise + 0.5 * rng.normal(size=600)], axis=1),
    ):
        result = change_test(x[:300], x[300:], target=(y[:300], y[300:]), **FAST)
        assert result.relation.reject
        assert not result.inputs.reject


def test_your_own_models_are_used():
    models = {"regressor": LinearRegression(), "classifier": LogisticRegression()}
    found = change_test(flats(200), flats(200, larger=10, dearer=15, seed=1), target="price", **models, **FAST)
    assert found.relation.reject
    with pytest.raises(CpmmdError, match="must be None or a scikit-learn estimator, an object with fit and predict_proba"):
        change_test(flats(50), flats(50), target="price", classifier=LinearRegression())
    with pytest.raises(CpmmdError, match="LogisticRegression failed: Unknown label type"):
        change_test(flats(50), flats(50), target="price", regressor=LogisticRegression(), **FAST)


# A model's error.


def test_the_change_of_error_is_divided_and_its_intervals_are_those_of_repeated_samples():
    # Truth by formula: errors are x^2 (the model predicts 0), x ~ N(0, 1) or N(1, 1), and .5 more in the new sample.
    rng, covered, n = np.random.default_rng(10), np.zeros(2), 100
    for _ in range(n):
        labels = np.repeat([0, 1], 200)
        x = rng.normal(size=400) + labels
        loss, e = x**2 + 0.5 * labels + 0.3 * rng.normal(size=400), 1 / (1 + np.exp(0.5 - x))
        at_equal, own = given_inputs(loss, x**2 + 0.5 * e, labels - e)
        total, influence = between_samples(loss, labels)
        for j, (truth, of) in enumerate([(0.5, interval(at_equal, own)), (1.0, interval(total - at_equal, influence - own))]):
            covered[j] += of.low <= truth <= of.high
    assert (covered >= 88).all()  # 95 of 100: below 88 once in 300 times


def test_predictions_say_how_much_either_change_explains():
    reference, new = (flats(500, larger, dearer, seed).assign(model=230.0) for larger, dearer, seed in ((0, 0, 0), (15, 0, 1)))
    error = change_test(reference, new, target="price", predictions="model", **FAST).error_change
    assert error.total.estimate == pytest.approx(error.inputs.estimate + error.relation.estimate)
    assert error.inputs.low > 0 > error.relation.low
    assert error.loss == "squared"
    arrays = [sample["price"].to_numpy() for sample in (reference, new)]
    of_arrays = change_test(
        reference.drop(columns=["price", "model"]),
        new.drop(columns=["price", "model"]),
        target=arrays,
        predictions=([230.0] * 500, [230.0] * 500),
        **FAST,
    )
    assert of_arrays.error_change == error
    levels = [sample[["area", "price"]].assign(kind=sample["town"]).drop(columns="price") for sample in (reference, new)]
    guesses = tuple(["north"] * 500 for _ in levels)
    assert change_test(*levels, target="kind", predictions=guesses, **FAST).error_change.loss == "zero-one"


# What cannot be.


def test_without_overlap_the_relation_is_not_tested_and_the_rest_is():
    result = change_test(flats(200), flats(200, larger=300, seed=1), target="price", **FAST)
    assert [part.reject for part in result.parts_of_change] == [True, True, False]
    assert not result.relation.testable
    assert result.headline == "The inputs and 'price' changed; the relation to 'price' was not testable (no overlap)"
    assert "20 of each are needed" in result.relation.why
    assert "not testable" in str(result)
    towns = [pd.DataFrame({"town": [name] * 100, "price": np.arange(100.0)}) for name in ("north", "south")]
    assert not change_test(*towns, target="price", **FAST).relation.testable


def test_overlap_counts_rows_whose_inputs_occur_in_both_samples_whatever_their_sizes():
    labels = np.repeat([0, 1], [900, 100])
    assert measured_overlap(np.full(1000, 0.1), labels).rows == (900, 100)
    assert measured_overlap(np.where(labels > 0, 0.9, 0.005), labels).rows == (0, 0)


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"target": "prize"}, "Unknown column in target: 'prize'. Did you mean 'price'?"),
        ({"target": 3}, "The 'target' parameter must be the name of a column, or a pair of arrays, one for each sample"),
        ({"target": ["area", "town", "price"]}, "There must be a column of inputs"),
        ({"target": "price", "predictions": "modell"}, "Unknown column in predictions"),
        ({"target": "price", "predictions": "town"}, "must be of the target's kind. Got text for a target of numbers"),
        ({"target": "price", "loss": "hinge"}, "Unknown value of loss"),
        ({"target": (np.zeros(50), np.zeros(50))}, "The target must vary. 'target' has one value in all rows of both samples"),
        ({"target": (["a"] * 50, ["a"] * 50)}, "The target must vary"),
        ({"target": (["a"] * 50, np.arange(50.0))}, "Column 'target' holds text in the reference and numbers in the new sample"),
        ({"target": "price", "n_permutations": 19}, "The test can never reject"),
        ({"target": (np.zeros(49), np.ones(50))}, "must have a value for each row. Got 49 for the 50 rows of the reference"),
    ],
)
def test_bad_input_ends_in_a_sentence(options, sentence):
    with pytest.raises(CpmmdError) as error:
        change_test(flats(50), flats(50, seed=1), **{**FAST, **options})
    assert sentence in str(error.value)


def test_missing_values_are_refused_dropped_or_filled_in():
    reference, new = flats(120), flats(120, seed=1)
    reference.loc[3, "price"], new.loc[5, "area"] = np.nan, np.nan
    with pytest.raises(CpmmdError, match="Values must not be missing"):
        change_test(reference, new, target="price", **FAST)
    dropped = change_test(reference, new, target="price", missing="drop", **FAST)
    assert dropped.sizes == (119, 119)
    assert dropped.notes[0] == "1 of 120 rows of the reference dropped for missing values"
    assert change_test(reference, new, target="price", missing="impute", **FAST).sizes == (120, 120)


def test_errors_are_of_values_that_are_there():
    reference, new = (flats(60, seed=seed).assign(model=200.0) for seed in (0, 1))
    reference.loc[3, "price"] = np.nan
    with pytest.raises(CpmmdError, match="Target and predictions are not filled in where errors are divided; use missing='drop'"):
        change_test(reference, new, target="price", predictions="model", missing="impute", **FAST)


def test_a_target_by_itself_may_have_two_names():
    reference, new = flats(60), flats(60, dearer=60, seed=1)
    target = reference.pop("price").rename("price_train"), new.pop("price").rename("price_test")
    result = change_test(reference, new, target=target, **FAST)
    assert (result.target_names, result.relation.reject) == (("price_train",), True)


def test_arrays_have_no_names_to_choose_from():
    with pytest.raises(CpmmdError, match="names a column, 'price', but the reference is an array"):
        change_test(np.zeros((30, 2)), np.zeros((30, 2)), target="price")


# The answer.


def test_threads_and_order_of_columns_do_not_matter_and_the_call_repeats():
    reference, new = flats(150), flats(150, dearer=10, seed=1)
    one, two = (change_test(reference, new, target="price", n_jobs=jobs, **FAST).to_dict() for jobs in (1, 2))
    assert one == two
    turned = change_test(reference, new[["price", "town", "area"]], target="price", n_jobs=1, **FAST).to_dict()
    assert turned == one
    result = change_test(reference, new, target="price", alpha=0.1, **FAST)
    names = {"change_test": change_test, "reference": reference, "new": new}
    assert eval(result.call, names).to_dict() == result.to_dict()


def test_every_form_of_the_answer(tmp_path):
    frames = [flats(200, seed=seed).assign(model=210.0) for seed in (0, 1)]
    frames[1]["price"] += 15
    result = change_test(*frames, target="price", predictions="model", **FAST)
    assert repr(result).startswith("<ChangeResult: 'price' given the inputs changed")
    assert "at equal inputs" in str(result.explain())
    assert "The model's mean squared error went from" in str(result)
    page = result.report(tmp_path / "page.html")
    assert "Change of the model&#39;s mean squared error" in page
    assert "target given the inputs" in (tmp_path / "page.html").read_text()
    assert "tests" in result.report(tmp_path / "page.json")
    metrics = result.to_metrics()
    assert metrics["cpmmd_relation_pvalue"] == result.relation.adjusted
    assert metrics["cpmmd_error_change"] == pytest.approx(
        metrics["cpmmd_error_change_inputs"] + metrics["cpmmd_error_change_relation"]
    )
    assert "martineztaboada2023doubly" in cite(result)
    assert "cai2025diagnosing" in cite(result)
    with pytest.raises(TypeError, match="truth value of ChangeResult is ambiguous"):
        bool(result)
    assert all("<b>" in value._repr_html_() or "<table" in value._repr_html_() for value in (result, result.explain()))


def test_names_from_the_data_are_escaped_and_kept_on_one_line():
    hostile = "<img src=x onerror=alert(1)>\n" + "long " * 40
    frames = [flats(60, seed=seed).rename(columns={"price": hostile}) for seed in (0, 1)]
    result = change_test(*frames, target=hostile, **FAST)
    assert "<img" not in result._repr_html_() + result.report() + result.explain()._repr_html_()
    assert all(len(line) < 900 and "onerror" not in line.split("<img")[0] for line in str(result).splitlines())
    assert len(repr(result)) < 700
