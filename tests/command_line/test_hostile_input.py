"""Names made to harm, and frames of anything at all."""

import gzip

import numpy as np
import polars as pl
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from commands import QUICK, document, run
from helpers import HOSTILE_NAMES

HOSTILE = {
    **{key: name for key, name in HOSTILE_NAMES.items() if name},
    "ansi": "\x1b[31mred\x1b[0m\x07\x9b2J",
    "markup": "[bold red]x[/]",
    "comma": "last, first",
}


@pytest.fixture(params=HOSTILE)
def hostile(request, tmp_path):
    name = HOSTILE[request.param]
    rng = np.random.default_rng(2)
    for file, shift in (("a", 0.0), ("b", 2.0)):
        columns = {name: rng.normal(shift, 1, 40), "other": rng.choice([name, "blue"], 40)}
        pl.DataFrame(columns).write_parquet(tmp_path / f"{file}.parquet")
    return name, tmp_path / "a.parquet", tmp_path / "b.parquet"


def sanitize(text):
    assert all(character.isprintable() or character in "\n\u200d" for character in text), repr(text)  # U+200D joins emoji
    assert max(map(len, text.splitlines()), default=0) < 4500


def test_hostile_names_are_harmless_on_the_terminal(hostile):
    name, *pair = hostile
    result = run("test", *pair, *QUICK)
    assert result.exit_code == 1
    sanitize(result.output)
    lines = result.stdout.splitlines()
    assert len(lines) < 30  # a newline in a name breaks no line
    if name.startswith("["):
        assert "[bold red]x[/]" in result.stdout  # shown, not obeyed
    for arguments in (["--columns", "nothing"], ["--split-by", "nothing"], ["--method", name], ["--format", name]):
        sanitize(run("test", *(pair[:1] if "--split-by" in arguments else pair), *arguments).output)


def test_hostile_names_are_intact_and_ascii_in_json(hostile):
    name, *pair = hostile
    result = run("test", *pair, *QUICK, "--json")
    assert result.stdout.isascii()
    assert not any(ord(character) < 32 and character != "\n" for character in result.stdout)
    assert document(result)["columns"][0] == name


def test_hostile_groups_and_batches(tmp_path):
    names = [HOSTILE[key] for key in ("newlines", "ansi", "right-to-left", "script")]
    rng = np.random.default_rng(3)
    pl.DataFrame({"g": rng.choice(names, 120), "v": rng.normal(size=120)}).write_parquet(tmp_path / "g.parquet")
    result = run("test", tmp_path / "g.parquet", "--split-by", "g", *QUICK)
    sanitize(result.output)
    assert result.exit_code in (0, 1)
    batch = tmp_path / "\x1b[31m\u202ebatch\n.csv"
    pl.DataFrame({"v": rng.normal(size=60)}).write_csv(batch)
    assert run("fit", batch, "-o", tmp_path / "d.cpmmd", "--permutations", 99).exit_code == 0
    sanitize(run("check", tmp_path / "d.cpmmd", batch).output)
    sanitize(run("test", batch, batch, *QUICK).output)


CELLS = st.one_of(
    st.floats(allow_nan=True, allow_infinity=True, width=32),
    st.integers(-(10**20), 10**20),
    st.text(max_size=6),
    st.booleans(),
    st.none(),
    st.dates(),
    st.sampled_from(["1,5", "NA", "12%", "", " ", "2024-01-01", "nan", "1e400", "-0"]),
)
NAMES = st.text(min_size=0, max_size=8) | st.sampled_from(["a", "b", "g", "0", "1", ""])


@st.composite
def frames(draw):
    """Columns of one kind, or of any: what polars takes, in any format that takes it."""
    rows = draw(st.integers(0, 12))
    columns = draw(st.lists(NAMES, min_size=1, max_size=4, unique=True))
    kinds = [st.floats(-5, 5), st.integers(-3, 3), st.sampled_from(["x", "y", "z"]), st.booleans(), st.dates(), CELLS]
    table = {}
    for name in columns:
        kind = draw(st.sampled_from(kinds))
        values = draw(st.lists(kind | st.none() if draw(st.booleans()) else kind, min_size=rows, max_size=rows))
        try:
            table[name] = pl.Series(name, values, strict=True)
        except (TypeError, OverflowError, pl.exceptions.PolarsError):
            table[name] = pl.Series(name, [None if v is None else str(v) for v in values], dtype=pl.String)
    return pl.DataFrame(table)


WRITERS = {
    "csv": lambda frame, path: frame.write_csv(path),
    "tsv": lambda frame, path: frame.write_csv(path, separator="\t"),
    "jsonl": lambda frame, path: frame.write_ndjson(path),
    "parquet": lambda frame, path: frame.write_parquet(path),
    "arrow": lambda frame, path: frame.write_ipc(path),
    "npy": lambda frame, path: np.save(path, frame.to_numpy()),
    "csv.gz": lambda frame, path: path.write_bytes(gzip.compress(frame.write_csv().encode())),
}


def saved(frame, kind, path):
    try:
        WRITERS[kind](frame, path)
    except (Exception, pl.exceptions.PanicException):  # what cannot be written is no file of anyone
        path.write_bytes(b"")
    return path


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
@given(data=st.data())
def test_random_frames_in_random_formats_never_end_in_a_traceback(tmp_path, data):
    first = data.draw(frames())
    second = data.draw(st.just(first) | frames())
    paths = []
    for name, frame in (("one", first), ("two", second)):
        kind = data.draw(st.sampled_from(sorted(WRITERS)))
        paths.append(saved(frame, kind, tmp_path / f"{name}.{kind}"))
    options = data.draw(
        st.sampled_from([[], ["--missing", "drop"], ["--missing", "impute"], ["--drop", "a"], ["--columns", "b"], ["--json"]])
    )
    split = data.draw(st.sampled_from([None, None, None, "a", "g", "0"]))
    arguments = paths if split is None else [paths[0], "--split-by", split]
    result = run("test", *arguments, *QUICK, "--permutations", 19, *options)
    assert result.exit_code in (0, 1, 2), result.output
    assert "unexpected" not in result.stderr, result.stderr
    assert result.exception is None or isinstance(result.exception, SystemExit)
    if result.exit_code == 2:
        assert len(result.stderr) > 20
    elif "--json" in options:
        document(result)
