"""Run the examples of a page as a reader would: in order, in one empty folder; keep what they print, draw and write.

The site shows what is kept, the tests run the pages afresh and keep it, so that nothing is run twice and no output is typed.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import tokenize
from dataclasses import asdict, dataclass
from datetime import date
from functools import cache
from importlib.metadata import distributions
from importlib.util import find_spec
from pathlib import Path
from typing import Any

ROOT = Path(__file__).parents[1]
KEPT = Path(__file__).parent / "_build" / "outputs"
FENCE = re.compile(r"^```(python|sh)\n(.*?)^```$", flags=re.MULTILINE | re.DOTALL)
SHOWN = (".html", ".png", ".svg")  # what a reader opens
COLUMNS = 92  # characters of a terminal that a page has room for
HOME = "/home/me"  # stands for the folder of the machine


@dataclass(frozen=True)
class Piece:
    """Some lines of a page: a Python block, or the lines of a shell block up to a command and with it."""

    language: str
    code: str
    line: int

    @property
    def command(self) -> str | None:
        """The command that is run; None where the lines end in no command of ours."""
        last = re.split(r"(?<!\\)\n", self.code.strip())[-1]
        return last if self.language == "sh" and last.startswith("cpmmd ") else None


@dataclass(frozen=True)
class Output:
    """What the lines of a piece printed, and the pages and pictures that they wrote."""

    code: str
    text: str
    files: tuple[str, ...]


class PageError(Exception):
    """An example that does not do what its page says."""


def pieces(text: str) -> list[list[Piece]]:
    """Return the blocks of a page that are run, each in the pieces that have an output of their own."""
    found = []
    for block in FENCE.finditer(text):
        language, source, line = block[1], block[2], text.count("\n", 0, block.start()) + 1
        found.append([Piece(language, source, line)] if language == "python" else _commands(source, line))
    return found


def _commands(source: str, line: int) -> list[Piece]:
    """Cut a shell block after each command of ours."""
    found, waiting = [], ""
    for part in re.findall(r"(?:[^\n]*\\\n)*[^\n]*\n", source):
        waiting += part
        if part.startswith("cpmmd "):
            found.append(Piece("sh", waiting, line))
            line, waiting = line + waiting.count("\n"), ""
    return [*found, Piece("sh", waiting, line)] if waiting else found


def run_page(page: Path, folder: Path) -> list[list[Output]]:
    """Run all blocks of a page in a folder and return what came of each piece."""
    namespace: dict[str, Any] = {"__name__": "__page__"}
    with contextlib.chdir(folder):
        return [[_run(piece, page, folder, namespace) for piece in block] for block in pieces(page.read_text())]


def _run(piece: Piece, page: Path, folder: Path, namespace: dict[str, Any]) -> Output:
    before = _files(folder)
    if piece.language == "python":
        printed = io.StringIO()
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(io.StringIO()):
            exec(compile("\n" * piece.line + piece.code, str(page), "exec"), namespace)  # lines of errors are those of the page
        text = printed.getvalue()
    else:
        text = "" if piece.command is None else _run_command(piece, page, folder)
    text = text.replace(str(folder.resolve()), HOME).replace(str(folder), HOME)
    if date.today().isoformat() in text:
        raise PageError(f"{page}:{piece.line}: the output has the date of today, and would be another one tomorrow:\n{text}")
    _check_comments(piece, page, text)
    after = _files(folder)
    return Output(piece.code, text, tuple(name for name in after if after[name] != before.get(name)))


def _run_command(piece: Piece, page: Path, folder: Path) -> str:
    """Return what the command prints, and its exit code where that says something; progress (standard error) is no output."""
    done = subprocess.run(
        ["bash", "-c", str(piece.command)],
        cwd=folder,
        env=environment(),
        capture_output=True,
        text=True,
        check=False,
    )
    if done.returncode not in (0, 1):
        raise PageError(f"{page}:{piece.line}: exit code {done.returncode} of {piece.command}\n{done.stdout}{done.stderr}")
    return done.stdout + ("\n(exit code 1)\n" if done.returncode else "")


def environment() -> dict[str, str]:
    """Return variables under which ``cpmmd`` is the one of this interpreter, on a plain terminal of a fixed width."""
    tools = os.pathsep.join([str(Path(sys.executable).parent), os.environ["PATH"]])
    return {**os.environ, "PATH": tools, "COLUMNS": str(COLUMNS), "NO_COLOR": "1", "TERM": "dumb"}


def _check_comments(piece: Piece, page: Path, text: str) -> None:
    """A comment after a ``print`` is what it prints, ``...`` standing for anything; remarks have lines of their own."""
    if piece.language != "python":
        return
    lines = [line.rstrip() for line in text.splitlines()]
    for token in tokenize.generate_tokens(io.StringIO(piece.code).readline):
        if token.type == tokenize.COMMENT and token.line.lstrip().startswith("print("):
            said = token.string.removeprefix("#").strip()
            pattern = ".*".join(map(re.escape, said.split("...")))
            if not any(re.fullmatch(pattern, line) for line in lines):
                raise PageError(f"{page}:{piece.line + token.start[0]}: the comment says {said!r}, printed was:\n{text}")


def _files(folder: Path) -> dict[str, str]:
    paths = sorted(path for path in folder.rglob("*") if path.suffix in SHOWN)
    return {path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest() for path in paths}


def key_of(page: Path) -> str:
    """Return what the outputs of a page depend on, as one number: the page, the package, the versions of all packages."""
    return hashlib.sha256(page.read_bytes() + _everything().encode()).hexdigest()


@cache
def _everything() -> str:
    package = Path(str(find_spec("cpmmd").origin)).parent  # type: ignore[union-attr]  # it is installed
    sources = [Path(__file__), *sorted(path for path in package.rglob("*") if path.suffix != ".pyc")]
    versions = sorted(f"{found.name}=={found.version}" for found in distributions())
    digests = [hashlib.sha256(path.read_bytes()).hexdigest() for path in sources if path.is_file()]
    return "\n".join([sys.version, *versions, *digests])


def place_of(page: Path) -> Path:
    """Return the folder that keeps what a page wrote."""
    return KEPT / page.resolve().relative_to(ROOT).with_suffix("").as_posix().replace("/", "-")


def run_and_keep(page: Path) -> list[list[Output]]:
    """Run a page, and keep its outputs and the files to look at."""
    with tempfile.TemporaryDirectory() as name:
        outputs = run_page(page, Path(name))
        place = place_of(page)
        shutil.rmtree(place, ignore_errors=True)
        place.mkdir(parents=True)
        for file in {file for block in outputs for output in block for file in output.files}:
            (place / file).parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(Path(name, file), place / file)
    record = {"key": key_of(page), "outputs": [[asdict(output) for output in block] for block in outputs]}
    (place / "outputs.json").write_text(json.dumps(record))
    return outputs


def outputs_of(page: Path) -> list[list[Output]]:
    """Return the outputs of a page: those that were kept where nothing has changed since, new ones otherwise."""
    with contextlib.suppress(OSError, ValueError, KeyError):
        record = json.loads((place_of(page) / "outputs.json").read_text())
        if record["key"] == key_of(page):
            return [[Output(one["code"], one["text"], tuple(one["files"])) for one in block] for block in record["outputs"]]
    return run_and_keep(page)
