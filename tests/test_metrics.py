"""Answers as flat numbers: names that stay, what trackers take, and a dashboard of metrics that there are."""

import importlib.util
import json
import math
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from cpmmd import DriftDetector, DriftMonitor, equivalence_test, goodness_of_fit_test, two_sample_test
from cpmmd.monitoring.monitor import METRICS, prometheus_text

DOCS = Path(__file__).parents[1] / "docs"
PAGE = (DOCS / "howto" / "metrics.md").read_text()
DASHBOARD = json.loads((DOCS / "_static" / "grafana.json").read_text())
MLFLOW_TAKES = re.compile(r"[\w.\- :/]{1,250}")  # of a metric's name, since its first release
FAST = {"method": "median", "n_permutations": 99, "rng": 0}

A_TEST = {"pvalue", "reject", "alpha", "statistic", "rows_x", "rows_y", "columns"}
A_BATCH = {"pvalue", "reject", "statistic", "rows"}
NAMES = {
    "test": A_TEST,
    "explanation": {"auc", "auc_low", "auc_high", "differing_columns", "differing_pairs"},
    "equivalence": A_TEST - {"statistic"} | {"margin", "largest", "auc_bound"},
    "fit": {"pvalue", "reject", "alpha", "statistic", "rows", "columns", "differing_columns"},
    "detector": A_BATCH,
    "monitor": A_BATCH | {"alarm", "wealth", "evalue", "level", "episode", "wealth_limit", "batch", "since_batch"},
}


@pytest.fixture(scope="module")
def answers():
    data = np.random.default_rng(0)
    x, y = data.normal(size=(80, 2)), data.normal([2, 0], 1, size=(60, 2))
    test = two_sample_test(x, y, **FAST)
    return {
        "test": test,
        "explanation": test.explain(),
        "equivalence": equivalence_test(x, y, margin=0.2, rng=0),
        "fit": goodness_of_fit_test(x, "normal", n_permutations=19, rng=0),
        "detector": DriftDetector(**FAST).fit(x).test(y),
        "monitor": DriftMonitor(**FAST).fit(x).update(y, name="day 1"),
    }


@pytest.mark.parametrize("kind", NAMES)
def test_names_are_those_that_were_promised_and_values_are_numbers(answers, kind):
    metrics = answers[kind].to_metrics()
    assert set(metrics) == {f"cpmmd_{name}" for name in NAMES[kind]}
    assert all(type(value) is float and math.isfinite(value) for value in metrics.values())
    assert all(MLFLOW_TAKES.fullmatch(name) for name in metrics)
    assert set(answers[kind].to_metrics(prefix="drift/")) == {f"drift/{name}" for name in NAMES[kind]}


def test_values_are_those_of_the_answer(answers):
    test, monitor = answers["test"], answers["monitor"]
    metrics = {**test.to_metrics(), **answers["explanation"].to_metrics()}
    assert (metrics["cpmmd_pvalue"], metrics["cpmmd_reject"], metrics["cpmmd_rows_y"]) == (test.pvalue, 1.0, 60.0)
    assert metrics["cpmmd_differing_columns"] == 1.0
    metrics = monitor.to_metrics()
    assert (metrics["cpmmd_wealth"], metrics["cpmmd_wealth_limit"], metrics["cpmmd_batch"]) == (monitor.wealth, 20.0, 1.0)
    assert metrics["cpmmd_since_batch"] == 0.0


def test_what_is_not_known_is_left_out(answers):
    test = replace(answers["test"], n_columns=None, statistic=math.inf)
    assert A_TEST - {name.removeprefix("cpmmd_") for name in test.to_metrics()} == {"columns", "statistic"}


def recipe(package):
    """Return the block of the page that imports a package."""
    (block,) = [block for block in re.findall(r"^```py\n(.*?)^```$", PAGE, flags=re.M | re.S) if f"import {package}\n" in block]
    return block


