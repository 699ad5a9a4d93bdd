"""Nothing that others wrote is lost: what is read is not overwritten, strangers' files are not replaced unasked."""

import os
import stat
import subprocess
import sys

import numpy as np
import pytest

from commands import QUICK, refused, run
from cpmmd import CpmmdError
from cpmmd.core import atomic
from cpmmd.core.atomic import write_whole
from helpers import written


def csv(shift=0.0):
    rows = np.random.default_rng(0).normal(shift, 1, size=(40, 2))
    return "a,b\n" + "\n".join(",".join(map(repr, map(float, row))) for row in rows) + "\n"


@pytest.fixture
def pair(tmp_path):
    return written(tmp_path, "a.csv", csv()), written(tmp_path, "b.csv", csv(2.0))


def test_a_detector_does_not_replace_what_it_is_made_from(pair, tmp_path):
    refused(run("fit", pair[0], "-o", pair[0], "--force"), "would be overwritten")
    refused(run("fit", pair[0], "--example", pair[1], "-o", pair[1], "--force"), "would be overwritten")
    os.link(pair[0], tmp_path / "same.csv")
    refused(run("fit", pair[0], "-o", tmp_path / "same.csv"), "would be overwritten")
    with open(pair[0]) as file:
        assert file.read() == csv()


def test_a_strangers_file_is_replaced_only_when_asked(pair, tmp_path):
    other = tmp_path / "notes.html"
    other.write_text("<p>mine</p>")
    refused(run("test", *pair, "--report", other, *QUICK), "not written by cpmmd", "--force")
    assert other.read_text() == "<p>mine</p>"
    assert run("test", *pair, "--report", other, "--force", *QUICK).exit_code == 1
    assert run("test", *pair, "--report", other, *QUICK).exit_code == 1  # now it is ours
    detector = tmp_path / "d.cpmmd"
    detector.write_text("a stranger's")
    refused(run("fit", pair[0], "-o", detector), "--force")
    assert run("fit", pair[0], "-o", detector, "--force").exit_code == 0
    assert run("fit", pair[1], "-o", detector).exit_code == 0


@pytest.mark.parametrize("form", ["png", "svg", "pdf"])
def test_a_strangers_picture_is_replaced_only_when_asked(pair, tmp_path, form):
    picture, quick = tmp_path / f"power.{form}", ("--sizes", "10,20", "--repetitions", 2, *QUICK)
    picture.write_text("mine")
    refused(run("power", *pair, *quick, "--plot", picture), "not written by cpmmd", "--force")
    assert picture.read_text() == "mine"
    assert run("power", *pair, *quick, "--plot", picture, "--force").exit_code == 0
    assert run("power", *pair, *quick, "--plot", picture).exit_code == 0  # now it is ours


def test_the_demo_leaves_files_that_are_there(tmp_path):
    (tmp_path / "benign.csv").write_text("mine")
    refused(run("demo", tmp_path), "benign.csv", "--force")
    assert (tmp_path / "benign.csv").read_text() == "mine"
    assert run("demo", tmp_path, "--force").exit_code == 0
    assert run("demo", tmp_path).exit_code == 0


@pytest.mark.skipif(sys.platform == "win32", reason="permissions of POSIX")
def test_permissions_are_kept_links_stay_and_devices_are_refused(tmp_path):
    secret, link = tmp_path / "secret", tmp_path / "link"
    secret.write_bytes(b"old")
    secret.chmod(0o600)
    link.symlink_to(secret)
    write_whole(link, b"new")
    assert link.is_symlink()
    assert secret.read_bytes() == b"new"
    assert stat.S_IMODE(secret.stat().st_mode) == 0o600
    os.mkfifo(tmp_path / "pipe")
    for target in ("/dev/null", tmp_path / "pipe", tmp_path):
        with pytest.raises(CpmmdError, match="is not a file"):
            write_whole(target, b"x")


def test_a_full_disk_leaves_no_debris_and_the_old_file(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"old")

    def full_disk(_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(atomic.os, "fsync", full_disk)
    with pytest.raises(CpmmdError, match=r"No space left on device.*Free some space"):
        write_whole(tmp_path / "file", b"new")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]
    assert (tmp_path / "file").read_bytes() == b"old"


KILLED = """
import os, signal, sys
from cpmmd.core import atomic
atomic.os.fsync = lambda _: os.kill(os.getpid(), signal.SIGKILL)
atomic.write_whole(sys.argv[1], b"x")
"""
WAITING = """
import sys
from cpmmd.core import atomic
def wait(_):
    print("written", flush=True)
    sys.stdin.readline()
atomic.os.fsync = wait
atomic.write_whole(sys.argv[1], b"theirs")
"""


def test_drafts_of_killed_writers_are_removed_and_those_of_others_stay(tmp_path):
    assert subprocess.run([sys.executable, "-c", KILLED, str(tmp_path / "a")], check=False).returncode == -9
    (dead,) = tmp_path.iterdir()
    other = subprocess.Popen([sys.executable, "-c", WAITING, str(tmp_path / "b")], stdin=subprocess.PIPE, stdout=subprocess.PIPE)
    assert other.stdout.readline() == b"written\n"
    write_whole(tmp_path / "c", b"ours")
    assert not dead.exists()
    assert len(list(tmp_path.iterdir())) == 2  # the file, and the draft of the one that waits
    other.communicate(b"\n")
    assert (tmp_path / "b").read_bytes() == b"theirs"
    assert {path.name for path in tmp_path.iterdir()} == {"b", "c"}


def test_a_limit_on_the_size_of_files_is_named(tmp_path):
    limited = "import resource, sys; resource.setrlimit(resource.RLIMIT_FSIZE, (1000, 1000))\n"
    write = "from cpmmd.core.atomic import write_whole; write_whole(sys.argv[1], bytes(2000))"
    ran = subprocess.run(
        [sys.executable, "-c", limited + write, str(tmp_path / "a")], capture_output=True, text=True, check=False
    )
    assert "File too large" in ran.stderr
    assert "ulimit -f" in ran.stderr
    assert "folder" not in ran.stderr.splitlines()[-1]
    assert not list(tmp_path.iterdir())


def test_a_report_is_written_though_nobody_reads_the_answer(pair, tmp_path):
    command = [sys.executable, "-m", "cpmmd", "test", *pair, "--report", str(tmp_path / "r.html"), *QUICK]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL)
    process.stdout.close()  # as head does when it has seen enough
    process.wait()
    assert (tmp_path / "r.html").read_text().startswith("<!doctype html>")
