"""Check what is published: run by ``make test-dist`` with the interpreter to test, needs nothing but the standard library.

The wheel holds every file of the package and the source distribution every file of the project, building them again gives the
same bytes, the metadata are whole, and both work in an environment of their own, where nothing of the checkout can be imported:
a demo, a test and a report, by command and by call, with the extras named at once and one at a time.
"""

from __future__ import annotations

import os
import re
import shlex
import subprocess
import sys
import tarfile
import tempfile
import tomllib
import venv
import zipfile
from email import message_from_bytes
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
DATA = {  # what a build can forget without a test of the checkout noticing
    "cpmmd/__init__.pyi",
    "cpmmd/citations.bib",
    "cpmmd/py.typed",
    "cpmmd/report/page.html",
    "cpmmd/report/page.md",
    "cpmmd/report/sort.js",
    "cpmmd/report/style.css",
    "cpmmd/schemas/result.schema.json",
}
SOURCE = {  # what the tests need besides the package and themselves
    "pyproject.toml",
    "constraints.txt",
    "constraints-floor.txt",
    "Makefile",
    "README.md",
    "CHANGELOG.md",
    "SECURITY.md",
    "SUPPORT.md",
    "LICENSE",
    "CITATION.cff",
    "docs/api.md",
    "experiments/__main__.py",
    "tests/golden/peers.npz",
}
LIBRARY = """
import numpy as np, cpmmd
from cpmmd import *
rng = np.random.default_rng(0)
result = two_sample_test(rng.normal(size=(40, 2)), rng.normal(size=(40, 2)) + 2, rng=0)
assert result.reject, result
assert cpmmd.cite()
print(cpmmd.__file__)
"""
REPORT = """
import numpy as np, cpmmd
rng = np.random.default_rng(0)
result = cpmmd.two_sample_test(rng.normal(size=(60, 3)), rng.normal(size=(60, 3)) + 1, rng=0)
result.report("by-call.html")
"""
ANSWER = "The samples differ"


def main(dist: Path, again: Path) -> None:
    """Check the files in ``dist``; ``again`` holds those of a second build."""
    version = stated_version()
    wheel, source = dist / f"cpmmd-{version}-py3-none-any.whl", dist / f"cpmmd-{version}.tar.gz"
    for file in (wheel, source):
        require(file.read_bytes() == (again / file.name).read_bytes(), f"{file.name} is different when it is built again")
    check_wheel(files_of_wheel(wheel))
    check_metadata(wheel, version)
    check_source(files_of_source(source))
    with tempfile.TemporaryDirectory(prefix="cpmmd-dist-") as folder:
        check_installed(Installation(Path(folder).resolve() / "step by step"), wheel, source, version)
        check_at_once(Installation(Path(folder).resolve() / "at once"), wheel)
    print(f"{wheel.name} and {source.name} are complete, repeatable, and work where nothing else is.")


def require(condition: bool, message: str) -> None:
    """End with a sentence unless a condition holds."""
    if not condition:
        raise SystemExit(f"check_dist: {message}")


def same(what: str, found: set[str], wanted: set[str]) -> None:
    """Fail with the names that are missing or too many."""
    require(found == wanted, f"the {what} lacks {sorted(wanted - found)} and should not hold {sorted(found - wanted)}")


def stated_version() -> str:
    """Return the version that the package states, which every other file must follow."""
    stated = re.search(r'^__version__ = "(.+)"$', read("src/cpmmd/__init__.py"), flags=re.MULTILINE)
    require(stated is not None, "src/cpmmd/__init__.py states no version")
    version = stated[1] if stated else ""
    require(f"\nversion: {version}\n" in read("CITATION.cff"), f"CITATION.cff is not of {version}")
    require(f"\n## [{version}] - " in read("CHANGELOG.md"), f"CHANGELOG.md has no section of {version}")
    require(f"cpmmd-{version}-" in read("README.md"), f"README.md installs another wheel than {version}")
    return version


def read(name: str) -> str:
    """Return the text of a file of the project."""
    return (ROOT / name).read_text(encoding="utf-8")


def check_metadata(wheel: Path, version: str) -> None:
    """Check that the metadata say all that pyproject.toml does, the README included."""
    project = tomllib.loads(read("pyproject.toml"))["project"]
    with zipfile.ZipFile(wheel) as archive:
        (name,) = (name for name in archive.namelist() if name.endswith(".dist-info/METADATA"))
        said = message_from_bytes(archive.read(name))
        require(any(name.endswith("/licenses/LICENSE") for name in archive.namelist()), "the wheel holds no licence")
    wanted = {
        "Name": [project["name"]],
        "Version": [version],
        "Summary": [project["description"]],
        "License-Expression": [project["license"]],
        "Requires-Python": [project["requires-python"]],
        "Classifier": project["classifiers"],
        "Provides-Extra": list(project["optional-dependencies"]),
        "Description-Content-Type": ["text/markdown"],
    }
    for field, values in wanted.items():
        found = said.get_all(field, [])
        require(sorted(found) == sorted(values), f"the metadata say {field}: {found}, and pyproject.toml {values}")
    require((said["Keywords"] or "").split(",") == sorted(project["keywords"], key=str), "the metadata lack keywords")
    require(said.get_payload().strip() == read("README.md").strip(), "the metadata show another README")