@pytest.mark.skipif(importlib.util.find_spec("mlflow") is None, reason="mlflow is not installed (pip install mlflow-skinny)")
def test_mlflow_keeps_them(answers, tmp_path, monkeypatch):
    monkeypatch.setenv("MLFLOW_ALLOW_FILE_STORE", "true")
    import mlflow

    mlflow.set_tracking_uri((tmp_path / "runs").as_uri())
    exec(recipe("mlflow"), {"result": answers["test"]})
    (run,) = mlflow.search_runs(output_format="list")
    assert run.data.metrics == {**answers["test"].to_metrics(), **answers["explanation"].to_metrics()}


@pytest.mark.skipif(importlib.util.find_spec("wandb") is None, reason="wandb is not installed (pip install wandb)")
def test_wandb_keeps_them(answers, tmp_path, monkeypatch):
    monkeypatch.setenv("WANDB_MODE", "offline")
    monkeypatch.setenv("WANDB_DIR", str(tmp_path))
    exec(recipe("wandb"), {"answer": answers["monitor"]})
    assert list(tmp_path.rglob("*.wandb"))


@pytest.mark.parametrize("package", ["mlflow", "wandb"])
def test_the_recipes_are_python(package):
    compile(recipe(package), package, "exec")


# The Prometheus file, and the dashboard that is made for it.


@pytest.fixture(scope="module")
def written():
    """Return the metrics of a monitor's file, by what it writes."""
    data = np.random.default_rng(1)
    monitor = DriftMonitor(**FAST).fit(data.normal(size=(40, 1)))
    monitor.update(data.normal(size=(20, 1)), name="day 1")
    return dict(re.findall(r"^# TYPE (\w+) (\w+)$", prometheus_text(monitor, "m.cpmmd"), flags=re.M))


def test_the_page_lists_every_metric_of_the_file(written):
    assert written == {name: kind for name, _, kind in METRICS}
    assert dict(re.findall(r"^\| `(cpmmd_\w+)` \| (\w+) \|", PAGE, flags=re.M)) == written


def test_rules_and_queries_ask_for_metrics_that_there_are(written):
    queries = [target["expr"] for panel in DASHBOARD["panels"] for target in panel["targets"]]
    queries += [variable["query"] for variable in DASHBOARD["templating"]["list"]]
    queries += [annotation["expr"] for annotation in DASHBOARD["annotations"]["list"]]
    asked = {name for query in queries for name in re.findall(r"cpmmd_\w+", query)}
    assert asked == set(written)  # none that is not written, and none that nobody sees
    assert set(re.findall(r"(cpmmd_\w+)", PAGE.partition("groups:")[2].partition("```")[0])) <= set(written)


def test_the_dashboard_is_one_that_grafana_imports():
    """What Grafana's importer and its grid require, of the fields that are there."""
    source = {"type": "prometheus", "uid": "${source}"}
    panels = DASHBOARD["panels"]
    assert {"title", "uid", "schemaVersion", "panels", "templating", "time"} <= DASHBOARD.keys()
    assert "id" not in DASHBOARD  # given by the Grafana that imports it
    assert re.fullmatch(r"[\w-]{1,40}", DASHBOARD["uid"])
    assert [variable["name"] for variable in DASHBOARD["templating"]["list"]] == ["source", "monitor"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    taken = set()
    for panel in panels:
        assert panel["type"] in {"stat", "timeseries"}
        assert panel["title"]
        assert panel["description"]
        assert panel["datasource"] == source
        assert [target["refId"] for target in panel["targets"]] == ["A", "B"][: len(panel["targets"])]
        assert all(
            target["datasource"] == source and target["expr"].count("{") == target["expr"].count("}")
            for target in panel["targets"]
        )
        at = panel["gridPos"]
        assert at["x"] + at["w"] <= 24
        cells = {(x, y) for x in range(at["x"], at["x"] + at["w"]) for y in range(at["y"], at["y"] + at["h"])}
        assert not cells & taken
        taken |= cells
