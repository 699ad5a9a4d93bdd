"""Results in a notebook: a short repr, and HTML with verdict, where and a picture, from the same content as the report."""

import sys
import time
from functools import cache
from importlib import import_module
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
from matplotlib.figure import Figure

from cpmmd import (
    DriftDetector,
    DriftMonitor,
    equivalence_test,
    goodness_of_fit_test,
    kernel_matrix_test,
    methods,
    plotting,
    power_from_pilot,
    power_study,
    run_many,
    two_sample_test,
)
from cpmmd.core import progress
from cpmmd.errors import MissingExtraError
from cpmmd.explain import explanation
from helpers import HOSTILE_NAMES, Page, light

DATA = np.random.default_rng(0)
X = DATA.normal(size=(60, 3))
Y, SAME = DATA.normal([0, 1.5, 0], 1, size=(60, 3)), DATA.normal(size=(60, 3))


@pytest.mark.parametrize("method", methods())
@pytest.mark.filterwarnings("ignore::cpmmd.errors.DegenerateKernelWarning")
def test_repr_is_short_and_says_the_verdict(method):
    text = repr(two_sample_test(X, Y, method=light(method), rng=0, n_permutations=99))
    assert text.count("\n") < 9
    assert len(text) < 300
    assert "p = " in text


def test_html_says_verdict_and_where_with_a_picture():
    result = two_sample_test(X, Y, rng=0)
    page = Page(result._repr_html_())
    words = " ".join(page.texts)
    assert "The samples differ" in words
    assert result.explain().where in words
    assert [column.label for column in result.explain().columns] == [t for t in page.texts if t.startswith("column ")]
    (image,) = page.all("img")
    assert image["src"].startswith("data:image/png;base64,")
    assert not page.all("script")


def test_without_a_difference_it_names_no_columns():
    page = Page(two_sample_test(X, SAME, rng=0)._repr_html_())
    assert "No difference found" in " ".join(page.texts)
    assert not page.all("table")
    assert len(page.all("img")) == 1


def test_a_kernel_matrix_and_a_missing_matplotlib_show_what_they_can(monkeypatch):
    K = X @ X.T
    assert "No difference found" in kernel_matrix_test(K, 30, rng=0)._repr_html_()

    def absent(_):
        raise MissingExtraError("no matplotlib")

    monkeypatch.setattr(import_module("cpmmd.report.notebook"), "png_picture", absent)
    assert not Page(two_sample_test(X, Y, rng=0)._repr_html_()).all("img")


HOSTILE = "<img src=x onerror=alert(1)>\n" + "long " * 40


@cache
def answers():
    """Return every value that a notebook's cell may end with, of data whose names are hostile."""
    x, y = (pd.DataFrame({HOSTILE: values[:, 1], **{f"c{i}": values[:, 0] + i for i in range(30)}}) for values in (X, Y))
    result = two_sample_test(x, y, n_permutations=99, rng=0)
    equivalence = equivalence_test(x, y, margin=0.5, rng=0)
    detector = DriftDetector(rng=0, n_permutations=99).fit(x)
    checked, failed = detector.check({HOSTILE: y, "broken": x.iloc[:, :1]})
    pilot = power_from_pilot(x, y, sizes=(30, 120), n_permutations=99, repetitions=2, method="median", rng=0)
    sample = {"normal": lambda data, n: (data.normal(size=(n, 1)), data.normal(size=(n, 1)))}
    study = power_study("small", generators=sample, methods={"m": "median"}, sizes=(20,), repetitions=2, n_permutations=99).run()
    return {
        "result": result,
        "explanation": result.explain(),
        "equivalence": equivalence,
        "equivalence explained": equivalence.explain(),
        "fit": goodness_of_fit_test(x.iloc[:, :2], "normal", n_permutations=19, rng=0),
        "fit explained": goodness_of_fit_test(x.iloc[:, :2], "normal", n_permutations=19, rng=0).explain(),
        "batch": detector.test(y, name=HOSTILE),
        "checked": checked,
        "failed": failed,
        "monitor": DriftMonitor(rng=0).fit(x).update(y, name=HOSTILE),
        "many": run_many({HOSTILE: (x, y), "same": (x, x)}, n_permutations=99, rng=0),
        "pilot": pilot,
        "study": study,
    }


ANSWERS = [
    *(
        "result",
        "explanation",
        "equivalence",
        "equivalence explained",
        "fit",
        "fit explained",
        "batch",
        "checked",
        "failed",
        "monitor",
    ),
    *("many", "pilot", "study"),
]


