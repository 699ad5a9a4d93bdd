"""A report of many batches against one reference."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any

from cpmmd.core.plain import PlainDict
from cpmmd.core.text import LINE, harmless
from cpmmd.errors import InputError
from cpmmd.plotting.batches import effect_field
from cpmmd.plotting.style import in_order, own_date
from cpmmd.report import elements
from cpmmd.report.content import FORMAT, footer, repetition
from cpmmd.report.elements import Block, format_of
from cpmmd.report.figures import MOST_BATCHES as MOST_DRAWN
from cpmmd.report.figures import series_drawings
from cpmmd.report.render import Path, finish

# What a report of a series says where a monitor watched it: wealth, alarm, since when, and the columns that moved.


Record = Mapping[str, Any]


def watched(records: Sequence[Record]) -> list[Record]:
    """Return the records that a monitor made."""
    return [record for record in records if record.get("wealth") is not None]


def watch_verdict(records: Sequence[Record], alpha: float | None, alarm: bool) -> Block:
    """Return the fields of a verdict that a monitor words otherwise than a detector."""
    last, since = records[-1], since_of(records)
    level = last["alpha"] if alpha is None else alpha
    batches = f"{elements.count(len(records))} batch{'es' * (len(records) != 1)}"
    headline = f"Alarm: something changed, most likely with {since}" if alarm else f"No alarm in {batches}"
    promise = f"Where nothing changed, the wealth ever reaches {1 / level:g} with probability {level:g} at most."
    found = max(records, key=lambda record: record["wealth"])
    numbers = [
        ("Batches", elements.count(len(records)), f"{elements.count(last['number'])} in all"),
        ("Wealth", elements.number(last["wealth"]), f"limit {1 / level:g}"),
        ("Most", elements.number(found["wealth"]), harmless(found["batch"])),
    ]
    settled = [] if alarm or not last["alarm"] else ["Its last alarm was acknowledged or dismissed after the latest batch."]
    return {
        "reject": alarm,
        "headline": headline,
        "sentences": [*settled, _latest(last), promise],
        "numbers": [{"label": label, "value": value, "note": note} for label, value, note in numbers],
    }


def since_of(records: Sequence[Record]) -> str:
    """Return the estimated first changed batch of the latest alarm."""
    return next((harmless(record["since"]) for record in reversed(records) if record["since"] is not None), "")


def _latest(last: Record) -> str:
    return (
        f"The latest batch, {harmless(last['batch'])}, by itself has p = {elements.number(last['pvalue'])} against all before it."
    )


def wealth_figure(records: Sequence[Record], alpha: float | None) -> Block:
    """Return the place of the wealth over time."""
    alarms = [record for record in records if record["alarm"]]
    level = records[-1]["alpha"] if alpha is None else alpha
    first = (
        f"The limit {1 / level:g} was reached by {harmless(alarms[0]['batch'])}"
        if alarms
        else f"It stays below the limit {1 / level:g}"
    )
    shaded = f"; shaded: the batches since {since_of(records)}" if alarms else ""
    return elements.figure("batch-wealth", "Evidence over time", f"The wealth after each batch. {first}{shaded}.", wide=True)


def columns_figure(records: Sequence[Record]) -> Block | None:
    """Return the place of the columns that moved; None where none is known."""
    counts = Counter(name for record in records for name in record.get("columns") or ())
    if not counts:
        return None
    named = ", ".join(f"{harmless(name)} ({count})" for name, count in counts.most_common(3))
    said = f"The columns that moved most in each batch that is significant or under an alarm; most often {named}."
    return elements.figure("moved-columns", "Columns that moved", said, wide=True)


NEEDED = ("batch", "pvalue", "reject")
MOST_FAILED = 50  # sentences on batches that could not be tested
NAMED = 10  # batches in a sentence
MOST_BATCHES = 500  # rows of the table: about 150 kB
COLUMNS = [
    ("Batch", "batch", "text"),
    ("Differs", "reject", "flag"),
    ("Alarm", "alarm", "flag"),
    ("Wealth", "wealth", "number"),
    ("Date", "date", "text"),
    ("Tested", "time", "time"),
    ("Rows", "rows", "count"),
    ("p-value", "pvalue", "pvalue"),
    ("Adjusted p", "adjusted", "pvalue"),
    ("Told apart", "effect", "share"),
    ("Statistic", "statistic", "number"),
]


def write_series(
    records: Sequence[Record],
    path: Path | None = None,
    *,
    alpha: float | None = None,
    title: str | None = None,
    command: str | None = None,
    alarm: bool | None = None,
) -> str:
    """Return the report of a series of batches, and write it when a path is given; its suffix decides the format.

    Parameters
    ----------
    records : sequence of mapping
        One dictionary a batch, in order of time: ``batch``, ``time``, ``rows``, ``pvalue``, ``adjusted``, ``statistic``,
        ``effect``, ``reject``, ``method``, ``seed``; all but ``batch``, ``pvalue`` and ``reject`` may be missing. A batch that
        could not be tested has ``batch`` and ``error``, the sentence that says why. Where each name has a date, such as
        2024-03-05 or 20240305, that is the order.
    path : str or Path, optional
        Ends in .html, .md or .json; without one the HTML text is only returned.
    alpha : float, optional
        Level at which batches were judged, if it is known.
    title, command : str, optional
        What was watched, and the shell command that did it.
    alarm : bool, optional
        Of a monitor's records (:meth:`cpmmd.MonitorAnswer.to_dict`): whether there is an alarm now. None: as the latest says.

    Returns
    -------
    str
        The text of the report.

    Examples
    --------
    >>> from cpmmd import report
    >>> records = [{"batch": "monday", "pvalue": 0.4, "reject": False}, {"batch": "tuesday", "pvalue": 0.001, "reject": True}]
    >>> report.write_series(records, title="This week").startswith("<!doctype html>")
    True
    """
    form = "html" if path is None else format_of(path)
    said = series_content(records, alpha=alpha, title=title, command=command, alarm=alarm)
    return finish(said, series_drawings(_arranged(records), alpha), path, form)


def series_content(
    records: Sequence[Record],
    *,
    alpha: float | None = None,
    title: str | None = None,
    command: str | None = None,
    alarm: bool | None = None,
) -> PlainDict:
    """Return everything a report of a series says, in plain JSON types.

    Parameters
    ----------
    records, alpha, title, command, alarm
        As for :func:`write_series`.

    Returns
    -------
    dict
        With ``title``, ``verdict``, ``sections``, ...; :func:`render` turns it into text.

    Examples
    --------
    >>> from cpmmd import report
    >>> records = [{"batch": "monday", "pvalue": 0.4, "reject": False}, {"batch": "tuesday", "pvalue": 0.001, "reject": True}]
    >>> report.series_content(records)["verdict"]["headline"]
    '1 of 2 batches differs from the reference'
    """
    from cpmmd import __version__

    _check(records)
    records = [_dated(record) for record in _arranged(records)]
    seen = watched(records)
    verdict, figures = _verdict(records, alpha), [_figure(records), _effects(records)]
    if seen:
        verdict |= watch_verdict(seen, alpha, bool(seen[-1]["alarm"]) if alarm is None else alarm)
        figures = [wealth_figure(seen, alpha), columns_figure(seen), _effects(records)]
    return {
        "format": FORMAT,
        "title": harmless(title or "Batches against a reference", 160),
        "verdict": verdict,
        "sections": [
            elements.section("batches", "Batches", [*figures, _failures(records), _table(records)]),
            elements.section("assurance", "How they were judged", [_facts(records, alpha)]),
            repetition(command, "", __version__),
        ],
        "footer": footer(__version__),
    }


def _arranged(records: Sequence[Record]) -> list[Record]:
    """Return batches by their dates, and a monitor's as they came: its evidence grew in that order."""
    return list(records) if watched(records) else in_order(records)


