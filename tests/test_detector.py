"""A detector tests batches against its reference: at level, in any order, and with whatever columns a feed brings."""

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.utils.validation import check_is_fitted

from cpmmd import Ascent, Bandwidth, Deep, DriftDetector, Plain, SplitTest, save_kernel, two_sample_test
from cpmmd.engines import fixed_reference as engine
from cpmmd.errors import CpmmdError, InputError
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.storage.kernels import load_kernel
from helpers import assert_level, brute_force_mmd2, mixed_frame, most_rejections

DATA = np.random.default_rng(0)
REFERENCE, EXAMPLE = DATA.normal(size=(120, 3)), DATA.normal(1, 1, size=(60, 3))
SAME, OTHER = DATA.normal(size=(50, 3)), DATA.normal(1, 1, size=(50, 3))
TRAINED = SplitTest(Deep(width=16, depth=1, out=4), Plain(), ascent=Ascent(steps=6, learning_rate=0.1))


# scikit-learn's conventions


def test_parameters_are_stored_untouched_listed_and_cloned():
    method = SplitTest(Bandwidth(), Plain())
    detector = DriftDetector(method, alpha=0.01, rng=3)
    assert detector.get_params()["method"] is method
    assert detector.get_params() == clone(detector.fit(REFERENCE)).get_params()
    assert detector.set_params(alpha=0.1).alpha == 0.1
    with pytest.raises(NotFittedError):
        check_is_fitted(clone(detector))
    check_is_fitted(detector)


@pytest.mark.parametrize(
    "wrong",
    [
        {"alpha": 2},
        {"method": "no-such"},
        {"missing": "ignore"},
        {"train_fraction": 1.0},
        {"rng": -1},
        {"n_permutations": 3},
        {"n_jobs": 0},
    ],
)
def test_constructors_accept_and_fit_refuses(wrong):
    detector = DriftDetector(**wrong)
    with pytest.raises(CpmmdError):
        detector.fit(REFERENCE)


def test_an_unfitted_detector_says_what_to_do():
    for use in (lambda d: d.test(SAME), lambda d: d.save("nowhere")):
        with pytest.raises(InputError, match=r"Call fit\(reference\) first"):
            use(DriftDetector())


def test_fitted_attributes_describe_the_reference():
    frame = mixed_frame(DATA, 30)
    detector = DriftDetector(rng=0).fit(frame)
    assert detector.n_features_in_ == 5
    assert detector.feature_names_in_.tolist() == frame.columns
    assert not hasattr(detector.fit(REFERENCE), "feature_names_in_")


# What is tested


@pytest.mark.parametrize("method", ["cp-full", "cp-linear", "median", "mmdagg"])
def test_without_an_example_a_batch_gets_the_named_two_sample_test(method):
    answer = DriftDetector(method, n_permutations=99, rng=0).fit(REFERENCE).test(OTHER).result
    expected = two_sample_test(REFERENCE, OTHER, method=method, n_permutations=99, rng=answer.seed)
    assert answer.to_dict() == expected.to_dict()


@pytest.mark.parametrize("method", ["cp-full", "cp-linear", "cp-polynomial", "median", "mmdagg", "mmdfuse", TRAINED])
def test_with_an_example_the_frozen_kernel_compares_the_rows_that_did_not_train_it(method):
    detector = DriftDetector(method, n_permutations=199, rng=0).fit(REFERENCE, example=EXAMPLE)
    assert sorted([*detector.train_rows_, *detector.test_rows_]) == list(range(len(REFERENCE)))
    results = [detector.test(batch).result for batch in (SAME, OTHER)]
    assert all(result.kernel is detector.kernel_ for result in results)
    rows = results[1].evidence.tested
    held_out, batch = rows[rows < len(REFERENCE)], rows[rows >= len(REFERENCE)] - len(REFERENCE)
    assert held_out.tolist() == detector.test_rows_.tolist()
    matrix = (np.vstack([REFERENCE, OTHER]) - detector.preparation_.origin) / detector.preparation_.scale
    x, y = matrix[held_out][:15], matrix[len(REFERENCE) :][batch][:10]
    small = DriftDetector(n_permutations=19, rng=0).fit(x, kernel=detector.kernel_).test(y)
    exact = brute_force_mmd2(lambda a, b: detector.kernel_.gram(a[None], b[None])[0, 0], x, y)
    assert small.statistic == pytest.approx(exact, rel=1e-6, abs=1e-12)
    assert results[1].reject


def test_calibration_is_kept_and_reused():
    detector = DriftDetector("cp-linear", rng=0).fit(REFERENCE, example=EXAMPLE)
    assert detector.calibration_.c1 >= 0
    assert detector.test(SAME).result.calibration is detector.calibration_


def test_the_reference_is_a_copy():
    mine = REFERENCE.copy()
    detector = DriftDetector("median", n_permutations=99, rng=0).fit(mine)
    before = summary(detector.test(SAME))
    mine += 5
    assert summary(detector.test(SAME)) == before


