"""Saved detectors answer as before, in any process; damaged and hostile files are refused with a sentence."""

import contextlib
import json
import random
import subprocess
import sys

import numpy as np
import polars as pl
import pytest
from torch import nn

from cpmmd import (
    Ascent,
    Bandwidth,
    ComplexityPenalized,
    Deep,
    DriftDetector,
    FullSampleTest,
    Mixture,
    Plain,
    SplitTest,
    save_kernel,
)
from cpmmd.errors import CpmmdError, InputError
from cpmmd.kernels.collection import RadialKernel
from cpmmd.kernels.scaled import ScaledKernel
from cpmmd.storage.container import BLANK, LENGTH, _checksum, _checksum_place, kind_of, read_file, write_file

DATA = np.random.default_rng(0)
REFERENCE, EXAMPLE, BATCH = DATA.normal(size=(60, 3)), DATA.normal(1, 1, size=(30, 3)), DATA.normal(size=(30, 3))
QUICK = Ascent(steps=3, learning_rate=0.1)
DEEP = SplitTest(Deep(width=8, depth=1, out=3), ComplexityPenalized(n_calibration=2), ascent=QUICK)
MIXTURE = SplitTest(Mixture(Deep(width=8, depth=1, out=3)), Plain(), ascent=QUICK)


def mixed(rows):
    return pl.DataFrame(
        {
            "size": np.where(DATA.random(rows) < 0.1, np.nan, DATA.normal(size=rows)),
            'na<me "quoted"\n': DATA.choice(["ü", "日本", "\u202eplain", "'\""], rows),
            "day": np.datetime64("2025-01-01") + DATA.integers(0, 30, rows),
            "id": [f"row {i}" for i in DATA.permutation(rows)],
        }
    ).fill_nan(None)


MIXED, MIXED_BATCH = mixed(60), mixed(30)


def answer(detector, batch=BATCH):
    result = detector.test(batch).result
    return {**result.to_dict(null_distribution=True), "text": str(result)}


@pytest.fixture
def path(tmp_path):
    return tmp_path / "detector"


# The same answers


@pytest.mark.parametrize(
    "method",
    ["cp-full", "cp-linear", "median", "mmdagg", "mmdfuse", DEEP, MIXTURE, FullSampleTest(classes=(Bandwidth(),), bins=50)],
    ids=lambda method: (
        method if isinstance(method, str) else type(method.kernel if hasattr(method, "kernel") else method).__name__
    ),
)
@pytest.mark.parametrize("fitted", [{}, {"example": EXAMPLE}], ids=["own", "frozen"])
def test_a_loaded_detector_answers_as_the_saved_one(path, method, fitted):
    saved = DriftDetector(method, n_permutations=99, rng=2).fit(REFERENCE, **fitted)
    before = answer(saved)
    saved.save(path)
    loaded = DriftDetector.load(path)
    assert answer(loaded) == before == answer(saved)
    assert loaded.get_params() == saved.get_params()
    assert (loaded.seed_, loaded.notes_) == (saved.seed_, saved.notes_)
    loaded.save(path)
    assert answer(DriftDetector.load(path)) == before


def test_explanations_survive_with_rows_left_out(path):
    gappy = MIXED.with_columns(count=pl.int_range(60))
    saved = DriftDetector("median", missing="drop", scale="standard", rng=0).fit(
        gappy, example=gappy.with_columns(size=pl.col("size") + 3)
    )
    saved.save(path)
    batch = gappy.with_columns(size=pl.col("size") + 3, count=59 - pl.col("count"))
    before, after = (d.test(batch).result.explain(rng=0).to_dict() for d in (saved, DriftDetector.load(path)))
    assert before == after
    assert before["top_x"][0]["values"]["count"] == before["top_x"][0]["row"]


