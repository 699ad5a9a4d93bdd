"""The likely mistakes of a first week: each gets a sentence that says what is wrong and what to do."""

import inspect
import pickle

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.decomposition import PCA

from commands import QUICK, document, refused, run
from cpmmd import DriftDetector, DriftMonitor, MonitorFile, equivalence_test, power_from_pilot, run_many, two_sample_test
from cpmmd.errors import CpmmdError, name_keywords

RNG = np.random.default_rng(0)
X, Y = RNG.normal(size=(60, 2)), RNG.normal(size=(50, 2))
FRAME = pd.DataFrame(X, columns=["age", "patient"])


def detector():
    return DriftDetector("median", n_permutations=99, rng=0).fit(FRAME)


def answered():
    return two_sample_test(X, Y, method="median", n_permutations=99, rng=0)


def saved(kind, tmp_path):
    kind("median", n_permutations=99, rng=0).fit(X).save(tmp_path / "file.cpmmd")
    return tmp_path / "file.cpmmd"


MISTAKES = {
    "seed": (lambda _: DriftDetector(seed=1), "DriftDetector has no parameter 'seed'. Did you mean 'rng'?"),
    "random_state": (lambda _: DriftMonitor(random_state=1), "DriftMonitor has no parameter 'random_state'. Did you mean 'rng'?"),
    "n_permutation": (lambda _: DriftMonitor(n_permutation=99), "Did you mean 'n_permutations'?"),
    "pairs of a monitor": (lambda _: DriftMonitor(pairs="id"), "DriftMonitor has no parameter 'pairs'. Known: method, alpha"),
    "one frame": (lambda _: detector().check(FRAME), "must map names to rows, such as {'monday': frame}; for a single batch"),
    "a list": (lambda _: detector().check([FRAME]), "Got 'list' instead"),
    "a path": (
        lambda _: two_sample_test("nowhere/a.csv", Y),
        "There is no file 'nowhere/a.csv'. There is no folder 'nowhere' either",
    ),
    "a URL": (
        lambda _: DriftMonitor().fit("nowhere://example.org/a.csv"),
        "'nowhere://example.org/a.csv' cannot be reached (Protocol not",
    ),
    "groups": (
        lambda _: DriftDetector(groups="pateint").fit(FRAME),
        "Unknown column in groups: 'pateint'. Did you mean 'patient'?",
    ),
    "a detector for a monitor": (
        lambda path: DriftMonitor.load(saved(DriftDetector, path)),
        "must hold a monitor. It holds a detector; name the file of a monitor.",
    ),
    "a monitor for a detector": (
        lambda path: DriftDetector.load(saved(DriftMonitor, path)),
        "must hold a detector. It holds a monitor; name the file of a detector.",
    ),
    "seed of a test": (lambda _: two_sample_test(X, Y, seed=1), "two_sample_test has no parameter 'seed'. Did you mean 'rng'?"),
    "p_value": (lambda _: answered().p_value, "TestResult has no attribute 'p_value'. Use .pvalue instead."),
    "if result:": (lambda _: bool(answered()), "The truth value of TestResult is ambiguous. Use `.reject`."),
    "a method": (lambda _: two_sample_test(X, Y, method="mediann"), "Did you mean 'median'?"),
    "alpha in percent": (
        lambda _: two_sample_test(X, Y, alpha=5),
        "The 'alpha' parameter must be a number strictly between 0 and 1",
    ),
    "text in an array": (
        lambda _: two_sample_test(np.array([["a"], ["b"]]), np.array([["a"], ["c"]])),
        "for text or mixed columns pass a data frame",
    ),
    "columns of other names": (
        lambda _: two_sample_test(FRAME, FRAME.rename(columns={"age": "Age"})),
        "Both samples must have the same column names (only in sample x: 'age'; only in sample y: 'Age')",
    ),
    "missing values": (lambda _: two_sample_test(FRAME.mask(FRAME > 2), FRAME), "missing='drop'"),
    "a single row": (lambda _: two_sample_test(X[:1], Y), "Each sample must have at least 2 rows. Sample x has 1."),
    "a detector without a reference": (lambda _: DriftDetector().test(Y), "has no reference yet. Call fit(reference) first."),
    "a batch without a column": (lambda _: detector().test(FRAME[["age"]]), "It lacks 'patient'."),
    "a transformer's class": (
        lambda _: two_sample_test(X, Y, preprocess=PCA),
        "an object with fit and transform such as PCA(10)",
    ),
    "groups of an equivalence test": (
        lambda _: equivalence_test(X, Y, margin=0.2, groups="patient"),
        "equivalence_test has no parameter 'groups': its bounds take rows as independent, and would be too narrow. Pass one row",
    ),
    "prices in two currencies": (
        lambda _: two_sample_test(pd.DataFrame({"price": ["€5", "$6", "€7"]}), FRAME),
        "Column 'price' of sample x holds amounts in € and others, such as '$6'",
    ),
    "sizes of a design": (lambda _: power_from_pilot(FRAME, FRAME, groups="patient"), "Got none; pass sizes=..., such as 10, 20"),
}


