"""``cpmmd test --margin``: equivalence is exit code 0, and says how far apart the files may be."""

import shlex

import polars as pl

from commands import document, refused, run
from cpmmd import equivalence_test


def test_the_answer_is_the_librarys_and_repeats(null_pair):
    found = document(run("test", *null_pair, "--margin", 0.9, "--seed", 4, "--json"))
    expected = equivalence_test(*map(pl.read_csv, null_pair), margin=0.9, rng=4)
    assert found["result"] == expected.to_dict()
    assert document(run(*shlex.split(found["repeat"])[1:], "--json"))["result"] == found["result"]


def test_exit_codes(null_pair, pair):
    shown = run("test", *null_pair, "--margin", 0.9, "--seed", 4)
    assert shown.exit_code == 0
    assert shown.stdout.startswith("Equivalent within 0.9 standard deviations (p = ")
    not_shown = run("test", *pair, "--margin", 0.9, "--seed", 4)
    assert not_shown.exit_code == 1
    assert "Equivalence not shown" in not_shown.stdout
    assert run("test", *pair, "--margin", 0.9, "--exit-zero").exit_code == 0


def test_what_it_has_no_use_for_is_refused(null_pair):
    refused(run("test", *null_pair, "--margin", 0.9, "--method", "median", "--scale", "standard"), "--method, --scale")
    refused(run("test", *null_pair, "--margin", 0), "The '--margin' option must be a finite number > 0")
    assert run("test", null_pair[0], "--margin", 0.9, "--split-by", "u").exit_code == 2


def test_a_report_of_equivalence(null_pair, tmp_path):
    page = tmp_path / "page.md"
    assert run("test", *null_pair, "--margin", 0.9, "--seed", 4, "--report", page).exit_code == 0
    assert "cpmmd test" in page.read_text()
    assert "AUC at most" in page.read_text()