def test_batches_can_be_explained():
    """Only the first column moved; rows are called by their numbers in reference and batch, training rows are not shown."""
    shift = np.array([2.0, 0, 0])
    for fitted in ({}, {"example": REFERENCE[:60] + shift}):
        detector = DriftDetector("cp-linear", rng=0).fit(REFERENCE, **fitted)
        explanation = detector.test(SAME + shift).result.explain(rng=0)
        assert explanation.columns[0].name == "0"
        assert explanation.held_out
        if fitted:
            assert set(explanation.rows_x) <= set(detector.test_rows_.tolist())
            assert set(explanation.rows_y) <= set(range(50))


@pytest.mark.parametrize("most", [2000, 40], ids=["row by row", "in bins"])
def test_an_explanation_has_the_relabelings_of_the_frozen_kernels_verdict(monkeypatch, most):
    """The verdict is found again from the units: the squared MMD of each labeling, by its definition."""
    monkeypatch.setattr(engine, "MOST", most)
    detector = DriftDetector("cp-linear", n_permutations=39, rng=0).fit(REFERENCE, example=EXAMPLE)
    result = detector.test(OTHER[:49]).result
    assert not any("relabelings of their own" in note for note in result.explain().notes)
    units = result.evidence.units
    assert np.sort(units.rows).tolist() == result.evidence.tested.tolist()
    matrix = (np.vstack([REFERENCE, OTHER]) - detector.preparation_.origin) / detector.preparation_.scale
    K = detector.kernel_.gram(matrix[units.rows])
    np.fill_diagonal(K, 0.0)
    of_x = np.repeat(np.concatenate(list(units.labels.blocks())), units.counts, axis=1) > 0.5
    assert (of_x[0] == (units.rows < len(REFERENCE))).all()
    m, n = result.tested_sizes

    def squared_mmd(x):
        within = K[np.ix_(x, x)].sum() / (m * (m - 1)) + K[np.ix_(~x, ~x)].sum() / (n * (n - 1))
        return within - 2 * K[np.ix_(x, ~x)].mean()

    found = [squared_mmd(x) for x in of_x]
    assert found == pytest.approx([result.statistic, *result.null_distribution], rel=1e-6, abs=1e-9)


def test_large_pools_are_tested_in_bins_that_cover_them(monkeypatch):
    monkeypatch.setattr(engine, "MOST", 40)
    kernel = ScaledKernel(Bandwidth(), 2.0)
    detector = DriftDetector(n_permutations=99, rng=0).fit(REFERENCE, kernel=kernel)
    answer = detector.test(OTHER)
    tested, (m, n) = answer.result.evidence.tested, answer.result.tested_sizes
    assert (answer.result.engine.bin_rows, m, n) == (5, 120, 50)
    assert len(set(tested.tolist())) == m + n
    exact = brute_force_mmd2(lambda a, b: np.exp(-np.sum((a - b) ** 2) / 8), REFERENCE, OTHER)  # 2 sigma^2 = 8
    assert answer.statistic == pytest.approx(exact, rel=1e-9)
    assert answer.reject
    odd = detector.test(OTHER[:49])
    assert odd.result.tested_sizes == (120, 45)
    assert "0 rows of the first sample and 4 of the second" in odd.notes[0]


class Counting(ScaledKernel):
    """A kernel that remembers for how many pairs it was asked."""

    pairs = 0

    def gram(self, rows, others=None):
        Counting.pairs += len(rows) * len(rows if others is None else others)
        return super().gram(rows, others)


def test_the_references_own_kernel_values_are_computed_once():
    detector = DriftDetector(rng=0).fit(REFERENCE, kernel=Counting(Bandwidth(), 2.0))
    detector.test(SAME)
    Counting.pairs = 0
    detector.test(OTHER)
    assert Counting.pairs == 50 * 120 + 50 * 50


def test_a_given_kernel_is_used_as_it_is(tmp_path):
    trained = two_sample_test(DATA.normal(size=(80, 3)), EXAMPLE, method="cp-linear", scale="standard", rng=0)
    save_kernel(trained.kernel, tmp_path / "kernel")
    from_file = DriftDetector(rng=0).fit(REFERENCE, kernel=load_kernel(tmp_path / "kernel"))
    from_result = DriftDetector(rng=0).fit(REFERENCE, kernel=trained)
    assert from_file.kernel_ == from_result.kernel_ == trained.kernel
    assert from_result.preparation_ is trained.preparation
    assert len(from_file.test_rows_) == len(REFERENCE)
    assert from_result.test(OTHER).reject


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ({"kernel": "gaussian"}, "must be a selected kernel"),
        ({"kernel": ScaledKernel(Bandwidth(), 1.0), "example": EXAMPLE}, "Leave out"),
        ({"example": EXAMPLE[:, :2]}, "3 columns"),
        ({"example": EXAMPLE[:1]}, "at least 2 rows"),
    ],
)
def test_kernels_and_examples_that_cannot_be_are_refused(arguments, sentence):
    with pytest.raises(InputError, match=sentence):
        DriftDetector(rng=0).fit(REFERENCE, **arguments)