@pytest.mark.parametrize("mistake", MISTAKES)
def test_a_likely_mistake_has_a_sentence(mistake, tmp_path):
    call, sentence = MISTAKES[mistake]
    with pytest.raises((CpmmdError, AttributeError, TypeError)) as found:
        call(tmp_path)
    assert sentence in str(found.value)


def test_there_are_more_than_twenty_of_them():
    assert len(MISTAKES) > 20


def test_an_unknown_keyword_is_a_type_error_as_of_any_function():
    with pytest.raises(TypeError):
        DriftDetector(seed=1)

    @name_keywords
    def compare(x, *, rng=None):
        """Compare."""
        return x, rng

    assert compare(1, rng=2) == (1, 2)
    assert str(inspect.signature(compare)) == "(x, *, rng=None)"
    with pytest.raises(TypeError, match=r"compare has no parameter 'seed'\. Did you mean 'rng'"):
        compare(1, seed=2)


def test_detectors_with_named_keywords_are_cloned_pickled_and_inspected_as_before():
    given = DriftMonitor("median", alpha=0.01)
    assert clone(given).get_params() == given.get_params() == pickle.loads(pickle.dumps(given)).get_params()
    assert [*inspect.signature(DriftMonitor).parameters][:3] == ["method", "alpha", "n_permutations"]
    with pytest.raises(CpmmdError) as found:
        DriftMonitor(seed=1)
    assert str(pickle.loads(pickle.dumps(found.value))) == str(found.value)


def test_one_sample_in_many_tests_is_named():
    found = run_many({"a": (X,), "b": 3, "c": (X, Y)}, method="median", n_permutations=99, rng=0)
    assert found.failures == {
        "a": "A test must have two samples, (x, y). Got 1 instead.",
        "b": "A test must have two samples, (x, y). Got int instead.",
    }
    assert [*found.results] == ["c"]


def test_power_from_pilot_without_sizes_looks_around_the_pilot():
    table = power_from_pilot(X, Y, method="median", n_permutations=19, repetitions=4, rng=0)
    assert [row.size for row in table.rows] == [12, 25, 50, 100, 200]


def test_missing_values_are_counted_beside_the_quoted_column():
    holes = FRAME.assign(age=np.where(np.arange(60) < 5, np.nan, X[:, 0]))
    with pytest.raises(CpmmdError, match=r"Found 5 in 'age' of sample x, the first in row 0 of sample x"):
        two_sample_test(holes, FRAME)
    many = pd.DataFrame(np.full((5, 11), np.nan)).add_prefix("c")
    with pytest.raises(CpmmdError, match=r"5 in 'c7' of sample x and more in 14 other columns, the first"):
        two_sample_test(many, many)


# On the command line.


@pytest.fixture
def files(tmp_path):
    """Two files, and a third whose column of names is different in each row."""
    for name, rows in (("a", X), ("b", Y)):
        pd.DataFrame(rows, columns=["u", "v"]).assign(id=np.arange(len(rows))).to_csv(tmp_path / f"{name}.csv", index=False)
    pd.DataFrame(X, columns=["u", "v"]).assign(price=[f"p{i}" for i in range(60)]).to_csv(tmp_path / "c.csv", index=False)
    return tmp_path


def test_a_url_is_no_file(files):
    refused(run("test", "nowhere://example.org/a.csv", files / "b.csv"), "'nowhere://example.org/a.csv' cannot be reached")


