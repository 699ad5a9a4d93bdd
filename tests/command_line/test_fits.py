"""``cpmmd fits``: a file beside a model."""

import shlex

import numpy as np
import polars as pl
import pytest

from commands import document, refused, run
from cpmmd import goodness_of_fit_test


@pytest.fixture
def waits(tmp_path):
    rng = np.random.default_rng(0)
    path = tmp_path / "waits.csv"
    pl.DataFrame({"minutes": rng.gamma(5, 2, size=80), "noise": rng.normal(size=80)}).write_csv(path)
    return path


QUICK = ["--permutations", 39, "--seed", 1]


def test_the_answer_is_the_librarys_and_repeats(waits):
    found = document(run("fits", waits, "--model", "normal", *QUICK, "--json"))
    expected = goodness_of_fit_test(pl.read_csv(waits), "normal", n_permutations=39, rng=1)
    assert found["result"] == expected.to_dict()
    assert document(run(*shlex.split(found["repeat"])[1:], "--json"))["result"] == found["result"]


def test_exit_codes_and_words(waits):
    fits = run("fits", waits, "--columns", "minutes", "--model", "gamma(5, scale=2)", *QUICK)
    assert fits.exit_code == 0, fits.output
    assert fits.stdout.startswith("No misfit found (p = ")
    does_not = run("fits", waits, "--columns", "minutes", "--model", "gamma(20)", *QUICK)
    assert does_not.exit_code == 1
    assert "'minutes' lies lower" in does_not.stdout
    assert run("fits", waits, "--columns", "minutes", "--model", "gamma(20)", *QUICK, "--exit-zero").exit_code == 0


def test_blocks_and_a_report(waits, tmp_path):
    page = tmp_path / "page.md"
    found = run("fits", waits, "--columns", "noise", "--model", "norm", "--blocks", 4, "--seed", 1, "--report", page)
    assert found.exit_code == 0, found.output
    assert "approximate: signs of blocks" in found.stdout
    assert "cpmmd fits" in page.read_text()


def test_bad_models_end_in_a_sentence(waits):
    refused(run("fits", waits, "--model", "gama(5)"), "Did you mean 'gamma'", "--model")
    refused(run("fits", waits, "--model", "open('x')"), "numbers as parameters")
    refused(run("fits", waits, "--model", "gamma(5)"), "has 1 column, and")
    refused(run("fits", waits, "--blocks", 4), "The '--blocks' option")
