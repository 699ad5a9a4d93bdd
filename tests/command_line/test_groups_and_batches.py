"""``cpmmd test --split-by``, ``fit`` and ``check``."""

import shlex

import numpy as np
import polars as pl
import pytest

from commands import QUICK, document, refused, run
from cpmmd import two_sample_test
from helpers import written


def grouped(path, values, shifted):
    rng = np.random.default_rng(4)
    groups = rng.choice(values, 180)
    shifts = np.where(np.isin(groups, shifted), 2.0, 0.0)
    pl.DataFrame({"g": groups, "v": rng.normal(size=180) + shifts, "w": rng.normal(size=180)}).write_csv(path)
    return path


def test_two_groups_are_compared_with_each_other(tmp_path):
    file = grouped(tmp_path / "g.csv", ["no", "yes"], ["yes"])
    found = document(run("test", file, "--split-by", "g", *QUICK, "--json"))
    assert (found["x"]["name"], found["y"]["name"]) == ("g = no", "g = yes")
    assert found["columns"] == ["v", "w"]
    frame = pl.read_csv(file)
    x, y = (frame.filter(pl.col("g") == value).drop("g") for value in ("no", "yes"))
    assert found["result"]["pvalue"] == two_sample_test(x, y, method="median", n_permutations=99, rng=1).pvalue
    assert "--split-by g" in found["repeat"]
    assert document(run("test", file, "--split-by", "g", "--columns", "w", *QUICK, "--json"))["columns"] == ["w"]


def test_more_groups_are_each_compared_with_the_rest_and_adjusted(tmp_path):
    file = grouped(tmp_path / "g.csv", ["a", "b", "c", "d"], ["c"])
    result = run("test", file, "--split-by", "g", "--json", *QUICK, "--permutations", 999)
    found = document(result)
    assert result.exit_code == 1
    assert [group["group"] for group in found["groups"]] == ["a", "b", "c", "d"]
    assert found["groups"][2]["reject"]
    p = np.array([group["pvalue"] for group in found["groups"]])
    order = np.argsort(p)
    by_hand = np.minimum.accumulate((p[order] * len(p) / np.arange(1, len(p) + 1))[::-1])[::-1]
    np.testing.assert_allclose([found["groups"][i]["adjusted"] for i in order], np.minimum(by_hand, 1))
    text = run("test", file, "--split-by", "g", *QUICK)
    assert text.stdout.splitlines()[0].endswith("from the rest (adjusted p <= 0.05).")
    assert found["groups"][2]["explanation"]["columns"][0]["words"] == "higher"
    assert all((group["explanation"] is not None) == group["reject"] for group in found["groups"])
    assert "'v' is higher in g = c." in text.stdout
    refused(run("test", file, "--split-by", "v"), "2 to 100 different values")
    refused(run("test", file, "--split-by", "x"), "Unknown column")


@pytest.mark.parametrize("suffix", [".html", ".md", ".json"])
def test_more_groups_have_a_report_too(tmp_path, suffix):
    file = grouped(tmp_path / "g.csv", ["a", "b", "c", "d"], ["c"])
    report = tmp_path / f"r{suffix}"
    result = run("test", file, "--split-by", "g", *QUICK, "--permutations", 999, "--report", report)
    assert f"Report: {report}" in result.stdout
    text = report.read_text()
    assert "groups differ from the rest" in text
    assert "is higher in g = c" in text
    assert "cpmmd test" in text


def test_batches_are_checked_one_line_each(batches):
    detector, paths = batches
    result = run("check", detector, *paths)
    assert result.exit_code == 1
    assert result.stdout.startswith("1 of 3 batches differs")
    line = next(line for line in result.stdout.splitlines() if "wednesday.csv" in line)
    assert "differs" in line
    assert line.split()[-2:] == ["v,", "u"] or line.split()[-1] == "v"
    assert run("check", detector, *paths[:2]).exit_code == 0
    assert run("check", detector, *paths, "--exit-zero", "--no-explain").exit_code == 0


def test_checks_are_adjusted_over_the_batches_of_the_call(batches):
    detector, paths = batches
    found = document(run("check", detector, *paths, "--json"))["batches"]
    alone = [document(run("check", detector, path, "--json", "--no-explain"))["batches"][0] for path in paths]
    assert [b["pvalue"] for b in found] == [b["pvalue"] for b in alone]  # whatever batches come along
    assert found[2]["adjusted"] == pytest.approx(3 * found[2]["pvalue"])
    assert found[2]["leading_columns"][0] == "v"
    assert found[2]["auc"] > 0.6
    assert [b["status"] for b in found] == ["tested"] * 3


