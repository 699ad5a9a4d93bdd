"""Reports: one dictionary in three formats, safe whatever the names of columns, and small whatever the size of the data."""

import base64
import hashlib
import json
import os
import re
import subprocess
import sys
import unicodedata
from collections import Counter
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

import cpmmd
from cpmmd import Ascent, Bandwidth, FullSampleTest, SplitTest, two_sample_test
from cpmmd.core import atomic
from cpmmd.core.text import sanitize
from cpmmd.data.pool import read_pool
from cpmmd.errors import InputError, MissingExtraError
from cpmmd.report import content, render
from cpmmd.report.figures import result_drawings
from helpers import HOSTILE_NAMES, Page, sample_named

SECTIONS = ["where", "assurance", "method", "repeat"]
SUFFIXES = [".html", ".md", ".json"]
MEGABYTE = 1_000_000
DRAWN = {"svg", "g", "path", "use", "defs", "clippath", "pattern", "rect", "text", "tspan", "image"}


def frame(seed, rows, shift=0.0, names=("amount", "age", "colour", "since")):
    data = np.random.default_rng(seed)
    days = pd.to_timedelta(data.integers(0, 300, rows), unit="D")
    columns = [
        data.normal(5 + shift, 1, rows),
        data.normal(40, 10, rows).round(),
        data.choice(["red", "green", "blue"], rows),
        pd.Timestamp("2024-01-01") + days,
    ]
    return pd.DataFrame(dict(zip(names, columns, strict=True)))


@pytest.fixture(scope="module")
def differing():
    return two_sample_test(frame(0, 60, 2), frame(1, 50), rng=0)


@pytest.fixture(scope="module")
def text(differing):
    """The page of a report, once."""
    return differing.report(command="cpmmd test 'a b.csv' \"c&d.csv\"", title="a v b")


@pytest.mark.parametrize(
    "method", ["cp-full", "cp-linear", "median", "mmdagg", "mmdfuse", SplitTest(n_splits=3), "trained"], ids=str
)
def test_every_method_has_a_report_in_every_format(method, tmp_path):
    data = np.random.default_rng(2)
    if method == "trained":
        pytest.importorskip("torch")
        method = SplitTest(cpmmd.Deep(width=8), ascent=Ascent(steps=10))
    x, y = data.normal(size=(40, 2)), data.normal(size=(30, 2)) + 1
    result = two_sample_test(x, y, method=method, n_permutations=99, rng=0)
    page = content(result)
    assert [section["id"] for section in page["sections"]] == SECTIONS
    assert page["verdict"]["pvalue"] == result.pvalue
    json.dumps(page, allow_nan=False)
    for suffix in SUFFIXES:
        path = tmp_path / f"report{suffix}"
        text = result.report(path)
        assert path.read_text(encoding="utf-8") == text
        assert ("The samples differ" if result.reject else "No difference found") in text


def facts_of(page):
    parts = [part for section in page["sections"] for part in section["parts"]]
    return {fact["term"]: fact["value"] for part in parts if part["kind"] == "facts" for fact in part["items"]}


def test_the_class_of_the_statistic_and_that_of_the_kernel_are_both_named(differing):
    best = max(differing.classes, key=lambda path: path.criterion)
    chosen = differing.selected_class
    assert chosen is not best  # as on the data of cpmmd demo
    assert best.criterion == pytest.approx(differing.statistic)
    own = f"{chosen.scores[chosen.selected] - chosen.penalty:.5g}"
    page = content(differing)
    facts = facts_of(page)
    assert facts["Class of the statistic"] == f"{best.label} coordinates"
    assert facts["Kernel"] == f"{differing.kernel} on {chosen.coordinates}"
    assert own in facts["Kernel and statistic"]
    (classes,) = (part for part in page["sections"][2]["parts"] if part.get("id") == "classes")
    assert {row[1]: row[0] for row in classes["rows"] if row[1]} == {"statistic": best.label, "kernel": chosen.label}
    printed = str(differing)
    assert f"class        {best.name}, which gives the statistic" in printed
    assert f"kernel       {differing.kernel} on {chosen.coordinates}" in printed
    assert f"Its own score minus penalty, {own}, also exceeds the statistic of every other permutation." in printed