@pytest.mark.parametrize("fitted", [{}, {"example": MIXED_BATCH}, {"kernel": ScaledKernel(Bandwidth(), 2.0)}])
def test_frames_with_categories_dates_gaps_and_odd_names_survive(path, fitted):
    saved = DriftDetector("median", n_permutations=99, rng=np.random.default_rng(1), missing="impute").fit(MIXED, **fitted)
    saved.save(path)
    loaded = DriftDetector.load(path)
    shuffled = MIXED_BATCH.select(MIXED.columns[::-1])
    assert answer(loaded, shuffled) == answer(saved, MIXED_BATCH)
    assert loaded.feature_names_in_.tolist() == MIXED.columns
    assert loaded.rng == saved.seed_


def test_only_categories_survive(path):
    saved = DriftDetector("median", rng=0).fit(MIXED.select("id"))
    saved.save(path)
    assert answer(DriftDetector.load(path), MIXED_BATCH) == answer(saved, MIXED_BATCH)


LOAD = """
import json, sys, numpy
from cpmmd import DriftDetector
result = DriftDetector.load(sys.argv[1]).test(numpy.load(sys.argv[2])).result
print(json.dumps(result.to_dict(null_distribution=True)))
seen = set()
sys.addaudithook(lambda event, _: seen.add(event))
DriftDetector.load(sys.argv[1])
print(json.dumps(sorted(seen)))
"""


def test_another_process_gives_the_same_answer_with_a_deep_kernel_and_executes_nothing(path, tmp_path):
    saved = DriftDetector(DEEP, rng=4).fit(REFERENCE, example=EXAMPLE)
    saved.save(path)
    np.save(tmp_path / "batch.npy", BATCH)
    command = [sys.executable, "-c", LOAD, str(path), str(tmp_path / "batch.npy")]
    printed = subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()
    assert json.loads(printed[0]) == json.loads(json.dumps(saved.test(BATCH).result.to_dict(null_distribution=True)))
    events = set(json.loads(printed[1]))  # of a second load, when nothing is left to import
    assert "open" in events
    assert not {
        e for e in events if e.startswith(("pickle", "exec", "compile", "marshal", "subprocess", "os.", "ctypes", "import"))
    }


def test_a_module_of_ones_own_is_asked_for(path):
    module = nn.Linear(3, 2)
    saved = DriftDetector(SplitTest(Deep(module=module), Plain(), ascent=QUICK), rng=0).fit(REFERENCE, example=EXAMPLE)
    saved.save(path)
    with pytest.raises(InputError, match="Pass it as module="):
        DriftDetector.load(path)
    assert answer(DriftDetector.load(path, module=module))["pvalue"] == answer(saved)["pvalue"]


def test_what_cannot_be_saved_is_named(path):
    method = SplitTest(Deep(module=nn.Linear(3, 2), lipschitz=lambda p: p["weight"].norm()), Plain(), ascent=QUICK)
    with pytest.raises(InputError, match="leave it out"):
        DriftDetector(method, rng=0).fit(REFERENCE, example=EXAMPLE).save(path)
    assert not path.exists()


def test_a_failed_save_leaves_the_file_as_it_was(path, monkeypatch):
    detector = DriftDetector("median", rng=0).fit(REFERENCE)
    detector.save(path)
    content = path.read_bytes()

    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("os.fsync", full)
    with pytest.raises(InputError, match="No space left"):
        detector.save(path)
    assert path.read_bytes() == content
    assert list(path.parent.iterdir()) == [path]
    with pytest.raises(InputError, match="folder exists"):
        detector.save(path.parent / "absent" / "detector")


# Damage


