"""Many tests at once find one difference among them; and what cannot reject says so."""

import numpy as np
import pandas as pd
import pytest

from commands import run
from cpmmd import DriftDetector, MMDAgg, SplitTest, kernel_matrix_test, run_many, two_sample_test
from cpmmd.errors import InputError
from helpers import assert_level, written

RNG = np.random.default_rng(3)


def quiet(rng, rows=30):
    return rng.normal(size=(rows, 2))


@pytest.mark.parametrize("count", [61, 200])
def test_one_shifted_pair_among_many_is_found(count):
    rng = np.random.default_rng(count)
    tests = {f"t{i}": (quiet(rng), quiet(rng) + (3.0 if i == 7 else 0.0)) for i in range(count)}
    found = run_many(tests, method="median", rng=0)
    assert "t7" in found.rejected  # beside it a false one in ten calls, as a false discovery rate of .05 has it
    assert len(found.rejected) <= 2
    spent = sum(result.n_permutations for result in found.results.values())
    assert spent <= 2.5 * 999 * count  # only the small p-values run on
    assert found.results["t7"].n_permutations >= count / 0.05 - 1


def test_p_values_that_ran_on_are_valid():
    # 600 nulls in one call: those with p <= .05 run on; the mixture of both must still be at most uniform at every level.
    rng = np.random.default_rng(5)
    tests = {str(i): (quiet(rng, 12), quiet(rng, 14)) for i in range(600)}
    found = run_many(tests, method="median", rng=1, n_permutations=99)
    pvalues = np.array([result.pvalue for result in found.results.values()])
    assert any(result.n_permutations > 99 for result in found.results.values())
    assert_level(pvalues, (0.01, 0.05, 0.1, 0.25, 0.5))
    assert len(found.rejected) <= 1


def test_names_that_are_the_same_text_are_refused():
    with pytest.raises(InputError, match="'1' more than once"):
        run_many({1: (quiet(RNG), quiet(RNG)), "1": (quiet(RNG), quiet(RNG))}, rng=0)
    with pytest.raises(TypeError, match="n_permutation"):
        run_many({"a": (quiet(RNG), quiet(RNG))}, n_permutation=99)


def csv(rows):
    return "a,b\n" + "\n".join(",".join(map(repr, map(float, row))) for row in rows) + "\n"


@pytest.fixture
def detector(tmp_path):
    written(tmp_path, "ref.csv", csv(np.random.default_rng(0).normal(size=(120, 2))))
    assert run("fit", tmp_path / "ref.csv", "-o", tmp_path / "d.cpmmd", "--method", "median", "--seed", 0).exit_code == 0
    return tmp_path / "d.cpmmd"


def test_one_drifted_batch_among_61_is_found_and_stays_found(detector, tmp_path):
    rng = np.random.default_rng(9)
    batches = [written(tmp_path, f"b{i}.csv", csv(quiet(rng, 40) + (3.0 if i == 30 else 0.0))) for i in range(61)]
    history = tmp_path / "h.sqlite"
    first = run("check", detector, *batches, "--history", history)
    assert first.exit_code == 1
    assert "1 of 61 batches differs" in first.stdout
    again = run("check", detector, *batches, "--history", history)  # asking again is the same answer
    assert again.exit_code == 1
    assert "1 of 61 batches differs" in again.stdout
    assert run("check", detector, *batches[:5], "--history", history).exit_code == 0


def test_standard_input_is_tested_again_though_it_is_read_once(tmp_path):
    rng = np.random.default_rng(0)
    reference, *files = (written(tmp_path, f"{i}.csv", csv(quiet(rng))) for i in range(3))
    run("fit", reference, "-o", tmp_path / "d.cpmmd", "--method", "median", "--permutations", 19, "--seed", 0)
    detector = DriftDetector.load(tmp_path / "d.cpmmd")
    drawn = (pd.DataFrame(quiet(rng) + 0.3, columns=["a", "b"]) for _ in range(50))
    batch = next(rows for rows in drawn if 0.05 < detector.test(rows).pvalue <= 0.2)  # above the detector's level, not above ours
    found = run("check", tmp_path / "d.cpmmd", "-", *files, "--alpha", 0.2, stdin=csv(batch.to_numpy()))
    assert found.exit_code < 2, found.stderr


