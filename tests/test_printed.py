"""The list of the paper's printed numbers: every number of the paper stands in it once, and the tallies count it."""

import math
import os
import re
from collections import Counter
from pathlib import Path

import pytest

from experiments.base import HERE, PAPER, RESULTS, read_csv
from experiments.compare import Seeds, _judge_seeds
from experiments.registry import MODULES
from experiments.tally import AGREE, VERDICTS, judge, number, read_printed, tallies, verdicts

ROOT = Path(__file__).parents[1]
SOURCE = Path(os.environ.get("CPMMD_PAPER", ROOT.parent / "shared" / "paper" / "paper.tex"))
LISTED = read_printed()
TABLES = {  # the tables of results, and how many of their columns name a row
    "tab:deep-summary": 1,
    "tab:variance-collapse": 1,
    "tab:c1-arch-sweep": 1,
    "tab:c1-delta-sweep": 1,
    "tab:ablation-factorial": 2,
}
NO_RESULTS = (  # decimal numbers of the paper that are settings, thresholds, names and places
    r"[-\d.]+(em|pt)\b|[\d.]+\\(textwidth|linewidth)|\\arraystretch\}\{[\d.]+\}",
    r"(Thm\.|Theorem)~[\d.]+|eq\.~\([\d.]+\)|CIFAR-10(/|\.1)[\d.]*|CC BY [\d.]+",
    r"\\Delta ?(\{=\}|=|\\in) ?(\\\{|\[)?[\d., ]+|\(100, 100, 0\.5\)|\\mathcal N\([^I]*0\.01\\,I_2",  # shifts, variances
    r"\\alpha ?= ?0\.05|\\lceil 0\.95|slack is below \$0\.005",
    r"learning rate \$0\.005|gradient-clip norm \$5\.0",
    r"(\\gamma_\{k,u\}\^2|\\hat\\tau_h) < [\d.]+",  # flags of a collapsed run
)
DECIMAL = r"-?\d*\.\d+"


@pytest.fixture(scope="module")
def source():
    if not SOURCE.exists():
        pytest.skip(f"the paper's source is not at {SOURCE}; CPMMD_PAPER names another place")
    lines = SOURCE.read_text().splitlines()
    begin = next(at for at, line in enumerate(lines) if "\\begin{document}" in line)
    return {at: line for at, line in enumerate(lines, 1) if at > begin}


def standing(line, chosen=bool):
    """Values of the listed numbers that stand on a line of the paper, in the order of the list."""
    found = [one for one in LISTED if one.kind == "number" and chosen(one)]
    return [one.value for one in found for at in (one.line, *one.again) if at == line]


def result_rows(source):
    """Yield line and numbers of every row of the tables of results."""
    labels = {at: next((name for name in TABLES if f"label{{{name}}}" in line), None) for at, line in source.items()}
    for end, name in labels.items():
        if name is None:
            continue
        start = max(at for at in source if at < end and "\\begin{tabular}" in source[at])
        for at in range(start, end):
            cells = source[at].split("&")[TABLES[name] :]
            found = [float_of(*parts) for cell in cells for parts in numbers_of(cell)]
            if found and not re.search("shortstack|Mean", source[at]):  # heads of columns
                yield at, found


def numbers_of(cell):
    return re.findall(r"(-?\d*\.?\d+(?:e-?\d+)?)(\\%)?", re.sub(r" \\times 10\^\{(-\d+)\}", r"e\1", cell.replace("{,}", "")))


def float_of(digits, percent):
    return float(digits) / 100 if percent else float(digits)


def test_every_number_of_the_tables_stands_once_in_its_place(source):
    rows = dict(result_rows(source))
    assert len(rows) == 3 + 4 + 5 + 4 + 6
    for line, found in rows.items():
        assert standing(line) == found, source[line]


def test_every_decimal_number_of_the_text_stands_once_or_is_no_result(source):
    rows = dict(result_rows(source))
    for line, text in source.items():
        if line in rows:
            continue
        left = text
        for pattern in NO_RESULTS:
            left = re.sub(pattern, " ", left)
        listed = Counter(standing(line, lambda one: re.search(DECIMAL, one.printed)))
        assert Counter(map(float, re.findall(DECIMAL, left))) == listed, f"line {line}: {text}"


def test_what_is_listed_stands_on_its_line_as_it_is_printed(source):
    for one in LISTED:
        assert one.printed in source[one.line], one.key
        if one.kind == "number" and not re.search(DECIMAL, one.printed):  # decimals are held to every line above
            assert all(one.printed in source[line] for line in one.again), one.key


def test_names_of_the_list_are_its_own():
    assert len({one.key for one in LISTED}) == len(LISTED)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        (".83", 0.83),
        ("11{,}431", 11431),
        ("80\\%", 0.8),
        ("$9 \\times 10^{-6}$", 9e-6),
        ("\\mathbf{-0.111}", -0.111),
        ("\\sim 0", 0),
    ],
)
def test_numbers_are_read_as_the_source_writes_them(text, value):
    assert number(text) == pytest.approx(value)


VALUES = {one.key: one.value for one in LISTED if one.counted or "standard error" in one.key}