def test_where_the_kernel_gives_the_statistic_nothing_is_added():
    kernels = FullSampleTest(classes=(Bandwidth(),))
    result = two_sample_test(frame(0, 60), frame(1, 50), method=kernels, n_permutations=99, rng=0)
    assert result.selected_class is result.statistic_class
    assert result.kernel_note == ""
    assert "Kernel and statistic" not in facts_of(content(result))
    single = two_sample_test(frame(0, 60), frame(1, 50), method="median", n_permutations=99, rng=0)
    assert single.statistic_class is None
    assert single.kernel_note == ""


def test_the_report_says_what_is_the_papers_and_what_is_an_extension_of_it():
    x, y = frame(0, 60, 2), frame(1, 50)
    relation = {
        method: facts_of(content(two_sample_test(x, y, method=method, n_permutations=99, rng=0))).get("Relation to CP-MMD")
        for method in ("cp-full", "cp-linear", "median")
    }
    assert relation["cp-full"].startswith("this library's extension of it")
    assert relation["cp-linear"].startswith("the paper's criterion")
    assert relation["median"] is None


def test_json_is_the_dictionary(differing, tmp_path):
    written = json.loads(differing.report(tmp_path / "a.json", command="cpmmd test a b", title="a v b"))
    page = content(differing, command="cpmmd test a b", title="a v b", explanation=differing.explain())
    written.pop("footer"), page.pop("footer")  # the time of writing
    assert written == page


def test_the_verdict_comes_first(text):
    page = Page(text)
    headings = [tag for tag, _ in page.tags if re.fullmatch("h[1-6]", tag)]
    assert headings == ["h1"] + ["h2"] * len(SECTIONS)
    words = " ".join(page.texts)
    assert words.index("The samples differ") < words.index("Where") < words.index("How sure") < words.index("How it was done")


def test_no_difference_is_not_called_equality(tmp_path):
    text = two_sample_test(frame(0, 60), frame(1, 50), rng=0).report(tmp_path / "a.md")
    assert "No difference found" in text
    assert "No difference found does not mean equal" in text
    assert "None of 4 columns differs" in text


def test_the_python_call_repeats_the_result():
    x, y = frame(0, 40, 0.5), frame(1, 30)
    for options in ({}, {"method": "cp-linear", "scale": "standard", "alpha": 0.1}, {"method": SplitTest(train_fraction=0.4)}):
        result = two_sample_test(x, y, n_permutations=199, **options)
        program = content(result)["sections"][-1]["parts"][0]
        assert program["language"] == "python"
        namespace = {"x": x, "y": y}
        exec(program["text"], namespace)
        again = namespace["result"]
        assert (again.pvalue, again.statistic, again.alpha) == (result.pvalue, result.statistic, result.alpha)


def test_the_command_is_quoted_as_given(text):
    assert "cpmmd test 'a b.csv' \"c&d.csv\"" in " ".join(Page(text).texts)


def test_top_rows_are_shown_unless_switched_off(tmp_path):
    x, y = frame(0, 60, 2), frame(1, 50)
    result = two_sample_test(x, y, rng=0)

    def ids(rows):
        page = content(result, rows=rows, explanation=result.explain())
        parts = [part for section in page["sections"] for part in section["parts"]]
        inside = [inner for part in parts for inner in part.get("parts", ())]
        return {part["id"] for part in [*parts, *inside] if "id" in part}

    assert ids(rows=True) - ids(rows=False) == {"rows-x", "rows-y"}
    assert "rows-x" not in result.report(tmp_path / "a.json", rows=False)


def test_values_of_single_rows_are_not_shown_without_rows(tmp_path):
    data = np.random.default_rng(5)

    def sample(prefix, each):
        who = [f"{prefix}-{i}" if i % each else "member" for i in range(40)]
        return pd.DataFrame({"who": who, "n": data.normal(size=40)})

    result = two_sample_test(sample("ada", 2), sample("bob", 4), n_permutations=99, rng=0)
    for suffix in SUFFIXES:
        shown_all, hidden = (result.report(tmp_path / f"a{suffix}", rows=rows) for rows in (True, False))
        assert re.search(r"(ada|bob)-\d", shown_all)
        assert not re.search(r"(ada|bob)-\d", hidden)
        assert "member" in hidden


def test_a_result_without_its_data_still_has_a_report(differing, tmp_path):
    bare = replace(differing, evidence=None)
    for suffix in SUFFIXES:
        assert "the result does not hold its data" in bare.report(tmp_path / f"bare{suffix}")


# --- one file, nothing fetched, nothing run but the sorting -----------------------------------------------------------


