"""A report of many batches, compared with a reference or by a monitor."""

from __future__ import annotations

import os
from collections.abc import Sequence

from msgspec.structs import replace

from cpmmd import plotting
from cpmmd.core.plain import PlainDict
from cpmmd.core.text import sanitize
from cpmmd.plotting.batches import Batch, Records, column_counts, in_order, read_batches, size_field
from cpmmd.report.figures import Drawings
from cpmmd.report.page import CellType, Facts, Figure, Notes, Number, Page, Section, Table, Verdict, count, line, number
from cpmmd.report.render import write_page

MOST_DRAWN = 400  # batches in a picture: two pixels each
MOST_FAILED = 50  # errors of batches that could not be tested
NAMED = 10  # batches in a sentence
MOST_BATCHES = 500  # rows of the table: about 150 kB
COLUMNS: list[tuple[str, str, CellType]] = [  # label, what it shows of a batch, type
    ("Batch", "batch", "text"),
    ("Differs", "reject", "flag"),
    ("Alarm", "alarm", "flag"),
    ("Evidence", "wealth", "number"),
    ("Date", "date", "text"),
    ("Tested", "time", "time"),
    ("Rows", "rows", "count"),
    ("p-value", "pvalue", "pvalue"),
    ("Adjusted p", "adjusted", "pvalue"),
    ("AUC", "auc", "number"),
    ("Statistic", "statistic", "number"),
]


