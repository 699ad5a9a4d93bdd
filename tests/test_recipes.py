"""The recipes of the page on CI: run where the tool is installed, Python anywhere."""

import importlib.util
import re

import numpy as np
import pandas as pd
import pytest

from docs.page_runs import ROOT

PAGE = (ROOT / "docs/howto/ci.md").read_text()
RECIPES = {
    re.search(r"^import (\w+)", block, flags=re.M)[1]: block
    for block in re.findall(r"^```py\n(.*?)^```$", PAGE, flags=re.M | re.S)
}


def orders(seed, shift=0.0):
    data = np.random.default_rng(seed)
    return pd.DataFrame({"price": data.normal(10 + shift, 2, 200), "shop": data.choice(["north", "south"], 200)})


def run(package, shift):
    """Run a recipe on data that are shifted; return the names that it left."""
    if importlib.util.find_spec(package) is None:
        pytest.skip(f"{package} is not installed")
    names = {"reference": orders(1), "today": orders(2, shift), "__name__": "recipe"}
    exec(compile(RECIPES[package], package, "exec"), names)
    return names


def test_the_page_has_these():
    assert set(RECIPES) == {"pandera", "dagster", "prefect", "great_expectations"}


@pytest.mark.parametrize("package", RECIPES)
def test_a_recipe_is_python(package):
    compile(RECIPES[package], package, "exec")


@pytest.mark.parametrize(("shift", "fails"), [(0.0, False), (2.0, True)])
def test_pandera(shift, fails):
    if not fails:
        run("pandera", shift)
        return
    with pytest.raises(Exception, match="the data changed"):
        run("pandera", shift)


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_dagster(shift):
    names = run("dagster", shift)
    dagster = importlib.import_module("dagster")
    done = dagster.materialize([names["orders"], names["orders_are_like_the_reference"]])
    (check,) = done.get_asset_check_evaluations()
    assert check.passed == (shift == 0)
    assert check.metadata["cpmmd_reject"].value == float(shift > 0)


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_prefect(shift):
    check = run("prefect", shift)["check"].fn
    if shift:
        with pytest.raises(AssertionError, match="'price'"):
            check(orders(2, shift), orders(1))
    else:
        check(orders(2), orders(1))


@pytest.mark.parametrize("shift", [0.0, 2.0])
def test_great_expectations(shift):
    if shift:
        with pytest.raises(AssertionError, match="'price'"):
            run("great_expectations", shift)
    else:
        run("great_expectations", shift)
