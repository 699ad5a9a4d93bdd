"""One answer: terminal, JSON, HTML, Markdown and notebook show the same findings for the same seed, in the files' names."""

import re

import numpy as np
import polars as pl
import pytest

from commands import document, run
from cpmmd import two_sample_test
from helpers import Page


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    rng, folder = np.random.default_rng(3), tmp_path_factory.mktemp("files")

    def write(name, rows, moved):
        frame = {
            "income": rng.lognormal(10 + 0.5 * moved, 0.5, rows),
            "country": rng.choice(["DE", "ES", "FR"], rows, p=[0.5, 0.2 + 0.3 * moved, 0.3 - 0.3 * moved]),
            "age": rng.normal(40, 10, rows),
            "x_y": rng.normal(size=rows),
        }
        pl.DataFrame(frame).write_csv(folder / name)
        return folder / name

    return write("march.csv", 300, 0), write("april.csv", 260, 1)


@pytest.fixture(scope="module")
def answers(files, tmp_path_factory):
    """Everything that one seed says, each form from a command of its own."""
    folder = tmp_path_factory.mktemp("reports")
    options = ("--seed", 4, "--permutations", 199)
    for suffix in ("html", "md"):
        run("test", *files, *options, "--report", folder / f"r.{suffix}")
    result = two_sample_test(*map(pl.read_csv, files), n_permutations=199, rng=4)
    return {
        "terminal": run("test", *files, *options).stdout,
        "terminal with a report": run("test", *files, *options, "--report", folder / "again.md").stdout,
        "json": document(run("test", *files, *options, "--json")),
        "html": (folder / "r.html").read_text(),
        "markdown": (folder / "r.md").read_text(),
        "library": result.explain(names=("march.csv", "april.csv")),
        "notebook": result._repr_html_(),
    }


def plain(text):
    return re.sub(r"[\\\u2068\u2069]", "", text)


def test_the_sentence_is_the_same_everywhere(answers):
    where = answers["library"].where
    assert where == "'income' is higher and 'country' is more often 'ES' in april.csv." or "less often 'FR'" in where
    assert answers["json"]["explanation"]["where"] == where
    for form in ("terminal", "terminal with a report"):
        assert where in answers[form]
    assert where in " ".join(Page(answers["html"]).texts)
    assert where in plain(answers["markdown"])
    assert where.replace("april.csv", "the second sample") in " ".join(Page(answers["notebook"]).texts)


def test_columns_effects_and_p_values_are_the_same_everywhere(answers):
    columns = answers["library"].columns
    assert answers["json"]["explanation"]["columns"] == [column.to_dict() for column in columns]
    page = " ".join(Page(answers["html"]).texts)
    for column in answers["library"].differing:
        assert str(column.effect) in answers["terminal"]
        assert str(column.effect) in plain(answers["markdown"])
        assert column.effect.short in page
        assert column.effect.interval in page
    assert [c.name for c in columns if c.words] == ["income", "country"]


def test_what_comes_before_the_end_of_a_terminal_does_not_depend_on_a_report(answers):
    before = [answers[form].split("Repeat with")[0] for form in ("terminal", "terminal with a report")]
    assert before[0] == before[1]


def test_samples_are_called_by_their_names_never_x_and_y(answers):
    page = re.sub(r"<(style|script)>.*?</\1>", "", answers["html"], flags=re.DOTALL)
    texts = [*Page(page).texts, *answers["terminal"].splitlines(), *plain(answers["markdown"]).splitlines()]
    call = "two_sample_test(x, y"  # Python needs names for its arguments
    for text in texts:
        if call not in text:
            assert not re.search(r"(?<![\w_])[xy](?![\w_])", text.replace("--", "")), text
