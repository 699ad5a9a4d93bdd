"""Designs at their edges: strata that lose a sample, splits and ladders that leave few units, names and rows that are missing."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from commands import document, run
from cpmmd import DriftDetector, MedianTest, SplitTest, kernel_matrix_test, power_from_pilot, run_many, two_sample_test
from cpmmd.draws.layout import Layout
from cpmmd.errors import InputError

RNG = np.random.default_rng(11)
LEFT_OUT = (
    "1 stratum with rows of one sample only (except for groups in both) left out: '0' (0 rows of the first sample, 20 of the "
    "second)"
)
# Group 0 is in both samples, and all that x has of stratum 0.
GROUPS = (
    np.r_[np.repeat(0, 5), np.repeat(np.arange(10, 18), 5)],
    np.r_[np.repeat(np.arange(5), 5), np.repeat(np.arange(20, 28), 5)],
)
STRATA = tuple((group >= 10).astype(int) for group in GROUPS)
X, Y = RNG.normal(size=(45, 2)), RNG.normal(size=(65, 2))


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["mmdagg", "median", "cp-full", "mmdfuse", "energy"])
def test_a_stratum_whose_only_unit_of_a_sample_is_in_both_is_left_out(method):
    result = two_sample_test(X, Y + 100, groups=GROUPS, strata=STRATA, method=method, rng=0)
    assert LEFT_OUT in result.notes
    assert str(result.design) == "9 v 9 groups in 2 strata, 45 v 45 rows"
    assert result.pvalue < 0.01
    kept = ~np.isin(GROUPS[1], [1, 2, 3, 4])
    groups, strata = (GROUPS[0], GROUPS[1][kept]), (STRATA[0], STRATA[1][kept])
    by_hand = two_sample_test(X, Y[kept] + 100, groups=groups, strata=strata, method=method, rng=0)
    assert (by_hand.statistic, by_hand.pvalue) == (result.statistic, result.pvalue)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("method", ["mmdagg", "median", "mmdfuse", "energy"])
def test_strata_may_leave_one_row_of_a_sample(method):
    """The one row is far from all others: the smallest p-value of 41 relabelings."""
    strata = np.r_[0, np.ones(4, int)], np.zeros(40, int)
    result = two_sample_test(X[:5] + 9, Y[:40], strata=strata, method=method, rng=0)
    assert result.tested_sizes == (1, 40)
    assert result.pvalue == pytest.approx(1 / 41, abs=0.01)  # mmdagg draws its relabelings


def test_a_kernel_matrix_names_the_stratum_to_take_out():
    with pytest.raises(InputError, match=r"rows of one sample only \(except for groups in both\) left out: '0'"):
        kernel_matrix_test(np.eye(110), 45, groups=GROUPS, strata=STRATA, rng=0)


def test_weights_of_a_stratum_of_one_sample_are_refused():
    with pytest.raises(InputError, match="Each stratum must have units of both samples"):
        Layout(np.arange(5), np.arange(5), (3, 2), np.array([0, 0, 0, 1, 1]))


@pytest.mark.parametrize(
    ("method", "needed"),
    # 4 v 4 tested groups have 2/70 < 0.05; 5 v 5 have 2/252, which twice the median of several splits takes.
    [("cp-linear", 8), (MedianTest(split=True), 8), (SplitTest(train_fraction=0.25), 5), (SplitTest(n_splits=3), 9)],
)
def test_a_split_names_as_many_groups_as_it_takes(method, needed):
    """What is named is enough, and one group less is not."""
    for count in (4, needed - 1, needed):
        rows = RNG.normal(size=(2, 3 * count, 2))
        how = {"groups": tuple(np.repeat(first + np.arange(count), 3) for first in (0, 100)), "method": method, "rng": 0}
        if count == needed:
            assert two_sample_test(*rows, **how).design.units == (needed, needed)
            continue
        with pytest.raises(InputError, match=f"At least {needed} v {needed} groups are needed"):
            two_sample_test(*rows, **how)


def test_one_training_row_of_a_sample_is_not_enough():
    groups = np.arange(5), 100 + np.arange(5)
    with pytest.raises(InputError, match=r"at least 2 training rows of each sample. 5 v 5 groups.* leave 1 and 1"):
        two_sample_test(X[:5], Y[:5], groups=groups, method=SplitTest(train_fraction=0.25), rng=0)


def test_a_split_names_as_many_pairs_as_it_takes():
    with pytest.raises(InputError, match="At least 12 pairs are needed"):
        two_sample_test(X[:11], Y[:11], pairs=(np.arange(11),) * 2, method="cp-linear", rng=0)
    assert two_sample_test(X[:12], Y[:12], pairs=(np.arange(12),) * 2, method="cp-linear", rng=0).tested_sizes == (6, 6)


def _pilot(count, shift, first=0):
    of = first + np.repeat(np.arange(count), 2)
    return pd.DataFrame({"g": of, "s": of % 4, "id": np.arange(2 * count), "a": shift + RNG.normal(size=2 * count)})


@pytest.mark.parametrize(
    ("sizes", "design"),
    [([20], {"groups": "g"}), ([20], {"groups": "g", "strata": "s"}), ([20, 100], {"pairs": "id"})],
)
def test_a_pilot_is_not_cut_below_what_a_split_can_reject_with(sizes, design):
    few = {"repetitions": 3, "n_permutations": 99, "rng": 0, "method": "plain-linear"}
    named = {"g", "s", "id"} & set(design.values())
    x, y = (frame[[*named, "a"]] for frame in (_pilot(30, 0.0), _pilot(30, 1.0, first=0 if "pairs" in design else 100)))
    table = power_from_pilot(x, y, sizes, **design, **few)
    assert [row.size for row in table.rows] == sizes
    assert table.rows[0].repetitions == 3


def test_sizes_that_were_asked_for_and_cannot_reject_are_refused():
    with pytest.raises(InputError, match="At least 8 v 8 groups are needed"):
        power_from_pilot(_pilot(30, 0.0)[["g", "a"]], _pilot(30, 1.0, 100)[["g", "a"]], [6], groups="g", method="plain-linear")


@pytest.mark.parametrize("name", ["groups", "strata", "pairs"])
@pytest.mark.parametrize("gap", [np.nan, None, pd.NA, "masked"])
def test_names_that_are_missing_from_plain_lists_are_refused(name, gap):
    names = [f"p{i}" for i in range(45)]
    masked = isinstance(gap, str)
    first = np.ma.array(names, mask=np.arange(45) == 3) if masked else [*names[:3], gap, *names[4:]]
    with pytest.raises(InputError, match="missing in 1 row of sample x, first in row 3"):
        two_sample_test(X, X, method="median", rng=0, **{name: (first, names)})


def test_dates_beside_numbers_are_refused_and_dates_are_named_as_such():
    days = pd.date_range("2024-01-01", periods=45)
    with pytest.raises(InputError, match=r"'groups' parameter must have the same type in both samples. Got datetime64"):
        two_sample_test(X, Y[:45], groups=(days, np.arange(45)), method="median", rng=0)
    with pytest.raises(InputError, match="2 are in one only: '2024-01-01T"):
        two_sample_test(X, Y[:45], pairs=(days, days.shift(1)), method="median", rng=0)


def _in_pairs(rows=30):
    x = pd.DataFrame({"id": np.arange(rows), "a": RNG.normal(size=rows), "b": RNG.normal(size=rows)})
    y = x.assign(a=RNG.normal(size=rows), b=RNG.normal(size=rows))
    return x, y.iloc[RNG.permutation(rows)]


def test_a_pair_with_a_missing_value_is_dropped_whole():
    x, y = _in_pairs()
    gappy_x, gappy_y = x.assign(a=x["a"].where(x["id"] != 3)), y.assign(b=y["b"].where(~y["id"].isin([3, 5, 7])))
    how = {"pairs": "id", "method": "median", "rng": 0}
    found = two_sample_test(gappy_x, gappy_y, missing="drop", **how)
    by_hand = two_sample_test(*(frame[~frame["id"].isin([3, 5, 7])] for frame in (x, y)), **how)
    assert (found.statistic, found.pvalue) == (by_hand.statistic, by_hand.pvalue)
    assert "2 pairs were left out, because their other rows had missing values" in found.notes
    assert set(x["id"].to_numpy()[found.evidence.pool.kept[:27]]) == set(range(30)) - {3, 5, 7}
    one = two_sample_test(gappy_x, y, missing="drop", **how)
    assert "1 pair was left out, because its other row had missing values" in one.notes
    batch = DriftDetector("median", pairs="id", missing="drop", rng=0).fit(x).test(gappy_y)
    assert str(batch.result.design) == "27 pairs"


def test_pairs_that_never_had_a_partner_are_refused_whatever_was_dropped():
    x, y = _in_pairs()
    gappy = x.assign(a=x["a"].where(x["id"] != 3))
    with pytest.raises(InputError, match="1 is in one only: '9'"):
        two_sample_test(gappy, y[y["id"] != 9], pairs="id", missing="drop", method="median", rng=0)
    halves = x.assign(a=x["a"].where(x["id"] < 15)), y.assign(a=y["a"].where(y["id"] >= 15))
    with pytest.raises(InputError, match="Every pair has some; try missing='impute'"):
        two_sample_test(*halves, pairs="id", missing="drop", method="median", rng=0)


def test_errors_show_their_sentence():
    (error,) = run_many({"a": (X, Y[:, :1])}, method="median", rng=0).errors.values()
    assert repr(error) == f"InputError({str(error)!r})"
    assert "{" not in repr(error)


def _files(folder):
    for name, first, rows in (("t", 0, 100), ("c", 100, 100)):
        of = first + np.repeat(np.arange(20), 5)
        values = {"load": RNG.normal(size=rows), "kind": RNG.choice(["u", "v"], rows)}
        pd.DataFrame({"patient": of, **values}).to_csv(folder / f"{name}.csv", index=False)
    return [str(folder / f"{name}.csv") for name in "tc"]


def test_no_margin_is_advised_where_rows_are_not_one_by_one(tmp_path):
    files = _files(tmp_path)
    quiet = ["--alpha", "0.01", "--method", "median", "--seed", "0", "--permutations", "99"]
    assert "--margin" in run("test", *files, "--drop", "patient", *quiet).stdout
    for design in (["--group-by", "patient"], ["--drop", "patient", "--blocks", "5"]):
        done = run("test", *files, *design, *quiet)
        assert done.exit_code == 0
        assert "No difference found" in done.stdout
        assert "--margin" not in done.stdout


def test_columns_that_say_what_belongs_together_are_not_counted(tmp_path):
    files, saved = _files(tmp_path), str(tmp_path / "d.cpmmd")
    for kind in ([], ["--monitor"]):
        fitted = run("fit", files[0], "--output", saved, "--group-by", "patient", "--method", "median", "--force", *kind)
        assert "100 reference rows, 2 columns, median" in fitted.stdout
    found = document(run("test", *files, "--group-by", "patient", "--method", "median", "--json"))
    assert found["columns"] == ["load", "kind"]


@pytest.mark.parametrize("kind", [[], ["--monitor"]])
@pytest.mark.parametrize("column", ["load", "kind"])
def test_a_batch_may_lack_every_value_of_a_column_where_they_are_imputed(tmp_path, kind, column):
    (reference, full), saved = _files(tmp_path), str(tmp_path / "d.cpmmd")
    rows = pd.read_csv(reference)
    rows.assign(load=rows["load"].where(rows["load"] > -1)).to_csv(reference, index=False)
    pd.read_csv(full).assign(**{column: None}).to_csv(tmp_path / "b.csv", index=False)
    how = ["--output", saved, "--drop", "patient", "--method", "median", "--seed", "0"]
    assert run("fit", reference, *how, "--missing", "impute", *kind).exit_code == 0
    (found,) = document(run("check", saved, str(tmp_path / "b.csv"), "--json"))["batches"]
    assert found["status"] == "tested"
    assert found["pvalue"] <= 0.01
    assert not any("converted" in note for note in found["notes"])


def test_a_batch_that_lacks_a_column_is_refused_with_what_helps(tmp_path):
    (reference, full), saved = _files(tmp_path), str(tmp_path / "d.cpmmd")
    pd.read_csv(full).assign(load=None).to_csv(tmp_path / "b.csv", index=False)
    assert run("fit", reference, "--output", saved, "--drop", "patient", "--method", "median").exit_code == 0
    for missing, words in (
        ([], "--missing impute to fill them in"),
        (["--missing", "drop"], "b.csv has 0; try --missing impute"),
    ):
        (found,) = document(run("check", saved, str(tmp_path / "b.csv"), "--json", *missing))["batches"]
        assert words in found["error"]


@pytest.mark.parametrize("method", ["median", "cp-full"])
def test_more_relabelings_than_a_float_can_count(method):
    data = np.random.default_rng(0)
    x, y = data.normal(size=(2, 700, 2))
    sites = data.integers(0, 5, size=(2, 700))
    assert two_sample_test(x, y, strata=tuple(sites), method=method, rng=0, n_permutations=99).pvalue > 0.05
