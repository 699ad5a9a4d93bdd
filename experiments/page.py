"""The comparison printed, and the pages docs/reproduction.md and docs/authors.md made from it and hand-written templates."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from cpmmd import StudyTable
from experiments import authors
from experiments.base import HERE, Experiment, Rows, as_text
from experiments.compare import Comparison, compare_rows
from experiments.registry import MODULES, find
from experiments.tally import by_artefact, readings_table, tally_table

DOCS = HERE.parent / "docs"
PAGES = {DOCS / f"{name}.md": HERE / f"{name}.template.md" for name in ("reproduction", "authors")}  # page: its template
REFERENCE = "../experiments/results"  # from the page to the figures
# Columns of a summary that do not tell one cell from another.
MEASURED = (
    *("method", "repetitions", "reject", "pvalue", "c1", "part", "deviation", "loss", "bound", "quantity", "value"),
    *("sigma_q", "multiple", "selected", "rate"),
)
DEEP_CELLS = ("2, n=200", "20, n=200", "50, n=100", "100, n=100", "20, n=50")
HEADLINES = {  # the cells that the paper's story rests on
    "richness": ("width=1000, method=cp-reused", "width=1000, method=liu", "width=1000, method=plain"),
    "linear": ("shift=0.3, method=cp", "shift=0.3, method=median"),
    "polynomial": ("df=20, method=cp", "df=20, method=mmdagg B=10", "df=20, method=cp-full"),
    "deep": tuple(f"d={cell}, shift=0.5, method=cp-reused" for cell in DEEP_CELLS),
    "deep-start": tuple(f"d={cell}, start=3/fan_in, method=cp" for cell in DEEP_CELLS),
    "factorial": tuple(f"d=100, n=100, kernel=mixture, method={method}" for method in ("cp-reused", "liu", "plain")),
    "higgs": ("n=500, method=cp-poly3", "n=500, method=cp-deep"),
    "collapse": ("largest J_CP of a collapsed run",),
    "c1-ablation": ("2/fan_in, slope over 1e-3 to 1e-1", "3/fan_in, slope over 1e-3 to 1e-1"),
    "false-selection": ("null=two scales, method=cp",),
    "cost": ("MMDAgg over cp-poly3 (deployed) at B = 10", "MMDAgg over cp-poly3 (whole) at B = 10"),
}


@dataclass(frozen=True)
class Found:
    """What there is of one experiment."""

    experiment: Experiment
    table: StudyTable | None
    rows: Rows  # of the summary, as text

    @property
    def comparisons(self) -> list[Comparison]:
        """Ours beside the paper's."""
        return compare_rows(self.experiment.id, self.rows)

    @property
    def done(self) -> int:
        """Repetitions that every cell has."""
        if self.table is None:
            return 0
        counts = Counter(tuple(one.cell.items()) for one in self.table.repetitions)
        return min(counts[tuple(cell.items())] for cell in self.experiment.cells)


def look(name: str, results: Path) -> Found:
    """Read what is finished of one experiment."""
    experiment = find(name)
    table = experiment.read(results)
    return Found(experiment, table, [] if table is None else as_text(experiment.summarise(table)))


def compare(name: str | None, *, results: Path, write_docs: bool) -> int:
    """Print one id's comparison or all; where asked, write tables, figures and the page from the repetitions."""
    for one in MODULES if name is None else [name]:
        found = look(one, results)
        if write_docs and found.table is not None:
            found.experiment.publish(found.table, results)
        print(f"\n{one}: {found.experiment.title}")
        print(_table(found.comparisons))
    if write_docs:
        for path, text in pages(results).items():
            path.write_text(text)
            print(f"\nwrote {path}")
    return 0


def tally(results: Path) -> int:
    """Print both tallies of the paper's numbers, whole and by table and figure."""
    comparisons = {name: look(name, results).comparisons for name in MODULES}
    print(tally_table(comparisons), by_artefact(comparisons), sep="\n\n")
    return 0


