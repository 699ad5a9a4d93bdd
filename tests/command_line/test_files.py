"""Files as people have them, given to the commands."""

import shlex
from dataclasses import fields

import polars as pl
import pytest

from commands import QUICK, document, refused, run
from cpmmd.cli.settings import ReadOptions, TypedCommand
from cpmmd.errors import InputError


def test_a_column_that_one_file_has_only_can_be_dropped(tmp_path, null_pair):
    wider = tmp_path / "wider.csv"
    pl.read_csv(null_pair[0]).with_row_index("id").write_csv(wider)
    refused(run("test", wider, null_pair[1], *QUICK), "only in", "'id'")
    assert document(run("test", wider, null_pair[1], *QUICK, "--json", "--drop", "id"))["columns"] == ["u", "v"]
    refused(run("test", wider, null_pair[1], *QUICK, "--drop", "ix"), "Unknown column", "Known: id, u, v")


def test_batches_may_lack_a_column_to_drop(tmp_path, batches):
    detector, (monday, *_) = batches
    wider = tmp_path / "wider.csv"
    pl.read_csv(monday).with_row_index("id").write_csv(wider)
    found = document(run("check", detector, monday, wider, "--drop", "id", "--json", "--no-explain"))
    assert [batch["rows"] for batch in found["batches"]] == [80, 80]


def test_decimal_commas_and_encodings_are_part_of_the_command_that_repeats(tmp_path, null_pair):
    for path in null_pair:
        frame = pl.read_csv(path).with_columns(pl.lit("é").alias("word"))
        path.write_bytes(frame.write_csv(separator=";").replace(".", ",").encode("latin-1"))
    refused(run("test", *null_pair), "--encoding latin-1")
    refused(run("test", *null_pair, "--encoding", "latin-1"), "--decimal ,")
    refused(run("test", *null_pair, "--decimal", ";"), "--decimal")
    refused(run("test", *null_pair, "--encoding", "morse"), "The '--encoding' option")
    found = document(run("test", *null_pair, *QUICK, "--encoding", "latin-1", "--decimal", ",", "--json"))
    again = document(run(*shlex.split(found["repeat"])[1:], "--json"))
    assert again["result"] == found["result"]
    fitted = run("fit", null_pair[0], "-o", tmp_path / "d.cpmmd", *QUICK, "--encoding", "latin-1", "--decimal", ",")
    assert "--decimal , --encoding latin-1" in fitted.stdout


@pytest.mark.parametrize("kind", [(), ("--monitor",)], ids=["detector", "monitor"])
def test_the_command_that_fit_prints_reads_files_as_fit_did(tmp_path, null_pair, kind):
    for path in null_pair:
        frame = pl.read_csv(path).with_columns(pl.lit("é").alias("word"))
        path.write_bytes(frame.write_csv(separator=";").replace(".", ",").encode("latin-1"))
    written = ("--encoding", "latin-1", "--decimal", ",")
    fitted = run("fit", null_pair[0], "-o", tmp_path / "kept", *kind, *QUICK, *written)
    (printed,) = [line for line in fitted.stdout.splitlines() if "cpmmd check" in line]
    check = [str(null_pair[1]) if part == "BATCH..." else part for part in shlex.split(printed)[1:]]
    found = run(*check, "--json")
    assert found.exit_code == 0, found.output
    assert run(*shlex.split(document(found)["repeat"])[1:]).exit_code == 0
    if kind:
        assert run("acknowledge", tmp_path / "kept", "--reference", null_pair[1], *written).exit_code == 0


COMMANDS = {
    "test": ("test", "A", "B"),
    "margin": ("test", "A", "B", "--margin", 0.5),
    "split": ("test", "A", "--split-by", "u"),
    "power": ("power", "A", "B"),
    "fit": ("fit", "A", "-o", "new"),
    "fit with example": ("fit", "A", "--example", "B", "-o", "new"),
    "fit monitor": ("fit", "A", "-o", "new", "--monitor"),
    "check": ("check", "detector", "B"),
    "check monitor": ("check", "monitor", "B"),
    "acknowledge": ("acknowledge", "monitor", "--reference", "B"),
}


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_reads_files_with_all_options_of_reading(tmp_path, null_pair, monkeypatch, command):
    names = dict(zip("AB", null_pair, strict=True))
    for kind, name in (((), "detector"), (("--monitor",), "monitor")):
        run("fit", null_pair[0], "-o", tmp_path / name, *kind, *QUICK)
        names[name] = tmp_path / name
    options = ReadOptions(["u"], ["v"], ["w"], True, "%d", ",", "latin-1", "csv", "1M")
    assert all(getattr(options, one.name) != one.default for one in fields(ReadOptions))  # a new option belongs here, too
    typed = TypedCommand("", options=vars(options)).again()
    seen = []

    def read(self, *_, **__):
        seen.append(self)
        raise InputError("Enough is known.")

    monkeypatch.setattr(ReadOptions, "read", read)
    monkeypatch.chdir(tmp_path)
    result = run(*(names.get(part, part) for part in COMMANDS[command]), *shlex.split(typed)[2:])
    assert seen == [options], result.output


def test_one_row_is_not_rows(tmp_path, null_pair):
    short = tmp_path / "short.csv"
    short.write_text("u,v\n1,2\n")
    refused(run("test", short, null_pair[1]), "short.csv has 1.")
    split = tmp_path / "split.csv"
    split.write_text("g,v\n" + "a,1.5\nb,2.5\n" * 30 + ",1\n")
    result = run("test", split, "--split-by", "g", *QUICK)
    assert "1 row without a value of 'g' is left out" in result.stderr