def damaged(content, draw):
    """One random accident: flipped bytes, a cut, something inserted, a piece left out, or a header edited in place."""
    new = bytearray(content)
    header = LENGTH + int.from_bytes(content[:LENGTH], "little")
    accident = draw.choice(["flip", "flip header", "cut", "insert", "append", "drop", "edit"])
    if accident.startswith("flip"):
        end = header if accident == "flip header" else len(new)
        for _ in range(draw.choice([1, 1, 1, 10])):
            new[draw.randrange(end)] ^= 1 << draw.randrange(8)
    elif accident == "cut":
        del new[draw.randrange(len(new)) :]
    elif accident == "insert":
        place = draw.randrange(len(new))
        new[place:place] = draw.randbytes(draw.randrange(1, 20))
    elif accident == "append":
        new += draw.randbytes(draw.randrange(1, 20))
    elif accident == "drop":
        place = draw.randrange(len(new))
        del new[place : place + draw.randrange(1, 20)]
    else:
        old, edited = draw.choice(
            [(b"0", b"1"), (b"F64", b"I64"), (b"numbers", b"nUmbers"), (b"median", b"mediAn"), (b":", b": ")]
        )
        new = new.replace(old, edited, draw.randrange(1, 4))
    return bytes(new)


@pytest.mark.parametrize("fitted", [{}, {"example": EXAMPLE}], ids=["own", "frozen"])
def test_five_hundred_damaged_files_are_all_refused(path, fitted):  # twice: 1000
    DriftDetector("median", n_permutations=99, rng=0).fit(REFERENCE, **fitted).save(path)
    content, draw, refused = path.read_bytes(), random.Random(0), 0
    while refused < 500:
        new = damaged(content, draw)
        if new == content:
            continue
        path.write_bytes(new)
        with pytest.raises(InputError, match=r"cannot be read as a cpmmd detector file.*\. Save or fetch it again\."):
            DriftDetector.load(path)
        refused += 1


@pytest.mark.parametrize(
    "make", [lambda _: None, lambda p: p.mkdir(), lambda p: p.write_bytes(b""), lambda p: p.write_text("a,b\n1,2\n")]
)
def test_what_is_no_file_of_ours_is_refused(path, make):
    make(path)
    with pytest.raises(InputError, match=str(path.name)):
        DriftDetector.load(path)


def test_files_of_another_kind_are_told_apart(path):
    save_kernel(RadialKernel("imq", 2.0), path)
    with pytest.raises(InputError, match=r"must hold a detector\. It holds a kernel; name the file of a detector"):
        DriftDetector.load(path)


# Hostile files: whoever forges one also forges its checksum


def signed(header, body=b""):
    """A file with this header and a checksum that is right."""
    text = header if isinstance(header, bytes) else json.dumps(header, separators=(",", ":")).encode()
    content = bytearray(len(text).to_bytes(LENGTH, "little") + text + body)
    try:
        start = _checksum_place(content)
    except ValueError:
        return bytes(content)
    content[start : start + len(BLANK)] = _checksum(content, start)
    return bytes(content)


def metadata(description):
    return {"format": "cpmmd-detector-1", "description": description, "sha256": BLANK.decode()}


DEEP_NESTING = "[" * 200_000 + "]" * 200_000
HOSTILE = {
    "length beyond the file": (2**63).to_bytes(8, "little") + b"{}",
    "length of everything": b"\xff" * 400,
    "no metadata": signed({"a": {"dtype": "F64", "shape": [1], "data_offsets": [0, 8]}}, bytes(8)),
    "nested header": signed(b'{"__metadata__":{"sha256":"' + BLANK + b'"},"x":' + DEEP_NESTING.encode() + b"}"),
    "nested description": signed({"__metadata__": metadata(DEEP_NESTING)}),
    "description of numbers": signed({"__metadata__": {**metadata("{}"), "description": 3}}),
    "no description": signed({"__metadata__": {"sha256": BLANK.decode()}}),
    "huge number": signed({"__metadata__": metadata("1" * 10_000)}),
    "not a number": signed({"__metadata__": metadata("NaN")}),
    "list": signed({"__metadata__": metadata("[]")}),
    "two checksums": signed({"__metadata__": metadata("{}"), "x": {"sha256": BLANK.decode()}}),
    "checksum elsewhere": signed(
        {"__metadata__": {"format": "cpmmd-detector-1", "description": "{}"}, "x": {"sha256": "0" * 64}}
    ),
    "tensor beyond the file": signed(
        {"__metadata__": metadata("{}"), "numbers": {"dtype": "F64", "shape": [2**40], "data_offsets": [0, 2**43]}}
    ),
    "shape that overflows": signed(
        {"__metadata__": metadata("{}"), "numbers": {"dtype": "F64", "shape": [2**62, 2**62, 0], "data_offsets": [0, 0]}}
    ),
    "unknown type": signed({"__metadata__": metadata("{}"), "n": {"dtype": "X9", "shape": [0], "data_offsets": [0, 0]}}),
    "header of text": signed(b'"sha256":"' + BLANK + b'"'),
    "header not text": signed(b'{"__metadata__":{"sha256":"' + BLANK + b'"}}\xff\xfe'),
}


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_hostile_headers_are_refused(path, content):
    path.write_bytes(content)
    with pytest.raises(InputError, match=r"cannot be read as a cpmmd detector file"):
        DriftDetector.load(path)