def test_the_policy_admits_this_style_and_script_and_nothing_else(text):
    rules = dict(rule.strip().split(" ", 1) for rule in Page(text).all("meta")[1]["content"].split(";"))
    assert rules["default-src"] == "'none'"
    for tag, rule in (("style", "style-src"), ("script", "script-src")):
        inside = re.findall(f"<{tag}>(.*?)</{tag}>", text, flags=re.DOTALL)
        digests = [base64.b64encode(hashlib.sha256(part.encode()).digest()).decode() for part in inside]
        assert [rules[rule]] == [f"'sha256-{digest}'" for digest in digests]


def test_nothing_is_linked_from_outside(text):
    page = Page(text)
    linked = [a[key] for _, a in page.tags for key in ("href", "src", "xlink:href", "action", "data") if key in a]
    assert linked
    assert all(link.startswith(("#", "data:image/png;base64,")) for link in linked)
    assert not any(key.startswith("on") or key == "style" for _, attributes in page.tags for key in attributes)
    assert not {"iframe", "object", "embed", "link", "form", "foreignobject"} & {tag for tag, _ in page.tags}


def test_ids_are_unique_and_references_lead_somewhere(text):
    page = Page(text)
    ids = Counter(attributes["id"] for _, attributes in page.tags if "id" in attributes)
    assert set(ids.values()) == {1}
    for _, attributes in page.tags:
        named = attributes.get("aria-labelledby", "").split()
        named += [attributes["href"][1:]] if attributes.get("href", "").startswith("#") else []
        named += re.findall(r"url\(#([^)]*)\)", attributes.get("clip-path", ""))
        assert set(named) <= set(ids)


def test_screen_readers_find_landmarks_names_and_headers(text):
    page = Page(text)
    tags = Counter(tag for tag, _ in page.tags)
    assert page.all("html")[0]["lang"] == "en"
    assert [tags[tag] for tag in ("header", "nav", "main", "footer")] == [1, 1, 1, 1]
    assert tags["table"] == tags["caption"] > 0
    assert all(header.get("scope") in ("col", "row") for header in page.all("th"))
    small = [svg for svg in page.all("svg") if svg.get("class") == "mini"]
    assert len(small) == 4  # one for each column
    assert len(page.all("svg")) - len(small) == tags["figure"] == tags["figcaption"] > 3
    assert all(svg["role"] == "img" and svg.get("aria-labelledby", svg.get("aria-label")) for svg in page.all("svg"))
    assert page.tags[[t for t, _ in page.tags].index("body") + 1] == ("a", {"class": "skip", "href": "#report"})


# --- names from the data ----------------------------------------------------------------------------------------------


def named(names, texts=None):
    x, y = (pd.DataFrame(sample_named(names, seed, shift, texts=texts)) for seed, shift in ((0, 3), (1, 0)))
    return two_sample_test(x, y, n_permutations=99, rng=0)


@pytest.fixture(scope="module")
def hostile():
    return named(list(HOSTILE_NAMES.values()))


@pytest.fixture(scope="module")
def hostile_page(hostile):
    everything = "".join(HOSTILE_NAMES.values())
    return hostile.report(title=everything, command=everything)


@pytest.fixture(scope="module")
def benign():
    names = [f"column_{i}" for i in range(len(HOSTILE_NAMES))]
    return named(names, [name if hostile else "" for name, hostile in zip(names, HOSTILE_NAMES.values(), strict=True)])


def test_hostile_names_leave_the_page_as_it_was(hostile_page, benign):
    pages = [Page(hostile_page), Page(benign.report(title="plain", command="plain"))]
    outside = [Counter(str(shape) for shape in page.shape if shape[0] not in DRAWN) for page in pages]
    assert outside[0] == outside[1]
    # Within a picture the number of ticks depends on the width of the labels, the kinds of element do not.
    assert {tag for tag, _ in pages[0].tags} == {tag for tag, _ in pages[1].tags}
    assert not any(key.startswith("on") or key in ("src", "style") for _, attributes in pages[0].tags for key in attributes)


