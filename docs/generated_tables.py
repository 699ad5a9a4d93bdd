"""Tables of the pages, made from the results of the benchmarks: nothing is typed."""

from __future__ import annotations

import csv
import json
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path

import field_tables

from experiments.panels import PRINTED, PUBLISHED

RESULTS = Path(__file__).parents[1] / "benchmarks" / "results"
METHODS = ("cp-full", "mmdagg", "mmdagg std", "mmdfuse", "mmdfuse std", "median", "median std", "four classes")
LINES = {
    "power.md": lambda: power(lambda panel: panel not in PUBLISHED),
    "published.md": lambda: published(),
    "landmarks.md": lambda: table(RESULTS / "landmark_power.csv"),
    "spectral_split.md": lambda: table(RESULTS / "spectral_split.csv"),
    "frontier.md": lambda: (RESULTS / "frontier.md").read_text(),
    "linear_map.md": lambda: (RESULTS / "linear_map.md").read_text(),
    "linear.md": lambda: (RESULTS / "linear.md").read_text(),
    "scale.md": lambda: (RESULTS / "scale.md").read_text().split("\n", 2)[2],
    "beyond.md": lambda: beyond(),
    "binned.md": lambda: table(RESULTS / "binned_power.csv"),
    "selection.md": lambda: table(RESULTS / "selection_size.csv"),
    "responses_power.md": lambda: responses("power"),
    "responses_level.md": lambda: responses("level"),
    "containers.md": lambda: table(RESULTS / "containers.csv"),
    "reference/named.md": lambda: named(),
    **field_tables.TABLES,
}


def write(folder: Path) -> None:
    """Write every table into ``folder/generated``."""
    target = folder / "generated"
    (target / "reference").mkdir(parents=True, exist_ok=True)
    for name, make in LINES.items():
        text = make()
        if not (target / name).exists() or (target / name).read_text() != text:
            (target / name).write_text(text)


def _rejections() -> dict[tuple[str, str], list[int]]:
    """Whether each draw was rejected at level .05, by panel and method."""
    counts: dict[tuple[str, str], list[int]] = defaultdict(list)
    for path in sorted((RESULTS / "power_panels").glob("*.jsonl")):
        _, *finished = map(json.loads, path.read_text().splitlines())  # the first line is a header
        for one in (row for row in finished if "values" in row):  # not those that failed
            counts[one["cell"]["panel"], one["cell"]["method"]].append(int(one["values"]["pvalue"] <= 0.05))
    return counts


def power(wanted: Callable[[str], bool]) -> str:
    """Power of the methods on some panels: share of rejections at level 0.05, with the number of draws."""
    counts = _rejections()
    panels = [panel for panel in dict.fromkeys(panel for panel, _ in counts) if wanted(panel)]
    lines = ["| panel | " + " | ".join(METHODS) + " | draws |", "|" + " --- |" * (len(METHODS) + 2)]
    for panel in panels:
        found = [counts[panel, method] for method in METHODS]
        rates = [sum(c) / len(c) if c else float("nan") for c in found]
        best = max((rate for rate in rates if rate == rate), default=0.0)
        shown = ["" if rate != rate else f"**{rate:.2f}**" if rate >= best - 0.005 else f"{rate:.2f}" for rate in rates]
        sizes = sorted({len(c) for c in found if c})
        lines.append(f"| {panel} | " + " | ".join(shown) + f" | {' to '.join(map(str, dict.fromkeys([sizes[0], sizes[-1]])))} |")
    return "\n".join(lines) + "\n"


def published() -> str:
    """Power on the panels of the peers' papers, with the number of draws, beside what those print."""
    counts = _rejections()
    measured = [method for method in METHODS if any(counts[panel, method] for panel in PUBLISHED)]
    heads = [*measured, *(f"{peer}, printed" for peer in PRINTED)]
    lines = ["| panel | " + " | ".join(heads) + " |", "|" + " --- |" * (len(heads) + 1)]
    for panel in PUBLISHED:
        found = [counts[panel, method] for method in measured]
        cells = [f"{sum(c) / len(c):.3f} ({len(c)})" if c else "" for c in found]
        cells += [f"{printed[panel]:.3f}" if panel in printed else "" for printed in PRINTED.values()]
        lines.append(f"| {panel} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def table(path: Path) -> str:
    """Return a CSV file as a Markdown table."""
    with path.open(newline="") as file:
        head, *rows = list(csv.reader(file))
    lines = ["| " + " | ".join(head) + " |", "|" + " --- |" * len(head)]
    return "\n".join([*lines, *("| " + " | ".join(row) + " |" for row in rows)]) + "\n"


def responses(what: str) -> str:
    """Share of rejections of answers to prompts, with standard errors."""
    rows = list(csv.DictReader((RESULTS / f"responses_{what}.csv").open()))
    names = [name for name in rows[0] if f"{name}_error" in rows[0]]
    lines = ["| change | answers a prompt | " + " | ".join(names) + " | draws |", "|" + " --- |" * (len(names) + 3)]
    for row in rows:
        shares = [f"{float(row[name]):.3g} ± {float(row[f'{name}_error']):.2g}" for name in names]
        lines.append(f"| {row['change']} | {row['answers']} | {' | '.join(shares)} | {row['repetitions']} |")
    return "\n".join(lines) + "\n"


def beyond() -> str:
    """Return what the measured times come to beyond them: the default test in proportion, a fixed kernel by the square."""
    default, fixed = (_last_row(RESULTS / f"{name}.md") for name in ("linear", "scale"))
    return (
        f"The default test took {default[1]:.0f} s for {default[0]:,.0f} rows on two cores; in proportion, 10^8 take "
        f"about {_about(default[1] * 1e8 / default[0])}. One fixed kernel over all pairs took {fixed[1]:.0f} s for "
        f"{fixed[0]:,.0f} rows; by the square of the rows, a million take about {_about(fixed[1] * (1e6 / fixed[0]) ** 2)}.\n"
    )


def _last_row(path: Path) -> tuple[float, float]:
    """Return the rows and the seconds in the last line of a file's last table."""
    line = [line for line in path.read_text().splitlines() if line.startswith("|")][-1]
    rows, seconds = (float(cell.replace(",", "")) for cell in line.split("|")[1:3])
    return rows, seconds


def _about(seconds: float) -> str:
    return f"{seconds / 60:.0f} minutes" if seconds < 5400 else f"{seconds / 3600:.1f} hours"


def named() -> str:
    """Return the page of everything that has a name: methods, procedures, kernel families, criteria."""
    from cpmmd import methods, registry

    parts = {"Procedures": registry.procedures(), "Kernel families": registry.families(), "Criteria": registry.criteria()}
    lines = ["# Methods, procedures, families, criteria", "", "| method | |", "| --- | --- |"]
    lines += [f"| `{name}` | {summary} |" for name, summary in methods().items()]
    for title, kinds in parts.items():
        block = ["```{eval-rst}", ".. currentmodule:: cpmmd", ".. autosummary::", "   :toctree: ../api", ""]
        lines += ["", f"## {title}", "", *block, *(f"   {name}" for name in kinds), "```"]
    return "\n".join(lines) + "\n"
