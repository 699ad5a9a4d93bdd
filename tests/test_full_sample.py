"""The full-sample test: exact level, binned sums, scores, what it finds and reports."""

import json

import numpy as np
import pytest
from scipy import stats

from cpmmd import Bandwidth, CpmmdError, FullSampleTest, KernelClass, LaplacianL1, Polynomial, Radius, SplitTest, two_sample_test
from cpmmd.draws.layout import Layout
from cpmmd.engines.members import Grid, View, bandwidth_multiples, pairwise_members
from cpmmd.engines.memory import DEFAULT_LIMIT
from cpmmd.evidence import tail_scores
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.procedures.split import COMBINE
from cpmmd.statistics import mmd
from helpers import NULLS, assert_level, most_rejections, null_pvalues, two_scale_mixture

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(70, 3)), RNG.normal(0.4, 1.2, size=(90, 3))


@pytest.mark.parametrize(("m", "n"), [(100, 100), (45, 700), (1000, 1003), (4, 5)])
def test_bins_hold_every_row_once_but_the_left_over(m, n):
    layout = Layout.cut(m, n, None, np.random.default_rng(0))
    assert len(np.unique(layout.rows)) == len(layout.rows) == layout.count * layout.size
    np.testing.assert_array_equal(layout.rows < m, np.repeat(layout.of_x, layout.size))
    assert (layout.m + layout.dropped[0], layout.n + layout.dropped[1]) == (m, n)
    assert max(layout.dropped) < layout.size


@pytest.mark.parametrize(("m", "n"), [(5, 30_000), (30_000, 2), (60, 100_000)])
def test_very_unequal_samples_have_few_enough_bins(m, n):
    layout = Layout.cut(m, n, None, np.random.default_rng(0))
    assert layout.count <= 1000
    assert min(layout.first, layout.count - layout.first) >= 2
    small = min(m, n)
    assert min(layout.m, layout.n) > small - layout.size


def test_a_handful_of_rows_against_many():
    rng = np.random.default_rng(9)
    result = two_sample_test(rng.normal(5, 1, size=(6, 2)), rng.normal(size=(5000, 2)), rng=0)
    assert result.reject
    assert any("left out" in note for note in result.notes)


@pytest.mark.parametrize("family", [Bandwidth(), Bandwidth("laplacian"), LaplacianL1(), Polynomial(degree=2), Radius()], ids=str)
def test_paths_equal_kernels_evaluated_one_by_one(family):
    rng = np.random.default_rng(3)
    rows = rng.normal(size=(300, 4))
    layout = Layout.cut(120, 180, None, rng, target=60).draw(3, rng)
    grid = bandwidth_multiples(1 / 16, 4.0)
    view = View(rows.__getitem__, layout, np.arange(300), DEFAULT_LIMIT, 200)
    (members,) = pairwise_members(view, [Grid(family, grid, 1.0)])
    assert len(members.bandwidths) >= 5
    for sigma, values in zip(members.bandwidths, members.mmd2, strict=True):
        K = ScaledKernel(family, sigma).gram(rows[layout.rows])
        w = layout.rows < 120
        exact = mmd.unbiased_mmd2(K[np.ix_(w, w)], K[np.ix_(~w, ~w)], K[np.ix_(w, ~w)])
        # Single precision tiles, and squaring doubles their relative error six times at most.
        assert values[0] == pytest.approx(exact, abs=2e-6)


def test_bandwidths_without_neighbours_are_left_out():
    rng = np.random.default_rng(4)
    rows = rng.normal(size=(100, 40))
    layout = Layout.cut(50, 50, None, rng).draw(2, rng)
    grid = bandwidth_multiples(1 / 64, 4.0)
    view = View(rows.__getitem__, layout, np.arange(100), DEFAULT_LIMIT, 100)
    (members,) = pairwise_members(view, [Grid(Bandwidth(), grid, 1.0)])

    def neighbours(sigma):
        return (ScaledKernel(Bandwidth(), sigma).gram(rows).sum() - 100) / 100

    assert neighbours(members.bandwidths[-1]) >= 1 > neighbours(members.bandwidths[-1] / np.sqrt(2))


@pytest.mark.parametrize(("rows", "asked", "needed"), [(400, 30, 30), (80, 30, 20), (400, 1, 1)])
def test_neighbours_asked_for_are_at_most_a_quarter_of_the_pool(rows, asked, needed):
    assert Grid(Bandwidth(), np.ones(1), asked).needed(rows) == needed
    narrow = KernelClass(Bandwidth(), fewest_neighbours=asked)
    pool = np.random.default_rng(5).normal(size=(rows, 2))
    result = two_sample_test(pool[::2], pool[1::2], method=FullSampleTest(classes=(narrow,)), rng=0, n_permutations=19)
    (scores,) = result.classes
    K = ScaledKernel(Bandwidth(), scores.bandwidths[-1]).gram(pool)
    assert K.sum() / rows - 1 >= needed * (1 - 1e-5)