def _check(records: Sequence[Record]) -> None:
    if not records:
        raise InputError("A series needs at least one batch. Got none; test a batch first.")
    for number, record in enumerate(records):
        needed = NEEDED[:1] if _failed(record) else NEEDED
        absent = [key for key in needed if record.get(key) is None]
        if absent:
            raise InputError(f"Each batch needs {', '.join(needed)}. Batch {number} lacks {', '.join(absent)}; add them.")


def _failed(record: Record) -> bool:
    return record.get("error") is not None


def _dated(record: Record) -> Record:
    """Return a record with the date in its batch's name, and nothing found where it could not be tested."""
    date = own_date(str(record["batch"]))
    shown = None if date is None else date.isoformat(" ", "minutes").removesuffix(" 00:00")
    return {**record, "date": shown, **({"pvalue": None, "reject": None} if _failed(record) else {})}


def _verdict(records: Sequence[Record], alpha: float | None) -> Block:
    tested, failed = [r for r in records if not _failed(r)], [r for r in records if _failed(r)]
    flagged = [record for record in tested if record["reject"]]
    numbers = [
        ("Batches", elements.count(len(tested)), _period(tested)),
        ("Flagged", elements.count(len(flagged)), "" if alpha is None else f"level {alpha:g}"),
    ]
    if tested:
        lowest = min(tested, key=lambda record: record["pvalue"])
        numbers.append(("Smallest p", elements.number(lowest["pvalue"]), harmless(lowest["batch"])))
    if failed:
        numbers.append(("Not tested", elements.count(len(failed)), ""))
    return {
        "reject": bool(flagged),
        "headline": _headline(len(tested), len(flagged)),
        "sentences": [harmless(sentence, LINE) for sentence in _sentences(tested, flagged, failed)],
        "batches": len(tested),
        "flagged": len(flagged),
        "failed": len(failed),
        "alpha": alpha,
        "numbers": [{"label": label, "value": value, "note": note} for label, value, note in numbers],
    }