@pytest.mark.parametrize("name", ANSWERS)
def test_every_answer_has_a_short_repr_and_a_card(name):
    value = answers()[name]
    assert len(repr(value)) < 700
    assert repr(value).startswith("<")
    page = Page(value._repr_html_())
    assert {tag for tag, _ in page.tags} <= {"div", "p", "b", "table", "tr", "td", "th", "img"}
    assert all(image["src"].startswith("data:image/png;base64,") for image in page.all("img"))
    assert len("".join(page.texts)) < 5000


@pytest.mark.parametrize("name", [name for name in ANSWERS if name not in ("pilot", "study")])
def test_no_answer_is_true_or_false(name):
    with pytest.raises(TypeError, match="ambiguous"):
        bool(answers()[name])


@pytest.mark.parametrize("name", ["result", "equivalence", "batch", "monitor"])
def test_every_answer_names_its_pvalue(name):
    with pytest.raises(AttributeError, match=r"Use \.pvalue instead"):
        answers()[name].p_value  # noqa: B018


@pytest.mark.parametrize("name", HOSTILE_NAMES)
def test_hostile_names_are_escaped(name):
    hostile = HOSTILE_NAMES[name]
    x, y = (pd.DataFrame({hostile: values[:, 1], "plain": values[:, 0]}) for values in (X, Y))
    page = Page(two_sample_test(x, y, rng=0)._repr_html_())
    assert {tag for tag, _ in page.tags} <= {"div", "p", "b", "table", "tr", "td", "th", "img"}


def test_it_is_explained_once(monkeypatch):
    calls, explain = [], explanation.explain
    monkeypatch.setattr(explanation, "explain", lambda *a, **k: calls.append(1) or explain(*a, **k))
    result = two_sample_test(X, Y, rng=0)
    result._repr_html_()
    result.report()
    assert result.explain() is result.explain()
    plotting.column_differences(result, ax=Figure().subplots())
    assert len(calls) == 1


@pytest.mark.parametrize(
    "plot",
    ["null_distribution", "criterion_path", "witness_densities", "column_differences", "column_distributions", "pool_map"],
)
def test_every_plot_takes_a_result_or_its_explanation(plot):
    result = two_sample_test(X, Y, rng=0)
    draw = getattr(plotting, plot)
    first, second = (draw(subject, ax=Figure().subplots()) for subject in (result, result.explain()))
    assert first.get_xlabel() == second.get_xlabel()
    assert len(first.get_children()) == len(second.get_children())


class Shell:
    """A notebook: what is displayed, in the order it came."""

    def __init__(self, monkeypatch, name="ZMQInteractiveShell"):
        self.shown = []
        handle = SimpleNamespace(update=self.shown.append)

        def show(html, *, display_id):
            assert display_id
            self.shown.append(html)
            return handle

        display = SimpleNamespace(HTML=str, display=show)
        shell = type(name, (), {})()
        monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
        monkeypatch.setitem(sys.modules, "IPython.display", display)


def test_a_notebook_shows_a_bar_while_it_waits(monkeypatch):
    shell = Shell(monkeypatch)
    clock = iter([0.0, 0.5, 1.2, 1.3, 2.0])
    bar = progress.NotebookBar(clock=clock.__next__)
    for done in (1, 2, 3, 4):
        bar("<tiles>", done, 4)
    bar.clear()
    assert [html.partition("</progress>")[2] for html in shell.shown] == [" &lt;tiles&gt; 2 of 4", " &lt;tiles&gt; 4 of 4", ""]
    assert "value='2' max='4'" in shell.shown[0]


def test_the_bar_comes_by_itself_and_goes_with_the_answer(monkeypatch):
    shell = Shell(monkeypatch)
    monkeypatch.setattr(progress.NotebookBar.__init__, "__kwdefaults__", {"delay": 0.0, "interval": 0.0, "clock": time.monotonic})
    expected = two_sample_test(X, Y, method="cp-linear", rng=0, progress=lambda *_: None)
    assert not shell.shown
    assert two_sample_test(X, Y, method="cp-linear", rng=0).pvalue == expected.pvalue
    assert not shell.shown or shell.shown[-1] == ""
    with progress.reporting_to(None):
        progress.report("tiles", 1, 2)
    assert shell.shown[-2:] == ["<progress value='1' max='2'></progress> tiles 1 of 2", ""]


def test_a_terminal_has_no_bar(monkeypatch):
    shell = Shell(monkeypatch, "TerminalInteractiveShell")
    with progress.reporting_to(None):
        progress.report("tiles", 1, 2)
    assert not shell.shown