def test_what_is_set_aside_follows_from_the_numbers_it_names():
    errors = [key for key in VALUES if key.endswith(", standard error")]
    assert len(errors) == 10
    for key in errors:
        rate = VALUES[key.removesuffix(", standard error")]
        assert VALUES[key] == pytest.approx(math.sqrt(rate * (1 - rate) / 200), abs=0.006), key  # .035 printed as .04
    printed = {one.key: one.value for one in LISTED if one.kind == "number" and one.printed.replace(".", "").isdigit()}
    means = [VALUES[f"C1-hat, width {width}, mean"] for width in (50, 200)]
    assert printed["C1-hat, factor over widths"] == pytest.approx(means[0] / means[1], abs=0.01)
    ends = VALUES["C1-hat, shift .3, largest"], VALUES["C1-hat, shift 1, smallest"]
    assert printed["C1-hat, factor over shifts"] == pytest.approx(ends[0] / ends[1], abs=0.01)
    ends = VALUES["C1 ablation, Pi at C1 = 1e-5"], VALUES["C1 ablation, Pi at C1 = 10"]
    assert printed["C1 ablation, fall of Pi"] == pytest.approx(ends[0] / ends[1], rel=0.02)


@pytest.mark.parametrize("cell", ["width 50", "width 100", "width 200", "shift .3", "shift .7", "shift 1"])
def test_three_seeds_have_the_deviation_that_is_printed_divided_by_three(cell):
    mean, low, high = (VALUES[f"C1-hat, {cell}, {what}"] for what in ("mean", "smallest", "largest"))
    seeds = (low, 3 * mean - low - high, high)
    deviation = math.sqrt(sum((seed - mean) ** 2 for seed in seeds) / 3)
    std = next(one.value for one in LISTED if one.key == f"C1-hat, {cell}, std")
    assert std == pytest.approx(deviation, abs=0.00012)  # four digits of each


def test_the_papers_j_cp_has_c1_a_thousandth():
    for width in (10, 50, 200, 400):
        mmd2, g, j_cp = (VALUES[f"collapse, width {width}, {what}"] for what in ("MMD2", "G", "J_CP"))
        assert (mmd2 - j_cp) / g == pytest.approx(0.001, rel=0.01)


@pytest.mark.parametrize(
    ("what", "ours", "verdict"),
    [
        ("c1", 1.6, "within error"),  # standard errors .5 and .5, 4 degrees of freedom: 2.78 * .707 = 1.96 is the limit
        ("c1", 2.9, "within error"),
        ("c1", 3.0, "higher"),
        ("max", 3.0, "within error"),  # .748 of the deviation for the largest of three: 2.78 * .916 = 2.54 is the limit
        ("max", 3.6, "higher"),
        ("min", -1.6, "lower"),
    ],
)
def test_seeds_are_judged_by_their_own_deviations(what, ours, verdict):
    seeds = Seeds(math.sqrt(0.5), 3)  # unbiased .75
    assert seeds.variance == pytest.approx(0.75)
    assert _judge_seeds(what, 1.0, seeds, ours, seeds) == verdict


@pytest.mark.parametrize(("ours", "verdict"), [(6.2, "within error"), (6.3, "higher"), (0.15, "lower")])
def test_spreads_are_judged_by_the_f_test(ours, verdict):
    assert _judge_seeds("std", 1.0, Seeds(1.0, 3), ours, Seeds(ours, 3)) == verdict  # F(2, 2) has 39 at 2.5%


@pytest.fixture(scope="module")
def comparisons():
    pytest.importorskip("torch")
    pytest.importorskip("matplotlib")
    from experiments.page import look

    return {name: look(name, RESULTS).comparisons for name in MODULES}


def test_both_tallies_count_the_list(comparisons):
    numbers = [one for one in LISTED if one.kind == "number"]
    counted = [one for one in numbers if one.counted]
    assert len(numbers) == len(counted) + sum(bool(one.aside) for one in numbers)
    for tally in tallies(comparisons):
        assert tally.total() == len(counted)
        assert set(tally) <= set(VERDICTS)


def test_the_best_reading_is_no_worse_than_the_printed_one(comparisons):
    for one in (one for one in LISTED if one.counted):
        as_printed, best = verdicts(one, comparisons)
        assert best in AGREE or as_printed not in AGREE, one.key


def test_every_compared_number_is_listed_with_its_value(comparisons):
    reached = {id(each.claim) for one in LISTED for each in one.found((*one.as_printed, *one.best), comparisons)}
    for name, found in comparisons.items():
        for each in found:
            if each.claim["source"] in ("", "words", "other data"):
                assert id(each.claim) in reached, f"{name}: {each.claim['cell']} {each.claim['quantity']}"


def test_a_number_of_several_cells_has_the_worst_of_their_verdicts(comparisons):
    found = {one.verdict: one for each in comparisons.values() for one in each}
    assert judge([found["within error"], found["lower"], found["as said"]]) == ("lower", found["lower"])
    assert judge([found["higher"], found["lower"]])[0] == "to both sides"
    assert judge([found["not run"], found["lower"]])[0] == "not run"


def test_every_number_that_differs_has_a_paragraph_on_the_page(comparisons):
    text = (HERE / "reproduction.template.md").read_text()
    for one in LISTED:
        if one.counted and verdicts(one, comparisons)[0] not in AGREE:
            assert one.text, one.key
        assert f"**{one.text}" in text, one.text


@pytest.mark.parametrize("name", MODULES)
def test_the_files_of_the_paper_use_known_sources(name):
    assert {row["source"] for row in read_csv(PAPER / f"{name}.csv")} <= {"", "again", "words", "ours", "other data"}
