"""``cpmmd test --margin``: are two files the same but for differences below a margin?"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from cpmmd.cli.comparison import Answering
from cpmmd.cli.failures import calling_samples
from cpmmd.cli.main import collect_garbage_from_now_on
from cpmmd.cli.options import METHOD
from cpmmd.cli.output import note, probability, say, say_end, say_json, say_table, say_verdict
from cpmmd.cli.progress import progress
from cpmmd.cli.settings import Reading, Settings, command_line
from cpmmd.errors import InputError

if TYPE_CHECKING:
    from cpmmd.equivalence.result import EquivalenceResult

MOST_COLUMNS = 12  # in the printed table


def show_equivalence(files: Sequence[str], margin: float, reading: Reading, settings: Settings, answering: Answering) -> bool:
    """Test two files for equivalence and print the answer; whether it is shown."""
    _check_settings(settings)
    answering.check(files)
    with progress("reading"):
        x, y = reading.read(files)
    from cpmmd.api.equivalence import equivalence_test

    collect_garbage_from_now_on()
    with progress("testing"), calling_samples(x=x.label, y=y.label):
        alpha, seed, missing = settings.alpha, settings.seed, settings.missing
        result = equivalence_test(x.data, y.data, margin=margin, alpha=alpha, rng=seed, missing=missing)
    again = command_line("test", files, {"--margin": margin, **reading.arguments(), **settings.arguments(result.seed)})
    if answering.report is not None:
        result.report(answering.report, title=f"{x.label} v {y.label}", command=again)
    noticed = list(dict.fromkeys((*x.notes, *y.notes)))
    if answering.json:
        samples = {name: {"name": s.label, "rows": s.rows} for name, s in (("x", x), ("y", y))}
        say_json({"command": "test-equivalence", "repeat": again, **_answer(result), **samples, "notes": noticed})
    else:
        note(noticed)
        _say(result, again, answering)
    return result.reject


def _check_settings(settings: Settings) -> None:
    """Refuse what an equivalence test has no use for, rather than ignore it."""
    unused = {
        "--method": None if settings.method == METHOD else settings.method,
        "--permutations": settings.permutations,
        "--scale": settings.scale,
        "--memory-limit": settings.memory_limit,
        "--group-by": settings.group_by,
        "--stratify-by": settings.stratify_by,
        "--pair-by": settings.pair_by,
        "--blocks": settings.blocks,
    }
    given = [flag for flag, value in unused.items() if value is not None]
    if given:
        raise InputError(f"A test with --margin has its own method, on rows one by one. Leave out {', '.join(given)}.")


def _answer(result: EquivalenceResult) -> dict[str, Any]:
    return {"reject": result.reject, "sentence": result.verdict, "result": result.to_dict()}


def _say(result: EquivalenceResult, again: str, answering: Answering) -> None:
    say_verdict(result.verdict, differs=not result.reject)
    say()
    say(result.explain().sentence)
    say()
    shown = result.columns[:MOST_COLUMNS]
    rows = [(c.name, c.meaning, f"{c.low:+.3f}", f"{c.high:+.3f}", probability(c.pvalue)) for c in shown]
    say_table(("column", "differs in", "from", "to", "p"), rows, right=(2, 3, 4))
    say()
    for term, value in result.facts:
        say(f"  {term:<12} {value}")
    say_end(again, "Report", answering.report)
