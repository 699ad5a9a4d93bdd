"""Classes of columns: sums of explicit kernels of one column, exact over all labelings, whatever the design and the columns."""

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure
from scipy import stats

from cpmmd import AdditiveClass, Bandwidth, ColumnsClass, FullSampleTest, KernelClass, ProductsClass, plotting, two_sample_test
from cpmmd.data.pool import read_pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.layout import Layout
from cpmmd.engines import columns as engine
from cpmmd.engines.columns import column_sums
from cpmmd.evidence import SCORE_TIE
from cpmmd.procedures.classes import default_classes
from cpmmd.statistics import columns
from cpmmd.statistics.mmd import unbiased_mmd2
from cpmmd.storage.kernels import describe_method, restore_method

CLASSES = {
    "additive": (AdditiveClass(),),
    "spectral": (AdditiveClass(gammas=(1e-1, 1e-2)),),
    "columns": (ColumnsClass(),),
    "products": (ProductsClass(),),
    "summed": (KernelClass(Bandwidth(), "standard", narrowest=1 / 16, widest=1 / 4, ratio=2, summed=True),),
    "default": None,
}


def frame(rng: np.random.Generator, rows: int) -> pd.DataFrame:
    """Numbers, some missing, ties, two values, a constant, a category with missing values."""
    numbers = rng.normal(size=rows)
    numbers[::5] = np.nan
    return pd.DataFrame(
        {
            "gaps": numbers,
            "ties": rng.integers(0, 4, rows),
            "flag": rng.random(rows) < 0.4,
            "same": np.ones(rows),
            "plain": rng.gamma(1.0, size=rows),
            "level": pd.Series(rng.choice(["a", "b", "c"], rows)).where(rng.random(rows) < 0.9),
        }
    )


def explicit_kernel(pool, rows):
    """The additive kernel matrix, a column at a time, from its definition."""

    def centred(K):
        K = K - K.mean(axis=0) - K.mean(axis=1)[:, None] + K.mean()
        norm = np.linalg.norm(K)
        return K / norm if norm > 1e-9 * len(K) else 0 * K

    total = np.zeros((len(rows), len(rows)))
    for column in np.asarray(pool.numbers)[rows].T:
        there = ~np.isnan(column)
        known = column[there]
        if len(np.unique(known)) <= 2:
            features = (known == known.max()).astype(float)[:, None]
        else:
            r = (stats.rankdata(known) - 0.5) / len(known)
            j = np.arange(1, 7)
            features = np.cos(np.pi * r[:, None] * j) * np.exp(-((np.pi * 0.25 * j) ** 2) / 4)
        phi = np.tile(features.mean(axis=0), (len(rows), 1))
        phi[there] = features
        total += centred(phi @ phi.T) + centred(np.equal.outer(there, there).astype(float))
    for values in pool.categories.values():
        text = np.array(["" if v is None else v for v in values[rows]])
        total += centred(np.equal.outer(text, text).astype(float))
    return total


def test_the_additive_kernel_is_the_sum_of_explicit_kernels():
    rng = np.random.default_rng(3)
    pool = read_pool(frame(rng, 20), frame(rng, 27), missing="impute")
    layout = Layout.cut(pool.m, pool.n, None, rng).draw(40, rng)
    sums = column_sums(pool, Preparation.fit(pool), layout)
    K = explicit_kernel(pool, layout.rows)
    labels = layout.labels.array() > 0.5
    plain = [unbiased_mmd2(K[np.ix_(w, w)], K[np.ix_(~w, ~w)], K[np.ix_(w, ~w)]) for w in labels]
    np.testing.assert_allclose(sums.additive(())[0], plain, atol=1e-10 * np.abs(plain).max())
    values, vectors = np.linalg.eigh(K)
    for gamma, found in zip((0.1, 0.01), sums.additive((0.1, 0.01)), strict=True):
        weights = (1 + gamma) * values[-1] / (values + gamma * values[-1])
        R = (vectors * values * weights) @ vectors.T
        oracle = [unbiased_mmd2(R[np.ix_(w, w)], R[np.ix_(~w, ~w)], R[np.ix_(w, ~w)]) for w in labels]
        np.testing.assert_allclose(found, oracle, atol=1e-9 * np.abs(oracle).max())


