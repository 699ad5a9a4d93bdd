"""Files as people have them, given to the commands."""

import shlex

import polars as pl

from commands import QUICK, document, refused, run


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


def test_one_row_is_not_rows(tmp_path, null_pair):
    short = tmp_path / "short.csv"
    short.write_text("u,v\n1,2\n")
    refused(run("test", short, null_pair[1]), "short.csv has 1.")
    split = tmp_path / "split.csv"
    split.write_text("g,v\n" + "a,1.5\nb,2.5\n" * 30 + ",1\n")
    result = run("test", split, "--split-by", "g", *QUICK)
    assert "1 row without a value of 'g' is left out" in result.stderr
