"""The numbers that the paper prints, each once, and two tallies of them: as printed and at the best reading.

``experiments/paper/printed.csv`` lists them with their line in the paper's source. Each points to rows of the files beside
it, which say what of ours is compared: as the paper's words have it, and where the words can be read otherwise, by the reading
that lies nearest. Below the numbers stand the statements that the paper makes without one.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass

from experiments.base import PAPER, read_csv
from experiments.compare import Comparison

LIST = PAPER / "printed.csv"
SIDES = ("higher", "lower")
AGREE, DIFFER = ("as said", "within error", "within 10%", "within 25%", "within 50%"), (*SIDES, "to both sides")
OTHER = ("other data", "not run")
VERDICTS = (*AGREE, *DIFFER, *OTHER)  # from the best to the worst
Comparisons = Mapping[str, list[Comparison]]  # by id


@dataclass(frozen=True)
class Printed:
    """One number of the paper, or one statement without a number."""

    kind: str  # "number" or "statement"
    key: str
    where: str
    line: int  # of paper.tex
    printed: str  # as it stands there
    again: tuple[int, ...]  # lines that repeat it
    aside: str  # why it is not counted, if it is not: it follows from others, or cannot be compared
    as_printed: tuple[str, ...]  # id::cell::quantity of the rows that it is compared by
    best: tuple[str, ...]  # the same at the best reading, where that is another
    takes: str  # what the best reading takes
    sure: str
    text: str  # the paragraph of the page that speaks of it

    @property
    def counted(self) -> bool:
        """Whether it is in the tallies."""
        return self.kind == "number" and not self.aside

    @property
    def value(self) -> float:
        """The number."""
        return number(self.printed)

    def found(self, rows: Iterable[str], comparisons: Comparisons) -> list[Comparison]:
        """Return what is compared, row by row."""
        return [self._one(*row.split("::"), comparisons) for row in rows]

    def _one(self, name: str, cell: str, quantity: str, comparisons: Comparisons) -> Comparison:
        here = [one for one in comparisons[name] if (one.claim["cell"], one.claim["quantity"]) == (cell, quantity)]
        if self.kind == "number":  # a cell can stand in two tables of the paper, with two numbers
            here = [one for one in here if self._says(one.claim)]
        return here[0]

    def _says(self, claim: Mapping[str, str]) -> bool:
        return float(claim["value"]) == self.value or (self.value == 0 and claim["relation"] == "<=")  # rounded to zero


def number(text: str) -> float:
    """Return a number of the paper's source: ``.83``, ``11{,}431``, ``80\\%``, ``$9 \\times 10^{-6}$``, ``\\sim 0``."""
    plain = text.replace("\\mathbf", "").replace("\\sim", "").replace("{,}", "").replace(" \\times 10^", "e")
    plain = plain.translate(str.maketrans("", "", "${} "))
    return float(plain[:-2]) / 100 if plain.endswith("\\%") else float(plain)


def read_printed() -> list[Printed]:
    """Return the list."""
    return [
        Printed(
            **{name: row[name] for name in ("kind", "key", "where", "printed", "aside", "takes", "sure", "text")},
            line=int(row["line"]),
            again=tuple(map(int, row["again"].split())),
            **{name: tuple(filter(None, row[name].split(" & "))) for name in ("as_printed", "best")},
        )
        for row in read_csv(LIST)
    ]


def judge(found: list[Comparison]) -> tuple[str, Comparison]:
    """Return the verdict on a number that is said of several cells, the worst of them, and the cell that has it."""
    worst = max(found, key=lambda one: VERDICTS.index(one.verdict))
    both = {one.verdict for one in found} >= set(SIDES)
    return ("to both sides" if both else worst.verdict), worst


def verdicts(one: Printed, comparisons: Comparisons) -> tuple[str, str]:
    """Return the verdicts as printed and at the best reading."""
    as_printed = judge(one.found(one.as_printed, comparisons))[0]
    return as_printed, judge(one.found(one.best, comparisons))[0] if one.best else as_printed


def tallies(comparisons: Comparisons) -> tuple[Counter[str], Counter[str]]:
    """Return how often each verdict is given, as printed and at the best reading."""
    pairs = [verdicts(one, comparisons) for one in read_printed() if one.counted]
    return Counter(first for first, _ in pairs), Counter(second for _, second in pairs)


def tally_table(comparisons: Comparisons) -> str:
    """Return both tallies, and that of the statements, in Markdown."""
    said = Counter(verdicts(one, comparisons)[0] for one in read_printed() if one.kind == "statement")
    counts = dict(zip(("numbers, as printed", "numbers, best reading"), tallies(comparisons), strict=True)) | {"statements": said}
    shown = [verdict for verdict in VERDICTS if any(count[verdict] for count in counts.values())]
    lines = ["| | agree | differ | all | " + " | ".join(shown) + " |", "|" + " --- |" * (len(shown) + 4)]
    for name, count in counts.items():
        sums = [sum(count[verdict] for verdict in some) for some in (AGREE, DIFFER, VERDICTS)]
        lines.append(f"| {name} | " + " | ".join(map(str, [*sums, *(count[verdict] for verdict in shown)])) + " |")
    return "\n".join(lines)


def by_artefact(comparisons: Comparisons) -> str:
    """Return how many numbers each table, figure and section prints, and how many agree, in Markdown."""
    lines = ["| printed in | numbers | agree as printed | agree at the best reading |", "| --- | --- | --- | --- |"]
    numbers = [one for one in read_printed() if one.counted]
    for where in dict.fromkeys(one.where for one in numbers):
        pairs = [verdicts(one, comparisons) for one in numbers if one.where == where]
        agree = [sum(pair[at] in AGREE for pair in pairs) for at in (0, 1)]
        lines.append(f"| {where} | {len(pairs)} | {agree[0]} | {agree[1]} |")
    return "\n".join(lines)


def readings_table(comparisons: Comparisons) -> str:
    """Return the numbers and statements that do not agree as printed or have another reading, in Markdown."""
    lines = [
        "| number | line | paper | as printed | best reading | what it takes | how sure, and where it is spoken of |",
        "| --- | --- | --- | --- | --- | --- | --- |",
    ]
    for one in read_printed():
        if one.aside or (not one.best and verdicts(one, comparisons)[0] in AGREE):
            continue
        best = _shown(one.found(one.best, comparisons)) if one.best else ""
        paper = judge(one.found(one.as_printed, comparisons))[1].paper
        words = "; ".join(filter(None, (one.sure, one.text and f"**{one.text}**")))
        cells = (one.key, one.line, paper, _shown(one.found(one.as_printed, comparisons)), best, one.takes, words)
        lines.append("| " + " | ".join(map(str, cells)) + " |")
    return "\n".join(lines)


def _shown(found: list[Comparison]) -> str:
    verdict, worst = judge(found)
    return f"{worst.ours}{f', worst of {len(found)}' if len(found) > 1 else ''}: {verdict}".removeprefix(", ")
