"""``cpmmd change``: the library's answer, with exit codes as those of other questions."""

import shlex

import numpy as np
import polars as pl
import pytest

from commands import document, refused, run
from cpmmd import change_test

FAST = ["--method", "median", "--permutations", 99, "--seed", 3]


@pytest.fixture
def files(tmp_path):
    data, paths = np.random.default_rng(0), {}
    for name, dearer in (("old", 0), ("same", 0), ("dear", 25)):
        area = data.normal(70, 15, size=150).round(2)
        price = (3 * area + dearer + data.normal(0, 20, size=150)).round(2)
        paths[name] = tmp_path / f"{name}.csv"
        pl.DataFrame({"area": area, "price": price, "model": 3 * area}).write_csv(paths[name])
    return paths


def test_the_answer_is_the_librarys_and_repeats(files):
    found = document(run("change", files["old"], files["dear"], "--target", "price", "--predictions", "model", *FAST, "--json"))
    frames = [pl.read_csv(files[name]) for name in ("old", "dear")]
    expected = change_test(*frames, target="price", predictions="model", method="median", n_permutations=99, rng=3)
    assert found["result"] == expected.to_dict()
    assert document(run(*shlex.split(found["repeat"])[1:], "--json"))["result"] == found["result"]


def test_exit_codes_and_what_is_printed(files, tmp_path):
    page = tmp_path / "page.html"
    found = run("change", files["old"], files["dear"], "--target", "price", "--drop", "model", *FAST, "--report", page)
    assert found.exit_code == 1
    assert "'price' given the inputs changed" in found.stdout
    assert "the target given the inputs" in page.read_text()
    assert run("change", files["old"], files["same"], "--target", "price", "--drop", "model", *FAST).exit_code == 0
    assert run("change", files["old"], files["dear"], "--target", "price", *FAST, "--exit-zero").exit_code == 0


def test_what_cannot_be_is_refused(files):
    refused(run("change", files["old"], files["dear"]), "A column must be the target", "--target")
    refused(run("change", files["old"], files["dear"], "--target", "prize"), "Unknown column in --target: 'prize'", "'price'")
    assert run("change", files["old"], "--target", "price").exit_code == 2
