"""Ours beside the paper's: one verdict a cell."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from experiments.base import PAPER, Rows, cell_of, read_csv

ERRORS = 2.0  # standard errors that still count as the same
RATES = ("reject", "collapsed", "selected")
FEWEST = 20  # repetitions that a rate is judged from by its standard error
FEWEST_EXACT = 10  # by Fisher's exact test, at the same 5%
EXTREME_OF_THREE = 1 + math.sqrt(3) / (2 * math.pi) - 9 / (4 * math.pi)  # variance of the largest of three normal values


@dataclass(frozen=True)
class Comparison:
    """One number and ours beside it."""

    claim: dict[str, Any]  # the row of experiments/paper that it is about
    cell: str
    quantity: str
    paper: str
    ours: str
    verdict: str
    note: str
    printed: bool = True  # whether the paper prints it as a number


@dataclass(frozen=True)
class Seeds:
    """The values of some seeds by their spread."""

    std: float  # divided by their number, as the paper's is: its three values follow from its mean, minimum and maximum
    count: int

    @property
    def variance(self) -> float:
        """Unbiased."""
        return self.std**2 * self.count / (self.count - 1)


def compare_rows(name: str, rows: Rows) -> list[Comparison]:
    """Return the comparison of one experiment from the rows of its summary, as text."""
    return [_compare_one(claim, rows) for claim in read_csv(PAPER / f"{name}.csv")]


def _compare_one(claim: dict[str, Any], rows: Rows) -> Comparison:
    quantity, relation, value = claim["quantity"], claim["relation"], float(claim["value"])
    cell = cell_of(claim)
    found = next((row for row in rows if all(same_value(row.get(k), v) for k, v in cell.items()) and row.get(quantity)), None)
    shown = ", ".join(cell.values()) if "quantity" in cell else claim["cell"].replace(";", ", ")
    paper = ("" if relation in ("=", "~", "level") else f"{relation} ") + f"{value:g}"
    what = "" if quantity == "value" else quantity
    # "": printed, and listed in printed.csv; "again": the same under another reading; "other data": ours are not the paper's;
    # "words": said without a number; "ours": not said.
    source = claim["source"]
    about = {"note": claim["note"], "printed": source not in ("ours", "words")}
    if found is None:
        return Comparison(claim, shown, what, paper, "", "not run", **about)
    ours = float(found[quantity])
    count = int(float(found.get("repetitions") or found.get("seeds") or 0))
    if quantity in RATES:
        verdict, error = _judge_rate(relation, value, claim["repetitions"], ours, count)
        text = f"{ours:.2f} ± {error:.2f} ({count})"
    elif claim.get("deviation"):
        unit = "_root" if quantity.endswith("_root") else ""
        theirs = Seeds(float(claim["deviation"]), int(claim["repetitions"]))
        verdict = _judge_seeds(quantity.removesuffix("_root"), value, theirs, ours, Seeds(float(found[f"std{unit}"]), count))
        text = f"{ours:.3g} ({count})"
    else:
        error = float(found.get(f"{quantity}_error") or 0) if quantity == "value" else 0.0
        verdict = _judge_number(relation, value, float(claim["tolerance"] or 0.25), ours, error)
        text = f"{ours:.3g}" + (f" ± {error:.2g}" if error else "")
    return Comparison(claim, shown, what, paper, text, "other data" if source == "other data" else verdict, **about)


def same_value(found: str | None, wanted: str) -> bool:
    """Return whether two texts are the same, or the same number."""
    if found == wanted:
        return True
    try:
        return float(found or "nan") == float(wanted)
    except ValueError:
        return False


def _judge_rate(relation: str, value: float, repetitions: str, ours: float, count: int) -> tuple[str, float]:
    """Two proportions, pooled: the same where they differ by at most two standard errors; an inequality holds or not."""
    error = math.sqrt(max(ours * (1 - ours), 0) / count) if count else math.nan
    if count < FEWEST_EXACT:
        return "too few to say", error
    if count < FEWEST:
        return _judge_counts(value, int(repetitions or 0), ours, count), error
    if relation == "level":
        spread = math.sqrt(value * (1 - value) / count)
        return ("within error" if abs(ours - value) <= ERRORS * spread else _side(ours, value)), error
    theirs = int(repetitions) if repetitions else None
    pooled = value if theirs is None else (value * theirs + ours * count) / (theirs + count)
    spread = math.sqrt(pooled * (1 - pooled) * (1 / count + (0 if theirs is None else 1 / theirs)))
    said = {"=": False, "<=": ours <= value, ">=": ours >= value}[relation]
    return ("as said" if said else "within error" if abs(ours - value) <= ERRORS * spread else _side(ours, value)), error


def _side(ours: float, value: float) -> str:
    return "higher" if ours > value else "lower"


def _judge_counts(value: float, theirs: int, ours: float, count: int) -> str:
    """Two counts, by Fisher's exact test."""
    from scipy.stats import fisher_exact

    if not theirs:
        return "too few to say"
    hits = [round(value * theirs), round(ours * count)]
    p = fisher_exact([[hits[0], theirs - hits[0]], [hits[1], count - hits[1]]]).pvalue
    return "within error" if p > 0.05 else _side(ours, value)


def _judge_seeds(what: str, value: float, theirs: Seeds, ours: float, own: Seeds) -> str:
    """A mean, minimum or maximum over seeds by Welch's test of both spreads, a spread by the F test, both at 5%."""
    from scipy.stats import f, t

    if what in ("std", "cv"):
        ratio = (ours / value) ** 2
        tail = min(f.cdf(ratio, own.count - 1, theirs.count - 1), f.sf(ratio, own.count - 1, theirs.count - 1))
        return "within error" if 2 * tail > 0.05 else _side(ours, value)
    parts = [seeds.variance * (1 / seeds.count if what == "c1" else EXTREME_OF_THREE) for seeds in (theirs, own)]
    freedom = sum(parts) ** 2 / sum(part**2 / (seeds.count - 1) for part, seeds in zip(parts, (theirs, own), strict=True))
    p = 2 * t.sf(abs(ours - value) / math.sqrt(sum(parts)), freedom)
    return "within error" if p > 0.05 else _side(ours, value)


def _judge_number(relation: str, value: float, tolerance: float, ours: float, error: float = 0.0) -> str:
    """Numbers that are no rates: an inequality holds or not, an equality within two standard errors or a tolerance it names."""
    if (relation == "<=" and ours <= value) or (relation == ">=" and ours >= value):
        return "as said"
    if error and abs(ours - value) <= ERRORS * error:
        return "within error"
    return f"within {tolerance:.0%}" if relation == "~" and abs(ours - value) <= tolerance * abs(value) else _side(ours, value)
