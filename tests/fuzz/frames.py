"""Random samples, each in several kinds of frame: a p-value or a sentence, the same from each, never from missing values."""

from __future__ import annotations

import datetime
import warnings
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa

from cpmmd import CpmmdError, two_sample_test

from .cases import FaultError, pick, random_of

METHODS = ("median", "median", "mmdfuse", "mmdagg", "cp-full")
NUMBERS = ("normal", "whole", "truth", "constant", "few", "huge", "tiny", "mixed sizes", "far")
REFUSED = ("infinite", "beyond 2^53", "numbers and text", "things")
GAPPY = ("text", "text", "truth", "whole", "normal", "date")  # the types that mark a gap in ways of their own
NAMES = ("a", "b", "c d", "é", "0", "row", "{x}", "\x1b[31m", "")
SIZES = (0, 1, 2, 3, 5, 8, 8, 8, 12, 12, 12, 20, 20, 20, 20)
MISSING = (None, float("nan"), pd.NA, pd.NaT, np.float64("nan"))


def _values(kind: str, rng: np.random.Generator, rows: int) -> list[Any]:
    whole = rng.integers(-5, 6, rows)
    day = datetime.date(2024, 1, 1)
    made = {
        "normal": lambda: rng.normal(size=rows).tolist(),
        "whole": lambda: whole.tolist(),
        "truth": lambda: (whole > 0).tolist(),
        "constant": lambda: [7.5] * rows,
        "few": lambda: rng.choice([0.1, 0.2], rows).tolist(),
        "huge": lambda: (rng.normal(size=rows) * 10.0 ** rng.integers(100, 308)).tolist(),
        "tiny": lambda: (rng.normal(size=rows) * 5e-324 * 10.0 ** rng.integers(0, 20)).tolist(),
        "mixed sizes": lambda: (rng.normal(size=rows) * 10.0 ** rng.integers(-300, 300, rows)).tolist(),
        "far": lambda: (1e15 + rng.normal(size=rows)).tolist(),
        "text": lambda: rng.choice(["red", "blue", "", "NA", "1", "é\x1b"], rows).tolist(),
        "date": lambda: [day + datetime.timedelta(days=int(i)) for i in whole],
        "moment": lambda: [datetime.datetime(2024, 1, 1, 5) + datetime.timedelta(hours=int(i)) for i in whole],
        "infinite": lambda: rng.choice([1.0, 2.0, np.inf], rows).tolist(),
        "beyond 2^53": lambda: [2**53 + 1 + int(i) for i in abs(whole)],
        "numbers and text": lambda: [1, "a", *rng.choice(np.array([1, "a", 2.5], dtype=object), rows)][:rows],
        "things": lambda: [pick(rng, [1j, b"x", {}])] * rows,
    }
    return made[kind]()


def _column(kind: str, rng: np.random.Generator, rows: int, gaps: bool) -> list[Any]:
    values = _values(kind, rng, rows)
    for i in np.flatnonzero(rng.random(rows) < 0.2) if gaps else ():
        values[i] = None
    return values


class Sample:
    """Columns of plain values, None where one is missing, and the frames they can be put into."""

    def __init__(self, rng: np.random.Generator, kinds: dict[str, str], rows: int, gappy: str | None = None) -> None:
        self.rng, self.kinds, self.rows = rng, kinds, rows
        self.columns = {name: _column(kind, rng, rows, name == gappy) for name, kind in kinds.items()}

    @property
    def missing(self) -> bool:
        return any(value is None for values in self.columns.values() for value in values)

    def shuffled(self, rng: np.random.Generator) -> Sample:
        """Return the rows in another order."""
        order, other = rng.permutation(self.rows), Sample(rng, {}, self.rows)
        other.kinds, other.columns = self.kinds, {c: [v[i] for i in order] for c, v in self.columns.items()}
        return other

    def polars(self) -> Any:
        return pl.DataFrame({name: pl.Series(name, values) for name, values in self.columns.items()})

    def arrow(self) -> Any:
        return pa.table({name: pa.array(values) for name, values in self.columns.items()})

    def plain_pandas(self) -> Any:
        dates = [name for name, kind in self.kinds.items() if kind == "date"]  # pandas itself would keep them as objects
        return pd.DataFrame(self.columns).astype(dict.fromkeys(dates, "datetime64[s]"))

    def pandas(self) -> Any:
        return pd.DataFrame({name: _series(self.rng, values, self.kinds[name]) for name, values in self.columns.items()})

    def array(self) -> Any:
        return np.array([[np.nan if v is None else v for v in values] for values in self.columns.values()], dtype=float).T

    def masked(self) -> Any:
        gaps = np.array([[v is None for v in values] for values in self.columns.values()]).T
        filled = np.array([[0.0 if v is None else v for v in values] for values in self.columns.values()], dtype=float).T
        return np.ma.masked_array(filled, mask=gaps)

    def objects(self) -> Any:
        gap = pick(self.rng, MISSING)
        return np.array([[gap if v is None else v for v in values] for values in self.columns.values()], dtype=object).T