def test_groups_of_a_file_are_found_among_sixty(tmp_path):
    rng = np.random.default_rng(11)
    lines = [f"g{i:02d},{v!r}" for i in range(60) for v in map(float, rng.normal(3.0 if i == 12 else 0.0, 1, size=20))]
    file = written(tmp_path, "groups.csv", "group,value\n" + "\n".join(lines) + "\n")
    found = run("test", file, "--split-by", "group", "--method", "median", "--seed", 0)
    assert found.exit_code == 1
    assert "1 of 60 groups" in found.stdout


@pytest.mark.parametrize("alpha", ["nan", "-1", "5"])
def test_a_level_that_is_none_is_refused(detector, tmp_path, alpha):
    batch = written(tmp_path, "b.csv", csv(quiet(RNG, 40)))
    result = run("check", detector, batch, "--alpha", alpha)
    assert result.exit_code == 2
    assert "--alpha" in result.stderr


def test_an_unreadable_batch_hides_no_difference(detector, tmp_path):
    drifted, broken = written(tmp_path, "new.csv", csv(quiet(RNG, 40) + 3.0)), written(tmp_path, "bad.csv", "a,b\n1,x\n")
    result = run("check", detector, drifted, broken)
    assert result.exit_code == 2
    assert "1 of 1 batch differs" in result.stdout
    assert "1 batch could not be tested: 'bad.csv'" in result.stdout


POWERLESS = {
    "3 v 3 rows": lambda: two_sample_test(RNG.normal(size=(3, 2)), RNG.normal(9, 1, size=(3, 2)), rng=0),
    "cp-linear at 7 v 7": lambda: two_sample_test(
        RNG.normal(size=(7, 2)), RNG.normal(9, 1, size=(7, 2)), method="cp-linear", rng=0
    ),
    "MMDAgg at 5 v 5": lambda: two_sample_test(RNG.normal(size=(5, 2)), RNG.normal(9, 1, size=(5, 2)), method=MMDAgg(), rng=0),
    "MMDAgg at 2 v 3": lambda: two_sample_test(RNG.normal(size=(2, 2)), RNG.normal(9, 1, size=(3, 2)), method="mmdagg", rng=0),
    "MMD-FUSE at 3 v 3": lambda: two_sample_test(RNG.normal(size=(3, 2)), RNG.normal(9, 1, size=(3, 2)), method="mmdfuse", rng=0),
    "a kernel matrix of 3 v 3": lambda: kernel_matrix_test(np.kron(np.eye(2), np.ones((3, 3))) + np.eye(6), 3, rng=0),
    "three splits": lambda: two_sample_test(
        quiet(RNG, 60), quiet(RNG, 60) + 9, method=SplitTest(n_splits=3), n_permutations=19, rng=0
    ),
}


@pytest.mark.parametrize("case", POWERLESS)
def test_what_cannot_reject_says_so(case):
    result = POWERLESS[case]()
    assert not result.reject
    powerless = "can reject only through Monte Carlo error" if "MMDAgg" in case else "cannot reject"
    assert any(powerless in note for note in result.notes)


@pytest.mark.parametrize("rows", [5, 20])
def test_what_can_reject_says_nothing(rows):
    result = two_sample_test(RNG.normal(size=(rows, 2)), RNG.normal(9, 1, size=(rows, 2)), rng=0)
    assert not any("cannot reject" in note for note in result.notes)
    assert result.reject


def test_what_is_said_of_few_drawn_signs_is_true_where_they_come_out_luckily():
    x, y = RNG.normal(size=(5, 2)), RNG.normal(9, 1, size=(5, 2))
    results = [two_sample_test(x, y, method="mmdagg", alpha=0.06, n_permutations=99, rng=seed) for seed in range(20)]
    assert any(result.reject for result in results)  # 16 sign changes exist, and 99 draws may hold the observed one seldom
    assert all("only through Monte Carlo error" in result.notes[-1] for result in results)


def test_many_tests_of_few_rows_say_that_none_of_them_can_differ_alone():
    rng = np.random.default_rng(0)
    tests = {f"t{i}": (rng.normal(size=(5, 2)), rng.normal(size=(5, 2)) + 9.0 * (i == 3)) for i in range(60)}
    few = run_many(tests, method="median", rng=0)
    assert "too few rows to be significant after adjustment among 60 tests" in str(few)
    assert few.to_dict()["notes"] == list(few.notes) != []
    assert run_many({"one": tests["t3"]}, method="median", rng=0).notes == ()