def test_a_class_of_less_weight_needs_more_evidence():
    heavy, light = (FullSampleTest(classes=(Bandwidth(), KernelClass(Radius(), "standard", weight=w))) for w in (1.0, 0.25))
    full, quarter = (two_sample_test(X, Y, method=test, rng=0).classes for test in (heavy, light))
    assert quarter[0].to_dict() == full[0].to_dict()
    assert quarter[1].scores.tolist() == full[1].scores.tolist()
    assert quarter[1].penalty - full[1].penalty == pytest.approx(np.log(4))


def test_the_radius_sees_tails_that_no_direction_shows():
    rng = np.random.default_rng(8)
    x = rng.normal(size=(300, 10))
    y = rng.normal(size=(300, 10)) / np.sqrt(rng.chisquare(6, size=(300, 1)) / 4)
    result = two_sample_test(x, y, method=FullSampleTest(classes=(KernelClass(Radius(), "standard"),)), rng=0)
    assert result.pvalue == 0.001
    assert result.selected_class.name == "Radius() on standardised coordinates"


def test_scores_are_tail_probabilities_of_gammas():
    rng = np.random.default_rng(4)
    for shape in (0.5, 2.0, 50.0):
        draws = rng.gamma(shape, size=(1, 20_001))
        scores = tail_scores(draws)[0]
        exact = -stats.gamma.logsf(draws[0], shape)
        middle = (exact > 0.5) & (exact < 6)
        assert np.abs(scores - exact)[middle].max() < 0.45
        assert (np.argsort(scores, kind="stable") == np.argsort(draws[0], kind="stable")).mean() > 0.9


def test_rows_without_spread_score_zero_and_tiny_ones_count():
    values = np.vstack([np.full(50, 0.3), 1e-150 * np.random.default_rng(0).normal(size=50)])
    scores = tail_scores(values)
    assert (scores[0] == 0).all()
    assert scores[1].max() > 1


@pytest.mark.parametrize("null", ["gaussian", "discrete", "unequal", "wide"])
def test_level_is_exact(null):
    # 300 repetitions a null, 2000 and more in make test-statistical; at .05 the bound is 15 + 3 * 3.77 = 26 rejections.
    assert_level(null_pvalues("cp-full", NULLS[null], 300, seed=21))


def unequal_rows(rng):
    return rng.normal(size=(90, 2)), rng.normal(size=(130, 2))


ENGINES = {
    "binned": FullSampleTest(bins=40),
    "landmarks": FullSampleTest(landmarks=30),
    "streamed": FullSampleTest(bins=40, landmarks=30, pair_rows=0, covariance_rows=100),
}


def rare_rows(rng):
    return tuple((rng.random((rows, 2)) < 0.01).astype(float) for rows in (90, 130))


def heavy_rows(rng):
    return tuple(rng.standard_cauchy(size=(rows, 2)) ** 3 for rows in (90, 130))


def wide_rows(rng):
    return rng.normal(size=(45, 150)), rng.normal(size=(60, 150))


POOLS = [unequal_rows, rare_rows, heavy_rows, wide_rows]
OFTEN = pytest.mark.statistical


@pytest.mark.parametrize(
    ("null", "repetitions"),
    [(unequal_rows, 250), (rare_rows, 100), (heavy_rows, 100), *(pytest.param(null, 2000, marks=OFTEN) for null in POOLS)],
)
@pytest.mark.parametrize("engine", ENGINES)
def test_level_is_exact_with_every_engine(engine, null, repetitions):
    assert_level(null_pvalues(ENGINES[engine], null, repetitions, seed=22))


@pytest.mark.parametrize("repetitions", [1000, pytest.param(10_000, marks=pytest.mark.statistical)])
def test_p_values_are_uniform_on_their_lattice(repetitions):
    # With 19 relabelings p takes the values 1/20, ..., 20/20, each with probability 1/20: chi-square on 19 degrees.
    def null(rng):
        return rng.normal(size=(12, 2)), rng.normal(size=(15, 2))

    pvalues = null_pvalues("cp-full", null, repetitions, seed=23, n_permutations=19)
    counts = np.bincount(np.round(20 * pvalues).astype(int), minlength=21)[1:]
    assert counts.sum() == repetitions
    assert stats.chisquare(counts).pvalue > 1e-4


def test_the_result_names_class_bandwidth_and_path():
    result = two_sample_test(X, Y, rng=0)
    assert result.method == "cp-full"
    assert result.selected_class.name.startswith(("Bandwidth", "LaplacianL1", "Polynomial", "Radius"))
    path = result.classes
    assert len(path) == 9  # of three columns of one unit
    with_kernels = [p for p in path if p.coordinates]
    assert len(with_kernels) == 6
    assert all(len(p.bandwidths) == len(p.gammas) == len(p.scores) == len(p.mmd2) for p in with_kernels)
    best = max(p.scores.max() - p.penalty for p in path)
    assert result.statistic == pytest.approx(best)
    json.dumps(result.to_dict(), allow_nan=False)
    K = result.kernel.gram(result.preparation.transform(_samples()))
    blocks = K[:70, :70], K[70:, 70:], K[:70, 70:]
    assert result.selected_class.mmd2[result.selected_class.selected] == pytest.approx(mmd.unbiased_mmd2(*blocks), abs=1e-5)


