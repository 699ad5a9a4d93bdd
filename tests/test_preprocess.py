"""Transformers are fitted without labels, or on rows that are not tested: the level holds."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from sklearn.compose import ColumnTransformer
from sklearn.decomposition import PCA, TruncatedSVD
from sklearn.feature_extraction.text import TfidfVectorizer
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer, StandardScaler

from cpmmd import (
    ColumnsClass,
    CpmmdError,
    DriftDetector,
    DriftMonitor,
    FullSampleTest,
    MedianTest,
    power_from_pilot,
    run_many,
    two_sample_test,
)
from cpmmd.data.pool import read_pool
from cpmmd.data.preparation import Preparation
from helpers import most_rejections

WORDS = np.array([f"word{i}" for i in range(200)])
QUICK = {"method": "median", "n_permutations": 19, "rng": 0}


def numbers(rng, rows=100):
    return rng.normal(size=(rows, 60))


def texts(rng, rows=100):
    return pd.DataFrame({"text": [" ".join(rng.choice(WORDS, 12)) for _ in range(rows)]})


def topics():
    return make_pipeline(TfidfVectorizer(), TruncatedSVD(5))


PANELS = {"PCA": (numbers, lambda: PCA(10)), "TF-IDF": (texts, topics)}


def null_pvalue(panel, way, seed):
    """Return the p-value of samples of one law, preprocessed on the pool or on rows that are held out."""
    rng, (draw, transformer) = np.random.default_rng(seed), PANELS[panel]
    if way == "pooled":
        return two_sample_test(draw(rng), draw(rng), preprocess=transformer(), **QUICK).pvalue
    if way == "held out":
        method = MedianTest(split=True)
        return two_sample_test(draw(rng), draw(rng), preprocess=transformer(), **QUICK | {"method": method}).pvalue
    detector = DriftDetector(preprocess=transformer(), **QUICK | {"rng": seed}).fit(draw(rng))
    return detector.test(draw(rng)).pvalue


@pytest.mark.parametrize("way", ["pooled", "held out"])
def test_level(way):
    rejections = sum(null_pvalue("PCA", way, seed) <= 0.05 for seed in range(300))
    assert rejections <= most_rejections(300, 0.05)


@pytest.mark.statistical
@pytest.mark.parametrize("way", ["pooled", "held out", "detector"])
@pytest.mark.parametrize("panel", PANELS)
def test_long_level(panel, way):
    # 2000 nulls at .05: three standard errors are 29 rejections.
    assert abs(sum(null_pvalue(panel, way, seed) <= 0.05 for seed in range(2000)) - 100) <= 29


def test_a_transformer_fitted_on_one_sample_loses_the_level():
    rng, rejections = np.random.default_rng(0), 0
    for _ in range(5):
        x, y = numbers(rng, 200), numbers(rng, 200)
        fitted = PCA(10).fit(x)
        rejections += two_sample_test(fitted.transform(x), fitted.transform(y), **QUICK | {"n_permutations": 99}).reject
    assert rejections == 5


@pytest.mark.parametrize("rows", [20, 100])
@pytest.mark.parametrize("transformer", [PCA(3), TruncatedSVD(3), StandardScaler()], ids=lambda t: type(t).__name__)
def test_what_is_fitted_does_not_depend_on_the_order_of_rows(transformer, rows):
    rng = np.random.default_rng(1)
    pooled = numbers(rng, rows)
    order = rng.permutation(rows)
    one_way, other_way = (
        Preparation.fit(read_pool(part[: rows // 2], part[rows // 2 :], preprocess=transformer))
        for part in (pooled, pooled[order])
    )
    matrices = [fitted.transform(read_pool(pooled[:10], pooled[10:])) for fitted in (one_way, other_way)]
    np.testing.assert_array_equal(*matrices)


def test_a_split_test_fits_on_its_training_half_only():
    seen = []

    class Recorder(PCA):
        def fit(self, X, y=None):
            seen.append(len(X))
            return super().fit(X, y)

    rng = np.random.default_rng(2)
    two_sample_test(numbers(rng), numbers(rng), preprocess=Recorder(5), **QUICK | {"method": MedianTest(split=True)})
    assert seen == [100]


@pytest.mark.parametrize("method", ["cp-full", "median", "cp-linear", "energy", "mmdagg", "mmdfuse"])
def test_every_kind_of_method_takes_one(method):
    rng = np.random.default_rng(3)
    x, y = numbers(rng), numbers(rng) + 0.5
    result = two_sample_test(x, y, method=method, preprocess=make_pipeline(StandardScaler(), PCA(10)), n_permutations=99, rng=0)
    assert result.reject
    assert "preprocess=Pipeline" in result.call
    assert len(result.explain().columns) == 60  # the columns as they came


def test_frames_texts_and_columns_by_name():
    rng = np.random.default_rng(4)
    frames = [texts(rng, 80).assign(value=rng.normal(size=80)) for _ in range(2)]
    frames[1].loc[:40, "text"] = "word3 word4"
    by_name = ColumnTransformer([("words", topics(), "text"), ("value", StandardScaler(), ["value"])])
    assert two_sample_test(*frames, preprocess=by_name, **QUICK | {"n_permutations": 99}).reject
    assert two_sample_test(*map(pl.from_pandas, frames), preprocess=by_name, **QUICK | {"n_permutations": 99}).reject
    only = [frame[["text"]] for frame in frames]
    assert two_sample_test(*only, preprocess=topics(), **QUICK | {"n_permutations": 99}).reject


def test_detectors_with_an_example_and_monitors_take_one(tmp_path):
    rng = np.random.default_rng(5)
    detector = DriftDetector("cp-linear", preprocess=PCA(10), n_permutations=99, rng=0)
    detector.fit(numbers(rng, 200), example=numbers(rng, 100) + 1)
    assert detector.test(numbers(rng) + 1).reject
    assert detector.preparation_.transformer.n_components_ == 10
    with pytest.raises(CpmmdError, match=r"whose kernel was chosen with preprocess=\.\.\. cannot be saved"):
        detector.save(tmp_path / "detector.cpmmd")
    monitor = DriftMonitor("median", preprocess=PCA(10), n_permutations=999, rng=0).fit(numbers(rng, 200))
    assert not monitor.update(numbers(rng)).alarm
    assert [monitor.update(numbers(rng) + 1) for _ in range(3)][-1].alarm


@pytest.mark.parametrize("kind", [DriftDetector, DriftMonitor])
def test_a_file_goes_on_with_the_transformer_that_it_was_saved_with(kind, tmp_path):
    rng, path = np.random.default_rng(8), tmp_path / "file.cpmmd"
    steps = make_pipeline(FunctionTransformer(np.tanh), PCA(10))
    fitted = kind("median", preprocess=steps, n_permutations=99, rng=0).fit(numbers(rng))
    fitted.save(path)
    batch = numbers(rng)
    loaded = kind.load(path, preprocess=make_pipeline(FunctionTransformer(np.tanh), PCA(10)))
    pvalues = [one.test(batch).pvalue if kind is DriftDetector else one.update(batch).pvalue for one in (fitted, loaded)]
    assert pvalues[0] == pvalues[1]
    with pytest.raises(CpmmdError, match=r"Load it in Python with preprocess=Pipeline\(.*Got nothing\."):
        kind.load(path)
    with pytest.raises(CpmmdError, match=r"Got PCA\(n_components=3\)"):
        kind.load(path, preprocess=PCA(3))
    plain = kind("median", n_permutations=99, rng=0).fit(numbers(rng))
    plain.save(path)
    with pytest.raises(CpmmdError, match=r"saved without preprocess=\. Got PCA"):
        kind.load(path, preprocess=PCA(3))


def test_many_tests_and_power_plans_take_one():
    rng = np.random.default_rng(9)
    pairs = {name: (numbers(rng), numbers(rng) + shift) for name, shift in (("same", 0.0), ("moved", 0.5))}
    found = run_many(pairs, preprocess=PCA(10), method="median", n_permutations=99, rng=0)
    assert found.rejected == ("moved",)
    alone = two_sample_test(
        *pairs["same"], preprocess=PCA(10), **QUICK | {"n_permutations": 99, "rng": found.results["same"].seed}
    )
    assert found.results["same"].pvalue == alone.pvalue
    table = power_from_pilot(*pairs["moved"], [20, 50], preprocess=PCA(10), repetitions=8, **QUICK | {"n_permutations": 39})
    assert table.rows[1].power > 0.5
    with pytest.raises(CpmmdError, match="must be None or a scikit-learn transformer"):
        run_many(pairs, preprocess=PCA)


@pytest.mark.parametrize(
    ("step", "trait"),
    [(PCA(10), "have mean 0"), (StandardScaler(), "have mean 0"), (TruncatedSVD(5, algorithm="arpack"), "are orthogonal")],
    ids=["PCA", "scaler", "SVD"],
)
def test_a_step_that_was_fitted_on_one_sample_is_noticed(step, trait):
    rng = np.random.default_rng(10)
    x, y = numbers(rng), numbers(rng)
    step.fit(x)
    (note,) = two_sample_test(step.transform(x), step.transform(y), **QUICK).notes
    assert f"the columns of sample x {trait} to the last digit" in note
    assert "Pass the step as preprocess=... instead" in note
    pipeline = make_pipeline(step, DriftDetector("median", n_permutations=19, rng=0)).fit(x)
    assert f"the columns of the reference {trait}" in pipeline[-1].notes_[0]
    assert f"the columns of the reference {trait}" in pipeline[-1].test(step.transform(y)).result.notes[0]
    monitor = DriftMonitor("median", n_permutations=99, rng=0).fit(step.transform(x))
    assert any(trait in note for note in monitor.notes_)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("size", [1e-300, 1e155, 1e165, 1e300])
def test_looking_for_such_a_step_does_not_overflow(size):
    rng = np.random.default_rng(12)
    x = numbers(rng)[:, :3]
    x -= x.mean(axis=0)
    noted = any("have mean 0" in note for note in two_sample_test(x * size, numbers(rng)[:, :3] * size, **QUICK).notes)
    assert noted == (size < 1)  # numbers as large as the others are whole ones


def test_rows_that_no_step_was_fitted_on_are_not_noticed():
    rng = np.random.default_rng(11)
    x, y = numbers(rng), numbers(rng)
    both = PCA(10).fit(np.vstack([x, y]))
    signs = rng.choice([-1.0, 1.0], (40, 1)) * np.ones((40, 3))
    signs -= 0.5 * (signs.sum() == 1)
    for samples in ((x, y), (both.transform(x), both.transform(y)), (np.vstack([signs, -signs]), signs)):
        assert not any("to the last digit" in note for note in two_sample_test(*samples, **QUICK).notes)


@pytest.mark.parametrize(
    ("wrong", "sentence"),
    [
        (PCA, "must be None or a scikit-learn transformer"),
        ("pca", "must be None or a scikit-learn transformer"),
        (PCA(100), "could not fit 200 rows"),
        (FunctionTransformer(np.log), "finite numbers"),
        (FunctionTransformer(lambda rows: rows[:3]), "must turn each row into a row of finite numbers"),
    ],
    ids=["class", "text", "too many", "not finite", "other rows"],
)
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_cannot_be_is_refused(wrong, sentence):
    rng = np.random.default_rng(6)
    with pytest.raises(CpmmdError, match=sentence):
        two_sample_test(numbers(rng), numbers(rng), preprocess=wrong, **QUICK)


def test_classes_of_columns_do_not_look_past_a_transformer():
    rng = np.random.default_rng(7)
    frames = [pl.DataFrame(rng.normal(size=(40, 5)), schema=list("abcde")) for _ in range(2)]
    result = two_sample_test(*frames, preprocess=PCA(2), n_permutations=19, rng=0)
    assert not any("column" in path.name for path in result.classes)
    assert [column.name for column in result.explain().columns if column.name in "abcde"]
    with pytest.raises(CpmmdError, match=r"Classes of columns compare the original columns\. Got preprocess="):
        two_sample_test(*frames, method=FullSampleTest(classes=(ColumnsClass(),)), preprocess=PCA(2), rng=0)