def pages(results: Path) -> dict[Path, str]:
    """Return the pages, each its template with the generated parts."""
    every = [look(name, results) for name in MODULES]
    comparisons = {found.experiment.id: found.comparisons for found in every}
    parts = {
        "status": _status(every),
        "tallies": tally_table(comparisons),
        "artefacts": by_artefact(comparisons),
        "headlines": _headlines(every),
        "readings": readings_table(comparisons),
        "comparison": "\n".join(_section(found, results) for found in every),
        **authors.tables({found.experiment.id: found.rows for found in every}),
    }
    return {path: _filled(template.read_text(), parts) for path, template in PAGES.items()}


def _filled(text: str, parts: dict[str, str]) -> str:
    for name, part in parts.items():
        text = text.replace("{{ " + name + " }}", part)
    return text


def _status(every: list[Found]) -> str:
    """How many repetitions of each id there are, the command that makes them, and the processor time they took."""
    lines = ["| command | paper | cells | repetitions | of | processor time |", "| --- | --- | --- | --- | --- | --- |"]
    total = 0.0
    for found in every:
        one = found.experiment
        seconds = 0.0 if found.table is None else found.table.seconds
        total += seconds
        minutes = f"{seconds / 60:.1f} min"
        command = f"`python -m experiments run {one.id}`"
        lines.append(f"| {command} | {one.artefact} | {len(one.cells)} | {found.done} | {one.repetitions} | {minutes} |")
    lines.append(f"\nProcessor time in all: {total / 3600:.1f} hours, half of that on two cores that do nothing else.")
    return "\n".join(lines)


def _headlines(every: list[Found]) -> str:
    lines = ["| id | cell | paper | ours (repetitions) | verdict |", "| --- | --- | --- | --- | --- |"]
    by_id = {found.experiment.id: found for found in every}
    for name, cells in HEADLINES.items():
        by_cell = {one.cell: one for one in reversed(by_id[name].comparisons)}  # the first of a cell's numbers
        for one in (by_cell[cell] for cell in cells):
            lines.append(f"| {name} | {one.cell} | {_paper(one)} | {one.ours} | {one.verdict} |")
    return "\n".join(lines)


def _section(found: Found, results: Path) -> str:
    one = found.experiment
    lines = [f"### {one.id}: {one.artefact}", "", f"{one.title[0].upper()}{one.title[1:]}."]
    if one.note:
        lines[-1] += f" {one.note}"
    if found.done < one.repetitions:
        lines[-1] += f" **{found.done} of {one.repetitions} repetitions so far.**"
    if (results / one.id / "figure.svg").exists():
        lines += ["", f"![{one.title}]({REFERENCE}/{one.id}/figure.svg)"]
    if found.comparisons:
        lines += ["", _table(found.comparisons)]
    rates = [row for row in found.rows if row.get("method") and row.get("reject")]
    if rates:
        lines += ["", "All rejection rates:", "", _powers(rates)]
    return "\n".join([*lines, ""])


def _powers(rows: Rows) -> str:
    """Return the rejection rates, a column a method, and C1-hat where there is one."""
    columns = [*dict.fromkeys(row["method"] for row in rows), *(["C1-hat"] if "c1" in rows[0] else [])]
    keys = [name for name in rows[0] if name not in MEASURED and not name.endswith("_error") and any(row[name] for row in rows)]
    cells: dict[tuple[str, ...], dict[str, str]] = {}
    for row in rows:
        cell = cells.setdefault(tuple(row[key] for key in keys), {})
        cell[row["method"]] = f"{float(row['reject']):.2f}"
        if row.get("c1"):
            cell["C1-hat"] = f"{float(row['c1']):.2g}"
    lines = ["| " + " | ".join([*keys, *columns]) + " |", "|" + " --- |" * (len(keys) + len(columns))]
    lines += ["| " + " | ".join([*cell, *(found.get(name, "") for name in columns)]) + " |" for cell, found in cells.items()]
    return "\n".join(lines)


def _table(comparisons: list[Comparison]) -> str:
    lines = ["| cell | number | paper | ours (repetitions) | verdict | note |", "| --- | --- | --- | --- | --- | --- |"]
    lines += [f"| {c.cell} | {c.quantity} | {_paper(c)} | {c.ours} | {c.verdict} | {c.note} |" for c in comparisons]
    return "\n".join(lines)


def _paper(one: Comparison) -> str:
    """The paper's number, or in brackets one that it does not print."""
    return one.paper if one.printed else f"({one.paper})"