def test_a_history_keeps_batches_and_skips_known_ones(batches, tmp_path):
    detector, paths = batches
    history = tmp_path / "history.sqlite"
    first = run("check", detector, *paths[:2], "--history", history)
    assert first.exit_code == 0
    second = document(run("check", detector, *paths, "--history", history, "--json"))["batches"]
    assert [b["status"] for b in second] == ["known", "known", "tested"]
    third = run("check", detector, *paths, "--history", history, "--again", "--json", "--no-explain")
    assert [b["status"] for b in document(third)["batches"]] == ["tested"] * 3
    assert "was in the history already; its earlier record is kept" in third.stderr
    known = run("check", detector, *paths, "--history", history)
    assert known.exit_code == 1  # asking again is the same answer
    assert "in history" in known.stdout
    from cpmmd.monitoring.history import History

    with History(history) as kept:
        assert [record["batch"] for record in kept.records()] == ["monday.csv", "tuesday.csv", "wednesday.csv"]


def test_a_bad_batch_does_not_stop_the_others(batches, tmp_path):
    detector, paths = batches
    (tmp_path / "bad.csv").write_text("u\n1\n2\n3\n")
    result = run("check", detector, paths[0], tmp_path / "bad.csv", tmp_path / "gone.csv", "--json")
    assert result.exit_code == 2
    found = document(result)["batches"]
    assert [b["status"] for b in found] == ["tested", "error", "error"]
    assert "lacks 'v'" in found[1]["error"]
    refused(run("check", tmp_path / "bad.csv", paths[0]), "bad.csv")
    refused(run("check", detector, "-", "-"), "once")
    refused(run("check", detector, paths[0], paths[0]), "more than once")
    refused(run("fit", paths[0], "-o", "/no/such/folder/d.cpmmd"), "no folder")


def test_an_example_trains_the_kernel(batches, tmp_path):
    _, paths = batches
    detector = tmp_path / "trained.cpmmd"
    result = run("fit", tmp_path / "reference.csv", "--example", paths[2], "-o", detector, "--method", "cp-linear", "--seed", 0)
    assert result.exit_code == 0
    assert "kernel" in result.stdout
    assert run("check", detector, paths[1], "--no-explain").exit_code == 0


def test_a_series_is_redrawn_without_a_batch_and_its_repeat_tests(batches, tmp_path):
    detector, paths = batches
    history = ["--history", tmp_path / "history.sqlite"]
    (tmp_path / "bad.csv").write_text("u\n1\n2\n3\n")
    first = run("check", detector, *paths, tmp_path / "bad.csv", *history, "--report", tmp_path / "first.md", "--no-explain")
    assert first.exit_code == 2
    shown = (tmp_path / "first.md").read_text()
    assert "| `bad.csv` | not tested |" in shown
    assert "could not be tested: The batch must have the reference" in shown
    repeat = next(line for line in shown.splitlines() if line.startswith("cpmmd check"))
    assert repeat in first.stdout
    again = document(run(*shlex.split(repeat)[1:], "--json", "--no-explain"))["batches"]
    assert [b["status"] for b in again] == ["tested"] * 3 + ["error"]
    assert all(0 <= b["auc"] <= 1 for b in again[:3])
    drawn = run("check", detector, *history, "--report", tmp_path / "later.md", "--json")
    assert drawn.exit_code == 0
    assert [b["status"] for b in document(drawn)["batches"]] == ["known"] * 3
    assert "`wednesday.csv` | yes |" in (tmp_path / "later.md").read_text()
    assert run(*shlex.split(document(drawn)["repeat"])[1:]).exit_code == 0
    assert "At least one batch is needed" in run("check", detector, *history).stderr
    refused(run("check", detector, "--history", tmp_path / "no.sqlite", "--report", tmp_path / "r.md"), "no history")
    assert not (tmp_path / "no.sqlite").exists()


def test_a_group_that_cannot_be_compared_is_said_beside_a_document_too(tmp_path):
    rows = "".join(f"{'ab'[i % 2]},{i * 7 % 5},{i}\n" for i in range(20)) + "c,,1\n"
    path = written(tmp_path, "g.csv", f"g,u,v\n{rows}")
    result = run("test", path, "--split-by", "g", *QUICK, "--json")
    assert result.exit_code == 2
    assert "could not be compared" in result.stderr
    assert "could not be compared" in run("test", path, "--split-by", "g", *QUICK).stderr
