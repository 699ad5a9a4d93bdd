"""Products of columns: chosen without labels, exact, and heard where columns and pairs of them are silent."""

from itertools import combinations

import numpy as np
import pandas as pd
import pytest
from scipy import special, stats

from cpmmd import ColumnsClass, FullSampleTest, ProductsClass, two_sample_test
from cpmmd.data.pool import read_pool
from cpmmd.data.preparation import Preparation
from cpmmd.draws.layout import Layout
from cpmmd.engines.columns import column_sums
from cpmmd.evidence import tail_scores
from cpmmd.procedures.classes import default_classes
from cpmmd.statistics import products
from cpmmd.statistics.products import CHOSEN, chosen_products

PRODUCTS = FullSampleTest(classes=(ProductsClass(),))


def normal_scores(columns):
    """Return normal scores of pooled ranks, a column each, of mean 0 and deviation 1."""
    scores = special.ndtri((stats.rankdata(columns, axis=0) - 0.5) / len(columns))
    return (scores - scores.mean(axis=0)) / scores.std(axis=0)


def naive_choice(columns):
    """Return the chosen products, each by its definition: mean over standard error, every two and every three columns."""
    chosen = set()
    for size in (2, 3):
        strength = {}
        for places in combinations(range(len(columns)), size):
            values = np.prod(columns[list(places)].astype(float), axis=0)
            strength[places] = abs(values.mean()) / values.std()
        chosen |= set(sorted(strength, key=strength.get)[-CHOSEN:])
    return chosen


@pytest.mark.parametrize("count", [2, 5, 13])
def test_the_products_furthest_from_zero_are_chosen(count):
    columns = np.random.default_rng(count).normal(size=(count, 60)).astype(np.float32)
    found = {tuple(place for place in row if place >= 0) for row in chosen_products(columns).tolist()}
    assert found == naive_choice(columns)


def test_the_choice_is_the_same_however_many_rows_are_in_work(monkeypatch):
    columns = np.random.default_rng(1).normal(size=(9, 700)).astype(np.float32)
    before = chosen_products(columns)
    monkeypatch.setattr(products, "ROOM", 2000)
    assert np.array_equal(chosen_products(columns), before)


def test_the_score_is_that_of_squared_differences_of_means():
    """Against a loop over labelings, each row a unit."""
    rng = np.random.default_rng(2)
    x, y = rng.normal(size=(2, 20, 4))
    pool = read_pool(x, y)
    layout = Layout.cut(20, 20, None, rng).draw(60, rng)
    found = column_sums(pool, Preparation.fit(pool), layout, products=True).products
    scores = normal_scores(np.asarray(pool.numbers)[layout.rows])
    squares = []
    for size in (2, 3):
        for places in combinations(range(4), size):
            values = np.prod(scores[:, places], axis=1)
            values = np.clip(values - values.mean(), -4 * values.std(), 4 * values.std())
            means = [(values[w].mean() - values[~w].mean()) ** 2 for w in layout.labels.array() > 0.5]
            squares.append(means)
    naive = tail_scores(tail_scores(np.array(squares)).max(axis=0)[None])[0]
    np.testing.assert_allclose(found, naive, rtol=1e-4)  # columns are held in single precision


def interaction(rng, rows, strength):
    """Return two samples with the same columns and pairs of columns; in the second, two columns drive a third."""
    x, y = rng.normal(size=(2, rows, 6))
    y[:, 2] = strength * y[:, 0] * y[:, 1] + np.sqrt(1 - strength**2) * y[:, 2]
    return x, y


def test_an_interaction_is_found_that_columns_do_not_show():
    found = {"products": 0, "columns": 0}
    for seed in range(10):
        x, y = interaction(np.random.default_rng(seed), 300, 0.5)
        settings = {"n_permutations": 199, "rng": seed}
        found["products"] += two_sample_test(x, y, method=PRODUCTS, **settings).reject
        found["columns"] += two_sample_test(x, y, method=FullSampleTest(classes=(ColumnsClass(),)), **settings).reject
    assert found["products"] >= 8
    assert found["columns"] <= 4


def test_the_result_names_the_class():
    x, y = interaction(np.random.default_rng(0), 300, 0.5)
    result = two_sample_test(x, y, method=PRODUCTS, rng=0)
    assert result.statistic_class is not None
    assert result.statistic_class.label == "product of columns"
    assert result.kernel is None


@pytest.mark.parametrize("columns", [1, 3])
def test_tables_without_numbers_have_nothing_to_multiply(columns):
    rng = np.random.default_rng(4)
    x, y = ({f"c{i}": rng.choice(["a", "b", "c"], 30).tolist() for i in range(columns)} for _ in "xy")
    assert two_sample_test(pd.DataFrame(x), pd.DataFrame(y), method=PRODUCTS, n_permutations=19, rng=0).pvalue == 1.0


def test_the_default_multiplies_where_there_are_some_columns():
    assert [any(isinstance(one, ProductsClass) for one in default_classes(count)) for count in (2, 3, 64, 65)] == [
        False,
        True,
        True,
        False,
    ]


def test_a_product_that_does_not_vary_says_nothing():
    flag = np.arange(40) % 2
    x, y = (pd.DataFrame({"flag": flag, "not": 1 - flag}) for _ in "xy")
    assert two_sample_test(x, y, method=PRODUCTS, n_permutations=19, rng=0).pvalue == 1.0