def _headline(total: int, flagged: int) -> str:
    if not total:
        return "No batch could be tested"
    if not flagged:
        return f"No batch of {elements.count(total)} differs from the reference"
    batches = f"{elements.count(total)} batch{'es' * (total != 1)}"
    return f"{elements.count(flagged)} of {batches} {'differs' if flagged == 1 else 'differ'} from the reference"


def _sentences(tested: list[Record], flagged: list[Record], failed: list[Record]) -> list[str]:
    """Say what became of the latest batch, of the last one that differs, and of those that could not be tested."""
    said = []
    if tested:
        last = tested[-1]
        said.append(f"The latest, {harmless(last['batch'])}, {'differs' if last['reject'] else 'does not differ'} ({_p(last)}).")
        if flagged and not last["reject"]:
            said.append(f"The last one that does is {harmless(flagged[-1]['batch'])} ({_p(flagged[-1])}).")
    if failed:
        said.append(f"{elements.count(len(failed))} could not be tested: {_named(failed)}.")
    return said


def _named(records: Sequence[Record]) -> str:
    names = ", ".join(harmless(record["batch"]) for record in records[:NAMED])
    return f"{names}{' and others' if len(records) > NAMED else ''}"


def _p(record: Record) -> str:
    adjusted = record.get("adjusted")
    return f"p = {elements.number(record['pvalue'])}" if adjusted is None else f"adjusted p = {elements.number(adjusted)}"


def _period(records: Sequence[Record]) -> str:
    """Say from when to when: by the dates of the batches where each has one, else by when they were tested."""
    own = bool(records) and all(record["date"] for record in records)
    times = [str(record["date" if own else "time"]) for record in records if own or record.get("time")]
    return f"{harmless(times[0][:10])} to {harmless(times[-1][:10])}" if times else ""


def _figure(records: Sequence[Record]) -> Block:
    flagged = [record for record in records if record["reject"]]
    named = f"Flagged: {_named(flagged)}." if flagged else "None is flagged."
    title = "p-values over time" if len(records) <= MOST_DRAWN else f"p-values of the latest {MOST_DRAWN} batches"
    return elements.figure("batch-series", title, f"One p-value for each batch. {named}", wide=True)


def _effects(records: Sequence[Record]) -> Block | None:
    field = effect_field(records[-MOST_DRAWN:])
    if field is None:
        return None
    what = "how often a row of the batch is told from one of the reference" if field == "effect" else "the test's statistic"
    largest = max((r for r in records if r.get(field) is not None), key=lambda record: record[field])
    said = f"For each batch, {what}; p-values alone have a smallest one. Largest: {harmless(largest['batch'])}."
    return elements.figure("batch-effects", "How different the batches are", said, wide=True)


def _failures(records: Sequence[Record]) -> Block:
    """List the batches that could not be tested, and why."""
    failed = [record for record in records if _failed(record)]
    return elements.notes(f"{harmless(r['batch'])} could not be tested: {r['error']}" for r in failed[:MOST_FAILED])


def _table(records: Sequence[Record]) -> Block:
    """Table the latest batches; of the older ones those that differ."""
    chosen = _choose(records)
    present = [column for column in COLUMNS if any(_value(records[i], column[1]) is not None for i in chosen)]
    rows = [[_value(records[i], key) for _, key, _ in present] for i in chosen]
    left = len(records) - len(chosen)
    note = f"{elements.count(left)} older batches are not shown; most of them do not differ." if left else ""
    table = elements.table("series", "All batches" if not left else "Batches", [(c[0], c[2]) for c in present], rows, note=note)
    marks = {"flagged": lambda record: record["reject"], "failed": _failed}
    return {**table, **{mark: [place for place, i in enumerate(chosen) if has(records[i])] for mark, has in marks.items()}}


def _value(record: Record, key: str) -> Any:
    return "not tested" if key == "reject" and _failed(record) else record.get(key)


def _choose(records: Sequence[Record]) -> list[int]:
    if len(records) <= MOST_BATCHES:
        return list(range(len(records)))
    half = MOST_BATCHES // 2
    older = [i for i, record in enumerate(records[:-half]) if record["reject"] or _failed(record)]
    return [*older[-half:], *range(len(records) - half, len(records))]


def _facts(records: Sequence[Record], alpha: float | None) -> Block:
    methods = list(dict.fromkeys(str(record["method"]) for record in records if record.get("method")))
    seeds = list(dict.fromkeys(record["seed"] for record in records if record.get("seed") is not None))
    adjusted = any(record.get("adjusted") is not None for record in records)
    judged = "the p-value adjusted for the number of batches" if adjusted else "each batch's own p-value"
    if watched(records):
        judged = "the wealth of bets on independent p-values, each batch against all that came before"
    return elements.facts(
        [
            ("Method", ", ".join(methods[:5]) or None),
            ("Judged by", judged if alpha is None else f"{judged}, at level {alpha:g}"),
            ("Seed", ", ".join(map(str, seeds)) if 0 < len(seeds) <= 3 else None),
        ]
    )