@pytest.mark.parametrize("content", HOSTILE.values(), ids=HOSTILE)
def test_the_kind_of_a_hostile_file_ends_in_an_answer(path, content):
    path.write_bytes(content)
    assert kind_of(path) in (None, "detector")


def test_the_kind_of_a_file_is_that_of_its_format(path):
    write_file(path, {"a": np.zeros(1)}, {"x": '"format":"cpmmd-other-1"'}, kind="monitor")
    assert kind_of(path) == "monitor"


JUNK = [
    None,
    True,
    -1,
    0,
    2**70,
    1e308,
    "",
    "x",
    "cp-full",
    [],
    [1, [2]],
    {},
    {"name": "Deep", "options": {"depth": 10**9}},
    {"type": "deep"},
]


def edited(value, draw):
    """A description with one random place replaced, removed or doubled."""
    if isinstance(value, dict) and value and draw.random() < 0.9:
        key = draw.choice(sorted(value))
        if draw.random() < 0.1:
            return {k: v for k, v in value.items() if k != key}
        return {**value, key: edited(value[key], draw)}
    if isinstance(value, list) and value and draw.random() < 0.8:
        place = draw.randrange(len(value))
        return [*value[:place], edited(value[place], draw), *value[place + draw.choice([0, 1, 1]) :]]
    return draw.choice(JUNK)


@pytest.mark.parametrize(
    ("method", "rows", "example", "batch"),
    [
        ("cp-full", MIXED, None, MIXED_BATCH),
        ("median", MIXED, MIXED_BATCH, MIXED_BATCH),
        (SplitTest(Bandwidth(), ComplexityPenalized(n_calibration=2)), REFERENCE, None, BATCH),
        (DEEP, REFERENCE, EXAMPLE, BATCH),
    ],
    ids=["own", "frozen", "split", "deep"],
)
def test_forged_descriptions_are_refused_or_harmless(path, method, rows, example, batch):
    """With a right checksum each edit ends in a sentence or in a detector that answers, never in another error."""
    DriftDetector(method, n_permutations=19, missing="impute", rng=0).fit(rows, example=example).save(path)
    description, tensors = read_file(path, lambda *parts: parts, kind="detector")
    draw, refused = random.Random(0), 0
    for _ in range(300):
        arrays, forged = dict(tensors), description
        if draw.random() < 0.3:
            name = draw.choice(sorted(arrays))
            arrays[name] = draw.choice(
                [arrays[name][:-1], arrays[name].astype(np.float32), arrays[name][None], -arrays[name] - 1]
            )
        else:
            forged = edited(description, draw)
        write_file(path, arrays, forged, kind="detector")
        try:
            loaded = DriftDetector.load(path)
        except InputError:
            refused += 1
            continue
        with contextlib.suppress(CpmmdError):
            loaded.test(batch)
    assert refused > 100
