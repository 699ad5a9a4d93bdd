"""Every sentence that a user can read: ``python -m tests.sentences`` prints errors, warnings, notes and help texts.

They are read from the source, so that sentences which no test triggers are listed, too. ``{...}`` stands for what is filled in.
"""

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import cpmmd

SOURCE = Path(cpmmd.__file__).parent


class Sentence(NamedTuple):
    """A text in the source."""

    file: str
    line: int
    kind: str  # the function or class it is passed to, "docstring", or "text"
    text: str


def _text(node: ast.expr) -> str | None:
    """Return a string expression with ``{...}`` for what is filled in; None for anything else."""
    if isinstance(node, ast.Constant):
        return node.value if isinstance(node.value, str) else None
    if isinstance(node, ast.JoinedStr):
        return "".join(part.value if isinstance(part, ast.Constant) else "{...}" for part in node.values)
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Add):
        sides = [_text(node.left), _text(node.right)]
        return None if sides == [None, None] else "".join("{...}" if side is None else side for side in sides)
    return None


def _walk(node: ast.AST, kind: str) -> Iterator[tuple[ast.expr, str]]:
    """Yield the largest string expressions below a node, with what they are passed to."""
    if isinstance(node, ast.Call):
        function = node.func
        name = function.id if isinstance(function, ast.Name) else function.attr if isinstance(function, ast.Attribute) else kind
        kind = name if name not in ("format", "join", "removesuffix", "replace") else kind
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.expr) and _text(child) is not None:
            yield child, kind
        else:
            yield from _walk(child, kind)


def sentences() -> list[Sentence]:
    """Return every text of the package that has a space in it, in the order of the files."""
    listed = []
    for path in sorted(SOURCE.rglob("*.py")):
        tree = ast.parse(path.read_text())
        holders = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
        docstrings = {
            id(node.body[0].value)
            for node in ast.walk(tree)
            if isinstance(node, holders)
            and ast.get_docstring(node, clean=False) is not None
            and isinstance(node.body[0], ast.Expr)
        }
        for node, kind in _walk(tree, "text"):
            text = _text(node)
            if text and " " in text.strip():
                kind = "docstring" if id(node) in docstrings else kind
                listed.append(Sentence(path.relative_to(SOURCE).as_posix(), node.lineno, kind, text))
    return listed


if __name__ == "__main__":
    for sentence in sentences():
        if sentence.kind != "docstring":
            print(f"{sentence.file}:{sentence.line} [{sentence.kind}] {' '.join(sentence.text.split())}")
