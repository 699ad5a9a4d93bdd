"""What the README, the pages and the docstrings show is what happens."""

import doctest
import importlib
import pkgutil
import re
import subprocess
from itertools import pairwise

import pytest

import cpmmd
from docs import page_runs
from docs.page_runs import ROOT, PageError, pieces, run_and_keep, run_page

MODULES = [m.name for m in pkgutil.walk_packages(cpmmd.__path__, "cpmmd.")]
PAGES = sorted(
    p.relative_to(ROOT).as_posix()
    for p in [*ROOT.glob("*.md"), *ROOT.glob("docs/**/*.md")]
    if not {"_build", "gallery", "generated"} & set(p.parts)
)
# Lines that set up an environment are run where one is: by .ci/run, and by tests/packaging/check_dist.py for installing.
SETTING_UP = ("make demo", "make test", "make dist ", "pip install ")


def fences(page):
    return list(re.finditer(r"^```([^\n]*)\n(.*?)^```$", (ROOT / page).read_text(), flags=re.MULTILINE | re.DOTALL))


@pytest.mark.parametrize("page", [page for page in PAGES if pieces((ROOT / page).read_text())])
def test_the_examples_of_a_page_run_and_print_what_it_says(page):
    """Outputs are kept for the site; where a page types one, as the README must, it is the one that comes."""
    outputs = {"".join(output.code for output in block): block for block in run_and_keep(ROOT / page)}
    for before, after in pairwise(fences(page)):
        if after[1] == "text" and before[2] in outputs and before.end() + 2 == after.start():
            assert "".join(output.text for output in outputs[before[2]]) == after[2]


@pytest.mark.parametrize("page", PAGES)
def test_every_shell_line_is_run_and_repeats(page):
    for piece in [piece for block in pieces((ROOT / page).read_text()) for piece in block if piece.language == "sh"]:
        lines = [line for line in piece.code.splitlines() if line.strip() and not line.startswith("#")]
        ours = [line for line in lines if line == piece.command]
        assert [line for line in lines if not line.startswith(SETTING_UP)] == ours
        for line in ours:
            if re.match(r"cpmmd (test|fit|power)\b", line):
                assert "--seed" in line, f"{line}: a page's output must be the same each time"
    others = [fence[2] for fence in fences(page) if fence[1] not in ("python", "sh")]
    assert not any(line.startswith("cpmmd ") for block in others for line in block.splitlines())


def test_the_line_of_the_crontab_runs(tmp_path, monkeypatch):
    text = (ROOT / "docs/howto/monitoring.md").read_text()
    (line,) = re.findall(r"^15 6 \* \* \*  (cpmmd .*)$", text, flags=re.MULTILINE)
    line = line.replace("\\%", "%").replace("/data/", f"{tmp_path}/")  # cron takes a bare % for the end of the line
    blocks = [block for block in pieces(text) if "2024-03-0" in block[0].code or "def day" in block[0].code]
    page = tmp_path / "page.md"
    page.write_text("".join(f"```python\n{block[0].code}```\n" for block in blocks if block[0].language == "python"))
    run_page(page, tmp_path)
    commands = f"""set -e; cd {tmp_path}; mail() {{ echo "mail to $3"; }}
        cpmmd fit reference.csv -o monitor.cpmmd --monitor --seed 0 --method median
        cp 2024-03-05.csv $(date +%F).csv; {line}"""
    monkeypatch.setenv("PATH", page_runs.environment()["PATH"])
    done = subprocess.run(["bash", "-c", commands], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "ALARM" in done.stdout
    assert done.stdout.endswith("mail to me@example.org\n")
    assert {"cpmmd.prom", "series.html", "history.sqlite"} <= {path.name for path in tmp_path.iterdir()}


def write_page(folder, *blocks):
    page = folder / "page.md"
    page.write_text("\n\n".join(f"```{language}\n{code}\n```" for language, code in blocks) + "\n")
    return page


def test_blocks_share_names_and_a_folder_and_show_what_they_print_and_write(tmp_path):
    blocks = [("python", "n = 3"), ("python", "print(n)\nopen('page.html', 'w').write('<p>')"), ("sh", "# help\ncpmmd --version")]
    (first,), (second,), (third,) = run_page(write_page(tmp_path, *blocks), tmp_path)
    assert (first.text, second.text, second.files) == ("", "3\n", ("page.html",))
    assert third.text == f"cpmmd {cpmmd.__version__}\n"
    assert third.files == ()


@pytest.mark.parametrize(
    ("block", "word"),
    [
        (("python", "print([1, 2])  # [2]"), "the comment says '[2]'"),
        (("sh", "cpmmd test nowhere.csv nothing.csv"), "There is no file 'nowhere.csv'"),
        (("python", "import datetime\nprint(datetime.date.today())"), "the date of today"),
    ],
)
def test_a_page_that_says_what_does_not_happen_is_refused(tmp_path, block, word):
    with pytest.raises(PageError, match=re.escape(word)):
        run_page(write_page(tmp_path, block), tmp_path)


def test_an_error_names_the_line_of_the_page(tmp_path):
    with pytest.raises(ZeroDivisionError) as caught:
        run_page(write_page(tmp_path, ("python", "x = 0"), ("python", "y = 1\n1 / x")), tmp_path)
    assert caught.traceback[-1].lineno + 1 == 7


def test_comments_may_leave_something_out_and_folders_are_not_named(tmp_path):
    block = ("python", "import os\nprint('seven of', 7)  # seven ...\nprint(os.getcwd())")
    ((output,),) = run_page(write_page(tmp_path, block), tmp_path)
    assert output.text == f"seven of 7\n{page_runs.HOME}\n"


def test_outputs_are_kept_until_the_page_changes(tmp_path, monkeypatch):
    monkeypatch.setattr(page_runs, "KEPT", tmp_path / "kept")
    monkeypatch.setattr(page_runs, "ROOT", tmp_path)
    page = write_page(tmp_path, ("python", "open('a.svg', 'w').write('<svg/>')\nprint(1)"))
    first = page_runs.outputs_of(page)
    monkeypatch.setattr(page_runs, "run_page", lambda *_: pytest.fail("it was run again"))
    assert page_runs.outputs_of(page) == first
    assert (page_runs.place_of(page) / "a.svg").read_text() == "<svg/>"
    page.write_text(page.read_text() + "\n")
    with pytest.raises(pytest.fail.Exception):
        page_runs.outputs_of(page)


@pytest.mark.parametrize("name", MODULES)
def test_docstring_examples(name):
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("page", PAGES)
def test_internal_links_lead_somewhere(page):
    text = (ROOT / page).read_text()
    for target in re.findall(r"\]\((?!https?:)([^)#\s]+)", text):
        assert ((ROOT / page).parent / target).exists(), target


def test_the_map_names_files_and_functions_that_are_there():
    text = (ROOT / "docs/design.md").read_text()
    source = ROOT / "src/cpmmd"
    for path in set(re.findall(r"`([a-z_]+/[\w/]+\.py)`", text)) - {"questions/x.py", "statistics/x.py"}:
        assert (source / path).exists() or (ROOT / path).exists(), path
    walk = text.partition("## A stranger's walk")[2].partition("\n## ")[0]
    steps = re.findall(r"\d+\. `([\w/]+\.py)`, `([\w.]+)`", walk)
    assert 10 <= len(steps) <= 12
    for path, name in steps:
        assert re.search(rf"^\s*def {name.split('.')[-1]}\(", (source / path).read_text(), flags=re.MULTILINE), (path, name)