def check_wheel(found: set[str]) -> None:
    """Check that the wheel holds the files of the package and no others."""
    package = (path for path in (ROOT / "src" / "cpmmd").rglob("*") if path.is_file() and "__pycache__" not in path.parts)
    same("wheel", found, {path.relative_to(ROOT / "src").as_posix() for path in package})
    same("wheel", found & DATA, DATA)


def check_source(found: set[str]) -> None:
    """Check that the source distribution holds what git knows and nothing else; without git, what the tests need."""
    same("source distribution", found & SOURCE, SOURCE)
    try:
        listed = subprocess.run(["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    except (OSError, subprocess.CalledProcessError):
        return
    same("source distribution", found, {name for name in listed.split("\0") if name and (ROOT / name).exists()})


def files_of_wheel(wheel: Path) -> set[str]:
    """Return the files that a wheel installs, without its metadata."""
    with zipfile.ZipFile(wheel) as archive:
        return {name for name in archive.namelist() if ".dist-info/" not in name}


def files_of_source(source: Path) -> set[str]:
    """Return the files of a source distribution, without its metadata."""
    with tarfile.open(source) as archive:
        names = {member.name.partition("/")[2] for member in archive.getmembers() if member.isfile()}
    return names - {"PKG-INFO"}


class Installation:
    """An environment of its own and a folder to work in, outside the checkout."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()
        venv.create(folder / "venv", with_pip=True)
        self._programs = folder / "venv" / ("Scripts" if os.name == "nt" else "bin")
        self._environment = {name: value for name, value in os.environ.items() if not name.startswith("PYTHON")}
        self._environment["PATH"] = f"{self._programs}{os.pathsep}{os.environ['PATH']}"  # as `activate` does
        self._environment["PIP_CONSTRAINT"] = str(ROOT / "constraints.txt")  # also where pip builds a source distribution
        self._environment["PIP_DISABLE_PIP_VERSION_CHECK"] = "1"

    def run(self, command: str, *, code: int = 0) -> str:
        """Run a command as it would be typed; return what it says."""
        done = subprocess.run(
            command, shell=True, cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False
        )
        said = done.stdout + done.stderr
        require(done.returncode == code, f"{command}\nended with {done.returncode}, not {code}:\n{said}")
        return said


def check_installed(here: Installation, wheel: Path, source: Path, version: str) -> None:
    """Install the wheel, use it, add an extra with the command that it names; then the same with the source distribution."""

    def use() -> None:
        require(here.run("cpmmd --version").strip() == f"cpmmd {version}", "cpmmd --version names another version")
        place = Path(here.run(f"python -c {shlex.quote(LIBRARY)}").strip())
        require(place.is_relative_to(here.folder), f"this is not the installed package: {place}")

    here.run(f"pip install --quiet {shlex.quote(f'{wheel}[cli]')}")
    use()
    here.run("cpmmd demo")
    test = "cpmmd test cpmmd-demo/benign.csv cpmmd-demo/malignant.csv --seed 0 --report page.html"
    here.run(here.run(test, code=2).strip().rpartition("Install it with: ")[2])
    require("Report: page.html" in here.run(test, code=1), "a report is not announced")
    here.run("cpmmd demo")
    for page in (here.folder / "page.html", here.folder / "cpmmd-demo" / "report.html"):
        require(ANSWER in page.read_text(encoding="utf-8"), f"{page.name} does not say the answer")
    here.run(f"pip install --quiet --no-deps --force-reinstall {shlex.quote(str(source))}")
    use()


def check_at_once(here: Installation, wheel: Path) -> None:
    """Install the wheel with its everyday extras and do what a new user does first: the demo, a test, a report."""
    here.run(f"pip install --quiet {shlex.quote(f'{wheel}[cli,files,plot,report]')}")
    require("The report is " in here.run("cpmmd demo"), "the demo leaves no report")
    require(ANSWER in here.run("cpmmd test cpmmd-demo/benign.csv cpmmd-demo/malignant.csv --seed 0", code=1), "no difference")
    here.run(f"python -c {shlex.quote(REPORT)}")
    for page in (here.folder / "by-call.html", here.folder / "cpmmd-demo" / "report.html"):
        require(ANSWER in page.read_text(encoding="utf-8"), f"{page.name} does not say the answer")


if __name__ == "__main__":
    main(Path(sys.argv[1]).resolve(), Path(sys.argv[2]).resolve())