def test_bins_are_compared_by_the_means_of_their_rows():
    rng = np.random.default_rng(8)
    pool = read_pool(frame(rng, 120), frame(rng, 160), missing="impute")
    layout = Layout.cut(pool.m, pool.n, None, rng, target=70).draw(20, rng)
    assert layout.size == 3
    means = np.repeat(np.eye(layout.count), layout.size, axis=1) / layout.size
    K = means @ explicit_kernel(pool, layout.rows) @ means.T
    labels = layout.labels.array() > 0.5
    oracle = [unbiased_mmd2(K[np.ix_(w, w)], K[np.ix_(~w, ~w)], K[np.ix_(w, ~w)]) for w in labels]
    found = column_sums(pool, Preparation.fit(pool), layout).additive(())[0]
    np.testing.assert_allclose(found, oracle, atol=1e-10 * np.abs(oracle).max())


def test_answers_do_not_depend_on_the_memory():
    rng = np.random.default_rng(8)
    x, y = frame(rng, 300), frame(rng, 350)
    method = FullSampleTest(pair_rows=0)
    some = {"method": method, "missing": "impute", "n_permutations": 49, "rng": 0}
    little, much = (two_sample_test(x, y, memory_limit=limit, **some) for limit in (2**25, 2**30))
    assert np.array_equal(little.null_distribution, much.null_distribution)


def test_six_cosines_are_the_heat_kernel():
    r, s = np.random.default_rng(0).random((2, 50))
    reflected = sum(stats.norm.pdf(r - s + 2 * k, scale=0.25) + stats.norm.pdf(r + s + 2 * k, scale=0.25) for k in range(-4, 5))
    series = 1 + 2 * (engine.cosines(r) * engine.cosines(s)).sum(axis=1)
    np.testing.assert_allclose(series, reflected, atol=2e-6)


def test_many_columns_take_the_smaller_matrix():
    rng = np.random.default_rng(1)
    sums, some = rng.normal(size=(8, 90)), rng.normal(size=(30, 90))
    centred = some - some.mean(axis=0)
    values, vectors = np.linalg.eigh(centred.T @ centred)
    kept = values > 1e-9
    found = engine._principal(sums, some)
    np.testing.assert_allclose(found.variances, values[kept], rtol=1e-8)
    np.testing.assert_allclose(np.abs(found.sums), np.abs(sums @ vectors[:, kept]), rtol=1e-6, atol=1e-8)


KEEP = {"group_sizes": "keep"}  # their rows would be drawn anew for every labeling
DESIGNS = {
    "free": {},
    "pairs": {"pairs": (np.arange(6), np.arange(6))},
    "strata": {"strata": (np.arange(6) % 2, np.arange(6) % 2)},
    "groups": {"groups": (np.array([0, 0, 1, 2, 3, 3]), np.array([10, 11, 11, 11, 12, 13]))},
}


