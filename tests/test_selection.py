"""The bandwidth search against a brute-force grid, and calibration against its definition."""

import numpy as np
import pytest

from cpmmd import Bandwidth, ComplexityPenalized, Plain, Polynomial, Ratio
from cpmmd.data.preparation import PreparedPool
from cpmmd.draws.labels import draw_labels
from cpmmd.kernels.scaled import ScaledKernel, median_distance
from cpmmd.selection.search import RANGE, ScalarSelector, calibrate, quantile_order
from cpmmd.statistics import mmd
from helpers import kurtosis, two_scale_mixture


def training_half(seed=0, m=60, n=60):
    x, y = two_scale_mixture(np.random.default_rng(seed), m, 0.2, n)
    return PreparedPool(np.vstack([x, y]), m)


def by_hand(family, criterion, train, sigma):
    """The criterion from its definition, through the public kernel only."""
    kernel = ScaledKernel(family, sigma, family.lift_lipschitz(train.matrix))
    K = kernel.gram(train.matrix)
    blocks = K[: train.m, : train.m], K[train.m :, train.m :], K[: train.m, train.m :]
    complexity = kernel.lipschitz * np.linalg.norm(train.matrix) / train.size
    return criterion.value(mmd.unbiased_mmd2(*blocks), mmd.variance(*blocks), complexity)


FAMILIES = [Bandwidth(), Bandwidth("laplacian"), Polynomial(degree=2), Polynomial(degree=3, base="gaussian")]
CRITERIA = [Plain(), Ratio(), ComplexityPenalized(c1=0.01)]


@pytest.mark.parametrize("family", FAMILIES, ids=str)
@pytest.mark.parametrize("criterion", CRITERIA, ids=str)
@pytest.mark.parametrize("n", [60, 35])
def test_search_reaches_the_maximum_of_a_dense_grid(family, criterion, n):
    train = training_half(n=n)
    selection = ScalarSelector(family).select(train, criterion, np.random.default_rng(0))
    sigmas = np.geomspace(selection.path.bandwidths.min(), selection.path.bandwidths.max(), 400)
    best = max(by_hand(family, criterion, train, s) for s in sigmas)
    assert selection.criterion >= best - 1e-6 * abs(best)
    assert selection.criterion == pytest.approx(
        by_hand(family, criterion, train, selection.kernel.bandwidth), rel=1e-8, abs=1e-12
    )


def test_the_path_is_sorted_and_holds_the_maximum():
    train = training_half()
    selection = ScalarSelector(Bandwidth()).select(train, Plain(), np.random.default_rng(0))
    path = selection.path
    assert (np.diff(path.bandwidths) >= 0).all()
    assert path.criterion.max() == selection.criterion
    assert selection.max_complexity == pytest.approx(train.data_norm / path.bandwidths.min())


def test_the_range_is_set_by_the_median_distance_of_the_training_half():
    train = training_half()
    selection = ScalarSelector(Bandwidth()).select(train, Plain(), np.random.default_rng(0))
    i, j = np.triu_indices(train.size, 1)
    median = np.median(np.linalg.norm(train.matrix[i] - train.matrix[j], axis=1))
    assert selection.path.bandwidths.min() == pytest.approx(median * RANGE[0])
    assert selection.path.bandwidths.max() == pytest.approx(median * RANGE[1])


def test_median_distance_of_duplicated_rows():
    rows = np.array([[0.0], [0.0], [0.0], [0.0], [3.0]])
    family = Bandwidth()
    assert median_distance(family.exponents(rows), 2) == pytest.approx(3.0)
    assert median_distance(family.exponents(np.zeros((4, 2))), 2) == 1.0


@pytest.mark.parametrize(
    ("n_cal", "alpha", "order"), [(10, 0.05, 10), (19, 0.05, 19), (39, 0.05, 38), (20, 0.05, 20), (9, 0.5, 5), (1, 0.05, 1)]
)
def test_calibration_takes_the_paper_s_order_statistic(n_cal, alpha, order):
    assert quantile_order(n_cal, alpha) == order


