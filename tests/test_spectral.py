"""Spectral regularisation and landmarks: the statistic against dense definitions, the engine against itself, bad input."""

from dataclasses import replace

import numpy as np
import pytest

from cpmmd import (
    Bandwidth,
    CpmmdError,
    FullSampleTest,
    KernelClass,
    LaplacianL1,
    Polynomial,
    Radius,
    SplitTest,
    load_kernel,
    save_kernel,
    two_sample_test,
)
from cpmmd.draws.layout import Layout
from cpmmd.engines import directions, landmarks
from cpmmd.engines.directions import Sketch, landmark_directions, whole_pool_directions
from cpmmd.engines.landmarks import NEIGHBOUR_ROWS, among_neighbours, landmark_members
from cpmmd.engines.members import Grid, View, bandwidth_multiples
from cpmmd.engines.memory import DEFAULT_LIMIT
from cpmmd.kernels.scaled import ScaledKernel, _median
from cpmmd.statistics import mmd
from helpers import NULLS, assert_level, null_pvalues

GAMMAS = (1e-1, 1e-3, 1e-6, np.inf)
FAMILIES = [Bandwidth(), Bandwidth("laplacian"), LaplacianL1(), Polynomial(degree=2), Radius()]


def by_definition(K, labels, gamma):
    """Centre the Gram matrix, weigh its eigenvalues, take the unbiased squared MMD of what comes out."""
    size = len(K)
    H = np.eye(size) - 1 / size
    values, vectors = np.linalg.eigh(H @ K @ H)
    values = np.maximum(values, 0.0)
    if np.isfinite(gamma):
        largest = values.max()
        values = values * (1 + gamma) * largest / (values + gamma * largest)
    weighted = vectors @ np.diag(values) @ vectors.T
    return [mmd.unbiased_mmd2(*(weighted[np.ix_(a, b)] for a, b in ((w, w), (~w, ~w), (w, ~w)))) for w in labels]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize(("m", "n"), [(40, 40), (25, 60)])
def test_the_statistic_is_the_weighted_mmd_where_all_rows_are_landmarks(family, m, n):
    rng = np.random.default_rng(m)
    rows = rng.normal(size=(m + n, 3))
    layout = Layout.cut(m, n, None, rng).draw(5, rng)
    K = ScaledKernel(family, family.median_bandwidth(rows)).gram(rows[layout.rows])
    found = whole_pool_directions(K, layout).statistics(layout, GAMMAS)
    for gamma, values in zip(GAMMAS, found, strict=True):
        expected = by_definition(K, layout.labels.array(bool), gamma)
        np.testing.assert_allclose(values, expected, rtol=1e-6, atol=1e-6 * np.abs(expected).max())


@pytest.mark.parametrize("gamma", GAMMAS)
def test_landmarks_that_are_all_rows_give_the_directions_of_the_pool(gamma):
    rng = np.random.default_rng(1)
    rows = rng.normal(size=(90, 2))
    layout = Layout.cut(40, 50, None, rng).draw(19, rng)
    K = ScaledKernel(LaplacianL1(), 2.0).gram(rows[layout.rows])
    (dense,) = whole_pool_directions(K, layout).statistics(layout, [gamma])
    (seen,) = landmark_directions(Sketch(K, K, K), layout).statistics(layout, [gamma])
    np.testing.assert_allclose(seen, dense, atol=1e-6 * dense.std())


def view_of(rows, layout, count):
    return View(rows.__getitem__, layout, np.arange(len(rows)), DEFAULT_LIMIT, count)


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("target", [60, 1000])
def test_streamed_paths_are_those_of_whole_matrices(family, target, monkeypatch):
    """Single precision, tile by tile, against double precision at once: the same landmarks, bandwidths and spectrum."""
    rng = np.random.default_rng(2)
    rows = rng.normal(size=(300, 3))
    layout = Layout.cut(120, 180, None, rng, target=target).draw(9, rng)
    grids = [
        Grid(family, bandwidth_multiples(1, 2), stride=2),
        Grid(family, bandwidth_multiples(1 / 4, 1), stride=4, gammas=(1e-1, 1e-3)),
    ]
    monkeypatch.setitem(directions.RIDGE, np.dtype(np.float64), directions.RIDGE[np.dtype(np.float32)])
    double = landmark_members(view_of(rows, layout, 50), grids)
    monkeypatch.setattr(landmarks, "TILE_ROWS", 70)
    streamed = landmark_members(replace(view_of(rows, layout, 50), pair_rows=0), grids)
    for one, other in zip(double, streamed, strict=True):
        np.testing.assert_array_equal(one.bandwidths, other.bandwidths)
        np.testing.assert_array_equal(one.gammas, other.gammas)
        np.testing.assert_allclose(one.mmd2, other.mmd2, atol=2e-3 * one.mmd2.std())


