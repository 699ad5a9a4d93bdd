"""Progress in a log: a plain line for steps that take long, none for those that do not, nothing among the answers."""

import io
import sys
import threading

from commands import QUICK, run
from cpmmd.cli import output as module
from cpmmd.cli.output import _Log, progress


def test_a_log_hears_of_long_steps_only(capsys):
    times = iter([100.0, 110.0, 131.0])  # when it began, and of two lines
    log = _Log("explaining", lambda: next(times))
    log.wipe()
    pauses, asked = iter([False, False, True]), []

    def pause(seconds):
        asked.append(seconds)
        if len(asked) == 2:
            log.write("batch 3 of 8\n")
        return next(pauses)

    log.speak(pause)
    said = capsys.readouterr()
    assert said.err.splitlines() == ["Progress: explaining, 10 s so far", "Progress: batch 3 of 8, 31 s so far"]
    assert said.out == ""
    assert asked == [module.QUIET] * 3
    assert module.QUIET >= 10


def test_a_step_that_is_over_says_no_more(monkeypatch):
    heard, stream = threading.Event(), io.StringIO()
    stream.flush = heard.set
    monkeypatch.setattr(sys, "stderr", stream)
    monkeypatch.setattr(module, "QUIET", 0.001)
    with progress("reading") as line:
        assert heard.wait(60)  # says so although nothing is reported
        heard.clear()
        line("tiles", 2, 4)
        assert heard.wait(60)
    said = stream.getvalue()
    assert said.startswith("Progress: reading, 0 s so far\n")
    assert "\x1b" not in said
    assert not [thread for thread in threading.enumerate() if thread.name.endswith("(speak)")]


def test_every_long_step_of_a_command_is_told(pair, monkeypatch):
    steps = []
    monkeypatch.setattr(_Log, "__init__", lambda self, step: steps.append(step) or io.StringIO.__init__(self))
    monkeypatch.setattr(_Log, "wipe", lambda _: None)
    result = run("test", *pair, *QUICK, "--json")
    assert result.stderr == ""
    assert steps == ["reading", "testing", "explaining"]