@pytest.mark.parametrize("family", [Bandwidth(), Polynomial(degree=3)], ids=str)
def test_calibration_equals_its_definition(family):
    x, y = kurtosis(np.random.default_rng(2), 30, 5, d=3)
    train = PreparedPool(np.vstack([x, y[:22]]), 30)
    calibration = calibrate(
        ScalarSelector(family), train, ComplexityPenalized(n_calibration=6), alpha=0.3, rng=np.random.default_rng(7)
    )
    labels = draw_labels(train.size, train.m, 6, np.random.default_rng(7).spawn(2)[0])
    ratios = []
    for w in labels:
        null = PreparedPool(np.vstack([train.matrix[w], train.matrix[~w]]), train.m)
        chosen = ScalarSelector(family).select(null, Plain(), np.random.default_rng(0))
        ratios.append(by_hand(family, Plain(), null, chosen.kernel.bandwidth) / (chosen.kernel.lipschitz * train.data_norm))
    np.testing.assert_allclose(calibration.ratios, ratios, rtol=1e-4)  # two searches, each to 1e-3 in log sigma
    assert calibration.c1 == pytest.approx(np.sort(ratios)[int(np.ceil(0.7 * 7)) - 1], rel=1e-4)


@pytest.mark.parametrize("family", [Bandwidth(), Polynomial(degree=3)], ids=str)
def test_the_target_of_the_calibration_is_the_largest_ratio_of_a_dense_grid(family):
    x, y = kurtosis(np.random.default_rng(2), 30, 5, d=3)
    train = PreparedPool(np.vstack([x, y[:22]]), 30)
    found = {
        how: calibrate(
            ScalarSelector(family),
            train,
            ComplexityPenalized(n_calibration=6, calibration=how),
            alpha=0.3,
            rng=np.random.default_rng(7),
        )
        for how in ("plain", "ratio", "expectation")
    }
    sigmas = ScalarSelector(family).select(train, Plain(), np.random.default_rng(0)).path.bandwidths
    grid = np.geomspace(sigmas.min(), sigmas.max(), 400)
    labels = draw_labels(train.size, train.m, 6, np.random.default_rng(7).spawn(2)[0])
    for w, ratio in zip(labels, found["ratio"].ratios, strict=True):
        null = PreparedPool(np.vstack([train.matrix[w], train.matrix[~w]]), train.m)
        lift = family.lift_lipschitz(train.matrix)
        ratios = [by_hand(family, Plain(), null, s) * s / (lift * train.data_norm) for s in grid]
        assert ratio >= max(ratios) - 1e-4 * abs(max(ratios))
    assert (found["ratio"].ratios >= found["plain"].ratios - 1e-12).all()
    assert found["expectation"].c1 == pytest.approx(max(found["plain"].ratios.mean(), 0))
    assert found["expectation"].c1 <= found["plain"].c1 <= found["ratio"].c1


def test_a_given_constant_is_used_as_it_is():
    from cpmmd import SplitTest, two_sample_test

    x, y = two_scale_mixture(np.random.default_rng(0), 60, 0.2)
    result = two_sample_test(x, y, method=SplitTest(criterion=ComplexityPenalized(c1=0.0)), rng=0)
    plain = two_sample_test(x, y, method="plain-linear", rng=0)
    assert result.calibration is None
    assert result.kernel.bandwidth == plain.kernel.bandwidth


def test_selection_does_not_depend_on_units():
    x, y = two_scale_mixture(np.random.default_rng(0), 60, 0.2)
    from cpmmd import two_sample_test

    one = two_sample_test(x, y, method="cp-linear", rng=0)
    other = two_sample_test(1e6 * x, 1e6 * y, method="cp-linear", rng=0)
    assert other.kernel.bandwidth == pytest.approx(1e6 * one.kernel.bandwidth, rel=1e-6)
    assert other.pvalue == one.pvalue