def test_the_selected_kernel_is_what_the_statistic_is_of():
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(60, 2)), rng.normal(size=(80, 2)) @ np.array([[1, 0.9], [0, 0.5]])
    spectral = KernelClass(Bandwidth(), narrowest=1, widest=1, gammas=(1e-2,))
    result = two_sample_test(x, y, method=FullSampleTest(classes=(spectral,)), rng=0)
    K = result.kernel.gram(np.vstack([x, y]))
    assert result.classes[0].mmd2[0] == pytest.approx(mmd.unbiased_mmd2(K[:60, :60], K[60:, 60:], K[:60, 60:]), rel=1e-8)
    assert str(result.kernel).endswith("spectrum regularised at 0.01")
    assert np.abs(K).max() <= result.kernel.bound


def test_a_regularised_kernel_is_saved_and_read(tmp_path):
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(2, 50, 3))
    spectral = KernelClass(LaplacianL1(), "standard", narrowest=2, widest=2, gammas=(0.1,))
    result = two_sample_test(x, y, method=FullSampleTest(classes=(spectral,)), rng=0)
    save_kernel(result.kernel, tmp_path / "kernel")
    kernel = load_kernel(tmp_path / "kernel")
    assert kernel == result.kernel
    np.testing.assert_array_equal(kernel.gram(x, y), result.kernel.gram(x, y))
    again = two_sample_test(x, y, method=FullSampleTest(classes=(), fixed=(kernel,)), rng=0)
    assert 0 < again.pvalue <= 1


def test_a_direction_of_small_variance_is_found():
    """Two columns of very different spread, the narrow one shifted: the squared MMD of raw columns cannot see it."""
    rng = np.random.default_rng(5)
    x, y = (rng.normal(size=(150, 2)) * [10, 0.1] for _ in range(2))
    y[:, 1] += 0.08
    plain, spectral = (
        two_sample_test(x, y, method=FullSampleTest(classes=(KernelClass(Bandwidth(), gammas=gammas),)), rng=0)
        for gammas in ((), (1e-3, 1e-5))
    )
    assert spectral.pvalue < 0.01 < plain.pvalue


def test_one_column_has_each_class_once():
    rng = np.random.default_rng(6)
    result = two_sample_test(rng.normal(size=50), rng.normal(size=60), rng=0)
    names = [one.name for one in result.classes]
    assert len(names) == len(set(names)) == 4


SAMPLES = {
    "constant": lambda _: (np.ones((30, 2)), np.ones((40, 2))),
    "one constant column": lambda rng: [np.column_stack([rng.normal(size=40), np.ones(40)]) for _ in range(2)],
    "duplicated": lambda rng: [np.repeat(rng.normal(size=(5, 2)), 60, axis=0) for _ in range(2)],
    "fewer distinct rows than landmarks": lambda rng: [rng.integers(0, 3, size=(300, 2)) for _ in range(2)],
    "one column": lambda rng: [rng.normal(size=(50, 1)) for _ in range(2)],
    "an outlier": lambda rng: [np.vstack([rng.normal(size=(80, 2)), [[1e30, 0.0]]]), rng.normal(size=(80, 2))],
    "N = 4": lambda rng: [rng.normal(size=(2, 2)) for _ in range(2)],
    "more columns than rows": lambda rng: [rng.normal(size=(20, 200)) for _ in range(2)],
    "many duplicated": lambda rng: [rng.integers(0, 2, size=(3000, 2)) for _ in range(2)],
}


@pytest.mark.parametrize("name", SAMPLES)
def test_degenerate_pools_give_an_answer(name):
    x, y = SAMPLES[name](np.random.default_rng(7))
    result = two_sample_test(x, y, rng=0, n_permutations=99)
    assert 0 < result.pvalue <= 1
    assert np.isfinite(result.null_distribution).all()
    if name in ("constant", "N = 4"):
        assert not result.reject


