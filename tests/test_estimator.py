"""A detector is a scikit-learn estimator: it passes their checks, but for those listed here with the reason."""

import warnings

import numpy as np
import polars as pl
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA
from sklearn.model_selection import cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from cpmmd import DriftDetector
from cpmmd.errors import InputError

RNG = np.random.default_rng(0)
REFERENCE, BATCH = RNG.normal(size=(120, 3)), RNG.normal(size=(50, 3))

DIFFERENT = {
    "check_fit1d": "one-dimensional data are one column, here as everywhere in the package",
    "check_fit2d_1sample": "refused, in our words: 'sample' is what was passed in, and it has 1 row",
    "check_estimators_empty_data_messages": "refused, in our words: 'feature' is what a kernel sees, data have columns",
    "check_dtype_object": "a value that is no number is refused by an InputError, which is a ValueError and no TypeError",
}


def failed(detector):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(detector, on_fail=None, on_skip=None)
    assert len(found) >= 39
    return {check["check_name"]: str(check["exception"]) for check in found if check["status"] == "failed"}


@pytest.mark.parametrize("missing", ["error", "impute"])
def test_the_checks_of_scikit_learn_pass_but_for_the_ones_listed(missing):
    detector = DriftDetector("median", n_permutations=19, missing=missing, rng=0)
    assert failed(detector).keys() == DIFFERENT.keys()


def test_the_default_passes_as_well():
    assert failed(DriftDetector(n_permutations=19)).keys() == DIFFERENT.keys()


def test_a_detector_ends_a_pipeline():
    steps = StandardScaler(), PCA(2), DriftDetector("median", n_permutations=99, rng=0)
    pipeline = make_pipeline(*steps).fit(REFERENCE, np.zeros(120))
    prepared = make_pipeline(*map(clone, steps[:-1])).fit(REFERENCE)
    alone = clone(steps[-1]).fit(prepared.transform(REFERENCE))
    assert pipeline.score(BATCH) == alone.test(prepared.transform(BATCH)).pvalue
    assert pipeline.score(BATCH + 3) == 0.01
    assert pipeline.set_params(driftdetector__alpha=0.1).get_params()["driftdetector__alpha"] == 0.1


@pytest.mark.parametrize("design", [{"strata": "site"}, {"groups": "machine"}, {"strata": "site", "groups": "machine"}], ids=str)
def test_score_takes_the_columns_that_a_design_names(design):
    def frame(rows, first):
        number = np.arange(len(rows))
        named = {"site": number % 2, "machine": first + number % 12}
        return pl.DataFrame({**dict(zip("abc", rows.T, strict=True)), **{name: named[name] for name in design.values()}})

    detector = DriftDetector("median", n_permutations=99, rng=0, **design).fit(frame(REFERENCE, 0))
    batch = frame(BATCH, 100)
    assert detector.score(batch) == detector.test(batch).pvalue
    with pytest.raises(InputError, match=r"X has \d features, but DriftDetector is expecting"):
        detector.score(batch.with_columns(more=1.0))


def test_an_example_goes_through_a_pipeline():
    pipeline = make_pipeline(StandardScaler(), DriftDetector("cp-linear", n_permutations=99, rng=0))
    pipeline.fit(REFERENCE, driftdetector__example=BATCH + 1)
    assert pipeline[-1].kernel_ is not None


def test_folds_of_one_sample_do_not_differ_more_often_than_they_may():
    pvalues = cross_val_score(DriftDetector("median", n_permutations=99, rng=0), REFERENCE, cv=4)
    assert pvalues.min() > 0.01


def test_an_example_by_position_is_refused_rather_than_ignored():
    for example in (BATCH, BATCH[:, 0], pl.DataFrame(BATCH)):
        with pytest.raises(InputError, match="example="):
            DriftDetector("median").fit(REFERENCE, example)


def test_sparse_data_are_read_and_complex_data_get_a_sentence():
    sparse = pytest.importorskip("scipy.sparse").csr_array(REFERENCE)
    read = DriftDetector("median", rng=0).fit(sparse).test(REFERENCE[:20])
    assert read.pvalue == DriftDetector("median", rng=0).fit(REFERENCE).test(REFERENCE[:20]).pvalue
    with pytest.raises(InputError, match="Complex data not supported"):
        DriftDetector("median").fit(REFERENCE + 1j)
