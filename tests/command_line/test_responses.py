"""``cpmmd responses``: answers to the same prompts in two files."""

import json
import shlex

import numpy as np
import pytest

from commands import document, refused, run
from cpmmd import responses_test


@pytest.fixture
def days(tmp_path):
    """Three files of answers, the last of which differs for one prompt."""
    rng = np.random.default_rng(0)
    for name, colours in (("monday", ["red", "blue"]), ("tuesday", ["blue", "red"]), ("friday", ["red", "teal"])):
        rows = [{"question": "A colour?", "text": str(rng.choice(colours))} for _ in range(20)]
        rows += [{"question": "A code?", "text": str(rng.choice(["007", ""]))} for _ in range(20)]
        (tmp_path / f"{name}.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return [tmp_path / f"{name}.jsonl" for name in ("monday", "tuesday", "friday")]


NAMES = ("--prompt", "question", "--response", "text")


def test_the_answer_is_the_librarys_and_repeats(days):
    found = document(run("responses", days[0], days[2], *NAMES, "--seed", 0, "--json"))
    expected = responses_test(days[0], days[2], prompt="question", response="text", rng=0)
    assert found["result"] == expected.to_dict()
    assert found["result"]["prompts"][0]["prompt"] == "A colour?"
    assert document(run(*shlex.split(found["repeat"])[1:], "--json"))["result"] == found["result"]


def test_exit_codes_and_report(days, tmp_path):
    differ = run("responses", days[0], days[2], *NAMES, "--seed", 0, "--report", tmp_path / "page.md")
    assert differ.exit_code == 1
    assert differ.stdout.startswith("The answers differ (p = ")
    assert "teal" in differ.stdout
    assert "Answers to 1 of 2 prompts differ: 'A colour?'" in (tmp_path / "page.md").read_text()
    same = run("responses", *days[:2], *NAMES, "--seed", 0)
    assert same.exit_code == 0
    assert same.stdout.startswith("No difference found")


def test_mistakes_get_a_sentence(days):
    refused(run("responses", *days[:2]), "prompt")
    refused(run("responses", *days[:2], *NAMES, "--kernel", "gauss"), "--kernel", "hamming")
    refused(run("responses", *days[:2], *NAMES, "--columns", "text"), "Leave out --columns")
    assert run("responses", days[0], *NAMES).exit_code == 2
