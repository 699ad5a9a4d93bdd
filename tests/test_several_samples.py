"""Three tables are matched, checked, stacked and laid out as by hand."""

import numpy as np
import pandas as pd
import pytest

from cpmmd.data.design import DesignOptions
from cpmmd.data.notices import block_length
from cpmmd.data.pool import Pool, read_samples, take_rows
from cpmmd.data.preparation import Preparation
from cpmmd.errors import InputError

A = pd.DataFrame({"a": [1.0, 2.0, np.nan, 4.0], "c": ["u", "v", "u", None], "k": [1, 2, 3, 4], "site": list("pqpq")})
B = pd.DataFrame({"k": [5, 6], "site": ["q", "p"], "c": ["w", "u"], "a": [5.0, 6.0]})
C = pd.DataFrame({"c": ["v", None, "w"], "a": [7.0, 8.0, 9.0], "site": ["p", "q", "r"], "k": [7.5, 8.0, 9.0]})
SAMPLES = {"a": A, "b": B, "c": C}
EVERY = pd.concat([A, B, C], ignore_index=True)


def plain(series):
    return [None if pd.isna(value) else value for value in series]


def assert_holds(pool: Pool, frame: pd.DataFrame, sizes, kept=None):
    assert pool.sizes == sizes
    assert pool.number_names == ("a", "k")
    np.testing.assert_array_equal(np.asarray(pool.numbers), frame[["a", "k"]].to_numpy())
    np.testing.assert_array_equal(pool.numbers[:, 0], frame["a"].to_numpy())
    assert list(pool.categories["c"]) == plain(frame["c"])
    assert (pool.kept is None) if kept is None else pool.kept.tolist() == kept


def test_three_tables_are_stacked():
    pool = read_samples({name: frame.drop(columns="site") for name, frame in SAMPLES.items()}, missing="impute")
    assert_holds(pool, EVERY, (4, 2, 3))
    assert pool.kinds == {}  # whole numbers in two of three
    with pytest.raises(ValueError, match="too many values"):
        _ = pool.m  # x and y are two
    np.testing.assert_array_equal(pool.numbers[[8, 0, 5]], EVERY[["a", "k"]].to_numpy()[[8, 0, 5]])
    matrix = Preparation.fit(pool).transform(pool)
    assert matrix[:, 0].tolist() == EVERY["a"].fillna(EVERY["a"].median()).tolist()
    assert_holds(take_rows(pool, np.array([1, 3, 6, 7, 8])), EVERY.iloc[[1, 3, 6, 7, 8]], (2, 0, 3), kept=[1, 3, 0, 1, 2])


def test_rows_with_missing_values_are_dropped_from_each():
    pool = read_samples({name: frame.drop(columns="site") for name, frame in SAMPLES.items()}, missing="drop")
    assert_holds(pool, EVERY.drop(columns="site").dropna(), (2, 2, 2), kept=[0, 1, 0, 1, 0, 2])
    assert pool.notes[:2] == (
        "2 of 4 rows of sample a dropped for missing values",
        "1 of 3 rows of sample c dropped for missing values",
    )
    found = r"1 in 'a' of sample a, 1 in 'c' of sample a, 1 in 'c' of sample c, the first in row 2 of sample a"
    with pytest.raises(InputError, match=found):
        read_samples({name: frame.drop(columns="site") for name, frame in SAMPLES.items()})


def test_a_stratum_of_one_sample_is_left_out():
    pool = read_samples(SAMPLES, missing="impute", design=DesignOptions(strata="site"))
    assert_holds(pool, EVERY.iloc[:8], (4, 2, 2), kept=[0, 1, 2, 3, 0, 1, 0, 1])
    assert pool.notes == ("1 stratum with rows of one sample only left out: 'r' (rows of each sample: 0, 0, 1)",)
    assert pool.design.units == pool.design.rows == (4, 2, 2)
    assert pool.design.strata.tolist() == [0, 1, 0, 1, 1, 0, 0, 1]
    assert str(pool.design) == "4 v 2 v 2 rows in 2 strata"
    assert pool.design.take(np.array([0, 1, 4, 5, 6]), 2, 2).rows == (2, 2, 1)


def test_groups_pairs_and_blocks_of_three():
    rows = {name: np.arange(6.0)[:, None] + shift for name, shift in (("a", 0), ("b", 0.5), ("c", 0.25))}
    groups = [np.repeat([0, 1, 2], 2), np.repeat([3, 4, 5], 2), np.repeat([6, 7, 8], 2)]
    design = read_samples(rows, design=DesignOptions(groups=groups)).design
    assert (str(design), design.units) == ("3 v 3 v 3 groups, 6 v 6 v 6 rows", (3, 3, 3))
    design = read_samples(rows, design=DesignOptions(blocks=3)).design
    assert design.unit.tolist() == np.repeat(np.arange(6), 3).tolist()
    people = [np.arange(6)] * 3
    design = read_samples(rows, design=DesignOptions(pairs=people)).design
    assert str(design) == "6 pairs"
    assert [units.tolist() for units in design.by_stratum()] == [[i, 6 + i, 12 + i] for i in range(6)]
    rows["b"][1], rows["c"][4] = np.nan, np.nan  # these pairs are left out everywhere
    pool = read_samples(rows, missing="drop", design=DesignOptions(pairs=people))
    assert (pool.sizes, pool.kept.tolist()) == ((4, 4, 4), [0, 2, 3, 5] * 3)
    with pytest.raises(InputError, match="or 3 arrays, one for each"):
        read_samples(rows, missing="drop", design=DesignOptions(pairs=people[:2]))
    with pytest.raises(InputError, match=r"Each group must belong to one sample.* in several: '2'"):
        read_samples({name: frame[2:4] for name, frame in rows.items()}, design=DesignOptions(groups=[[1, 1], [2, 2], [2, 2]]))


def test_what_does_not_match_is_named():
    with pytest.raises(InputError, match=r"All samples must have the same columns. Got 4 in sample a and 3 in sample c"):
        read_samples({**SAMPLES, "c": C.drop(columns="k")}, missing="drop")
    with pytest.raises(
        InputError,
        match=r"one kind in all samples, numbers, dates or text. Column 'k' holds numbers in sample a and text in sample b",
    ):
        read_samples({**SAMPLES, "b": B.assign(k=["x", "y"])}, missing="drop")
    with pytest.raises(InputError, match="All samples must have rows of one shape"):
        read_samples({"a": np.ones((3, 4)), "b": np.ones((3, 4)), "c": np.ones((3, 2, 2))})


def test_notices_look_into_every_sample():
    rng = np.random.default_rng(0)
    walks = {name: rng.normal(size=(300, 1)).cumsum(axis=0) for name in "abc"}
    pool = read_samples(walks)
    assert any("rows depend on each other" in note for note in pool.notes)
    assert block_length(pool).rows > 20
    names = {s: pd.DataFrame({"v": rng.normal(size=40), "who": np.repeat([f"{s}{i}" for i in range(10)], 4)}) for s in "abc"}
    assert any(
        "its 10, 10 and 10 values repeat within a sample and never occur in two samples" in note
        for note in read_samples(names).notes
    )
