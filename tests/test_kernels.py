"""Kernel families against explicit features and their stated constants."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.metrics import pairwise_distances
from sklearn.preprocessing import PolynomialFeatures

from cpmmd import Bandwidth, CpmmdError, Polynomial
from cpmmd.kernels.base import BASE_KERNELS
from cpmmd.kernels.scaled import ScaledKernel


@pytest.mark.parametrize("degree", [1, 2, 3, 4, 5])
@pytest.mark.parametrize("d", [1, 2, 5, 10])
def test_polynomial_gram_equals_explicit_features(d, degree):
    rng = np.random.default_rng(d * 10 + degree)
    a, b = rng.normal(size=(15, d)), rng.normal(size=(11, d))
    lift = PolynomialFeatures(degree, include_bias=False)
    fa, fb = lift.fit_transform(a), lift.transform(b)
    for base in BASE_KERNELS:
        family = Polynomial(degree=degree, base=base)
        u = pairwise_distances(fa, fb) / 7.0
        expected = np.exp(-(u**2) / 2) if base == "gaussian" else np.exp(-u)
        np.testing.assert_allclose(ScaledKernel(family, 7.0).gram(a, b), expected, atol=1e-10)
        u = pairwise_distances(fa, fa) / 7.0
        np.fill_diagonal(u, 0)
        expected = np.exp(-(u**2) / 2) if base == "gaussian" else np.exp(-u)
        np.testing.assert_allclose(ScaledKernel(family, 7.0).gram(a), expected, atol=1e-10)


def test_degree_six_and_wide_inputs_work():
    rng = np.random.default_rng(0)
    rows = rng.normal(size=(6, 500)) / 20
    K = ScaledKernel(Polynomial(degree=6), 1.0).gram(rows)
    assert np.isfinite(K).all()
    np.testing.assert_array_equal(np.diag(K), 1.0)


@pytest.mark.parametrize("name", BASE_KERNELS)
def test_base_kernel_constants_are_true_and_tight(name):
    kernel = BASE_KERNELS[name]
    u = np.linspace(0, 6, 200_001)
    values = kernel.of_exponent(kernel.exponent(u**2), 1.0)
    slopes = np.abs(np.diff(values) / np.diff(u))
    assert values.max() == pytest.approx(kernel.bound)
    assert slopes.max() <= kernel.lipschitz + 1e-9
    assert slopes.max() == pytest.approx(kernel.lipschitz, rel=1e-3)


@given(st.integers(1, 6), st.integers(1, 4), st.integers(0, 1000))
@settings(max_examples=50)
def test_polynomial_lipschitz_bound_holds_on_the_data_ball(degree, d, seed):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(30, d)) * rng.uniform(0.1, 2)
    family = Polynomial(degree=degree)
    lifted = family.exponents(rows)  # the Laplacian's exponent is the distance
    plain = np.linalg.norm(rows[:, None] - rows[None], axis=2)
    # Closer rows lose digits: their squared distance is a difference of products.
    apart = plain > 1e-2 * np.linalg.norm(rows, axis=1).max()
    assert (lifted[apart] / plain[apart]).max() <= family.lift_lipschitz(rows) * (1 + 1e-9)


@given(st.integers(0, 1000), st.floats(-1e6, 1e6), st.floats(0.01, 100))
@settings(max_examples=50)
def test_bandwidth_gram_ignores_translation_rotation_and_rescaling_with_sigma(seed, shift, factor):
    rng = np.random.default_rng(seed)
    rows = rng.normal(size=(12, 3))
    rotation, _ = np.linalg.qr(rng.normal(size=(3, 3)))
    for base in BASE_KERNELS:
        reference = ScaledKernel(Bandwidth(base), 0.8).gram(rows)
        # The rows themselves are rounded by a shift of 1e6: 1e-10 of a unit.
        np.testing.assert_allclose(ScaledKernel(Bandwidth(base), 0.8).gram(rows + shift), reference, atol=1e-8)
        np.testing.assert_allclose(ScaledKernel(Bandwidth(base), 0.8).gram(rows @ rotation), reference, atol=1e-12)
        np.testing.assert_allclose(ScaledKernel(Bandwidth(base), 0.8 * factor).gram(rows * factor), reference, atol=1e-12)


def test_duplicated_rows_are_at_distance_zero_exactly():
    rows = np.repeat(np.random.default_rng(1).normal(size=(5, 7)) * 1e3, 3, axis=0)
    distances = Bandwidth().exponents(rows)
    groups = np.arange(15) // 3
    assert (distances[groups[:, None] == groups[None]] == 0).all()
    assert (distances[groups[:, None] != groups[None]] > 0).all()


@pytest.mark.parametrize("bad", [lambda: Polynomial(degree=0), lambda: Polynomial(degree=7), lambda: Bandwidth("gausian")])
def test_bad_family_parameters_are_refused(bad):
    with pytest.raises(CpmmdError):
        bad()


def test_unknown_base_kernel_names_the_nearest():
    with pytest.raises(CpmmdError, match="Did you mean 'gaussian'"):
        Bandwidth("gausian")