def test_a_kernel_for_other_columns_is_refused_at_fit():
    kernel = DriftDetector(TRAINED, rng=0).fit(REFERENCE, example=EXAMPLE).kernel_
    with pytest.raises(InputError, match="rows of 2 columns"):
        DriftDetector(rng=0).fit(REFERENCE[:, :2], kernel=kernel)


def test_the_example_itself_is_no_fair_batch():
    detector = DriftDetector("median", rng=0).fit(REFERENCE, example=EXAMPLE)
    assert "the kernel was trained on this batch" in detector.test(EXAMPLE).notes[0]
    assert detector.test(SAME).notes == ()


# Level: over fresh references, since batches against one reference share its luck


def null_repetition(i, columns=8):
    rng = np.random.default_rng([7, i])
    return rng.normal(size=(60, columns)), rng.normal(0.3, 1, size=(30, columns)), rng.normal(size=(30, columns))


def test_level_with_a_trained_kernel():
    pvalues = []
    for i in range(400):
        reference, example, batch = null_repetition(i)
        detector = DriftDetector(TRAINED, n_permutations=99, rng=i).fit(reference, example=example)
        pvalues.append(detector.test(batch).pvalue)
    assert_level(np.array(pvalues))


def test_the_level_would_be_lost_if_training_rows_were_tested():
    """The same with the rows that trained the kernel: far beyond the bound that the test above keeps."""
    pvalues = []
    for i in range(60):
        reference, example, batch = null_repetition(i)
        trained = DriftDetector(TRAINED, n_permutations=99, rng=i).fit(reference, example=example)
        leaky = DriftDetector(n_permutations=99, rng=i).fit(reference[trained.train_rows_], kernel=trained.kernel_)
        pvalues.append(leaky.test(batch).pvalue)
    assert np.count_nonzero(np.array(pvalues) <= 0.05) > 3 * most_rejections(60, 0.05)


@pytest.mark.parametrize("way", ["example", "kernel"])
def test_level_with_rare_categories_dates_and_missing_values(way):
    """Categories of which most batches hold some that the reference lacks: neither side may be treated better."""
    names = np.array([f"shop {k}" for k in range(60)])
    pvalues = []
    for i in range(400):
        rng = np.random.default_rng([11, i])

        def rows(count, rng=rng):
            drawn = mixed_frame(rng, count, colours=names).select("size", "colour", "day")
            return drawn.with_columns(pl.when(pl.Series(rng.random(count) < 0.2)).then(None).otherwise("size").alias("size"))

        detector = DriftDetector("median", n_permutations=99, rng=i, missing="impute")
        fitted = {"example": rows(20)} if way == "example" else {"kernel": ScaledKernel(Bandwidth("laplacian"), 3.0)}
        pvalues.append(detector.fit(rows(60), **fitted).test(rows(30)).pvalue)
    assert_level(np.array(pvalues))


# Determinism


def summary(answer):
    return answer.pvalue, answer.statistic, answer.result.seed, answer.rows


@pytest.mark.parametrize("fitted", [{}, {"example": EXAMPLE}])
def test_answers_depend_on_seed_and_content_alone(fitted):
    first, second = (DriftDetector("cp-linear", n_permutations=99, rng=5).fit(REFERENCE, **fitted) for _ in range(2))
    forward = [summary(first.test(batch, name="x")) for batch in (SAME, OTHER, SAME)]
    backward = [summary(second.test(batch)) for batch in (OTHER, SAME)]
    assert forward == [backward[1], backward[0], backward[1]]
    assert summary(DriftDetector("cp-linear", n_permutations=99, rng=6).fit(REFERENCE, **fitted).test(SAME)) != forward[0]


def test_a_detector_without_a_seed_keeps_the_one_it_drew():
    detector = DriftDetector("median", rng=np.random.default_rng(1)).fit(REFERENCE)
    assert summary(detector.test(SAME)) == summary(detector.test(SAME))
    again = DriftDetector("median", rng=detector.seed_).fit(REFERENCE)
    assert summary(again.test(SAME)) == summary(detector.test(SAME))


# The answer


def test_a_batch_result_is_one_line_and_one_record():
    detector = DriftDetector("median", n_permutations=99, rng=0).fit(REFERENCE)
    answer = detector.test(OTHER, name="mon\nday")
    assert str(answer) == "mon day: differs (p = 0.01 <= 0.05), 50 rows"
    assert answer.to_dict() == {
        "key": detector.key(OTHER),
        "batch": "mon\nday",
        "path": None,
        "time": answer.time.isoformat(timespec="seconds"),
        "rows": 50,
        "pvalue": 0.01,
        "adjusted": None,
        "statistic": answer.statistic,
        "auc": None,
        "reject": True,
        "method": "median",
        "seed": answer.result.seed,
    }
    assert detector.test(OTHER).name == detector.test(OTHER).name != detector.test(SAME).name


def test_a_frozen_kernel_says_that_splits_and_spectral_parameters_have_no_say():
    x, y = np.random.default_rng(2).normal(size=(2, 60, 2))
    detector = DriftDetector(SplitTest(gammas=(0.1,), n_splits=3), rng=0).fit(x, example=y + 1)
    assert any("so these options are ignored: n_splits and gammas" in note for note in detector.notes_)