def _series(rng: np.random.Generator, values: list[Any], kind: str) -> pd.Series:
    """Return a pandas column of one of the types that can hold the values, its gaps marked in one of the ways there are."""
    types = {
        "whole": ("Int64", "Float64", "int64[pyarrow]"),
        "truth": ("boolean", "bool[pyarrow]"),
        "text": ("string", "category"),
    }
    types |= {"date": ("date32[pyarrow]", "datetime64[s]"), "moment": ("datetime64[us]", "datetime64[ns]")}
    numbers = ("Float64", "double[pyarrow]")
    dtype = pick(rng, (*types.get(kind, numbers if kind in NUMBERS else ()), object, object))
    if dtype is object and kind in ("date", "moment"):
        dtype = "datetime64[us]"
    gap = pick(rng, MISSING) if dtype is object else None
    return pd.Series([gap if v is None else v for v in values], dtype=dtype)


def _answer(x: Any, y: Any, method: str, case: int, **options: Any) -> Any:
    """Return the result, or the sentence of a refusal."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            result = two_sample_test(x, y, method=method, n_permutations=39, rng=case, n_jobs=1, **options)
    except CpmmdError as error:
        if len(str(error)) < 20:
            raise FaultError(f"an error without a sentence: {error!r}") from error
        return str(error)
    if not 0.0 < result.pvalue <= 1.0:
        raise FaultError(f"p is {result.pvalue}")
    return result


def check(case: int) -> None:
    """Run one case."""
    rng = random_of(0, case)
    kinds = _kinds(rng)
    gappy = pick(rng, list(kinds)) if rng.random() < 0.3 else None  # one column: others must not save a reader that misses it
    if gappy is not None and kinds[gappy] not in REFUSED:
        kinds[gappy] = pick(rng, GAPPY)
    x, y = (Sample(rng, kinds, pick(rng, SIZES), gappy) for _ in range(2))
    method = pick(rng, METHODS)
    answers = {}
    for form in _forms(kinds, rng):
        try:
            frames = [getattr(sample, form)() for sample in (x, y)]
        except Exception:  # what a package cannot make is nothing that anyone passes
            continue
        answers[form] = _answer(*frames, method, case)
        if rng.random() < 0.3:
            _answer(*frames, method, case, missing=pick(rng, ("drop", "impute")), scale=pick(rng, (None, "standard")))
    _compare(answers, x, y)
    _check_order(rng, x, y, case)


def _kinds(rng: np.random.Generator) -> dict[str, str]:
    names = rng.permutation(NAMES)[: pick(rng, (1, 1, 2, 3, 5))].tolist()
    usual = (*NUMBERS, "text", "date", "moment") if rng.random() < 0.7 else NUMBERS
    kinds = {name: pick(rng, usual) for name in names}
    if rng.random() < 0.1:
        kinds[names[0]] = pick(rng, REFUSED)
    return kinds


def _forms(kinds: dict[str, str], rng: np.random.Generator) -> list[str]:
    forms = ["polars", "arrow", "plain_pandas"]
    if set(kinds.values()) <= {*NUMBERS, "infinite"}:
        forms += ["array", "masked", "objects"]
    return ["pandas", *rng.permutation(forms)[:2].tolist()]


def _compare(answers: dict[str, Any], x: Sample, y: Sample) -> None:
    results = {form: answer for form, answer in answers.items() if not isinstance(answer, str)}
    if results and (x.missing or y.missing):
        raise FaultError(f"missing values were answered, as {list(results)}")
    refused = set(x.kinds.values()) & set(REFUSED)
    infinite = any(v == np.inf for s in (x, y) for values in s.columns.values() for v in values if isinstance(v, float))
    if results and (refused - {"infinite"} or infinite) and min(x.rows, y.rows) > 1:
        raise FaultError(f"{refused or 'infinite values'} were answered, as {list(results)}")
    pvalues = {form: result.pvalue for form, result in results.items()}
    if len(set(pvalues.values())) > 1:
        raise FaultError(f"the same rows are answered differently: {pvalues}")
    if results and len(results) < len(answers):
        raise FaultError(
            f"the same rows are answered as {list(results)} and refused as {[a for a in answers.items() if a[0] not in results]}"
        )


def _check_order(rng: np.random.Generator, x: Sample, y: Sample, case: int) -> None:
    """Another order of the rows must not change what is measured."""
    if set(x.kinds.values()) & set(REFUSED):
        return
    first = _answer(x.plain_pandas(), y.plain_pandas(), "median", case)
    other = _answer(x.shuffled(rng).plain_pandas(), y.shuffled(rng).plain_pandas(), "median", case)
    if isinstance(first, str) != isinstance(other, str):
        raise FaultError(f"in one order refused, in another answered: {first} {other}")
    if not isinstance(first, str) and not np.isclose(first.statistic, other.statistic, rtol=1e-6, atol=1e-9):
        raise FaultError(f"another order of rows gives {other.statistic} for {first.statistic}")
    if not isinstance(first, str) and first.exhaustive and other.exhaustive and first.pvalue != other.pvalue:
        raise FaultError(f"another order of rows gives p = {other.pvalue} for {first.pvalue}")