@pytest.mark.parametrize("design", DESIGNS)
@pytest.mark.parametrize("name", CLASSES)
def test_the_statistic_of_a_relabeling_is_that_of_relabelled_data(name, design):
    rng = np.random.default_rng(7)
    whole = pd.concat([frame(rng, 6), frame(rng, 6)], ignore_index=True)
    whole["level"] = whole["level"].fillna("a")
    arguments = {key: (np.asarray(x), np.asarray(y)) for key, (x, y) in DESIGNS[design].items()}

    def run(of_x):
        cut = {k: (np.concatenate(v)[of_x], np.concatenate(v)[~of_x]) for k, v in arguments.items()}
        x, y = whole[of_x].reset_index(drop=True), whole[~of_x].reset_index(drop=True)
        method = FullSampleTest(classes=CLASSES[name])
        return two_sample_test(x, y, method=method, n_permutations=999, missing="impute", alpha=0.2, rng=0, **KEEP, **cut)

    first = run(np.arange(12) < 6)
    assert first.exhaustive
    units = first.evidence.units
    labels = units.labels.array() > 0.5
    every = np.concatenate([[first.statistic], first.null_distribution])
    for b in (1, len(labels) // 2, len(labels) - 1):
        of_x = np.zeros(12, dtype=bool)
        of_x[units.rows] = np.repeat(labels[b], units.counts)
        again = run(of_x)
        assert again.statistic == pytest.approx(every[b], abs=1e-6)
        assert again.pvalue == pytest.approx(np.mean(every >= every[b] - 1e-6))


@pytest.mark.parametrize(
    ("x", "y"),
    [
        (np.zeros((9, 1)), np.zeros((9, 1))),
        (np.arange(9.0)[:, None], np.arange(9.0)[:, None] + 4),
        (np.eye(8, 40), np.eye(9, 40)[::-1]),
        (np.column_stack([np.arange(9.0), np.full(9, np.nan)]), np.column_stack([np.arange(9.0), np.full(9, np.nan)])),
    ],
    ids=["constant", "one column", "more columns than rows", "nothing there"],
)
@pytest.mark.parametrize("name", CLASSES)
def test_columns_of_every_kind_have_an_answer(name, x, y):
    result = two_sample_test(x, y, method=FullSampleTest(classes=CLASSES[name]), missing="impute", n_permutations=49, rng=0)
    assert 0 < result.pvalue <= 1
    assert np.isfinite(result.statistic)


def test_constant_columns_are_no_difference():
    same = np.ones((20, 3))
    for name in CLASSES:
        assert two_sample_test(same, same, method=FullSampleTest(classes=CLASSES[name]), n_permutations=19, rng=0).pvalue == 1


def test_how_many_columns_are_looked_at_together_changes_rounding_only(monkeypatch):
    """How many that are follows from the sizes of the data; no option changes it, not the memory, either."""
    rng = np.random.default_rng(2)
    x, y = frame(rng, 30), frame(rng, 30)
    method = FullSampleTest(classes=(AdditiveClass(gammas=(0.1,)), ColumnsClass()))
    whole = two_sample_test(x, y, method=method, missing="impute", n_permutations=49, rng=0)
    monkeypatch.setattr(engine, "ROOM", 1)
    one_by_one = two_sample_test(x, y, method=method, missing="impute", n_permutations=49, rng=0)
    np.testing.assert_allclose(whole.null_distribution, one_by_one.null_distribution, rtol=0, atol=SCORE_TIE / 100)
    assert whole.pvalue == one_by_one.pvalue


def test_a_result_says_which_class_spoke_and_shows_a_kernel():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(150, 30)), rng.normal(size=(150, 30))
    y[:, 7] = np.where(rng.random(150) < 0.5, -1.0, 1.0) + 0.3 * rng.normal(size=150)
    result = two_sample_test(x, y, method=FullSampleTest(classes=(Bandwidth(), ColumnsClass())), n_permutations=199, rng=0)
    assert result.reject
    assert result.statistic_class.name == "largest difference of one column"
    assert result.statistic == pytest.approx(result.statistic_class.criterion)
    assert result.selected_class.name == "Bandwidth(base='gaussian') on raw coordinates"
    assert result.to_dict()["statistic_class"] == "largest difference of one column"
    assert "largest difference of one column" in str(result)
    assert result.explain().columns[0].name == "7"
    ticks = plotting.criterion_path(result, ax=Figure().subplots()).get_xticklabels()
    assert ticks[-1].get_text() == "columns"


def test_classes_of_columns_alone_explain_by_the_median_kernel():
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(60, 4)), rng.normal([0, 1, 0, 0], size=(60, 4))
    result = two_sample_test(x, y, method=FullSampleTest(classes=(ColumnsClass(),)), n_permutations=99, rng=0)
    assert result.kernel is None
    assert result.explain().columns[0].name == "1"