def _samples():
    from cpmmd.data.pool import read_pool

    return read_pool(X, Y)


def test_it_sees_small_scales_and_large_ones():
    rng = np.random.default_rng(5)
    assert two_sample_test(*two_scale_mixture(rng, 200, 0.15), rng=0).reject
    assert two_sample_test(rng.normal(size=(100, 20)), rng.normal(0.4, 1, size=(100, 20)), rng=0).reject


def test_incommensurate_columns_do_not_hide_a_difference():
    rng = np.random.default_rng(6)
    x, y = rng.normal(size=(2, 150, 4))
    y[:, 0] += 1
    scale = np.array([1e-3, 1, 1e3, 1e6])
    assert two_sample_test(x * scale, y * scale, rng=0).reject


def test_a_fixed_kernel_is_one_more_class():
    kernel = ScaledKernel(Bandwidth(), 1.0)
    result = two_sample_test(X, Y, method=FullSampleTest(fixed=(kernel,)), rng=0)
    assert len(result.classes) == len(two_sample_test(X, Y, rng=0).classes) + 1
    alone = two_sample_test(X, Y, method=FullSampleTest(classes=(), fixed=(kernel,)), rng=0)
    assert alone.kernel is kernel


def test_one_column_has_one_set_of_coordinates():
    result = two_sample_test(
        X[:, 0], Y[:, 0], method=FullSampleTest(classes=(Bandwidth(), KernelClass(Bandwidth(), "standard"))), rng=0
    )
    assert len(result.classes) == 1


@pytest.mark.parametrize(
    "make",
    [
        lambda: FullSampleTest(classes=()),
        lambda: FullSampleTest(classes=("gaussian",)),
        lambda: FullSampleTest(penalty_quantile=1.0),
        lambda: FullSampleTest(bins=3),
        lambda: KernelClass(Bandwidth(), "robust"),
        lambda: KernelClass(Bandwidth(), narrowest=2.0, widest=1.0),
        lambda: KernelClass(Bandwidth(), fewest_neighbours=0),
        lambda: KernelClass(Bandwidth(), weight=0.0),
        lambda: SplitTest(n_splits=0),
        lambda: SplitTest(combine="best"),
    ],
)
def test_bad_parameters_are_refused(make):
    with pytest.raises(CpmmdError):
        make()


def test_scale_is_refused_with_a_reason():
    with pytest.raises(CpmmdError, match=r"has no 'scale' option.*chooses coordinates itself"):
        two_sample_test(X, Y, scale="standard")


@pytest.mark.parametrize("repetitions", [150, pytest.param(400, marks=pytest.mark.statistical)])
def test_level_of_several_splits(repetitions):
    # The combined tests are conservative, the bound (33 rejections of 400) is for an exact one. All rules combine the p-values of
    # the same splits.
    splits = []
    for repetition in range(repetitions):
        data, rng = np.random.default_rng([24, repetition]).spawn(2)
        x, y = data.normal(size=(20, 2)), data.normal(size=(24, 2))
        result = two_sample_test(x, y, method=SplitTest(n_splits=5, combine="mean"), rng=rng, n_permutations=99)
        assert result.pvalue == pytest.approx(min(1.0, COMBINE["mean"](np.array(result.splits.pvalues))))
        splits.append(np.array(result.splits.pvalues))
    for rule, combine in COMBINE.items():
        rejections = sum(combine(pvalues) <= 0.05 for pvalues in splits)
        assert rejections <= most_rejections(repetitions, 0.05), rule


def test_several_splits_agree_more_than_one():
    rng = np.random.default_rng(7)
    x, y = rng.normal(size=(60, 2)), rng.normal(0.5, 1, size=(60, 2))

    def spread(n_splits):
        return np.std(
            [two_sample_test(x, y, method=SplitTest(n_splits=n_splits), rng=s, n_permutations=199).pvalue for s in range(20)]
        )

    assert spread(10) <= spread(1) / 2


def test_several_splits_report_their_spread():
    result = two_sample_test(X, Y, method=SplitTest(n_splits=4), rng=0)
    splits = result.splits
    assert len(splits.pvalues) == 4
    assert result.pvalue == pytest.approx(min(1, 2 * np.median(splits.pvalues)))
    assert any("4 splits" in note for note in result.notes)


@pytest.mark.parametrize("count", [999, 3999])
def test_a_plain_shift_is_explained_by_a_kernel_that_sees_where_rows_are(count):
    data = np.random.default_rng(0)
    x, y = data.normal(size=(200, 3)), data.normal(size=(60, 3)) + np.array([3, 0, 0])
    result = two_sample_test(x, y, rng=0, n_permutations=count)
    assert result.selected_class.label == "gaussian on raw"