def test_hostile_names_leave_markdown_tables_and_prose_as_they_were(hostile, benign, tmp_path):
    markdown_it = pytest.importorskip("markdown_it")
    parser = markdown_it.MarkdownIt("commonmark", {"html": True}).enable("table")

    def shape(result, title):
        text = result.report(tmp_path / "a.md", title=title)
        tokens = [inner for token in parser.parse(text) for inner in (token, *(token.children or ()))]
        return Counter(token.type for token in tokens if token.type not in ("text", "text_special", "code_inline"))

    found = shape(hostile, "".join(HOSTILE_NAMES.values()))
    assert found == shape(benign, "plain")
    assert not {"html_inline", "html_block", "link_open", "image"} & set(found)


def strings(value):
    if isinstance(value, dict):
        return [text for item in value.items() for part in item for text in strings(part)]
    return [text for item in value for text in strings(item)] if isinstance(value, list) else [value] * isinstance(value, str)


def test_hostile_names_are_inert_in_json(hostile, tmp_path):
    text = hostile.report(tmp_path / "a.json", title="half \ud83d a pair \ufffe")
    assert text.isascii()
    assert not set("<>&") & set(text)
    found = strings(json.loads(text))
    assert any("<script>" in string for string in found)
    assert max(map(len, found)) <= 4000
    code = {part["text"] for section in json.loads(text)["sections"] for part in section["parts"] if part["kind"] == "code"}
    kinds = {unicodedata.category(c) for string in found if string not in code for c in string if c != "\u200d"}
    assert not kinds & {"Cc", "Cf", "Cs", "Cn", "Zl", "Zp"}


def test_newlines_stay_visible_and_directions_are_isolated(hostile_page):
    assert "one␤two␤three" in hostile_page
    assert not set("\u202e\u2066\x00\x1b") & set(hostile_page)
    assert "<bdi>تجربة שלום</bdi>" in hostile_page


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("plain", "plain"),
        ("", "(empty)"),
        ("a\r\nb\x00c\td", "a␤b␀c d"),
        ("\ud800half\ufffe", "\ufffdhalf\ufffd"),
        ("👩\u200d👧", "👩\u200d👧"),
        ("zero\u200bwidth\u202e", "zerowidth"),
        (3.5, "3.5"),
    ],
)
def test_shown_text_is_one_sanitized_line(name, expected):
    assert sanitize(name) == expected


def test_long_names_keep_both_ends():
    text = sanitize("a" * 10_000 + "b")
    assert len(text) == 80
    assert text.startswith("aaa")
    assert text.endswith("ab")


# --- size and files ---------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(("rows", "columns", "name"), [(200_000, 2, ""), (300, 200, ""), (60, 60, "n" * 10_000)])
def test_a_report_is_below_a_megabyte_for_any_input(rows, columns, name):
    data = np.random.default_rng(3)
    few = pd.DataFrame(data.normal(size=(60, columns)), columns=[f"{name}{i}" for i in range(columns)])
    many = pd.DataFrame(data.normal(size=(rows, columns)), columns=few.columns)
    result = two_sample_test(few, few + 1, n_permutations=99, rng=0)
    # The test itself on 200 000 rows would take minutes; what a report reads of it is the same.
    pool = read_pool(many, many + 1)
    big = replace(result, sizes=(rows, rows), tested_sizes=(rows, rows), evidence=replace(result.evidence, pool=pool))
    explanation = big.explain(max_rows=2000 if columns < 10 else 100)
    page = content(big, explanation=explanation)
    for form in ("html", "markdown", "json"):
        assert len(render(page, result_drawings(big, explanation), form=form).encode()) < MEGABYTE


@pytest.mark.parametrize("path", ["out.pdf", "out", "missing/folder/out.md"])
def test_a_path_that_cannot_be_written_is_named(differing, tmp_path, path):
    with pytest.raises(InputError, match="out"):
        differing.report(tmp_path / path)


def test_a_failed_write_leaves_the_old_report(differing, tmp_path, monkeypatch):
    path = tmp_path / "out.md"
    path.write_text("old")

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full_disk)
    with pytest.raises(InputError, match="No space left"):
        differing.report(path)
    assert path.read_text() == "old"
    assert os.listdir(tmp_path) == ["out.md"]


def test_missing_packages_are_named_and_text_formats_do_without(differing, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.raises(MissingExtraError, match=r"pip install .*\[report\]"):
        differing.report()
    differing.report(tmp_path / "a.md")
    differing.report(tmp_path / "a.json")


def test_importing_cpmmd_imports_no_template_engine():
    code = "import sys, cpmmd; print([m for m in ('jinja2', 'matplotlib', 'cpmmd.report') if m in sys.modules])"
    answer = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert answer.stdout.strip() == "[]"
