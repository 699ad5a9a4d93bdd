"""Errors, warnings and notes carry fields, travel between processes, and are said in the words of whoever faces the user."""

import ast
import json
import pickle
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import cpmmd
from cpmmd.cli.failures import calling_samples, in_command_words
from cpmmd.errors import CpmmdError, CpmmdWarning, InputError, Note, ParameterReference, SampleName, unknown_name

SOURCE = Path(cpmmd.__file__).parent
X = np.random.default_rng(0).normal(size=(30, 2))


def caught(call):
    with pytest.raises(CpmmdError) as found:
        call()
    return found.value


CASES = {
    "alpha": (lambda: cpmmd.two_sample_test(X, X, alpha=2), {"parameter": "alpha"}, "The '--alpha' option must be"),
    "rng": (lambda: cpmmd.two_sample_test(X, X, rng=-1), {"parameter": "rng"}, "The '--seed' option must be"),
    "n_jobs": (lambda: cpmmd.two_sample_test(X, X, n_jobs=0), {"parameter": "n_jobs"}, "The '--jobs' option must be"),
    "missing": (
        lambda: cpmmd.two_sample_test(X, np.where(np.arange(60).reshape(30, 2) == 9, np.nan, X)),
        {"sample": "y", "row": 4, "column": "1"},
        "the first in row 4 of new.csv (counted from 0). Pass --missing drop",
    ),
    "infinite": (
        lambda: cpmmd.two_sample_test(X, np.full((3, 2), np.inf)),
        {"sample": "y", "column": "0"},
        "new.csv has infinite",
    ),
    "columns": (
        lambda: cpmmd.two_sample_test(pd.DataFrame({"a": [1.0, 2]}), pd.DataFrame({"b": [1.0, 2]})),
        {},
        "only in old.csv: 'a'; only in new.csv: 'b'",
    ),
    "permutations": (lambda: cpmmd.two_sample_test(X, X, n_permutations=3), {}, "Use --permutations 19 or more"),
    "option": (
        lambda: cpmmd.two_sample_test(X, X, missing="mend"),
        {"parameter": "missing"},
        "Unknown value of --missing: 'mend'",
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_an_error_has_fields_and_two_ways_to_say_it(case):
    call, fields, said = CASES[case]

    def named():
        with calling_samples(x="old.csv", y="new.csv"):
            call()

    error = caught(named)
    assert {name: getattr(error, name) for name in fields} == fields
    assert said in in_command_words(error)
    assert "--" not in str(error)
    assert ".csv" not in str(error)


@pytest.mark.parametrize("case", CASES)
def test_an_error_travels_between_processes(case):
    error = caught(CASES[case][0])
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert in_command_words(back) == in_command_words(error)


def test_a_sentence_without_fields_is_left_alone():
    assert str(InputError("a column called {x} and 100%", file="a.csv")) == "a column called {x} and 100%"
    assert str(InputError("{name} must be {rule}", name="{braces}", rule="kept")) == "{braces} must be kept"
    assert str(InputError("{it}", it=ParameterReference("alpha"))) == "alpha=..."
    assert str(InputError("in {it}", it=SampleName("x"))) == "in sample x"
    assert "Did you mean 'median'" in str(unknown_name("method", "medain", ["median"]))


@pytest.mark.parametrize("kind", [Note, CpmmdWarning, InputError])
def test_every_sentence_can_be_said_in_other_words_and_travels(kind):
    said = kind("column {name!r}: name groups with {setting}", name="{a}", setting=ParameterReference("groups", "a b"))
    for one in (said, pickle.loads(pickle.dumps(said))):
        assert str(one) == "column '{a}': name groups with groups='a b'"
        assert in_command_words(one) == "column '{a}': name groups with --group-by a b"
    assert in_command_words("groups='a' in a text of the user's") == "groups='a' in a text of the user's"


def test_a_note_is_text():
    note = Note("{few} rows", few=3)
    assert note == "3 rows"
    assert json.loads(json.dumps([note])) == ["3 rows"]
    assert f"{note:>7}|" == " 3 rows|"


def raised_errors():
    """Every place of the package that makes an error, a warning or a note: (file, node)."""
    for file in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text())):
            if not (isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.args):
                continue
            if node.func.id == "Note" or node.func.id.endswith(("Error", "Warning")):
                yield file.relative_to(SOURCE), node


def test_a_template_is_never_an_f_string():
    # A column called {row} must not be taken for a field: what is filled in late is written as a template, or has no fields.
    plain = {"row", "column", "file"}
    for file, node in raised_errors():
        fields = {keyword.arg for keyword in node.keywords} - plain
        assert not (fields and isinstance(node.args[0], ast.JoinedStr)), f"{file}:{node.lineno}"


def test_every_template_names_only_its_fields():
    import string

    for file, node in raised_errors():
        fields = {keyword.arg for keyword in node.keywords}
        if not fields - {"row", "column", "file"} or not isinstance(node.args[0], ast.Constant) or None in fields:
            continue
        known = fields | ({"Sample"} if "sample" in fields else set())
        named = {name for _, name, _, _ in string.Formatter().parse(node.args[0].value) if name}
        assert named <= known, f"{file}:{node.lineno} names {named - known}"


def test_the_library_never_speaks_of_flags():
    for file in SOURCE.rglob("*.py"):
        if "cli" in file.parts:
            continue
        for node in ast.walk(ast.parse(file.read_text())):
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                words = [word for word in node.value.split() if word.startswith("--") and word.strip("-. ").isalpha()]
                assert not words, f"{file.relative_to(SOURCE)}:{node.lineno} says {words}"
