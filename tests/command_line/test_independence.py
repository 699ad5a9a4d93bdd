"""``cpmmd independence``: columns of one file, or two files row by row."""

import numpy as np
import pandas as pd
import pytest

from commands import document, run


@pytest.fixture
def people(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    rng = np.random.default_rng(0)
    age = rng.normal(50, 10, 90)
    frame = pd.DataFrame({"age": age, "noise": rng.normal(size=90), "site": rng.choice(["p", "q"], 90)})
    frame["vote"] = np.where(np.abs(age - 50) + rng.normal(size=90) > 8, "yes", "no")
    frame["family"] = np.repeat(np.arange(30), 3)
    frame.to_csv("people.csv", index=False)
    frame[["age", "noise"]].to_csv("a.csv", index=False)
    frame[["vote"]].to_csv("b.csv", index=False)
    return frame


@pytest.mark.usefixtures("people")
def test_columns_of_one_file_and_two_files_give_one_answer():
    one = run("independence", "people.csv", "--x", "age,noise", "--y", "vote", "--seed", "1")
    two = run("independence", "a.csv", "b.csv", "--seed", "1")
    assert one.exit_code == two.exit_code == 1
    assert "'age' of x goes with 'vote' of y (differs between levels)." in one.stdout
    assert one.stdout.splitlines()[0] == two.stdout.splitlines()[0]
    assert "cpmmd independence people.csv --x age,noise --y vote --seed 1" in one.stdout


@pytest.mark.usefixtures("people")
def test_unrelated_columns_end_with_zero():
    answer = run("independence", "people.csv", "--x", "noise", "--y", "vote", "--seed", "1")
    assert answer.exit_code == 0
    assert "No dependence found" in answer.stdout


@pytest.mark.usefixtures("people")
@pytest.mark.parametrize(
    "more", [(), ("--stratify-by", "site"), ("--group-by", "family"), ("--no-explain",), ("-m", "hsic-median")]
)
def test_the_document_is_that_of_the_schema(more):
    answer = run("independence", "people.csv", "--y", "vote", "--json", "--seed", "0", "-p", "99", *more)
    found = document(answer)
    assert found["command"] == "independence"
    assert found["reject"] == bool(answer.exit_code)
    assert "vote" in found["y"]["columns"]
    assert (found["explanation"] is None) == ("--no-explain" in more)


@pytest.mark.usefixtures("people")
def test_hsicagg_has_its_single_tests_in_the_document():
    found = document(run("independence", "people.csv", "--x", "age", "--y", "noise", "-m", "hsicagg", "--json"))
    assert len(found["result"]["singles"]) == 25


@pytest.mark.usefixtures("people")
def test_a_report_is_written():
    assert run("independence", "people.csv", "--y", "vote", "--seed", "0", "--report", "r.html").exit_code == 1
    assert run("independence", "people.csv", "--y", "vote", "--seed", "0", "--report", "r.md").exit_code == 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("people.csv",), "--x or --y"),
        (("people.csv", "a.csv", "b.csv"), "two files are needed"),
        (("people.csv", "--x", "nothing"), "Unknown column"),
        (("people.csv", "--y", "vote", "--stratify-by", "nothing"), "nothing"),
        (("people.csv", "--y", "vote", "-m", "mgc"), "Unknown"),
        (("a.csv", "short.csv"), "one row for each observation"),
    ],
)
def test_mistakes_end_with_two_and_a_sentence(people, arguments, expected):
    people[["vote"]].head(20).to_csv("short.csv", index=False)
    answer = run("independence", *arguments)
    assert answer.exit_code == 2
    assert expected in answer.output