def test_standardised_classes_are_left_out_where_columns_have_one_unit():
    rng = np.random.default_rng(0)
    x, y = rng.normal(size=(2, 30, 3))
    assert len(two_sample_test(x, y, n_permutations=19, rng=0).classes) == 9
    units = np.array([1.0, 10.0, 100.0])
    every = two_sample_test(x * units, y * units, n_permutations=19, rng=0).classes
    assert len({one.name for one in every}) == len(every) == len(default_classes(3)) == 11


def test_classes_follow_the_number_of_columns():
    assert [len(default_classes(columns)) for columns in (1, 2, 3, 64, 65)] == [6, 6, 11, 11, 8]


def test_tables_with_categories_listen_to_columns():
    weights = {type(one).__name__: one.weight for one in default_classes(12, mixed=True)}
    assert weights["ColumnsClass"] == 8 * next(one.weight for one in default_classes(12) if isinstance(one, ColumnsClass))


def test_the_sum_of_bandwidths_is_the_sum_of_their_squared_mmds():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(25, 2)), rng.normal(0.5, 1, size=(25, 2))
    single = FullSampleTest(classes=(KernelClass(Bandwidth(), narrowest=1 / 4, widest=1, ratio=2),))
    kept = {}

    class Kept(FullSampleTest):
        def kernel_members(self, classes, views):
            for searched, found in super().kernel_members(classes, views):
                kept[searched.summed] = found
                yield searched, found

    two_sample_test(x, y, method=Kept(classes=single.classes), n_permutations=49, rng=0)
    members = kept[False].mmd2
    expected = (members / members.std(axis=1, keepdims=True)).sum(axis=0)
    np.testing.assert_allclose(kept[False].summed().mmd2[0], expected, rtol=1e-12)


def test_the_default_keeps_its_level_on_mixed_tables():
    """300 repetitions at p <= .05: at most 28 rejections, which a level of .05 exceeds with probability 6e-4."""
    rejections = 0
    for seed in range(300):
        rng = np.random.default_rng([11, seed])
        x, y = frame(rng, 14), frame(rng, 18)
        rejections += two_sample_test(x, y, missing="impute", n_permutations=19, rng=seed).pvalue <= 0.05
    assert rejections <= 28


@pytest.mark.statistical
@pytest.mark.parametrize("rows", [(40, 40), (60, 25)])
def test_the_default_keeps_its_level_over_2000_mixed_tables(rows):
    """2000 repetitions: at most 138 rejections, which a level of .05 exceeds with probability 9e-5."""
    m, n = rows
    rejections = 0
    for seed in range(2000):
        rng = np.random.default_rng([12, seed])
        x, y = frame(rng, m), frame(rng, n)
        rejections += two_sample_test(x, y, missing="impute", n_permutations=99, rng=seed).pvalue <= 0.05
    assert rejections <= 138


def test_a_method_of_such_classes_is_kept_in_a_file_and_reported():
    rng = np.random.default_rng(9)
    x, y = frame(rng, 25), frame(rng, 25)
    method = FullSampleTest(classes=(*CLASSES["spectral"], *CLASSES["columns"], *CLASSES["summed"]))
    described = describe_method(method)
    assert restore_method(described) == method
    result = two_sample_test(x, y, method=method, missing="impute", n_permutations=19, rng=0)
    assert result.report(rows=False).startswith("<!doctype html>")


def test_whole_numbers_in_single_precision_give_the_same_digits(monkeypatch):
    """Sums of whole numbers are exact, so nothing of a score depends on the precision they are taken in."""
    rng = np.random.default_rng(3)
    x, y = frame(rng, 90), frame(rng, 90)
    found = []
    for limit in (columns.SINGLE, 0):
        monkeypatch.setattr(columns, "SINGLE", limit)
        found.append(two_sample_test(x, y, method=FullSampleTest(classes=(ColumnsClass(),)), missing="impute", rng=0))
    assert found[0].statistic == found[1].statistic
    np.testing.assert_array_equal(found[0].null_distribution, found[1].null_distribution)
