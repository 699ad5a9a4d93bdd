"""Running the command line in tests, and reading what it says."""

import json
import subprocess
import sys
from importlib.resources import files

import jsonschema
from typer.testing import CliRunner

from cpmmd.cli.app import app

SCHEMA = json.loads(files("cpmmd").joinpath("schemas/result.schema.json").read_text())
QUICK = ["--method", "median", "--permutations", "99", "--seed", "1"]


def run(*arguments, stdin=None):
    return CliRunner().invoke(app, [str(a) for a in arguments], input=stdin)


def document(result):
    found = json.loads(result.stdout)
    jsonschema.validate(found, SCHEMA)
    return found


def refused(result, *words):
    assert result.exit_code == 2, result.output
    assert result.stderr.startswith("cpmmd: "), result.stderr
    assert "unexpected" not in result.stderr
    for word in words:
        assert word in result.stderr


def process(*arguments, **options):
    command = [sys.executable, "-m", "cpmmd", *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)
