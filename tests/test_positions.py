"""Bins and random orders by position: a bijection that any part of the rows can be asked for, and equal sizes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cpmmd.draws.layout import Layout
from cpmmd.draws.positions import KeyedPermutation


@given(size=st.integers(1, 3000), seed=st.integers(0, 2**32))
def test_a_key_is_a_permutation_and_has_an_inverse(size, seed):
    order = KeyedPermutation.draw(size, np.random.default_rng(seed))
    numbers = np.arange(size)
    images = order.images(numbers)
    assert np.array_equal(np.sort(images), numbers)
    assert np.array_equal(order.positions(images), numbers)
    some = numbers[::3]
    assert np.array_equal(order.images(some), images[::3])  # a row does not need the others


def test_images_are_uniform_singly_and_in_pairs():
    """Chi-square over 4000 keys of 40 rows: 1521 and 1559 degrees of freedom, within four standard deviations."""
    keys, size = 4000, 40
    single, pairs = np.zeros((size, size)), np.zeros((size, size))
    for key in range(keys):
        images = KeyedPermutation.draw(size, np.random.default_rng(key)).images(np.arange(size))
        single[np.arange(size), images] += 1
        pairs[images[0], images[1]] += 1
    expected = keys / size
    assert abs(np.sum((single - expected) ** 2 / expected) - 1521) < 4 * np.sqrt(2 * 1521)
    expected = keys / (size * (size - 1))
    other = ~np.eye(size, dtype=bool)
    assert np.all(np.diag(pairs) == 0)
    assert abs(np.sum((pairs[other] - expected) ** 2 / expected) - 1559) < 4 * np.sqrt(2 * 1559)


@pytest.mark.parametrize(("m", "n"), [(20, 20), (500, 700), (1003, 2001), (90, 5000)])
def test_bins_are_of_one_size_and_of_one_sample(m, n):
    layout, bins = Layout.by_position(m, n, np.random.default_rng(m))
    place = bins.of(np.arange(m + n))
    assert np.array_equal(np.bincount(place[place >= 0]), layout.counts)
    assert np.count_nonzero(place[:m] < 0) == layout.dropped[0]
    assert np.count_nonzero(place[m:] < 0) == layout.dropped[1]
    unit = np.repeat(np.arange(layout.count), layout.size)
    assert np.array_equal(place[layout.rows], unit)
    assert np.array_equal(layout.of_x[unit], layout.rows < m)
    assert len(set(layout.rows.tolist())) == len(layout.rows)


def test_rows_that_are_not_held_have_the_same_bins():
    held, bins = Layout.by_position(300, 400, np.random.default_rng(1))
    other, same = Layout.by_position(300, 400, np.random.default_rng(1), held=False)
    rows = np.arange(700)
    assert np.array_equal(bins.of(rows), same.of(rows))
    assert np.array_equal(held.of_x, other.of_x)
    assert (held.m, held.n, held.dropped) == (other.m, other.n, other.dropped)
