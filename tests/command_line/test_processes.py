"""The command as a process: its start, its end, and what interrupts it."""

import json
import os
import re
import signal
import subprocess
import sys

import jsonschema
import numpy as np
import polars as pl

from commands import SCHEMA, process, run
from helpers import shared_data


def test_higgs_background_and_signal_differ_and_two_draws_of_background_do_not(tmp_path):
    with np.load(shared_data("higgs.npz")) as data:
        events, signal_event, names = data["X"], data["y"] == 1, [str(name) for name in data["features"]]
    background, signal_rows = events[~signal_event], events[signal_event]
    for name, rows in (("a", background[:1000]), ("b", background[1000:2000]), ("s", signal_rows[:1000])):
        pl.DataFrame(rows, schema=names).write_csv(tmp_path / f"{name}.csv")
    differ = process("test", tmp_path / "a.csv", tmp_path / "s.csv", "--seed", 0, "--json", "--no-explain")
    assert differ.returncode == 1, differ.stderr
    jsonschema.validate(json.loads(differ.stdout), SCHEMA)
    same = process("test", tmp_path / "a.csv", tmp_path / "b.csv", "--seed", 0)
    assert same.returncode == 0, same.stderr


def test_help_imports_nothing_heavy():
    code = (
        "import sys; from cpmmd.cli.app import app; app(['test', '--help'], standalone_mode=False);"
        "print([m for m in ('numpy', 'scipy', 'polars', 'sklearn', 'matplotlib', 'pandas') if m in sys.modules], file=sys.stderr)"
    )
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stderr.strip() == "[]"


def test_without_its_extra_the_command_says_what_to_install(tmp_path):
    for package in ("typer", "polars"):
        folder = tmp_path / package
        folder.mkdir()
        (folder / f"{package}.py").write_text(f"raise ModuleNotFoundError('none', name='{package}')")
        (tmp_path / "a.csv").write_text("a\n1\n2\n")
        path = os.pathsep.join([str(folder), *filter(None, sys.path)])
        found = process("test", tmp_path / "a.csv", tmp_path / "a.csv", env={**os.environ, "PYTHONPATH": path})
        assert found.returncode == 2
        assert re.search(r"pip install .*\[cli\]'", found.stderr)
        assert "Traceback" not in found.stderr


def test_a_reader_that_leaves_is_no_error(pair):
    command = f"{sys.executable} -m cpmmd methods | head -n 1; exit ${{PIPESTATUS[0]}}"
    found = subprocess.run(["bash", "-c", command], capture_output=True, text=True, check=False)
    assert found.stderr == ""
    assert found.stdout.count("\n") == 1
    closed = subprocess.run(
        ["bash", "-c", f"{sys.executable} -m cpmmd test {pair[0]} {pair[1]} --method median --no-explain > >(exec 0<&-; true)"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert "Traceback" not in closed.stderr


def test_an_interrupt_ends_quietly(pair):
    talkative = "from cpmmd.cli import main, output; output.QUIET = 0.01; main()"  # says at once that it is at work
    command = [sys.executable, "-c", talkative, "power", *map(str, pair), "--repetitions", "5000"]
    running = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    try:
        while not (line := running.stderr.readline()).startswith("Progress: draws"):
            assert line
        running.send_signal(signal.SIGINT)
        out, err = running.communicate(timeout=60)
    finally:
        running.kill()
    assert running.returncode == 130
    assert (out, [line for line in err.splitlines() if not line.startswith("Progress: ")]) == ("", [])


def test_an_unexpected_failure_is_a_sentence_and_a_traceback_on_demand(pair, monkeypatch):
    def broken(*_, **__):
        raise RuntimeError("boom")

    monkeypatch.setattr("cpmmd.cli.settings.Settings.test", broken)
    result = run("test", *pair)
    assert result.exit_code == 2
    assert "RuntimeError: boom" in result.stderr
    assert "CPMMD_DEBUG=1" in result.stderr
    monkeypatch.setenv("CPMMD_DEBUG", "1")
    assert isinstance(run("test", *pair).exception, RuntimeError)


def test_a_terminal_that_knows_only_ascii_gets_an_answer(tmp_path):
    rng = np.random.default_rng(0)
    for name, shift in (("a", 0), ("b", 2)):
        pl.DataFrame({"größe \U0001f600": rng.normal(shift, 1, 30)}).write_csv(tmp_path / f"{name}.csv")
    environment = {**os.environ, "PYTHONIOENCODING": "ascii"}
    found = process("test", tmp_path / "a.csv", tmp_path / "b.csv", "--seed", 0, env=environment)
    assert found.returncode == 1, found.stderr
    assert found.stdout.startswith("The samples differ")
