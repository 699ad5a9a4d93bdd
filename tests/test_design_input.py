"""Designs that cannot be: each its sentence, and exit code 2 on the command line."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from commands import QUICK, document, run
from cpmmd import CpmmdError, DriftDetector, kernel_matrix_test, power_from_pilot, power_study, run_many, two_sample_test
from cpmmd.errors import InputError

RNG = np.random.default_rng(5)


def _frame(groups, sites=None):
    groups = np.asarray(groups)
    values = {"patient": groups, "a": RNG.normal(size=len(groups)), "b": RNG.normal(size=len(groups))}
    return pd.DataFrame(values if sites is None else {**values, "site": sites})


X, Y = _frame(np.repeat(np.arange(8), 4)), _frame(np.repeat(np.arange(10, 19), 3))
ROWS_X, ROWS_Y = RNG.normal(size=(32, 2)), RNG.normal(size=(27, 2))


@pytest.mark.parametrize(
    ("given", "words"),
    [
        ({"groups": (np.arange(31), np.arange(27))}, "Got 31 for the 32 rows of sample x"),
        ({"groups": (np.repeat([0, 1], 16), np.ones(27, int))}, r"1 is in both: '1'\. If the same groups were observed twice"),
        (
            {"groups": (np.r_[np.nan, np.arange(31.0)], np.arange(40.0, 67.0))},
            "missing in 1 row of sample x, first in row 0",
        ),
        ({"pairs": (np.arange(32), np.arange(27))}, "5 are in one only: '27', '28'"),
        ({"strata": (np.arange(32), np.arange(40, 67))}, "All 59 strata have rows of one sample only"),
        ({"groups": (np.repeat([0, 1], 16), 2 + np.arange(27) // 14)}, "2 v 2 groups have 6 permutations.*At least 4 v 4 groups"),
        ({"pairs": (np.arange(32) // 8, np.arange(27) // 7)}, "4 pairs have 16 permutations.*At least 6 pairs"),
        ({"groups": "patient"}, "names a column, 'patient', but sample x is an array"),
        ({"groups": np.arange(32)}, "must be the name of a column of both samples, or a pair of arrays"),
        ({"blocks": 0}, "must be a whole number, at least 1"),
        ({"blocks": "some"}, "must be a number of rows or 'auto'"),
        ({"blocks": 4, "groups": (np.arange(32), np.arange(40, 67))}, "blocks are groups of consecutive rows"),
        ({"pairs": (np.arange(32), np.arange(27)), "strata": (np.arange(32), np.arange(27))}, "each pair is a stratum already"),
        (
            {
                "groups": (np.repeat(np.arange(8), 4), np.repeat(np.arange(10, 19), 3)),
                "strata": (np.arange(32) % 2, np.arange(27) % 2),
            },
            "Each group must belong to one stratum. 17 are in more than one stratum",
        ),
    ],
)
def test_each_mistake_has_its_sentence(given, words):
    with pytest.raises(InputError, match=words):
        two_sample_test(ROWS_X, ROWS_Y, method="median", rng=0, **given)


def test_a_column_of_names_is_no_stratum():
    rows, many = RNG.normal(size=(20_000, 1)), np.tile(np.arange(10_000), 2)
    with pytest.raises(InputError, match=r"at most 1000 strata.* Got 10000"):
        two_sample_test(rows, rows, method="median", strata=(many, many), rng=0)


def test_a_column_that_is_not_there_is_named():
    with pytest.raises(CpmmdError, match=r"'patients'\. Did you mean 'patient'"):
        two_sample_test(X, Y, groups="patients", rng=0)
    with pytest.raises(InputError, match="There must be a column to compare"):
        two_sample_test(X[["patient"]], Y[["patient"]], groups="patient", rng=0)


def test_missing_groups_are_refused_even_where_missing_values_are_dropped():
    broken = X.assign(patient=X["patient"].where(X["patient"] > 0))
    with pytest.raises(InputError, match="missing in 4 rows of sample x"):
        two_sample_test(broken, Y, groups="patient", missing="drop", rng=0)


def test_rows_dropped_for_missing_values_leave_their_groups():
    broken = X.assign(a=X["a"].where(X["patient"] != 3))
    result = two_sample_test(broken, Y, groups="patient", missing="drop", method="median", rng=0)
    assert str(result.design) == "7 v 9 groups cut to 3 rows, 21 v 27 rows"
    assert result.n_columns == 2


def test_a_stratum_of_one_sample_is_left_out_and_reported():
    x, y = X.assign(site=np.arange(32) % 3), Y.assign(site=1 + np.arange(27) % 3)
    result = two_sample_test(x, y, strata="site", groups=None, method="median", rng=0)
    assert any("2 strata with rows of one sample only left out: '0', '3'" in note for note in result.notes)
    assert result.sizes == (21, 18)
    assert result.design.n_strata == 2
    assert set(x["site"].to_numpy()[result.evidence.pool.kept[:21]]) == {1, 2}


def test_text_numbers_and_order_of_groups_do_not_matter():
    """Names are names: what they are and how rows are sorted changes nothing but the draw."""
    named = [frame.assign(patient=[f"p{v}" for v in frame["patient"]]) for frame in (X, Y)]
    values = [two_sample_test(*pair, groups="patient", method="median", rng=0).statistic for pair in ((X, Y), named)]
    whole = {"groups": "patient", "group_sizes": "keep", "method": "median", "rng": 0}
    shuffled = [two_sample_test(frame, Y, **whole).statistic for frame in (X, X.sample(frac=1, random_state=1))]
    assert values[0] == pytest.approx(values[1], abs=1e-12)
    assert shuffled[1] == pytest.approx(shuffled[0], abs=1e-12)


def test_a_split_keeps_groups_and_pairs_whole():
    result = two_sample_test(X, Y, groups="patient", group_sizes="keep", method="cp-linear", rng=0)
    group = np.concatenate([X["patient"], Y["patient"]])
    assert not set(group[result.evidence.tested]) & set(group[result.evidence.trained])
    pairs = np.arange(32), RNG.permutation(32)
    result = two_sample_test(ROWS_X, RNG.normal(size=(32, 2)), pairs=pairs, method="cp-linear", rng=0)
    both = np.concatenate(pairs)
    assert not set(both[result.evidence.tested]) & set(both[result.evidence.trained])
    assert result.tested_sizes == (16, 16)


def test_a_split_that_leaves_too_few_units_says_so():
    few = np.repeat(np.arange(4), 8), 10 + np.arange(27) // 7
    with pytest.raises(
        InputError, match=r"2 v 2 groups \(the tested part of 4 v 4 groups cut to 6 rows, 24 v 24 rows\).*does not split"
    ):
        two_sample_test(ROWS_X, ROWS_Y, groups=few, method="cp-linear", rng=0)


def test_the_call_repeats_the_design():
    result = two_sample_test(X, Y, groups="patient", group_sizes="keep", method="median", rng=3)
    again = eval(result.call, {"two_sample_test": two_sample_test, "x": X, "y": Y})
    assert again.pvalue == result.pvalue
    assert result.to_dict()["design"]["sentence"] == "8 v 9 groups, 32 v 27 rows"
    assert ("exchangeable", "8 v 9 groups, 32 v 27 rows") in result.facts
    arrays = two_sample_test(ROWS_X, ROWS_Y, blocks=4, groups=None, method="median", rng=0)
    assert "blocks=4" in arrays.call


def test_units_hold_the_rows_of_each_group_and_its_labels():
    units = two_sample_test(X, Y, groups="patient", group_sizes="keep", rng=0, n_permutations=99).evidence.units
    labels = units.labels.array()[0] > 0
    assert units.counts[labels].tolist() == [4] * 8
    assert units.counts[~labels].tolist() == [3] * 9
    np.testing.assert_array_equal(np.repeat(labels, units.counts), units.rows < len(X))
    group = np.concatenate([X["patient"], Y["patient"]])
    assert all(len(set(part)) == 1 for part in np.split(group[units.rows], units.starts[1:]))


def test_every_entry_point_takes_the_design():
    assert run_many({"a": (X, Y)}, groups="patient", method="median", rng=0).results["a"].design.units == (8, 9)
    table = power_from_pilot(X, Y, [6, 20], groups="patient", method="median", repetitions=3, n_permutations=99, rng=0)
    assert table.unit == "groups"
    assert table.pilot == (8, 9)
    study = power_study(
        "one", generators={"g": lambda *_: (X, Y)}, methods={"m": "median"}, sizes=[8], repetitions=1, groups="patient"
    )
    assert len(study.run().rows) == 1
    K = np.exp(-np.square(np.subtract.outer(np.r_[X["a"], Y["a"]], np.r_[X["a"], Y["a"]])))
    result = kernel_matrix_test(K, 32, groups=(X["patient"], Y["patient"]), rng=0)
    assert result.design.units == (8, 9)
    with pytest.raises(InputError, match="no columns"):
        kernel_matrix_test(K, 32, groups="patient", rng=0)


def test_a_detector_keeps_its_design_in_its_file(tmp_path):
    detector = DriftDetector("median", groups="patient", rng=0).fit(X)
    found = detector.test(Y)
    detector.save(tmp_path / "d.cpmmd")
    again = DriftDetector.load(tmp_path / "d.cpmmd")
    assert found.result.design.units == (8, 9)
    assert again.test(Y).pvalue == found.pvalue
    assert again.key(Y) == found.key
    assert detector.key(Y.assign(patient=Y["patient"] // 2)) != found.key
    with pytest.raises(InputError, match="permutes rows individually"):
        DriftDetector("median", groups="patient", rng=0).fit(X, example=Y)


@pytest.mark.parametrize(
    ("flags", "words"),
    [
        (["--group-by", "site"], "2 are in both: 's0', 's1'"),
        (["--pair-by", "patient"], "17 are in one only"),
        (["--group-by", "nobody"], "Unknown column in --group-by: 'nobody'"),
        (["--blocks", "much"], "The '--blocks' option must be a number of rows or 'auto'"),
        (["--group-by", "half"], "The '--group-by' option must have a value in every row"),
    ],
)
def test_the_command_line_refuses_with_exit_code_2(tmp_path, flags, words):
    for name, frame in (("a", X), ("b", Y)):
        site = [f"s{i % 2}" for i in range(len(frame))]
        half = frame["patient"].astype(float).where(frame["a"] > 0)
        frame.assign(site=site, **({"half": half} if "half" in flags else {})).to_csv(tmp_path / f"{name}.csv", index=False)
    done = run("test", str(tmp_path / "a.csv"), str(tmp_path / "b.csv"), "--method", "median", *flags)
    assert done.exit_code == 2
    assert words in done.stderr


def test_the_command_line_says_what_was_exchangeable(tmp_path):
    for name, frame in (("a", X), ("b", Y)):
        frame.to_csv(tmp_path / f"{name}.csv", index=False)
    files = [str(tmp_path / f"{name}.csv") for name in "ab"]
    done = run("test", *files, "--method", "median", "--group-by", "patient", "--columns", "a,b", "--seed", "1")
    assert done.exit_code in (0, 1)
    assert "exchangeable 8 v 9 groups cut to 3 rows, 24 v 27 rows" in done.stdout
    assert "--group-by patient" in done.stdout
    found = document(run("test", *files, *QUICK, "--group-by", "patient", "--json"))
    assert found["result"]["design"]["units"] == [8, 9]
