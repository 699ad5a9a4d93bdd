"""Values at the ends of double precision: a right answer or a sentence, never a p-value of nothing."""

import time

import numpy as np
import pytest

from cpmmd import CpmmdError, MMDAgg, kernel_matrix_test, methods, two_sample_test
from cpmmd.evidence import Ranking
from cpmmd.procedures.mmdagg import bandwidth_grid
from helpers import light

DATA = np.random.default_rng(0)
X, Y = DATA.normal(size=(40, 2)), DATA.normal(1.5, 1, size=(40, 2))
QUICK = [method for method in methods() if light(method) is method]


@pytest.mark.parametrize("values", [[np.nan, 1.0, 2.0], [1.0, np.nan, 2.0], [np.inf, 1.0], [1.0, -np.inf]])
def test_what_is_not_finite_is_never_ranked(values):
    with pytest.raises(CpmmdError, match="finite number under every permutation"):
        Ranking.of(np.array(values), tolerance=0.0, exhaustive=False)


@pytest.mark.parametrize("method", QUICK)
@pytest.mark.parametrize("size", [1e-308, 1e-27, 1e300], ids=str)
def test_units_at_the_ends_of_double_precision_change_no_answer(method, size):
    ordinary = two_sample_test(X, Y, method=method, rng=0, n_permutations=99)
    extreme = two_sample_test(X * size, Y * size, method=method, rng=0, n_permutations=99)
    if method.endswith("polynomial"):  # a lift depends on the unit: all that is asked is an answer
        assert 0 < extreme.pvalue <= 1
    else:
        assert extreme.reject == ordinary.reject


@pytest.mark.parametrize("method", [method for method in QUICK if method != "cp-full"])
@pytest.mark.parametrize("size", [1e200], ids=str)
def test_standardised_columns_do_not_overflow(method, size):
    ordinary = two_sample_test(X, Y, method=method, scale="standard", rng=0, n_permutations=99)
    extreme = two_sample_test(X * size, Y * size, method=method, scale="standard", rng=0, n_permutations=99)
    assert extreme.pvalue == pytest.approx(ordinary.pvalue, abs=0.02)


@pytest.mark.parametrize("method", QUICK)
def test_nulls_of_denormal_numbers_are_not_rejected(method):
    # 20 nulls of exp(N(-744, 1)), hardly a digit each: 6 rejections at .05 happen once in 3000.
    rejections = 0
    for seed in range(20):
        rng = np.random.default_rng(seed)
        x, y = (np.exp(rng.normal(-744, 1, size=(30, 2))) for _ in range(2))
        try:
            result = two_sample_test(x, y, method=method, rng=0, n_permutations=99)
        except CpmmdError:
            continue
        assert result.pvalue > 0
        rejections += result.reject
    assert rejections < 6


@pytest.mark.parametrize("method", QUICK)
def test_denormal_numbers_beside_a_constant_get_an_answer(method):
    x, y = (np.column_stack([rows[:, 0] * 1e-310, np.full(40, 7.5)]) for rows in (X, Y))
    assert 0 < two_sample_test(x, y, method=method, rng=0, n_permutations=39).pvalue <= 1


def test_one_wild_value_keeps_its_sentence():
    x = X.copy()
    x[3, 1] = 1e200
    with pytest.raises(CpmmdError, match="overflow"):
        two_sample_test(x, Y, method="median", rng=0)


def test_a_kernel_matrix_whose_sums_overflow_is_refused():
    with pytest.raises(CpmmdError, match="below 1e"):
        kernel_matrix_test(np.full((20, 20), 1.7e308), 10, rng=0)


def test_mmdaggs_grid_is_the_authors_from_distances_of_one_on():
    cross = np.abs(DATA.normal(size=1000)) + 0.01
    low = max(np.sort(cross)[50], 0.1)
    assert bandwidth_grid(cross, 10)[0] == pytest.approx(low / 2)
    np.testing.assert_allclose(bandwidth_grid(cross * 1e-27, 10), bandwidth_grid(cross / cross.max(), 10) * cross.max() * 1e-27)
    assert two_sample_test(X * 1e-27, Y * 1e-27, method=MMDAgg(), rng=0).reject


@pytest.mark.parametrize("sizes", [(1e120, 1e-120), (1.0, 1e-170), (1e250, 1.0)], ids=str)
@pytest.mark.parametrize("method", ["cp-full", "median", "mmdagg", "mmdfuse", "energy"])
@pytest.mark.filterwarnings("error")
def test_each_standardised_column_has_a_unit_of_its_own(method, sizes):
    x, y = DATA.normal(size=(60, 2)) * sizes, DATA.normal((0, 2), 1, size=(60, 2)) * sizes
    scale = {} if method == "cp-full" else {"scale": "standard"}
    assert two_sample_test(x, y, method=method, rng=0, n_permutations=99, **scale).reject


@pytest.mark.statistical
def test_three_rows_of_100_000_columns_take_less_than_a_minute_from_file_to_explanation(tmp_path):
    data, columns = np.random.default_rng(0), 100_000
    for name in ("a.csv", "b.csv"):
        lines = [
            ",".join(f"c{i}" for i in range(columns)),
            *(",".join(f"{v:.6f}" for v in data.normal(size=columns)) for _ in "123"),
        ]
        (tmp_path / name).write_text("\n".join(lines))
    began = time.process_time()
    explanation = two_sample_test(tmp_path / "a.csv", tmp_path / "b.csv", alpha=0.2, rng=0).explain()
    assert len(explanation.columns) == columns
    assert str(explanation)
    assert time.process_time() - began < 60