def test_a_column_that_is_dropped_is_not_advised_to_be_dropped(files):
    pair = (files / "c.csv", files / "c.csv", *QUICK)
    assert f"column 'price' of {files / 'c.csv'} has 60 different texts" in run("test", *pair).stderr
    for chosen in (("--drop", "price"), ("--columns", "u,v")):
        assert "different texts" not in run("test", *pair, *chosen).stderr


def test_notes_name_files_as_all_else_does(files):
    text = (files / "a.csv").read_text().splitlines()
    (files / "a.csv").write_text("\n".join([text[0], ",1,3", *text[2:]]) + "\n")
    result = run("test", files / "a.csv", files / "b.csv", *QUICK, "--columns", "u,v", "--missing", "drop")
    assert f"1 of 60 rows of {files / 'a.csv'} dropped for missing values" in result.stdout
    assert "sample x" not in result.stdout


def test_pairs_left_out_for_missing_values_are_noted_once(files):
    for name, row in (("a", 3), ("d", 5)):
        text = (files / "a.csv").read_text().splitlines()
        text[row] = "," + text[row].split(",", 1)[1]
        (files / f"{name}{name}.csv").write_text("\n".join(text) + "\n")
    options = ("--pair-by", "id", "--missing", "drop", *QUICK)
    result = run("test", files / "aa.csv", files / "dd.csv", *options)
    assert result.stdout.count("pairs were left out") == 1
    assert "2 pairs were left out, because their other rows had missing values" in result.stdout


def test_the_page_and_the_help_agree_on_the_exit_code_without_batches(files):
    monitor, history = files / "monitor.cpmmd", files / "h.sqlite"
    assert run("fit", files / "a.csv", "-o", files / "detector.cpmmd", "--drop", "id", *QUICK).exit_code == 0
    moved = pd.read_csv(files / "b.csv")
    moved.assign(u=moved.u + 3).to_csv(files / "b.csv", index=False)
    assert run("check", files / "detector.cpmmd", files / "b.csv", "--history", history).exit_code == 1
    assert run("check", files / "detector.cpmmd", "--history", history, "--report", files / "r.md").exit_code == 0
    assert "without batches 0" in " ".join(run("check", "--help").stdout.split())
    assert run("fit", files / "a.csv", "-o", monitor, "--monitor", *QUICK).exit_code == 0
    refused(run("acknowledge", files / "detector.cpmmd"), "must hold a monitor. It holds a detector")
    assert run("check", monitor).exit_code == 0


def test_a_batch_that_could_not_be_tested_is_in_the_headline(files):
    monitor = files / "monitor.cpmmd"
    (files / "bad.csv").write_text("w\n1\n2\n")
    assert run("fit", files / "a.csv", "-o", monitor, "--monitor", "--drop", "id", *QUICK).exit_code == 0
    result = run("check", monitor, files / "b.csv", files / "bad.csv", "--drop", "id")
    assert result.exit_code == 2
    headline = result.stdout.splitlines()[0]
    assert headline.startswith("No alarm in 1 batch (evidence ")
    assert headline.endswith(" needed for an alarm). 1 batch could not be tested: 'bad.csv'.")
    found = document(run("check", monitor, files / "bad.csv", "--json"))
    assert found["sentence"].endswith("1 batch could not be tested: 'bad.csv'.")


def test_the_probability_beside_an_alarm_is_of_ever_raising_a_false_one(files):
    monitor = files / "monitor.cpmmd"
    assert (
        run("fit", files / "a.csv", "-o", monitor, "--monitor", "--drop", "id", "--method", "median", "--seed", 1).exit_code == 0
    )
    moved = pd.DataFrame(Y + 3, columns=["u", "v"])
    for day in range(3):
        moved.add(day / 100).to_csv(files / f"day{day}.csv", index=False)
    headline = run("check", monitor, *(files / f"day{day}.csv" for day in range(3))).stdout.splitlines()[0]
    assert headline == (
        "ALARM: the data changed, most likely with day0.csv. The probability of ever raising a false alarm is at most 0.05."
    )
    assert "false with" not in headline
    assert MonitorFile(monitor).read().alarm_