@pytest.mark.parametrize(
    "make",
    [
        lambda: KernelClass(Bandwidth(), gammas=(0.0,)),
        lambda: KernelClass(Bandwidth(), gammas=(np.inf,)),
        lambda: KernelClass(Bandwidth(), ratio=1.7),
        lambda: KernelClass(Bandwidth(), ratio=1.0),
        lambda: FullSampleTest(landmarks=1),
        lambda: FullSampleTest(pair_rows=-1),
        lambda: FullSampleTest(covariance_rows=3),
    ],
)
def test_options_that_are_none_are_refused(make):
    with pytest.raises(CpmmdError):
        make()


PLAIN_ALONE = (KernelClass(Bandwidth()),)


@pytest.mark.parametrize(
    ("method", "said"),
    [
        (FullSampleTest(), (200, 600, False)),  # all rows of the pool, but for those that did not fill a bin
        (FullSampleTest(landmarks=50), (50, 600, False)),
        (FullSampleTest(pair_rows=100), (200, 601, True)),  # ten rows a landmark were 2000
        (FullSampleTest(pair_rows=100, landmarks=20), (20, 200, True)),
        (FullSampleTest(pair_rows=100, landmarks=20, covariance_rows=70), (20, 70, True)),
        (FullSampleTest(classes=PLAIN_ALONE), (None, None, False)),
        (FullSampleTest(classes=PLAIN_ALONE, pair_rows=100), (200, None, True)),
        ("median", (None, None, False)),
    ],
)
def test_the_result_says_through_what_kernels_were_computed(method, said):
    rng = np.random.default_rng(3)
    engine = two_sample_test(rng.normal(size=(300, 2)), rng.normal(size=(301, 2)), method=method, n_permutations=19, rng=0).engine
    assert (engine.landmarks, engine.covariance_rows, engine.linear) == said


SPECTRAL_SPLIT = SplitTest(gammas=(0.1, 1e-3))


def test_a_kernel_of_a_training_half_is_tested_at_spectral_parameters():
    rng = np.random.default_rng(11)
    x, y = correlated(rng, 0.0), correlated(rng, 0.6)
    plain, spectral = (two_sample_test(x, y, method=method, rng=0) for method in (SplitTest(), SPECTRAL_SPLIT))
    assert spectral.kernel == plain.kernel  # what is chosen stays
    assert spectral.pvalue < plain.pvalue
    assert (spectral.engine.landmarks, spectral.certificate) == (sum(spectral.tested_sizes), None)
    assert "spectral" in spectral.statistic_meaning


def correlated(rng, rho):
    x = rng.normal(size=(120, 4))
    x[:, 2:] = rho * x[:, :2] + np.sqrt(1 - rho**2) * x[:, 2:]
    return x


def test_the_level_of_spectral_parameters_on_a_test_half():
    # 400 null repetitions; at alpha = .05 the bound is 20 + 3 * 4.36 = 33 rejections.
    assert_level(null_pvalues(SPECTRAL_SPLIT, NULLS["unequal"], 400, seed=61))


def test_the_median_of_many_values_is_numpys():
    rng = np.random.default_rng(8)
    for count in (10, 5000, 5001, 80_200):
        values = np.square(rng.normal(size=count))
        for some in (
            values,
            np.round(values, 2),
            np.sort(values),
            np.where(rng.random(count) < 0.6, 0.0, values),
            np.zeros(count),
        ):
            assert _median(some) == np.median(some)


def test_narrow_kernels_take_landmarks_where_rows_are_close_together():
    rng = np.random.default_rng(2)
    rows, order = rng.normal(size=(5000, 4)), rng.permutation(5000)
    rows[:40] = 3 + 0.01 * rows[:40]
    narrow = Grid(Bandwidth(), np.array([1 / 8]))
    view = View(lambda chosen: rows[chosen], Layout.of_rows(2500, 2500), order, DEFAULT_LIMIT, 141)
    chosen = among_neighbours(view, narrow).chosen
    assert np.array_equal(chosen[:70], order[:70])
    assert len(np.unique(chosen)) == 141
    group = [row for row in order[:NEIGHBOUR_ROWS] if row < 40]
    assert len(group) > 5
    assert set(group) <= set(chosen.tolist())
