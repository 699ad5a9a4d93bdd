"""One contract over every criterion: plain arithmetic on floats, arrays and tensors alike, rising in the squared MMD."""

import numpy as np
import pytest

from cpmmd import ComplexityPenalized, registry
from cpmmd.storage.kernels import describe_method, restore_method

every_criterion = pytest.mark.parametrize("name", registry.criteria())
MMD2, VARIANCE, COMPLEXITY = np.array([0.1, 0.2, 0.4]), np.array([0.5, 0.5, 0.5]), np.array([2.0, 2.0, 2.0])


def make(name):
    """A criterion whose constant, if it has one, is known."""
    criterion = registry.criteria()[name]()
    return criterion.calibrated(0.03) if isinstance(criterion, ComplexityPenalized) else criterion


@every_criterion
def test_it_rises_with_the_squared_mmd(name):
    assert (np.diff(make(name).value(MMD2, VARIANCE, COMPLEXITY)) > 0).all()


@every_criterion
def test_floats_arrays_and_tensors_agree(name):
    torch = pytest.importorskip("torch")
    criterion = make(name)
    array = criterion.value(MMD2, VARIANCE, COMPLEXITY)
    floats = [criterion.value(*map(float, values)) for values in zip(MMD2, VARIANCE, COMPLEXITY, strict=True)]
    tensors = criterion.value(*(torch.from_numpy(values) for values in (MMD2, VARIANCE, COMPLEXITY)))
    np.testing.assert_allclose(array, floats)
    np.testing.assert_allclose(array, tensors.numpy())


@every_criterion
def test_it_needs_what_it_says_and_nothing_else(name):
    criterion = make(name)
    variance = VARIANCE if criterion.needs_variance else None
    complexity = COMPLEXITY if criterion.needs_complexity else None
    np.testing.assert_allclose(criterion.value(MMD2, variance, complexity), criterion.value(MMD2, VARIANCE, COMPLEXITY))
    more = criterion.value(MMD2, 2 * VARIANCE, COMPLEXITY), criterion.value(MMD2, VARIANCE, 2 * COMPLEXITY)
    assert (more[0] < criterion.value(MMD2, VARIANCE, COMPLEXITY)).all() == criterion.needs_variance
    assert (more[1] < criterion.value(MMD2, VARIANCE, COMPLEXITY)).all() == criterion.needs_complexity


@every_criterion
def test_it_comes_back_from_plain_json(name):
    assert restore_method(describe_method(make(name))) == make(name)


def test_the_penalised_criterion_is_the_papers():
    criterion = ComplexityPenalized(c1=0.03)
    np.testing.assert_allclose(criterion.value(MMD2, None, COMPLEXITY), MMD2 - 0.06)
    assert criterion.constant == 0.03
    assert ComplexityPenalized().constant is None