def write_series(
    records: Records,
    path: str | os.PathLike[str] | None = None,
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
        Answers of a detector or monitor, or a dictionary for each batch, in order of time: ``batch``, ``time``, ``rows``,
        ``pvalue``, ``adjusted``, ``statistic``, ``auc``, ``reject``, ``method``, ``seed``; all but ``batch``, ``pvalue`` and
        ``reject`` may be missing. A batch that could not be tested has ``batch`` and ``error``. Where each name has a date, such
        as 2024-03-05 or 20240305, batches are ordered by it.
    path : str or Path, optional
        Ends in .html, .md or .json; without one the HTML text is only returned.
    alpha : float, optional
        Significance level; for a monitor, the false-alarm probability.
    title, command : str, optional
        What was compared, and the shell command that repeats it.
    alarm : bool, optional
        For a monitor: whether there is an alarm now; None takes it from the latest answer.

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
    page, drawings = _series(records, alpha, title, command, alarm)
    return write_page(page, drawings, path)


def series_content(
    records: Records,
    *,
    alpha: float | None = None,
    title: str | None = None,
    command: str | None = None,
    alarm: bool | None = None,
) -> PlainDict:
    """Return the content of a report of a series, in plain JSON types.

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
    return _series(records, alpha, title, command, alarm)[0].to_dict()


def _series(
    records: Records, alpha: float | None, title: str | None, command: str | None, alarm: bool | None
) -> tuple[Page, Drawings]:
    """Return the page of a series, and its drawings."""
    batches = read_batches(records, "pvalue", "reject")
    watched = [batch for batch in batches if batch.watched]
    if not watched:  # those of a monitor stay in the order in which its evidence grew
        batches = in_order(batches)
    latest, level = batches[-MOST_DRAWN:], 0.05 if alpha is None else alpha
    drawings: Drawings = {
        "batch-series": lambda ax: plotting.batch_series(latest, alpha=level, ax=ax),
        "batch-effects": lambda ax: plotting.batch_effects(latest, ax=ax),
        "batch-wealth": lambda ax: plotting.batch_wealth(watched[-MOST_DRAWN:], alpha=level, ax=ax),
        "moved-columns": lambda ax: plotting.moved_columns((watched or batches)[-MOST_DRAWN:], ax=ax),
    }
    verdict = _verdict(batches, alpha)
    figures: list[Figure | None] = [_pvalues(batches), _moved(batches)]
    if watched:
        verdict = _watch_verdict(verdict, watched, alpha, bool(watched[-1].alarm) if alarm is None else alarm)
        figures = [_evidence(watched, alpha), _moved(watched)]
    failed = [batch for batch in batches if batch.failed][:MOST_FAILED]
    failures = Notes.of(f"{sanitize(batch.batch)} could not be tested: {batch.error}" for batch in failed)
    sections = [
        Section.of("batches", "Batches", [*figures, _effects(batches), failures, _table(batches)]),
        Section.of("assurance", "How they were judged", [_facts(batches, alpha)]),
    ]
    return Page.of(verdict, sections, title=title or "Batches against a reference", command=command), drawings


# The answer.


def _verdict(batches: Sequence[Batch], alpha: float | None) -> Verdict:
    tested, failed = [b for b in batches if not b.failed], [b for b in batches if b.failed]
    flagged = [batch for batch in tested if batch.reject]
    numbers = [
        Number("Batches", count(len(tested)), _period(tested)),
        Number("Flagged", count(len(flagged)), "" if alpha is None else f"significance level {alpha:g}"),
    ]
    sentences, headline = [], "No batch could be tested"
    if tested:
        lowest, last, total = min(tested, key=lambda batch: batch.pvalue), tested[-1], count(len(tested))
        numbers.append(Number("Smallest p", number(lowest.pvalue), sanitize(lowest.batch)))
        found = f"{count(len(flagged))} of {total} batch{'es' * (len(tested) != 1)} differ{'s' * (len(flagged) == 1)}"
        headline = f"{found if flagged else f'No batch of {total} differs'} from the reference"
        sentences = [f"The latest batch, {sanitize(last.batch)}, {'differs' if last.reject else 'does not differ'} ({_p(last)})."]
        if flagged and not last.reject:
            sentences.append(f"The latest batch that differs is {sanitize(flagged[-1].batch)} ({_p(flagged[-1])}).")
    if failed:
        numbers.append(Number("Not tested", count(len(failed))))
        sentences.append(f"{count(len(failed))} could not be tested: {_named(failed)}.")
    return Verdict(
        reject=bool(flagged),
        headline=headline,
        sentences=[line(sentence) for sentence in sentences],
        batches=len(tested),
        flagged=len(flagged),
        failed=len(failed),
        alpha=alpha,
        numbers=numbers,
    )


def _named(batches: Sequence[Batch]) -> str:
    names = ", ".join(sanitize(batch.batch) for batch in batches[:NAMED])
    return f"{names}{' and others' if len(batches) > NAMED else ''}"


def _p(batch: Batch) -> str:
    return f"{'p' if batch.adjusted is None else 'adjusted p'} = {number(batch.judged_p)}"


def _period(batches: Sequence[Batch]) -> str:
    """Return the first and last day: of the batches where each has a date, else of their tests."""
    dates = [batch.date for batch in batches]
    times = [str(time)[:10] for time in (dates if all(dates) else (batch.time for batch in batches)) if time]
    return f"{sanitize(times[0])} to {sanitize(times[-1])}" if times else ""


def _watch_verdict(verdict: Verdict, batches: Sequence[Batch], alpha: float | None, alarm: bool) -> Verdict:
    """Return the verdict of a monitor."""
    last, most = batches[-1], max(batches, key=lambda batch: batch.wealth)
    level, total = last.alpha if alpha is None else alpha, count(len(batches))
    limit = f"{1 / level:g}"
    settled = [] if alarm or not last.alarm else ["Its last alarm was acknowledged or dismissed after the latest batch."]
    latest = f"The latest batch, {sanitize(last.batch)}, has p = {number(last.pvalue)} against all batches before it."
    promise = f"The evidence raises an alarm at {limit}. The probability of ever raising a false alarm is at most {level:g}."
    quiet = f"No alarm in {total} batch{'es' * (len(batches) != 1)}"
    return replace(
        verdict,
        reject=alarm,
        headline=f"Alarm: the data changed, most likely with {_since(batches)}" if alarm else quiet,
        sentences=[*settled, latest, promise],
        numbers=[
            Number("Batches", total, f"{count(last.number)} since the monitor began"),
            Number("Evidence", number(last.wealth), f"{limit} needed for an alarm"),
            Number("Most evidence", number(most.wealth), sanitize(most.batch)),
        ],
    )


def _since(batches: Sequence[Batch]) -> str:
    """Return the estimated first changed batch of the latest alarm."""
    return next((sanitize(batch.since) for batch in reversed(batches) if batch.since is not None), "")


# The batches: pictures and a table.


def _evidence(batches: Sequence[Batch], alpha: float | None) -> Figure:
    alarms = [batch for batch in batches if batch.alarm]
    limit = 1 / (batches[-1].alpha if alpha is None else alpha)
    course = f"It stays below the {limit:g} needed for an alarm"
    if alarms:
        first = sanitize(alarms[0].batch)
        course = f"It reached the {limit:g} needed for an alarm with {first}; the batches since {_since(batches)} are shaded"
    return Figure("batch-wealth", "Evidence over time", line(f"The evidence after each batch. {course}."), wide=True)


def _moved(batches: Sequence[Batch]) -> Figure | None:
    counts = column_counts(batches)
    if not counts:
        return None
    named = ", ".join(f"{sanitize(name)} ({often})" for name, often in counts.most_common(3))
    described = f"The columns that changed most in each batch that differs; most often {named}."
    return Figure("moved-columns", "Columns that changed", line(described), wide=True)


def _pvalues(batches: Sequence[Batch]) -> Figure:
    flagged = [batch for batch in batches if batch.reject]
    named = f"Flagged: {_named(flagged)}." if flagged else "No batch is flagged."
    title = "p-values over time" if len(batches) <= MOST_DRAWN else f"p-values of the latest {MOST_DRAWN} batches"
    return Figure("batch-series", title, line(f"One p-value for each batch. {named}"), wide=True)


def _effects(batches: Sequence[Batch]) -> Figure | None:
    field = size_field(batches[-MOST_DRAWN:])
    if field is None:
        return None
    measure = "the AUC of its rows against the reference" if field == "auc" else "the test's statistic"
    largest = max((b for b in batches if getattr(b, field) is not None), key=lambda batch: float(getattr(batch, field)))
    described = f"For each batch, {measure}, which does not saturate as p-values do. Largest: {sanitize(largest.batch)}."
    return Figure("batch-effects", "How different the batches are", line(described), wide=True)


def _table(batches: Sequence[Batch]) -> Table:
    """Table the latest batches; of the older ones those that differ."""
    chosen = list(batches)
    if len(batches) > MOST_BATCHES:
        half = MOST_BATCHES // 2
        older = [batch for batch in batches[:-half] if batch.reject or batch.failed]
        chosen = [*older[-half:], *batches[-half:]]
    columns = [(label, kind, [_cell(batch, field) for batch in chosen]) for label, field, kind in COLUMNS]
    left = len(batches) - len(chosen)
    return Table.of(
        "series",
        "Batches" if left else "All batches",
        [column for column in columns if any(value is not None for value in column[2])],
        note=f"{count(left)} older batches are not shown; most of them do not differ." if left else "",
        flagged=[place for place, batch in enumerate(chosen) if batch.reject],
        failed=[place for place, batch in enumerate(chosen) if batch.failed],
    )


def _cell(batch: Batch, field: str) -> object:
    """Return what the table shows of a batch; None where it is not known."""
    if field == "reject" and batch.failed:
        return "not tested"
    if field == "date":
        return None if batch.date is None else batch.date.isoformat(" ", "minutes").removesuffix(" 00:00")
    value: object = getattr(batch, field)
    return value if value == value else None  # nan is not itself


def _facts(batches: Sequence[Batch], alpha: float | None) -> Facts:
    methods = list(dict.fromkeys(str(batch.method) for batch in batches if batch.method))
    seeds = list(dict.fromkeys(batch.seed for batch in batches if batch.seed is not None))
    adjusted = any(batch.adjusted is not None for batch in batches)
    judged = "the p-value adjusted for the number of batches" if adjusted else "each batch's own p-value"
    if any(batch.watched for batch in batches):
        judged = "the evidence from independent p-values, each batch compared with all that came before"
    return Facts.of(
        {
            "Method": ", ".join(methods[:5]),
            "Judged by": judged if alpha is None else f"{judged}, at significance level {alpha:g}",
            "Seed": ", ".join(map(str, seeds)) if len(seeds) <= 3 else None,
        }
    )
