"""``power``, ``methods``, ``schema``, ``demo``, and reports."""

import json
from importlib.resources import files
from pathlib import Path

import jsonschema

from commands import QUICK, document, refused, run


def test_power(pair):
    result = run("power", *pair, "--sizes", "10,20,500", "--repetitions", 10, *QUICK, "--json")
    assert result.exit_code == 0
    found = document(result)["table"]
    assert [row["extrapolated"] for row in found["rows"]] == [False, False, True]
    text = run("power", *pair, "--repetitions", 5, *QUICK)
    assert "rows of each sample for power 0.80" in text.stdout.splitlines()[0]
    refused(run("power", *pair, "--sizes", "ten"), "50,100,200")
    refused(run("power", *pair, "--sizes", "3"), "at least 8")
    refused(run("power", *pair, "--plot", "x.gif"), ".png")


def test_power_draws_a_plot(pair, tmp_path):
    result = run("power", *pair, "--repetitions", 5, *QUICK, "--plot", tmp_path / "power.png")
    assert result.exit_code == 0
    assert (tmp_path / "power.png").read_bytes().startswith(b"\x89PNG")


def test_methods_schema_version_and_help():
    from cpmmd import __version__, methods

    assert document(run("methods", "--json"))["methods"] == methods()
    assert all(name in run("methods").stdout for name in methods())
    jsonschema.Draft202012Validator.check_schema(json.loads(run("schema").stdout))
    assert run("--version").stdout.split() == ["cpmmd", __version__]
    for command in ("test", "fit", "check", "power", "methods", "schema", "demo"):
        result = run(command, "--help")
        assert result.exit_code == 0
        assert f"cpmmd {command}" in result.stdout  # an example


def test_the_demo_leaves_files_and_a_report(tmp_path):
    result = run("demo", tmp_path / "demo")
    assert result.exit_code == 0
    assert result.stdout.count("The samples differ") == 1
    assert result.stdout.count("No difference found (p") == 1
    report = tmp_path / "demo" / "report.html"
    assert str(report.resolve()) in result.stdout
    assert "<html" in report.read_text()
    (tmp_path / "file").write_text("")
    refused(run("demo", tmp_path / "file" / "demo"), "folder")


def test_reports_are_written(pair, batches, tmp_path):
    assert run("test", *pair, "--seed", 0, "--report", tmp_path / "r.html").exit_code == 1
    page = (tmp_path / "r.html").read_text()
    assert "cpmmd test" in page
    detector, paths = batches
    assert run("check", detector, *paths, "--report", tmp_path / "series.md", "--no-explain").exit_code == 1
    assert "wednesday.csv" in (tmp_path / "series.md").read_text()


def test_the_schema_is_shipped():
    assert Path(str(files("cpmmd") / "schemas" / "result.schema.json")).is_file()
