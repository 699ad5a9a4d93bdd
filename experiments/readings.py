"""The last table of the page: the paper's number, ours as it is printed, the best reading we know, and how sure we are of it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from experiments.base import Rows
from experiments.compare import RATES, same_value

Summaries = dict[str, Rows]  # rows of each id's summary, as text


@dataclass(frozen=True)
class Number:
    """One number of a summary: an id, a column, and the cell it belongs to."""

    id: str
    cell: dict[str, Any]
    column: str = "reject"

    def found(self, summaries: Summaries) -> str:
        """Return it with its standard error and repetitions."""
        rows = summaries.get(self.id, [])
        row = next(
            (r for r in rows if r.get(self.column) and all(same_value(r.get(k), str(v)) for k, v in self.cell.items())), None
        )
        if row is None:
            return "not run"
        value, error = float(row[self.column]), float(row.get(f"{self.column}_error") or "nan")
        count = row.get("repetitions") or row.get("seeds")
        shown = (
            f"{value:.2f} ± {error:.2f}"
            if self.column in RATES
            else f"{value:.4g}" + ("" if math.isnan(error) else f" ± {error:.0f}" if error >= 100 else f" ± {error:.2g}")
        )
        return f"{shown} ({count})" if count else shown


@dataclass(frozen=True)
class Reading:
    """One number of the paper and what it may be."""

    what: str
    paper: str
    printed: Number
    best: Number | None
    words: str
    sure: str


def _mixture(method: str, kernel: str, d: int, n: int = 100) -> Number:
    return Number("factorial", {"d": d, "n": n, "kernel": kernel, "method": method})


def _deep(method: str, d: int, n: int) -> Number:
    return Number("deep", {"d": d, "n": n, "shift": 0.5, "method": method})


def _calibrated(d: int, n: int) -> Number:
    return Number("deep-start", {"d": d, "n": n, "start": "3/fan_in", "method": "cp"})


REUSED = "C1-hat of another start and data set, reused"
SINGLE = "sigma_q from 1; ties within single precision of a unit diagonal"
FITTED = "not sure: the start was chosen to fit the rows of Liu and Plain"
LOST = "possible: rows are so far apart that the kernel's values are lost beside its diagonal"
READINGS = (
    Reading("linear, shift .3, CP", "1.00", Number("linear", {"shift": 0.3, "method": "cp"}), None, "as printed", "agrees"),
    Reading(
        "linear, shift .3, Median", ".47", Number("linear", {"shift": 0.3, "method": "median"}), None, "as printed", "agrees"
    ),
    Reading(
        "kurtosis, df 20, CP",
        ".90",
        Number("polynomial", {"df": 20, "method": "cp"}),
        Number("polynomial-halves", {"n": 1000, "df": 20, "method": "cp-narrow"}),
        "n is that of a half, bandwidths up to 1/8 of the median",
        "likely for n, as of MMDAgg; the end of the search was chosen to fit",
    ),
    Reading(
        "kurtosis, df 20, any bandwidth",
        ".90",
        Number("polynomial-halves", {"quantity": "largest power of a fixed bandwidth at n = 500, df = 20"}),
        None,
        "the largest power that a fixed bandwidth has as printed",
        "sure: .90 is out of reach at n = 500",
    ),
    Reading(
        "kurtosis, df 20, MMDAgg",
        ".80",
        Number("polynomial", {"df": 20, "method": "mmdagg B=10"}),
        Number("polynomial-rows", {"df": 20, "method": "mmdagg B=10"}),
        "n is that of a half",
        "likely: nothing was fitted",
    ),
    Reading(
        "Higgs, n = 500, CP degree 3",
        "1.00",
        Number("higgs", {"n": 500, "method": "cp-poly3"}),
        Number("higgs-rows", {"n": 1000, "scale": "raw", "method": "cp-poly3"}),
        "n is that of a half, columns raw",
        "likely for n; open for the columns, standardised .74 ± .06 (50), and raw Median falls to .68 at n = 500",
    ),
    Reading(
        "Higgs, n = 500, MMDAgg",
        ".98",
        Number("higgs", {"n": 500, "method": "mmdagg"}),
        Number("higgs-rows", {"n": 500, "scale": "raw", "method": "mmdagg"}),
        "columns raw",
        "does not tell them apart",
    ),
    *(
        Reading(f"deep, d = {d}, n = {n}, CP", paper, _calibrated(d, n), _deep("cp-reused", d, n), REUSED, FITTED)
        for d, n, paper in ((2, 200, ".83"), (20, 200, "1.00"), (50, 100, "1.00"), (100, 100, "1.00"), (20, 50, "1.00"))
    ),
    Reading("deep, d = 100, n = 100, Plain", ".36", _deep("plain", 100, 100), None, "weights of variance 3/fan_in", FITTED),
    Reading("deep, d = 100, n = 100, Liu", ".73", _deep("liu", 100, 100), None, "weights of variance 3/fan_in", "not explained"),
    *(
        Reading(
            f"mixture, d = 100, n = 100, {name}",
            paper,
            _mixture(method, "mixture", 100),
            _mixture(method, "mixture-single", 100),
            SINGLE,
            LOST,
        )
        for name, method, paper in (("CP", "cp-reused", ".01"), ("Liu", "liu", ".00"), ("Plain", "plain", ".00"))
    ),
    *(
        Reading(
            f"mixture, d = 50, n = 100, {name}",
            paper,
            _mixture(method, "mixture", 50),
            _mixture(method, "mixture-single", 50),
            SINGLE,
            "not explained",
        )
        for name, method, paper in (("CP", "cp-reused", ".16"), ("Liu", "liu", ".23"), ("Plain", "plain", ".23"))
    ),
    *(
        Reading(
            f"collapse, width {width}, J",
            paper,
            Number("collapse", {"width": width}, "j_liu"),
            Number("collapse-variance", {"width": width}, "j"),
            "MMD2 / (V + 1e-6)",
            sure,
        )
        for width, paper, sure in (
            (10, "706", "possible: nearer in size"),
            (50, "11431", "possible: nearer in size"),
            (200, "5578", "possible: within error, which the others are not"),
            (400, "126", "no: as printed it is nearer"),
        )
    ),
    Reading(
        "C1-hat, width 200",
        ".0089",
        Number("c1-width", {"width": 200}, "c1"),
        Number("c1-width", {"width": 200}, "c1_root"),
        "G with sqrt(N) in place of N",
        "nearly sure: it fits seven numbers of two tables",
    ),
    Reading(
        "false selection under the null",
        "<= .05",
        Number("false-selection", {"null": "two scales"}, "selected"),
        None,
        "as printed",
        "sure: the maximum of ten is no 95% quantile",
    ),
    Reading(
        "fixed bandwidth, limit of the dilation",
        ".05",
        Number("rates", {"quantity": "rejections in the limit of the dilation"}, "value"),
        None,
        "as printed",
        "sure: the closest pairs decide, and which they are depends on the densities",
    ),
)


def readings_table(summaries: Summaries) -> str:
    """Return the table in Markdown."""
    lines = ["| number | paper | as printed | best reading | what it takes | how sure |", "| --- | --- | --- | --- | --- | --- |"]
    for one in READINGS:
        best = "" if one.best is None else one.best.found(summaries)
        lines.append(f"| {one.what} | {one.paper} | {one.printed.found(summaries)} | {best} | {one.words} | {one.sure} |")
    return "\n".join(lines)
