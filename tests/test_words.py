"""One thing has one word: docs/design.md has the table, and words that were replaced stay out of the package."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

from tests.sentences import SOURCE, sentences

DESIGN = SOURCE.parents[1] / "docs" / "design.md"
# A pattern, and what to write instead.
REPLACED = {
    r"\btold (apart|from)\b|\btells? (them|rows|samples) apart\b": "AUC, or separates",
    r"\brelabel": "permutation, permuted",
    r"\bgaps? in\b|\bgaps\b": "missing values",
    r"\b(that|which) (is|was|are|were) none\b|\bis none\b|\bare none\b|\bwas none\b": "say what is absent",
    r"\b(and )?said so\b|\bsaid of\b|\bis said\b": "reported, stated",
    r"\bflatter": "optimistic",
    r"\bluck\b": "Monte Carlo error, chance",
    r"\bset aside\b|\bgiven away\b": "held out",
    r"\bchanges? sides\b": "permuted as a whole",
    r"\bfor granted\b": "assume, accept",
    r"\bwith probability \{?[\w.]*\}?, ever\b": "the probability of ever raising a false alarm is at most",
    r"\bspreads?\b": "standard deviation, scale",
    r"\bwealths?\b(?!`)": "evidence",
}
# Where a replaced word is the name of an attribute, a key or a metric that users read.
NAMES = re.compile(r"`[^`]*`|\w+\.\w+|\w*_\w+|\w+=")


listed = cache(sentences)


@pytest.mark.parametrize("pattern", REPLACED)
def test_a_replaced_word_stays_out_of_what_users_read(pattern):
    found = [
        f"{sentence.file}:{sentence.line} {' '.join(sentence.text.split())[:160]}"
        for sentence in listed()
        if sentence.kind != "docstring" and re.search(pattern, NAMES.sub(" ", sentence.text), flags=re.IGNORECASE)
    ]
    assert not found, f"Write {REPLACED[pattern]} instead:\n" + "\n".join(found)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: path.relative_to(SOURCE).as_posix())
def test_variables_are_named_after_the_thing(path):
    tree = ast.parse(path.read_text())
    bound = {node.id for node in ast.walk(tree) if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)}
    bound |= {
        argument.arg for node in ast.walk(tree) if isinstance(node, ast.arguments) for argument in (*node.args, *node.kwonlyargs)
    }
    assert not bound & {"one", "said", "every"}


@cache
def names_in_the_code() -> frozenset[str]:
    return frozenset(re.findall(r"\w+", "\n".join(path.read_text() for path in SOURCE.rglob("*.py"))))


def words_of_the_table() -> list[tuple[str, str]]:
    """Return the names in code that the table of words gives, each with its line."""
    text = DESIGN.read_text().split("## One word, one thing", 1)[1].split("\n## ", 1)[0]
    rows = [line for line in text.splitlines() if line.startswith("| ")][2:]
    return [(name, row) for row in rows for name in re.findall(r"`([\w./]+)`", row.split("|")[1] + row.split("|")[2])]


@pytest.mark.parametrize(("name", "row"), words_of_the_table())
def test_a_name_in_the_table_of_words_is_one_in_the_code(name, row):
    if name.endswith(".py"):
        assert (SOURCE / name).exists(), row
    else:
        assert name.rpartition(".")[2] in names_in_the_code(), row


def test_the_sentences_are_found():
    kinds = {sentence.kind for sentence in listed()}
    assert {"InputError", "Note", "option", "docstring"} <= kinds
    assert Path(listed()[0].file).suffix == ".py"
